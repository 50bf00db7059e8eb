"""Gamma distribution with shape parameter ``a``."""

from __future__ import annotations

from typing import Any

from primax_core import lax
from primax_core.extend import Array

from ..special import gammaln as _gammaln, xlogy as _xlogy
from ._arguments import distribution_function, inside, together


@distribution_function
def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Log-density; ``-inf`` below ``loc``."""
    x, a, loc, scale = together("gamma.logpdf", x, a, loc, scale)
    right = x >= loc
    y = lax.select(right, (x - loc) / scale, lax.full_like(x, 1))
    return inside(right, _xlogy(a - 1, y) - y - _gammaln(a) - lax.log(scale), x)


@distribution_function
def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density.

    >>> float(pdf(0.0, 1.0))
    1.0
    """
    return lax.exp(logpdf(x, a, loc, scale))


def _standard(name: str, x: Any, a: Any, loc: Any, scale: Any) -> tuple[Any, ...]:
    x, a, loc, scale = together(name, x, a, loc, scale)
    right = x > loc
    return right, lax.select(right, (x - loc) / scale, lax.full_like(x, 1)), a, x


@distribution_function
def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """CDF: probability of a value up to ``x``."""
    right, y, a, x = _standard("gamma.cdf", x, a, loc, scale)
    return inside(right, lax.igamma(a, y), x, 0.0)


@distribution_function
def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of :func:`cdf`."""
    return lax.log(cdf(x, a, loc, scale))


@distribution_function
def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Survival function: probability of a value greater than ``x``."""
    right, y, a, x = _standard("gamma.sf", x, a, loc, scale)
    return inside(right, lax.igammac(a, y), x, 1.0)


@distribution_function
def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of :func:`sf`."""
    return lax.log(sf(x, a, loc, scale))
