"""Exponential distribution on ``[loc, inf)``, with mean ``loc + scale``."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array

from ._arguments import distribution_function, inside, together


@distribution_function
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Log-density; ``-inf`` below ``loc``."""
    x, loc, scale = together("expon.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return inside(x >= loc, -z - lax.log(scale), x)


@distribution_function
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density.

    >>> float(pdf(0.0))
    1.0
    """
    return lax.exp(logpdf(x, loc, scale))


@distribution_function
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """CDF: probability of a value up to ``x``."""
    x, loc, scale = together("expon.cdf", x, loc, scale)
    return inside(x >= loc, -lax.expm1((loc - x) / scale), x, 0.0)


@distribution_function
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of :func:`cdf`."""
    x, loc, scale = together("expon.logcdf", x, loc, scale)
    # log(1 - exp(-z)): Maechler, 2012
    z = lax.select(x > loc, (x - loc) / scale, lax.full_like(x, 1))
    near = z < np.log(2.0)
    value = lax.select(near, lax.log(-lax.expm1(-z)), lax.log1p(-lax.exp(-z)))
    return inside(x > loc, value, x)


@distribution_function
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Survival function: probability of a value greater than ``x``."""
    return lax.exp(logsf(x, loc, scale))


@distribution_function
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of :func:`sf`."""
    x, loc, scale = together("expon.logsf", x, loc, scale)
    return inside(x >= loc, (loc - x) / scale, x, 0.0)


@distribution_function
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Quantile function: the inverse of :func:`cdf`; NaN outside [0, 1]."""
    q, loc, scale = together("expon.ppf", q, loc, scale)
    return inside((q >= 0) & (q <= 1), loc - scale * lax.log1p(-q), q, np.nan)
