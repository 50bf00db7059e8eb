"""Functions of distributions against SciPy and against each other: tails, quantiles, moments,
samples, derivatives, invalid parameters."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.stats as theirs

from primax_core import enable_x64, grad, jit, make_jaxpr, vmap
from primax_core.testing import check_grads
from primax_numpy import random
from primax_scipy import stats
from test_support import check_call

INF = np.inf
CONTINUOUS: list[tuple[str, tuple[float, ...]]] = [
    ("norm", ()), ("lognorm", (0.5,)), ("lognorm", (3.0,)), ("halfnorm", ()), ("skewnorm", (1.0,)),
    ("invgauss", (0.7,)), ("invgauss", (4.0,)), ("truncnorm", (-1.0, 2.0)),
    ("truncnorm", (3.0, INF)), ("truncnorm", (2.0, 2.5)), ("uniform", ()), ("logistic", ()),
    ("expon", ()), ("laplace", ()), ("triang", (0.3,)), ("triang", (0.0,)), ("triang", (1.0,)),
    ("loguniform", (0.5, 30.0)), ("gumbel_r", ()), ("gumbel_l", ()), ("weibull_min", (0.7,)),
    ("weibull_min", (3.0,)), ("weibull_max", (2.0,)), ("rayleigh", ()), ("pareto", (1.5,)),
    ("pareto", (3.0,)), ("cauchy", ()), ("halfcauchy", ()), ("gamma", (0.3,)), ("gamma", (5.0,)),
    ("gamma", (400.0,)), ("chi2", (1.0,)), ("chi2", (7.0,)), ("invgamma", (0.5,)),
    ("invgamma", (4.5,)), ("gennorm", (0.6,)), ("gennorm", (3.0,)), ("beta", (0.5, 2.0)),
    ("beta", (30.0, 40.0)), ("t", (1.0,)), ("t", (3.5,)), ("t", (50.0,)), ("f", (2.0, 5.0)),
    ("f", (9.0, 20.0)), ("vonmises", (0.5,)), ("vonmises", (20.0,)), ("wrapcauchy", (0.3,)),
]  # fmt: skip
DISCRETE: list[tuple[str, tuple[float, ...]]] = [
    ("bernoulli", (0.3,)), ("binom", (20.0, 0.3)), ("binom", (2000.0, 0.01)),
    ("nbinom", (3.5, 0.4)), ("geom", (0.2,)), ("poisson", (2.5,)), ("poisson", (400.0,)),
    ("zipf", (2.5,)),
    ("betabinom", (12.0, 1.5, 0.7)), ("hypergeom", (50.0, 20.0, 12.0)), ("skellam", (3.0, 1.2)),
    ("skellam", (40.0, 60.0)),
]  # fmt: skip
AFFINE = (0.3, 2.0)
X = np.array([-1e30, -3, -1, -1e-30, 0, 1e-30, 1e-8, 0.1, 0.4, 0.9, 1, 2.2, 3, 9, 40, 1e30, np.nan])
K = np.array([-INF, -30, -8, -3, -1, 0, 1, 1.5, 2, 3, 7, 9, 12, 15, 20, 40, 80, 300, 440, np.nan])
Q = np.array([-0.1, 0, 1e-6, 0.1, 0.3, 0.5, 0.71, 0.999, 1, 1.1, np.nan])
TAILS = ("cdf", "sf", "logcdf", "logsf")
MOMENTS = ("mean", "var", "std", "median", "entropy")


def _numbered(cases: list[tuple[str, tuple[float, ...]]]) -> list[str]:
    """Numbers as ids: each run visits a share of all cases, not one of each distribution."""
    return [str(i) for i in range(len(cases))]


def _close(
    actual: Any, expected: Any, dtype: Any, what: str, tolerance: float, absolute: float = 0.0
) -> None:
    """Compare relative to the expected values, except those below the smallest normal number."""
    actual = np.asarray(actual, np.float64)
    tiny = 1e-290 if dtype == np.float64 else 1e-37
    tiny = 1e-2 if what in ("logpdf", "logpmf") else tiny
    with np.errstate(all="ignore"):
        difference = abs(actual - expected)
        error = difference / np.maximum(abs(expected), tiny)
        huge = abs(expected) > np.finfo(dtype).max
    good = (actual == expected) | (error < tolerance) | (difference < absolute)
    good |= huge & (abs(actual) > 1e37)
    good |= np.isnan(actual) & np.isnan(expected)
    assert good.all(), (what, actual[~good], expected[~good])


def _values(name: str, functions: Any, x: Any, *args: Any) -> Any:
    family = getattr(stats, name)
    return jit(lambda v: {f: getattr(family, f)(v, *args) for f in functions})(x)


# SciPy's values are less accurate here: logarithms of the larger tail, 1 - cdf, NaN at infinity
DOUBTFUL = {
    *[("skewnorm", function) for function in TAILS],
    ("vonmises", "logcdf"),
    ("vonmises", "logsf"),
}


@pytest.mark.rotate()
@pytest.mark.parametrize(("name", "shapes"), CONTINUOUS, ids=_numbered(CONTINUOUS))
def test_densities_and_tails(name: str, shapes: tuple[float, ...]) -> None:
    x = np.clip(X, -2.8, 2.8) if name == "vonmises" else X
    with enable_x64(True):
        actual = _values(name, ("logpdf", "pdf", *TAILS), x, *shapes)
    for function, values in actual.items():
        if (name, function) in DOUBTFUL:
            continue
        with np.errstate(all="ignore"):
            expected = getattr(getattr(theirs, name), function)(x, *shapes)
        finite = np.isfinite(expected) | np.isnan(x)
        # SciPy's errors: near 0, and of a difference in the lower tail
        tolerance = 1e-8 if name == "t" and function in TAILS else 1e-11
        absolute = 1e-8 if name == "vonmises" and function in ("cdf", "sf") else 0.0
        _close(values[finite], expected[finite], np.float64, function, tolerance, absolute)
        assert not np.isnan(np.asarray(values)[~np.isnan(x)]).any()


@pytest.mark.rotate()
@pytest.mark.parametrize(("name", "shapes"), CONTINUOUS, ids=_numbered(CONTINUOUS))
def test_single_precision(name: str, shapes: tuple[float, ...]) -> None:
    """The result in float32 is that of the same arguments in float64."""
    x = np.float32(np.clip(X, -2.8, 2.8) if name == "vonmises" else X)
    shapes32 = tuple(map(np.float32, shapes))
    actual = _values(name, ("logpdf", "pdf", "cdf", "sf"), x, *shapes32)
    with enable_x64(True):
        doubled = tuple(map(np.float64, shapes32))
        expected = _values(name, ("logpdf", "pdf", "cdf", "sf"), np.float64(x), *doubled)
    for function, array in actual.items():
        assert array.dtype == np.float32
        values = np.float64(array)
        absolute = (name == "skewnorm" and function in TAILS) or function == "logpdf"
        right = np.asarray(expected[function])
        middle = abs(right) < 1e3 if function == "logpdf" else abs(right) > 1e-25
        middle |= np.isnan(right)
        with np.errstate(all="ignore"):
            error = abs(values - right) / np.maximum(abs(right), 1.0 if absolute else 0.0)
        bad = middle & ~(error < 3e-5) & ~(np.isnan(values) & np.isnan(right)) & (values != right)
        assert not bad.any(), (function, x[bad], values[bad], right[bad])


@pytest.mark.rotate()
@pytest.mark.parametrize(("name", "shapes"), CONTINUOUS, ids=_numbered(CONTINUOUS))
def test_quantiles_are_inverses(name: str, shapes: tuple[float, ...]) -> None:
    family = getattr(stats, name)
    q = np.array([1e-12, 1e-4, 0.1, 0.3, 0.5, 0.7, 0.95, 0.9999])
    edges = np.array([-0.1, 0, 1, 1.1, np.nan])

    affine = (0.0, 2.0)

    def run(v: Any, edges: Any) -> Any:
        low, high = family.ppf(v, *shapes, *affine), family.isf(v, *shapes, *affine)
        ends = family.ppf(edges, *shapes, *affine), family.isf(edges, *shapes, *affine)
        back = family.cdf(low, *shapes, *affine), family.sf(high, *shapes, *affine)
        return *back, *ends, low

    with enable_x64(True):
        below, above, first, last, low = map(np.asarray, jit(run)(q, edges))
    with np.errstate(all="ignore"):
        expected = getattr(theirs, name).ppf(q[2:], *shapes, *affine)
        ends = getattr(theirs, name).support(*shapes, *affine)
    np.testing.assert_allclose(low[2:], expected, 1e-9, 1e-12)
    loose = 1e-3 if name in ("skewnorm", "truncnorm", "wrapcauchy", "triang", "beta") else 1e-8
    np.testing.assert_allclose(below[1:], q[1:], loose)
    np.testing.assert_allclose(above[1:], q[1:], loose)
    if name != "vonmises":
        np.testing.assert_allclose(first, [np.nan, ends[0], ends[1], np.nan, np.nan], 1e-12)
        np.testing.assert_allclose(last, [np.nan, ends[1], ends[0], np.nan, np.nan], 1e-12)


@pytest.mark.rotate()
@pytest.mark.parametrize(
    ("name", "shapes"), CONTINUOUS + DISCRETE, ids=_numbered(CONTINUOUS + DISCRETE)
)
def test_moments(name: str, shapes: tuple[float, ...]) -> None:
    affine = AFFINE if (name, shapes) in CONTINUOUS else (2.0,)
    family = getattr(stats, name)
    with enable_x64(True):
        actual = jit(lambda *s: {f: getattr(family, f)(*s) for f in MOMENTS})(*shapes, *affine)
    for function, value in actual.items():
        if (name, function) == ("zipf", "entropy"):
            # SciPy's sum does not converge. This is the sum of a million terms and of the rest.
            np.testing.assert_allclose(value, 1.0156306, 1e-6)
            continue
        with np.errstate(all="ignore"):
            expected = getattr(getattr(theirs, name), function)(*shapes, *affine)
        if not np.isnan(expected):
            np.testing.assert_allclose(value, expected, 1e-7, 1e-9, err_msg=function)


@pytest.mark.rotate()
@pytest.mark.parametrize(("name", "shapes"), DISCRETE, ids=_numbered(DISCRETE))
def test_discrete_distributions(name: str, shapes: tuple[float, ...]) -> None:
    # The Bernoulli density interpolates, and SciPy's hypergeometric tails are NaN between integers
    k = K[K != 1.5] if name in ("bernoulli", "hypergeom") else K
    k = k[~np.isneginf(k)] if name == "skellam" else k  # where SciPy is NaN
    with enable_x64(True):
        actual = _values(name, ("logpmf", "pmf", *TAILS), k, *shapes)
        quantiles = _values(name, ("ppf", "isf"), Q, *shapes)
    for function, values in actual.items():
        with np.errstate(all="ignore"):
            expected = getattr(getattr(theirs, name), function)(k, *shapes)
        if function.startswith("log") and function != "logpmf":
            # SciPy takes the logarithm of numbers that are rounded near 1
            steps = np.diff(np.exp(np.asarray(values)[:-1]))
            assert ((steps if function == "logcdf" else -steps) >= 0).all()
            middle = (expected < -1e-3) | np.isnan(expected)
            middle &= ~(np.isneginf(expected) & (np.asarray(values) < -700))  # SciPy underflows
            if name == "skellam":  # its smaller tail is rounded, too
                middle &= ~(expected < -14)
            values, expected = values[middle], expected[middle]
        if (name, function) == ("skellam", "logpmf"):
            # SciPy's probabilities underflow
            values, expected = (v[~np.isneginf(expected)] for v in (values, expected))
        rough = (("zipf", "sf"), ("zipf", "logsf"), ("skellam", "logcdf"), ("skellam", "logsf"))
        tolerance = 1e-7 if (name, function) in rough else 1e-10
        absolute = 1e-10 if name == "skellam" and function in ("cdf", "sf") else 0.0
        _close(values, expected, np.float64, function, tolerance, absolute)
    for function, values in quantiles.items():
        expected = getattr(getattr(theirs, name), function)(Q, *shapes)
        if name == "bernoulli":
            # The smallest value, as in the reference; SciPy returns the one before
            expected[Q == (0.0 if function == "ppf" else 1.0)] = 0.0
        np.testing.assert_array_equal(values, expected)


PARAMETERS = dict([*reversed(CONTINUOUS), *reversed(DISCRETE)])


@pytest.mark.rotate()
@pytest.mark.parametrize("name", PARAMETERS)
def test_invalid_parameters_are_nan(name: str) -> None:
    shapes, family = PARAMETERS[name], getattr(stats, name)
    discrete = hasattr(family, "pmf")
    functions = ["logpmf" if discrete else "logpdf", "cdf", "sf", "ppf", "isf"]
    for i in range(len(shapes)):
        if name == "truncnorm" and i:
            continue
        bad = list(shapes)
        bad[i] = np.nan if name in ("skewnorm", "truncnorm") else -1.0
        values = _values(name, functions, np.float32([0.5]), *bad)
        assert all(np.isnan(v).all() for v in values.values()), (bad, values)
        assert np.isnan(float(family.mean(*bad)))
    if not discrete:
        for scale in (0.0, -1.0):
            values = _values(name, functions, np.float32([0.5]), *shapes, 0.0, scale)
            assert all(np.isnan(v).all() for v in values.values())


# Without the ends of the range of a parameter, where differences are not defined
ENDS = [("triang", (0.0,)), ("triang", (1.0,))]
DERIVED = [c for c in CONTINUOUS if c[0] != "uniform" and INF not in c[1] and c not in ENDS]


@pytest.mark.rotate(every=10, whole=True)
@pytest.mark.parametrize(("name", "shapes"), DERIVED, ids=_numbered(DERIVED))
def test_derivatives(name: str, shapes: tuple[float, ...]) -> None:
    """Derivatives of the CDF and the quantile function agree with the density and each other."""
    family = getattr(stats, name)
    with enable_x64(True):
        q = np.array([0.2, 0.6])
        x = np.asarray(family.ppf(q, *shapes))
        density = vmap(grad(lambda v: family.cdf(v, *shapes)))(x)
        np.testing.assert_allclose(density, family.pdf(x, *shapes), 1e-6)
        slope = vmap(grad(lambda v: family.ppf(v, *shapes)))(q)
        np.testing.assert_allclose(slope, 1 / np.asarray(density), 1e-6)
        check_grads(lambda *s: family.logpdf(x, *s), (*shapes, -0.01, 1.01), 1)
        if shapes and name not in ("vonmises", "skewnorm"):
            step = 1e-5
            upper = np.asarray(family.ppf(q, shapes[0] + step, *shapes[1:]))
            lower = np.asarray(family.ppf(q, shapes[0] - step, *shapes[1:]))
            if not np.isnan(upper + lower).any():
                by = vmap(grad(family.ppf, 1), (0, None, *[None] * len(shapes[1:])))(q, *shapes)
                np.testing.assert_allclose(by, (upper - lower) / (2 * step), 1e-4, 1e-6)


SUMS: list[tuple[Any, tuple[float, ...]]] = [
    (lambda a, b: stats.betabinom.logcdf(3.0, 12.0, a, b), (1.5, 0.7)),
    (lambda a, b: stats.skellam.logpmf(np.array([2.0, -1.0]), a, b), (3.0, 1.2)),
    (lambda a, b: stats.skellam.logcdf(1.0, a, b), (3.0, 1.2)),
    (lambda n, p: stats.nbinom.entropy(n, p), (3.5, 0.4)),
    (lambda a: stats.zipf.entropy(a), (2.5,)),
]


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize("case", range(len(SUMS)))
def test_derivatives_of_sums(case: int) -> None:
    fun, args = SUMS[case]
    with enable_x64(True):
        check_grads(fun, args, 1, rtol=1e-4, atol=1e-5)


SKELLAM_TAILS = (
    (-3.0, 2.0, 5.0, -0.57030412637716219, -0.83322216131587519),
    (5.0, 0.125, 30.0, -7.477790609146793e-22, -48.644934670622565),
    (-140.0, 0.125, 100.0, -9.3352877605640793, -8.8258227964242469e-5),
    (500.0, 1000.0, 0.125, -156.63671812355178, -9.4088740614949589e-69),
    (-40.0, 20.0, 20.0, -21.106196424450455, -6.8186022749612907e-10),
    (19.0, 300.0, 280.0, -0.70966105196460252, -0.67690159270186013),
    (300.0, 300.0, 280.0, -5.5959150173201636e-31, -69.658101012453413),
    (3.0, 3.0, 2.0**-30, -0.4350506422966776, -1.0419443470830625),
)
"""``k, mu1, mu2`` and the logarithms of both tails, from sums with 80 digits."""


@pytest.mark.optimised
def test_small_tails_of_skellam() -> None:
    k, mu1, mu2, log_cdf, log_sf = np.array(SKELLAM_TAILS).T
    with enable_x64(True):
        # The logarithm of the larger tail is the smaller one, exp(-L), known to about L ulp.
        np.testing.assert_allclose(stats.skellam.logcdf(k, mu1, mu2), log_cdf, 5e-13)
        np.testing.assert_allclose(stats.skellam.logsf(k, mu1, mu2), log_sf, 5e-13)
        many = np.repeat(k, 4096)
        batched = jit(stats.skellam.cdf)(many, *(np.repeat(m, 4096) for m in (mu1, mu2)))
        np.testing.assert_allclose(batched[::4096], np.exp(log_cdf), 5e-14)
        far = [(-1e6, 1e6, 1.0), (-1e6, 1e8, 3.0)]
        assert np.isfinite([float(stats.skellam.logcdf(*xs)) for xs in far]).all()


SAMPLED = [*PARAMETERS.items()]


@pytest.mark.rotate()
@pytest.mark.parametrize(("name", "shapes"), SAMPLED, ids=_numbered(SAMPLED))
def test_samples(name: str, shapes: tuple[float, ...]) -> None:
    """Shares of the samples below five quantiles are within 5 standard errors."""
    family, n = getattr(stats, name), 4000
    affine = (2.0,) if hasattr(family, "pmf") else AFFINE
    shapes = tuple(s if np.isfinite(s) else 9.0 for s in shapes)
    samples = np.asarray(family.rvs(random.key(3), *shapes, *affine, shape=(n,)))
    assert samples.shape == (n,) and samples.dtype == np.float32
    at = getattr(theirs, name).ppf([0.05, 0.3, 0.5, 0.8, 0.95], *shapes, *affine)
    p = getattr(theirs, name).cdf(at, *shapes, *affine)
    share = (samples[:, None] <= np.float32(at + 1e-6)).mean(0)
    assert (abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-3).all(), (share, p)


def test_shapes_and_dtypes_of_samples() -> None:
    key = random.key(0)
    assert stats.gamma.rvs(key, np.float32([1, 2, 3])).shape == (3,)
    assert stats.gamma.rvs(key, np.ones((3, 1)), shape=(3, 4)).shape == (3, 4)
    assert stats.norm.rvs(key, shape=5, dtype=np.float16).dtype == np.float16
    assert np.isnan(float(stats.norm.rvs(key, 0.0, -1.0)))
    again = jit(lambda k, a: stats.gamma.rvs(k, a, shape=(2,)))(key, 2.0)
    np.testing.assert_allclose(again, stats.gamma.rvs(key, 2.0, shape=(2,)), 1e-6)
    with pytest.raises(ValueError, match=r"gamma.rvs: parameters of shape \(3,\) do not broadcast"):
        stats.gamma.rvs(key, np.float32([1, 2, 3]), shape=(2,))
    with pytest.raises(ValueError, match=r"norm.rvs: dtype=int32 is not a floating-point dtype"):
        stats.norm.rvs(key, dtype=np.int32)
    with pytest.raises(TypeError, match=r"norm.rvs requires ndarray or scalar"):
        stats.norm.rvs(key, [1.0])


def test_keywords_and_broadcasting() -> None:
    x, scale = np.float32([[1], [2]]), np.float32([1, 2, 3])
    actual = stats.gamma.cdf(x, a=2.0, scale=scale)
    np.testing.assert_allclose(actual, theirs.gamma.cdf(x, 2.0, scale=scale), 1e-5)
    empty = inspect.Parameter.empty
    for function, parameters in (
        (stats.gamma.cdf, {"x": empty, "a": empty, "loc": 0, "scale": 1}),
        (stats.gumbel_r.ppf, {"p": empty, "loc": 0, "scale": 1}),
        (stats.poisson.entropy, {"mu": empty, "loc": 0}),
    ):
        signature = inspect.signature(function)
        assert {n: p.default for n, p in signature.parameters.items()} == parameters
        assert {p.annotation for p in signature.parameters.values()} == {"ArrayLike"}
        assert signature.return_annotation == "Array"
    assert "parameter, positive" in (stats.gamma.cdf.__doc__ or "")
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        stats.gamma.cdf(1.0)
    with pytest.raises(TypeError, match=r"pareto.sf requires ndarray or scalar"):
        stats.pareto.sf([1.0], 2.0)


def test_tails_beyond_the_smallest_number() -> None:
    with enable_x64(True):
        assert float(stats.norm.logsf(1e10)) == -5e19 - 0.0 or float(stats.norm.logsf(1e10)) < -4e19
        np.testing.assert_allclose(stats.t.sf(1e30, 3.0), theirs.t.sf(1e30, 3.0), 1e-12)
        np.testing.assert_allclose(stats.cauchy.logpdf(1e200), -2 * np.log(1e200) - np.log(np.pi))
        np.testing.assert_allclose(stats.truncnorm.logsf(40.0, 30.0, INF), -350.28, 1e-2)
        np.testing.assert_allclose(stats.gumbel_r.sf(700.0), np.exp(-700.0), 1e-12)


@pytest.mark.rotate()
@pytest.mark.parametrize("name", PARAMETERS)
def test_settings(name: str) -> None:
    """Functions are the same where implicit promotion is refused."""
    shapes, family = PARAMETERS[name], getattr(stats, name)
    density = family.logpmf if hasattr(family, "pmf") else family.logpdf
    for function in (density, family.cdf, family.ppf):
        check_call(function, np.float32([0.2, 0.5]), *shapes)
        check_call(
            function, np.float32([[0.2, 0.5]]), *[np.full((2, 1), s, np.float32) for s in shapes]
        )


@pytest.mark.parametrize("name", PARAMETERS)
def test_sizes_of_jaxprs(name: str) -> None:
    """A density has at most some hundreds of operations; the hypergeometric one has three."""
    shapes, family = PARAMETERS[name], getattr(stats, name)
    density = family.logpmf if hasattr(family, "pmf") else family.logpdf
    limit = 1700 if name == "hypergeom" else 620
    for function, most in ((density, limit), (family.cdf, 1200), (family.ppf, 1200)):
        size = len(make_jaxpr(function)(np.float32([0.5]), *shapes).eqns)
        assert size <= most, (function.__name__, size)
