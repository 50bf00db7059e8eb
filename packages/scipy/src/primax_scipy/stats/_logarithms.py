"""Complements of probabilities given by their logarithms; sums that would cancel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax

from .._elementary import LOG_ROOT_TAU, choose, is_double
from ..special import betaln, kl_div, xlog1py, xlogy

# Coefficients of the asymptotic series of log-gamma: B_2k / (2k (2k - 1))
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def log_complement(log: Any) -> Any:
    """``log(1 - exp(log))`` for ``log <= 0``, by whichever formula is accurate (Maechler, 2012)."""
    near = log > -math.log(2)
    log_near, log_far = choose(near, log, -1.0), choose(near, -1.0, log)
    # Elements with value 0 have the result -inf, and a derivative that is not NaN.
    log_near = choose(log_near < 0, log_near, -1.0)
    value = choose(near, lax.log(-lax.expm1(log_near)), lax.log1p(-lax.exp(log_far)))
    at_zero = choose(log == 0, lax.full_like(log, -np.inf), np.nan)
    return choose(log < 0, value, at_zero)


def log_of(tail: Any, other: Any) -> Any:
    """Logarithm of a probability; of two complements, the smaller one is used."""
    small = tail < 0.5
    return choose(small, lax.log(choose(small, tail, 0.25)), lax.log1p(-choose(small, 0.25, other)))


def stirling_error(x: Any) -> Any:
    """``lgamma(x + 1) - (x + 1/2) log(x) + x - log(2π)/2`` for ``x > 0``.

    From 8 on it is the asymptotic series; below, the argument is raised by the recurrence, whose
    steps are ``1 - (x + 1/2) log1p(1/x)``.
    """
    total: Any = lax.full_like(x, 0)
    y = x
    for _ in range(8):
        low = y < 8
        at = choose(low, y, 8.0)
        total = choose(low, total + (at + 0.5) * lax.log1p(1 / at) - 1, total)
        y = choose(low, y + 1, y)
    inverse = 1 / y
    series: Any = 0.0
    for c in reversed(_STIRLING):
        series = series * (inverse * inverse) + c
    return total + series * inverse


def log_poisson(k: Any, mu: Any) -> Any:
    """``k log(mu) - mu - lgamma(k + 1)`` for ``k >= 0`` and ``mu >= 0``, by Loader's saddle point.

    C. Loader, "Fast and accurate computation of binomial probabilities", 2000: deviances and the
    error of Stirling's formula do not cancel.
    """
    some = k > 0
    n = choose(some, k, 1.0)
    value = -stirling_error(n) - kl_div(n, mu) - 0.5 * lax.log(n) - LOG_ROOT_TAU
    return choose(some, value, -mu)


def log_binomial(k: Any, n: Any, p: Any, q: Any) -> Any:
    """``log(comb(n, k) p^k q^(n - k))`` for ``0 <= k <= n``, with ``q = 1 - p``.

    Source: that of :func:`log_poisson`.
    """
    first, last = k == 0, k == n
    middle = ~(first | last)
    big = choose(middle, n, 2.0)
    one = choose(middle, k, 1.0)
    two = big - one
    value = (
        stirling_error(big) - stirling_error(one) - stirling_error(two)
        - kl_div(one, big * p) - kl_div(two, big * q)
        - 0.5 * lax.log(one * (two / big)) - LOG_ROOT_TAU
    )  # fmt: skip
    return choose(
        middle, value, choose(last, choose(n == 0, 0.0, n * lax.log(p)), n * _log1p_minus(p, q))
    )


def _log1p_minus(p: Any, q: Any) -> Any:
    """``log(q)`` for ``q = 1 - p``, accurate if either is small."""
    small = p < 0.5
    return choose(small, lax.log1p(-choose(small, p, 0.25)), lax.log(choose(small, 0.5, q)))


def log_gamma_density(x: Any, a: Any) -> Any:
    """``(a - 1) log(x) - x - lgamma(a)``; for large ``a`` by the deviance, without cancellation."""
    large = a > 10
    positive = choose(x > 0, x, 1.0)
    some = large & (x > 0)
    far = log_poisson(choose(some, a, 1.0), choose(some, x, 1.0)) + lax.log(a / positive)
    at = choose(some, 1.0, a)
    near = xlogy(at - 1, x) - x - lax.lgamma(at)
    return choose(some, far, choose(large, -math.inf, near))


def log_gamma_power(x: Any, a: Any) -> Any:
    """``a log(x) - x - lgamma(a)`` for positive numbers, as :func:`log_gamma_density`."""
    large = a > 10
    big, small = choose(large, a, 11.0), choose(large, 1.0, a)
    far = log_poisson(big, choose(large, x, 11.0)) + lax.log(big)
    return choose(large, far, small * lax.log(x) - x - lax.lgamma(small))


def log_beta_density(x: Any, a: Any, b: Any) -> Any:
    """``(a - 1) log(x) + (b - 1) log(1 - x) - betaln(a, b)``; for large parameters by that of a
    binomial probability, without cancellation."""
    inner = (x > 0) & (x < 1)
    large = (a > 5) & (b > 5) & inner
    at, bt, xt = choose(large, a, 6.0), choose(large, b, 6.0), choose(large, x, 0.5)
    far = log_binomial(at - 1, at + bt - 2, xt, 1 - xt) + lax.log(at + bt - 1)
    near = xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b)
    return choose(large, far, near)


def largest_finite(x: Any) -> float:
    """The largest finite number of the dtype of an array, as a Python float."""
    return float(np.finfo(np.float64 if is_double(x) else np.float32).max)


@custom_jvp
def log_one_plus_square(z: Any) -> Any:
    """``log(1 + z²)`` for all numbers; the square does not overflow."""
    size = lax.abs(z)
    large = size > 1e9
    near = choose(large, 1.0, size)
    far = choose(large, size, 1.0)
    return choose(large, 2 * lax.log(far), lax.log1p(near * near))


@log_one_plus_square.defjvp
def _log_one_plus_square_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    size = lax.abs(z)
    large = size > 1
    big, near = choose(large, z, 1.0), choose(large, 0.0, z)
    inverse = 1 / big
    slope = choose(large, 2 * inverse / (1 + inverse * inverse), 2 * near / (1 + near * near))
    return log_one_plus_square(z), t * slope
