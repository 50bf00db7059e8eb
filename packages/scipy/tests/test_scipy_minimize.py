"""Minimizers: problems of Moré, Garbow and Hillstrom (1981), bounds, derivatives, errors."""

from __future__ import annotations

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import enable_x64, grad, jacfwd, jit, vmap
from primax_scipy import optimize

SMOOTH = ["BFGS", "L-BFGS-B", "Newton-CG", "trust-ncg", "l-bfgs-experimental-do-not-rely-on-this"]


def rosenbrock(x):
    return pnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def powell_singular(x):
    a, b, c, d = x
    return (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4


def beale(x):
    y = np.array([1.5, 2.25, 2.625])
    return pnp.sum((y - x[0] * (1 - x[1] ** np.array([1.0, 2.0, 3.0]))) ** 2)


def wood(x):
    a, b, c, d = x
    return (
        100 * (b - a**2) ** 2 + (1 - a) ** 2 + 90 * (d - c**2) ** 2 + (1 - c) ** 2
        + 10 * (b + d - 2) ** 2 + 0.1 * (b - d) ** 2
    )  # fmt: skip


def helical_valley(x):
    a, b, c = x
    angle = pnp.arctan2(b, a) / (2 * np.pi)
    return 100 * ((c - 10 * angle) ** 2 + (pnp.sqrt(a * a + b * b) - 1) ** 2) + c * c


PROBLEMS = {
    "rosenbrock": (rosenbrock, [-1.2, 1.0]),
    "powell singular": (powell_singular, [3.0, -1.0, 0.0, 1.0]),
    "beale": (beale, [1.0, 1.0]),
    "wood": (wood, [-3.0, -1.0, -3.0, -1.0]),
    "helical valley": (helical_valley, [-1.0, 0.0, 0.0]),
}


@pytest.mark.parametrize("method", SMOOTH)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_standard_problems(method, problem) -> None:
    fun, start = PROBLEMS[problem]
    with enable_x64(True):
        out = optimize.minimize(fun, np.array(start), method=method, tol=1e-6)
        assert bool(out.success) and int(out.status) == 0 and float(out.fun) < 1e-7
        assert out.message == "Optimization terminated successfully."
        # Newton-CG follows Wood's function past a saddle point in many short steps.
        most = 600 if (method, problem) == ("Newton-CG", "wood") else 150
        assert int(out.nit) < most and int(out.nfev) < 1.7 * most
        np.testing.assert_allclose(out.jac, grad(fun)(out.x), 1e-6, 1e-8)


@pytest.mark.parametrize("method", [*SMOOTH, "Nelder-Mead"])
def test_float32_compiled_and_mapped(method) -> None:
    solve = lambda x: optimize.minimize(rosenbrock, x, method=method, tol=1e-3)
    starts = np.float32([[-1.2, 1], [0.4, 0.5]])
    many = jit(vmap(solve))(starts)
    assert many.x.dtype == np.float32 and many.success.all()
    np.testing.assert_allclose(many.x, 1, 0.02)
    np.testing.assert_allclose(solve(starts[1]).x, many.x[1], 5e-3)


def test_nelder_mead_against_scipy() -> None:
    from scipy.optimize import minimize as theirs

    with enable_x64(True):
        start = np.array([1.3, 0.7, 0.8])
        for adaptive in (False, True):
            options = {"xatol": 1e-8, "fatol": 1e-8, "adaptive": adaptive}
            ours = optimize.minimize(rosenbrock, start, method="Nelder-Mead", options=options)
            expected = theirs(lambda x: float(rosenbrock(x)), start, method="Nelder-Mead",
                              options=options)  # fmt: skip
            # SciPy counts iterations from one.
            assert (int(ours.nit) + 1, int(ours.nfev)) == (expected.nit, expected.nfev)
            np.testing.assert_allclose(ours.x, expected.x, 1e-9)


@pytest.mark.parametrize("method", ["L-BFGS-B", "Nelder-Mead"])
def test_bounds(method) -> None:
    from scipy.optimize import minimize as theirs

    fun = lambda x: (x[0] - 1) ** 2 + (x[1] - 2.5) ** 2 + x[0] * x[1] + x[2] ** 4
    limits = [(0.2, None), (None, 1.5), (-1.0, 1.0)]
    start = np.array([0.6, 0.3, 0.5])
    expected = theirs(fun, start, method="L-BFGS-B", bounds=limits).x
    with enable_x64(True):
        tol = 1e-9 if method == "Nelder-Mead" else 1e-6
        out = optimize.minimize(fun, start, method=method, bounds=limits, tol=tol)
        assert bool(out.success)
        np.testing.assert_allclose(out.x, expected, 0, 2e-2)  # the minimum is flat in x[2]
        np.testing.assert_allclose(out.x[:2], expected[:2], 0, 1e-5)
        low = np.array([0.2, -np.inf, -1])
        high = np.array([np.inf, 1.5, 1])
        for form in ((low, high), np.stack([low, high], 1)):
            again = optimize.minimize(fun, start, method=method, bounds=form, tol=tol)
            np.testing.assert_allclose(again.x, out.x, 1e-12)


def test_many_active_bounds() -> None:
    """Rosenbrock's function in a box with the minimum on its faces."""
    from scipy.optimize import minimize as theirs

    with enable_x64(True):
        low, high = np.full(6, -2.0), np.array([0.8, 2, 0.5, 2, 2, 0.1])
        start = np.full(6, -0.5)
        out = optimize.minimize(rosenbrock, start, method="L-BFGS-B", bounds=(low, high))
        expected = theirs(lambda x: float(rosenbrock(x)), start, method="L-BFGS-B",
                          bounds=list(zip(low, high)), tol=1e-12)  # fmt: skip
        assert bool(out.success) and float(out.fun) <= expected.fun * (1 + 1e-6)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Nelder-Mead"])
def test_derivatives_of_the_minimum(method) -> None:
    def solution(a, b):
        fun = lambda x, a: (x[0] - a) ** 4 + (x[0] - a) ** 2 + (x[1] - x[0] * b) ** 2
        tol = 1e-7
        return optimize.minimize(fun, np.zeros(2), (a,), method=method, tol=tol)

    with enable_x64(True):
        jacobian = jit(jacfwd(lambda a: solution(a, 3.0).x))(1.5)
        np.testing.assert_allclose(jacobian, [1, 3], 1e-4)
        np.testing.assert_allclose(grad(lambda b: solution(1.5, b).x[1])(3.0), 1.5, 1e-4)
        np.testing.assert_allclose(grad(lambda b: solution(1.5, b).fun)(3.0), 0, 0, 1e-6)
        second = grad(grad(lambda a: solution(a, 3.0).x[0] ** 2))(1.5)
        np.testing.assert_allclose(second, 2, 1e-3)


def test_derivative_at_an_active_bound() -> None:
    def solution(high):
        fun = lambda x: (x[0] - 2) ** 2 + (x[1] - x[0]) ** 2
        bounds = (np.full(2, -5.0), pnp.stack([high, 9.0]))
        return optimize.minimize(fun, np.zeros(2), method="L-BFGS-B", bounds=bounds).x

    with enable_x64(True):
        np.testing.assert_allclose(jacfwd(solution)(1.25), [1, 1], 1e-6)


@pytest.mark.parametrize("method", [*SMOOTH, "Nelder-Mead"])
def test_failures(method) -> None:
    short = optimize.minimize(
        rosenbrock, np.zeros(3, np.float32), method=method, options={"maxiter": 2}
    )
    assert not bool(short.success) and int(short.status) == 1 and int(short.nit) == 2
    assert short.message == "Maximum number of iterations has been exceeded."
    wrong = optimize.minimize(lambda x: (x * np.nan).sum(), np.ones(2, np.float32), method=method)
    assert not bool(wrong.success) and int(wrong.status) in (3, 4)


def test_errors() -> None:
    x = np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="not recognized: use one of 'BFGS', 'L-BFGS-B'"):
        optimize.minimize(rosenbrock, x, method="x")
    with pytest.raises(TypeError, match="no option 'q' for the method 'trust-ncg': it has maxi"):
        optimize.minimize(rosenbrock, x, method="trust-ncg", options={"q": 1})
    with pytest.raises(ValueError, match="'BFGS' takes no bounds: use 'L-BFGS-B'"):
        optimize.minimize(rosenbrock, x, method="BFGS", bounds=(0, 1))
    with pytest.raises(ValueError, match="the lower bound of variable 1 exceeds"):
        optimize.minimize(rosenbrock, x, method="L-BFGS-B", bounds=[(0, 1), (2, 1)])
    with pytest.raises(ValueError, match=r"a matrix \[2, 2\] or a sequence of 2 pairs"):
        optimize.minimize(rosenbrock, x, method="L-BFGS-B", bounds=[(0, 1)])
    with pytest.raises(ValueError, match=r"bounds of shape \(3,\) do not match 2 variables"):
        optimize.minimize(rosenbrock, x, method="L-BFGS-B", bounds=(np.zeros(3), np.ones(3)))
    result = jit(lambda x: optimize.minimize(rosenbrock, x, method="BFGS"))(x)
    assert result.message.startswith("Opt")
    with pytest.raises(ValueError, match="read it outside of jit and vmap"):
        jit(lambda x: optimize.minimize(rosenbrock, x, method="BFGS").message)(x)
