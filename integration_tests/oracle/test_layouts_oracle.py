"""Layouts and memory kinds against the reference: values, formats, jaxprs, errors."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import same
from jax.ad_checkpoint import checkpoint_name as jax_name
from jax.experimental.layout import (
    Format as JaxFormat,
    Layout as JaxLayout,
    with_layout_constraint as jax_constraint,
)

import primax as px
import primax.numpy as pnp
from primax_core.ad_checkpoint import checkpoint_name
from primax_core.layout import Format, Layout, with_layout_constraint

A = np.arange(6, dtype=np.float32).reshape(2, 3)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def side(lib: Any, np_: Any, layout: Any, format_: Any, constraint: Any, name: Any) -> Any:
    here = lib.device_put(A).sharding

    def kind(memory: str) -> Any:
        return type(here)(lib.devices()[0], memory_kind=memory)

    def fmt(*order: int) -> Any:
        return format_(layout(order), here)

    return SimpleNamespace(
        px=lib, np=np_, Layout=layout, Format=format_, constraint=constraint, name=name, here=here,
        fmt=fmt, kind=kind, Space=lib.memory.Space,
        columns=lambda x: lib.device_put(x, fmt(*range(np.ndim(x))[::-1])),
    )  # fmt: skip


OURS = side(px, pnp, Layout, Format, with_layout_constraint, checkpoint_name)
THEIRS = side(jax, jnp, JaxLayout, JaxFormat, jax_constraint, jax_name)


def order(x: Any) -> tuple[int, ...]:
    return x.format.layout.major_to_minor


def orders(formats: Any) -> list[Any]:
    return [f.layout.major_to_minor for f in formats]


def agree(f: Any) -> None:
    """Assert equal values, dtypes, orders, kinds and texts."""
    ours, theirs = f(OURS), f(THEIRS)
    ours, theirs = (x if isinstance(x, tuple) else (x,) for x in (ours, theirs))
    assert len(ours) == len(theirs)
    for o, t in zip(ours, theirs):
        if hasattr(t, "dtype"):
            same(o, t)
        else:
            assert o == t


def with_order(x: Any) -> tuple[Any, Any]:
    return x, order(x)


def with_kind(x: Any) -> tuple[Any, Any]:
    return x, x.sharding.memory_kind


ARRAYS = {
    "put": lambda s: with_order(s.columns(A)),
    "put back": lambda s: with_order(s.px.device_put(s.columns(A), s.fmt(0, 1))),
    "put by sharding": lambda s: with_order(s.px.device_put(s.columns(A), s.here)),
    "put nowhere": lambda s: with_order(s.px.device_put(s.columns(A))),
    "three axes": lambda s: with_order(s.px.device_put(CUBE, s.fmt(2, 0, 1))),
    "usual": lambda s: (order(s.np.asarray(A)), order(s.np.zeros(())), order(s.np.zeros((0, 3)))),
    "read": lambda s: (np.asarray(s.columns(A)), s.columns(A).tolist(), s.columns(A)[1, 2]),
    "moved about": lambda s: (s.columns(A).T, s.columns(A).reshape(3, 2), s.columns(A)[0]),
    "computed with": lambda s: (s.columns(A) + A, s.np.sum(s.columns(A), 0), s.columns(A) @ A.T),
    "copied": lambda s: (np.asarray(copy.copy(s.columns(A))), np.asarray(s.columns(A).copy())),
    "pickled": lambda s: np.asarray(pickle.loads(pickle.dumps(s.columns(A)))),
    "handed over": lambda s: np.from_dlpack(s.columns(A)),
    "texts": lambda s: (
        repr(s.Layout((1, 0))), repr(s.Layout.AUTO), repr(s.Layout((1, 0), ((8, 128),))),
    ),
    "equality": lambda s: (
        s.Layout((1, 0)) == s.Layout((1, 0)), s.Layout((1, 0)) == s.Layout((0, 1)),
        s.fmt(1, 0) == s.fmt(1, 0), hash(s.fmt(1, 0)) == hash(s.fmt(1, 0)),
    ),
}  # fmt: skip

COMPILED = {
    "arguments as they are": lambda s: with_order(s.px.jit(lambda x: x * 2)(s.columns(A))),
    "results": lambda s: with_order(s.px.jit(lambda x: x * 2, out_shardings=s.fmt(1, 0))(A)),
    "some results": lambda s: tuple(
        order(y) for y in s.px.jit(lambda x: (x, x), out_shardings=(s.fmt(1, 0), None))(A)
    ),
    "arguments": lambda s: s.px.jit(lambda x: x * 2, in_shardings=s.fmt(1, 0))(s.columns(A)),
    "arguments that are free": lambda s: (
        s.px.jit(lambda x: x * 2, in_shardings=s.fmt(1, 0))(A),
        s.px.jit(lambda x: x * 2, in_shardings=s.fmt(1, 0))(s.np.asarray(A)),
    ),
    "a tree": lambda s: s.px.jit(
        lambda d: d["a"].T @ d["b"], in_shardings=({"a": s.fmt(1, 0), "b": None},)
    )({"a": s.columns(A), "b": A}),
    "donated": lambda s: with_order(
        s.px.jit(
            lambda x: x + 1, donate_argnums=0, in_shardings=s.fmt(1, 0), out_shardings=s.fmt(1, 0)
        )(s.columns(A))
    ),
    "results that the compiler chooses": lambda s: s.px.jit(
        lambda x: x * 2, out_shardings=s.Format(s.Layout.AUTO)
    )(A),
    "constraints": lambda s: s.px.jit(lambda x: s.constraint(x * 2, s.Layout((1, 0))) + 1)(A),
    "constraints of an array": lambda s: with_order(
        s.constraint(s.np.asarray(A), s.Layout((1, 0)))
    ),
    "derivatives of constraints": lambda s: (
        s.px.grad(lambda x: s.constraint(x * x, s.Layout((1, 0))).sum())(s.np.asarray(A)),
        s.px.jvp(lambda x: s.constraint(x * x, s.Layout((1, 0))), (A,), (A,))[1],
    ),
    "mapped constraints": lambda s: s.px.vmap(lambda x: s.constraint(x, s.Layout((1, 0))))(
        s.np.asarray(CUBE)
    ),
    "constraints in a branch": lambda s: s.px.jit(
        lambda x: s.px.lax.cond(
            x.sum() > 0, lambda x: s.constraint(x * 2, s.Layout((1, 0))), lambda x: x, x
        )
    )(A),
    "constraints in a loop": lambda s: s.px.jit(
        lambda x: s.px.lax.scan(
            lambda c, _: (s.constraint(c * 2, s.Layout((1, 0))), None), x, None, length=2
        )[0]
    )(A),
    "programs": lambda s: [
        e.primitive.name
        for e in s.px.make_jaxpr(lambda x: s.constraint(x * 2, s.Layout((1, 0))))(A).eqns
    ],
}  # fmt: skip


def chosen(s: Any) -> Any:
    auto = s.Format(s.Layout.AUTO)
    c = s.px.jit(lambda x: x.T @ x, in_shardings=auto, out_shardings=auto)
    c = c.lower(s.px.ShapeDtypeStruct((2, 3), np.float32)).compile()
    x = s.px.device_put(A, c.input_formats[0][0])
    return orders(c.input_formats[0]), order(c(x)) == c.output_formats.layout.major_to_minor, c(x)


def explicit(s: Any) -> Any:
    c = s.px.jit(lambda x, y: (x + y, x), out_shardings=(s.fmt(1, 0), None)).lower(A, A).compile()
    return orders(c.input_formats[0]), orders(c.output_formats), *c(A, A)


def of_types(s: Any) -> Any:
    struct = s.px.ShapeDtypeStruct((2, 3), np.float32, sharding=s.fmt(1, 0))
    c = s.px.jit(lambda x: x * 2).lower(struct).compile()
    return orders(c.input_formats[0]), c(s.columns(A))


AHEAD = {"chosen": chosen, "explicit": explicit, "of types": of_types}

MEMORY = {
    "usual": lambda s: (s.px.device_put(A).sharding.memory_kind, s.here.memory_kind),
    "put": lambda s: with_kind(s.px.device_put(A, s.kind("pinned_host"))),
    "put in a space": lambda s: with_kind(s.px.device_put(A, s.Space.Host)),
    "and back": lambda s: with_kind(
        s.px.device_put(s.px.device_put(A, s.Space.Host), s.Space.Device)
    ),
    "results": lambda s: with_kind(
        s.px.jit(lambda x: x * 2, out_shardings=s.kind("pinned_host"))(A)
    ),
    "results put there": lambda s: with_kind(
        s.px.jit(lambda x: s.px.device_put(x * 2, s.Space.Host))(A)
    ),
    "there and back": lambda s: with_kind(
        s.px.jit(lambda x: s.px.device_put(s.px.device_put(x, s.Space.Host), s.Space.Device) + 1)(A)
    ),
    "computed with": lambda s: s.px.device_put(A, s.kind("pinned_host")) + 1,
    "arguments": lambda s: s.px.jit(lambda x: x * 2)(s.px.device_put(A, s.kind("pinned_host"))),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    agree(ARRAYS[name])


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions(name):
    agree(COMPILED[name])


@pytest.mark.parametrize("name", AHEAD)
def test_ahead_of_time(name):
    agree(AHEAD[name])


@pytest.mark.parametrize("name", MEMORY)
def test_memory_kinds(name):
    agree(MEMORY[name])


def names_policy(s: Any) -> Any:
    return s.px.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["kept"], names_which_can_be_offloaded=["away"],
        offload_src="device", offload_dst="pinned_host",
    )  # fmt: skip


def dots_policy(s: Any) -> Any:
    return s.px.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")


@pytest.mark.parametrize("policy", [names_policy, dots_policy])
@pytest.mark.parametrize("looped", [False, True])
def test_offloading(policy, looped):
    """Offloaded values, their destination, and the derivatives."""

    def of(s):
        def layer(x, _):
            y = s.name(s.np.sin(x @ x), "kept")
            return s.name(s.np.sin(y @ x), "away"), None

        layer = s.px.checkpoint(layer, policy=policy(s))

        def loss(x):
            if looped:
                return s.px.lax.scan(layer, x, None, length=2)[0].sum()
            return layer(x, None)[0].sum()

        x = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
        text = str(s.px.make_jaxpr(s.px.grad(loss))(x))
        return s.px.jit(s.px.grad(loss))(x), text.count("device_put[")

    agree(of)


REFUSED = {
    "layout without a place": lambda s: s.Format(s.Layout((1, 0))),
    "no layout": lambda s: s.Format("columns"),
    "no sharding": lambda s: s.Format(None, "here"),
    "too many axes": lambda s: s.px.device_put(A, s.fmt(1, 0, 2)),
    "too few axes of a result": lambda s: s.px.jit(lambda x: x, out_shardings=s.fmt(0))(A),
    "another layout than stated": lambda s: s.px.jit(lambda x: x, in_shardings=s.fmt(1, 0))(
        s.px.device_put(A, s.fmt(0, 1))
    ),
    "a compiler's choice without its layout": lambda s: s.px.jit(
        lambda x: x, in_shardings=s.Format(s.Layout.AUTO)
    )(s.px.device_put(A)),
    "another layout than compiled for": lambda s: s.px.jit(lambda x: x).lower(A).compile()(
        s.columns(A)
    ),
    "constraint of another rank": lambda s: s.px.jit(
        lambda x: s.constraint(x, s.Layout((0,)))
    )(A),
    "constraint that is none": lambda s: s.px.jit(lambda x: s.constraint(x, (1, 0)))(A),
    "memory that is not there": lambda s: s.kind("attic"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name):
    raised = []
    for s in (OURS, THEIRS):
        try:
            REFUSED[name](s)
            raised.append(None)
        except Exception as e:
            raised.append(type(e).__name__)
    assert raised[0] == raised[1]
