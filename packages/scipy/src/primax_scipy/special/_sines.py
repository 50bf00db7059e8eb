"""Sine and cosine of one argument, as polynomials.

XLA calls a library function for each element on CPUs. The argument is reduced to at most π/4 by
W. Cody and W. Waite, *Software Manual for the Elementary Functions*, 1980; Taylor polynomials are
precise there.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

from primax_core import lax

from .._elementary import any_of, bounded, choose, is_double

_HALF_PI: Final = Fraction(62831853071795864769252867665590057683943, 4 * 10**40)


def _parts(bits: int) -> tuple[float, float, float]:
    """π/2 as a sum of two numbers of few bits and the rest."""
    first = Fraction(round(_HALF_PI * 2**bits), 2**bits)
    second = Fraction(round((_HALF_PI - first) * 2 ** (2 * bits)), 2 ** (2 * bits))
    return float(first), float(second), float(_HALF_PI - first - second)


_PARTS: Final = {True: _parts(32), False: _parts(10)}
_LARGEST: Final = {True: 1e6, False: 1e4}
"""Arguments up to which products of a quotient and of both parts are exact."""


def _of_quarter(k: Any, r: Any) -> tuple[Any, Any]:
    """Sine and cosine of ``k π/2 + r`` for an integral ``k`` and ``|r| <= π/4``."""
    square = r * r
    sine: Any = 0.0
    cosine: Any = 0.0
    for n in reversed(range(9 if is_double(r) else 5)):
        sine = sine * square + (-1) ** n / math.factorial(2 * n + 1)
        cosine = cosine * square - (-1) ** n / math.factorial(2 * n + 2)
    sine, cosine = r * sine, 1 + square * cosine
    quarter = k - 4 * lax.floor(0.25 * k)
    odd = (quarter == 1) | (quarter == 3)
    one, two = choose(odd, cosine, sine), choose(odd, sine, cosine)
    return choose(quarter >= 2, -one, one), choose((quarter == 1) | (quarter == 2), -two, two)


def of_turns(turns: Any) -> tuple[Any, Any]:
    """Sine and cosine of ``2π`` times a number."""
    quarters = 4 * turns
    k = lax.floor(quarters + 0.5)
    return _of_quarter(k, (quarters - k) * (0.5 * math.pi))


def sine_and_cosine(x: Any) -> tuple[Any, Any]:
    """Sine and cosine of a real array, by the library if an element is large or not finite."""
    double = is_double(x)
    large = ~(lax.abs(x) < _LARGEST[double])

    def reduced(x: Any) -> tuple[Any, Any]:
        k = lax.floor(x * (2 / math.pi) + 0.5)
        one, two, rest = _PARTS[double]
        return _of_quarter(k, ((x - k * one) - k * two) - k * rest)

    out: tuple[Any, Any] = lax.cond(any_of(large), lambda x: (lax.sin(x), lax.cos(x)), reduced, x)
    return out


def sine_and_cosine_of_moderate(x: Any) -> tuple[Any, Any]:
    """As `sine_and_cosine` without a branch, so it is part of the caller's loop.

    The absolute error is a few ulp of 1 up to 2^40 (``float64``) or 2^24, then grows to a few ulp
    of the argument. Results are at most 1; those of infinities are NaN.
    """
    double = is_double(x)
    one, two, rest = _PARTS[double]
    step = 2.0**20 if double else 2.0**12
    far = step * lax.floor(x * (2 / math.pi / step) + 0.5)
    head, tail = x - far * one, far * two
    # The difference, and its rounding error
    total = head - tail
    back = total - head
    lost = (head - (total - back)) - (tail + back)
    lost = lost - far * rest
    k = lax.floor((total + lost) * (2 / math.pi) + 0.5)
    r = ((total - k * one) - k * two) + (lost - k * rest)
    return _of_quarter(k, bounded(r, -0.8, 0.8))
