"""Extreme value distributions: Gumbel, Weibull, Rayleigh."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_numpy import random

from .. import _double_words as double_words
from .._elementary import bounded, choose, is_double
from ..special import xlogy
from ._continuous import Continuous, functions
from ._domains import POSITIVE
from ._powers import power

_EULER: Final = float(np.euler_gamma)


def _exp_of_minus(value: Any, exact: double_words.Pair) -> Any:
    """``exp(-value)`` of a number with the logarithm ``exact``.

    The exponential would enlarge the relative rounding error of the number by ``value``.
    """
    return double_words.exp_with(-value, value * double_words.error_of(value, exact))


def _gumbel_tail(z: Any) -> Any:
    """``exp(-exp(z))``; where the inner exponential would overflow, with derivative 0."""
    z = bounded(z, -math.inf, 700.0 if is_double(z) else 80.0)
    return _exp_of_minus(lax.exp(z), (z, lax.full_like(z, 0.0)))


def _weibull_tail(x: Any, c: Any) -> Any:
    """``exp(-x**c)``."""
    usual = (x > (1e-300 if is_double(x) else 1e-37)) & (x < math.inf)
    log = double_words.log(choose(usual, x, 1.0))
    # Beyond, the power might overflow, and its derivative be infinite times 0.
    beyond = c * log[0] > 9.0
    power = lax.pow(choose(beyond, 1.0, x), c)
    return choose(beyond, 0.0, _exp_of_minus(power, double_words.times(log, c)))


def _rayleigh_tail(x: Any) -> Any:
    """``exp(-x**2 / 2)``."""
    x = bounded(x, 0.0, 1e3)
    square = lax.square(x)
    head, rest = double_words.product(x, x)
    return double_words.exp_with(-0.5 * square, 0.5 * ((square - head) - rest))


gumbel_r: Final = functions(
    Continuous(
        name="gumbel_r",
        title="Gumbel distribution of maxima",
        logpdf=lambda z: -z - lax.exp(-z),
        cdf=lambda z: _gumbel_tail(-z),
        logcdf=lambda z: -lax.exp(-z),
        quantile_of_log=lambda log: -lax.log(-log),
        mean=lambda one: _EULER,
        var=lambda one: math.pi**2 / 6,
        entropy=lambda one: 1 + _EULER,
        sample=random.gumbel,
        first={"ppf": "p", "isf": "p"},
    )
)

gumbel_l: Final = functions(
    Continuous(
        name="gumbel_l",
        title="Gumbel distribution of minima",
        logpdf=lambda z: z - lax.exp(z),
        sf=_gumbel_tail,
        logsf=lambda z: -lax.exp(z),
        quantile_of_log=lambda log: lax.log(-log),
        mean=lambda one: -_EULER,
        var=lambda one: math.pi**2 / 6,
        entropy=lambda one: 1 + _EULER,
        sample=lambda key, shape, dtype: -random.gumbel(key, shape, dtype),
        first={"ppf": "p", "isf": "p"},
    )
)


def _log_weibull_density(x: Any, c: Any) -> Any:
    return lax.log(c) + xlogy(c - 1, x) - lax.pow(x, c)


def _weibull_density_at_zero(x: Any, c: Any) -> Any:
    return c * power(x, c - 1) * lax.exp(-power(x, c))


def _weibull_mean(c: Any) -> Any:
    return lax.exp(lax.lgamma(1 + 1 / c))


def _weibull_variance(c: Any) -> Any:
    log = lax.lgamma(1 + 1 / c)
    return lax.exp(2 * log) * lax.expm1(lax.lgamma(1 + 2 / c) - 2 * log)


def _weibull_entropy(c: Any) -> Any:
    return _EULER * (1 - 1 / c) - lax.log(c) + 1


weibull_min: Final = functions(
    Continuous(
        name="weibull_min",
        title="Weibull distribution on ``[loc, inf)``",
        shapes={"c": POSITIVE},
        support=(0.0, math.inf),
        logpdf=_log_weibull_density,
        pdf_at_ends=_weibull_density_at_zero,
        sf=_weibull_tail,
        logsf=lambda x, c: -lax.pow(x, c),
        quantile_of_log=lambda log, c: lax.pow(-log, 1 / c),
        mean=_weibull_mean,
        var=_weibull_variance,
        entropy=_weibull_entropy,
        sample=lambda key, shape, dtype, c: lax.pow(random.exponential(key, shape, dtype), 1 / c),
    )
)

weibull_max: Final = functions(
    Continuous(
        name="weibull_max",
        title="Weibull distribution of maxima on ``(-inf, loc]``",
        shapes={"c": POSITIVE},
        support=(-math.inf, 0.0),
        logpdf=lambda x, c: _log_weibull_density(-x, c),
        pdf_at_ends=lambda x, c: _weibull_density_at_zero(-x, c),
        cdf=lambda x, c: _weibull_tail(-x, c),
        logcdf=lambda x, c: -lax.pow(-x, c),
        quantile_of_log=lambda log, c: -lax.pow(-log, 1 / c),
        mean=lambda c: -_weibull_mean(c),
        var=_weibull_variance,
        entropy=_weibull_entropy,
        sample=lambda key, shape, dtype, c: -lax.pow(random.exponential(key, shape, dtype), 1 / c),
    )
)

rayleigh: Final = functions(
    Continuous(
        name="rayleigh",
        title="Rayleigh distribution, of the length of a normal vector in two dimensions",
        support=(0.0, math.inf),
        logpdf=lambda x: lax.log(x) - 0.5 * lax.square(x),
        pdf_at_ends=lambda x: x * lax.exp(-0.5 * lax.square(x)),
        sf=_rayleigh_tail,
        logsf=lambda x: -0.5 * lax.square(x),
        quantile_of_log=lambda log: lax.sqrt(-2 * log),
        mean=lambda one: math.sqrt(math.pi / 2),
        var=lambda one: 2 - math.pi / 2,
        entropy=lambda one: 1 + 0.5 * _EULER - 0.5 * math.log(2),
        sample=lambda key, shape, dtype: lax.sqrt(2 * random.exponential(key, shape, dtype)),
    )
)
