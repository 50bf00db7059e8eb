"""Student's t distribution with ``df`` degrees of freedom."""

from __future__ import annotations

from typing import Any

from primax_core import lax
from primax_core.extend import Array

from ..special import betaln as _betaln
from ._arguments import distribution_function, together


@distribution_function
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Log-density."""
    x, df, loc, scale = together("t.logpdf", x, df, loc, scale)
    z = (x - loc) / scale
    # gamma((df + 1) / 2) / (sqrt(π df) gamma(df / 2)) is 1 / (sqrt(df) B(1/2, df / 2)).
    constant = -_betaln(lax.full_like(df, 0.5), 0.5 * df) - 0.5 * lax.log(df) - lax.log(scale)
    return constant - 0.5 * (df + 1) * lax.log1p(lax.square(z) / df)


@distribution_function
def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density; for ``df = 1`` that of the Cauchy distribution."""
    return lax.exp(logpdf(x, df, loc, scale))
