"""Comparisons, predicates of elements, and equality of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, inexact, one_call
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._arithmetic import operate
from ._checks import check_arrays, check_out
from ._creation import asarray
from ._functions import compiled, elementwise
from ._promotion import broadcast_together, check_not_complex, is_complex, pair

# Comparisons


def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x == y`` elementwise.

    Args:
      x, y: arrays or numbers whose shapes broadcast, of any dtype.

    Returns:
      A boolean array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> equal(np.array([1, 2], np.int32), 2)
    Array([False,  True], dtype=bool)
    """
    return operate("equal", operator.eq, x, y)


def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x != y`` elementwise.

    Args:
      x, y: arrays or numbers whose shapes broadcast, of any dtype.

    Returns:
      A boolean array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> not_equal(np.array([1, 2], np.int32), 2)
    Array([ True, False], dtype=bool)
    """
    return operate("not_equal", operator.ne, x, y)


def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x < y`` elementwise; complex numbers are ordered lexicographically.

    Args:
      x, y: arrays or numbers whose shapes broadcast, of any dtype.

    Returns:
      A boolean array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> less(np.array([1, 2], np.int32), 2)
    Array([ True, False], dtype=bool)
    """
    return operate("less", operator.lt, x, y)


def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x <= y`` elementwise; complex numbers are ordered lexicographically.

    Args:
      x, y: arrays or numbers whose shapes broadcast, of any dtype.

    Returns:
      A boolean array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> less_equal(np.array([1, 2], np.int32), 1)
    Array([ True, False], dtype=bool)
    """
    return operate("less_equal", operator.le, x, y)


def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x > y`` elementwise; complex numbers are ordered lexicographically.

    Args:
      x, y: arrays or numbers whose shapes broadcast, of any dtype.

    Returns:
      A boolean array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> greater(np.array([1, 2], np.int32), 1)
    Array([False,  True], dtype=bool)
    """
    return operate("greater", operator.gt, x, y)


def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x >= y`` elementwise; complex numbers are ordered lexicographically.

    Args:
      x, y: arrays or numbers whose shapes broadcast, of any dtype.

    Returns:
      A boolean array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> greater_equal(np.array([1, 2], np.int32), 2)
    Array([False,  True], dtype=bool)
    """
    return operate("greater_equal", operator.ge, x, y)


def truth(x: Any) -> Any:
    """True where elements are not zero; booleans unchanged."""
    return x if typeof(x).dtype == np.bool_ else x != 0


@elementwise
def logical_not(x: ArrayLike, /) -> Array:
    """True where an element is zero or ``False``.

    Args:
      x: an array or a number of any dtype.

    Returns:
      A boolean array of the shape of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> logical_not(np.array([0, 1, 2], np.int32))
    Array([ True, False, False], dtype=bool)
    """
    return lax.bitwise_not(truth(x))


# Infinities and NaN


@elementwise
def isnan(x: ArrayLike, /) -> Array:
    """True where an element, or a part of a complex one, is NaN.

    Args:
      x: an array or a number of any dtype.

    Returns:
      A boolean array of the shape of ``x``; false for integers and booleans.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> isnan(np.array([1.0, np.nan, np.inf], np.float32))
    Array([False,  True, False], dtype=bool)
    """
    return lax.ne(x, x)


def _finite(x: Any) -> Any:
    if is_complex(x):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


@elementwise
def isfinite(x: ArrayLike, /) -> Array:
    """True where an element is neither infinite nor NaN.

    Args:
      x: an array or a number of any dtype.

    Returns:
      A boolean array of the shape of ``x``; true for integers and booleans.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> isfinite(np.array([1.0, np.nan, np.inf], np.float32))
    Array([ True, False, False], dtype=bool)
    """
    if not dtypes.issubdtype(typeof(x).dtype, np.inexact):
        return lax.full_like(x, True, np.dtype(np.bool_))
    return _finite(x)


def _is_infinite(x: Any) -> Any:
    return lax.abs(x) == np.inf


@elementwise
def isinf(x: ArrayLike, /) -> Array:
    """True where an element, or a part of a complex one, is infinite.

    Args:
      x: an array or a number of any dtype.

    Returns:
      A boolean array of the shape of ``x``; false for integers and booleans.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> isinf(np.array([1.0, np.nan, np.inf], np.float32))
    Array([False, False,  True], dtype=bool)
    """
    if is_complex(x):
        infinite = lax.bitwise_or(_is_infinite(lax.real(x)), _is_infinite(lax.imag(x)))
    elif dtypes.issubdtype(typeof(x).dtype, np.floating):
        infinite = _is_infinite(x)
    else:
        return lax.full_like(x, False, np.dtype(np.bool_))
    return lax.convert_element_type(infinite, np.bool_)


@compiled("infinity")
def _is_signed_infinity(x, *, infinity):
    if not dtypes.issubdtype(typeof(x).dtype, np.floating):
        return lax.full_like(x, False, np.dtype(np.bool_))
    return lax.convert_element_type(x == infinity, np.bool_)


@one_call()
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """True where an element is positive infinity.

    Args:
      x: an array or a number of real dtype.
      out: unsupported.

    Returns:
      A boolean array of the shape of ``x``; false for integers and booleans.

    Raises:
      ValueError: for complex numbers.

    >>> isposinf(np.array([1.0, -np.inf, np.inf], np.float32))
    Array([False, False,  True], dtype=bool)
    """
    check_arrays("isposinf", x)
    check_out("isposinf", out)
    check_not_complex("isposinf", x)
    return _is_signed_infinity(x, infinity=np.inf)


@one_call()
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """True where an element is negative infinity.

    Args:
      x, out: as for :func:`isposinf`.

    Returns:
      A boolean array of the shape of ``x``; false for integers and booleans.

    Raises:
      ValueError: for complex numbers.

    >>> isneginf(np.array([1.0, -np.inf, np.inf], np.float32))
    Array([False,  True, False], dtype=bool)
    """
    check_arrays("isneginf", x)
    check_out("isneginf", out)
    check_not_complex("isneginf", x)
    return _is_signed_infinity(x, infinity=-np.inf)


# Complex numbers


@elementwise
def iscomplex(x: ArrayLike) -> Array:
    """True where the imaginary part of an element is not zero.

    Args:
      x: an array or a number of any dtype.

    Returns:
      A boolean array of the shape of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> iscomplex(np.array([1.0, 1j, 2.0], np.complex64))
    Array([False,  True, False], dtype=bool)
    """
    part = lax.imag(x) if is_complex(x) else lax.full_like(x, 0)
    return lax.ne(part, lax.full_like(part, 0))


@elementwise
def isreal(x: ArrayLike) -> Array:
    """True where the imaginary part of an element is zero.

    Args:
      x: an array or a number of any dtype.

    Returns:
      A boolean array of the shape of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> isreal(np.array([1.0, 1j, 2.0], np.complex64))
    Array([ True, False,  True], dtype=bool)
    """
    part = lax.imag(x) if is_complex(x) else lax.full_like(x, 0)
    return lax.eq(part, lax.full_like(part, 0))


def iscomplexobj(x: Any) -> bool:
    """True if a value has a complex dtype, regardless of its elements.

    Args:
      x: any value: an array, a number, a sequence, or another object.

    Returns:
      A Python boolean.

    >>> iscomplexobj(1.0), iscomplexobj([1.0, 2j])
    (False, True)
    """
    if x is None:
        return False
    if not hasattr(x, "dtype"):
        x = np.asarray(x)
    return dtypes.issubdtype(x.dtype, np.complexfloating)


def isrealobj(x: Any) -> bool:
    """True if a value does not have a complex dtype, regardless of its elements.

    Args:
      x: any value: an array, a number, a sequence, or another object.

    Returns:
      A Python boolean.

    >>> isrealobj(1.0), isrealobj([1.0, 2j])
    (True, False)
    """
    return not iscomplexobj(x)


@elementwise
def real(val: ArrayLike, /) -> Array:
    """Real part of each element; real elements unchanged.

    Args:
      val: an array or a number of real or complex dtype.

    Returns:
      An array of the shape of ``val``.

    Raises:
      TypeError: if ``val`` is not an array or a number. Lists are not converted.

    >>> real(np.array([1 + 2j, 3.0, -1j], np.complex64))
    Array([ 1.,  3., -0.], dtype=float32)
    """
    return lax.real(val) if is_complex(val) else val


@elementwise
def imag(val: ArrayLike, /) -> Array:
    """Imaginary part of each element; zero for real elements.

    Args:
      val: an array or a number of real or complex dtype.

    Returns:
      An array of the shape of ``val``.

    Raises:
      TypeError: if ``val`` is not an array or a number. Lists are not converted.

    >>> imag(np.array([1 + 2j, 3.0, -1j], np.complex64))
    Array([ 2.,  0., -1.], dtype=float32)
    """
    return lax.imag(val) if is_complex(val) else lax.full_like(val, 0)


@elementwise
def conj(x: ArrayLike, /) -> Array:
    """Complex conjugate of each element; real elements unchanged.

    Args:
      x: an array or a number of real or complex dtype.

    Returns:
      An array of the shape of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> conj(np.array([1 + 2j, 3.0, -1j], np.complex64))
    Array([ 1.-2.j,  3.-0.j, -0.+1.j], dtype=complex64)
    """
    return lax.conj(x) if is_complex(x) else x


conjugate = conj

# Closeness and equality


def _close(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Any:
    if any(isinstance(typeof(v).dtype, dtypes.ExtendedDType) for v in (a, b)):
        return a == b  # keys have no distance
    x, y = pair("isclose", a, b)
    equal: Any = x == y
    if isinstance(typeof(x).dtype, dtypes.ExtendedDType):
        return equal
    whole = not dtypes.issubdtype(typeof(x).dtype, np.inexact)
    x, y = pair("isclose", x, y, inexact)
    real = typeof(lax.abs(x)).dtype
    rtol, atol = (lax.convert_element_type(v, real) for v in (rtol, atol))
    x, y, equal, rtol, atol = broadcast_together(x, y, equal, rtol, atol)
    distance: Any = lax.abs(x - y)
    if whole:  # different integers may round to the same float
        distance = lax.max(distance, lax.convert_element_type(lax.bitwise_not(equal), real))
    near = lax.bitwise_and(distance <= atol + rtol * lax.abs(y), _finite(y))
    near = lax.bitwise_or(equal, lax.bitwise_and(near, _finite(x)))
    if equal_nan:
        near = lax.bitwise_or(near, lax.bitwise_and(x != x, y != y))
    return lax.convert_element_type(near, np.bool_)


_RTOL, _ATOL = 1e-05, 1e-08


@compiled("equal_nan")
def _isclose(a, b, rtol=_RTOL, atol=_ATOL, *, equal_nan):
    return _close(a, b, rtol, atol, equal_nan)


@compiled("equal_nan")
def _allclose(a, b, rtol=_RTOL, atol=_ATOL, *, equal_nan):
    near = _close(a, b, rtol, atol, equal_nan)
    return lax.reduce_and(near, tuple(range(typeof(near).ndim)))


def _compare(
    name: str, fun: Callable[..., Any], a: Any, b: Any, rtol: Any, atol: Any, equal_nan: Any
) -> Array:
    check_arrays(name, a, b, rtol, atol)
    usual = rtol is _RTOL and atol is _ATOL
    tolerances = () if usual else (rtol, atol)
    out: Array = fun(a, b, *tolerances, equal_nan=bool(equal_nan))
    return out


@one_call("equal_nan")
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = _RTOL, atol: ArrayLike = _ATOL,
    equal_nan: bool = False,
) -> Array:  # fmt: skip
    """True where ``abs(a - b) <= atol + rtol * abs(b)``.

    Args:
      a, b: arrays or numbers whose shapes broadcast.
      rtol, atol: relative and absolute tolerance: numbers, or arrays that broadcast.
      equal_nan: treat NaN as close to NaN. An infinity is close only to itself.

    Returns:
      A boolean array of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> isclose(np.array([1.0, 2.0]), np.array([1.000001, 2.1])).tolist()
    [True, False]
    """
    return _compare("isclose", _isclose, a, b, rtol, atol, equal_nan)


@one_call("equal_nan")
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = _RTOL, atol: ArrayLike = _ATOL,
    equal_nan: bool = False,
) -> Array:  # fmt: skip
    """True if all elements of two arrays are close.

    Args:
      a, b: arrays or numbers whose shapes broadcast.
      rtol, atol: relative and absolute tolerance: numbers, or arrays that broadcast.
      equal_nan: treat NaN as close to NaN.

    Returns:
      A boolean scalar.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> bool(allclose(np.array([1.0, 2.0]), np.array([1.000001, 2.1])))
    False
    """
    return _compare("allclose", _allclose, a, b, rtol, atol, equal_nan)


@compiled("equal_nan")
def _all_equal(a, b, *, equal_nan):
    x, y = broadcast_together(*pair("array_equal", a, b))
    same: Any = x == y
    if equal_nan:
        same = lax.bitwise_or(same, lax.bitwise_and(x != x, y != y))
    all_same = lax.reduce_and(same, tuple(range(typeof(same).ndim)))
    return lax.convert_element_type(all_same, np.bool_)


@one_call("equal_nan")
def array_equal(
    a1: ArrayLike | Sequence[Any], a2: ArrayLike | Sequence[Any], equal_nan: bool = False
) -> Array:
    """True if two arrays, or nested sequences, have the same shape and equal elements.

    Args:
      a1, a2: arrays, numbers or nested sequences.
      equal_nan: treat NaN as equal to NaN.

    Returns:
      A boolean scalar, which is traced under ``jit``.

    >>> bool(array_equal(np.array([1, 2]), [1, 2]))
    True
    """
    a1, a2 = asarray(a1), asarray(a2)
    if typeof(a1).shape != typeof(a2).shape:
        return asarray(np.False_)
    return _all_equal(a1, a2, equal_nan=bool(equal_nan))


def array_equiv(a1: ArrayLike | Sequence[Any], a2: ArrayLike | Sequence[Any]) -> Array:
    """True if two arrays, or nested sequences, are equal after broadcasting.

    Args:
      a1, a2: arrays, numbers or nested sequences.

    Returns:
      A boolean scalar; false if the shapes do not broadcast.

    >>> bool(array_equiv(np.array([2, 2]), 2))
    True
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        broadcast_shapes(typeof(a1).shape, typeof(a2).shape)
    except ValueError:
        return asarray(np.False_)
    return _all_equal(a1, a2, equal_nan=False)


# Predicates of Python values


def isscalar(element: Any) -> bool:
    """True if a value is a number, a string, or an array of rank 0.

    >>> isscalar(3), isscalar(np.zeros(())), isscalar([3])
    (True, True, False)
    """
    if np.isscalar(element):
        return True
    return hasattr(element, "dtype") and getattr(element, "ndim", None) == 0


def iterable(y: ArrayLike) -> bool:
    """True if a value can be iterated over; arrays of rank 0 cannot.

    Args:
      y: any value.

    Returns:
      A Python boolean.

    >>> iterable(np.zeros(2)), iterable(3.0)
    (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True
