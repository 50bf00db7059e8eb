"""Logistic distribution."""

from __future__ import annotations

from typing import Any

from primax_core import lax
from primax_core.extend import Array

from ..special import expit as _expit, logit as _logit
from ._arguments import distribution_function, together


@distribution_function
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Log-density."""
    x, loc, scale = together("logistic.logpdf", x, loc, scale)
    z = (x - loc) / scale
    size = lax.select(z < 0, -z, z)
    return -size - 2 * lax.log1p(lax.exp(-size)) - lax.log(scale)


@distribution_function
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density.

    >>> float(pdf(0.0))
    0.25
    """
    return lax.exp(logpdf(x, loc, scale))


@distribution_function
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """CDF: probability of a value up to ``x``."""
    x, loc, scale = together("logistic.cdf", x, loc, scale)
    return _expit((x - loc) / scale)


@distribution_function
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Survival function: probability of a value greater than ``x``."""
    x, loc, scale = together("logistic.sf", x, loc, scale)
    return _expit((loc - x) / scale)


@distribution_function
def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Quantile function: the inverse of :func:`cdf`; NaN outside [0, 1]."""
    x, loc, scale = together("logistic.ppf", x, loc, scale)
    return _logit(x) * scale + loc


@distribution_function
def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Inverse of :func:`sf`; NaN outside [0, 1]."""
    x, loc, scale = together("logistic.isf", x, loc, scale)
    return loc - _logit(x) * scale
