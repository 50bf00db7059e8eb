"""Explicit axes in a `shard_map` that is manual along others, and reduced and unreduced values.

Types, values and gradients beside the reference. Where the reference refuses a program, nothing is
compared.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy
import numpy as np
import pytest

import primax as px
import primax.numpy

MOST = min(len(jax.devices()), len(px.devices()))
NEW = tuple(map(int, jax.__version__.split(".")[:2])) >= (0, 12)
pytestmark = [
    pytest.mark.skipif(MOST < 8, reason="needs 8 devices on both sides"),
    pytest.mark.skipif(not NEW, reason="the reference of this version has other types"),
]

X = np.arange(32, dtype=np.float32).reshape(8, 4) / 8
W = np.cos(np.arange(12, dtype=np.float32)).reshape(4, 3)


def side(lib: Any) -> SimpleNamespace:
    mesh = lib.make_mesh((4, 2), ("x", "y"))
    P = lib.P
    put = lambda x, spec: lib.device_put(x, lib.NamedSharding(mesh, spec))
    s = SimpleNamespace(lib=lib, lax=lib.lax, np=lib.numpy, P=P, mesh=mesh, seen=[])
    s.x, s.rows = put(X, P("x", "y")), put(X, P("x"))
    s.w, s.w_y = put(W, P()), put(W, P("y", None))
    s.w_reduced = put(W, P(None, None, reduced={"x"}))

    def region(f, ins=None, out=None, names=("x",)):
        ins = {} if ins is None else {"in_specs": ins}
        out = P("x") if out is None else out
        return lib.shard_map(f, out_specs=out, axis_names={*names}, **ins)

    def show(x):
        s.seen.append(str(lib.typeof(x)))
        return x

    s.region, s.show = region, show
    return s


OURS, THEIRS = side(px), side(jax)


def dot(s, x, w):
    return s.np.dot(x, w, out_sharding=s.P(None, None))


def unreduced(s):
    return s.region(lambda x: s.lax.pcast(x, "x", to="unreduced"), s.P("x"), s.P(unreduced={"x"}))


def slope_of_reduced(s, x, w):
    w = s.show(s.lax.pcast(w, "x", to="reduced"))
    slope = s.lib.grad(lambda w: dot(s, x, w).sum())(w)
    return s.lax.psum(s.show(slope), "x")


def total(s):
    return lambda x: s.show(x * s.lax.psum(x, "y"))


# For each program the function of a side, and the names of its arguments.
PROGRAMS = {
    "sin": (lambda s: s.region(lambda x: s.show(s.np.sin(x))), "x"),
    "psum": (lambda s: s.region(lambda x: s.show(s.lax.psum(x, "x")), out=s.P()), "x"),
    "sum": (lambda s: s.region(lambda x: s.show(x.sum(1))), "x"),
    "dot": (lambda s: s.region(lambda x, w: s.show(x @ w), (s.P("x"), s.P())), "x w"),
    "dot_y": (lambda s: s.region(lambda x, w: s.show(dot(s, x, w)), (s.P("x"), s.P())), "x w_y"),
    "reshard": (lambda s: s.region(lambda x: s.show(s.lib.reshard(x, s.P("y", None)))), "x"),
    "transpose": (lambda s: s.region(lambda x: s.show(x.T), out=s.P(None, "x")), "x"),
    "zeros": (lambda s: s.region(lambda x: s.show(s.np.zeros((2, 4))) + s.show(x)), "x"),
    "cond": (
        lambda s: s.region(lambda x: s.lax.cond(x.sum() > 3, lambda: s.show(x * 2), lambda: x)),
        "x",
    ),
    "gather": (
        lambda s: s.region(lambda x: s.show(s.lax.all_gather(x, "x", tiled=True, axis=0))), "x",
    ),
    "gather_y": (
        lambda s: s.region(lambda x: s.show(s.lax.all_gather(x, "x", tiled=True, axis=1))), "x",
    ),
    "scatter": (
        lambda s: s.region(
            lambda x: s.show(s.lax.psum_scatter(s.np.concatenate([x] * 4), "x", tiled=True))
        ),
        "x",
    ),
    "permute": (
        lambda s: s.region(lambda x: s.show(s.lax.ppermute(x, "x", [(0, 1), (1, 3)]))), "x",
    ),
    "index": (
        lambda s: s.region(lambda x: s.show(x * s.lax.axis_index("x").astype("float32"))), "x",
    ),
    "batches": (
        lambda s: s.lib.vmap(s.region(lambda x: s.show(s.lax.psum(x, "x")), s.P("x"), s.P())),
        "pair",
    ),
    "batches_inside": (
        lambda s: s.region(s.lib.vmap(lambda r: s.show(r * 2)), s.P("x"), s.P("x")), "x",
    ),
    "checkpoint": (
        lambda s: s.region(s.lib.checkpoint(lambda x: s.np.sin(s.np.sin(x))), s.P("x")), "x",
    ),
    "nested": (
        lambda s: s.region(
            lambda x: s.region(total(s), out=s.P(None, "y"), names="y")(x), s.P("x")
        ),
        "x",
    ),
    "closure": (
        lambda s: lambda x, w: s.region(lambda x: s.show(dot(s, x, w)), s.P("x"))(x), "x w_y",
    ),
    "slope_inside": (
        lambda s: s.region(
            lambda x, w: s.lib.grad(lambda w: dot(s, x, w).sum())(w), (s.P("x"), s.P()), s.P()
        ),
        "x w_y",
    ),
    "slope_of_reduced": (
        lambda s: s.region(lambda x, w: slope_of_reduced(s, x, w), (s.P("x"), s.P()), s.P()),
        "x w_y",
    ),
    "unreduced": (lambda s: lambda x: s.lib.reshard(s.show(unreduced(s)(x)), s.P()), "x"),
    "unreduced_argument": (
        lambda s: lambda x: s.region(
            lambda x: s.show(s.lax.psum(x, "x")), s.P(unreduced={"x"}), s.P()
        )(unreduced(s)(x)),
        "x",
    ),
    "unreduced_rows": (
        lambda s: lambda x: s.lib.reshard(
            s.region(
                lambda x: s.lax.pcast(x, "x", to="unreduced"), s.P("x"), s.P(unreduced={"x"}), "xy"
            )(x),
            s.P(),
        ),
        "rows",
    ),
    "reduced": (
        lambda s: s.region(lambda x, w: dot(s, x, w), (s.P("x"), s.P(reduced={"x"}))),
        "x w_reduced",
    ),
    "reduced_rows": (
        lambda s: s.region(s.np.dot, (s.P("x"), s.P(reduced={"x"})), s.P("x"), "xy"),
        "rows w_reduced",
    ),
    "explicit_reduced": (lambda s: lambda x, w: s.show(s.np.dot(x, w)), "rows w_reduced"),
    "to_reduced": (
        lambda s: lambda x, w: s.np.dot(x, s.lib.reshard(w, s.P(None, None, reduced={"x"}))),
        "rows w",
    ),
    "to_unreduced": (
        lambda s: lambda w: s.lib.reshard(
            s.show(s.lib.reshard(s.np.sin(w), s.P(unreduced={"x"}))), s.P()
        ),
        "w",
    ),
    "sum_of_unreduced": (
        lambda s: lambda x, w: s.lib.reshard(twice(s, partial_dot(s, x, w)), s.P()),
        "x w_y",
    ),
}  # fmt: skip


def partial_dot(s, x, w):
    return s.np.einsum("ij,jk->ik", x, w, out_sharding=s.P("x", None, unreduced={"y"}))


def twice(s, u):
    return s.show(u + u)


GRADIENTS = {*PROGRAMS} - {"cond", "slope_inside", "slope_of_reduced", "unreduced_argument"}


def arguments(s: Any, names: str) -> list[Any]:
    s.pair = s.np.stack([s.x, s.x])
    return [getattr(s, n) for n in names.split()]


def outcome(s: Any, name: str, gradient: bool) -> Any:
    make, names = PROGRAMS[name]
    s.seen.clear()
    with s.lib.set_mesh(s.mesh):
        f, args = make(s), arguments(s, names)
        if gradient:
            primal = f
            loss = lambda *xs: (primal(*xs) ** 2).sum()
            f = s.lib.grad(loss, tuple(range(len(args))))
        whole = lambda *xs: s.lib.tree.map(lambda x: s.lib.reshard(x, s.P()), f(*xs))
        outs = s.lib.tree.leaves(s.lib.jit(f)(*args))
        types = [str(s.lib.typeof(x)) for x in outs]
        values = [np.asarray(x) for x in s.lib.tree.leaves(s.lib.jit(whole)(*args))]
    return types, sorted({*s.seen}), values


def check(name: str, gradient: bool) -> None:
    try:
        types, seen, values = outcome(THEIRS, name, gradient)
    except Exception as error:
        pytest.skip(f"refused by the reference: {type(error).__name__}")
    our_types, our_seen, our_values = outcome(OURS, name, gradient)
    assert our_types == types
    assert gradient or our_seen == seen
    for a, b in zip(our_values, values, strict=True):
        assert np.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    check(name, gradient=False)


@pytest.mark.parametrize("name", sorted(GRADIENTS))
def test_gradients(name):
    check(name, gradient=True)
