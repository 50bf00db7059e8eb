"""Statistics of data, kernel density estimates and distributions of vectors, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as theirs

from primax_core import enable_x64, jit, vmap
from primax_core.testing import check_grads
from primax_numpy import random
from primax_scipy import stats
from test_support import check_call

RNG = np.random.default_rng(0)
DATA = RNG.integers(1, 5, size=(3, 7)).astype(float)
DESCRIPTIONS = [
    "sem", "skew", "kurtosis", "zscore", "iqr", "gmean", "hmean", "circmean", "circvar", "circstd",
]  # fmt: skip


@pytest.mark.parametrize("name", DESCRIPTIONS)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_descriptions(name: str, axis: Any) -> None:
    ours, other = getattr(stats, name), getattr(theirs, name)
    expected = other(DATA, axis=axis)
    with enable_x64(True):
        np.testing.assert_allclose(ours(DATA, axis=axis), expected, 1e-10, 1e-12)
    single = ours(DATA.astype(np.float32), axis=axis)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, 1e-4, 1e-4)
    if axis == 0:
        check_call(ours, DATA.astype(np.float32))
        columns = vmap(lambda v: ours(v, axis=0), 1, -1)(DATA.astype(np.float32))
        np.testing.assert_allclose(columns, single, 1e-5, 1e-5)


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_ranks(method: str, axis: Any) -> None:
    expected = theirs.rankdata(DATA, method, axis=axis)
    np.testing.assert_array_equal(
        stats.rankdata(DATA, method, axis=axis), np.ravel(expected) if axis is None else expected
    )
    assert np.isnan(stats.rankdata(np.array([1.0, np.nan]), method)).all()


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_modes(axis: Any, keepdims: bool) -> None:
    actual = jit(lambda a: stats.mode(a, axis, keepdims=keepdims))(DATA)
    expected = theirs.mode(DATA, axis, keepdims=keepdims)
    np.testing.assert_array_equal(actual.mode, expected.mode)
    np.testing.assert_array_equal(actual.count, expected.count)


def test_description_and_entropy() -> None:
    with enable_x64(True):
        actual, expected = stats.describe(DATA), theirs.describe(DATA)
        assert actual.nobs == expected.nobs
        for name in ("mean", "variance", "skewness", "kurtosis"):
            np.testing.assert_allclose(getattr(actual, name), getattr(expected, name), 1e-10)
        other = stats.entropy(DATA, DATA[::-1].copy(), base=2)
        np.testing.assert_allclose(other, theirs.entropy(DATA, DATA[::-1], base=2), 1e-12, 1e-12)
        np.testing.assert_allclose(stats.entropy(DATA), theirs.entropy(DATA), 1e-12)
        np.testing.assert_allclose(
            stats.skew(DATA, bias=False, axis=1), theirs.skew(DATA, bias=False, axis=1), 1e-10
        )
        np.testing.assert_allclose(
            stats.kurtosis(DATA, 1, False, False), theirs.kurtosis(DATA, 1, False, False), 1e-10
        )
        w = RNG.uniform(size=DATA.shape)
        np.testing.assert_allclose(stats.gmean(DATA, weights=w), theirs.gmean(DATA, weights=w))
        check_grads(lambda a: stats.skew(a), (DATA,), 1)


@pytest.mark.parametrize("method", [None, "silverman", 0.3])
def test_density_estimates(method: Any) -> None:
    x, w, at = RNG.normal(size=(2, 20)), RNG.uniform(size=20), RNG.normal(size=(2, 4))
    other = theirs.gaussian_kde(x, method, w)
    with enable_x64(True):
        ours = stats.gaussian_kde(x, method, w)
        np.testing.assert_allclose(jit(lambda k, p: k(p))(ours, at), other(at), 1e-10)
        np.testing.assert_allclose(ours.logpdf(at), other.logpdf(at), 1e-10)
        args = np.zeros(2), np.eye(2)
        np.testing.assert_allclose(
            ours.integrate_gaussian(*args), other.integrate_gaussian(*args), 1e-10
        )
        np.testing.assert_allclose(ours.integrate_kde(ours), other.integrate_kde(other), 1e-10)
        np.testing.assert_allclose(ours.covariance, other.covariance, 1e-10)
        np.testing.assert_allclose(ours.inv_cov, other.inv_cov, 1e-10)
        line, expected = stats.gaussian_kde(x[0], method), theirs.gaussian_kde(x[0], method)
        np.testing.assert_allclose(
            line.integrate_box_1d(-1, 0.5), expected.integrate_box_1d(-1, 0.5), 1e-10
        )
        draws = np.asarray(ours.resample(random.key(0), (4000,)))
        np.testing.assert_allclose(
            np.cov(draws), other.covariance + np.cov(x, aweights=w, ddof=0), 0.2, 0.1
        )
        check_grads(lambda d: stats.gaussian_kde(d, method).logpdf(at), (x,), 1)


def test_distributions_of_vectors() -> None:
    alpha, p = np.array([1.0, 2, 3]), np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]).T
    counts = np.array([[1, 2, 3], [0, 4, 2]])
    with enable_x64(True):
        np.testing.assert_allclose(
            stats.dirichlet.logpdf(p, alpha), theirs.dirichlet.logpdf(p, alpha), 1e-10
        )
        np.testing.assert_allclose(
            stats.dirichlet.pdf(p[:2], alpha), theirs.dirichlet.pdf(p, alpha), 1e-10
        )
        expected = theirs.multinomial.logpmf(counts, 6, p[:, 0])
        np.testing.assert_allclose(stats.multinomial.logpmf(counts, 6, p[:, 0]), expected, 1e-10)
        check_grads(stats.dirichlet.logpdf, (p[:2, 0], alpha), 1)
    assert float(stats.dirichlet.logpdf(np.array([0.2, 0.2, 0.2]), alpha)) == -np.inf
    assert np.isnan(float(stats.dirichlet.logpdf(p[:, 0], -alpha)))
    assert float(stats.multinomial.pmf(counts[0], 7, p[:, 0])) == 0.0


def test_errors() -> None:
    with pytest.raises(ValueError, match="rankdata: unknown method 'best'"):
        stats.rankdata(DATA, "best")
    for function in (stats.mode, stats.rankdata):
        with pytest.raises(NotImplementedError, match="nan_policy='omit' is not supported"):
            function(DATA, nan_policy="omit")
        with pytest.raises(NotImplementedError, match="cannot raise for its values"):
            function(DATA, nan_policy="raise")
        with pytest.raises(ValueError, match="unknown nan_policy 'x'"):
            function(DATA, nan_policy="x")
    with pytest.raises(ValueError, match="it has no mode"):
        stats.mode(np.zeros((0, 2)))
    with pytest.raises(ValueError, match="the dataset has 1 points; it needs at least 2"):
        stats.gaussian_kde(np.ones(1))
    with pytest.raises(ValueError, match="unknown bw_method 'wide'"):
        stats.gaussian_kde(np.ones(3), "wide")
    with pytest.raises(NotImplementedError, match="estimates are immutable"):
        stats.gaussian_kde(np.arange(3.0)).set_bandwidth()
    with pytest.raises(ValueError, match=r"multinomial.logpmf: x must be of integer dtype"):
        stats.multinomial.logpmf(np.ones(2), 2, np.ones(2) / 2)
    with pytest.raises(ValueError, match="first axis of x has size 4; it must be 3 or 2"):
        stats.dirichlet.logpdf(np.ones(4), np.ones(3))
    with pytest.raises(ValueError, match=r"rng=.* are not increasing percentiles"):
        stats.iqr(DATA, rng=(75, 25))
