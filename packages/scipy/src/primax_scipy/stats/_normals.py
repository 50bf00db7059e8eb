"""Distributions derived from the normal distribution."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_numpy import random

from .. import _double_words as double_words
from .._elementary import LOG_ROOT_TAU, ROOT_2, ROOT_HALF, chebyshev, choose, is_double
from ..special import erf, erfcx, erfinv, expn, log_ndtr, ndtr, ndtri
from ..special._operands import differentiable
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


def _log_lognormal_density(x: Any, s: Any) -> Any:
    return _log_normal_density(lax.log(x) / s) - lax.log(s) - lax.log(x)


def _lognormal_density(x: Any, s: Any, _: Any) -> Any:
    return lax.exp(_log_lognormal_density(x, s))


def _by_deviation(x: Any, s: Any, _: Any) -> Any:
    z = lax.log(x) / s
    return -(z / s) * lax.exp(_log_normal_density(z))


@differentiable(_lognormal_density, _by_deviation)
def _lognormal_cdf(x: Any, s: Any) -> Any:
    return _normal_tail(x, s, 1)


@differentiable(
    lambda x, s, _: -_lognormal_density(x, s, _), lambda x, s, _: -_by_deviation(x, s, _)
)
def _lognormal_sf(x: Any, s: Any) -> Any:
    return _normal_tail(x, s, -1)


def _normal_tail(x: Any, s: Any, sign: int) -> Any:
    """``ndtr(sign * log(x) / s)``, and the change by the rounding error of its argument."""
    z, error = double_words.quotient(double_words.log(x), s)
    change = choose(lax.abs(z) < 40, error * lax.exp(_log_normal_density(z)), 0.0)
    return ndtr(sign * z) + sign * change


lognorm: Final = functions(
    Continuous(
        name="lognorm",
        title="lognormal distribution, of which ``s`` is the standard deviation of the logarithm",
        shapes={"s": POSITIVE},
        support=(0.0, math.inf),
        closed=False,
        logpdf=_log_lognormal_density,
        cdf=_lognormal_cdf,
        sf=_lognormal_sf,
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


def _bell(x: Any, mu: Any) -> Any:
    """``exp(-(x / mu - 1)² / (2 x))``, with the exponent as a pair."""
    u, error = double_words.quotient(double_words.total(x, -mu), mu)
    near = lax.abs(u) < 1e15
    far = -0.5 * (choose(near, 1.0, u) * (choose(near, 1.0, u) / x))  # whose error has no effect
    u, error = choose(near, u, 1.0), choose(near, error, 0.0)
    head, rest = double_words.product(u, u)
    square = double_words.ordered_total(head, rest + 2 * u * error)
    exponent, error = double_words.quotient(square, -2 * x)
    exponent = choose(near, exponent, far)
    return double_words.exp((exponent, choose(near & (exponent > -1e3), error, 0.0)))


def _by_argument(x: Any, mu: Any, _: Any) -> Any:
    return lax.exp(_log_inverse_gaussian_density(x, mu))


def _by_mean(x: Any, mu: Any, _: Any) -> Any:
    """Derivative of the lower tail, ``-2 / mu² exp(2 / mu) ndtr(-second)``."""
    second = _inverse_gaussian_ends(x, mu)[1]
    return -lax.exp(-lax.square(_inverse_gaussian_ends(x, mu)[0])) * erfcx(second) / mu / mu


@differentiable(_by_argument, _by_mean)
def _inverse_gaussian_cdf(x: Any, mu: Any) -> Any:
    return _inverse_gaussian_tail(x, mu, True)


@differentiable(lambda x, mu, _: -_by_argument(x, mu, _), lambda x, mu, _: -_by_mean(x, mu, _))
def _inverse_gaussian_sf(x: Any, mu: Any) -> Any:
    return _inverse_gaussian_tail(x, mu, False)


def _inverse_gaussian_tail(x: Any, mu: Any, lower: bool) -> Any:
    """The tail on the side of the mean where ``x`` is, or its complement."""
    first, second = _inverse_gaussian_ends(x, mu)
    left = first < 0
    below = erfcx(-choose(left, first, 0.0)) + erfcx(second)
    above = _difference_of_tails(choose(left, 0.0, first), second, x)
    tail = 0.5 * _bell(x, mu) * choose(left, below, above)
    return choose(left == lower, tail, 1 - tail)


_SLOPE: Final = 18, (
    0.9796985100422032, -0.18790764353210776, 0.006348825822369637, 0.021123812622714695,
    -0.014421338873070072, 0.006582830245585335, -0.002437514876969108, 0.0007663186186523413,
    -0.00020296690642876468, 4.1671610600719944e-05, -3.980313464512028e-06,
    -1.8911503021751676e-06, 1.5447299825356477e-06, -7.407052178418517e-07, 2.9277961090103e-07,
    -1.036160767656113e-07, 3.397471979908103e-08, -1.0508015288955159e-08,
    3.0990709385165316e-09, -8.778426173380868e-10, 2.4004860427527527e-10,
    -6.361223393275254e-11, 1.6384462170332653e-11, -4.111576645438699e-12,
    1.0072075280136166e-12, -2.412548274368921e-13, 5.658305306670075e-14,
    -1.3009915993649628e-14, 2.935614305906926e-15, -6.50676442183777e-16, 1.4178617856491428e-16,
    -3.039693434660448e-17,
)  # fmt: skip
"""``(1 + t)²`` times the negative derivative of ``erfcx`` for ``t`` from 0 to 4: the number of
Chebyshev coefficients for single precision, and the coefficients, from mpmath's values."""


def _difference_of_tails(first: Any, second: Any, x: Any) -> Any:
    """``erfcx(first) - erfcx(second)``, for close arguments by the Taylor series at their mean."""
    h = ROOT_HALF / lax.sqrt(x)  # half of the difference of the arguments
    middle = 0.5 * (first + second)
    close = h < 0.1 * lax.max(middle, lax.full_like(middle, 1.0))
    center, h = choose(close, middle, 1.0), choose(close, h, 0.05)
    low = center < 4
    series = choose(
        low, _odd_terms_by_recurrence(choose(low, center, 0.5), h),
        _odd_terms_by_fraction(choose(low, 4.0, center), h),
    )  # fmt: skip
    direct = erfcx(choose(close, 1.0, first)) - erfcx(choose(close, 2.0, second))
    smallest = float(np.finfo(np.float32).tiny)
    return choose(close, series, lax.max(direct, lax.full_like(direct, smallest)))


def _odd_terms_by_recurrence(center: Any, h: Any) -> Any:
    """``-2`` times the odd terms of the Taylor series of ``erfcx``: for centers from 0 to 4, by
    the recurrence of its derivatives, DLMF 7.10.3."""
    last = erfcx(center)
    slope = chebyshev(0.5 * center - 1, _SLOPE) / lax.square(1 + center)
    coefficient, power, total = -slope, h, -slope * h
    for n in range(1, 11 if is_double(h) else 5):
        last, coefficient = coefficient, (2 / (n + 1)) * (last + center * coefficient)
        power = power * h
        total = total + coefficient * power if n % 2 == 0 else total
    return -2 * total


def _odd_terms_by_fraction(center: Any, h: Any) -> Any:
    """The same for centers from 4 on. Quotients of repeated integrals of ``erfc`` are the tails
    of a continued fraction, DLMF 7.18.7."""
    count = 24 if is_double(h) else 8
    ratio = 1 / (center + lax.sqrt(center * center + 2 * count))
    factors = []
    for n in reversed(range(1, count)):
        ratio = 0.5 / (center + (n + 1) * ratio)
        factors.append(2 * h * ratio)
    factors.reverse()
    total: Any = lax.full_like(h, 1)
    for n in reversed(range(1, count - 2, 2)):
        total = 1 + factors[n] * factors[n + 1] * total
    return 2 * erfcx(center) * factors[0] * total


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
        cdf=_inverse_gaussian_cdf,
        sf=_inverse_gaussian_sf,
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
