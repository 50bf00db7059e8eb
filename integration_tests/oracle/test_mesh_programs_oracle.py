"""`smap` and `pmap`, checks and references over a mesh, beside the reference."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import jax
import jax.experimental.checkify
import jax.numpy
import numpy as np
import pytest

import primax as px
import primax.experimental.checkify
import primax.numpy

MOST = min(len(jax.devices()), len(px.devices()))
NEW = tuple(map(int, jax.__version__.split(".")[:2])) >= (0, 12)
pytestmark = [
    pytest.mark.skipif(MOST < 8, reason="needs 8 devices on both sides"),
    pytest.mark.skipif(not NEW, reason="the reference of this version has other types"),
]

X = np.arange(32, dtype=np.float32).reshape(8, 4) / 8
V = np.arange(8, dtype=np.float32)


def side(lib: Any) -> SimpleNamespace:
    auto = (lib.sharding.AxisType.Auto,) * 2
    return SimpleNamespace(
        lib=lib, lax=lib.lax, np=lib.numpy, P=lib.P, checkify=lib.experimental.checkify,
        mesh=lib.make_mesh((4, 2), ("x", "y"), axis_types=auto),
        explicit=lib.make_mesh((4, 2), ("x", "y")),
    )  # fmt: skip


SIDES = [side(px), side(jax)]


def outcomes(compute: Any) -> list[Any]:
    """For each side the values, or the kind of the error."""
    results = []
    for s in SIDES:
        try:
            results.append([np.asarray(x) for x in s.lib.tree.leaves(compute(s))])
        except (TypeError, ValueError, LookupError, NameError, AssertionError) as error:
            results.append(type(error))
    return results


def agree(compute: Any) -> None:
    ours, theirs = outcomes(compute)
    if isinstance(theirs, type):
        assert isinstance(ours, type), ours
    else:
        assert not isinstance(ours, type), ours
        assert all(np.allclose(a, b, rtol=1e-4, atol=1e-5)
                   for a, b in zip(ours, theirs, strict=True))  # fmt: skip


# For each program the function of a side, in_axes and out_axes.
SMAPS = {
    "rows": (lambda s: s.np.sin, 0, 0),
    "columns": (lambda s: s.np.sin, 1, 1),
    "transposed": (lambda s: lambda x: x.T, 0, 1),
    "sum": (lambda s: lambda x: s.lax.psum(x, "x"), 0, None),
    "equal": (lambda s: lambda x: s.lax.pcast(x, "x", to="varying"), None, 0),
    "product": (lambda s: lambda x: x @ s.lax.all_gather(x, "x", tiled=True).T, 0, 0),
    "tree": (lambda s: lambda x: {"a": x * 2, "b": s.lax.psum(x.sum(), "x")}, 0,
             {"a": 0, "b": None}),
    "varies": (lambda s: lambda x: x, 0, None),
    "too_large": (lambda s: lambda x: x, 2, 0),
    "no_number": (lambda s: lambda x: x, "x", 0),
    "other_axis": (lambda s: lambda x: s.lax.psum(x, "z"), 0, None),
}  # fmt: skip


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("name", SMAPS)
def test_smap(name, explicit):
    if explicit and name == "product":
        pytest.skip("refused by the reference")
    make, in_axes, out_axes = SMAPS[name]

    def compute(s):
        mesh = s.explicit if explicit else s.mesh
        with s.lib.set_mesh(mesh):
            f = s.lib.smap(make(s), in_axes=in_axes, out_axes=out_axes, axis_name="x")
            x = X
            if explicit and isinstance(in_axes, int) and in_axes in (0, 1):
                x = s.lib.device_put(X, s.lib.NamedSharding(mesh, s.P(*[None] * in_axes, "x")))
            value = s.lib.jit(f)(x)
            total = lambda x: sum(s.np.sum(v**2) for v in s.lib.tree.leaves(f(x)))
            return value, s.lib.jit(s.lib.grad(total))(x)

    agree(compute)


def test_smap_with_specs_of_types():
    def compute(s):
        with s.lib.set_mesh(s.explicit):
            x = s.lib.device_put(X, s.lib.NamedSharding(s.explicit, s.P("x", "y")))
            f = s.lib.smap(lambda x: s.lax.psum(x, "x"), out_axes=None, axis_name="x")
            g = s.lib.smap(lambda x: s.lib.smap(
                lambda x: x * s.lax.psum(x, ("x", "y")), out_axes=1, axis_name="y")(x),
                out_axes=0, axis_name="x")  # fmt: skip
            return f(x), s.lib.jit(g)(x)

    agree(compute)


# For each program the function of a side, the options of pmap, and the arguments.
PMAPS = {
    "rows": (lambda s: s.np.sin, {}, (X,)),
    "sum": (lambda s: lambda x: x / s.lax.psum(x, "i"), {"axis_name": "i"}, (X,)),
    "in_axes": (lambda s: lambda x, y: x + y, {"in_axes": (0, None)}, (X, 2 * X[0])),
    "last": (lambda s: lambda x: x * 2, {"in_axes": 1}, (X.T,)),
    "out_axes": (lambda s: lambda x: x * 2, {"out_axes": 1}, (X,)),
    "out_equal": (
        lambda s: lambda x: s.lax.psum(x, "i"), {"axis_name": "i", "out_axes": None}, (X,),
    ),
    "tree": (lambda s: lambda t: {"c": t["a"] * t["b"]}, {}, ({"a": X, "b": V},)),
    "fewer": (lambda s: lambda x: s.lax.pmean(x, "i"), {"axis_name": "i"}, (X[:4],)),
    "permute": (
        lambda s: lambda x: s.lax.ppermute(x, "i", [(i, (i + 1) % 8) for i in range(8)]),
        {"axis_name": "i"}, (X,),
    ),
    "index": (lambda s: lambda x: x * s.lax.axis_index("i"), {"axis_name": "i"}, (X,)),
    "static": (lambda s: lambda x, n: x**n, {"static_broadcasted_argnums": 1}, (X, 3)),
    "size": (lambda s: lambda x: x, {"axis_size": 8}, (X,)),
    "wrong_size": (lambda s: lambda x: x, {"axis_size": 4}, (X,)),
    "too_many": (lambda s: lambda x: x, {}, (np.ones((9, 2), np.float32),)),
    "scalar": (lambda s: lambda x: x, {}, (np.float32(1),)),
    "different": (lambda s: lambda x, y: x, {}, (X, X[:4])),
    "unbound": (lambda s: lambda x: s.lax.psum(x, "j"), {"axis_name": "i"}, (X,)),
    "scan": (
        lambda s: lambda x: s.lax.scan(lambda c, v: (c + s.lax.psum(v, "i"), c), x[0], x)[1],
        {"axis_name": "i"}, (X,),
    ),
    "mapped": (lambda s: lambda x: s.lib.vmap(s.np.cos)(x), {}, (X,)),
}  # fmt: skip
WITHOUT_GRADIENTS = ("static", "tree", "out_equal")


@pytest.mark.parametrize("name", PMAPS)
def test_pmap(name):
    make, options, args = PMAPS[name]
    agree(lambda s: s.lib.pmap(make(s), **options)(*args))


@pytest.mark.parametrize("name", [n for n in PMAPS if n not in WITHOUT_GRADIENTS])
def test_gradients_of_pmap(name):
    make, options, args = PMAPS[name]

    def compute(s):
        loss = lambda x, *rest: s.np.sum(s.lib.pmap(make(s), **options)(x, *rest) ** 2)
        return s.lib.grad(loss)(*args)

    agree(compute)


def test_pmap_of_arguments_on_other_devices():
    def compute(s):
        f = s.lib.pmap(lambda x: x * 2)
        devices = s.lib.devices()
        one = s.lib.device_put(X, devices[3])
        divided = f(X)
        again = f(f(divided))  # divided as pmap divides
        mesh = s.lib.make_mesh((8,), ("j",), axis_types=(s.lib.sharding.AxisType.Auto,))
        backwards = s.lib.device_put(X, s.lib.NamedSharding(mesh, s.P(None)))
        fewer = s.lib.pmap(lambda x: x + 1, devices=devices[4:])(one[:4])
        assert [d.id for d in sorted(fewer.sharding.device_set, key=lambda d: d.id)] == [4, 5, 6, 7]
        return f(one), again, f(backwards), fewer

    agree(compute)


def checked(s: Any, x: Any) -> Any:
    s.checkify.check(s.np.all(x < 5), "too large: {}", x.sum())
    return x * 2


def of_rows(s: Any, x: Any) -> Any:
    def step(c, v):
        s.checkify.check(v < 5, "too large: {}", v)
        return c + v, c

    return s.lax.scan(step, 0.0, x[None])[1]


CHECKS = {
    "pmap": lambda s: s.lib.pmap(lambda x: checked(s, x)),
    "pmap_scan": lambda s: s.lib.pmap(lambda x: of_rows(s, x)),
    "pmap_cond": lambda s: s.lib.pmap(
        lambda x: s.lax.cond(x > 2, lambda: checked(s, x), lambda: x)
    ),
    "shard_map": lambda s: s.lib.shard_map(
        lambda x: checked(s, x), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x")
    ),
    "untyped": lambda s: s.lib.shard_map(
        lambda x: checked(s, x), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x"),
        check_vma=False,
    ),
    "equal": lambda s: s.lib.shard_map(
        lambda x: checked(s, s.lax.psum(x, "x")), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P()
    ),
    "gradient": lambda s: s.lib.grad(lambda x: CHECKS["shard_map"](s)(x).sum()),
}  # fmt: skip


@pytest.mark.parametrize("apply", ["", "jit"])
@pytest.mark.parametrize("name", CHECKS)
def test_checks(name, apply):
    for x, fails in ((V, True), (V / 100, False)):
        texts, outs = [], []
        for s in SIDES:
            f = CHECKS[name](s)
            error, out = s.checkify.checkify(s.lib.jit(f) if apply else f)(x)
            text = error.get()
            # The reference lists the failure of each position, here it is that of the first.
            first = text and re.search("too large: [0-9.]*", text).group()
            texts.append(first)
            outs.append(out)
        assert texts[0] == texts[1] and (texts[0] is not None) is fails
        assert np.allclose(*outs)


def test_float_checks():
    for s in SIDES:
        f = s.lib.shard_map(
            lambda x, s=s: s.np.log(x - 1), mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x")
        )
        error, _ = s.checkify.checkify(f, errors=s.checkify.float_checks)(V)
        assert "nan generated by primitive: log" in error.get()


def test_references():
    def compute(s):
        def f(x):
            ref = s.lib.new_ref(s.np.ones(8))
            region = s.lib.shard_map(
                lambda ref, x: ref.__setitem__(..., ref[...] + 2 * x), mesh=s.mesh,
                in_specs=(s.P("x"), s.P("x")), out_specs=None,
            )  # fmt: skip
            region(ref, x)
            return ref[...]

        return s.lib.jit(f)(V), s.lib.jit(s.lib.grad(lambda x: (f(x) ** 2).sum()))(V)

    agree(compute)
