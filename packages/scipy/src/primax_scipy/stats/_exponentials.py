"""Distributions of exponential and logistic form, and the uniform and triangular ones."""

from __future__ import annotations

import math
from typing import Any, Final

from primax_core import lax
from primax_numpy import random

from .._elementary import choose
from ..special import expit, logit
from ._continuous import Continuous, functions
from ._domains import POSITIVE, PROBABILITY

uniform: Final = functions(
    Continuous(
        name="uniform",
        title="uniform distribution on ``[loc, loc + scale]``",
        support=(0.0, 1.0),
        logpdf=lambda x: 0.0 * x,
        cdf=lambda x: x,
        sf=lambda x: 1 - x,
        ppf=lambda q: q,
        isf=lambda q: 1 - q,
        mean=lambda one: 0.5,
        var=lambda one: 1 / 12,
        entropy=lambda one: 0.0,
        sample=random.uniform,
    )
)


def _log_expit(z: Any) -> Any:
    below = z < 0
    return choose(below, z, 0.0) - lax.log1p(lax.exp(choose(below, z, -z)))


def _log_logistic_density(z: Any) -> Any:
    size = choose(z < 0, -z, z)
    return -size - 2 * lax.log1p(lax.exp(-size))


logistic: Final = functions(
    Continuous(
        name="logistic",
        title="logistic distribution",
        symmetric=True,
        logpdf=_log_logistic_density,
        cdf=expit,
        logcdf=_log_expit,
        ppf=logit,
        mean=lambda one: 0.0,
        var=lambda one: math.pi**2 / 3,
        entropy=lambda one: 2.0,
        sample=random.logistic,
        first={"ppf": "x", "isf": "x"},
    )
)

expon: Final = functions(
    Continuous(
        name="expon",
        title="exponential distribution on ``[loc, inf)`` with mean ``loc + scale``",
        support=(0.0, math.inf),
        logpdf=lambda x: -x,
        logsf=lambda x: -x,
        quantile_of_log=lambda log: -log,
        mean=lambda one: 1.0,
        var=lambda one: 1.0,
        entropy=lambda one: 1.0,
        sample=random.exponential,
    )
)


def _log_laplace_cdf(z: Any) -> Any:
    left = z <= 0
    half = 0.5 * lax.exp(choose(left, -1.0, -z))
    return choose(left, z - math.log(2), lax.log1p(-half))


def _laplace_cdf(z: Any) -> Any:
    left = z <= 0
    half = 0.5 * lax.exp(choose(left, z, -z))
    return choose(left, half, 1 - half)


def _laplace_quantile(q: Any) -> Any:
    left = q < 0.5
    log = lax.log(2 * choose(left, q, 1 - q))
    return choose(left, log, -log)


laplace: Final = functions(
    Continuous(
        name="laplace",
        title="Laplace distribution (two-sided exponential)",
        symmetric=True,
        logpdf=lambda z: -lax.abs(z) - math.log(2),
        cdf=_laplace_cdf,
        logcdf=_log_laplace_cdf,
        ppf=_laplace_quantile,
        mean=lambda one: 0.0,
        var=lambda one: 2.0,
        entropy=lambda one: 1 + math.log(2),
        sample=random.laplace,
    )
)


# The triangular distribution


def _log_triangle(x: Any, c: Any) -> Any:
    left = x < c
    return lax.log(2 * choose(left, x, 1 - x)) - lax.log(choose(left, c, choose(c < 1, 1 - c, 1.0)))


def _triangle_cdf(x: Any, c: Any) -> Any:
    left = x < c
    near = lax.square(x) / choose(left, c, 1.0)
    rest = (x - c) * ((1 - c) + (1 - x)) / choose(left, 1.0, choose(c < 1, 1 - c, 1.0))
    return choose(left, near, c + rest)


def _triangle_sf(x: Any, c: Any) -> Any:
    left = x < c
    near = (1 - c) + (c - x) * (c + x) / choose(left, c, 1.0)
    return choose(left, near, lax.square(1 - x) / choose(left, 1.0, choose(c < 1, 1 - c, 1.0)))


def _triangle_quantile(q: Any, c: Any) -> Any:
    left = q < c
    near = lax.sqrt(choose(left, q * c, 1.0))
    far = 1 - lax.sqrt(choose(left, 1.0, (1 - q) * (1 - c)))
    return choose(left, near, choose(c < 1, far, lax.sqrt(q)))


def _log_triangle_at(x: Any, c: Any) -> Any:
    # At the peak of a triangle with c = 1 the density is 2.
    return choose((x == 1) & (c == 1), math.log(2.0), _log_triangle(x, c))


triang: Final = functions(
    Continuous(
        name="triang",
        title="triangular distribution on ``[loc, loc + scale]`` with its peak at the part ``c``",
        shapes={"c": PROBABILITY},
        support=(0.0, 1.0),
        logpdf=_log_triangle_at,
        cdf=_triangle_cdf,
        sf=_triangle_sf,
        ppf=_triangle_quantile,
        isf=lambda q, c: 1 - _triangle_quantile(q, 1 - c),
        mean=lambda c: (1 + c) / 3,
        var=lambda c: (1 - c + c * c) / 18,
        entropy=lambda c: 0.5 - math.log(2.0) + 0 * c,
    )
)

# The log-uniform distribution


def _log_ratio(a: Any, b: Any) -> Any:
    return lax.log(b) - lax.log(a)


def _log_quotient(a: Any, b: Any) -> Any:
    """``log(b / a)`` for ``b >= a``, accurate if they are close."""
    close = b < 2 * a
    return choose(close, lax.log1p(choose(close, (b - a) / a, 0.0)), lax.log(b / a))


def _log_uniform_variance(a: Any, b: Any) -> Any:
    mean = (b - a) / _log_ratio(a, b)
    return 0.5 * (b + a) * mean - mean * mean


loguniform: Final = functions(
    Continuous(
        name="loguniform",
        title="log-uniform (reciprocal) distribution on ``[a, b]``",
        shapes={"a": POSITIVE, "b": POSITIVE},
        support=lambda a, b: (a, b),
        logpdf=lambda x, a, b: -lax.log(x) - lax.log(_log_ratio(a, b)),
        cdf=lambda x, a, b: _log_quotient(a, x) / _log_ratio(a, b),
        sf=lambda x, a, b: _log_quotient(x, b) / _log_ratio(a, b),
        ppf=lambda q, a, b: a * lax.exp(q * _log_ratio(a, b)),
        isf=lambda q, a, b: b * lax.exp(-q * _log_ratio(a, b)),
        valid=lambda a, b: (a < b) & (b < math.inf),
        mean=lambda a, b: (b - a) / _log_ratio(a, b),
        var=_log_uniform_variance,
        entropy=lambda a, b: 0.5 * (lax.log(a) + lax.log(b)) + lax.log(_log_ratio(a, b)),
    )
)
