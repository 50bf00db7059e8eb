"""Exponential, sine, cosine and Fresnel integrals, and the dilogarithm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, elementwise, is_complex, strong

from .._elementary import ROOT_2, bounded, chebyshev, choose, halves, is_double, widened
from .._functions import at_least_single, floats, single_or_double
from ._complex_integrals import complex_exp1, complex_expi, complex_spence
from ._operands import matched
from ._tables import (
    CI_NEAR,
    DILOGARITHM,
    E1_FAR,
    E1_NEAR,
    EI_6_12,
    EI_12_24,
    EI_FAR,
    EI_NEAR,
    FRESNEL_C_NEAR,
    FRESNEL_F,
    FRESNEL_G,
    FRESNEL_S_NEAR,
    SI_NEAR,
    SICI_F,
    SICI_G,
)

_EULER = 0.57721566490153286061
# Zeros as sums of two numbers
_EI_ZERO = (0.3725074107813666, 1.3140183414386028e-17)
_CI_ZERO = (0.6165054856207163, -4.209920321433186e-17)


def _from_zero(x: Any, zero: tuple[float, float]) -> tuple[Any, Any]:
    """The difference of positive numbers from a zero, and the logarithm of their quotient."""
    head, tail = zero
    if not is_double(x):
        head, tail = float(np.float32(head)), head - float(np.float32(head))
    # XLA would add up the constants of (x - head) - tail.
    relative = (x - head) / head - tail / head
    low = x < 0.4 * head
    log = lax.log1p(choose(low, 0.0, relative))
    return head * relative, choose(low, lax.log(choose(low, x, 1.0)) - math.log(head), log)


def _e1(x: Any) -> Any:
    """``E1`` of positive numbers."""
    near = x < 0.5  # the terms of the series cancel beyond
    low = choose(near, x, 0.5)
    value = low * chebyshev(4 * low - 1, E1_NEAR) - lax.log(low) - _EULER
    high = choose(near, 0.5, x)
    far = lax.exp(-high) * (chebyshev(1 - 5 / (high + 2), E1_FAR) / high)
    return choose(near, value, far)


def _ei(x: Any) -> Any:
    """``Ei`` of positive numbers."""
    near = x < 6
    low = choose(near, x, 1.0)
    half = lax.exp(0.5 * bounded(x, 0.0, 1e4))  # avoids overflow before the division
    gap, log = _from_zero(low, _EI_ZERO)
    value = gap * (half * chebyshev(low / 3 - 1, EI_NEAR)) + log
    high = bounded(x, 6.0, 1e4)
    first = chebyshev(24 / lax.min(high, lax.full_like(x, 12.0)) - 3, EI_6_12)
    second = chebyshev(48 / bounded(high, 12.0, 24.0) - 3, EI_12_24)
    third = chebyshev(48 / lax.max(high, lax.full_like(x, 24.0)) - 1, EI_FAR)
    scaled = choose(high < 12, first, choose(high < 24, second, third))
    return choose(near, value, half * (half * (scaled / high)))


@custom_jvp
def _exponential_integral(x: Any) -> Any:
    left = x < 0
    out = choose(
        left,
        -_e1(choose(left, -x, 1.0)),
        _ei(choose(x > 0, x, 1.0)),
    )
    return choose(x == 0, -np.inf, choose(x != x, x, out))


@_exponential_integral.defjvp
def _exponential_integral_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _exponential_integral(x), t * (lax.exp(x) / x)


@elementwise
def expi(x: ArrayLike) -> Array:
    """Exponential integral ``Ei``: the principal value of the integral of ``exp(t) / t`` up to
    ``x``.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type. For complex numbers the negative real axis is a cut, on which the result is real.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers. It is
      ``-inf`` at 0.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.

    The derivative is ``exp(x) / x``. Complex numbers use the power series, the continued fraction
    and the asymptotic series of :func:`exp1`, DLMF 6.6.2, 6.9.1 and 6.12.1; the error is a few ulp
    of the modulus.

    >>> [round(float(v), 4) for v in expi(np.float32([1.0, -1.0, 0.0]))]
    [1.8951, -0.2194, -inf]
    """
    x = as_inexact(x)
    return complex_expi(strong(x)) if is_complex(x) else widened(_exponential_integral)(strong(x))


@custom_jvp
def _e1_of_real(x: Any) -> Any:
    return choose(x < 0, np.nan, -_exponential_integral(-x))


@_e1_of_real.defjvp
def _e1_of_real_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _e1_of_real(x), t * choose(x < 0, np.nan, -lax.exp(-x) / x)


@elementwise
def exp1(x: ArrayLike) -> Array:
    """Exponential integral ``E1``: the integral of ``exp(-t) / t`` from ``x`` to infinity. NaN for
    negative floats; finite for negative complex numbers, whose real axis is a cut.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers. It is
      infinite at 0.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.

    The derivative is ``-exp(-x) / x``. The algorithm for complex numbers is that of :func:`expi`.

    >>> round(float(exp1(1.0)), 5)
    0.21938
    """
    x = as_inexact(x)
    return complex_exp1(strong(x)) if is_complex(x) else widened(_e1_of_real)(strong(x))


def _series_en(n: Any, x: Any) -> Any:
    """``En`` of integral ``n >= 1`` for ``0 < x <= 0.8``: 5.1.12 of Abramowitz and Stegun."""
    terms = 22 if is_double(x) else 13
    power = lax.full_like(x, 1.0)
    total = lax.full_like(x, 0.0)
    for k in range(terms):
        gap = k - n + 1
        here = gap == 0
        total = total - choose(here, 0.0, power / choose(here, 1.0, gap))
        power = power * (-x / (k + 1))
    last = n - 1
    sign = choose(lax.rem(last, lax.full_like(n, 2.0)) == 1, lax.full_like(n, -1.0), 1.0)
    head = sign * lax.exp(last * lax.log(x) - lax.lgamma(n))
    return total + head * (lax.digamma(n) - lax.log(x))


def _fraction_en(n: Any, x: Any) -> Any:
    """``En`` for ``x >= 0.8``: backward evaluation of the even part of its continued fraction."""
    steps = 105 if is_double(x) else 30

    def step(i: Any, tail: Any) -> Any:
        k = steps - lax.convert_element_type(i, typeof(x).dtype)
        return x + n + 2 * k - (k + 1) * (n + k) / tail

    start = x + n + 2 * (steps + 1)
    tail = lax.fori_loop(0, steps + 1, step, start)
    return lax.exp(-x) / tail


@custom_jvp
def _general_exponential_integral(n: Any, x: Any) -> Any:
    bad = (n < 0) | (x < 0) | (n != lax.floor(n)) | (n != n) | (x != x)
    plain = ~bad & (n > 0) & (x > 0)
    order, y = choose(plain, n, 1.0), choose(plain, x, 1.0)
    near = y <= 0.8
    value = choose(
        near,
        _series_en(order, choose(near, y, 0.8)),
        _fraction_en(order, choose(near, 0.8, y)),
    )
    zeroth = lax.exp(-x) / x
    origin = choose(n > 1, 1 / choose(n > 1, n - 1, 1.0), np.inf)
    out = choose(plain, value, choose(x == 0, origin, zeroth))
    return choose(bad, np.nan, choose(plain & (x == np.inf), 0.0, out))


@_general_exponential_integral.defjvp
def _general_exponential_integral_jvp(primals, tangents):
    (n, x), (_, t) = primals, tangents
    first = n == 0
    lower = _general_exponential_integral(choose(first, 1.0, n - 1), x)
    derivative = choose(first, -lax.exp(-x) * (1 + 1 / x) / x, -lower)
    return _general_exponential_integral(n, x), t * derivative


@elementwise
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Generalized exponential integral ``En``: the integral of ``exp(-x t) / t^n`` from 1 to
    infinity.

    Args:
      n: nonnegative integral numbers; the derivative with respect to them is 0.
      x: nonnegative real numbers.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if an argument is complex, or the shapes do not broadcast.

    Other arguments give NaN.

    The derivative with respect to ``x`` is ``-expn(n - 1, x)``.

    >>> round(float(expn(2, 1.0)), 4), round(float(expn(2, 0.0)), 4)
    (0.1485, 1.0)
    """
    n, x = map(strong, matched("expn", n, x))
    wide = [at_least_single(v) for v in (n, x)]
    return lax.convert_element_type(_general_exponential_integral(*wide), typeof(x).dtype)


# Sine and cosine


@custom_jvp
def _sine_cosine(x: Any) -> Any:
    size = lax.abs(x)
    near = size < 4
    low = choose(near, size, 1.0)
    square = lax.square(low)
    s = low * chebyshev(square / 8 - 1, SI_NEAR)
    gap, log = _from_zero(low, _CI_ZERO)
    c = gap * (low + _CI_ZERO[0]) * chebyshev(square / 8 - 1, CI_NEAR) + log
    high = choose(near, 4.0, size)
    inverse = 1 / high
    t = 1 - 14 / (high + 3)
    f, g = chebyshev(t, SICI_F) * inverse, chebyshev(t, SICI_G) * (inverse * inverse)
    angle = choose(high == np.inf, 0.0, high)
    sine, cosine = lax.sin(angle), lax.cos(angle)
    s = choose(near, s, math.pi / 2 - f * cosine - g * sine)
    c = choose(near, c, f * sine - g * cosine)
    s, c = choose(size == np.inf, math.pi / 2, s), choose(size == np.inf, 0.0, c)
    c = choose(x == 0, -np.inf, choose(x == -np.inf, np.nan, c))
    return choose(x < 0, -s, s), choose(x != x, x, c)


@_sine_cosine.defjvp
def _sine_cosine_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    zero = x == 0
    safe = choose(zero, 1.0, x)
    derivative = choose(zero, 1.0, lax.sin(safe) / safe)
    return _sine_cosine(x), (t * derivative, t * (lax.cos(x) / x))


@elementwise
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Sine and cosine integrals of real numbers: the integral of ``sin(t) / t`` from 0 to ``x``,
    and that of ``cos(t) / t`` from infinity to the absolute value of ``x``.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      Two arrays of the shape of ``x``: the sine integral, and the cosine integral.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivatives are ``sin(x) / x`` and ``cos(x) / x``. The cosine integral is ``-inf`` at 0.

    >>> [round(float(v), 4) for v in sici(1.0)]
    [0.9461, 0.3374]
    """
    return widened(_sine_cosine)(strong(*floats("sici", x)))


# Fresnel


def _waves(x: Any) -> tuple[Any, Any]:
    """Sine and cosine of ``π x² / 2``, with the square reduced modulo 4 before rounding."""
    head, rest = halves(x)
    four = lax.full_like(x, 4.0)
    square = lax.rem(head * head, four) + lax.rem(rest * (head + x), four)
    angle = (math.pi / 2) * (square - 4 * lax.floor(0.25 * square + 0.5))
    return lax.sin(angle), lax.cos(angle)


@custom_jvp
def _fresnel(x: Any) -> Any:
    size = lax.abs(x)
    near = size < ROOT_2
    low = choose(near, size, 1.0)
    t = lax.square(lax.square(low)) / 2 - 1
    s = low * lax.square(low) * chebyshev(t, FRESNEL_S_NEAR)
    c = low * chebyshev(t, FRESNEL_C_NEAR)
    # Beyond 1e8 the results are 1/2 to working precision.
    high = choose(near, 2.0, lax.min(size, lax.full_like(x, 1e8)))
    inverse = 1 / high
    square = inverse * inverse
    t = 1 - 8 / (lax.square(high) + 2)
    f = chebyshev(t, FRESNEL_F) * (inverse / math.pi)
    g = chebyshev(t, FRESNEL_G) * (inverse * square / math.pi**2)
    sine, cosine = _waves(high)
    s = choose(near, s, 0.5 - f * cosine - g * sine)
    c = choose(near, c, 0.5 + f * sine - g * cosine)
    left = x < 0
    s, c = choose(left, -s, s), choose(left, -c, c)
    return choose(x != x, x, s), choose(x != x, x, c)


@_fresnel.defjvp
def _fresnel_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    sine, cosine = _waves(x)
    return _fresnel(x), (t * sine, t * cosine)


@elementwise
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel integrals of real numbers: those of ``sin(π t² / 2)`` and ``cos(π t² / 2)`` from 0
    to ``x``.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      Two arrays of the shape of ``x``: the integral of the sine, and that of the cosine. Both are
      odd functions that tend to 1/2.

    Raises:
      NotImplementedError: if the argument is complex.

    The derivatives are ``sin(pi * x**2 / 2)`` and ``cos(pi * x**2 / 2)``.

    >>> [round(float(v), 4) for v in fresnel(1.0)]
    [0.4383, 0.7799]
    """
    x = strong(x)
    if typeof(x).dtype.kind == "c":
        raise NotImplementedError(
            "fresnel of complex numbers is not implemented: integrate along a path instead"
        )
    return widened(_fresnel)(x)


# The dilogarithm


@custom_jvp
def _spence(x: Any) -> Any:
    big = x > 1.5
    y = choose(big, 1 / choose(big, x, 2.0), x)
    small = y < 0.5
    w = choose(small, y, 1 - y)  # from -1/2 to 1/2
    value = w * chebyshev(2 * bounded(w, -0.5, 0.5), DILOGARITHM)
    lone = choose(small & (y > 0), y, 0.5)
    mirrored = math.pi**2 / 6 - lax.log(lone) * lax.log1p(-lone) - value
    mirrored = choose(y == 0, math.pi**2 / 6, mirrored)
    value = choose(small, mirrored, value)
    log = lax.log(choose(big, x, 2.0))
    value = choose(big, -0.5 * log * log - value, value)
    return choose((x < 0) | (x != x), np.nan, choose(x == np.inf, -np.inf, value))


@_spence.defjvp
def _spence_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    d = x - 1
    near = lax.abs(d) < 1e-3
    safe = choose(near, 1.0, d)
    series = -1 + d * (0.5 + d * (-1 / 3 + d * (0.25 + d * (-0.2 + d / 6))))
    return _spence(x), t * choose(near, series, -lax.log(x) / safe)


@elementwise
def spence(x: ArrayLike) -> Array:
    """Spence function, the dilogarithm of ``1 - x``: minus the integral of ``log(t) / (t - 1)``
    from 1 to ``x``. NaN for negative floats; the negative real axis is a cut of complex numbers, on
    which the sign of a zero imaginary part is its side.

    Args:
      x: an array or a number of dtype ``float32``, ``float64``, ``complex64`` or ``complex128``.

    Returns:
      An array of the shape and dtype of ``x``. It is 0 at 1, and π²/6 at 0.

    Raises:
      TypeError: if the dtype is of integers or of narrow floats, or the argument is not an array or
        a number.

    For complex numbers, the identities of the dilogarithm reduce the argument for a series of
    Bernoulli numbers (Zagier, *The Dilogarithm Function*, 2007).

    The derivative is ``-log(x) / (x - 1)``.

    >>> [round(float(v), 4) for v in spence(np.float32([0.0, 1.0, 2.0]))]
    [1.6449, 0.0, -0.8225]
    """
    if is_complex(x):
        return complex_spence(strong(x))
    single_or_double("spence", x)
    return _spence(strong(x))
