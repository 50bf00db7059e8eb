"""``odeint``: values, derivatives by the adjoint, trees, errors."""

from __future__ import annotations

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import enable_x64, grad, jit, vmap
from primax_core.testing import check_grads
from primax_scipy.experimental.ode import odeint


def pendulum(y, t, damping, force):
    return pnp.stack([y[1], -damping * y[1] - force["g"] * pnp.sin(y[0])])


def test_values_against_scipy() -> None:
    from scipy.integrate import solve_ivp

    times = np.linspace(0, 6, 9)
    expected = solve_ivp(
        lambda t, y: [y[1], -0.3 * y[1] - 9.8 * np.sin(y[0])], (0, 6), [2.0, 0.5], "DOP853",
        times, rtol=1e-11, atol=1e-11,
    ).y.T  # fmt: skip
    with enable_x64(True):
        y0 = np.array([2.0, 0.5])
        actual = jit(lambda y: odeint(pendulum, y, times, 0.3, {"g": 9.8}))(y0)
        np.testing.assert_allclose(actual, expected, 0, 1e-6)
        assert actual.dtype == np.float64
        back = odeint(pendulum, actual[-1], times[::-1], 0.3, {"g": 9.8})
        np.testing.assert_allclose(back[-1], y0, 0, 2e-5)
    single = odeint(pendulum, np.float32([2, 0.5]), times.astype(np.float32), 0.3, {"g": 9.8},
                    rtol=1e-5, atol=1e-5)  # fmt: skip
    np.testing.assert_allclose(single, expected, 0, 2e-3)
    assert single.dtype == np.float32


def test_adjoint() -> None:
    with enable_x64(True):
        y0, times = np.array([1.0, 0.5]), np.array([0.0, 0.4, 1.0, 1.3])
        run = lambda y, t, c, g: odeint(pendulum, y, t, c, {"g": g})
        check_grads(run, (y0, times, np.float64(0.3), np.float64(4.0)), 1, modes=("rev",),
                    rtol=1e-4, atol=1e-4)  # fmt: skip
        # arrays in the closure, and integers that are not differentiated
        scaled = lambda a: odeint(lambda y, t, k: -a * y * k, np.float64(1), times, 2)[-1]
        np.testing.assert_allclose(grad(scaled)(0.7), -2.6 * np.exp(-1.4 * 1.3), 1e-5)


def test_trees_batches_and_complex_states() -> None:
    with enable_x64(True):
        times = np.array([0.0, 0.5, 1.0])
        tree = {"a": np.ones(2), "b": np.float64(2)}
        out = odeint(lambda y, t: {"a": -y["a"] * y["b"], "b": y["b"] * 0}, tree, times)
        np.testing.assert_allclose(out["a"][:, 0], np.exp(-2 * times), 1e-6)
        assert out["a"].shape == (3, 2) and out["b"].shape == (3,)
        run = lambda y, a: odeint(lambda y, t: -a * y, y, times)
        many = vmap(run)(np.ones(3), np.arange(3.0))
        for k in range(3):
            np.testing.assert_allclose(many[k], run(np.float64(1), float(k)), 1e-7)
        turned = odeint(lambda z, t: 1j * z, np.complex128(1), times)
        np.testing.assert_allclose(turned, np.exp(1j * times), 1e-6)
        assert turned.dtype == np.complex128


def test_limits() -> None:
    times = np.float32([0, 1, 2])
    short = odeint(lambda y, t: -y, np.float32(1), times, mxstep=1, hmax=0.1)
    assert np.isnan(np.asarray(short)[1:]).all()
    blow_up = odeint(lambda y, t: y * y, np.float32(1), times, rtol=1e-4, atol=1e-4)
    assert np.isnan(float(blow_up[2])) and float(blow_up[0]) == 1
    assert odeint(lambda y, t: -y, np.float32(1), times[:1]).tolist() == [1]


def test_errors() -> None:
    t = np.float32([0, 1])
    with pytest.raises(TypeError, match="func must be a function, got int"):
        odeint(3, np.float32(1), t)
    with pytest.raises(ValueError, match=r"t must be a vector of one or more times, got \(\)"):
        odeint(lambda y, t: y, np.float32(1), np.float32(1))
    with pytest.raises(TypeError, match="tree like y0"):
        odeint(lambda y, t: (y,), np.float32(1), t)
    with pytest.raises(TypeError, match=r"shapes of y0, \[\(2,\)\]; it returned \[\(\)\]"):
        odeint(lambda y, t: y.sum(), np.ones(2, np.float32), t)
    with pytest.raises(TypeError, match="y0 must be a tree of arrays, got a str"):
        odeint(lambda y, t: y, "a", t)
