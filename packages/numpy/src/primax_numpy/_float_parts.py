"""Signs, exponents and mantissas of floating-point numbers, and adjacent floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, library_function, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays, check_out
from ._functions import compiled, elementwise
from ._promotion import (
    as_inexact,
    as_real,
    check_not_complex,
    common_shape,
    is_complex,
    real_pair,
    repeated,
)

_INTEGERS = {1: np.dtype(np.int8), 2: dtypes.i16, 4: dtypes.i32, 8: dtypes.i64}


def sign_bits(x: Any) -> Any:
    """True where the sign bit of a float is set, also for -0.0."""
    return lax.bitcast_convert_type(x, _INTEGERS[typeof(x).dtype.itemsize]) < 0


@elementwise
def signbit(x: ArrayLike, /) -> Array:
    """True where the sign bit of an element is set: negative numbers, -0.0, and negative NaN.

    Args:
      x: an array or a number of real dtype.

    Returns:
      A boolean array of the shape of ``x``.

    Raises:
      ValueError: if ``x`` is complex.

    >>> signbit(np.array([1.0, -0.0, -np.inf], np.float32))
    Array([False,  True,  True], dtype=bool)
    """
    check_not_complex("signbit", x)
    return sign_bits(as_inexact(x))


@elementwise
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Magnitudes of ``x1`` with the signs of ``x2``; integers become floats.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast; integers are converted to floats.

    Returns:
      A float array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivative with respect to ``x2`` is 0.

    >>> copysign(np.array([1.0, -2.0], np.float32), -0.0)
    Array([-1., -2.], dtype=float32)
    """
    x, y = real_pair("copysign", x1, x2)
    size = lax.abs(x)
    shape = common_shape(typeof(x).shape, typeof(y).shape)
    return _chosen(sign_bits(y), lax.neg(size), size, shape)


def _chosen(condition: Any, x: Any, y: Any, shape: tuple[int, ...]) -> Any:
    """Elements of ``x`` where the condition is true, else of ``y``, for operands of one rank."""
    return lax.select(*[repeated(v, shape) for v in (condition, x, y)])


@elementwise
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The next float after each element of ``x`` toward ``y``; integers become floats.

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      A float array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivative is 0.

    >>> nextafter(np.array([1.0, 0.0], np.float32), 2.0)
    Array([1.0000001e+00, 1.4012985e-45], dtype=float32)
    """
    return lax.nextafter(*real_pair("nextafter", x, y))


@elementwise
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 where ``x1`` is negative, 1 where it is positive, ``x2`` where it is 0, NaN for NaN.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast; integers are converted to floats.

    Returns:
      A float array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number.

    The derivative with respect to ``x1`` is 0.

    >>> heaviside(np.array([-2.0, 0.0, 2.0], np.float32), 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    x, y = real_pair("heaviside", x1, x2)
    shape = common_shape(typeof(x).shape, typeof(y).shape)
    x, y = repeated(x, shape), repeated(y, shape)
    step = lax.select(x < 0, lax.full_like(x, 0), lax.full_like(x, 1))
    known = lax.select(x == 0, y, step)
    return lax.select(x != x, lax.full_like(x, np.nan), known)


# Exponents. Floats narrower than 32 bits are decomposed as float32, which is exact.


def _wide(x: Any) -> Any:
    narrow = typeof(x).dtype.itemsize < 4
    return lax.convert_element_type(x, dtypes.f32) if narrow else x


def _bits(x: Any) -> tuple[Any, Any, int]:
    """The bits of floats of 32 or 64 bits, their biased exponents, and the mantissa width."""
    dtype = typeof(x).dtype
    mantissa = dtypes.finfo(dtype).nmant
    bits: Any = lax.bitcast_convert_type(x, _INTEGERS[dtype.itemsize])
    mask = 0x7FF if mantissa == 52 else 0xFF
    return bits, (bits >> mantissa) & mask, mantissa


def _power_of_2(exponent: Any, dtype: Any) -> Any:
    """2 to the power of an exponent in the normal range."""
    info = dtypes.finfo(dtype)
    whole = _INTEGERS[dtype.itemsize]
    biased: Any = lax.convert_element_type(exponent, whole) + (info.maxexp - 1)
    return lax.bitcast_convert_type(biased << info.nmant, dtype)


def _scaled(x: Any, exponent: Any) -> Any:
    """Floats of 32 or 64 bits times powers of 2, in steps that are normal floats."""
    dtype = typeof(x).dtype
    top = int(dtypes.finfo(dtype).maxexp) - 1
    left = lax.clamp(np.int32(-3 * top), exponent, np.int32(3 * top))
    for _ in range(3):
        step = lax.clamp(np.int32(1 - top), left, np.int32(top))
        x, left = x * _power_of_2(step, dtype), left - step
    return x


@elementwise
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 * 2**x2`` for integers ``x2``, exact unless the result overflows or underflows.

    Args:
      x1, x2: mantissas, and integer exponents.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      ValueError: if ``x1`` is complex, or ``x2`` is not of integer dtype.

    The derivative with respect to the mantissa is ``2**x2``.

    >>> ldexp(np.array([1.0, 3.0], np.float32), 2)
    Array([ 4., 12.], dtype=float32)
    """
    aval, exponent = typeof(x1), typeof(x2)
    whole = dtypes.issubdtype(exponent.dtype, np.integer) or exponent.dtype == np.bool_
    if is_complex(x1) or not whole:
        raise ValueError(
            f"ldexp not supported for input types {aval.dtype.name}, {exponent.dtype.name}: the "
            "second operand must have an integer dtype, the first a real one."
        )
    x = as_inexact(x1)
    dtype = typeof(x).dtype
    x = lax.convert_element_type(x, dtype)
    shape = common_shape(aval.shape, exponent.shape)
    e = lax.convert_element_type(lax.clamp(*_bounds(x2)), np.int32)
    out = _scaled(_wide(repeated(x, shape)), repeated(e, shape))
    return lax.convert_element_type(out, dtype)


def _bounds(exponent: Any) -> tuple[Any, Any, Any]:
    """Arguments of ``clamp`` for exponents: any float overflows beyond these int32 bounds."""
    if typeof(exponent).dtype == np.bool_:
        exponent = lax.convert_element_type(exponent, np.int32)
    info = dtypes.iinfo(typeof(exponent).dtype)
    low, high = max(info.min, -10_000), min(info.max, 10_000)
    return lax.full_like(exponent, low), exponent, lax.full_like(exponent, high)


@elementwise
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Mantissas in ``[1/2, 1)`` by magnitude, and exponents of 2, such that ``m * 2**e == x``.

    0, infinities and NaN are returned as mantissas.

    Args:
      x: an array or a number of real dtype; integers become floats.

    Returns:
      A pair of arrays of the shape of ``x``: float mantissas and integer exponents.

    Raises:
      TypeError: if ``x`` is not an array or a number.

    The inverse is :func:`ldexp`.

    >>> frexp(np.float32(12))
    (Array(0.75, dtype=float32), Array(4, dtype=int32))
    """
    x = as_real("frexp", x)
    dtype = typeof(x).dtype
    wide = lax.convert_element_type(_wide(x), typeof(_wide(x)).dtype)
    _, biased, _ = _bits(wide)
    top = int(dtypes.finfo(typeof(wide).dtype).maxexp)
    odd = lax.bitwise_or(wide == 0, lax.bitwise_not(lax.is_finite(wide)))
    exponent: Any = lax.convert_element_type(biased, np.int32) - (top - 2)
    exponent = lax.select(odd, lax.full_like(exponent, 0), exponent)
    mantissa = _scaled(wide, lax.neg(exponent))
    return lax.convert_element_type(mantissa, dtype), exponent


@elementwise
def spacing(x: ArrayLike, /) -> Array:
    """Distance from each element to the next float away from zero, with the sign of the element.

    Args:
      x: an array or a number of real dtype; integers become floats.

    Returns:
      A float array of the shape of ``x``; NaN for infinities and NaN.

    Raises:
      TypeError: if ``x`` is not an array or a number.
      ValueError: if ``x`` is complex.

    The derivative is 0. Floats of 8 bits raise an error.

    >>> spacing(np.array([1.0, -2.0], np.float32)).tolist() == [2.0**-23, -(2.0**-22)]
    True
    """
    check_not_complex("spacing", x)
    x = as_inexact(x)
    dtype = typeof(x).dtype
    if dtype.itemsize < 2:
        raise NotImplementedError(f"spacing is not defined for dtype {dtype.name}")
    whole, mantissa = _INTEGERS[dtype.itemsize], dtypes.finfo(dtype).nmant
    bits: Any = lax.bitcast_convert_type(x, whole)
    sign = bits & np.iinfo(whole).min
    biased = (bits & np.iinfo(whole).max) >> mantissa
    one = lax.full_like(bits, 1)
    normal = lax.max(biased - mantissa, one) << mantissa
    denormal = one << lax.max(biased - 1, lax.full_like(bits, 0))
    gap = lax.select(biased > mantissa, normal, denormal) | sign
    distance = lax.bitcast_convert_type(gap, dtype)
    return lax.select(lax.is_finite(x), distance, lax.full_like(distance, np.nan))


# Whole and fractional parts


@library_function
def _modf(x):
    x = as_real("modf", x)
    negative = sign_bits(x)
    size: Any = lax.select(negative, lax.neg(x), x)
    whole = lax.floor(size)
    part = lax.select(size == np.inf, lax.full_like(size, 0), size - whole)
    return [lax.select(negative, lax.neg(v), v) for v in (part, whole)]


@one_call()
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Fractional and integral part of each element, both with its sign.

    Args:
      x: an array or a number of real dtype; integers become floats.
      out: unsupported.

    Returns:
      A pair of float arrays of the shape of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number.

    The derivative of the fractional part is 1, that of the integral part 0.

    >>> modf(np.float32(-2.5))
    (Array(-0.5, dtype=float32), Array(-2., dtype=float32))
    """
    check_arrays("modf", x)
    check_out("modf", out)
    part, whole = _modf(x)
    return part, whole


@compiled("numbers")
def _nan_to_num(x, arrays=(), *, numbers):
    """``numbers`` has ``None`` for an array value, and ``...`` for an omitted one."""
    dtype = typeof(x).dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        return x
    x = lax.convert_element_type(x, dtype)  # strongly typed
    left = iter(arrays)
    values = [next(left) if n is None else n for n in numbers]
    if is_complex(x):
        return lax.complex(*[_numbers(p, values) for p in (lax.real(x), lax.imag(x))])
    return _numbers(x, values)


def _numbers(x: Any, values: list[Any]) -> Any:
    dtype = typeof(x).dtype
    info = dtypes.finfo(dtype)
    for value, odd, usual in zip(values, (np.nan, np.inf, -np.inf), (0.0, info.max, info.min)):
        new = lax.convert_element_type(usual if value is ... else value, dtype)
        shape = common_shape(typeof(x).shape, typeof(new).shape)
        x = repeated(x, shape)
        matches = x != x if odd != odd else x == odd
        x = lax.select(matches, repeated(new, shape), x)
    return x


def _plain(value: Any) -> bool:
    return type(value) in (int, float) and value == value


@one_call("copy")
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Elements with NaN and infinities replaced by finite numbers, also in complex parts.

    Args:
      x: an array or a number.
      copy: ignored: arrays are immutable.
      nan, posinf, neginf: replacements for NaN and the infinities; by default 0 and the largest
        and smallest finite number.

    Returns:
      An array of the shape and dtype of ``x``.

    The derivative is zero where an element is replaced.

    >>> nan_to_num(np.array([1.0, np.nan, np.inf], np.float32), posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    check_arrays("nan_to_num", x)
    replacements: list[Any] = [... if v is None else v for v in (nan, posinf, neginf)]
    numbers = tuple([float(v) if _plain(v) else ... if v is ... else None for v in replacements])
    arrays = tuple([v for v, n in zip(replacements, numbers) if n is None])
    if arrays:
        check_arrays("nan_to_num", *arrays)
        return _nan_to_num(x, arrays, numbers=numbers)
    return _nan_to_num(x, numbers=numbers)
