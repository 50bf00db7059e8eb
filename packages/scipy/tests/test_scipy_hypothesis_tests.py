"""Correlations and tests of hypotheses, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as theirs

import primax_numpy as pnp
from primax_core import enable_x64, grad, jacrev, jit, jvp, tree, vmap
from primax_scipy import stats
from primax_scipy.stats._goodness import _pvalue

RNG = np.random.default_rng(3)
X, Z = RNG.normal(size=(9, 3)), RNG.normal(size=(9, 3)) + 0.2
Y = RNG.normal(size=(7, 3)) + 0.3
XT, YT = RNG.integers(0, 4, size=20).astype(float), RNG.integers(0, 5, size=20).astype(float)
SHORT = RNG.integers(0, 5, size=15).astype(float)
LONG = RNG.normal(size=(2, 50))

CASES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "pearsonr": ("pearsonr", (X, Z), {}),
    "pearsonr-two": ("pearsonr", (X[:2, 0], Z[:2, 0]), {}),
    "pearsonr-large": ("pearsonr", (X[:, 0] * 1e200, Z[:, 0] * 1e-200), {}),
    "spearmanr": ("spearmanr", (XT, YT), {}),
    "spearmanr-matrix": ("spearmanr", (X,), {}),
    "spearmanr-rows": ("spearmanr", (X.T, Z.T), {"axis": 1}),
    "spearmanr-equal": ("spearmanr", (LONG[0], LONG[0]), {}),
    "kendalltau": ("kendalltau", (X[:, 0], Z[:, 0]), {}),
    "kendalltau-ties": ("kendalltau", (XT, YT), {}),
    "kendalltau-c": ("kendalltau", (XT, YT), {"variant": "c"}),
    "kendalltau-long": ("kendalltau", tuple(LONG), {}),
    "kendalltau-exact": ("kendalltau", tuple(LONG), {"method": "exact"}),
    "kendalltau-reversed": ("kendalltau", (LONG[0], -LONG[0]), {}),
    "ttest_1samp": ("ttest_1samp", (X, 0.2), {}),
    "ttest_rel": ("ttest_rel", (X, Z), {}),
    "ttest_ind": ("ttest_ind", (X, Y), {}),
    "ttest_ind-welch": ("ttest_ind", (X.T, Y.T), {"equal_var": False, "axis": 1}),
    "mannwhitneyu": ("mannwhitneyu", (X[:, 0], Y[:, 0]), {}),
    "mannwhitneyu-ties": ("mannwhitneyu", (XT, SHORT), {}),
    "mannwhitneyu-plain": ("mannwhitneyu", (XT, SHORT), {"use_continuity": False}),
    "mannwhitneyu-exact": ("mannwhitneyu", (X, Z), {"method": "exact"}),
    "ks_1samp": ("ks_1samp", (X[:, 0], "cdf"), {}),
    "ks_1samp-far": ("ks_1samp", (LONG[0] + 1.5, "cdf"), {}),
    "ks_1samp-long": ("ks_1samp", (LONG.ravel(), "cdf"), {}),
    "ks_1samp-asymp": ("ks_1samp", (LONG[0], "cdf"), {"method": "asymp"}),
    "ks_1samp-approx": ("ks_1samp", (LONG[0], "cdf"), {"method": "approx"}),
    "kstest": ("kstest", (LONG, "norm", (0.1, 1.2)), {"axis": 1}),
}


ONE_SIDED = (
    "pearsonr", "spearmanr", "kendalltau", "kendalltau-ties", "kendalltau-reversed", "ttest_1samp",
    "ttest_rel", "ttest_ind", "mannwhitneyu", "mannwhitneyu-ties", "ks_1samp",
)  # fmt: skip
QUESTIONS = [(case, "two-sided") for case in CASES] + [
    (case, side) for case in ONE_SIDED for side in ("less", "greater")
]
# Without variants of the same kernels
SINGLE = [c for c in CASES if not c.endswith(("large", "exact", "-c", "rows", "plain", "equal"))]


def _with_cdf(module: Any, args: tuple[Any, ...]) -> list[Any]:
    """Arguments with the normal distribution function of a module where there is its name.

    SciPy 1.18 has no arguments for the function that it knows by the name "norm".
    """
    names = ("cdf", "norm") if module is theirs else ("cdf",)
    return [module.norm.cdf if isinstance(a, str) and a in names else a for a in args]


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize(("case", "alternative"), QUESTIONS, ids=["-".join(q) for q in QUESTIONS])
def test_values(case: str, alternative: str) -> None:
    name, args, options = CASES[case]
    options = {**options, "alternative": alternative}
    with enable_x64(True):
        actual = getattr(stats, name)(*_with_cdf(stats, args), **options)
    expected = getattr(theirs, name)(*_with_cdf(theirs, args), **options)
    # SciPy has an asymptotic expansion, with an error of 1e-6, for more than 140 elements.
    tolerance = 2e-6 if case == "ks_1samp-long" else 1e-9
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, other, tolerance, 1e-14)
    for field in ("df", "statistic_location", "statistic_sign"):
        if hasattr(expected, field):
            np.testing.assert_allclose(getattr(actual, field), getattr(expected, field), 1e-12)


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize("case", SINGLE)
def test_single_precision(case: str) -> None:
    name, args, options = CASES[case]
    args = tuple(a.astype(np.float32) if isinstance(a, np.ndarray) else a for a in args)
    actual = getattr(stats, name)(*_with_cdf(stats, args), **options)
    wide = tuple(a.astype(float) if isinstance(a, np.ndarray) else a for a in args)
    expected = getattr(theirs, name)(*_with_cdf(theirs, wide), **options)
    for one, value in zip(actual, expected, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, value, 2e-4, 2e-6)


def test_axes_and_transformations() -> None:
    with enable_x64(True):
        for name, args in {
            "pearsonr": (X, Z), "kendalltau": (X, Z), "mannwhitneyu": (X, Y),
        }.items():  # fmt: skip
            fun = getattr(stats, name)
            whole = fun(*args, axis=0)
            columns = jit(vmap(lambda a, b, f=fun: f(a, b, axis=0), 1))(*args)
            for one, other in zip(tree.leaves(whole), tree.leaves(columns), strict=True):
                np.testing.assert_allclose(one, other, 1e-10)
        flat = stats.ttest_rel(X, Z, axis=None)
        np.testing.assert_allclose(flat.statistic, theirs.ttest_rel(X, Z, axis=None).statistic)
        np.testing.assert_allclose(flat[1], flat.pvalue)
        means = stats.ttest_1samp(X, np.arange(3.0)).pvalue
        np.testing.assert_allclose(means, theirs.ttest_1samp(X, np.arange(3.0)).pvalue, 1e-9)


SLOPES = {
    "pearsonr": lambda m, a: m.pearsonr(a, Z[:, 0]),
    "ttest_1samp": lambda m, a: m.ttest_1samp(a, 0.1),
    "ttest_ind": lambda m, a: m.ttest_ind(a, Y[:, 0], equal_var=False),
    "ks_1samp": lambda m, a: m.ks_1samp(a, m.norm.cdf),
    "chisquare": lambda m, a: m.chisquare(abs(a) + 3),
}


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("name", SLOPES)
def test_derivatives(name: str) -> None:
    """Both modes agree with differences of SciPy's results."""
    fun = SLOPES[name]
    x, move, h = X[:, 0], np.cos(np.arange(9.0)), 1e-5
    ends = [np.array(tuple(fun(theirs, x + sign * h * move))[:2]) for sign in (1, -1)]
    expected = (ends[0] - ends[1]) / (2 * h)
    with enable_x64(True):
        slopes = jit(jacrev(lambda a: pnp.stack([*fun(stats, a)])))(x)
        np.testing.assert_allclose(slopes @ move, expected, 1e-5, 1e-8)
        _, along = jit(lambda a: jvp(lambda b: pnp.stack([*fun(stats, b)]), (a,), (move,)))(x)
        np.testing.assert_allclose(along, expected, 1e-5, 1e-8)


@pytest.mark.parametrize("name", ["spearmanr", "kendalltau", "mannwhitneyu"])
def test_ranks_have_no_slope(name: str) -> None:
    fun = getattr(stats, name)
    assert not np.any(jit(grad(lambda a: fun(a, Z[:, 0]).statistic))(X[:, 0]))


def test_frequencies() -> None:
    observed = RNG.integers(3, 20, size=(6, 2)).astype(float)
    expected = observed[::-1].copy()
    with enable_x64(True):
        for args, options in [((observed,), {}), ((observed, expected), {"ddof": 1}),
                              ((observed,), {"axis": None})]:  # fmt: skip
            actual = stats.chisquare(*args, **options)
            other = theirs.chisquare(*args, **options)
            np.testing.assert_allclose(actual.statistic, other.statistic, 1e-10)
            np.testing.assert_allclose(actual.pvalue, other.pvalue, 1e-9)
        assert np.isnan(stats.chisquare(observed, 2 * expected).pvalue).all()
        free = stats.chisquare(observed, 2 * expected, sum_check=False)
        assert np.isfinite(free.pvalue).all()


@pytest.mark.rotate(every=4, whole=True)
def test_distances_of_few_and_of_many() -> None:
    distances = np.array([0.01, 0.06, 0.2, 0.45, 0.5, 0.7, 0.99])
    with enable_x64(True):
        for n in (1, 2, 7, 60):
            actual = _pvalue(pnp.asarray(distances), n, "two-sided", "auto")
            np.testing.assert_allclose(actual, theirs.kstwo.sf(distances, n), 1e-9)
        large = _pvalue(pnp.asarray([0.008]), 20_000, "two-sided", "auto")
        np.testing.assert_allclose(large, theirs.kstwo.sf([0.008], 20_000), 1e-5)


@pytest.mark.rotate(every=4, whole=True)
def test_degenerate_samples() -> None:
    constant = np.ones(5, np.float32)
    line = np.arange(5, dtype=np.float32)
    assert np.isnan(np.array(stats.pearsonr(constant, line))).all()
    assert np.isnan(np.array(stats.spearmanr(constant, line))).all()
    assert np.isnan(np.array(stats.kendalltau(constant, line))).all()
    assert float(stats.mannwhitneyu(constant, constant).pvalue) == 1.0
    gap = np.float32([1, np.nan, 2, 3, 4])
    for fun in (stats.pearsonr, stats.spearmanr, stats.kendalltau, stats.mannwhitneyu,
                stats.ttest_ind, stats.ttest_rel):  # fmt: skip
        assert np.isnan(np.array(tuple(fun(gap, line)))).all(), fun
    assert np.isnan(float(stats.ks_1samp(gap, stats.norm.cdf).pvalue))
    assert np.isnan(float(stats.kendalltau(constant, line, method="exact").pvalue))


def test_scores_relative_to_others() -> None:
    with enable_x64(True):
        for axis in (0, 1, None):
            actual = stats.zmap(X, Z, axis, 1)
            np.testing.assert_allclose(actual, theirs.zmap(X, Z, axis, 1), 1e-10)


ERRORS = {
    "alternative": (lambda: stats.pearsonr(X, X, alternative="more"),
                    "alternative='more' is unknown: pass one of 'two-sided', 'less', 'greater'"),
    "sizes": (lambda: stats.pearsonr(X, Y), "have 9 and 7 elements: pass as many of one"),
    "few": (lambda: stats.pearsonr(X[:1], X[:1]), "a sample has 1 elements: pass at least 2"),
    "scalars": (lambda: stats.ttest_ind(1.0, X), "have no axis 0: pass arrays"),
    "one-variable": (lambda: stats.spearmanr(X[:, 0]), "there is one variable: pass b"),
    "dimensions": (lambda: stats.spearmanr(X[None]), "more than two dimensions: use vmap"),
    "method": (lambda: stats.kendalltau(X, Z, method="fast"), "method='fast' is unknown"),
    "variant": (lambda: stats.kendalltau(X, Z, variant="a"), "variant='a' is unknown"),
    "no-variance": (lambda: stats.ttest_ind(X[:1], Y[:1]), "samples of one element have no"),
    "freedom": (lambda: stats.chisquare(X[:2], ddof=1), "have 0 degrees of freedom"),
    "cdf": (lambda: stats.ks_1samp(X, "norm"), "cdf='norm' is not a function"),
    "name": (lambda: stats.kstest(X, "dirichlet"), "'dirichlet' is no distribution of stats"),
    "empty": (lambda: stats.mannwhitneyu(X[:0], Y), "a sample has 0 elements"),
    "policy": (lambda: stats.ttest_1samp(X, 0.0, nan_policy="omit"), "nan_policy='omit'"),
    "complex": (lambda: stats.pearsonr(X * 1j, X), "does not support complex-valued inputs"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, text = ERRORS[case]
    with pytest.raises((ValueError, TypeError, NotImplementedError)) as info:
        call()
    assert text in str(info.value)


def test_results_are_constant_trees() -> None:
    result = stats.ttest_1samp(X[:, 0].astype(np.float32), 0.0)
    assert len(result) == 2 and len(tree.leaves(result)) == 3
    assert repr(result).startswith("TtestResult(statistic=")
    with pytest.raises(AttributeError, match=r"TtestResult\.df cannot be set"):
        result.df = 1
    assert float(stats.pearsonr(XT, XT).correlation) == 1.0
