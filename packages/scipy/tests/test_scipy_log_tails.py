"""Logarithms of tails that underflow, and tails of the skew normal distribution, against values of
mpmath with 40 digits."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import enable_x64, grad, jit
from primax_scipy import stats

# All arguments are numbers of float32.
EXACT = [
    ("gamma", "logsf", (900.0, 3.0), -887.0861354335151),
    ("gamma", "logcdf", (5000.0, 10000.0), -1936.3029753315975),
    ("chi2", "logsf", (2500.0, 7.0), -1233.371726127779),
    ("invgamma", "logcdf", (0.0009765625, 4.5), -1002.1901647820945),
    ("poisson", "logsf", (500.0, 3.0), -2070.136313986432),
    ("poisson", "logcdf", (3.0, 1500.0), -1479.85009764218),
    ("beta", "logcdf", (2.0**-60, 30.0, 2.0), -1244.2309378034165),
    ("beta", "logsf", (0.9990234375, 2.0, 300.0), -2073.735405207175),
    ("binom", "logsf", (450.0, 500.0, 0.0078125), -2031.1310233556328),
    ("binom", "logcdf", (20.0, 900.0, 0.875), -1739.0763104540881),
    ("nbinom", "logsf", (3000.0, 4.5, 0.5), -2056.987198463747),
    ("t", "logcdf", (-60.0, 900.0), -728.4561794828612),
    ("f", "logsf", (90.0, 20.0, 900.0), -455.73399501699896),
    ("skewnorm", "logcdf", (-20.0, 1.5), -658.7229558136027),
    ("skewnorm", "logcdf", (-5.25, 4.0), -242.96843053036612),
    ("skewnorm", "cdf", (0.25, 40.0), 0.19741265136584746),
]
IDS = [f"{name}.{function}-{i}" for i, (name, function, *_) in enumerate(EXACT)]


@pytest.mark.rotate()
@pytest.mark.parametrize("double", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize("case", EXACT, ids=IDS)
def test_values_far_in_tails(case, double) -> None:
    name, function, operands, expected = case
    dtype = np.float64 if double else np.float32
    with enable_x64(double):
        fun = getattr(getattr(stats, name), function)
        value = jit(fun)(*map(dtype, operands))
    assert value.dtype == dtype
    # The tail of skewnorm is a quadrature.
    ulps = 200 if name == "skewnorm" and double else 5
    assert abs(float(value) - expected) < ulps * np.finfo(dtype).eps * abs(expected)


@pytest.mark.rotate()
@pytest.mark.parametrize("case", EXACT, ids=IDS)
def test_derivatives_far_in_tails(case) -> None:
    """Derivatives with respect to the last parameter, against central differences."""
    name, function, operands, _ = case
    family = getattr(stats, name)
    *rest, last = operands

    def of_last(v):
        return getattr(family, function)(*rest, v)

    step = 1e-5 * abs(last)
    with enable_x64(True):
        slope = float(grad(of_last)(last))
        difference = float(of_last(last + step) - of_last(last - step)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("double", [False, True], ids=["float32", "float64"])
def test_tails_of_the_skew_normal_distribution_do_not_cancel(double) -> None:
    x, a, expected = (-5.25, 4.0, 3.021004303714205e-106) if double else (-2.0, 4.0, None)
    dtype = np.float64 if double else np.float32
    with enable_x64(double):
        lower = stats.skewnorm.cdf(dtype(x), dtype(a))
        upper = stats.skewnorm.sf(dtype(-x), dtype(-a))
        log = stats.skewnorm.logcdf(dtype(x), dtype(a))
    assert lower == upper > 0
    np.testing.assert_allclose(float(log), np.log(float(lower)), rtol=1e-6)
    if expected is not None:
        np.testing.assert_allclose(float(lower), expected, rtol=1e-10)  # mpmath


def test_quantiles_of_small_probabilities_in_single_precision() -> None:
    """The logarithm of a quotient loses fewer digits than the difference of logarithms."""
    q, a = np.float32(1e-30), np.float32(0.5)
    x = stats.gamma.ppf(q, a)
    # P(1/2, x) is 2 sqrt(x / π) for small x: this quantile, 8e-61, underflows.
    assert 0 <= float(x) < 1e-37
    q = np.float32(1e-15)
    expected = float(q) ** 2 * np.pi / 4
    np.testing.assert_allclose(float(stats.gamma.ppf(q, a)), expected, rtol=1e-6)
