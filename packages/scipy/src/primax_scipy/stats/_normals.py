"""Distributions derived from the normal distribution."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_numpy import random

from .._elementary import LOG_ROOT_TAU, ROOT_2, ROOT_HALF, choose
from ..special import erf, erfcx, erfinv, expn, log_ndtr, ndtr, ndtri
from ._continuous import Continuous, functions
from ._domains import POSITIVE, REAL
from ._logarithms import log_complement

_HALF_LOG_TAU_E: Final = LOG_ROOT_TAU + 0.5


def _log_normal_density(z: Any) -> Any:
    return -0.5 * lax.square(z) - LOG_ROOT_TAU


norm: Final = functions(
    Continuous(
        name="norm",
        title="normal distribution",
        symmetric=True,
        logpdf=_log_normal_density,
        cdf=ndtr,
        logcdf=log_ndtr,
        ppf=ndtri,
        mean=lambda one: 0.0,
        var=lambda one: 1.0,
        entropy=lambda one: _HALF_LOG_TAU_E,
        sample=random.normal,
    )
)


lognorm: Final = functions(
    Continuous(
        name="lognorm",
        title="lognormal distribution, of which ``s`` is the standard deviation of the logarithm",
        shapes={"s": POSITIVE},
        support=(0.0, math.inf),
        closed=False,
        logpdf=lambda x, s: _log_normal_density(lax.log(x) / s) - lax.log(s) - lax.log(x),
        cdf=lambda x, s: ndtr(lax.log(x) / s),
        sf=lambda x, s: ndtr(-lax.log(x) / s),
        logcdf=lambda x, s: log_ndtr(lax.log(x) / s),
        logsf=lambda x, s: log_ndtr(-lax.log(x) / s),
        ppf=lambda q, s: lax.exp(s * ndtri(q)),
        isf=lambda q, s: lax.exp(-s * ndtri(q)),
        mean=lambda s: lax.exp(0.5 * s * s),
        var=lambda s: lax.expm1(s * s) * lax.exp(s * s),
        entropy=lambda s: _HALF_LOG_TAU_E + lax.log(s),
        sample=lambda key, shape, dtype, s: lax.exp(s * random.normal(key, shape, dtype)),
    )
)


def _log_half_normal_tail(x: Any) -> Any:
    near = x < 0.5
    body = lax.log1p(-erf(choose(near, x, 0.0) * ROOT_HALF))
    return choose(near, body, log_ndtr(-choose(near, 1.0, x)) + math.log(2))


halfnorm: Final = functions(
    Continuous(
        name="halfnorm",
        title="half-normal distribution, of the absolute value of a normal variable",
        support=(0.0, math.inf),
        logpdf=lambda x: _log_normal_density(x) + math.log(2),
        cdf=lambda x: erf(x * ROOT_HALF),
        sf=lambda x: 2 * ndtr(-x),
        logsf=_log_half_normal_tail,
        ppf=lambda q: erfinv(q) * ROOT_2,
        isf=lambda q: -ndtri(0.5 * q),
        mean=lambda one: math.sqrt(2 / math.pi),
        var=lambda one: 1 - 2 / math.pi,
        entropy=lambda one: _HALF_LOG_TAU_E - math.log(2),
        sample=lambda key, shape, dtype: lax.abs(random.normal(key, shape, dtype)),
    )
)


# The inverse Gaussian distribution: G. Giner and G. K. Smyth, "statmod: probability calculations
# for the inverse Gaussian distribution", 2016


def _log_inverse_gaussian_density(x: Any, mu: Any) -> Any:
    distance = (x - mu) / mu
    # The square of the distance may overflow.
    return -LOG_ROOT_TAU - 1.5 * lax.log(x) - 0.5 * (distance * (distance / x))


def _inverse_gaussian_ends(x: Any, mu: Any) -> tuple[Any, Any]:
    """Arguments of the two normal tails, divided by the root of 2."""
    root = lax.sqrt(x)
    return (x / mu - 1) / root * ROOT_HALF, (x / mu + 1) / root * ROOT_HALF


def _log_inverse_gaussian_cdf(x: Any, mu: Any) -> Any:
    first, second = _inverse_gaussian_ends(x, mu)
    left = first < 0
    # Both summands have the factor exp(-first²).
    near = choose(left, first, 0.0)
    log = lax.log(0.5 * (erfcx(-near) + erfcx(second))) - near * near
    return choose(left, log, log_complement(_log_inverse_gaussian_sf(choose(left, mu, x), mu)))


def _log_inverse_gaussian_sf(x: Any, mu: Any) -> Any:
    first, second = _inverse_gaussian_ends(x, mu)
    left = first < 0
    at = choose(left, 0.0, first)
    log = lax.log(0.5 * _difference_of_tails(at, second, x)) - at * at
    near = choose(left, first, 0.0)
    below = 0.5 * lax.exp(-near * near) * (erfcx(-near) + erfcx(second))
    return choose(left, lax.log1p(-choose(left, below, 0.5)), log)


def _difference_of_tails(first: Any, second: Any, x: Any) -> Any:
    """``erfcx(first) - erfcx(second)``, by the asymptotic series for large arguments, in which the
    difference of the arguments is a factor."""
    far = first > 10
    w1, w2 = 1 / choose(far, first, 10.0), 1 / choose(far, second, 11.0)
    coefficients = [1.0]
    for k in range(1, 10):
        coefficients.append(coefficients[-1] * -(2 * k - 1) / 2)
    # The quotients (w1^n - w2^n) / (w1 - w2) by their recurrence, for odd n
    quotient: Any = lax.full_like(w1, 1)
    total = coefficients[0] * quotient
    power = w2
    for c in coefficients[1:]:
        for _ in range(2):
            quotient = quotient * w1 + power
            power = power * w2
        total = total + c * quotient
    # second - first is the root of 2 / x.
    series = total * (ROOT_2 / lax.sqrt(x)) * w1 * w2 / math.sqrt(math.pi)
    direct = erfcx(choose(far, 1.0, first)) - erfcx(choose(far, 2.0, second))
    return choose(far, series, choose(direct > 0, direct, float(np.finfo(np.float32).tiny)))


def _scaled_integral(y: Any) -> Any:
    """``exp(y) E1(y)``, by its continued fraction for large ``y``."""
    large = y > 30
    far = choose(large, y, 30.0)
    fraction: Any = far + 1
    for k in range(24, 0, -1):
        fraction = far + (2 * k - 1) - k * k / (far + (2 * k + 1) if k == 24 else fraction)
    near = choose(large, 1.0, y)
    return choose(large, 1 / fraction, lax.exp(near) * expn(1, near))


invgauss: Final = functions(
    Continuous(
        name="invgauss",
        title="inverse Gaussian distribution with mean ``mu``",
        shapes={"mu": POSITIVE},
        support=(0.0, math.inf),
        closed=False,
        logpdf=_log_inverse_gaussian_density,
        logcdf=_log_inverse_gaussian_cdf,
        logsf=_log_inverse_gaussian_sf,
        mean=lambda mu: mu,
        var=lambda mu: mu * mu * mu,
        entropy=lambda mu: _HALF_LOG_TAU_E + 1.5 * lax.log(mu) - 1.5 * _scaled_integral(2 / mu),
        sample=lambda key, shape, dtype, mu: random.wald(key, mu, shape, dtype),
    )
)


# The truncated normal distribution


def _log_mass(a: Any, b: Any) -> Any:
    """Logarithm of the normal probability of ``[a, b]``, computed in the lower tail."""
    flip = a + b > 0
    low, high = choose(flip, -b, a), choose(flip, -a, b)
    tail = high <= 0
    log_high = log_ndtr(choose(tail, high, -1.0))
    # For an unbounded interval the difference is -inf, and the complement 0.
    in_tail = log_high + log_complement(log_ndtr(choose(tail, low, -2.0)) - log_high)
    around = lax.log1p(-ndtr(choose(tail, -1.0, low)) - ndtr(-choose(tail, 1.0, high)))
    # Beyond the range of squares there is no mass.
    return choose(tail, choose(log_high > -math.inf, in_tail, -math.inf), around)


def _log_truncated(x: Any, a: Any, b: Any) -> Any:
    return _log_normal_density(x) - _log_mass(a, b)


def _density_at(x: Any) -> tuple[Any, Any]:
    """The normal density and its product with ``x``, both 0 at infinity."""
    finite = lax.abs(x) < math.inf
    at = choose(finite, x, 0.0)
    density = choose(finite, lax.exp(_log_normal_density(at)), 0.0)
    return density, at * density


def _truncated_mean(a: Any, b: Any) -> Any:
    return (_density_at(a)[0] - _density_at(b)[0]) / lax.exp(_log_mass(a, b))


def _truncated_variance(a: Any, b: Any) -> Any:
    mass = lax.exp(_log_mass(a, b))
    mean = _truncated_mean(a, b)
    return 1 + (_density_at(a)[1] - _density_at(b)[1]) / mass - mean * mean


def _truncated_entropy(a: Any, b: Any) -> Any:
    log = _log_mass(a, b)
    return _HALF_LOG_TAU_E + log + 0.5 * (_density_at(a)[1] - _density_at(b)[1]) / lax.exp(log)


def _truncated_quantile(q: Any, a: Any, b: Any) -> Any:
    """The quantile by the tail in which the interval begins; kept inside of the interval."""
    left = a < 0
    # q times the mass, added to the probability below a or subtracted from that above a
    mass = lax.exp(_log_mass(a, b))
    # The branch that is not selected gets a probability with finite derivatives.
    below = ndtri(choose(left, ndtr(a) + q * mass, 0.5))
    above = -ndtri(choose(left, 0.5, ndtr(-a) - q * mass))
    return lax.clamp(a, choose(left, below, above), b)


def _truncated_tail(x: Any, a: Any, b: Any, lower: bool) -> Any:
    """Logarithm of a tail, by its complement if the tail is large."""
    total = _log_mass(a, b)
    small, other = _log_mass(a, x) - total, _log_mass(x, b) - total
    small, other = (small, other) if lower else (other, small)
    return choose(small < -0.5, small, log_complement(choose(other < 0, other, 0.0)))


truncnorm: Final = functions(
    Continuous(
        name="truncnorm",
        title="normal distribution truncated to ``[a, b]`` in standard units",
        shapes={"a": REAL, "b": REAL},
        support=lambda a, b: (a, b),
        logpdf=_log_truncated,
        logcdf=lambda x, a, b: _truncated_tail(x, a, b, True),
        logsf=lambda x, a, b: _truncated_tail(x, a, b, False),
        cdf=lambda x, a, b: lax.exp(_truncated_tail(x, a, b, True)),
        sf=lambda x, a, b: lax.exp(_truncated_tail(x, a, b, False)),
        ppf=_truncated_quantile,
        isf=lambda q, a, b: -_truncated_quantile(q, -b, -a),
        valid=lambda a, b: a < b,
        mean=_truncated_mean,
        var=_truncated_variance,
        entropy=_truncated_entropy,
    )
)
