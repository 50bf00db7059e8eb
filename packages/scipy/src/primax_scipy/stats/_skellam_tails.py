"""Tails of the difference of two Poisson variables, by recurrences.

With ``p(i)`` and ``q(m)`` the probabilities of the variables ``X`` and ``Y``, the smaller tail is

    P(X - Y <= k) = sum over m of t(m),   t(m) = q(m) P(X <= m + k),

if ``k`` is below the mean, and otherwise that of ``Y - X``. Neighbouring terms are connected by
``t(m + 1) = t(m) mu2 / (m + 1) + p(m + k + 1) q(m + 1)``, where nothing cancels, and the products
``p q`` by a quotient. No term needs an incomplete gamma function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import typeof

from .._elementary import choose
from ..special._operands import in_blocks
from ._logarithms import log_complement, log_poisson

DEVIATIONS: Final = 9.0
"""Below the largest product by so many deviations the sum begins: the rest is 2e-18 of it."""


def skellam_tails(log_probability: Callable[..., Any]) -> Callable[..., Any]:
    """The logarithms of ``P(X - Y <= k)`` and ``P(X - Y > k)``, as a function of ``k, mu1, mu2``.

    Their derivatives along the means follow from ``d P(X - Y <= k) = -P(k) dmu1 + P(k + 1) dmu2``.

    Args:
      log_probability: the logarithm of ``P(X - Y = k)``.
    """

    @custom_jvp
    def tails(k: Any, mu1: Any, mu2: Any) -> tuple[Any, Any]:
        left = k < mu1 - mu2
        smaller = _log_lower_tail(
            choose(left, k, -k - 1), choose(left, mu1, mu2), choose(left, mu2, mu1)
        )
        larger = log_complement(smaller)
        return choose(left, smaller, larger), choose(left, larger, smaller)

    @tails.defjvp
    def _tails_jvp(primals: Any, tangents: Any) -> Any:
        k, mu1, mu2 = primals
        values = tails(k, mu1, mu2)
        here, after = log_probability(k, mu1, mu2), log_probability(k + 1, mu1, mu2)

        def change(value: Any, sign: float) -> Any:
            some = value > -math.inf
            at = choose(some, value, 0.0)
            first, second = (choose(some, lax.exp(p - at), 0.0) for p in (here, after))
            return sign * (second * tangents[2] - first * tangents[1])

        return values, (change(values[0], 1.0), change(values[1], -1.0))

    return tails


def _log_lower_tail(k: Any, mu1: Any, mu2: Any) -> Any:
    """The logarithm of ``P(X - Y <= k)`` for ``k < mu1 - mu2``."""
    half = 0.5 * k
    root = lax.sqrt(half * half + mu1 * mu2)
    # The products p(m + k) q(m) are largest at this m; the quotient does not cancel.
    peak = choose(k > 0, mu1 * mu2 / (half + root), root - half)
    low = choose(k < 0, -k, 0.0)
    deviation = lax.sqrt(0.5 * mu1 * mu2 / root)
    start = lax.max(lax.floor(peak - DEVIATIONS * deviation), low)
    peak = lax.max(lax.floor(peak), low)
    # The logarithms there are smaller than at the start, and so are their rounding errors.
    scale = log_poisson(peak + k, mu1) + log_poisson(peak, mu2)
    log = scale + lax.log(_sum_of_terms(start, peak, k, mu1, mu2))
    return choose(log < 0, log, 0.0)


@in_blocks
def _sum_of_terms(start: Any, peak: Any, k: Any, mu1: Any, mu2: Any) -> Any:
    """The sum of the terms from ``start`` on, divided by the product at ``peak``."""
    eps = 0.1 * float(np.finfo(typeof(start).dtype).eps)
    axes = tuple(range(typeof(start).ndim))
    one = lax.full_like(start, 1.0)
    zero = lax.full_like(start, 0, shape=())

    def is_any(condition: Any) -> Any:
        return lax.reduce_or(condition, axes)

    def next_quotient(state: Any) -> Any:
        i, term, sum_ = state
        term = term * lax.max((start + k - i) / mu1, lax.full_like(start, 0))
        return i + 1, term, sum_ + term

    # P(X <= j) divided by p(j), at the first term: 1 + j / mu1 + j (j - 1) / mu1^2 + ...
    def unfinished(state: Any) -> Any:
        return is_any(state[1] > eps * state[2])

    first = lax.while_loop(unfinished, next_quotient, (zero, one, one))[2]

    def next_term(state: Any) -> Any:
        i, product, at_peak, term, sum_, _ = state
        m = start + i + 1
        onto = mu2 / m
        product = product * (onto * (mu1 / (m + k)))
        term = term * onto + product
        sum_ = sum_ + term
        at_peak = choose(m == peak, product, at_peak)
        return i + 1, product, at_peak, term, sum_, (m < peak) | (term > eps * sum_)

    state = zero, one, one, first, first, first == first
    _, _, at_peak, _, sum_, _ = lax.while_loop(lambda state: is_any(state[-1]), next_term, state)
    return sum_ / at_peak
