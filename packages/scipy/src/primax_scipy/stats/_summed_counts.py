"""Distributions of counts whose tails are added: beta-binomial, hypergeometric, Skellam."""

from __future__ import annotations

import math
from typing import Any, Final

from primax_core import lax
from primax_numpy import random

from .._double_precision import in_double
from .._elementary import choose
from ..special import betaln
from ._discrete import Discrete, functions
from ._domains import POSITIVE, WHOLE
from ._logarithms import log_binomial, log_poisson
from ._skellam_tails import skellam_tails
from ._sums import log_sum


def _log_beta_binomial(k: Any, n: Any, a: Any, b: Any) -> Any:
    ways = -lax.log(n + 1) - betaln(n - k + 1, k + 1)
    return ways + betaln(k + a, n - k + b) - betaln(a, b)


def _beta_binomial_variance(n: Any, a: Any, b: Any) -> Any:
    mean = a / (a + b)
    return n * mean * (1 - mean) * (a + b + n) / (a + b + 1)


def _sample_beta_binomial(key: Any, shape: Any, dtype: Any, n: Any, a: Any, b: Any) -> Any:
    first, second = random.split(key)
    p = random.beta(first, a, b, shape, dtype)
    return random.binomial(second, n, p, shape, dtype)


betabinom: Final = functions(
    Discrete(
        name="betabinom",
        title="beta-binomial distribution of successes in ``n`` trials",
        shapes={"n": WHOLE, "a": POSITIVE, "b": POSITIVE},
        support=lambda n, a, b: (0.0, n),
        logpmf=in_double(_log_beta_binomial),
        ratio=lambda k, n, a, b: (n - k) * (k + a) / ((k + 1) * (n - k - 1 + b)),
        double=True,
        mean=lambda n, a, b: n * (a / (a + b)),
        var=_beta_binomial_variance,
        sample=_sample_beta_binomial,
    )
)


def _log_hypergeometric(k: Any, M: Any, n: Any, N: Any) -> Any:
    """Quotient of binomial probabilities, none of which is small (Loader, 2000)."""
    p = choose(M > 0, N / choose(M > 0, M, 1.0), 0.5)
    q = choose(M > 0, (M - N) / choose(M > 0, M, 1.0), 0.5)
    return (
        log_binomial(k, n, p, q) + log_binomial(N - k, M - n, p, q) - log_binomial(N, M, p, q)
    )  # fmt: skip


def _hypergeometric_ends(M: Any, n: Any, N: Any) -> tuple[Any, Any]:
    least = N - (M - n)
    return choose(least > 0, least, 0.0), choose(n < N, n, N)


def _hypergeometric_variance(M: Any, n: Any, N: Any) -> Any:
    several = M > 1
    at = choose(several, M, 2.0)
    value = N * (n / at) * ((at - n) / at) * ((at - N) / (at - 1))
    return choose(several, value, 0.0)


hypergeom: Final = functions(
    Discrete(
        name="hypergeom",
        title="hypergeometric distribution: ``N`` draws from ``M`` objects, of which ``n`` count",
        shapes={"M": WHOLE, "n": WHOLE, "N": WHOLE},
        support=_hypergeometric_ends,
        logpmf=_log_hypergeometric,
        ratio=lambda k, M, n, N: (n - k) * (N - k) / ((k + 1) * (M - n - N + k + 1)),
        double=True,
        valid=lambda M, n, N: (n <= M) & (N <= M),
        mean=lambda M, n, N: N * (n / choose(M > 0, M, 1.0)),
        var=_hypergeometric_variance,
    )
)


# The Skellam distribution: the sum over the values of the second Poisson variable


def _log_skellam(k: Any, mu1: Any, mu2: Any) -> Any:
    half = 0.5 * k
    root = lax.sqrt(half * half + mu1 * mu2)
    # The largest term; the quotient does not cancel for positive k.
    centre = choose(k > 0, mu1 * mu2 / (half + root), root - half)
    low = choose(k < 0, -k, 0.0)
    start = lax.max(lax.floor(centre), low)
    return log_sum(
        lambda m, k, mu1, mu2: log_poisson(m + k, mu1) + log_poisson(m, mu2),
        start, low, lax.full_like(k, math.inf), k, mu1, mu2,
    )  # fmt: skip


_skellam_tails: Final = skellam_tails(_log_skellam)

skellam: Final = functions(
    Discrete(
        name="skellam",
        title="Skellam distribution, of the difference of two Poisson variables",
        shapes={"mu1": POSITIVE, "mu2": POSITIVE},
        support=(-math.inf, math.inf),
        logpmf=_log_skellam,
        logcdf=lambda k, mu1, mu2: _skellam_tails(k, mu1, mu2)[0],
        logsf=lambda k, mu1, mu2: _skellam_tails(k, mu1, mu2)[1],
        double=True,
        mean=lambda mu1, mu2: mu1 - mu2,
        var=lambda mu1, mu2: mu1 + mu2,
        sample=lambda key, shape, dtype, mu1, mu2: _difference(key, shape, dtype, mu1, mu2),
    )
)


def _difference(key: Any, shape: Any, dtype: Any, mu1: Any, mu2: Any) -> Any:
    first, second = random.split(key)
    x, y = random.poisson(first, mu1, shape), random.poisson(second, mu2, shape)
    return lax.convert_element_type(x - y, dtype)
