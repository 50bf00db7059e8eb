"""Uniform distribution on ``[loc, loc + scale]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array

from ._arguments import distribution_function, inside, together


@distribution_function
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Log-density: ``-log(scale)`` inside, including the ends, ``-inf`` outside."""
    x, loc, scale = together("uniform.logpdf", x, loc, scale)
    return inside((x >= loc) & (x <= loc + scale), -lax.log(scale), x)


@distribution_function
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return lax.exp(logpdf(x, loc, scale))


@distribution_function
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """CDF: probability of a value up to ``x``.

    >>> float(cdf(0.25))
    0.25
    """
    x, loc, scale = together("uniform.cdf", x, loc, scale)
    zero, one = lax.full_like(x, 0), lax.full_like(x, 1)
    part = (x - loc) / scale
    outside = lax.select(x < loc, zero, one)
    return lax.select((x < loc) | (x > loc + scale), outside, part)


@distribution_function
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Quantile function: the inverse of :func:`cdf`; NaN outside [0, 1]."""
    q, loc, scale = together("uniform.ppf", q, loc, scale)
    return inside((q >= 0) & (q <= 1), loc + q * scale, q, np.nan)
