"""Regression, two-sample distances, methods of distributions and resampling, against SciPy."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.stats as theirs

import primax_numpy as pnp
from primax_core import enable_x64, grad, jit, tree, vmap
from primax_numpy import random
from primax_scipy import stats
from test_support import assert_close, check_call, check_derivatives

RNG = np.random.default_rng(3)
X = RNG.normal(size=(7, 2))
Y = X + RNG.normal(size=(7, 2)) + 0.4
LONG = RNG.normal(size=(9, 2)) + 0.5
TIES = RNG.integers(0, 4, size=(9, 2)).astype(float)
ALTERNATIVES = ("two-sided", "less", "greater")

# Distances of two samples

PAIRS = {"equal": (X, Y), "unequal": (X, LONG), "longer": (LONG, X), "ties": (TIES, np.round(X))}


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("method", ["auto", "exact", "asymp"])
@pytest.mark.parametrize("pair", PAIRS)
def test_distances_of_two_samples(pair: str, method: str, alternative: str) -> None:
    x, y = PAIRS[pair]
    with enable_x64(True):
        actual = stats.ks_2samp(x, y, alternative, method)
    expected = theirs.ks_2samp(x, y, alternative, method)
    for name in ("statistic", "pvalue", "statistic_location", "statistic_sign"):
        assert_close(getattr(actual, name), getattr(expected, name), rtol=1e-11, atol=1e-14)


def test_small_probabilities_and_large_samples() -> None:
    far, many = np.arange(40.0), RNG.normal(size=700)
    with enable_x64(True):
        # All 40 elements of one sample are below the others: 2 of C(80, 40) orders.
        small = stats.ks_2samp(far, far + 100).pvalue
        assert_close(small, theirs.ks_2samp(far, far + 100).pvalue, rtol=1e-12)
        assert 0 < float(small) < 1e-22
        for method in ("auto", "asymp"):
            actual = stats.ks_2samp(many, many[:600] * 1.1, method=method).pvalue
            expected = theirs.ks_2samp(many, many[:600] * 1.1, method=method).pvalue
            assert_close(actual, expected, rtol=2e-6)
    assert_close(stats.ks_2samp(X[:, 0].astype(np.float32), X[:, 0].astype(np.float32)).pvalue, 1)


def test_forms_of_the_two_sample_test() -> None:
    x, y = X.astype(np.float32), LONG.astype(np.float32)
    whole = stats.ks_2samp(x, y)
    columns = jit(vmap(stats.ks_2samp, 1))(x, y)
    for one, other in zip(tree.leaves(whole), tree.leaves(columns), strict=True):
        assert_close(one, other)
    assert_close(stats.kstest(x, y).pvalue, whole.pvalue)
    flat = stats.ks_2samp(x, y, axis=None).pvalue
    assert_close(flat, theirs.ks_2samp(x, y, axis=None).pvalue, rtol=1e-5)
    assert not np.any(grad(lambda a: stats.ks_2samp(a, y[:, 0]).pvalue)(x[:, 0]))
    gap = stats.ks_2samp(np.float32([1, np.nan, 2]), y[:, 0])
    assert np.isnan(gap.statistic) and np.isnan(gap.pvalue)
    check_call(stats.ks_2samp, x, y)


# Regression


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_lines(alternative: str) -> None:
    with enable_x64(True):
        actual = stats.linregress(X, Y, alternative)
        for i in range(2):
            expected = theirs.linregress(X[:, i], Y[:, i], alternative)
            assert_close([v[i] for v in actual], tuple(expected), rtol=1e-10)
            assert_close(actual.intercept_stderr[i], expected.intercept_stderr, rtol=1e-10)
        two = stats.linregress(np.array([0.0, 2]), np.array([1.0, 3]))
        assert_close([*two, two.intercept_stderr], (1, 1, 1, 0, 0, 0))
        two = stats.linregress(np.array([0.0, 2]), np.array([2.0, 2]))
        assert_close([*two, two.intercept_stderr], (0, 2, np.nan, 1, 0, 0))
        level = stats.linregress(np.arange(4.0), np.ones(4))
        assert_close(tuple(level), (0, 1, np.nan, np.nan, 0))
        assert np.isnan(tuple(stats.linregress(np.ones(4), np.arange(4.0)))).all()


def test_derivatives_of_lines() -> None:
    def values(x: Any, y: Any) -> Any:
        line = stats.linregress(x, y)
        return pnp.stack([v for v in tree.leaves(line) if v is not line.pvalue])

    check_derivatives(values, X[:, 0], Y[:, 0], rtol=1e-5, step=None, value_rtol=1e-10)
    with enable_x64(True):
        slopes = jit(grad(lambda y: stats.linregress(X[:, 0], y).pvalue))(Y[:, 0])
        move = np.cos(np.arange(7.0))
        ends = [theirs.linregress(X[:, 0], Y[:, 0] + h * move).pvalue for h in (1e-5, -1e-5)]
        assert_close(slopes @ move, (ends[0] - ends[1]) / 2e-5, rtol=1e-6)
    x = np.arange(4, dtype=np.float32)
    assert float(grad(lambda y: stats.linregress(x, y).slope)(2 * x)[3]) == pytest.approx(0.3)
    assert np.isfinite(grad(lambda y: stats.linregress(x, y).stderr)(2 * x)).all()
    result = jit(vmap(stats.linregress, 1))(X, Y)
    assert len(result) == 5 and len(tree.leaves(result)) == 6
    check_call(stats.linregress, X.astype(np.float32), Y.astype(np.float32))


# Parameters of distributions


def test_fit_is_a_method() -> None:
    x = np.float32([0.2, 0.4, 0.5, 0.9])
    with enable_x64(True):
        assert_close(stats.norm.fit(x.astype(float)), theirs.norm.fit(x.astype(float)))
        mean = stats.expon.fit(x.astype(float), floc=0.1)
        assert_close(mean, theirs.expon.fit(x.astype(float), floc=0.1))
    assert stats.binom.fit(x > 0.3, fn=1)._fields == ("n", "p", "loc")
    assert_close(grad(lambda v: stats.norm.fit(v).loc)(x), np.full(4, 0.25))
    public = [m for name, m in vars(stats).items() if name[0] != "_" and inspect.ismodule(m)]
    fitted = [m for m in public if hasattr(m, "fit")]
    assert len(fitted) == 22
    for module in fitted:
        parameters = inspect.signature(module.fit).parameters
        assert next(iter(parameters)) == "data" and "floc" in parameters
        assert module.fit.__module__ == module.__name__
    with pytest.raises(TypeError, match=r"binom needs fn=\.\.\., which data do not determine"):
        stats.binom.fit(x)


# Resampling

KEY = random.key(0)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("method", ["percentile", "basic", "BCa"])
def test_intervals_of_one_distribution(method: str, alternative: str) -> None:
    """With resamples of SciPy the interval is SciPy's."""
    options: Any = {"method": method, "alternative": alternative, "confidence_level": 0.9}
    data = (X[:, 0], LONG[:, 0])
    reference = theirs.bootstrap(
        data, lambda x, y: np.mean(x) - np.mean(y), n_resamples=200, vectorized=False,
        rng=np.random.default_rng(0), **options,
    )  # fmt: skip
    with enable_x64(True):
        actual = stats.bootstrap(
            data, lambda x, y: x.mean() - y.mean(), n_resamples=0, bootstrap_result=reference,
            **options,
        )  # fmt: skip
    assert_close(actual.confidence_interval, tuple(reference.confidence_interval), rtol=1e-9)
    assert_close(actual.standard_error, reference.standard_error, rtol=1e-9)


def test_resamples() -> None:
    x, y = X.astype(np.float32), Y.astype(np.float32)
    result = stats.bootstrap((x,), pnp.mean, n_resamples=3000, key=KEY, method="percentile")
    assert result.bootstrap_distribution.shape == (2, 3000)
    expected = np.std(X, 0) / np.sqrt(7)
    assert_close(result.standard_error, expected, rtol=0.1)
    assert (result.confidence_interval.low < x.mean(0)).all()
    # Differences of paired samples, in parts of another size
    paired = stats.bootstrap((x, y), lambda a, b: (a - b).mean(), paired=True, n_resamples=700,
                             batch=300, vectorized=False, key=KEY)  # fmt: skip
    assert_close(paired.standard_error, np.std(x - y, 0) / np.sqrt(7), rtol=0.15)
    more = stats.bootstrap((x,), pnp.mean, n_resamples=10, vectorized=True, key=KEY, axis=0,
                           method="basic", bootstrap_result=result)  # fmt: skip
    assert more.bootstrap_distribution.shape == (2, 3010)


def test_transformations_of_resamples() -> None:
    x = X[:, 0].astype(np.float32)

    def low(x: Any, key: Any) -> Any:
        return stats.bootstrap((x,), pnp.mean, n_resamples=50, key=key).confidence_interval.low

    # The mean moves with the data.
    assert float(jit(grad(low))(x, KEY).sum()) == pytest.approx(1, abs=1e-4)
    assert jit(vmap(low, (None, 0)))(x, random.split(KEY, 3)).shape == (3,)


KINDS: dict[str, Any] = {
    "independent": lambda x, y: x.mean() - y.mean(),
    "samples": lambda x, y: (x - y).mean() / (x - y).std(),
    "pairings": lambda x, y: (x * y).mean(),
}


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("kind", KINDS)
def test_all_permutations(kind: str, alternative: str) -> None:
    x, y = X[:4, 0], Y[:4, 0]
    options: Any = {"permutation_type": kind, "alternative": alternative}
    expected = theirs.permutation_test((x, y), KINDS[kind], **options)
    with enable_x64(True):
        actual = stats.permutation_test((x, y), KINDS[kind], **options)
    assert_close(actual.pvalue, expected.pvalue, rtol=1e-12)
    assert_close(np.sort(actual.null_distribution), np.sort(expected.null_distribution))


def test_random_permutations() -> None:
    x, y = (v.astype(np.float32) for v in (X, Y))
    for kind, statistic in KINDS.items():
        options: Any = {"permutation_type": kind, "alternative": "less"}
        actual = stats.permutation_test((x, y), statistic, n_resamples=100, key=KEY, **options)
        assert actual.null_distribution.shape == (100, 2)
        expected = theirs.permutation_test(
            (X[:, 0], Y[:, 0]), statistic, n_resamples=4000, rng=np.random.default_rng(0),
            vectorized=False, **options,
        )  # fmt: skip
        assert_close(actual.pvalue[0], expected.pvalue, atol=0.2)
        assert (actual.pvalue >= 1 / 101).all()
    signs = stats.permutation_test((x[:, 0],), pnp.mean, permutation_type="samples")
    other = theirs.permutation_test((X[:, 0],), np.mean, permutation_type="samples")
    assert_close(signs.pvalue, other.pvalue, rtol=1e-5)
    three = [(v[:3, 0]) for v in (X, Y, LONG)]
    spread = lambda *xs: np.var([np.mean(v) for v in xs])
    ours = lambda *xs: pnp.var(pnp.stack([v.mean() for v in xs]))
    with enable_x64(True):
        for kind in ("independent", "samples"):
            actual = stats.permutation_test(three, ours, permutation_type=kind).pvalue
            other = theirs.permutation_test(three, spread, permutation_type=kind).pvalue
            assert_close(actual, other, rtol=1e-12)


MEAN = pnp.mean
ERRORS: dict[str, tuple[Any, str]] = {
    "method": (lambda: stats.ks_2samp(X, Y, method="fast"), "method='fast' is unknown"),
    "large": (lambda: stats.ks_2samp(np.zeros(65537), np.zeros(65536), method="exact"),
              "65537 and 65536 is too large for method='exact': pass method='asymp'"),
    "args": (lambda: stats.kstest(X, Y, (1.0,)), "but cdf is a sample: pass no args"),
    "pairs": (lambda: stats.linregress(X, LONG), "have 7 and 9 elements"),
    "few": (lambda: stats.linregress(X[:1], Y[:1]), "has 1 elements: pass at least 2"),
    "sequence": (lambda: stats.bootstrap(X, MEAN, key=KEY), "data is a ndarray: pass a sequence"),
    "key": (lambda: stats.bootstrap((X,), MEAN), "bootstrap: resamples are drawn: pass a random"),
    "keys": (lambda: stats.permutation_test((X, Y), KINDS["samples"], n_resamples=9),
             "permutation_test: resamples are drawn: pass a random key"),
    "level": (lambda: stats.bootstrap((X,), MEAN, confidence_level=2), "confidence_level=2 is not"),
    "count": (lambda: stats.bootstrap((X,), MEAN, n_resamples=0), "n_resamples=0 is too few"),
    "batch": (lambda: stats.bootstrap((X,), MEAN, batch=0, key=KEY), "batch=0 is the number of"),
    "sizes": (lambda: stats.bootstrap((X, LONG), MEAN, paired=True, key=KEY),
              "samples have 7, 9 elements: paired=True needs equal numbers"),
    "one": (lambda: stats.permutation_test((X,), MEAN), "one sample has no other to exchange"),
    "value": (lambda: stats.bootstrap((X,), lambda x: x, key=KEY), "return a number"),
    "function": (lambda: stats.bootstrap((X,), "mean", key=KEY), "'mean' is not a function"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, text = ERRORS[case]
    with pytest.raises((ValueError, TypeError)) as info:
        call()
    assert text in str(info.value)
