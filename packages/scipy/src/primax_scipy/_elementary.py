"""Small pieces that several pages of special functions are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from primax_core import custom_jvp, lax, tree
from primax_core.extend import dtypes, typeof

from ._functions import at_least_single, like


def is_double(x: Any) -> bool:
    """Whether the elements have 64 bits."""
    return bool(typeof(x).dtype == dtypes.f64)


def chebyshev(t: Any, series: tuple[int, Sequence[float]]) -> Any:
    """A Chebyshev series on [-1, 1], by Clenshaw's recurrence.

    Args:
      t: floats.
      series: how many coefficients single precision takes, and as many as double precision does.
    """
    single, coefficients = series
    if not is_double(t):
        coefficients = coefficients[:single]
    double = t + t
    last: Any = 0.0
    before: Any = 0.0
    for c in reversed(coefficients[1:]):
        last, before = double * last - before + c, last
    return t * last - before + coefficients[0]


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """Elements of two arrays or numbers, in the shape of the condition and the array's dtype."""
    model = yes if not isinstance(yes, (int, float)) else no
    yes, no = (
        lax.full_like(model, v) if isinstance(v, (int, float)) else v for v in (yes, no)
    )  # fmt: skip
    return lax.select(condition, yes, no)


def bounded(x: Any, low: float, high: float) -> Any:
    """The operand within bounds; NaN stays NaN."""
    return lax.clamp(lax.full_like(x, low), x, lax.full_like(x, high))


def halves(x: Any) -> tuple[Any, Any]:
    """Two numbers whose sum the operand is, the first of half the digits."""
    head = lax.reduce_precision(x, 11 if is_double(x) else 8, 25 if is_double(x) else 11)
    return head, x - head


def exp_of_square(x: Any, sign: float) -> Any:
    """``exp(sign * x²)``, with the digits of the square that a product would lose."""
    limit = 40.0 if is_double(x) else 16.0
    x = bounded(x, -limit, limit)
    head, rest = halves(x)
    # The two exponents would overflow one by one before their product does.
    return lax.exp(sign * (head * head)) * lax.exp(sign * (rest * (head + x)))


def widened(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of one array that computes with narrow floats in ``float32``."""

    @wraps(fun)
    def outer(x: Any) -> Any:
        return tree.map(lambda y: like(y, x), fun(at_least_single(x)))

    return outer


def with_slope(slope: Callable[[Any, Any], Any]) -> Callable[[Callable[[Any], Any]], Any]:
    """Declare a function of one array with its derivative ``slope(x, value)``.

    Narrow floats are computed with in ``float32``.
    """

    def declare(fun: Callable[[Any], Any]) -> Any:
        inner = custom_jvp(fun)

        @inner.defjvp
        def _(primals, tangents):
            (x,), (t,) = primals, tangents
            y = inner(x)
            return y, t * slope(x, y)

        return wraps(fun)(widened(inner))

    return declare


ROOT_PI = math.sqrt(math.pi)
ROOT_2 = math.sqrt(2.0)
ROOT_HALF = math.sqrt(0.5)
LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)
