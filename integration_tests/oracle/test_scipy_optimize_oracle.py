"""``odeint`` and ``minimize`` compared with the reference."""

from __future__ import annotations

import jax
import jax.experimental.ode
import jax.numpy as jnp
import jax.scipy.optimize
import numpy as np
import pytest

import primax
import primax.numpy as pnp
from primax.scipy import optimize
from primax_scipy.experimental import ode


def convex(x):
    # Rosenbrock's function is too hard for the reference's L-BFGS in float32.
    return ((x - 1) ** 4 + np.float32([1, 2, 3]) * (x - x[::-1] / 2) ** 2 + x).sum()


@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
def test_minimize(method) -> None:
    start = np.float32([-1.2, 1.0, 0.3])
    ours = optimize.minimize(convex, start, method=method, tol=1e-3)
    theirs = jax.scipy.optimize.minimize(convex, jnp.asarray(start), method=method, tol=1e-3)
    np.testing.assert_allclose(ours.x, theirs.x, 0, 5e-3)
    assert ours._fields == theirs._fields
    assert bool(ours.success) and ours.x.dtype == theirs.x.dtype
    assert (ours.hess_inv is None) == (theirs.hess_inv is None)
    assert int(ours.nit) <= 1.5 * int(theirs.nit) + 10


def swing(np_like):
    return lambda y, t, a: np_like.stack([y[1], -a * np_like.sin(y[0]) + 0.1 * t])


def test_odeint() -> None:
    y0, times, a = np.float32([1, 0]), np.float32([0, 0.5, 1.5, 2]), np.float32(2.5)
    options = {"rtol": 1e-5, "atol": 1e-6}
    ours = ode.odeint(swing(pnp), y0, times, a, **options)
    theirs = jax.experimental.ode.odeint(swing(jnp), y0, times, a, **options)
    np.testing.assert_allclose(ours, theirs, 0, 1e-4)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype


def test_gradients_of_odeint() -> None:
    y0, times, a = np.float32([1, 0]), np.float32([0, 0.5, 1.5, 2]), np.float32(2.5)

    def loss(module, odeint):
        return lambda y, t, a: (odeint(swing(module), y, t, a, rtol=1e-5, atol=1e-6) ** 2).sum()

    ours = primax.grad(loss(pnp, ode.odeint), (0, 1, 2))(y0, times, a)
    theirs = jax.grad(loss(jnp, jax.experimental.ode.odeint), (0, 1, 2))(y0, times, a)
    for x, y in zip(ours, theirs):
        np.testing.assert_allclose(x, y, 1e-3, 2e-3)
        assert x.dtype == y.dtype
