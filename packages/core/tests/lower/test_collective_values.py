"""Values of collectives on four devices, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from mesh_regions import over_mesh, region_p

import primax_core as pc
from primax_core import lax
from primax_core._runtime.tiled_sharding import TiledSharding
from primax_core.extend import ShapedArray, devices
from primax_core.extend.runtime import Tiling

EVERYWHERE = TiledSharding(pc.devices()[:4], Tiling((), np.arange(4)))


@region_p.rule(devices)
def _devices(eqn):
    return EVERYWHERE


X = np.arange(32, dtype=np.float32).reshape(8, 4)
A = ShapedArray(X.shape, X.dtype)
PARTS = X.reshape(4, 2, 4)
GRID = X.reshape(2, 2, 2, 4)  # x, y, part


def values(f, *args, **options):
    """The result of a function of parts, one row for each position."""
    avals = [ShapedArray(a.shape, a.dtype) for a in args]
    out = np.asarray(pc.jit(over_mesh(f, *avals, **options))(*args))
    return out.reshape(4, -1, *out.shape[1:])


def over(axis, fun):
    """A reduction of the parts along an axis of the mesh, at each position."""
    reduced = fun(GRID, axis=axis, keepdims=True)
    return np.broadcast_to(reduced, GRID.shape).reshape(PARTS.shape)


@pytest.mark.parametrize("i, name", [(0, "x"), (1, "y")])
def test_reductions(i, name):
    assert np.array_equal(values(lambda x: lax.psum(x, name), X), over(i, np.sum))
    assert np.array_equal(values(lambda x: lax.pmax(x, name), X), over(i, np.max))
    assert np.array_equal(values(lambda x: lax.pmin(x, name), X), over(i, np.min))
    assert np.array_equal(values(lambda x: lax.pmean(x, name), X), over(i, np.mean))


def test_reductions_over_both_axes():
    total = np.broadcast_to(PARTS.sum(0), PARTS.shape)
    assert np.array_equal(values(lambda x: lax.psum(x, ("x", "y")), X), total)


@pytest.mark.parametrize("dtype", ["int32", "complex64", "bfloat16", "float64"])
def test_dtypes_of_reductions(dtype):
    import ml_dtypes

    x = X.astype(getattr(ml_dtypes, dtype, dtype))
    with pc.enable_x64(dtype == "float64"):
        out = values(lambda x: lax.psum(x, "y"), x)
    assert out.dtype == x.dtype and np.array_equal(out.astype(np.complex64), over(1, np.sum))


def test_predicates_are_counted():
    out = values(lambda x: lax.psum(lax.gt(x, np.float32(10)), ("x", "y")), X)
    assert np.array_equal(out[0], (PARTS > 10).sum(0))


def test_groups_of_indices():
    groups = [[0, 3], [2, 1]]
    members = [PARTS[[0, 3]], PARTS[[2, 1]], PARTS[[2, 1]], PARTS[[0, 3]]]
    options = {"axis_index_groups": groups}
    both = ("x", "y")
    out = values(lambda x: lax.psum(x, both, **options), X)
    assert np.array_equal(out, [m.sum(0) for m in members])
    out = values(lambda x: lax.all_gather(x, both, tiled=True, **options), X)
    assert np.array_equal(out, [m.reshape(4, 4) for m in members])
    out = values(lambda x: lax.psum_scatter(x, both, tiled=True, **options), X)
    expected = [members[i].sum(0)[k : k + 1] for i, k in ((0, 0), (1, 1), (2, 0), (3, 1))]
    assert np.array_equal(out, expected)
    out = values(lambda x: lax.psum(x, both, axis_index_groups=[[0], [3, 1, 2]]), X)
    assert np.array_equal(out, [PARTS[0], *[PARTS[1:].sum(0)] * 3])
    assert values(lambda x: x * lax.psum(1, both, **options), X)[3, 0, 1] == 50


def test_permutations():
    both = ("x", "y")
    out = values(lambda x: lax.ppermute(x, both, [(0, 3), (3, 1)]), X)
    assert np.array_equal(out, [0 * PARTS[0], PARTS[3], 0 * PARTS[0], PARTS[0]])
    out = values(lambda x: lax.ppermute(x, "x", [(0, 1), (1, 0)]), X)
    assert np.array_equal(out, PARTS[[2, 3, 0, 1]])
    out = values(lambda x: lax.pshuffle(x, ("y", "x"), [3, 0, 1, 2]), X)
    order = {(y, x): 2 * y + x for y in range(2) for x in range(2)}
    source = [[3, 0, 1, 2][order[y, x]] for x in range(2) for y in range(2)]
    where = [(s % 2) * 2 + s // 2 for s in source]
    assert np.array_equal(out, PARTS[where])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gathers(axis):
    out = values(lambda x: lax.expand_dims(lax.all_gather(x, "y", axis=axis), (0,)), X)
    for position in range(4):
        x = position // 2
        assert np.array_equal(out[position][0], np.stack(GRID[x], axis))
    if axis < 2:
        out = values(lambda x: lax.all_gather(x, ("y", "x"), axis=axis, tiled=True), X)
        assert np.array_equal(out[1], np.concatenate(PARTS[[0, 2, 1, 3]], axis))
    out = values(lambda x: lax.expand_dims(lax.all_gather(x, ("x", "y"), axis=axis), (0,)), X)
    assert np.array_equal(out[2][0], np.stack(PARTS, axis))


def test_pbroadcast():
    out = values(lambda x: lax.pbroadcast(x, ("x", "y"), 2), X)
    assert np.array_equal(out, np.broadcast_to(PARTS[2], PARTS.shape))


def test_scattered_sums():
    out = values(lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True), X)
    total = GRID.sum(0)  # y, part
    for x in range(2):
        for y in range(2):
            assert np.array_equal(out[2 * x + y], total[y][:, 2 * x : 2 * x + 2])
    out = values(lambda x: lax.expand_dims(lax.psum_scatter(x, "x"), (0,)), X)
    assert np.array_equal(out[:, 0], [total[y][x] for x in range(2) for y in range(2)])
    both = ("y", "x")
    out = values(lambda x: lax.psum_scatter(x, both, scatter_dimension=1, tiled=True), X)
    assert np.array_equal(out[1], PARTS.sum(0)[:, 2:3])


@pytest.mark.parametrize("split, concat", [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)])
@pytest.mark.parametrize("tiled", [True, False])
def test_exchanges(split, concat, tiled):
    """The same exchange along an axis of ``vmap``."""
    x = np.arange(4 * 8 * 8 * 3, dtype=np.float32).reshape(4 * 8, 8, 3)
    if not tiled:
        x = x[:16, :4]
    both = ("x", "y")
    out = values(
        lambda v: lax.expand_dims(lax.all_to_all(v, both, split, concat, tiled=tiled), (0,)), x
    )
    parts = x.reshape(4, -1, *x.shape[1:])
    expected = pc.vmap(lambda v: lax.all_to_all(v, "i", split, concat, tiled=tiled), axis_name="i")(
        parts
    )
    assert np.array_equal(out[:, 0], expected)


def position(x, names):
    """The position along some axes, in place of the elements of ``x``."""
    return lax.add(lax.mul(x, np.float32(0)), _float(lax.axis_index(names)))


def test_positions():
    out = values(lambda x: position(x, ("x", "y")), X)
    assert out[:, 0, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["x", "y"])
def test_positions_in_partly_manual_regions(name):
    out = values(lambda x: position(x, name), X, names=(name,))
    assert out.reshape(4, -1)[:, 0].tolist() == [0, 0, 1, 1]


def _float(x):
    return lax.convert_element_type(x, np.float32)


def test_partly_manual_regions():
    out = values(lambda x: lax.psum(x, "x"), X, names=("x",))
    halves = X.reshape(2, 4, 4)
    assert np.array_equal(out.reshape(2, 4, 4), np.broadcast_to(halves.sum(0), halves.shape))


def test_loops_branches_and_calls_in_regions():
    def f(x):
        def step(c, _):
            c = pc.jit(lambda v: lax.psum(v, "y"))(c)
            return lax.cond(lax.gt(lax.axis_index("x"), 0), lax.neg, lambda v: v, c), None

        return lax.scan(step, x, None, length=3)[0]

    signs = np.array([1, -1], np.float32).reshape(2, 1, 1, 1)
    expected = GRID.sum(1, keepdims=True) * 4 * signs * np.ones((2, 2, 1, 1), np.float32)
    assert np.array_equal(values(f, X), expected.reshape(PARTS.shape))


@pytest.mark.parametrize("groups", [None, [[0, 2], [3, 1]]])
def test_ragged_exchanges(groups):
    n = 2 if groups else 4
    rng = np.random.default_rng(0)
    x = np.arange(1, 4 * 12 + 1, dtype=np.float32)
    sizes = rng.integers(0, 4, (4, n)).astype(np.int32)
    starts = np.tile(np.arange(n, dtype=np.int32) * 3, (4, 1))
    members = groups or [[0, 1, 2, 3]]
    place = {i: (g, k) for g, m in enumerate(members) for k, i in enumerate(m)}
    put = np.zeros((4, n), np.int32)
    recv = np.zeros((4, n), np.int32)
    out = np.zeros(4 * 14, np.float32) - 1
    expected = out.reshape(4, 14).copy()
    for i in range(4):
        g, k = place[i]
        for j, other in enumerate(members[g]):
            put[i, j] = k * 3
            recv[other, k] = sizes[i, j]
            part = x.reshape(4, 12)[i, starts[i, j] : starts[i, j] + sizes[i, j]]
            expected[other, k * 3 : k * 3 + len(part)] = part

    def f(*args):
        return lax.ragged_all_to_all(*args, axis_name=("x", "y"), axis_index_groups=groups)

    result = values(f, x, out, *(a.reshape(-1) for a in (starts, sizes, put, recv)))
    assert np.array_equal(result.reshape(4, 14), expected)


def test_gradients():
    def f(x):
        y = lax.psum_scatter(lax.sin(x), "y", scatter_dimension=1, tiled=True)
        return lax.all_gather(lax.ppermute(y, "x", [(0, 1), (1, 0)]), "y", axis=1, tiled=True)

    def both(x):
        _, linear = pc.linearize(f, x)
        _, back = pc.vjp(f, x)
        return lax.concatenate([linear(x), back(x)[0]], 0)

    # sum_ij ct_i df_i/dx_j t_j is the same by both modes
    forward, backward = np.split(values(both, X), 2, axis=1)
    assert np.allclose((forward * PARTS).sum(), (backward * PARTS).sum(), rtol=1e-4)


def test_nested_regions():
    def inner(x):
        total = lax.psum(x, ("x", "y"))
        return lax.add(total, position(x, ("x", "y")))

    def outer(x):
        whole = over_mesh(inner, ShapedArray(x.shape, x.dtype), names=("y",), around=("x",))
        return whole(lax.mul(x, np.float32(2)))

    out = values(outer, X, names=("x",)).reshape(PARTS.shape)
    expected = 2 * PARTS.sum(0) + np.arange(4, dtype=np.float32).reshape(4, 1, 1)
    assert np.array_equal(out, expected)
