"""Cumulative sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike

from ._checks import check_arrays, check_out, dtype_argument, one_axis
from ._functions import compiled
from ._nan_reductions import without_nan
from ._reduction_helpers import int_sum_dtype, is_inexact


def _running(op: Callable[..., Any], fill: int | None, a: Any, axis: int | None, dtype: Any) -> Any:
    x = a
    if fill is not None and is_inexact(typeof(x).dtype):
        x = without_nan(x, fill)
    if dtype == np.bool_:  # computed as integers, then compared with zero
        return lax.ne(_running(op, None, lax.convert_element_type(x, dtype), axis, np.int32), 0)
    x = lax.convert_element_type(x, dtype)
    if axis is None:
        x = lax.reshape(x, (typeof(x).size,))
    return op(x, axis or 0)


@compiled("axis", "dtype")
def _cumsum(a, *, axis, dtype):
    return _running(lax.cumsum, None, a, axis, dtype)


@compiled("axis", "dtype")
def _cumprod(a, *, axis, dtype):
    return _running(lax.cumprod, None, a, axis, dtype)


@compiled("axis", "dtype")
def _nancumsum(a, *, axis, dtype):
    return _running(lax.cumsum, 0, a, axis, dtype)


@compiled("axis", "dtype")
def _nancumprod(a, *, axis, dtype):
    return _running(lax.cumprod, 1, a, axis, dtype)


def _call(fun: Callable[..., Array], a: Any, axis: Any, dtype: Any, out: Any) -> Array:
    name = fun.__name__
    check_arrays(name, a)
    check_out(name, out)
    aval = typeof(a)
    position = None if axis is None else one_axis(axis, aval.ndim or 1)
    if not aval.ndim:
        position = None
    result_dtype = dtype_argument(dtype, name)
    if result_dtype is None:
        result_dtype = dtypes.default_int() if aval.dtype == np.bool_ else aval.dtype
    return fun(a, axis=position, dtype=result_dtype)


@one_call("axis")
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Cumulative sum along an axis.

    Args:
      a: an array or a number.
      axis: the axis; the flattened array by default.
      dtype: the dtype of the accumulator, by default that of the operand (the default integer for
        booleans). Floats of less than 32 bits are accumulated in ``float32``.
      out: unsupported.

    Returns:
      An array of the shape of ``a``, or a vector without ``axis``.

    Raises:
      ValueError: if the array has no such axis.

    The derivative is the sum of the cotangents from an element to the end.

    >>> cumsum(np.array([1, 2, 3])).tolist()
    [1, 3, 6]
    >>> cumsum(np.array([[1, 2], [3, 4]]), axis=0).tolist()
    [[1, 2], [4, 6]]
    """
    return _call(_cumsum, a, axis, dtype, out)


@one_call("axis")
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Cumulative product along an axis.

    Args:
      a: an array or a number.
      axis: the axis; the flattened array by default.
      dtype: the dtype of the accumulator, by default that of the operand (the default integer for
        booleans). Floats of less than 32 bits are accumulated in ``float32``.
      out: unsupported.

    Returns:
      An array of the shape of ``a``, or a vector without ``axis``.

    Raises:
      ValueError: if the array has no such axis.

    >>> cumprod(np.array([1, 2, 3])).tolist()
    [1, 2, 6]
    >>> cumprod(np.array([[1, 2], [3, 4]]), axis=0).tolist()
    [[1, 2], [3, 8]]
    """
    return _call(_cumprod, a, axis, dtype, out)


@one_call("axis")
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Cumulative sum that treats NaN as 0.

    Args:
      a: an array or a number.
      axis: the axis; the flattened array by default.
      dtype: the dtype of the accumulator, by default that of the operand (the default integer for
        booleans). Floats of less than 32 bits are accumulated in ``float32``.
      out: unsupported.

    Returns:
      An array of the shape of ``a``, or a vector without ``axis``.

    Raises:
      ValueError: if the array has no such axis.

    The derivative with respect to an element that is NaN is zero.

    >>> nancumsum(np.array([1.0, np.nan, 3.0])).tolist()
    [1.0, 1.0, 4.0]
    """
    return _call(_nancumsum, a, axis, dtype, out)


@one_call("axis")
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Cumulative product that treats NaN as 1.

    Args:
      a: an array or a number.
      axis: the axis; the flattened array by default.
      dtype: the dtype of the accumulator, by default that of the operand (the default integer for
        booleans). Floats of less than 32 bits are accumulated in ``float32``.
      out: unsupported.

    Returns:
      An array of the shape of ``a``, or a vector without ``axis``.

    Raises:
      ValueError: if the array has no such axis.

    The derivative with respect to an element that is NaN is zero.

    >>> nancumprod(np.array([2.0, np.nan, 3.0])).tolist()
    [2.0, 2.0, 6.0]
    """
    return _call(_nancumprod, a, axis, dtype, out)


def _with_initial(op: Callable[..., Any], neutral: int, x: Any, axis: int, dtype: Any, first: bool):
    out = _running(op, None, x, axis, dtype)
    if not first:
        return out
    shape = typeof(x).shape
    start = lax.full((*shape[:axis], 1, *shape[axis + 1 :]), np.asarray(neutral).astype(dtype)[()])
    return lax.concatenate([start, out], axis)


@compiled("axis", "dtype", "include_initial")
def _cumulative_sum(x, *, axis, dtype, include_initial):
    return _with_initial(lax.cumsum, 0, x, axis, dtype, include_initial)


@compiled("axis", "dtype", "include_initial")
def _cumulative_prod(x, *, axis, dtype, include_initial):
    return _with_initial(lax.cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(fun: Callable[..., Array], x: Any, axis: Any, dtype: Any, first: bool) -> Array:
    name = fun.__name__
    check_arrays(name, x)
    aval = typeof(x)
    if not aval.ndim:
        raise ValueError(f"{name}: the input must have an axis, got a scalar")
    if axis is None:
        if aval.ndim > 1:
            raise ValueError(
                f"{name}: the input has shape {aval.shape}, rank {aval.ndim}, so axis= must be "
                "given; it is only optional for one-dimensional arrays"
            )
        axis = 0
    result_dtype = dtype_argument(dtype, name) or int_sum_dtype(aval.dtype)
    at = one_axis(axis, aval.ndim)
    return fun(x, axis=at, dtype=result_dtype, include_initial=bool(first))


@one_call("axis", "include_initial")
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Cumulative sum along an axis, by the array API standard.

    Args:
      x: an array with at least one axis.
      axis: the axis; required for arrays of several axes.
      dtype: the dtype of the accumulator; by default as for :func:`sum`, so that narrow integers
        do not wrap.
      include_initial: prepend a 0 to the result, which becomes longer by one.

    Returns:
      An array of the shape of ``x``, except for ``include_initial``.

    Raises:
      ValueError: for scalars, and without ``axis`` for arrays of several axes.

    >>> cumulative_sum(np.array([1, 2]), include_initial=True).tolist()
    [0, 1, 3]
    """
    return _cumulative(_cumulative_sum, x, axis, dtype, include_initial)


@one_call("axis", "include_initial")
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Cumulative product along an axis, by the array API standard.

    Args:
      x: an array with at least one axis.
      axis: the axis; required for arrays of several axes.
      dtype: the dtype of the accumulator; by default as for :func:`sum`, so that narrow integers
        do not wrap.
      include_initial: prepend a 1 to the result, which becomes longer by one.

    Returns:
      An array of the shape of ``x``, except for ``include_initial``.

    Raises:
      ValueError: for scalars, and without ``axis`` for arrays of several axes.

    >>> cumulative_prod(np.array([2, 3]), include_initial=True).tolist()
    [1, 2, 6]
    """
    return _cumulative(_cumulative_prod, x, axis, dtype, include_initial)
