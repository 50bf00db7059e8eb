"""References as arguments of functions under `shard_map`, and among the values they close over."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
import primax_numpy as jnp
from primax_core import lax
from primax_distributed import AxisType, P, shard_map

X = np.arange(8, dtype=np.float32)


@pytest.fixture(scope="module")
def mesh():
    return pd.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def added(mesh, x, check_vma=True):
    ref = pc.new_ref(jnp.ones(8))

    def f(ref, x):
        ref[...] += x * 2

    shard_map(f, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=None, check_vma=check_vma)(ref, x)
    return ref[...]


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("apply", [lambda f: f, pc.jit])
def test_arguments(mesh, apply, check_vma):
    f = lambda x: added(mesh, x, check_vma)
    assert np.allclose(apply(f)(X), 1 + 2 * X)
    assert np.allclose(apply(pc.grad(lambda x: (f(x) ** 2).sum()))(X), 4 * (1 + 2 * X))
    assert np.allclose(apply(pc.vmap(f))(np.stack([X, 3 * X]))[1], 1 + 6 * X)
    with pc.disable_jit():
        assert np.allclose(f(X), 1 + 2 * X)


def test_values_that_a_function_closes_over(mesh):
    @pc.jit
    def f(x):
        total, scale = pc.new_ref(jnp.zeros(2)), pc.new_ref(jnp.full(2, 3.0))

        def step(x):
            total[...] += lax.psum(x, "x")
            return x * scale[...]

        out = shard_map(step, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
        return out, total[...]

    out, total = f(X)
    assert np.allclose(out, 3 * X) and total.tolist() == [12.0, 16.0]


def test_loops(mesh):
    @pc.jit
    def f(x):
        ref = pc.new_ref(x)

        run = lambda ref: lax.fori_loop(0, 3, lambda i, _: ref.__setitem__(..., ref[...] * 2), None)
        shard_map(run, mesh=mesh, in_specs=P("x"), out_specs=None)(ref)
        return ref[...]

    assert np.allclose(f(X), 8 * X)


def test_the_same_reference_twice(mesh):
    @pc.jit
    def f(x):
        ref = pc.new_ref(x)
        add = lambda a, b: a.__setitem__(..., b[...])
        shard_map(add, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=None)(ref, ref)

    with pytest.raises(ValueError, match="got the same reference several times"):
        f(X)


def test_none_among_arguments_and_results(mesh):
    f = shard_map(
        lambda a, x: (None, 2 * x), mesh=mesh, in_specs=(None, P("x")), out_specs=(None, P("x"))
    )
    assert np.allclose(f(None, X)[1], 2 * X)
    assert np.allclose(pc.jvp(lambda x: f(None, x)[1], (X,), (X,))[1], 2 * X)
    assert np.allclose(pc.grad(lambda x: f(None, x)[1].sum())(X), 2)
