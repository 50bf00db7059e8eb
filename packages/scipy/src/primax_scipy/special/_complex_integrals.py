"""Exponential integrals, the dilogarithm and the digamma function of complex numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import typeof

from .._elementary import choose

_EULER: Final = 0.5772156649015329


def _is_double(z: Any) -> bool:
    return bool(typeof(z).dtype == np.complex128)


def _largest(x: Any) -> Any:
    return lax.reduce_max(x, tuple(range(typeof(x).ndim)))


def _as_complex(x: Any) -> Any:
    return lax.complex(x, lax.full_like(x, 0))


def _series(z: Any, size: Any) -> Any:
    """``E1`` by its power series, DLMF 6.6.2, where it does not cancel."""
    real = typeof(size).dtype
    count = lax.convert_element_type(3 * _largest(size), np.int32) + 25

    def step(i: Any, state: Any) -> Any:
        power, total = state
        k = lax.convert_element_type(i + 1, real)
        power = power * (-z * lax.convert_element_type(1 / k, typeof(z).dtype))
        return power, total + power * lax.convert_element_type(1 / k, typeof(z).dtype)

    zero = lax.full_like(z, 0)
    _, total = lax.fori_loop(0, count, step, (lax.full_like(z, 1), zero))
    return -_EULER - lax.log(z) - total


def _fraction(z: Any, width: Any) -> Any:
    """``exp(z) E1(z)`` by the even part of its continued fraction, DLMF 6.9.1, from its end.

    The number of terms for the real part ``width`` of the square root is that of the decrease
    ``exp(-4 width sqrt(n))`` of the error.
    """
    decrease = 10.0 if _is_double(z) else 5.0
    root = decrease / -_largest(-width)
    count = lax.convert_element_type(root * root, np.int32) + 4
    real = typeof(width).dtype

    def step(i: Any, rest: Any) -> Any:
        k = lax.convert_element_type(count - i, real)
        square = lax.convert_element_type(k * k, typeof(z).dtype)
        return z + lax.convert_element_type(2 * k - 1, typeof(z).dtype) - square / rest

    last = lax.convert_element_type(2 * lax.convert_element_type(count, real) + 1, typeof(z).dtype)
    return 1 / lax.fori_loop(0, count, step, z + last)


def _asymptotic(z: Any) -> Any:
    """``z exp(z) E1(z)`` far to the left: DLMF 6.12.1."""
    total: Any = lax.full_like(z, 1)
    inverse = -1 / z
    for k in reversed(range(1, 39 if _is_double(z) else 17)):
        total = 1 + k * inverse * total
    return total


def _e1(z: Any) -> Any:
    """``E1`` with the cut on the negative real axis, without its limits."""
    x, y = lax.real(z), lax.imag(z)
    size = lax.abs(z)
    finite = (size < math.inf) & (size > 0)
    # The square of the real part of the square root is half of this sum.
    sum_of_both = choose(x < 0, y * (y / choose(finite, size - x, 1.0)), size + x)
    left = finite & (sum_of_both < 1.8)
    far = left & (size > (40.0 if _is_double(z) else 18.0))
    near, right = left & ~far, finite & ~left
    series = _series(choose(near, z, lax.full_like(z, 1)), choose(near, size, 1.0))
    width = lax.sqrt(0.5 * choose(right, sum_of_both, 1e4))
    inner = choose(right, z, lax.full_like(z, 1e4))
    outer = choose(far, z, lax.full_like(z, -50))
    fraction = lax.exp(-inner) * _fraction(inner, width)
    beyond = lax.exp(-outer) / outer * _asymptotic(outer)
    # The exponentially small term of the Stokes line is visible on the cut only.
    turn = choose(y == 0, choose(_negative(y), lax.full_like(y, math.pi), -math.pi), 0.0)
    beyond = lax.complex(lax.real(beyond), lax.imag(beyond) + choose(far, turn, 0.0))
    value = choose(near, series, choose(far, beyond, fraction))
    at_zero = lax.complex(lax.full_like(x, math.inf), lax.full_like(x, 0))
    end = choose((x == math.inf) & (lax.abs(y) < math.inf), lax.full_like(z, 0), math.nan)
    return choose(finite, value, choose(size == 0, at_zero, end))


def _negative(y: Any) -> Any:
    """True also for ``-0``."""
    return 1 / choose(y == 0, y, 1.0) < 0


@custom_jvp
def complex_exp1(z: Any) -> Any:
    """Exponential integral ``E1``, with the cut on the negative real axis."""
    return _e1(z)


@complex_exp1.defjvp
def _complex_exp1_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    return complex_exp1(z), t * (-lax.exp(-z) / z)


@custom_jvp
def complex_expi(z: Any) -> Any:
    """Exponential integral ``Ei``, real on the real axis: DLMF 6.2.7 and its limits."""
    y = lax.imag(z)
    value = -_e1(-z)
    turn = choose(y > 0, lax.full_like(y, math.pi), choose(y < 0, lax.full_like(y, -math.pi), 0.0))
    imaginary = choose(y == 0, y, lax.imag(value) + turn)
    return lax.complex(lax.real(value), imaginary)


@complex_expi.defjvp
def _complex_expi_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    return complex_expi(z), t * (lax.exp(z) / z)


# Dilogarithm

_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
                     43867 / 798, -174611 / 330)  # fmt: skip


def _debye_series(t: Any) -> Any:
    """``Li2(1 - exp(-t))`` by Bernoulli numbers, for ``|t|`` of at most about π/3."""
    square, total = t * t, lax.full_like(t, 0)
    for k in reversed(range(len(_BERNOULLI))):
        total = total * square + _BERNOULLI[k] / math.factorial(2 * k + 3)
    return t * (1 - 0.25 * t + square * total)


@custom_jvp
def complex_spence(z: Any) -> Any:
    """``Li2(w)`` with ``w = 1 - z`` and a cut at negative ``z``, whose side is the sign of the
    imaginary part.

    Arguments are mapped to the half of the unit disk left of 1/2 by ``1 / w`` and ``1 - w``:
    Zagier, *The Dilogarithm Function*, 2007, section 1.
    """
    usual = (lax.abs(z) < math.inf) & (z != 1)
    x, y = lax.real(z), lax.imag(z)
    distance = choose(usual, lax.complex(x - 1, y), lax.full_like(z, 1))
    at = choose(usual, z, lax.full_like(z, 2))
    outside = lax.abs(distance) > 1
    inverse = 1 / choose(outside, distance, lax.full_like(z, 1))
    w = choose(outside, -inverse, -distance)
    rest = choose(outside, at * inverse, at)  # 1 - w
    right = lax.real(w) > 0.5
    log = lax.log1p(-choose(right, rest, w))
    value = _debye_series(-log)
    none = rest == 0
    product = log * lax.log(choose(none, lax.full_like(z, 1), rest))
    value = choose(right, math.pi**2 / 6 - product - value, value)
    large = lax.log(distance)
    value = choose(outside, -(math.pi**2 / 6) - 0.5 * large * large - value, value)
    return choose(usual, value, choose(z == 1, lax.full_like(z, 0), math.nan))


@complex_spence.defjvp
def _complex_spence_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    change = lax.complex(lax.real(z) - 1, lax.imag(z))
    none = change == 0
    safe = choose(none, lax.full_like(z, 1), change)
    near = lax.abs(change) < 0.5
    small = lax.log1p(choose(near, change, lax.full_like(z, 0)))
    log = choose(near, small, lax.log(choose(near, lax.full_like(z, 2), z)))
    return complex_spence(z), t * choose(none, lax.full_like(z, -1), -log / safe)


# Digamma

_DIGAMMA: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)


def _cotangent_of_turns(z: Any) -> Any:
    """``cot(πz)``; the real part is reduced before the multiplication."""
    x, y = lax.real(z), lax.imag(z)
    angle = math.pi * (x - lax.floor(x + 0.5))
    limit = 20.0 if _is_double(z) else 10.0
    height = lax.clamp(lax.full_like(y, -limit), math.pi * y, lax.full_like(y, limit))
    sine, cosine = lax.sin(angle), lax.cos(angle)
    high = 0.5 * (lax.exp(height) - lax.exp(-height))
    high = choose(lax.abs(height) < 0.5, _sinh_near_0(height), high)
    wide = 0.5 * (lax.exp(height) + lax.exp(-height))
    size = sine * sine + high * high
    return lax.complex(sine * cosine / size, -(high * wide) / size)


def _sinh_near_0(x: Any) -> Any:
    change = lax.expm1(x)
    return 0.5 * (change + change / (change + 1))


def complex_digamma(z: Any) -> Any:
    """Digamma function, by its recurrence and asymptotic expansion, DLMF 5.5.2 and 5.11.2; left of
    the imaginary axis by the reflection formula, DLMF 5.5.4. All its operations have derivatives.
    """
    x, y = lax.real(z), lax.imag(z)
    left = x < 0
    pole = (y == 0) & (x <= 0) & (lax.floor(x) == x)
    inside = (lax.abs(z) < math.inf) & ~pole
    right = choose(inside, choose(left, 1 - z, z), lax.full_like(z, 1))
    few = lax.abs(right) < 10
    small = choose(few, right, lax.full_like(z, 1))
    steps: Any = lax.full_like(z, 0)
    for k in range(10):
        steps = steps + 1 / (small + k)
    big = choose(few, right + 10, right)
    inverse = 1 / big
    square, series = inverse * inverse, lax.full_like(z, 0)
    for c in reversed(_DIGAMMA):
        series = series * square + c
    value = lax.log(big) - 0.5 * inverse - series * square
    value = value - choose(few, steps, lax.full_like(z, 0))
    mirrored = inside & left
    cotangent = _cotangent_of_turns(choose(mirrored, z, lax.full_like(z, 0.25)))
    value = choose(mirrored, value - math.pi * cotangent, value)
    beyond = choose((x == math.inf) & (lax.abs(y) < math.inf), lax.full_like(z, math.inf), math.nan)
    return choose(inside, value, beyond)
