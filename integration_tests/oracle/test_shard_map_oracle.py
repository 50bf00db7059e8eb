"""`shard_map` against the reference: types, values, gradients, kinds of errors."""

from __future__ import annotations

import re
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


def side(lib: Any) -> SimpleNamespace:
    kind = lib.sharding.AxisType.Auto
    mesh = lib.make_mesh((4, 2), ("x", "y"), axis_types=(kind,) * 2)
    return SimpleNamespace(lib=lib, lax=lib.lax, np=lib.numpy, P=lib.P, mesh=mesh)


OURS, THEIRS = side(px), side(jax)
X = np.arange(64, dtype=np.float32).reshape(16, 4) / 64
Y = np.cos(np.arange(4, dtype=np.float32))

PROGRAMS = {
    "psum": (lambda s: lambda x, y: s.lax.psum(x, "x"), ("x", None), ()),
    "pmean": (lambda s: lambda x, y: s.lax.pmean(x, "x"), ("x", None), ()),
    "both": (lambda s: lambda x, y: s.lax.psum(x, ("x", "y")), (("x", "y"), None), ()),
    "equal": (lambda s: lambda x, y: s.lax.psum(y, "x"), ("x", None), ()),
    "product": (lambda s: lambda x, y: s.lax.dot(x, y), ("x", None), "x"),
    "cast": (lambda s: lambda x, y: s.lax.pcast(y, "x", to="varying"), ("x", None), "x"),
    "reduced": (
        lambda s: lambda x, y: s.lax.dot(x, s.lax.pcast(y, "x", to="reduced")), ("x", None), "x",
    ),
    "unreduced": (
        lambda s: lambda x, y: s.lax.psum(s.lax.pcast(x, "x", to="unreduced"), "x"),
        ("x", None), (),
    ),
    "scattered": (
        lambda s: lambda x, y: s.lax.psum_scatter(
            s.lax.pcast(x, "x", to="unreduced"), "x", tiled=True
        ),
        ("x", None), "x",
    ),
    "gather": (lambda s: lambda x, y: s.lax.all_gather(x, "x", tiled=True), ("x", None), "x"),
    "gather_equal": (
        lambda s: lambda x, y: s.lax.all_gather(x, "x", tiled=True, to="invarying"),
        ("x", None), (),
    ),
    "permute": (
        lambda s: lambda x, y: s.lax.ppermute(x, ("x", "y"), [(0, 1), (1, 3)]),
        ("x", None), (("x", "y"),),
    ),
    "exchange": (
        lambda s: lambda x, y: s.lax.all_to_all(x, "x", 0, 0, tiled=True), ("x", None), "x",
    ),
    "scatter": (lambda s: lambda x, y: s.lax.psum_scatter(x, "x", tiled=True), ("x", None), "x"),
    "pmax": (lambda s: lambda x, y: s.lax.pmax(y, "x"), ("x", None), ()),
    "nonlinear": (
        lambda s: lambda x, y: s.lax.psum(s.lax.sin(s.lax.pcast(x, "x", to="unreduced")), "x"),
        ("x", None), (),
    ),
    "varying": (lambda s: lambda x, y: x, ("x", None), ()),
    "mixed": (lambda s: lambda x, y: s.lax.psum(x, ("x", "y")), ("x", None), ()),
    "twice": (lambda s: lambda x, y: s.lax.pcast(x, "x", to="varying"), ("x", None), "x"),
    "too_long": (lambda s: lambda x, y: x, ("x", ("x", "y")), "x"),
    "unknown": (lambda s: lambda x, y: x, ("z", None), "x"),
    "no_mesh_axis": (lambda s: lambda x, y: s.lax.psum(x, "z"), ("x", None), "x"),
    "groups": (
        lambda s: lambda x, y: s.lax.psum(x, "x", axis_index_groups=[[0, 1], [2, 3]]),
        ("x", None), "x",
    ),
    "carry": (
        lambda s: lambda x, y: s.lax.scan(lambda c, _: (c * x[0], None), y, None, length=2)[0],
        ("x", None), "x",
    ),
    "loop": (
        lambda s: lambda x, y: s.lax.scan(lambda c, v: (c + v, c * y), x[0] * 0, x)[1],
        ("x", None), "x",
    ),
}  # fmt: skip

TYPED = ("gather_equal", "unreduced", "scattered", "reduced", "nonlinear")
"""Programs that use types, which `check_vma=False` switches off."""


def spec(s: Any, entry: Any) -> Any:
    return s.P() if entry in (None, ()) else s.P(*entry) if entry == (("x", "y"),) else s.P(entry)


def mapped(s: Any, name: str, **options: Any) -> Any:
    make, ins, out = PROGRAMS[name]
    return s.lib.shard_map(
        make(s), mesh=s.mesh, in_specs=tuple(spec(s, e) for e in ins), out_specs=spec(s, out),
        **options,
    )  # fmt: skip


def outcome(s: Any, compute: Any) -> Any:
    """The results, or the kind of the error."""
    try:
        return s.lib.tree.map(np.asarray, compute())
    except AssertionError:  # of the reference, for an unbound name
        return NameError
    except Exception as error:
        if type(error).__name__ == "ShardingTypeError":
            return TypeError
        kinds = (NameError, NotImplementedError, ValueError, TypeError)
        return next(kind for kind in kinds if isinstance(error, kind))


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, check_vma):
    if not check_vma and name in ("varying", *TYPED):
        pytest.skip("the result depends on the device, or on types")
    ours, theirs = (
        outcome(s, lambda s=s: s.lib.jit(mapped(s, name, check_vma=check_vma))(X, Y))
        for s in (OURS, THEIRS)
    )
    if isinstance(theirs, type):
        assert isinstance(ours, type), ours
        assert {ours, theirs} <= {ValueError, TypeError} or ours is theirs
    else:
        assert np.allclose(ours, theirs, rtol=1e-5)


def collectives(s: Any, name: str) -> list[tuple[str, list[str]]]:
    """The equations of the body over axes, with the types of their results."""
    (eqn,) = s.lib.make_jaxpr(mapped(s, name))(X, Y).eqns
    body = eqn.params["jaxpr"]
    return [
        (e.primitive.name, [v.aval.str_short() for v in e.outvars])
        for e in body.eqns
        if {"axes", "axis_name"} & e.params.keys()
        and e.primitive.name != "reduce_sum"
        and (e.primitive.name != "pvary" or e.outvars[0].aval.shape)  # numbers are converted later
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_types(name):
    if not isinstance(outcome(THEIRS, lambda: mapped(THEIRS, name)(X, Y)), type):
        ours, theirs = (collectives(s, name) for s in (OURS, THEIRS))
        assert re.sub("float", "f", str(ours)) == re.sub("float", "f", str(theirs))


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize(
    "name",
    ["psum", "pmean", "equal", "product", "cast", "reduced", "gather", "permute", "exchange",
     "scatter", "loop", "gather_equal", "unreduced", "scattered"],
)  # fmt: skip
def test_gradients(name, check_vma):
    if not check_vma and name in TYPED:
        pytest.skip("they need types")

    def gradients(s):
        f = mapped(s, name, check_vma=check_vma)
        loss = lambda x, y: s.np.sum(s.np.sin(3 * f(x, y)))
        first = s.lib.grad(loss, (0, 1))
        norm = lambda x, y: sum(s.np.sum(g**2) for g in first(x, y))
        return s.lib.jit(first)(X, Y), s.lib.jit(s.lib.grad(norm, (0, 1)))(X, Y)

    for ours, theirs in zip(*(px.tree.leaves(gradients(s)) for s in (OURS, THEIRS))):
        assert np.allclose(ours, theirs, rtol=1e-3, atol=1e-4)
