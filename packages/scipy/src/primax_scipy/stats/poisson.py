"""Poisson distribution with mean ``mu``."""

from __future__ import annotations

from typing import Any

from primax_core import lax
from primax_core.extend import Array

from ..special import gammaln as _gammaln, xlogy as _xlogy
from ._arguments import distribution_function, inside, together


@distribution_function
def logpmf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """Log-probability of ``k``; ``-inf`` unless ``k - loc`` is 0, 1, 2 ..."""
    k, mu, loc = together("poisson.logpmf", k, mu, loc)
    n = k - loc
    return inside((n >= 0) & (lax.floor(n) == n), _xlogy(n, mu) - _gammaln(n + 1) - mu, n)


@distribution_function
def pmf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """Probability of ``k``.

    >>> float(pmf(0, 0.0))
    1.0
    """
    return lax.exp(logpmf(k, mu, loc))


@distribution_function
def cdf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """CDF: probability of a value up to ``k``."""
    k, mu, loc = together("poisson.cdf", k, mu, loc)
    n = k - loc
    safe = lax.select(n >= 0, lax.floor(n), lax.full_like(n, 0))
    return inside(n >= 0, lax.igammac(safe + 1, mu), n, 0.0)
