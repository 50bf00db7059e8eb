"""Values that are unreduced or reduced along explicit axes, inside and outside of regions."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
import primax_numpy as jnp
from primax_core import lax
from primax_distributed import P, ShardingTypeError, reshard, shard_map

X = np.arange(32, dtype=np.float32).reshape(8, 4) / 8
W = np.cos(np.arange(12, dtype=np.float32)).reshape(4, 3)
SLOPE = 2 * X.T @ (X @ W)


@pytest.fixture
def mesh():
    mesh = pd.make_mesh((4, 2), ("x", "y"))
    with pd.set_mesh(mesh):
        yield mesh


def put(mesh, x, *entries, **more):
    return pc.device_put(x, pd.NamedSharding(mesh, P(*entries, **more)))


def whole(f):
    """The function with a result that is whole on each device."""
    return pc.jit(lambda *args: reshard(f(*args), P()))


@pytest.mark.parametrize("names", [{"x"}, {"x", "y"}])
def test_unreduced_results_of_regions(mesh, names):
    f = shard_map(
        lambda x: lax.pcast(x, "x", to="unreduced"), in_specs=P("x"),
        out_specs=P(unreduced={"x"}), axis_names=names,
    )  # fmt: skip
    x = put(mesh, X, "x")
    assert str(pc.typeof(pc.jit(f)(x))) == "float32[2,4]{U:x}"
    assert np.allclose(whole(f)(x), X.reshape(4, 2, 4).sum(0))
    slope = whole(pc.grad(lambda x: (reshard(f(x), P()) ** 2).sum()))(x)
    assert np.allclose(slope, np.tile(2 * X.reshape(4, 2, 4).sum(0), (4, 1)))


def in_a_region(x, w):
    f = shard_map(jnp.dot, in_specs=(P("x"), P(reduced={"x"})), out_specs=P("x"))
    return f(x, w)


def in_a_part(x, w):
    f = shard_map(jnp.dot, in_specs=(P("x"), P(reduced={"x"})), out_specs=P("x"), axis_names={"x"})
    return f(x, w)


@pytest.mark.parametrize("dot", [jnp.dot, in_a_region, in_a_part])
def test_cotangents_of_reduced_values_are_unreduced(mesh, dot):
    x, w = put(mesh, X, "x"), put(mesh, W, None, None, reduced={"x"})
    slope = pc.grad(lambda w: (dot(x, w) ** 2).sum())
    assert str(pc.typeof(pc.jit(slope)(w))) == "float32[4,3]{U:x}"
    assert np.allclose(whole(slope)(w), SLOPE, rtol=1e-5)


def test_reshard_to_reduced_and_unreduced(mesh):
    x, w = put(mesh, X, "x"), put(mesh, W)
    reduced = P(None, None, reduced={"x"})
    slope = pc.grad(lambda w: (jnp.dot(x, reshard(w, reduced)) ** 2).sum())
    assert str(pc.typeof(pc.jit(slope)(w))) == "float32[4,3]"
    assert np.allclose(pc.jit(slope)(w), SLOPE, rtol=1e-5)
    assert np.allclose(whole(lambda w: reshard(2 * w + 1, P(unreduced={"x"})))(w), 2 * W + 1)


def test_sums_of_unreduced_values(mesh):
    x, w = put(mesh, X, "x", "y"), put(mesh, W, "y")
    dot = lambda: jnp.einsum("ij,jk->ik", x, w, out_sharding=P("x", None, unreduced={"y"}))
    assert np.allclose(whole(lambda: dot() + dot())(), 2 * X @ W, rtol=1e-5)


def test_elementwise_operations_of_reduced_values(mesh):
    w, plain = put(mesh, W, None, None, reduced={"x"}), put(mesh, W)
    f = lambda w, v: (jnp.sin(w) * v + w * 2 + 1).sum()
    for i, expected in ((0, np.cos(W) * W + 2), (1, np.sin(W))):
        assert np.allclose(whole(pc.grad(f, i))(w, plain), expected, atol=1e-6)


def test_unreduced_values_in_a_region_of_other_axes(mesh):
    x, w = put(mesh, X, "x", "y"), put(mesh, W, "y")
    f = shard_map(
        lambda x, w: jnp.einsum("ij,jk->ik", x, w, out_sharding=P(None, None, unreduced={"y"})),
        in_specs=(P("x"), P()), out_specs=P("x"), axis_names={"x"},
    )  # fmt: skip
    with pytest.raises(ShardingTypeError, match=r"unreduced along the mesh axes \('y',\) in a"):
        f(x, w)


SUMS = P(unreduced={"x"})


def square_weights():
    return np.sin(np.arange(48, dtype=np.float32)).reshape(3, 4, 4)


def layers(ws, x):
    """Layers in a loop, each with its weights."""
    return lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, ws)[0]


FUNCTIONS = {
    "layers": lambda ws, x: layers(ws, x),
    "one of them": lambda ws, x: jnp.tanh(x @ ws[1]),
    "columns": lambda ws, x: x @ ws[0, :, 1:3],
    "mapped": lambda ws, x: pc.vmap(lambda row: jnp.tanh(row @ ws[0]) @ ws[1])(x),
    "checkpoint": lambda ws, x: pc.checkpoint(layers)(ws, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_reduced_weights_are_sums_of_parts(mesh, name):
    ws = square_weights()
    loss = lambda ws, x: (FUNCTIONS[name](ws, x) ** 2).sum()
    with pd.set_mesh(None):
        expected = np.asarray(pc.grad(loss)(ws, X))
    reduced = put(mesh, ws, reduced={"x"})
    gradient = pc.jit(pc.grad(loss))(reduced, put(mesh, X, "x"))
    assert pc.typeof(gradient).placement.unreduced == {"x"}
    np.testing.assert_allclose(whole(lambda g: g)(gradient), expected, rtol=1e-4, atol=1e-5)
    parts = [np.asarray(s.data) for s in gradient.addressable_shards[::2]]  # y has copies
    np.testing.assert_allclose(sum(parts), expected, rtol=1e-4, atol=1e-5)
    assert all(np.abs(p).max() > 0 for p in parts)  # no device has the sum


def test_accumulated_gradients_are_summed_once(mesh):
    ws, xs = square_weights(), np.stack([X, 2 * X, 3 * X])
    loss = lambda ws, x: (layers(ws, x) ** 2).sum()
    with pd.set_mesh(None):
        expected = sum(np.asarray(pc.grad(loss)(ws, x)) for x in xs)

    def step(ws, xs):
        start = reshard(jnp.zeros_like(ws), SUMS)
        return lax.scan(lambda sums, x: (sums + pc.grad(loss)(ws, x), None), start, xs)[0]

    step, args = whole(step), (put(mesh, ws, reduced={"x"}), put(mesh, xs, None, "x"))
    np.testing.assert_allclose(step(*args), expected, rtol=1e-4, atol=1e-5)
    assert step.lower(*args).compile().as_text().count(" all-reduce(") == 1


@pytest.mark.parametrize(("length", "unroll"), [(3, 1), (4, 2), (5, 2), (2, True)])
@pytest.mark.parametrize("reverse", [False, True])
def test_unreduced_results_of_loops(mesh, length, unroll, reverse):
    x = np.arange(1, 3 * length + 1, dtype=np.float32).reshape(length, 3)

    def f(x):
        part = lambda x: reshard(x, SUMS)
        return lax.scan(
            lambda c, x: (c + part(x), part(x)), part(x[0]), x, reverse=reverse, unroll=unroll
        )

    carry, rows = pc.jit(lambda x: [reshard(y, P()) for y in f(x)])(x)
    assert np.array_equal(carry, x.sum(0) + x[0]) and np.array_equal(rows, x)


def test_loops_over_unreduced_values(mesh):
    def f(x, unroll):
        return reshard(lax.scan(lambda c, x: (c, x), 0.0, reshard(x, SUMS), unroll=unroll)[1], P())

    assert np.array_equal(pc.jit(lambda x: f(x, True))(X), X)
    with pytest.raises(NotImplementedError, match=r"scan slices .*\{U:x\}.*unroll=True"):
        pc.jit(lambda x: f(x * 2, 1) + 1)(X)


def test_padding_of_unreduced_values(mesh):
    padded = whole(lambda x: lax.pad(reshard(x, SUMS), np.float32(3), ((1, 0, 0), (0, 0, 0))))
    assert np.array_equal(padded(X), np.pad(X, ((1, 0), (0, 0)), constant_values=3))
