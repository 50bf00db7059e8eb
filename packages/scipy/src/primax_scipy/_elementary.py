"""Numerical building blocks of special functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax, tree
from primax_core.extend import dtypes, typeof

from ._functions import at_least_single, like


def is_double(x: Any) -> bool:
    """True if the dtype has 64 bits."""
    return bool(typeof(x).dtype == dtypes.f64)


def chebyshev(t: Any, series: tuple[int, Sequence[float]]) -> Any:
    """A Chebyshev series on [-1, 1].

    Args:
      t: floats.
      series: the number of coefficients for single precision, and all coefficients, for double
        precision.
    """
    first, rest = chebyshev_parts(t, series)
    return rest + first


@cache
def _in_powers(coefficients: tuple[float, ...]) -> list[float] | None:
    """Coefficients of the powers, or ``None`` if their sizes show that digits would be lost."""
    powers = np.polynomial.chebyshev.cheb2poly(coefficients)
    out: list[float] = powers.tolist()
    return out if np.abs(powers).sum() < 1.5 * np.abs(coefficients).sum() else None


def chebyshev_parts(t: Any, series: tuple[int, Sequence[float]]) -> tuple[float, Any]:
    """The constant term of a Chebyshev series, and the sum of its other terms.

    It is computed in powers of ``t`` if that is as accurate, otherwise by Clenshaw's recurrence.
    """
    single, coefficients = series
    if not is_double(t):
        coefficients = coefficients[:single]
    if powers := _in_powers(tuple(coefficients)):
        value: Any = 0.0
        for c in reversed(powers[1:]):
            value = value * t + c
        return powers[0], value * t
    double = t + t
    last: Any = 0.0
    before: Any = 0.0
    for c in reversed(coefficients[1:]):
        last, before = double * last - before + c, last
    return coefficients[0], t * last - before


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """Elements of two arrays or numbers, with the shape of the condition and the dtype of the
    array.
    """
    model = yes if not isinstance(yes, (int, float)) else no
    yes, no = (
        lax.full_like(model, v) if isinstance(v, (int, float)) else v for v in (yes, no)
    )  # fmt: skip
    return lax.select(condition, yes, no)


def any_of(condition: Any) -> Any:
    """Return True if an element is, for conditions outside of loops.

    On a CPU, XLA divides reductions other than extrema of floats into several loops. That is
    faster, but each takes 10 ms of compilation.
    """
    numbers = lax.convert_element_type(condition, np.float32)
    return lax.reduce_max(numbers, tuple(range(typeof(condition).ndim))) > 0


def bounded(x: Any, low: float, high: float) -> Any:
    """The operand clamped to bounds; NaN stays NaN."""
    return lax.clamp(lax.full_like(x, low), x, lax.full_like(x, high))


def halves(x: Any) -> tuple[Any, Any]:
    """A split of the operand into a number of half the digits and the remainder."""
    head = lax.reduce_precision(x, 11 if is_double(x) else 8, 25 if is_double(x) else 11)
    return head, x - head


def exp_of_square(x: Any, sign: float) -> Any:
    """``exp(sign * x²)``, with the square computed to extra precision."""
    limit = 40.0 if is_double(x) else 16.0
    x = bounded(x, -limit, limit)
    head, rest = halves(x)
    return exp_of_sum(sign * (head * head), sign * (rest * (head + x)))


def exp_of_sum(x: Any, rest: Any) -> Any:
    """``exp(x + rest)`` for a small ``rest``, of at most 0.05 (``float32``) or 2e-5, where the
    result is normal.
    """
    head = lax.exp(x)
    series: Any = 0.0
    for n in reversed(range(3 if is_double(x) else 5)):
        series = (series + 1 / math.factorial(n + 1)) * (rest if n else 1)
    # Infinity plus its product with a negative or zero number would be NaN.
    return choose(head < np.inf, head + head * (rest * series), head)


def widened(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of one array that computes narrow floats in ``float32``."""

    @wraps(fun)
    def outer(x: Any) -> Any:
        return tree.map(lambda y: like(y, x), fun(at_least_single(x)))

    return outer


def with_derivative(derivative: Callable[[Any, Any], Any]) -> Callable[[Callable[[Any], Any]], Any]:
    """Decorator for a function of one array with the derivative ``derivative(x, value)``.

    Narrow floats are computed in ``float32``.
    """

    def declare(fun: Callable[[Any], Any]) -> Any:
        inner = custom_jvp(fun)

        @inner.defjvp
        def _inner_jvp(primals, tangents):
            (x,), (t,) = primals, tangents
            y = inner(x)
            return y, t * derivative(x, y)

        return wraps(fun)(widened(inner))

    return declare


ROOT_PI = math.sqrt(math.pi)
ROOT_2 = math.sqrt(2.0)
ROOT_HALF = math.sqrt(0.5)
LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)
