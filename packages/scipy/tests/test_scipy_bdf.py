"""The method BDF of initial value problems, against SciPy and exact solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate as theirs

import primax_numpy as pnp
from primax_core import enable_x64, grad, jacfwd, jit, vmap
from primax_scipy import integrate


def robertson(t: Any, y: Any) -> Any:
    """Three reactions, Hairer and Wanner (1996), section IV.10."""
    slow, fast, fastest = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    rows = [-slow + fast, slow - fast - fastest, fastest]
    return np.array(rows) if isinstance(y, np.ndarray) else pnp.stack(rows)


def relaxed(t: Any, y: Any, k: Any) -> Any:
    return pnp.stack([-k * y[0] * y[1], pnp.cos(t) - y[1]])


def test_stiff_reactions() -> None:
    start, times = np.array([1.0, 0, 0]), np.array([0.4, 40.0, 1e5])
    options: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-10}
    with enable_x64(True):
        out = jit(lambda y: integrate.solve_ivp(robertson, (0, 1e5), y, "BDF", times, **options))(
            start
        )
    expected = theirs.solve_ivp(
        robertson, (0, 1e5), start, "Radau", times, rtol=1e-9, atol=1e-13
    ).y  # fmt: skip
    assert bool(out.success)
    np.testing.assert_allclose(out.y, expected, 1e-4, 1e-9)
    same = theirs.solve_ivp(robertson, (0, 1e5), start, "BDF", **options)
    assert abs(int(out.steps) - (len(same.t) - 1)) < 0.15 * len(same.t)
    assert int(out.njev) == int(out.nlu) < 1.3 * len(same.t)


def test_dense_output_events_and_direction() -> None:
    half = lambda t, y: y[0] - 0.5
    half.terminal = True
    with enable_x64(True):
        out = integrate.solve_ivp(
            lambda t, y: -50 * (y - pnp.cos(t)), (0, 2), np.zeros(1), "BDF", dense_output=True,
            rtol=1e-7, atol=1e-9,
        )  # fmt: skip
        times = np.linspace(0, 2, 9)
        # The exact solution of the linear equation
        lead = (2500 * np.cos(times) + 50 * np.sin(times)) / 2501
        np.testing.assert_allclose(out.sol(times)[0], lead - 2500 / 2501 * np.exp(-50 * times),
                                   0, 2e-6)  # fmt: skip
        decay = lambda y: integrate.solve_ivp(
            lambda t, y: -y, (0, 9), y, "BDF", events=half, rtol=1e-8, atol=1e-10
        )
        stopped = decay(np.ones(1))
        assert int(stopped.status) == 1
        np.testing.assert_allclose(stopped.t_events[0][0], np.log(2), 1e-6)
        many = vmap(lambda y: decay(y[None]).t_events[0][0])(np.array([1.0, 2.0]))
        np.testing.assert_allclose(many, [np.log(2), np.log(4)], 1e-6)
        back = integrate.solve_ivp(lambda t, y: y, (1, 0), np.ones(1), "BDF", np.array([0.0]),
                                   rtol=1e-7, atol=1e-9)  # fmt: skip
        np.testing.assert_allclose(back.y[0, 0], np.exp(-1), 1e-5)


@pytest.mark.parametrize("gradient", ["adjoint", "steps"])
def test_derivatives(gradient: str) -> None:
    def final(vector: Any) -> Any:
        y0, times, rate = vector[:2], vector[2:4], vector[4]
        out = integrate.solve_ivp(
            relaxed, (0.0, 1.1), y0, "BDF", times, args=(rate,), rtol=1e-7, atol=1e-7,
            gradient=gradient, max_steps=120,
        )  # fmt: skip
        return pnp.sum(out.y * np.array([[1.0, -2], [0.5, 1]]))

    def accurate(vector: Any) -> Any:
        out = integrate.solve_ivp(
            relaxed, (0.0, 1.1), vector[:2], "DOP853", vector[2:4], args=(vector[4],),
            rtol=1e-10, atol=1e-10,
        )  # fmt: skip
        return pnp.sum(out.y * np.array([[1.0, -2], [0.5, 1]]))

    with enable_x64(True):
        point = np.array([1.0, 0.5, 0.3, 1.0, 1.3])
        actual = jit(grad(final))(point)
        value, h = jit(accurate), 1e-4
        expected = [(value(point + h * e) - value(point - h * e)) / (2 * h) for e in np.eye(5)]
        np.testing.assert_allclose(actual, expected, 1e-4, 1e-5)
        if gradient == "steps":
            np.testing.assert_allclose(jit(jacfwd(final))(point), actual, 1e-8)


def test_failures_and_errors() -> None:
    y0 = np.ones(1, np.float32)
    blow_up = integrate.solve_ivp(lambda t, y: y * y, (0, 2), y0, "BDF", np.float32([0.5, 2]))
    assert not bool(blow_up.success) and int(blow_up.status) == -1
    assert np.isnan(float(blow_up.y[0, 1])) and abs(float(blow_up.y[0, 0]) - 2) < 0.02
    with pytest.raises(TypeError, match="BDF takes real states: stack the real and the imaginary"):
        integrate.solve_ivp(lambda t, y: y, (0, 1), np.ones(1, np.complex64), "BDF")
