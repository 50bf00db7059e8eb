"""The skew normal distribution: A. Azzalini, "A class of distributions which includes the normal
ones", 1985. All values come from one integral of positive factors, so that tails do not cancel."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import typeof
from primax_numpy import random

from .._elementary import (
    LOG_ROOT_TAU,
    ROOT_HALF,
    bounded,
    choose,
    exp_of_sum,
    halves,
    is_double,
)
from ..special import erf, erfcx, log_ndtr, ndtr
from ._continuous import Continuous, functions
from ._domains import FINITE
from ._logarithms import log_of

_LOG_2: Final = math.log(2)


def _scaled_tail(y: Any, a: Any) -> Any:
    """``exp((1 + a²) y² / 2)`` times the CDF at ``-y``, for ``y >= 0`` and ``a >= 0``.

    With ``c = 1 + a²`` and ``t = -y - u / sqrt(c)`` in the integral of ``2 φ(t) Φ(a t)``, it is
    ``1 / sqrt(2 π c)`` times the integral of
    ``exp(-u² / 2 - sqrt(c) y u) erfcx(a (y + u / sqrt(c)) / sqrt(2))`` over the positive numbers.
    Gauss-Legendre quadrature ends where the exponential function is negligible.
    """
    last, count = (40.0, 32) if is_double(y) else (18.0, 20)
    root = lax.sqrt(1 + lax.square(bounded(a, 0.0, 1e9)))
    rate = bounded(root * y, 0.0, 1e9)
    length = 2 * last / (rate + lax.sqrt(lax.square(rate) + 2 * last))
    slope, start = ROOT_HALF * (a / root), ROOT_HALF * bounded(a * y, 0.0, 1e9)
    nodes, weights = np.polynomial.legendre.leggauss(count)
    dtype = typeof(y).dtype

    def add(total: Any, rule: Any) -> Any:
        node, weight = rule
        u = length * node
        value = lax.exp(-u * (0.5 * u + rate)) * erfcx(start + slope * u)
        return total + weight * value, None

    rule = ((0.5 * nodes + 0.5).astype(dtype), (0.5 * weights).astype(dtype))
    total, _ = lax.scan(add, lax.full_like(y, 0.0), rule)
    return total * length * (1 / math.sqrt(2 * math.pi)) / root


def _bell(x: Any) -> Any:
    head, rest = halves(x)
    return exp_of_sum(-0.5 * (head * head), -0.5 * (rest * (head + x)))


def _bells(y: Any, a: Any) -> Any:
    """``exp(-(1 + a²) y² / 2)``, with squares and the product ``a y`` computed to extra
    precision."""
    product = a * y
    few = product < 60
    y, a = choose(few, y, 0.0), choose(few, a, 0.0)
    product = choose(few, product, 60.0)
    (a1, a2), (y1, y2) = halves(a), halves(y)
    lost = ((a1 * y1 - a * y) + (a1 * y2 + a2 * y1)) + a2 * y2
    return choose(few, _bell(y) * _bell(product) * (1 - product * lost), 0.0)


def _mirrored_tail(y: Any, a: Any) -> Any:
    """The CDF at ``-y`` for ``y >= 0`` and ``a >= 0``."""
    y = bounded(y, 0.0, 60.0)
    return _scaled_tail(y, a) * _bells(y, a)


def _log_mirrored_tail(y: Any, a: Any) -> Any:
    return lax.log(_scaled_tail(y, a)) - 0.5 * (lax.square(y) + lax.square(a * y))


def _slopes(x: Any, a: Any) -> tuple[Any, Any]:
    """Logarithms of the density and of minus the derivative of the CDF by ``a``."""
    more = 1 + lax.square(a)
    return (
        _log_density(x, a),
        -0.5 * lax.square(x) * more - lax.log(math.pi * more),
    )


@custom_jvp
def _cdf(x: Any, a: Any) -> Any:
    # F(x, a) - F(-x, a) is erf(x / sqrt(2)), and F(x, -a) is 1 - F(-x, a).
    size = lax.abs(x)
    tail = _mirrored_tail(size, lax.abs(a))
    upper = 2 * ndtr(-size) - tail
    middle = erf(size * ROOT_HALF) + tail
    return choose(a < 0, choose(x < 0, upper, 1 - tail), choose(x < 0, tail, middle))


@_cdf.defjvp
def _cdf_jvp(primals, tangents):
    (x, a), (tx, ta) = primals, tangents
    by_x, by_a = _slopes(x, a)
    return _cdf(x, a), tx * lax.exp(by_x) - ta * lax.exp(by_a)


@custom_jvp
def _log_cdf(x: Any, a: Any) -> Any:
    left = x <= 0
    size = choose(left, -x, 0.0)
    tail = _log_mirrored_tail(size, lax.abs(a))
    both = _LOG_2 + log_ndtr(-size)
    upper = both + lax.log1p(-lax.exp(tail - both))
    right = choose(left, 1.0, x)
    inner = log_of(_cdf(right, a), _cdf(-right, -a))
    return choose(left, choose(a < 0, upper, tail), inner)


@_log_cdf.defjvp
def _log_cdf_jvp(primals, tangents):
    (x, a), (tx, ta) = primals, tangents
    out = _log_cdf(x, a)
    by_x, by_a = _slopes(x, a)
    return out, tx * lax.exp(by_x - out) - ta * lax.exp(by_a - out)


def _log_density(x: Any, a: Any) -> Any:
    return -0.5 * lax.square(x) + log_ndtr(a * x) + (_LOG_2 - LOG_ROOT_TAU)


def _skewness_parameter(a: Any) -> Any:
    return a / lax.sqrt(1 + a * a) * math.sqrt(2 / math.pi)


def _sample(key: Any, shape: Any, dtype: Any, a: Any) -> Any:
    first, second = random.split(key)
    x, y = random.normal(first, shape, dtype), random.normal(second, shape, dtype)
    return (a * lax.abs(x) + y) / lax.sqrt(1 + a * a)


skewnorm: Final = functions(
    Continuous(
        name="skewnorm",
        title="skew normal distribution with density ``2 φ(x) Φ(a x)``",
        shapes={"a": FINITE},
        logpdf=_log_density,
        cdf=_cdf,
        sf=lambda x, a: _cdf(-x, -a),
        logcdf=_log_cdf,
        logsf=lambda x, a: _log_cdf(-x, -a),
        mean=_skewness_parameter,
        var=lambda a: 1 - lax.square(_skewness_parameter(a)),
        sample=_sample,
    )
)
