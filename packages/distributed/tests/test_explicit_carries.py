"""First carries and results of branches that are NumPy arrays, beside arrays of explicit axes."""

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


def test_arrays_are_not_divided(xs):
    carry = jnp.zeros(8)
    for f in (
        lambda: lax.scan(lambda c, x: (c + x, None), carry, xs),
        lambda: lax.scan(lambda c, x: ((c[0] + x, c[1] + x), None), (carry, zeros()), xs),
        lambda: lax.cond(True, lambda: xs.sum(0), lambda: carry),
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
