"""Laplace distribution (two-sided exponential)."""

from __future__ import annotations

import math
from typing import Any

from primax_core import lax
from primax_core.extend import Array

from ._arguments import distribution_function, together


@distribution_function
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Log-density."""
    x, loc, scale = together("laplace.logpdf", x, loc, scale)
    return -lax.abs(x - loc) / scale - (lax.log(scale) + math.log(2))


@distribution_function
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density.

    >>> float(pdf(0.0))
    0.5
    """
    return lax.exp(logpdf(x, loc, scale))


@distribution_function
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """CDF: probability of a value up to ``x``."""
    x, loc, scale = together("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    left = z <= 0
    half = 0.5 * lax.exp(lax.select(left, z, -z))
    return lax.select(left, half, 1 - half)
