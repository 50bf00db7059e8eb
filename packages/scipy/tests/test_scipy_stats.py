"""Distributions against SciPy, derivatives against finite differences, boundary values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as theirs

from primax_core import enable_x64, grad, jit, make_jaxpr, vmap
from primax_core.testing import check_grads
from primax_scipy import stats

X = np.array([-np.inf, -3, -1, 0, 0.3, 0.5, 0.9, 1, 2.2, 3, 9, np.inf, np.nan])
K = np.array([-1.0, 0, 1, 2, 3, 9, np.nan])
Q = np.array([-0.1, 0, 1e-6, 0.1, 0.5, 0.7, 1, 1.1, np.nan])
AFFINE = (0.3, 2.0)
# The shape parameters of each distribution, and further arguments
PARAMETERS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "norm": ((), AFFINE), "uniform": ((), AFFINE), "logistic": ((), AFFINE), "expon": ((), AFFINE),
    "laplace": ((), AFFINE), "cauchy": ((), AFFINE), "gamma": ((1.5,), AFFINE),
    "beta": ((1.5, 0.7), AFFINE), "t": ((3.0,), AFFINE), "bernoulli": ((0.3,), ()),
    "poisson": ((2.5,), (1.0,)),
}  # fmt: skip
FUNCTIONS = ["pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"]
CALLS = [(d, f) for d in PARAMETERS for f in FUNCTIONS if hasattr(getattr(stats, d), f)]


def _points(name: str, function: str) -> np.ndarray:
    if function in ("ppf", "isf"):
        return Q
    return K if name in ("bernoulli", "poisson") else X


@pytest.mark.parametrize("name, function", CALLS)
def test_values(name: str, function: str) -> None:
    shapes, rest = PARAMETERS[name]
    x = _points(name, function)
    ours, scipys = (getattr(getattr(m, name), function) for m in (stats, theirs))
    with np.errstate(all="ignore"):
        expected = scipys(x, *shapes, *rest)
    if function in ("pdf", "logpdf"):
        # SciPy has NaN for some densities at infinity
        expected[np.isinf(x)] = 0.0 if function == "pdf" else -np.inf
    if name == "bernoulli" and function in ("ppf", "isf"):
        # The smallest value; SciPy returns the one before
        expected[Q == (0.0 if function == "ppf" else 1.0)] = 0.0
    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-11)):
        with enable_x64(dtype == np.float64):
            actual = ours(x.astype(dtype), *shapes, *rest)
            assert actual.dtype == dtype
            np.testing.assert_allclose(actual, expected, tolerance, tolerance)
            again = jit(ours)(x.astype(dtype), *shapes, *rest)
            np.testing.assert_allclose(again, actual, tolerance, tolerance)


SMOOTH = [c for c in CALLS if c[0] != "bernoulli" and c[1] not in ("cdf", "logcdf", "sf", "logsf")]


@pytest.mark.rotate()
@pytest.mark.parametrize("name, function", SMOOTH)
def test_derivatives(name: str, function: str) -> None:
    shapes, rest = PARAMETERS[name]
    x = np.array([0.2, 0.7]) if function in ("ppf", "isf") else np.array([0.6, 1.1])
    if name == "poisson":
        return check_grads(lambda mu: stats.poisson.logpmf(np.array([2.0, 3.0]), mu), (2.5,), 1)
    fun: Any = getattr(getattr(stats, name), function)
    with enable_x64(True):
        check_grads(fun, (x, *shapes, *rest), 1, rtol=1e-4, atol=1e-4)


def test_tails_of_the_normal_distribution() -> None:
    np.testing.assert_allclose(stats.norm.logcdf(-50.0), theirs.norm.logcdf(-50.0), 1e-6)
    np.testing.assert_allclose(stats.norm.logsf(50.0), theirs.norm.logsf(50.0), 1e-6)
    np.testing.assert_allclose(stats.norm.isf(1e-20), theirs.norm.isf(1e-20), 1e-6)
    np.testing.assert_allclose(grad(stats.norm.logcdf)(-50.0), 50.019984, 1e-6)
    assert np.isnan(float(stats.norm.logpdf(0.0, 0.0, -1.0)))
    assert stats.norm.logpdf(0.5).weak_type and not stats.norm.cdf(0.5).weak_type


def test_vectors() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 3))
    cov, mean, x = a @ a.T + np.eye(3), rng.normal(size=3), rng.normal(size=(5, 3))
    expected = theirs.multivariate_normal.logpdf(x, mean, cov)
    actual = stats.multivariate_normal.logpdf(*(v.astype(np.float32) for v in (x, mean, cov)))
    np.testing.assert_allclose(actual, expected, 1e-5)
    many = vmap(lambda v: stats.multivariate_normal.pdf(v, mean, cov))(x)
    np.testing.assert_allclose(many, np.exp(expected), 1e-4)
    same = stats.multivariate_normal.logpdf(x, mean, 2.0)
    np.testing.assert_allclose(
        same, theirs.multivariate_normal.logpdf(x, mean, 2 * np.eye(3)), 1e-5
    )
    for bad in ((x, mean, cov[:2]), (x[:, :2], mean, cov), (x, 1.0, cov)):
        with pytest.raises(ValueError, match="multivariate_normal"):
            stats.multivariate_normal.logpdf(*bad)
    with pytest.raises(NotImplementedError, match="allow_singular"):
        stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)


def test_errors_name_the_function() -> None:
    with pytest.raises(TypeError, match=r"norm.cdf requires ndarray or scalar"):
        stats.norm.cdf([0.0])
    with pytest.raises(ValueError, match=r"norm.logpdf does not support complex"):
        stats.norm.logpdf(1j)


def test_the_density_of_beta_needs_positive_parameters() -> None:
    for a, b in ((-1.0, 1.0), (1.0, -1.0), (0.0, 1.0)):
        assert np.isnan(float(stats.beta.logpdf(0.5, a, b)))
        assert np.isnan(float(stats.beta.pdf(-3.0, a, b)))
    assert float(stats.beta.logpdf(-3.0, 2.0, 2.0)) == -np.inf


def test_entropy_of_poisson_distributions() -> None:
    mu = np.array([0, 1e-3, 0.5, 1, 3, 10, 20, 21, 50, 101, 250, 310, -1, np.nan])
    expected = theirs.poisson.entropy(mu)
    for dtype, tolerance in ((np.float32, 2e-5), (np.float64, 1e-9)):
        with enable_x64(dtype == np.float64):
            actual = stats.poisson.entropy(mu.astype(dtype))
            np.testing.assert_allclose(actual, expected, tolerance, tolerance)
    check_grads(stats.poisson.entropy, (2.5,), 1)


@pytest.mark.parametrize("density", [stats.gamma.pdf, stats.beta.logpdf, stats.t.pdf])
def test_floats_of_8_bits_are_computed_in_float32(density: Any) -> None:
    """XLA takes minutes to compile some densities whose steps are of 8 bits."""
    x = np.array([0.25, 0.5], "float8_e4m3fn")
    args = (x, x, 1.5) if density is stats.beta.logpdf else (x, x)
    jaxpr = make_jaxpr(density)(*args)
    narrow = [v for e in jaxpr.eqns for v in e.outvars if v.aval.dtype == x.dtype]
    assert narrow == jaxpr.outvars
    assert [a.shape for a in jaxpr.out_avals] == [(2,)]
