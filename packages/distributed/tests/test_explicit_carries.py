"""First carries and results of branches that are not divided, beside arrays of explicit axes."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
import primax_numpy as jnp
from primax_core import jit, lax
from primax_distributed import P

XS = np.arange(24, dtype=np.float32).reshape(3, 8)


@pytest.fixture(scope="module")
def mesh():
    return pd.make_mesh((4, 2), ("x", "y"))


@pytest.fixture
def xs(mesh):
    with pd.set_mesh(mesh):
        yield pc.device_put(XS, pd.NamedSharding(mesh, P(None, "x")))


def zeros():
    return np.zeros(8, np.float32)


LOOPS = {
    "scan": lambda xs: lax.scan(lambda c, x: (c + x, None), zeros(), xs)[0],
    "tree": lambda xs: lax.scan(
        lambda c, x: ({"a": c["a"] + x, "n": c["n"] + 1}, None), {"a": zeros(), "n": 0}, xs
    )[0]["a"],
    "swapped": lambda xs: sum(
        lax.scan(lambda c, x: ((c[1], c[0] + x), None), (zeros(), zeros()), xs)[0]
    ),
    "while_loop": lambda xs: lax.while_loop(
        lambda c: c[1] < 3, lambda c: (c[0] + xs[0] + 8.0, c[1] + 1), (zeros(), 0)
    )[0],
    "fori_loop": lambda xs: lax.fori_loop(0, 3, lambda i, c: c + xs[0] + 8.0, zeros()),
    "cond": lambda xs: lax.cond(jnp.sum(xs) > 3, lambda: xs.sum(0), zeros),
    "switch": lambda xs: lax.switch(2, [zeros, zeros, lambda: xs.sum(0)]),
}


@pytest.mark.parametrize("apply", [lambda f: f, jit])
@pytest.mark.parametrize("name", LOOPS)
def test_numpy_arrays_are_divided(xs, name, apply):
    out = apply(LOOPS[name])(xs)
    assert str(pc.typeof(out)) == "float32[8@x]"
    assert np.allclose(out, XS.sum(0))


def test_gradients(xs):
    slope = jit(pc.grad(lambda xs: (LOOPS["scan"](xs) ** 2).sum()))(xs)
    assert str(pc.typeof(slope)) == "float32[3,8@x]"
    assert np.allclose(slope, np.tile(2 * XS.sum(0), (3, 1)))


def replicated():
    mesh = pd.get_mesh()
    return pc.device_put(zeros(), pd.NamedSharding(mesh, P()))


@pytest.mark.parametrize("first", [zeros, lambda: jnp.zeros(8), replicated])
@pytest.mark.parametrize("apply", [lambda f: f, jit])
def test_arguments_are_divided(xs, first, apply):
    """First carries and results that are arguments, whose types say nothing."""
    xs_plain = np.asarray(xs)
    for f in (
        lambda c, xs: lax.scan(lambda c, x: (c + x, None), c, xs)[0],
        lambda c, xs: lax.fori_loop(0, 3, lambda i, c: c + xs[0] + 8.0, c),
        lambda c, xs: lax.while_loop(lambda c: c.min() < 24, lambda c: c + xs[0] + 8.0, c),
        lambda c, xs: lax.cond(xs.sum() > 3, lambda: xs.sum(0), lambda: c),
    ):
        out = apply(f)(first(), xs)
        assert str(pc.typeof(out)) == "float32[8@x]"
        assert np.allclose(out, xs_plain.sum(0))


def test_gradients_of_whole_carries(xs):
    def total(c, xs):
        return (lax.scan(lambda c, x: (c + x, None), c, xs)[0] ** 2).sum()

    slopes = jit(pc.grad(total, (0, 1)))(zeros(), xs)
    assert [str(pc.typeof(s)) for s in slopes] == ["float32[8]", "float32[3,8@x]"]
    assert np.allclose(slopes[0], 2 * XS.sum(0))


def test_divided_carries_are_not_gathered(mesh, xs):
    whole, other = jnp.zeros(8), pc.device_put(zeros(), pd.NamedSharding(mesh, P("y")))
    for f in (
        lambda: lax.scan(lambda c, x: (whole, c.sum()), xs[0], xs),
        lambda: lax.scan(lambda c, x: (x + whole, None), other, xs),
        lambda: lax.cond(True, lambda: xs[0], lambda: other),
    ):
        with pytest.raises(TypeError, match=r"use reshard\(x, spec\) to divide one as the other"):
            f()


def test_manual_axes_need_a_cast(mesh):
    f = pd.shard_map(
        lambda x: lax.scan(lambda c, x: (c + x, None), np.zeros(2, np.float32), x)[0],
        mesh=mesh, in_specs=P(None, "x"), out_specs=P("x"),
    )  # fmt: skip
    with pytest.raises(TypeError, match=r"apply lax.pcast\(\.\.\., \('x',\), to='varying'\)"):
        f(XS)
