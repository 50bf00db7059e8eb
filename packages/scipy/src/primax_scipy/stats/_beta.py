"""Beta distribution with shape parameters ``a`` and ``b``, on ``[loc, loc + scale]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array

from ..special import betaln as _betaln, xlog1py as _xlog1py, xlogy as _xlogy
from ._arguments import distribution_function, inside, together


def _standard(name: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> tuple[Any, ...]:
    x, a, b, loc, scale = together(name, x, a, b, loc, scale)
    y = (x - loc) / scale
    between = (y >= 0) & (y <= 1)
    return between, lax.select(between, y, lax.full_like(y, 0.5)), y, a, b, scale


@distribution_function
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Log-density; ``-inf`` outside the support, NaN for parameters that are not positive."""
    between, y, z, a, b, scale = _standard("beta.logpdf", x, a, b, loc, scale)
    value = _xlogy(a - 1, y) + _xlog1py(b - 1, -y) - _betaln(a, b) - lax.log(scale)
    return lax.select((a <= 0) | (b <= 0), lax.full_like(z, np.nan), inside(between, value, z))


@distribution_function
def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density.

    >>> round(float(pdf(0.5, 2.0, 2.0)), 4)
    1.5
    """
    return lax.exp(logpdf(x, a, b, loc, scale))


def _joined(between: Any, value: Any, outside: Any, z: Any) -> Any:
    return lax.select(between | (z != z), lax.select(z == z, value, z), outside)


@distribution_function
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """CDF: probability of a value up to ``x``."""
    between, y, z, a, b, _ = _standard("beta.cdf", x, a, b, loc, scale)
    outside = lax.select(z < 0, lax.full_like(z, 0), lax.full_like(z, 1))
    return _joined(between, lax.betainc(a, b, y), outside, z)


@distribution_function
def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of :func:`cdf`."""
    return lax.log(cdf(x, a, b, loc, scale))


@distribution_function
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Survival function: probability of a value greater than ``x``."""
    between, y, z, a, b, _ = _standard("beta.sf", x, a, b, loc, scale)
    outside = lax.select(z < 0, lax.full_like(z, 1), lax.full_like(z, 0))
    return _joined(between, lax.betainc(b, a, 1 - y), outside, z)


@distribution_function
def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of :func:`sf`."""
    return lax.log(sf(x, a, b, loc, scale))
