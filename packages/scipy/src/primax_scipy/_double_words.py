"""Numbers as sums of two floats: a rounded value and its error.

Pairs of about twice the precision, for arguments whose rounding a function would enlarge. They are
corrections and have no derivatives. Products are split into parts without rounding errors, because
XLA may compute a product and a sum as one operation.

T. Dekker, "A floating-point technique for extending the available precision", 1971.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import lax

from ._elementary import choose, halves, is_double

Pair = tuple[Any, Any]


def total(x: Any, y: Any) -> Pair:
    """``x + y``: D. Knuth, "The Art of Computer Programming", volume 2, 4.2.2.

    Args:
      x: no constant, because XLA simplifies ``(x + y) - x`` for constants.
    """
    s = x + y
    other = s - x
    return s, (x - (s - other)) + (y - other)


def ordered_total(large: Any, small: Any) -> Pair:
    """``large + small``, where ``large`` is 0 or has the larger magnitude, and is no constant."""
    s = large + small
    return s, small - (s - large)


def product(x: Any, y: Any) -> Pair:
    """``x y``: the product of the upper halves, and the rest, which is not small."""
    (a, b), (c, d) = halves(x), halves(y)
    return a * c, (a * d + b * c) + b * d


def times(x: Pair, y: Any) -> Pair:
    """The product of a pair and a number."""
    head, rest = product(x[0], y)
    return ordered_total(head, rest + x[1] * y)


def quotient(x: Pair, y: Any, error: Any = 0.0) -> Pair:
    """The quotient of a pair and a number, or the pair ``y`` and ``error``."""
    q = x[0] / y
    head, rest = product(q, y)
    return q, (((x[0] - head) - rest) + (x[1] - q * error)) / y


def sqrt(x: Pair) -> Pair:
    """The square root of a positive pair."""
    root = lax.sqrt(x[0])
    head, rest = product(root, root)
    return root, (((x[0] - head) - rest) + x[1]) / (2 * root)


_LOG_2: Final = {
    True: (0.6931471805598903, 5.497923018708371e-14),
    False: (0.693145751953125, 1.4286068203094173e-06),
}
"""Logarithm of 2: a number whose product with an exponent is exact, and the rest."""


def log(x: Any) -> Pair:
    """Natural logarithm of positive normal numbers.

    It is that of ``x / 2^k`` in ``[√½, √2)`` by the series of the inverse hyperbolic tangent, and
    ``k log(2)``. Its relative error is a fiftieth of an ulp.
    """
    x = lax.stop_gradient(x)
    double = is_double(x)
    integer, digits = (np.int64, 52) if double else (np.int32, 23)
    bits = lax.bitcast_convert_type(x, np.dtype(integer))
    root = np.sqrt(x.dtype.type(0.5)).view(integer)
    shift = lax.full_like(bits, digits)
    whole = lax.shift_right_arithmetic(bits - lax.full_like(bits, int(root)), shift)
    m = lax.bitcast_convert_type(bits - lax.shift_left(whole, shift), x.dtype)
    k = lax.convert_element_type(whole, x.dtype)
    under, lost = total(m, lax.full_like(m, 1))
    s = (m - 1) / under
    head, rest = product(s, under)
    low = (((m - 1) - head) - rest - s * lost) / under
    square = s * s
    series: Any = lax.full_like(m, 0)
    for n in reversed(range(1, 13 if double else 6)):
        series = series * square + 2 / (2 * n + 1)
    first, second = _LOG_2[double]
    high, error = ordered_total(k * first, 2 * s)
    return ordered_total(high, (error + (2 * low + s * square * series)) + k * second)


def exp(x: Pair) -> Any:
    """Exponential function of a pair, rounded."""
    value = lax.exp(x[0])
    return choose(value < math.inf, value + value * x[1], value)


def exp_with(x: Any, error: Any) -> Any:
    """``exp(x + error)`` for a correction, which has no derivative and is ignored if not finite."""
    value = lax.exp(x)
    error = lax.stop_gradient(error)
    return value + value * choose(lax.abs(error) < 1, error, 0.0)


def error_of(value: Any, exact: Pair) -> Any:
    """The relative error of a positive number with the logarithm ``exact``; 0 for numbers that are
    not normal."""
    largest = 1e300 if is_double(value) else 1e37
    normal = (value > 1 / largest) & (value < largest)
    head, rest = log(choose(normal, value, 1.0))
    return choose(normal, (head - exact[0]) + (rest - exact[1]), 0.0)
