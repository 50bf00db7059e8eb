"""Incomplete beta functions of arguments with their rounding errors.

For usual parameters in ``float64``, the logarithm of the leading factor is computed as a pair of
floats: rounding errors of terms near 50 would make errors of 50 ulp. Its product with a continued
fraction is the function: A. DiDonato and A. Morris, "Algorithm 708: significant digit computation
of the incomplete beta function ratios", 1992, equation 9.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import typeof

from .. import _double_words as double_words
from .._elementary import LOG_ROOT_TAU, choose, is_double
from ..special._operands import in_blocks

Pair = double_words.Pair

_SHIFT: Final = 10
_STIRLING: Final = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
)  # fmt: skip
_SMALLEST: Final = 0.25
_LARGEST: Final = 200.0


def below_mean(a: Any, b: Any, x: Any) -> Any:
    """True where ``x`` is not above the mean of a beta variable, nearly. The exchange of ``a`` with
    ``b`` and of ``x`` with ``1 - x`` negates it."""
    return x * (a + b + 1) < a + 0.5


def beta_part(a: Any, b: Any, x: Pair, y: Pair) -> Any:
    """The regularized incomplete beta function of ``x`` without derivatives.

    Args:
      a, b: positive arrays.
      x: numbers of [0, 1] and their rounding errors; where :func:`below_mean` is true, the fraction
        converges soon.
      y: ``1 - x``.
    """
    return (_in_double if is_double(a) else _in_single)(a, b, *x, *y)


def _moved(a: Any, b: Any, x: Pair, y: Any) -> Any:
    """The function of the rounded argument, and two terms of its Taylor series, for which a few
    digits are enough."""
    at, error = x
    inside = (at > 0) & (y > 0)
    at, rest = choose(inside, at, 0.5), choose(inside, y, 0.5)
    log = (a - 1) * lax.log(at) + (b - 1) * lax.log(rest)
    density = lax.exp(log + ((lax.lgamma(a + b) - lax.lgamma(a)) - lax.lgamma(b)))
    change = error * density * (1 + 0.5 * error * ((a - 1) / at - (b - 1) / rest))
    return lax.betainc(a, b, x[0]) + choose(inside & (lax.abs(change) < 0.1), change, 0.0)


@in_blocks
def _in_single(a: Any, b: Any, x: Any, x_error: Any, y: Any, _: Any) -> Any:
    return _moved(a, b, (x, x_error), y)


@in_blocks
def _in_double(a: Any, b: Any, x: Any, x_error: Any, y: Any, y_error: Any) -> Any:
    low, high = lax.min(a, b), lax.max(a, b)
    usual = (low >= _SMALLEST) & (high <= _LARGEST) & (x > 1e-300) & (y > 1e-300)
    usual = usual & (x * (a + b + 1) < (a + 0.5) * (1 + 1e-9))
    one = lax.full_like(a, 1)
    c, d = choose(usual, a, one), choose(usual, b, one)
    u, u_error = choose(usual, x, 0.5 * one), choose(usual, x_error, 0.0)
    v, v_error = choose(usual, y, 0.5 * one), choose(usual, y_error, 0.0)
    value = _factor(c, d, (u, u_error), (v, v_error)) / _fraction(c, d, u, v)
    other = lax.cond(
        lax.reduce_and(usual, tuple(range(typeof(a).ndim))),
        lambda *xs: lax.full_like(xs[0], 0),
        lambda a, b, x, x_error, y: _moved(a, b, (x, x_error), y),
        choose(usual, one, a), choose(usual, one, b),
        choose(usual, 0.5 * one, x), choose(usual, 0.0, x_error), choose(usual, 0.5 * one, y),
    )  # fmt: skip
    return choose(usual, value, other)


def _logarithm(x: Pair) -> Pair:
    head, rest = double_words.log(x[0])
    return head, rest + x[1] / x[0]


def _stirling_part(x: Pair) -> tuple[Pair, Any, Any]:
    """``(z - 1/2) log(z)``, the error of Stirling's formula for log-gamma, and ``x (x + 1) ...``,
    for ``z`` of at least ``_SHIFT``, which is ``x`` or ``x + _SHIFT``."""
    few = x[0] < _SHIFT
    z, lost = double_words.total(x[0], choose(few, lax.full_like(x[0], _SHIFT), 0.0))
    lost = lost + x[1]
    log = double_words.log(z)
    head, rest = double_words.times(log, z - 0.5)
    rest = rest + lost * (log[0] + 1)
    inverse = 1 / z
    square, series = inverse * inverse, lax.full_like(z, 0)
    for c in reversed(_STIRLING):
        series = series * square + c
    return (head, rest), series * inverse, choose(few, _rising(choose(few, x[0], 1.0), x[1]), 1.0)


def _rising(x: Any, lost: Any) -> Any:
    """``x (x + 1) ... (x + 9)`` of a pair, as a product of ``x (x + 9) + n (9 - n)``."""
    nine, error = double_words.total(x, lax.full_like(x, _SHIFT - 1))
    head, rest = double_words.product(x, nine)
    square, rest = double_words.ordered_total(head, rest + (x * error + (2 * x + 9) * lost))
    value, change = square, rest / square
    for n in range(1, _SHIFT // 2):
        factor, error = double_words.total(square, lax.full_like(x, n * (_SHIFT - 1 - n)))
        value, change = value * factor, change + (error + rest) / factor
    return value + value * change


def _factor(a: Any, b: Any, x: Pair, y: Pair) -> Any:
    """``x^a y^b / B(a, b)``."""
    both = double_words.total(a, b)
    (one, s_a, p_a), (two, s_b, p_b) = _stirling_part((a, 0.0)), _stirling_part((b, 0.0))
    three, s_both, p_both = _stirling_part(both)
    terms = [
        double_words.times(_logarithm(x), a),
        double_words.times(_logarithm(y), b),
        three, (-one[0], -one[1]), (-two[0], -two[1]),
    ]  # fmt: skip
    # What is left of -z in Stirling's formula
    shifts = [choose(v < _SHIFT, lax.full_like(a, _SHIFT), 0.0) for v in (a, b, both[0])]
    rest = (s_both - s_a - s_b) - LOG_ROOT_TAU
    total = shifts[0] + shifts[1] - shifts[2]
    for head, small in terms:
        total, error = double_words.total(head, total)
        rest = rest + (small + error)
    return double_words.exp(double_words.ordered_total(total, rest)) * (p_a * p_b / p_both)


def _fraction(a: Any, b: Any, x: Any, y: Any) -> Any:
    """The continued fraction, from its end, with a number of terms that the arguments need."""
    dtype = typeof(a).dtype
    size = lax.min(a, 42 * lax.max(b, lax.full_like(b, 1)))
    slow = lax.max(lax.full_like(b, 1), 1.05 / b)
    most = lax.reduce_max(lax.cbrt(size) * slow, tuple(range(typeof(a).ndim)))
    last = lax.convert_element_type(6.1 * most, np.int32) + 8
    bias = a * y - b * x + 1

    def over(n: Any) -> Any:
        ratio = x / (a + (2 * n - 1))
        return (a + (n - 1)) * (a + b + (n - 1)) * n * (b - n) * (ratio * ratio)

    def under(n: Any) -> Any:
        part = (a + n) / (a + (2 * n + 1)) * (bias + n * (1 + y))
        return n + n * (b - n) * x / (a + (2 * n - 1)) + part

    def back(i: Any, tail: Any) -> Any:
        n = lax.convert_element_type(last - i, dtype)
        return under(n - 1) + over(n) / tail

    tail = lax.fori_loop(0, last - 1, back, under(lax.convert_element_type(last, dtype)))
    return a / (a + 1) * bias + over(1) / tail
