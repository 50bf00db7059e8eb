"""Bernoulli distribution: 1 with probability ``p``, otherwise 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array

from ..special import xlog1py as _xlog1py, xlogy as _xlogy
from ._arguments import distribution_function, inside, together


@distribution_function
def logpmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """Log-probability of ``k``; ``-inf`` if ``k - loc`` is not in [0, 1].

    It is ``x log(p) + (1 - x) log(1 - p)`` with ``x = k - loc``, also between 0 and 1.
    """
    k, p, loc = together("bernoulli.logpmf", k, p, loc)
    x = k - loc
    return inside((x >= 0) & (x <= 1), _xlogy(x, p) + _xlog1py(1 - x, -p), x)


@distribution_function
def pmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """Probability of ``k``.

    >>> float(pmf(1, 0.25))
    0.25
    """
    return lax.exp(logpmf(k, p, loc))


@distribution_function
def cdf(k: Any, p: Any) -> Array:
    """CDF: probability of a value up to ``k``; NaN if ``p`` is not a probability."""
    k, p = together("bernoulli.cdf", k, p)
    zero, one = lax.full_like(p, 0), lax.full_like(p, 1)
    value = lax.select(k < 0, zero, lax.select(k < 1, 1 - p, one))
    return inside((p >= 0) & (p <= 1), value, k, np.nan)


@distribution_function
def ppf(q: Any, p: Any) -> Array:
    """Quantile function: the smallest value whose :func:`cdf` is ``q`` or more; NaN for invalid
    arguments."""
    q, p = together("bernoulli.ppf", q, p)
    value = lax.select(q <= 1 - p, lax.full_like(q, 0), lax.full_like(q, 1))
    return inside((q >= 0) & (q <= 1) & (p >= 0) & (p <= 1), value, q, np.nan)
