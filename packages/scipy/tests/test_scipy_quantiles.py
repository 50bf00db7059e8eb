"""Quantiles of the gamma and beta families by inverted series, and their log-densities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.stats as theirs

from primax_core import enable_x64, grad, jit, vmap
from primax_scipy import stats
from test_support import assert_close, check_derivatives


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with enable_x64(True), np.errstate(all="ignore"):
        yield


RNG = np.random.default_rng(11)
SIZE = 6000  # more than two blocks
COUNTS = {"gamma": 1, "chi2": 1, "invgamma": 1, "beta": 2, "f": 2}


def _shapes(name: str, low: float, high: float, size: int) -> list[np.ndarray]:
    logs = RNG.uniform(np.log(low), np.log(high), (COUNTS[name], size))
    return [np.exp(v) for v in logs]


@pytest.mark.rotate()
@pytest.mark.parametrize("name", COUNTS)
def test_quantiles_of_many_parameters(name: str) -> None:
    q, shapes = RNG.uniform(size=SIZE), _shapes(name, 0.3, 30, SIZE)
    quantiles = jit(getattr(stats, name).ppf)(q, *shapes)
    assert_close(quantiles, getattr(theirs, name).ppf(q, *shapes), rtol=1e-11)


@pytest.mark.rotate()
@pytest.mark.parametrize("name", COUNTS)
def test_quantiles_of_extreme_probabilities(name: str) -> None:
    shapes = _shapes(name, 0.05, 1e3, 300)
    q = np.exp(RNG.uniform(np.log(1e-30), 0, 300))
    distribution, peer = getattr(stats, name), getattr(theirs, name)
    for kind, tail in (("ppf", "cdf"), ("isf", "sf")):
        z = np.asarray(getattr(distribution, kind)(q, *shapes))
        # Of numbers near an end of the support, SciPy's tail is not precise.
        inner = (z > 1e-250) & (z < 1e250) & ((name != "beta") | (z < 0.9))
        assert inner.sum() > 60
        back = getattr(peer, tail)(z, *shapes)
        assert_close(back[inner], q[inner], rtol=2e-9)


def test_quantiles_beyond_the_smallest_number() -> None:
    assert 0 <= float(stats.gamma.ppf(1e-10, 0.002)) < 1e-300
    assert float(stats.beta.isf(1e-10, 5.0, 0.002)) == 1
    assert float(stats.beta.ppf(1e-10, 0.002, 5.0)) < 1e-300


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize("name", COUNTS)
def test_derivatives_of_quantiles(name: str) -> None:
    shapes = [np.float64(v) for v in (2.3, 1.7)[: COUNTS[name]]]
    check_derivatives(getattr(stats, name).ppf, np.float64(0.3), *shapes, order=1, rtol=1e-5)


def test_gradients_of_many_quantiles() -> None:
    q, (a,) = RNG.uniform(size=SIZE), _shapes("gamma", 0.3, 30, SIZE)
    slopes = jit(grad(lambda q: stats.gamma.ppf(q, a).sum()))(q)
    z = theirs.gamma.ppf(q, a)
    assert_close(slopes, 1 / theirs.gamma.pdf(z, a), rtol=1e-9)


def test_mapped_quantiles() -> None:
    q, (a, b) = RNG.uniform(size=12), _shapes("beta", 0.3, 30, 12)
    assert_close(vmap(stats.beta.ppf)(q, a, b), stats.beta.ppf(q, a, b), rtol=1e-13)


@pytest.mark.parametrize("name", ["gamma", "beta", "chi2", "invgamma"])
def test_log_densities(name: str) -> None:
    shapes = _shapes(name, 1e-3, 1e5, 400)
    middle = getattr(theirs, name).ppf(RNG.uniform(0.01, 0.99, 400), *shapes)
    low, high = (1e-3, 0.999) if name == "beta" else (1e-3, 1e6)
    x = np.clip(middle, low, high)
    # SciPy's terms cancel for large parameters.
    atol = 1e-13 * np.sum(shapes, 0) + 1e-13
    expected = getattr(theirs, name).logpdf(x, *shapes)
    difference = np.abs(np.asarray(getattr(stats, name).logpdf(x, *shapes)) - expected)
    assert (difference <= 1e-12 * np.abs(expected) + 30 * atol).all()


def test_log_densities_at_the_ends_of_the_support() -> None:
    a = np.array([0.5, 1.0, 3.0])
    assert_close(stats.gamma.logpdf(0.0, a), [np.inf, 0, -np.inf])
    assert_close(stats.beta.logpdf(0.0, a, 4.0), [np.inf, np.log(4), -np.inf])
    assert_close(stats.beta.logpdf(1.0, 4.0, a), [np.inf, np.log(4), -np.inf])
    assert float(grad(stats.gamma.logpdf)(0.0, 1.0)) == -1
    assert float(grad(stats.beta.logpdf)(0.0, 1.0, 4.0)) == -3
    assert float(grad(stats.beta.logpdf)(1.0, 4.0, 1.0)) == 3


def test_derivatives_of_log_densities() -> None:
    for a in (0.4, 1.0, 12.0):
        check_derivatives(stats.gamma.logpdf, np.float64(1.3), np.float64(a))
        check_derivatives(stats.beta.logpdf, np.float64(0.3), np.float64(a), np.float64(2.5))
