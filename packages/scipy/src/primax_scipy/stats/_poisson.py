"""Poisson distribution with mean ``mu``."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, typeof

from .._elementary import bounded as _bounded, is_double as _is_double
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


@distribution_function
def entropy(mu: Any, loc: Any = 0) -> Array:
    """Entropy in nats; NaN for negative means.

    It is the sum over all probable values up to a mean of 20 (300 in double precision), and an
    asymptotic series beyond.

    >>> round(float(entropy(1.0)), 4)
    1.3048
    """
    mu, loc = together("poisson.entropy", mu, loc)
    most, values = (300, 600) if _is_double(mu) else (20, 64)
    few = _bounded(mu, 0.0, most)

    def add(i: Any, total: Any) -> Any:
        k = lax.convert_element_type(i, typeof(few).dtype)
        log = _xlogy(lax.full_like(few, 1) * k, few) - lax.lgamma(k + 1) - few
        return total - lax.select(log > -80, lax.exp(log) * log, lax.full_like(log, 0))

    summed = lax.fori_loop(0, values, add, lax.full_like(few, 0))
    large = lax.select(mu > most, mu, lax.full_like(mu, most))
    inverse = 1 / large
    series = inverse * (1 / 12 + inverse * (1 / 24 + inverse * (19 / 360 + inverse * (9 / 80))))
    far = 0.5 * (lax.log(large) + np.log(2 * np.pi * np.e)) - series
    out = lax.select(mu > most, far, summed)
    return inside(mu >= 0, out, mu + loc, np.nan)
