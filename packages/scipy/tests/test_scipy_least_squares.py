"""Least squares: problems of Moré, Garbow and Hillstrom (1981), bounds, losses, fits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize as theirs

import primax_numpy as pnp
from primax_core import enable_x64, grad, jit, vmap
from primax_scipy import optimize

BARD_Y = np.array([14, 18, 22, 25, 29, 32, 35, 39, 37, 58, 73, 96, 134, 210, 439]) / 100
KOWALIK_Y = np.array([1957, 1947, 1735, 1600, 844, 627, 456, 342, 323, 235, 246]) / 1e4
KOWALIK_U = np.array([4, 2, 1, .5, .25, .167, .125, .1, .0833, .0714, .0625])  # fmt: skip


def bard(x):
    u = np.arange(1.0, 16)
    v = 16 - u
    return BARD_Y - (x[0] + u / (v * x[1] + np.minimum(u, v) * x[2]))


def kowalik_osborne(x):
    u = KOWALIK_U
    return KOWALIK_Y - x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3])


def rosenbrock(x):
    return pnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def freudenstein_roth(x):
    a = -13 + x[0] + ((5 - x[1]) * x[1] - 2) * x[1]
    return pnp.stack([a, -29 + x[0] + ((x[1] + 1) * x[1] - 14) * x[1]])


def brown(x):
    """Brown's badly scaled function."""
    return pnp.stack([x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2])


PROBLEMS = {
    "bard": (bard, [1.0, 1, 1], 8.21487e-3),
    "kowalik osborne": (kowalik_osborne, [0.25, 0.39, 0.415, 0.39], 3.07505e-4),
    "rosenbrock": (rosenbrock, [-1.2, 1], 0),
    "freudenstein roth": (freudenstein_roth, [0.5, -2], 48.9842),
    "brown": (brown, [1.0, 1], 0),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_standard_problems(problem) -> None:
    fun, start, minimum = PROBLEMS[problem]
    with enable_x64(True):
        fit = jit(lambda x: optimize.least_squares(fun, x, method="lm"))(np.array(start))
        assert bool(fit.success) and int(fit.status) in (1, 2, 3)
        np.testing.assert_allclose(2 * fit.cost, minimum, 1e-5, 1e-12)
        assert int(fit.nfev) < 100 and "termination condition" in fit.message


def test_bounds_and_losses() -> None:
    rng = np.random.default_rng(0)
    t = np.linspace(0, 5, 40)
    y = 2.5 * np.exp(-0.7 * t) + 0.3 + 0.02 * rng.normal(size=40)
    y[::9] += 1.5
    model = lambda x, like=pnp: x[0] * like.exp(-x[1] * t) + x[2] - y
    with enable_x64(True):
        for loss in ("linear", "huber", "cauchy"):
            for box in (None, ([0.0, 0, 0.35], [10.0, 0.6, 5])):
                options = {"loss": loss, "f_scale": 0.1}
                fit = optimize.least_squares(
                    model, np.array([1.0, 0.5, 0.5]),
                    None if box is None else tuple(map(np.array, box)), ftol=1e-13, xtol=1e-13,
                    max_nfev=500, **options,
                )  # fmt: skip
                bounds = (-np.inf, np.inf) if box is None else box
                expected = theirs.least_squares(
                    lambda x: model(x, np), [1.0, 0.5, 0.5], bounds=bounds, ftol=1e-13, xtol=1e-13,
                    gtol=1e-13, **options,
                )  # fmt: skip
                assert bool(fit.success), (loss, fit)
                np.testing.assert_allclose(fit.cost, expected.cost, 1e-6)
                np.testing.assert_allclose(fit.x, expected.x, 1e-4)
                if box is not None:
                    assert fit.active_mask.tolist() == [0, 1, -1]


def test_derivatives_batches_and_fits() -> None:
    t = np.linspace(0, 2, 9)
    curve = lambda t, a, b: a * pnp.exp(-b * t)
    with enable_x64(True):
        data = np.asarray(curve(t, 2.0, 1.3)) + 0.05 * np.cos(9 * t)
        sigma = np.linspace(0.5, 2, 9)
        for extra in ({}, {"sigma": sigma}, {"sigma": sigma, "absolute_sigma": True},
                      {"sigma": np.diag(sigma**2) + 0.1}):  # fmt: skip
            ours = optimize.curve_fit(curve, t, data, **extra)
            expected = theirs.curve_fit(lambda t, a, b: a * np.exp(-b * t), t, data, **extra)
            np.testing.assert_allclose(ours[0], expected[0], 1e-5)
            np.testing.assert_allclose(ours[1], expected[1], 1e-3)
        solution = lambda y: optimize.curve_fit(curve, t, y, np.ones(2))[0][1]
        step = np.zeros(9)
        step[4] = 1e-4
        expected = (solution(data + step) - solution(data - step)) / 2e-4
        np.testing.assert_allclose(grad(solution)(data)[4], expected, 1e-4)
        many = vmap(solution)(np.stack([data, data * 2]))
        np.testing.assert_allclose(many[1], many[0], 1e-6)


def test_failures_and_errors() -> None:
    x = np.ones(2, np.float32)
    few = optimize.least_squares(rosenbrock, np.float32([-1.2, 1]), max_nfev=3)
    assert not bool(few.success) and int(few.status) == 0 and "exceeded" in few.message
    bad = optimize.least_squares(lambda x: x * np.nan, x)
    assert not bool(bad.success) and int(bad.status) == -1
    with pytest.raises(ValueError, match="unknown method 'x': use 'trf' or 'lm'"):
        optimize.least_squares(rosenbrock, x, method="x")
    with pytest.raises(ValueError, match="unknown loss 'x'"):
        optimize.least_squares(rosenbrock, x, loss="x")
    with pytest.raises(ValueError, match="'lm' takes no bounds"):
        optimize.least_squares(rosenbrock, x, (0, 1), method="lm")
    with pytest.raises(ValueError, match="number of parameters is unknown: pass p0"):
        optimize.curve_fit(lambda *a: a[0], x, x)
    with pytest.raises(ValueError, match=r"sigma of shape \(3,\) must have the shape \[2\]"):
        optimize.curve_fit(lambda t, a: a * t, x, x, sigma=np.ones(3, np.float32))
