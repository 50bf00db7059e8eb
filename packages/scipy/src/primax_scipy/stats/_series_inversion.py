"""Quantiles of continuous distributions by inverted Taylor series, in a bracket.

One evaluation of a tail costs more than all else, so each is used for a step of fifth order: the
higher derivatives of a tail are polynomials of the first one and of the logarithmic derivative of
the density. The method is that of E. Schröder, "Über unendlich viele Algorithmen zur Auflösung der
Gleichungen", Math. Ann. 2 (1870), for the logarithm of a tail as a function of a variable of the
real line. From the approximations of `_first_quantiles` two steps are usually enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import typeof

from .._elementary import choose, is_double
from ..special._operands import in_blocks, level

Kernel = Callable[..., Any]
_MOST_STEPS = 120
_NEAR = 0.05
"""The largest change of the variable after which the iteration may end."""


class Curve(NamedTuple):
    """A distribution with given parameters, on the real line.

    Attributes:
      place: a function of the variable ``t`` that returns the argument of the other functions.
      value: the quantile at an argument.
      moved: the quantile for the variable ``t + d``, from the argument at ``t`` and from
        ``expm1(d)``.
      tail: a function of a condition, probabilities and an argument: the lower tail where the
        condition is true, and the upper one elsewhere; it is precise near the probabilities.
      log_slope: the logarithm of the derivative of the lower tail with respect to ``t``.
      bends: the derivative of ``log_slope`` with respect to ``t``, and its first two derivatives.
    """

    place: Callable[[Any], Any]
    value: Callable[[Any], Any]
    moved: Callable[[Any, Any], Any]
    tail: Callable[[Any, Any, Any], Any]
    log_slope: Callable[[Any, Any], Any]
    bends: Callable[[Any], tuple[Any, Any, Any]]


def inverse(curve: Callable[..., Curve], guess: Kernel, upper: bool) -> Kernel:
    """A function of probabilities in (0, 1) and parameters: the quantile in standard form.

    Args:
      curve: the distribution, a function of the parameters.
      guess: a first value of the variable, as in `_first_quantiles`.
      upper: True for the inverse of the survival function.
    """

    def is_lower(q: Any) -> Any:
        return (q <= 0.5) != upper

    def work(q: Any, *shapes: Any) -> Any:
        # Blocks of one tail do not compute the other one.
        size = choose(shapes[0] > 1e-9, shapes[0], 1e-9)
        size = lax.log(choose(size < 1e9, size, 1e9))
        return level(choose(is_lower(q), 15.5, lax.full_like(q, 47.5)) + 0.7 * size)

    def solution(q: Any, *shapes: Any) -> Any:
        lower = is_lower(q)
        p = choose(q <= 0.5, q, 1 - q)
        return solve(curve(*shapes), lower, p, guess(p, lower, *shapes))

    return in_blocks(solution, work)


def _step(g: Any, h: Any, sign: Any, bends: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """The change to the zero of ``g``, a condition that its series converges, and an error.

    Args:
      h: the derivative of ``g``.
      sign: 1 for a lower tail, -1 for an upper one.
      bends: those of :class:`Curve`.
    """
    bend, bend1, bend2 = bends
    # The logarithmic derivative of h, and its derivatives
    part = sign * h
    a = bend - part
    a1 = bend1 - part * a
    square = a * a + a1
    a2 = bend2 - part * square
    two, three = 0.5 * a, square / 6
    four = (a * (square + 2 * a1) + a2) / 24
    y = -g / h
    series = 1 + y * (-two + y * (2 * two * two - three + y * (
        5 * two * three - four - 5 * two * two * two
    )))  # fmt: skip
    square = y * y
    ratio = lax.max(two * two, lax.abs(three)) * square
    # Near points of inflection the lower coefficients are small, and so is their ratio.
    rest = lax.max(16 * ratio * ratio, 4 * lax.abs(four) * (square * square))
    return choose(ratio < 0.06, y * series, y), ratio < 0.06, lax.abs(y) * rest


def solve(curve: Curve, lower: Any, p: Any, first: Any) -> Any:
    """The quantile of the probability ``p`` of the lower tail where ``lower`` is true, and of the
    upper one elsewhere; ``first`` is the first value of the variable."""
    extent = 705.0 if is_double(p) else 86.0
    eps = float(np.finfo(typeof(p).dtype).eps)
    sign = choose(lower, lax.full_like(p, 1.0), -1.0)

    def step(state: Any) -> Any:
        i, t, low, high, _, _ = state
        at = curve.place(t)
        tail = curve.tail(lower, p, at)
        difference = sign * lax.log(tail / p)
        slope = lax.exp(curve.log_slope(t, at)) / tail
        change, converges, error = _step(difference, slope, sign, curve.bends(at))
        low, high = choose(difference < 0, t, low), choose(difference > 0, t, high)
        following = t + change
        # A step below the spacing of numbers leaves t, an end of the bracket, as it is.
        inner = (following >= low) & (following <= high)
        following = choose(inner, following, 0.5 * (low + high))
        near = lax.abs(change) < _NEAR
        # The last step is taken in the original variable, which has more digits.
        small = choose(near & inner, change, 0.0)
        z = choose(near & inner, curve.moved(at, _expm1(small)), curve.value(at))
        size = choose(lax.abs(t) > 1, lax.abs(t), 1.0)
        done = converges & near & inner & (error < 0.25 * eps)
        return i + 1, following, low, high, ~done & (high - low > 4 * eps * size), z

    def unfinished(state: Any) -> Any:
        return (state[0] < _MOST_STEPS) & lax.reduce_or(state[4], tuple(range(typeof(p).ndim)))

    low, high = lax.full_like(p, -extent), lax.full_like(p, extent)
    first = lax.clamp(low, choose(first == first, first, 0.0), high)
    start = (0, first, low, high, lax.full_like(p, True, np.bool_), first)
    return lax.while_loop(unfinished, step, start)[5]


def _expm1(d: Any) -> Any:
    """``expm1`` of a small number, by its power series."""
    series: Any = 1.0
    for n in range(9 if is_double(d) else 5, 1, -1):
        series = 1 + d * (1 / n) * series
    return d * series
