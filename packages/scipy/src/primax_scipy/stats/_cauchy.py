"""Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array

from ._arguments import distribution_function, inside, together


@distribution_function
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Log-density."""
    x, loc, scale = together("cauchy.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -(lax.log(scale) + math.log(math.pi)) - lax.log1p(lax.square(z))


@distribution_function
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density, ``1 / (π scale (1 + ((x - loc) / scale)²))``."""
    return lax.exp(logpdf(x, loc, scale))


def _below(z: Any) -> Any:
    """The CDF, accurate in the lower tail, where it is the angle of ``1 / -z``."""
    return lax.atan2(lax.full_like(z, 1), -z) * (1 / math.pi)


@distribution_function
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """CDF: probability of a value up to ``x``, accurate in the lower tail.

    >>> float(cdf(0.0))
    0.5
    """
    x, loc, scale = together("cauchy.cdf", x, loc, scale)
    return _below((x - loc) / scale)


@distribution_function
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of :func:`cdf`."""
    return lax.log(cdf(x, loc, scale))


@distribution_function
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Survival function: probability of a value greater than ``x``, accurate in the upper tail."""
    x, loc, scale = together("cauchy.sf", x, loc, scale)
    return _below((loc - x) / scale)


@distribution_function
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of :func:`sf`."""
    return lax.log(sf(x, loc, scale))


def _quantile(q: Any) -> Any:
    """Standard quantile function, computed per half so that both tails are accurate; NaN outside
    [0, 1]."""
    middle = lax.abs(q - 0.5) < 0.25
    near = lax.tan(math.pi * (lax.select(middle, q, lax.full_like(q, 0.5)) - 0.5))
    side = lax.select(middle, lax.full_like(q, 0.25), lax.select(q < 0.5, q, 1 - q))
    far = 1 / lax.tan(math.pi * side)
    value = lax.select(middle, near, lax.select(q < 0.5, -far, far))
    return inside((q >= 0) & (q <= 1), value, q, np.nan)


@distribution_function
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Quantile function: the inverse of :func:`cdf`; NaN outside [0, 1]."""
    q, loc, scale = together("cauchy.ppf", q, loc, scale)
    return _quantile(q) * scale + loc


@distribution_function
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Inverse of :func:`sf`; NaN outside [0, 1]."""
    q, loc, scale = together("cauchy.isf", q, loc, scale)
    return loc - _quantile(q) * scale
