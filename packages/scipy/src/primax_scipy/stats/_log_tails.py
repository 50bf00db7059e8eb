"""Logarithms of incomplete gamma and beta functions, also where these functions underflow.

Where a tail is representable, its logarithm is that of the tail. Elsewhere it is the sum of the
logarithms of the leading factor and of a continued fraction, evaluated from its end. So far in a
tail few terms are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import cast, typeof

from .._elementary import choose, is_double
from ._logarithms import log_beta_density, log_gamma_power, log_of


def _underflows(log: Any) -> Any:
    """True where the number of such a logarithm has lost digits, or nearly."""
    return log < (-667.0 if is_double(log) else -69.0)


def _fraction(step: Callable[[Any, Any], Any], start: Any, count: int) -> Any:
    """``step(k, tail)`` for ``k`` from ``count`` to 1; ``start`` is the tail of the fraction."""
    dtype = typeof(start).dtype

    def back(i: Any, tail: Any) -> Any:
        return step(count - lax.convert_element_type(i, dtype), tail)

    return lax.fori_loop(0, count, back, start)


def _unless_far(far: Any, log: Any, usual: Any) -> Any:
    """``log`` where ``far``, else ``usual``, whose weak type the result has."""
    aval = typeof(usual)
    return choose(far, cast(log, typeof(log), aval.dtype, aval.weak_type), usual)


def log_upper_gamma(a: Any, x: Any) -> Any:
    """Logarithm of the regularized upper incomplete gamma function.

    Far in the tail it is that of ``x^a exp(-x) / Γ(a)`` less that of the even part of Legendre's
    continued fraction, DLMF 8.9.2.

    Args:
      a, x: positive arrays.
    """
    upper = (x > a) & (x < np.inf)
    b, y = choose(upper, a, 1.0), choose(upper, x, 2.0)
    count = 120 if is_double(x) else 40

    def step(k: Any, rest: Any) -> Any:
        return y - b + (2 * k - 1) - k * (k - b) / rest

    fraction = _fraction(step, y - b + (2 * count + 1), count)
    log = log_gamma_power(y, b) - lax.log(fraction)
    far = upper & _underflows(log)
    b, y = choose(far, 1.0, a), choose(far, 1.0, x)
    return _unless_far(far, log, log_of(lax.igammac(b, y), lax.igamma(b, y)))


def log_lower_gamma(a: Any, x: Any) -> Any:
    """Logarithm of the regularized lower incomplete gamma function.

    Far in the tail it is that of ``x^a exp(-x) / Γ(a)`` less that of the continued fraction
    ``a - a x / (a + 1 + x / (a + 2 - (a + 1) x / (a + 3 + 2 x / ...)))``, DLMF 8.9.1 with 8.5.1.

    Args:
      a, x: positive arrays.
    """
    lower = (x < a) & (x > 0)
    b, y = choose(lower, a, 2.0), choose(lower, x, 1.0)
    count = 120 if is_double(x) else 40

    def step(k: Any, rest: Any) -> Any:
        # Two levels: the addition of k x, and the subtraction of (a + k - 1) x.
        inner = b + 2 * k - 1 + k * y / rest
        return b + 2 * (k - 1) - (b + k - 1) * y / inner

    fraction = _fraction(step, b + 2 * count - y * 0.5, count)
    log = log_gamma_power(y, b) - lax.log(fraction)
    far = lower & _underflows(log)
    b, y = choose(far, 1.0, a), choose(far, 1.0, x)
    return _unless_far(far, log, log_of(lax.igamma(b, y), lax.igammac(b, y)))


def log_beta_tail(a: Any, b: Any, x: Any, y: Any) -> Any:
    """Logarithm of the regularized incomplete beta function of ``x``, where ``y = 1 - x``.

    Far in the tail it is that of ``x^a y^b / (a B(a, b))`` less that of the continued fraction of
    DLMF 8.17.22.

    Args:
      a, b: positive arrays.
      x, y: arrays of numbers between 0 and 1.
    """
    lower = (x > 0) & (y > 0) & (x * (a + b) < a)
    c, d = choose(lower, a, 1.0), choose(lower, b, 1.0)
    u, v = choose(lower, x, 0.25), choose(lower, y, 0.75)
    count = 60 if is_double(x) else 25

    def step(k: Any, rest: Any) -> Any:
        # Two levels, the odd and the even coefficient after k - 1
        m = k - 1
        odd = -(c + m) * (c + d + m) * u / ((c + 2 * m) * (c + 2 * m + 1))
        even = k * (d - k) * u / ((c + 2 * k - 1) * (c + 2 * k))
        return 1 + odd / (1 + even / rest)

    fraction = _fraction(step, lax.full_like(x, 1.0), count)
    log = log_beta_density(u, c, d) + lax.log(u * v) - lax.log(c) - lax.log(fraction)
    far = lower & _underflows(log)
    c, d = choose(far, 1.0, a), choose(far, 1.0, b)
    u, v = choose(far, 0.5, x), choose(far, 0.5, y)
    return _unless_far(far, log, log_of(lax.betainc(c, d, u), lax.betainc(d, c, v)))
