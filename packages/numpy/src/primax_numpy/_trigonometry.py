"""Trigonometric and hyperbolic functions, and angles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays
from ._functions import compiled, elementwise
from ._promotion import as_inexact, broadcast_together, inexact_pair, is_complex, real_pair


@elementwise
def sin(x: ArrayLike, /) -> Array:
    """Sine of each element, in radians; integers become floats.

    Args:
      x: angles in radians, an array or a number; integers and booleans are converted to the default
        float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``cos(x)``.

    >>> sin(np.array([0.0, 0.5, 1.5], np.float32)).round(4)
    Array([0.        , 0.47939998, 0.9975    ], dtype=float32)
    """
    return lax.sin(as_inexact(x))


@elementwise
def cos(x: ArrayLike, /) -> Array:
    """Cosine of each element, in radians; integers become floats.

    Args:
      x: angles in radians, an array or a number; integers and booleans are converted to the default
        float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``-sin(x)``.

    >>> cos(np.array([0.0, 0.5, 1.5], np.float32)).round(4)
    Array([1.        , 0.87759995, 0.0707    ], dtype=float32)
    """
    return lax.cos(as_inexact(x))


@elementwise
def tan(x: ArrayLike, /) -> Array:
    """Tangent of each element, in radians; integers become floats.

    Args:
      x: angles in radians, an array or a number; integers and booleans are converted to the default
        float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 + tan(x)**2``.

    >>> tan(np.array([0.0, 0.5, 1.0], np.float32)).round(4)
    Array([0.    , 0.5463, 1.5574], dtype=float32)
    """
    return lax.tan(as_inexact(x))


@elementwise
def asin(x: ArrayLike, /) -> Array:
    """Inverse sine of each element, in [-π/2, π/2]; NaN for floats outside [-1, 1].

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / sqrt(1 - x**2)``, infinite at -1 and 1.

    >>> asin(np.array([0.0, 0.5, 2.0], np.float32)).round(4)
    Array([0.    , 0.5236,    nan], dtype=float32)
    """
    return lax.asin(as_inexact(x))


@elementwise
def acos(x: ArrayLike, /) -> Array:
    """Inverse cosine of each element, in [0, π]; NaN for floats outside [-1, 1].

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``-1 / sqrt(1 - x**2)``, infinite at -1 and 1.

    >>> acos(np.array([0.0, 0.5, 2.0], np.float32)).round(4)
    Array([1.5708, 1.0472,    nan], dtype=float32)
    """
    return lax.acos(as_inexact(x))


@elementwise
def atan(x: ArrayLike, /) -> Array:
    """Inverse tangent of each element, in [-π/2, π/2].

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / (1 + x**2)``.

    >>> atan(np.array([0.0, 1.0, np.inf], np.float32)).round(4)
    Array([0.    , 0.7854, 1.5708], dtype=float32)
    """
    return lax.atan(as_inexact(x))


@elementwise
def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Angle in [-π, π] of the point with y-coordinate ``x1`` and x-coordinate ``x2``.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape; integers become floats.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivatives are ``x2 / (x1**2 + x2**2)`` and ``-x1 / (x1**2 + x2**2)``.

    >>> atan2(np.array([1.0, -1.0], np.float32), -1.0).round(4)
    Array([ 2.3562, -2.3562], dtype=float32)
    """
    return lax.atan2(*inexact_pair("arctan2", x1, x2))


@elementwise
def sinh(x: ArrayLike, /) -> Array:
    """Hyperbolic sine of each element; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``cosh(x)``.

    >>> sinh(np.array([0.0, 1.0, -1.0], np.float32)).round(4)
    Array([ 0.    ,  1.1752, -1.1752], dtype=float32)
    """
    return lax.sinh(as_inexact(x))


@elementwise
def cosh(x: ArrayLike, /) -> Array:
    """Hyperbolic cosine of each element; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``sinh(x)``.

    >>> cosh(np.array([0.0, 1.0, -1.0], np.float32)).round(4)
    Array([1.    , 1.5431, 1.5431], dtype=float32)
    """
    return lax.cosh(as_inexact(x))


@elementwise
def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent of each element; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 - tanh(x)**2``.

    >>> tanh(np.array([0.0, 1.0, -np.inf], np.float32)).round(4)
    Array([ 0.        ,  0.76159996, -1.        ], dtype=float32)
    """
    return lax.tanh(as_inexact(x))


@elementwise
def asinh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic sine of each element.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / sqrt(1 + x**2)``.

    >>> asinh(np.array([0.0, 1.0, -1.0], np.float32)).round(4)
    Array([ 0.    ,  0.8814, -0.8814], dtype=float32)
    """
    return lax.asinh(as_inexact(x))


@elementwise
def acosh(x: ArrayLike, /) -> Array:
    """Nonnegative inverse hyperbolic cosine of each element; NaN for floats below 1.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / sqrt(x**2 - 1)``, infinite at 1.

    >>> acosh(np.array([1.0, 2.0, 0.0], np.float32)).round(4)
    Array([0.       , 1.3169999,       nan], dtype=float32)
    """
    return lax.acosh(as_inexact(x))


@elementwise
def atanh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic tangent of each element; NaN for floats outside [-1, 1].

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``1 / (1 - x**2)``.

    >>> atanh(np.array([0.0, 0.5, 1.0], np.float32)).round(4)
    Array([0.    , 0.5493,    inf], dtype=float32)
    """
    return lax.atanh(as_inexact(x))


arcsin = asin
arccos = acos
arctan = atan
arctan2 = atan2
arcsinh = asinh
arccosh = acosh
arctanh = atanh


@elementwise
def deg2rad(x: ArrayLike, /) -> Array:
    """Angles converted from degrees to radians.

    Args:
      x: angles in degrees, an array or a number; integers and booleans are converted to the default
        float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``pi / 180``.

    >>> deg2rad(np.array([0.0, 90.0, 180.0], np.float32)).round(4)
    Array([0.    , 1.5708, 3.1416], dtype=float32)
    """
    x = as_inexact(x)
    return x * (math.pi / 180)


@elementwise
def rad2deg(x: ArrayLike, /) -> Array:
    """Angles converted from radians to degrees.

    Args:
      x: angles in radians, an array or a number; integers and booleans are converted to the default
        float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``180 / pi``.

    >>> rad2deg(np.array([0.0, 0.5, 1.5], np.float32)).round(4)
    Array([ 0.      , 28.6479  , 85.943695], dtype=float32)
    """
    x = as_inexact(x)
    return x * (180 / math.pi)


radians = deg2rad
degrees = rad2deg


@elementwise
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Euclidean length of vectors with components ``x1`` and ``x2``, without overflow in between.

    The result is infinite if a component is, even if the other is NaN.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast.

    Returns:
      A float array of the common shape.

    Raises:
      ValueError: for complex numbers.

    The derivative at the origin is NaN.

    >>> float(hypot(3.0, 4.0))
    5.0
    """
    x, y = broadcast_together(*real_pair("hypot", x1, x2, ValueError))
    a, b = lax.abs(x), lax.abs(y)
    length = _length(a, b)
    endless = lax.bitwise_or(a == np.inf, b == np.inf)
    return lax.select(endless, lax.full_like(length, np.inf), length)


def _length(a: Any, b: Any) -> Any:
    """``sqrt(a * a + b * b)`` of nonnegative numbers, scaled by a power of two if they are very
    large or small."""
    dtype = typeof(a).dtype
    if dtype.itemsize < 4:
        length = _length(*[lax.convert_element_type(v, np.float32) for v in (a, b)])
        return lax.convert_element_type(length, dtype)
    low, high, down, up = (-400, 500, -600, 600) if dtype.itemsize == 8 else (-40, 60, -66, 80)
    larger = lax.stop_gradient(lax.max(a, b))
    one = lax.full_like(a, 1)
    scale: Any = lax.select(larger < 2.0**low, one * 2.0**up, one)
    scale = lax.select(larger > 2.0**high, one * 2.0**down, scale)
    x, y = a * scale, b * scale
    return lax.sqrt(x * x + y * y) / scale


@elementwise
def sinc(x: ArrayLike, /) -> Array:
    """``sin(πx) / (πx)`` of each element; at 0 it is 1, with exact derivatives of all orders.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> sinc(np.array([0.0, 0.5, 1.5], np.float32)).round(4)
    Array([ 1.        ,  0.63659996, -0.2122    ], dtype=float32)
    """
    x = as_inexact(x)
    if is_complex(x):
        zero = x == 0
        scaled: Any = lax.select(zero, lax.full_like(x, 1), x) * math.pi
        return lax.select(zero, lax.full_like(x, 1), lax.sin(scaled) / scaled)
    infinite = lax.abs(x) == lax.full_like(x, math.inf)
    x = lax.select(infinite, lax.full_like(x, 1), x)  # sinc(1) is 0, but its derivative is not
    whole: Any = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    rest = x - whole
    sign = 1 - 2 * (whole - 2 * lax.floor(whole * 0.5))  # -1 at odd numbers
    near = whole == 0
    one = lax.full_like(x, 1)
    factor = lax.select(near, one, sign * rest)
    # Adding the small terms last rounds less than a product with the sum of the series.
    out = (factor + factor * _sinc_series(rest)) / lax.select(near, one, x)
    return lax.select(infinite, lax.full_like(x, 0), out)


def _sinc_series(x: Any) -> Any:
    """``sin(πx) / (πx) - 1`` by its power series, for ``abs(x) <= 1/2``."""
    terms = 13 if typeof(x).dtype.itemsize == 8 else 8
    square = x * x
    total: Any = lax.full_like(x, 0)
    for n in reversed(range(1, terms)):
        total = total * square + (-1) ** n * math.pi ** (2 * n) / math.factorial(2 * n + 1)
    return total * square


@compiled("deg")
def _angle(z, *, deg):
    z = as_inexact(z)
    if is_complex(z):
        radians_ = lax.atan2(lax.imag(z), lax.real(z))
    else:
        radians_ = lax.atan2(lax.full_like(z, 0), z)
    return radians_ * (180 / math.pi) if deg else radians_


@one_call("deg")
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Argument of each complex number, in [-π, π].

    Args:
      z: an array or a number; real numbers have the argument 0 or π.
      deg: return degrees instead of radians.

    Returns:
      A real array of the shape of ``z``.

    Raises:
      TypeError: if ``z`` is not an array or a number.

    >>> float(angle(1j, deg=True))
    90.0
    >>> angle(np.array([1.0, -1.0], np.float32)).round(4)
    Array([0.    , 3.1416], dtype=float32)
    """
    check_arrays("angle", z)
    out = _angle(z, deg=bool(deg))
    if typeof(z).weak_type and not is_complex(z):
        return lax.convert_element_type(out, out.dtype)
    return out
