"""Reductions that ignore NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike

from . import _reductions as plain
from ._checks import axes_of, check_arrays, check_out, dtype_argument
from ._functions import compiled, trim_none
from ._promotion import repeated
from ._reduction_helpers import (
    check_initial,
    check_where,
    float_of,
    int_sum_dtype,
    is_complex_dtype,
    is_inexact,
    masked,
    restore_axes,
    strong,
    wide_of,
)
from ._statistics import (
    check_variance,
    counted,
    mean,
    quotient,
    std,
    var,
    variance_of,
)


def not_nan(x: Any) -> Array:
    """True where elements are not NaN."""
    return lax.eq(x, x)


def _counting(x: Any, where: Any) -> Any:
    """The mask of elements to reduce: those that are not NaN, and where ``where`` is true."""
    valid = not_nan(x)
    return valid if where is None else lax.bitwise_and(valid, repeated(where, typeof(x).shape))


def without_nan(x: Any, value: Any) -> Array:
    """The elements with NaN replaced by a value."""
    return lax.select(not_nan(x), x, lax.full_like(x, value))


def _lowest(dtype: Any, sign: int) -> Any:
    """The identity of max (``sign`` -1) or min (1) for floats or complex numbers."""
    return complex(sign * np.inf, sign * np.inf) if is_complex_dtype(dtype) else sign * np.inf


def _extreme(reduce, combine, sign, a, initial, where, axes, keepdims):
    x = strong(a)
    dtype = typeof(x).dtype
    mask = _counting(x, where)
    neutral = np.asarray(_lowest(dtype, sign)).astype(dtype)[()]
    if np.isnan(neutral):  # dtypes without infinity
        neutral = np.asarray(sign * float(dtypes.finfo(dtype).max)).astype(dtype)[()]
    out = reduce(masked(x, mask, neutral), axes)
    if initial is None:
        out = masked(out, lax.reduce_or(mask, axes), np.nan)
    else:
        out = combine(out, lax.convert_element_type(initial, dtype))
    return restore_axes(out, axes, keepdims)


@compiled("axes", "keepdims")
def _nanmax(a, initial=None, where=None, *, axes, keepdims):
    return _extreme(lax.reduce_max, lax.max, -1, a, initial, where, axes, keepdims)


@compiled("axes", "keepdims")
def _nanmin(a, initial=None, where=None, *, axes, keepdims):
    return _extreme(lax.reduce_min, lax.min, 1, a, initial, where, axes, keepdims)


def _nan_extreme(fun, otherwise, a, axis, out, keepdims, initial, where) -> Array:
    name = fun.__name__
    check_arrays(name, a)
    aval = typeof(a)
    if not is_inexact(aval.dtype):
        without_nan_: Array = otherwise(a, axis, out, keepdims, initial, where)
        return without_nan_
    check_out(name, out)
    axes = axes_of(axis, aval.ndim)
    if initial is None and where is not None:
        raise ValueError(
            f"reduction operation {name} does not have an identity, so to use a where mask one "
            "has to specify 'initial'"
        )
    if initial is None and 0 in [aval.shape[i] for i in axes]:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    check_initial(name, initial)
    check_where(name, where, aval.shape)
    extreme: Array = fun(*trim_none(a, initial, where), axes=axes, keepdims=bool(keepdims))
    return extreme


@one_call("axis", "keepdims")
def nanmax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Maximum over axes that ignores NaN; NaN if all elements are NaN.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      initial: a lower bound of the result; required with ``where``, and for empty arrays.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.

    Returns:
      An array without the reduced axes.

    Raises:
      ValueError: if an empty reduction or ``where`` has no ``initial``, or an axis does not exist.

    >>> float(nanmax(np.array([1.0, np.nan])))
    1.0
    """
    return _nan_extreme(_nanmax, plain.max, a, axis, out, keepdims, initial, where)


@one_call("axis", "keepdims")
def nanmin(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Minimum over axes that ignores NaN; NaN if all elements are NaN.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      initial: an upper bound of the result; required with ``where``, and for empty arrays.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.

    Returns:
      An array without the reduced axes.

    Raises:
      ValueError: if an empty reduction or ``where`` has no ``initial``, or an axis does not exist.

    >>> float(nanmin(np.array([1.0, np.nan])))
    1.0
    """
    return _nan_extreme(_nanmin, plain.min, a, axis, out, keepdims, initial, where)


def _total(reduce, combine, neutral, a, initial, where, axes, dtype, keepdims):
    wide = wide_of(dtype)
    x = lax.convert_element_type(masked(a, _counting(a, where), neutral), dtype)
    out = reduce(lax.convert_element_type(x, wide), axes)
    if initial is not None:
        out = combine(out, lax.convert_element_type(initial, wide))
    return restore_axes(lax.convert_element_type(out, dtype), axes, keepdims)


@compiled("axes", "dtype", "keepdims")
def _nansum(a, initial=None, where=None, *, axes, dtype, keepdims):
    return _total(lax.reduce_sum, lax.add, 0, a, initial, where, axes, dtype, keepdims)


@compiled("axes", "dtype", "keepdims")
def _nanprod(a, initial=None, where=None, *, axes, dtype, keepdims):
    return _total(lax.reduce_prod, lax.mul, 1, a, initial, where, axes, dtype, keepdims)


def _nan_total(fun, otherwise, a, axis, dtype, out, keepdims, initial, where) -> Array:
    name = fun.__name__
    check_arrays(name, a)
    aval = typeof(a)
    if not is_inexact(aval.dtype):
        without_nan_: Array = otherwise(a, axis, dtype, out, keepdims, initial, where)
        return without_nan_
    check_out(name, out)
    result_dtype = dtype_argument(dtype, name) or int_sum_dtype(aval.dtype)
    if result_dtype == np.bool_:
        raise TypeError(f"{name} does not accept dtype bool: use any or all")
    check_initial(name, initial)
    check_where(name, where, aval.shape)
    axes = axes_of(axis, aval.ndim)
    total: Array = fun(
        *trim_none(a, initial, where), axes=axes, dtype=result_dtype, keepdims=bool(keepdims)
    )
    return total


@one_call("axis", "keepdims")
def nansum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Sum over axes that ignores NaN.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      dtype: the dtype of the sum, by default as for :func:`sum`.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      initial: the initial value of the sum.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.

    Returns:
      An array without the reduced axes; 0 if all elements are NaN.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    The derivative with respect to an element that is NaN is zero.

    >>> float(nansum(np.array([1.0, np.nan])))
    1.0
    """
    return _nan_total(_nansum, plain.sum, a, axis, dtype, out, keepdims, initial, where)


@one_call("axis", "keepdims")
def nanprod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Product over axes that ignores NaN.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      dtype: the dtype of the product, by default as for :func:`prod`.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      initial: the initial value of the product.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.

    Returns:
      An array without the reduced axes; 1 if all elements are NaN.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    The derivative with respect to an element that is NaN is zero.

    >>> float(nanprod(np.array([2.0, np.nan])))
    2.0
    """
    return _nan_total(_nanprod, plain.prod, a, axis, dtype, out, keepdims, initial, where)


@compiled("axes", "dtype", "keepdims")
def _nanmean(a, where=None, *, axes, dtype, keepdims):
    wide = wide_of(dtype)
    mask = _counting(a, where)
    x = lax.convert_element_type(masked(a, mask, 0), wide)
    n = counted(mask, typeof(a).shape, axes, dtypes.f32 if wide == dtypes.f32 else float_of(wide))
    out = quotient(lax.reduce_sum(x, axes), n)
    return restore_axes(lax.convert_element_type(out, dtype), axes, keepdims)


@one_call("axis", "keepdims")
def nanmean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Mean over axes that ignores NaN; NaN if all elements are NaN.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      dtype: the dtype of the sum and of the result, by default as for :func:`mean`.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.

    Returns:
      An array without the reduced axes.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    >>> float(nanmean(np.array([1.0, np.nan, 3.0])))
    2.0
    """
    check_arrays("nanmean", a)
    aval = typeof(a)
    if not is_inexact(aval.dtype):
        return mean(a, axis, dtype, out, keepdims, where=where)
    check_out("nanmean", out)
    result_dtype = dtype_argument(dtype, "nanmean") or aval.dtype
    if not is_inexact(result_dtype):
        raise ValueError(f"dtype argument to nanmean must be inexact; got {result_dtype.name}")
    check_where("nanmean", where, aval.shape)
    axes = axes_of(axis, aval.ndim)
    average: Array = _nanmean(
        *trim_none(a, where), axes=axes, dtype=result_dtype, keepdims=bool(keepdims)
    )
    return average


@compiled("axes", "dtype", "keepdims", "result")
def _nanvar(a, less, where=None, centre=None, **static):
    return variance_of(a, less, _counting(a, where), centre, **static)


@compiled("axes", "dtype", "keepdims", "result")
def _nanstd(a, less, where=None, centre=None, **static):
    return lax.sqrt(variance_of(a, less, _counting(a, where), centre, **static))


@one_call("axis", "ddof", "keepdims")
def nanvar(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Variance over axes that ignores NaN.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      dtype: the dtype of the sums and of the result, by default as for :func:`var`.
      out: unsupported.
      ddof: the sum of squares is divided by ``n - ddof``, where ``n`` counts the elements that are
        not NaN.
      keepdims: keep the reduced axes with size 1.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.
      mean: the precomputed mean, with ``keepdims=True``.

    Returns:
      An array without the reduced axes.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    >>> float(nanvar(np.array([1.0, np.nan, 3.0])))
    1.0
    """
    static = check_variance("nanvar", a, axis, dtype, out, ddof, where, mean)
    if not is_inexact(typeof(a).dtype):
        return var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean)
    variance: Array = _nanvar(*trim_none(a, ddof, where, mean), keepdims=bool(keepdims), **static)
    return variance


@one_call("axis", "ddof", "keepdims")
def nanstd(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Standard deviation over axes that ignores NaN: the square root of :func:`nanvar`.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      dtype: the dtype of the sums and of the result, by default as for :func:`var`.
      out: unsupported.
      ddof: the sum of squares is divided by ``n - ddof``, where ``n`` counts the elements that are
        not NaN.
      keepdims: keep the reduced axes with size 1.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.
      mean: the precomputed mean, with ``keepdims=True``.

    Returns:
      An array without the reduced axes.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    >>> float(nanstd(np.array([1.0, np.nan, 3.0])))
    1.0
    """
    static = check_variance("nanstd", a, axis, dtype, out, ddof, where, mean)
    if not is_inexact(typeof(a).dtype):
        return std(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean)
    deviation: Array = _nanstd(*trim_none(a, ddof, where, mean), keepdims=bool(keepdims), **static)
    return deviation


def _nan_place(op, sign, a, axis, keepdims):
    x = without_nan(a, sign * np.inf)
    place = plain.place_of(op, x, axis, keepdims)
    axes = tuple(range(typeof(a).ndim)) if axis is None else (axis,)
    some = restore_axes(lax.reduce_or(not_nan(a), axes), axes, keepdims)
    return lax.select(some, place, lax.full_like(place, -1))


@compiled("axis", "keepdims")
def _nanargmax(a, *, axis, keepdims):
    return _nan_place(lax.argmax, -1, a, axis, keepdims)


@compiled("axis", "keepdims")
def _nanargmin(a, *, axis, keepdims):
    return _nan_place(lax.argmin, 1, a, axis, keepdims)


@one_call("axis", "keepdims")
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the maximum that ignores NaN; -1 if all elements are NaN.

    Args:
      a: real numbers or booleans.
      axis: the axis; by default the index is that in the flattened array.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.

    Returns:
      An array of the default integer dtype.

    Raises:
      TypeError: if ``a`` is complex.
      ValueError: if the reduction is empty, or the axis does not exist.

    >>> int(nanargmax(np.array([1.0, np.nan, 3.0])))
    2
    """
    check_arrays("nanargmax", a)
    if not is_inexact(typeof(a).dtype):
        return plain.argmax(a, axis, out, keepdims)
    return plain.call_for_place(_nanargmax, a, axis, out, keepdims)


@one_call("axis", "keepdims")
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the minimum that ignores NaN; -1 if all elements are NaN.

    Args:
      a: real numbers or booleans.
      axis: the axis; by default the index is that in the flattened array.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.

    Returns:
      An array of the default integer dtype.

    Raises:
      TypeError: if ``a`` is complex.
      ValueError: if the reduction is empty, or the axis does not exist.

    >>> int(nanargmin(np.array([1.0, np.nan, 3.0])))
    0
    """
    check_arrays("nanargmin", a)
    if not is_inexact(typeof(a).dtype):
        return plain.argmin(a, axis, out, keepdims)
    return plain.call_for_place(_nanargmin, a, axis, out, keepdims)
