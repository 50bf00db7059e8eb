"""Collectives in `shard_map` on eight devices, beside NumPy: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
import primax_numpy as jnp
from primax_core import grad, jit, lax
from primax_distributed import AxisType, P, shard_map

X = np.arange(8 * 8 * 4, dtype=np.float32).reshape(64, 4) / 64
PARTS = X.reshape(8, 8, 4)
GRID = X.reshape(4, 2, 8, 4)
BOTH = ("x", "y")


@pytest.fixture(scope="module")
def mesh():
    return pd.make_mesh((4, 2), BOTH, axis_types=(AxisType.Auto,) * 2)


def everywhere(whole):
    return jnp.broadcast_to(whole, (8, *whole.shape))


def along(fun):
    """A reduction along x of the parts, at each position."""

    def whole(x):
        sums = fun(x.reshape(4, 2, 8, 4), axis=0, keepdims=True)
        return jnp.broadcast_to(sums, (4, 2, 8, 4)).reshape(8, 8, 4)

    return whole


def parts(x):
    return x.reshape(8, 8, 4)


def exchanged(x):
    blocks = x.reshape(8, 8, 1, 4)  # position, destination, rows
    return jnp.swapaxes(blocks, 0, 1).reshape(8, 8, 4)


def permuted(x):
    grid = x.reshape(4, 2, 8, 4)
    return jnp.stack([grid[2], 0 * grid[0], grid[0], grid[1]]).reshape(8, 8, 4)


CASES = {
    "psum": (lambda x: lax.psum(x, "x"), along(jnp.sum)),
    "psum_both": (lambda x: lax.psum(x, BOTH), lambda x: everywhere(parts(x).sum(0))),
    "pmean": (lambda x: lax.pmean(x, "x"), along(jnp.mean)),
    "all_gather": (lambda x: lax.all_gather(x, BOTH).reshape(64, 4), lambda x: everywhere(x)),
    "all_gather_tiled": (lambda x: lax.all_gather(x, BOTH, tiled=True), lambda x: everywhere(x)),
    "all_gather_axis": (
        lambda x: lax.all_gather(x, BOTH, axis=1, tiled=True),
        lambda x: everywhere(jnp.concatenate(list(parts(x)), 1)),
    ),
    "gathered_equal": (
        lambda x: lax.all_gather(x, BOTH, tiled=True, to="invarying"),
        lambda x: everywhere(x),
    ),
    "psum_scatter": (
        lambda x: lax.psum_scatter(x, BOTH, tiled=True),
        lambda x: parts(x).sum(0).reshape(8, 1, 4),
    ),
    "psum_scatter_untiled": (
        lambda x: lax.psum_scatter(x, BOTH)[None],
        lambda x: parts(x).sum(0).reshape(8, 1, 4),
    ),
    "all_to_all": (lambda x: lax.all_to_all(x, BOTH, 0, 0, tiled=True), exchanged),
    "all_to_all_untiled": (
        lambda x: lax.all_to_all(x.reshape(8, 1, 4), BOTH, 0, 0).reshape(8, 4),
        exchanged,
    ),
    "ppermute": (lambda x: lax.ppermute(x, "x", [(0, 2), (1, 3), (2, 0)]), permuted),
    "pshuffle": (
        lambda x: lax.pshuffle(x, BOTH, [3, 2, 1, 0, 7, 6, 5, 4]),
        lambda x: parts(x)[np.array([3, 2, 1, 0, 7, 6, 5, 4])],
    ),
    "pbroadcast": (
        lambda x: lax.pbroadcast(x, BOTH, 5),
        lambda x: everywhere(parts(x)[5]),
    ),
    "unreduced": (
        lambda x: lax.psum(lax.pcast(x, "x", to="unreduced"), "x"),
        along(jnp.sum),
    ),
    "scattered_parts": (
        lambda x: lax.psum_scatter(lax.pcast(x, BOTH, to="unreduced"), BOTH, tiled=True),
        lambda x: parts(x).sum(0).reshape(8, 1, 4),
    ),
}


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(mesh, name, check_vma):
    local, whole = CASES[name]
    weights = jnp.cos(jnp.arange(8 * np.prod(whole(X).shape[1:]), dtype=np.float32))

    def vary(y):
        for axis in BOTH if check_vma else ():
            if axis not in pd.manual_axis_type(pc.typeof(y)).varying:
                y = lax.pcast(y, axis, to="varying")
        return y

    @shard_map(mesh=mesh, in_specs=P(BOTH), out_specs=P(BOTH), check_vma=check_vma)
    def divided(x):
        return vary(local(x))

    def loss(f):
        return lambda x: (f(x).reshape(-1) * weights).sum()

    assert np.allclose(divided(X).reshape(whole(X).shape), whole(X), rtol=1e-5)
    if not check_vma and name in ("gathered_equal", "unreduced", "scattered_parts"):
        return
    result = jit(grad(loss(divided)))(X)
    assert np.allclose(result, grad(loss(whole))(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name, fun", [("pmax", np.max), ("pmin", np.min)])
def test_extrema(mesh, name, fun):
    @shard_map(mesh=mesh, in_specs=P(BOTH), out_specs=P())
    def f(x):
        return getattr(lax, name)(x, BOTH)

    assert np.array_equal(f(X), fun(PARTS, 0))


def test_index_groups(mesh):
    groups = [[0, 3], [1, 2]]

    @shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    def f(x):
        return lax.psum(x, "x", axis_index_groups=groups)

    a = X.reshape(4, 16, 4)
    assert np.allclose(f(X).reshape(a.shape), [a[0] + a[3], a[1] + a[2], a[1] + a[2], a[0] + a[3]])

    @shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def g(x):
        return lax.all_gather(x, "x", axis_index_groups=groups, tiled=True)

    assert np.allclose(g(X).reshape(4, 2, 16, 4)[1], a[[1, 2]])
    with pytest.raises(NotImplementedError, match="check_vma=False"):
        shard_map(
            lambda x: lax.psum(x, "x", axis_index_groups=groups), mesh=mesh, in_specs=P("x"),
            out_specs=P("x"),
        )(X)  # fmt: skip


def test_positions_and_sizes(mesh):
    @shard_map(mesh=mesh, in_specs=(), out_specs=(P(BOTH), P("x"), P()))
    def f():
        i = lax.axis_index(BOTH)
        return i[None], lax.axis_index("x")[None], np.int32(lax.axis_size(BOTH))

    both, x, n = f()
    assert both.tolist() == list(range(8)) and x.tolist() == [0, 1, 2, 3] and n == 8


def test_gradients_of_values_that_are_equal(mesh):
    """The gradient of a value that all positions share is the sum over the positions."""

    def loss(w, x):
        @shard_map(mesh=mesh, in_specs=(P(), P(BOTH)), out_specs=P())
        def f(w, x):
            return lax.psum((x * w).sum(), BOTH)

        return f(w, x)

    assert np.allclose(grad(loss)(np.float32(2), X), X.sum())

    @shard_map(mesh=mesh, in_specs=(P(), P(BOTH)), out_specs=P())
    def inside(w, x):
        return grad(lambda w: (x * w).sum())(w)

    assert np.allclose(inside(np.float32(2), X), X.sum())

    @shard_map(mesh=mesh, in_specs=(P(), P(BOTH)), out_specs=P(BOTH))
    def own(w, x):
        return grad(lambda w: (x * w).sum())(lax.pcast(w, BOTH, to="varying"))[None]

    assert np.allclose(own(np.float32(2), X), PARTS.sum((1, 2)))

    @shard_map(mesh=mesh, in_specs=(P(), P(BOTH)), out_specs=P())
    def later(w, x):
        g = grad(lambda w: (x * w).sum())(lax.pcast(w, BOTH, to="reduced"))
        assert str(pc.typeof(g)) == "float32[]{U:(x,y)}"
        return lax.psum(g, BOTH)

    assert np.allclose(later(np.float32(2), X), X.sum())


ERRORS = {
    "psum": (lambda x: lax.psum(x, BOTH), r"varying along 'x', invarying along 'y'.*to='varying'"),
    "pcast": (lambda x: lax.pcast(x, "x", to="varying"), "is not possible: it is varying already"),
    "to_reduced": (lambda x: lax.pcast(x, "x", to="reduced"), "values that vary can only become"),
    "nonlinear": (
        lambda x: lax.psum(lax.sin(lax.pcast(x, "x", to="unreduced")), "x"),
        "sin is not linear, so its operand .* cannot be unreduced",
    ),
    "sum": (
        lambda x: lax.psum(lax.pcast(x, "x", to="unreduced") + np.float32(1), "x"),
        "all operands must be unreduced",
    ),
    "product": (
        lambda x: lax.psum(lax.pcast(x, "x", to="unreduced") * np.float32(2), "x"),
        "needs the other one reduced",
    ),
    "reduced": (
        lambda x: lax.pcast(np.float32(1), "x", to="reduced") * np.float32(2),
        r"its result has type float32\[\]\{R:x\}",
    ),
    "unbound": (lambda x: lax.psum(x, "z"), "Found an unbound axis name: z"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(mesh, name):
    local, text = ERRORS[name]
    with pytest.raises((ValueError, TypeError, NameError), match=text):
        shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X)
