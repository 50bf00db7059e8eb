"""Complements of probabilities given by their logarithms; sums that would cancel."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, lax

from .._elementary import LOG_ROOT_TAU, chebyshev, choose, is_double

_STIRLING_ERROR: Final = 10, (
    0.0824391166213758, -0.0011586014333953318, -0.00024206338649436504, 2.3096481805266552e-05,
    2.8126538306420855e-07, -4.271982369179674e-07, 6.753795989800755e-08, -1.6742216909283222e-09,
    -1.9048823183699345e-09, 5.616082398566717e-10, -7.497881765282662e-11, -4.862696975428917e-12,
    5.722878454768195e-12, -1.7224915130168885e-12, 2.713055272633209e-13, 1.2848926024838206e-14,
    -2.5096960115971088e-14, 9.641545602098506e-15, -2.191189563394941e-15, 1.711033323196238e-16,
    1.158073767695586e-16, -7.186798295952593e-17, 2.4415184032977955e-17, -5.191233070685298e-18,
    1.6293110452379254e-19,
)  # fmt: skip
"""``x`` times :func:`stirling_error` from 1 on, in ``2 / x - 1``: the number of Chebyshev
coefficients for single precision, and the coefficients, from mpmath's values with 50 digits."""


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


def stirling_error(x: Any, small: bool = True) -> Any:
    """``lgamma(x + 1) - (x + 1/2) log(x) + x - log(2π)/2`` for ``x > 0``.

    From 1 on it is a Chebyshev series in ``1 / x``; below, the argument is raised by the
    recurrence, whose step is ``1 - (x + 1/2) log1p(1/x)``.

    Args:
      small: False if no argument is less than 1.
    """
    if not small:
        inverse = 1 / x
        return inverse * chebyshev(2 * inverse - 1, _STIRLING_ERROR)
    low = x < 1
    at = choose(low, x, 1.0)
    step = choose(low, (at + 0.5) * lax.log1p(1 / at) - 1, 0.0)
    return step + stirling_error(choose(low, at + 1, x), small=False)


@custom_jvp
def deviance(p: Any, q: Any) -> Any:
    """``p log(p / q) - p + q`` for ``p > 0`` and ``q >= 0``; `kl_div` without its other cases."""
    gap = (q - p) / p
    near = lax.abs(gap) < 0.5
    u = choose(near, gap, 0.0)
    # u - log1p(u), where the logarithm is 2 artanh(r), and u - 2 r is u r
    r = u / (2 + u)
    square = r * r
    series: Any = 0.0
    for k in reversed(range(17 if is_double(p) else 9)):
        series = series * square + 2 / (2 * k + 3)
    return choose(near, p * (r * (u - square * series)), p * lax.log(p / q) - p + q)


@deviance.defjvp
def _deviance_jvp(primals, tangents):
    (p, q), (tp, tq) = primals, tangents
    gap = (p - q) / q
    near = lax.abs(gap) < 0.5
    log = choose(near, lax.log1p(choose(near, gap, 0.0)), lax.log(p / q))
    return deviance(p, q), log * tp - gap * tq


def log_poisson(k: Any, mu: Any, small: bool = True) -> Any:
    """``k log(mu) - mu - lgamma(k + 1)`` for ``k >= 0`` and ``mu >= 0``, by Loader's saddle point.

    C. Loader, "Fast and accurate computation of binomial probabilities", 2000: deviances and the
    error of Stirling's formula do not cancel. ``small`` is that of :func:`stirling_error`.
    """
    some = k > 0
    n = choose(some, k, 1.0)
    value = -stirling_error(n, small) - deviance(n, mu) - 0.5 * lax.log(n) - LOG_ROOT_TAU
    return choose(some, value, -mu)


def log_binomial(k: Any, n: Any, p: Any, q: Any, small: bool = True) -> Any:
    """``log(comb(n, k) p^k q^(n - k))`` for ``0 <= k <= n``, with ``q = 1 - p``.

    Source: that of :func:`log_poisson`. ``small`` is that of :func:`stirling_error`.
    """
    first, last = k == 0, k == n
    middle = ~(first | last)
    big = choose(middle, n, 2.0)
    one = choose(middle, k, 1.0)
    two = big - one
    # Elsewhere, a probability of 0 would have an infinite derivative times 0.
    inner, rest = choose(middle, p, 0.5), choose(middle, q, 0.5)
    value = (
        stirling_error(big, small)
        - stirling_error(one, small) - stirling_error(two, small)
        - deviance(one, big * inner) - deviance(two, big * rest)
        - 0.5 * lax.log(one * (two / big)) - LOG_ROOT_TAU
    )  # fmt: skip
    at_last = choose(n == 0, 0.0, n * lax.log(choose(last, p, 1.0)))
    at_first = n * _log1p_minus(choose(first, p, 0.5), choose(first, q, 0.5))
    return choose(middle, value, choose(last, at_last, at_first))


def _log1p_minus(p: Any, q: Any) -> Any:
    """``log(q)`` for ``q = 1 - p``, accurate if either is small."""
    small = p < 0.5
    return choose(small, lax.log1p(-choose(small, p, 0.25)), lax.log(choose(small, 0.5, q)))


def log_gamma_density(x: Any, a: Any) -> Any:
    """``(a - 1) log(x) - x - lgamma(a)``, by the deviance and Stirling's formula."""
    inner = x > 0
    at = choose(inner, x, 1.0)
    value = lax.log(a / at) - deviance(a, at) - stirling_error(a) - 0.5 * lax.log(a) - LOG_ROOT_TAU
    # For a = 1 the derivative at 0 is that of -x.
    limit = choose(a < 1, math.inf, choose(a == 1, -x, -math.inf))
    return choose(inner, value, limit)


def log_gamma_power(x: Any, a: Any) -> Any:
    """``a log(x) - x - lgamma(a)`` for positive numbers, as :func:`log_gamma_density`."""
    return 0.5 * lax.log(a) - deviance(a, x) - stirling_error(a) - LOG_ROOT_TAU


def log_beta_density(x: Any, a: Any, b: Any) -> Any:
    """``(a - 1) log(x) + (b - 1) log(1 - x) - betaln(a, b)``, by deviances and Stirling's formula,
    as a binomial probability."""
    inner = (x > 0) & (x < 1)
    at = choose(inner, x, 0.5)
    rest, total = 1 - at, a + b
    errors = stirling_error(total) - stirling_error(a) - stirling_error(b)
    value = (
        errors - deviance(a, total * at) - deviance(b, total * rest)
        + 0.5 * lax.log(a / total * b) - lax.log(at * rest) - LOG_ROOT_TAU
    )  # fmt: skip
    left = x <= 0
    power, other = choose(left, a, b), choose(left, b, a)
    distance = choose(left, x, 1 - x)
    flat = lax.log(other) - (other - 1) * distance
    limit = choose(power < 1, math.inf, choose(power == 1, flat, -math.inf))
    return choose(inner, value, limit)


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
