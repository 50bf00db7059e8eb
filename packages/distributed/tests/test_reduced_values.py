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
