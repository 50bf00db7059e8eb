"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._lower.lazy import chlo, hlo
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .accuracy import Accuracy, accurate, check_accuracy, operation
from .arithmetic import add, div, mul, neg, one_minus_square, square, sub
from .comparison import compare, gt
from .complex_cases import (
    acos_cases,
    acosh_cases,
    asinh_cases,
    atanh_cases,
    circular_cases,
    cosh_cases,
    cosine_cases,
    sinh_cases,
    tanh_cases,
    with_cases,
)
from .elementwise import (
    binary,
    derivatives,
    elementwise_samples,
    fast_path,
    filled,
    full_like,
    scalar_like,
    unary,
)
from .exponential import rsqrt
from .magnitude import abs, complex, imag, real
from .selection import select

_INEXACT: Final = ("inexact",)


def _emit_asin(ctx, x):
    if dtypes.issubdtype(ctx.in_avals[0].dtype, np.complexfloating):
        return chlo.asin(x)
    one = filled(ctx, 1)
    return hlo.atan2(x, hlo.sqrt(hlo.multiply(hlo.subtract(one, x), hlo.add(one, x))))


def _half_exponential(ctx, size):
    """``exp(size) / 2`` of floats with at least 32 bits, without overflow before the result.

    For great numbers a part of the exponent becomes a factor; the subtraction is exact.
    """
    double = ctx.in_avals[0].dtype == dtypes.f64
    bound, part = (600.0, 64.0) if double else (80.0, 16.0)
    far = compare("GT", size, filled(ctx, bound), ctx.in_avals[0].dtype)
    factor = hlo.select(far, filled(ctx, math.exp(part) / 2), filled(ctx, 0.5))
    rest = hlo.select(far, hlo.subtract(size, filled(ctx, part)), size)
    return hlo.multiply(hlo.exponential(rest), factor)


def _emit_sinh(ctx, x):
    dtype = ctx.in_avals[0].dtype
    if dtype not in (dtypes.f32, dtypes.f64):
        return chlo.sinh(x)
    size, one, quarter = hlo.abs(x), filled(ctx, 1), filled(ctx, 0.25)
    half = _half_exponential(ctx, size)
    large = hlo.subtract(half, hlo.divide(quarter, half))
    e = hlo.exponential_minus_one(size)
    small = hlo.multiply(filled(ctx, 0.5), hlo.add(e, hlo.divide(e, hlo.add(e, one))))
    out = hlo.select(compare("LT", size, one, dtype), small, large)
    return hlo.multiply(hlo.sign(x), out)


def _emit_cosh(ctx, x):
    if ctx.in_avals[0].dtype not in (dtypes.f32, dtypes.f64):
        return chlo.cosh(x)
    half = _half_exponential(ctx, hlo.abs(x))
    return hlo.add(half, hlo.divide(filled(ctx, 0.25), half))


sin_p: Final = accurate(
    "sin", _INEXACT, with_cases(operation("sine"), "odd", circular_cases(sinh_cases))
)
cos_p: Final = accurate(
    "cos", _INEXACT, with_cases(operation("cosine"), "even", cosine_cases(cosh_cases))
)
tan_p: Final = accurate(
    "tan", _INEXACT, with_cases(operation("tan"), "odd", circular_cases(tanh_cases))
)
asin_p: Final = unary("asin", _INEXACT, with_cases(_emit_asin, "odd", circular_cases(asinh_cases)))
acos_p: Final = unary("acos", _INEXACT, with_cases(lambda ctx, x: chlo.acos(x), "", acos_cases))
atan_p: Final = unary(
    "atan", _INEXACT, with_cases(lambda ctx, x: chlo.atan(x), "odd", circular_cases(atanh_cases))
)
atan2_p: Final = binary("atan2", _INEXACT, lambda x, y: hlo.atan2(x, y))
sinh_p: Final = unary("sinh", _INEXACT, with_cases(_emit_sinh, "odd", sinh_cases))
cosh_p: Final = unary("cosh", _INEXACT, with_cases(_emit_cosh, "even", cosh_cases))
tanh_p: Final = accurate("tanh", _INEXACT, with_cases(operation("tanh"), "odd", tanh_cases))
asinh_p: Final = unary(
    "asinh", _INEXACT, with_cases(lambda ctx, x: chlo.asinh(x), "odd", asinh_cases)
)
acosh_p: Final = unary("acosh", _INEXACT, with_cases(lambda ctx, x: chlo.acosh(x), "", acosh_cases))
atanh_p: Final = unary(
    "atanh", _INEXACT, with_cases(lambda ctx, x: chlo.atanh(x), "odd", atanh_cases)
)


@fast_path(sin_p, accuracy=None)
def sin(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Sine of each element, in radians.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``cos(x)``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 1.0, 2.0], np.float32)
    >>> print(np.asarray(sin(x)).round(4))
    [0.     0.8415 0.9093]
    """
    check_accuracy(accuracy)
    return sin_p.bind(x, accuracy=accuracy)


@fast_path(cos_p, accuracy=None)
def cos(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Cosine of each element, in radians.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``-sin(x)``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 1.0, 2.0], np.float32)
    >>> print(np.asarray(cos(x)).round(4))
    [ 1.      0.5403 -0.4161]
    """
    check_accuracy(accuracy)
    return cos_p.bind(x, accuracy=accuracy)


@fast_path(tan_p, accuracy=None)
def tan(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Tangent of each element, in radians.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``1 + tan(x)²``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 1.0, 2.0], np.float32)
    >>> print(np.asarray(tan(x)).round(4))
    [ 0.      1.5574 -2.185 ]
    """
    check_accuracy(accuracy)
    return tan_p.bind(x, accuracy=accuracy)


@fast_path(asin_p)
def asin(x: ArrayLike) -> Array:
    """Inverse sine of each element, an angle from -π/2 to π/2.

    Floats outside [-1, 1] give NaN. Complex numbers give the principal value.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype, or is not an array or a number.

    The derivative is ``1 / sqrt(1 - x²)``, infinite at the ends of the interval. Under ``vmap``
    the batch is one operand.

    >>> x = np.array([0.0, 0.5, 1.0, 2.0], np.float32)
    >>> print(np.asarray(asin(x)).round(4))
    [0.     0.5236 1.5708    nan]
    """
    return asin_p.bind(x)


@fast_path(acos_p)
def acos(x: ArrayLike) -> Array:
    """Inverse cosine of each element, an angle from 0 to π.

    Floats outside [-1, 1] give NaN. Complex numbers give the principal value.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype, or is not an array or a number.

    The derivative is ``-1 / sqrt(1 - x²)``, infinite at the ends of the interval. Under ``vmap``
    the batch is one operand.

    >>> x = np.array([0.0, 0.5, 1.0, 2.0], np.float32)
    >>> print(np.asarray(acos(x)).round(4))
    [1.5708 1.0472 0.        nan]
    """
    return acos_p.bind(x)


@fast_path(atan_p)
def atan(x: ArrayLike) -> Array:
    """Inverse tangent of each element, an angle from -π/2 to π/2.

    Complex numbers give the principal value. :func:`atan2` computes the angle of a point.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype, or is not an array or a number.

    The derivative is ``1 / (1 + x²)``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 1.0, np.inf], np.float32)
    >>> print(np.asarray(atan(x)).round(4))
    [0.     0.7854 1.5708]
    """
    return atan_p.bind(x)


@fast_path(atan2_p)
def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """Angles of points from their y-coordinates ``x`` and x-coordinates ``y``, from -π to π.

    The signs of both operands select the quadrant. ``atan2(0, -1)`` is π and ``atan2(-0.0, -1)``
    is -π.

    Args:
      x: the y-coordinates, an array or a number of floating or complex dtype.
      y: the x-coordinates, of the same dtype, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype, weakly typed if both operands are.

    Raises:
      TypeError: if the dtypes differ or are not inexact, or the shapes are incompatible.

    The derivatives are ``y / (x² + y²)`` and ``-x / (x² + y²)``; at the origin they are NaN.
    Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 1.0, -1.0], np.float32)
    >>> y = np.array([1.0, 1.0, 0.0], np.float32)
    >>> print(np.asarray(atan2(x, y)).round(4))
    [ 0.      0.7854 -1.5708]
    """
    return atan2_p.bind(x, y)


@fast_path(sinh_p)
def sinh(x: ArrayLike) -> Array:
    """Hyperbolic sine of each element.

    Results overflow only where the hyperbolic sine exceeds the dtype. Small elements keep their
    relative accuracy.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype, or is not an array or a number.

    The derivative is ``cosh(x)``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 1.0, -1.0], np.float32)
    >>> print(np.asarray(sinh(x)).round(4))
    [ 0.      1.1752 -1.1752]
    """
    return sinh_p.bind(x)


@fast_path(cosh_p)
def cosh(x: ArrayLike) -> Array:
    """Hyperbolic cosine of each element.

    Results overflow only where the hyperbolic cosine exceeds the dtype.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype, or is not an array or a number.

    The derivative is ``sinh(x)``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 1.0, -1.0], np.float32)
    >>> print(np.asarray(cosh(x)).round(4))
    [1.     1.5431 1.5431]
    """
    return cosh_p.bind(x)


@fast_path(tanh_p, accuracy=None)
def tanh(x: ArrayLike, *, accuracy: Accuracy | None = None) -> Array:
    """Hyperbolic tangent of each element, between -1 and 1 for floats.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.
      accuracy: ``None``, an :class:`AccuracyMode` or a :class:`Tolerance`. It selects an
        implementation on platforms that have several.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype or is not an array or a number, or if
        ``accuracy`` is of another type.

    The derivative is ``1 - tanh(x)²``, computed as ``(1 + y) (1 - y)`` from the result ``y``.
    Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 1.0, -1.0], np.float32)
    >>> print(np.asarray(tanh(x)).round(4))
    [ 0.      0.7616 -0.7616]
    """
    check_accuracy(accuracy)
    return tanh_p.bind(x, accuracy=accuracy)


@fast_path(asinh_p)
def asinh(x: ArrayLike) -> Array:
    """Inverse hyperbolic sine of each element.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype, or is not an array or a number.

    The derivative is ``1 / sqrt(1 + x²)``, without overflow for large elements. Under ``vmap``
    the batch is one operand.

    >>> x = np.array([0.0, 1.0, -1.0], np.float32)
    >>> print(np.asarray(asinh(x)).round(4))
    [ 0.      0.8814 -0.8814]
    """
    return asinh_p.bind(x)


@fast_path(acosh_p)
def acosh(x: ArrayLike) -> Array:
    """Inverse hyperbolic cosine of each element, nonnegative for floats.

    Floats below 1 give NaN. Complex numbers give the principal value.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype, or is not an array or a number.

    The derivative is ``1 / sqrt((x - 1) (x + 1))``, infinite at 1. Under ``vmap`` the batch is
    one operand.

    >>> x = np.array([0.0, 1.0, 2.0], np.float32)
    >>> print(np.asarray(acosh(x)).round(4))
    [  nan 0.    1.317]
    """
    return acosh_p.bind(x)


@fast_path(atanh_p)
def atanh(x: ArrayLike) -> Array:
    """Inverse hyperbolic tangent of each element.

    Floats outside [-1, 1] give NaN; -1 and 1 give infinities. Complex numbers give the principal
    value.

    Args:
      x: an array or a number of floating or complex dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` has an integer or boolean dtype, or is not an array or a number.

    The derivative is ``1 / (1 - x²)``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.0, 0.5, 2.0], np.float32)
    >>> print(np.asarray(atanh(x)).round(4))
    [0.     0.5493    nan]
    """
    return atanh_p.bind(x)


def _one(x: Any) -> Any:
    return scalar_like(x, 1)


def _asinh_derivative(x: Any) -> Any:
    """``1 / sqrt(1 + x²)``, computed with scaled numbers where the square would overflow."""
    dtype = typeof(x).dtype
    if dtypes.issubdtype(dtype, np.complexfloating):
        a, b = real(x), imag(x)
        return rsqrt(
            complex(add(square(a), one_minus_square(b)), mul(scalar_like(a, 2), mul(a, b)))
        )
    half = dtypes.finfo(dtype).maxexp // 2
    scale = select(
        gt(abs(x), scalar_like(x, 2.0 ** (half - 2))), full_like(x, 2.0**-half), full_like(x, 1)
    )
    return mul(scale, rsqrt(add(square(mul(x, scale)), square(scale))))


derivatives(sin_p, lambda g, out, x, **_: mul(g, cos(x)))
derivatives(cos_p, lambda g, out, x, **_: neg(mul(g, sin(x))))
derivatives(tan_p, lambda g, out, x, **_: mul(g, add(_one(out), square(out))))
derivatives(asin_p, lambda g, out, x: mul(g, rsqrt(one_minus_square(x))))
derivatives(acos_p, lambda g, out, x: mul(g, neg(rsqrt(one_minus_square(x)))))
derivatives(atan_p, lambda g, out, x: div(g, add(_one(x), square(x))))
derivatives(
    atan2_p,
    lambda g, out, x, y: mul(g, div(y, add(square(x), square(y)))),
    lambda g, out, x, y: mul(g, div(neg(x), add(square(x), square(y)))),
)
derivatives(sinh_p, lambda g, out, x: mul(g, cosh(x)))
derivatives(cosh_p, lambda g, out, x: mul(g, sinh(x)))
derivatives(tanh_p, lambda g, out, x, **_: mul(g, one_minus_square(out)))
derivatives(asinh_p, lambda g, out, x: mul(g, _asinh_derivative(x)))
derivatives(acosh_p, lambda g, out, x: mul(g, mul(rsqrt(sub(x, _one(x))), rsqrt(add(x, _one(x))))))
derivatives(atanh_p, lambda g, out, x: div(g, one_minus_square(x)))


for _prim in (sin_p, cos_p, tanh_p):
    elementwise_samples(_prim, "fc", accuracy=None)
elementwise_samples(tan_p, "fc", low=-1, high=1, accuracy=None)
for _prim in (asin_p, acos_p, atanh_p):
    elementwise_samples(_prim, "fc", low=-0.9, high=0.9)
for _prim in (atan_p, sinh_p, cosh_p, asinh_p):
    elementwise_samples(_prim, "fc", low=-0.9, high=0.9)
elementwise_samples(acosh_p, "fc", low=1.1, high=3)
elementwise_samples(atan2_p, "f", arity=2, low=0.2)
