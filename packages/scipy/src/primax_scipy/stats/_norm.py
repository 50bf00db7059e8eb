"""Normal distribution with mean ``loc`` and standard deviation ``scale``.

Arguments broadcast together; integers become floats. Functions that use the logarithm of the scale
give NaN if ``scale`` is negative.
"""

from __future__ import annotations

import math
from typing import Any

from primax_core import lax
from primax_core.extend import Array

from ..special import log_ndtr as _log_ndtr, ndtr as _ndtr, ndtri as _ndtri
from ._arguments import distribution_function, together

_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


@distribution_function
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Log-density.

    >>> round(float(logpdf(0.0)), 4)
    -0.9189
    """
    x, loc, scale = together("norm.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -0.5 * lax.square(z) - (lax.log(scale) + _LOG_ROOT_TAU)


@distribution_function
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density, ``exp(-((x - loc) / scale)² / 2) / (scale sqrt(2π))``."""
    return lax.exp(logpdf(x, loc, scale))


@distribution_function
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """CDF: probability of a value up to ``x``.

    >>> float(cdf(0.0))
    0.5
    """
    x, loc, scale = together("norm.cdf", x, loc, scale)
    return _ndtr((x - loc) / scale)


@distribution_function
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of :func:`cdf`, accurate in the lower tail."""
    x, loc, scale = together("norm.logcdf", x, loc, scale)
    return _log_ndtr((x - loc) / scale)


@distribution_function
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Survival function: probability of a value greater than ``x``, accurate in the upper tail."""
    x, loc, scale = together("norm.sf", x, loc, scale)
    return _ndtr((loc - x) / scale)


@distribution_function
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of :func:`sf`, accurate in the upper tail."""
    x, loc, scale = together("norm.logsf", x, loc, scale)
    return _log_ndtr((loc - x) / scale)


@distribution_function
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Quantile function: the inverse of :func:`cdf`; NaN outside [0, 1]."""
    q, loc, scale = together("norm.ppf", q, loc, scale)
    return _ndtri(q) * scale + loc


@distribution_function
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Inverse of :func:`sf`; NaN outside [0, 1]."""
    q, loc, scale = together("norm.isf", q, loc, scale)
    return loc - _ndtri(q) * scale
