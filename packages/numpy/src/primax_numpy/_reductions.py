"""Reductions over axes: sums, products, extrema, logical reductions, argmax and argmin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from primax_core import lax
from primax_core.extend import Array, FastPath, dtypes, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike

from ._checks import axes_of, check_arrays, check_out, dtype_argument, one_axis
from ._functions import compiled, trim_none
from ._reduction_helpers import (
    check_initial,
    check_where,
    int_sum_dtype,
    is_complex_dtype,
    masked,
    restore_axes,
    short_key,
    strong,
    wide_of,
)

_Op: TypeAlias = Callable[..., Any]


def _total_of(name: str, reduce: _Op, combine: _Op, truth: _Op, neutral: int) -> FastPath:
    """The compiled part of a sum or product; ``truth`` is the reduction of booleans."""

    @compiled("axes", "dtype", "keepdims", name=name)
    def general(a, initial=None, where=None, *, axes, dtype, keepdims):
        x = masked(lax.convert_element_type(a, dtype), where, neutral)
        wide = wide_of(dtype)
        out = truth(x, axes) if dtype == np.bool_ else reduce(_as(x, wide), axes)
        if initial is not None:
            out = combine(out, _as(lax.convert_element_type(initial, dtype), wide))
        return restore_axes(_as(out, dtype), axes, keepdims)

    return FastPath(general)


def _as(x: Any, dtype: Any) -> Any:
    return x if typeof(x).dtype == dtype else lax.convert_element_type(x, dtype)


def _total(
    path: FastPath, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any,
    where: Any, promote_integers: bool,
) -> Array:  # fmt: skip
    simple = initial is where is dtype is out is None and promote_integers
    key = short_key(axis, keepdims) if simple else None
    if key is not None:
        fast: Array | None = path.lookup(key, a)
        if fast is not None:
            return fast
    name = path.function.__name__
    check_arrays(name, a)
    check_out(name, out)
    aval = typeof(a)
    axes = axes_of(axis, aval.ndim)
    result_dtype = dtype_argument(dtype, name)
    if result_dtype is None:
        promote = promote_integers or aval.dtype == np.bool_
        result_dtype = int_sum_dtype(aval.dtype) if promote else aval.dtype
    static = {"axes": axes, "dtype": result_dtype, "keepdims": bool(keepdims)}
    if key is not None:
        return path.call(key, (a,), **static)
    check_initial(name, initial)
    check_where(name, where, aval.shape)
    total: Array = path.function(*trim_none(a, initial, where), **static)
    return total


_sum = _total_of("sum", lax.reduce_sum, lax.add, lax.reduce_or, 0)
_prod = _total_of("prod", lax.reduce_prod, lax.mul, lax.reduce_and, 1)


def sum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Sum over axes.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      dtype: the dtype of the sum; by default the default integer of the same signedness for
        integers, the operand's for floats (narrow ones are rounded once, at the end).
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      initial: the initial value of the sum.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.
      promote_integers: ``False`` sums narrow integers in their own dtype, where they may wrap.

    Returns:
      An array without the reduced axes.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    >>> float(sum(np.array([1.0, 2.0]), initial=10.0))
    13.0
    """
    return _total(_sum, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def prod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Product over axes.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      dtype: the dtype of the product, by default as for :func:`sum`.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      initial: the initial value of the product.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.
      promote_integers: ``False`` multiplies narrow integers in their own dtype, where they may
        wrap.

    Returns:
      An array without the reduced axes. It is 1 for empty reductions.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    The derivative is exact also if elements are zero.

    >>> int(prod(np.array([2, 3, 4])))
    24
    """
    return _total(_prod, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def _extreme_of(name: str, reduce: _Op, combine: _Op) -> FastPath:
    @compiled("axes", "keepdims", name=name)
    def general(a, initial=None, where=None, *, axes, keepdims):
        x = strong(a)
        if initial is not None:
            initial = lax.convert_element_type(initial, typeof(x).dtype)
        out = reduce(masked(x, where, initial), axes)
        if initial is not None:
            out = combine(out, initial)
        return restore_axes(out, axes, keepdims)

    return FastPath(general)


def _check_not_empty(name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    if 0 in [shape[i] for i in axes]:
        raise ValueError(
            f"zero-size array to reduction operation {name} which has no identity: shape {shape}, "
            f"axes {axes}"
        )


def _extreme(
    path: FastPath, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> Array:
    key = short_key(axis, keepdims) if initial is where is out is None else None
    if key is not None:
        fast: Array | None = path.lookup(key, a)
        if fast is not None:
            return fast
    name = path.function.__name__
    check_arrays(name, a)
    check_out(name, out)
    aval = typeof(a)
    axes = axes_of(axis, aval.ndim)
    if initial is None:
        if where is not None:
            raise ValueError(
                f"reduction operation {name} does not have an identity, so to use a where "
                "mask one has to specify 'initial'"
            )
        _check_not_empty(name, aval.shape, axes)
    if key is not None:
        return path.call(key, (a,), axes=axes, keepdims=bool(keepdims))
    check_initial(name, initial)
    check_where(name, where, aval.shape)
    arrays = trim_none(a, initial, where)
    extreme: Array = path.function(*arrays, axes=axes, keepdims=bool(keepdims))
    return extreme


_max = _extreme_of("max", lax.reduce_max, lax.max)
_min = _extreme_of("min", lax.reduce_min, lax.min)


def max(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Maximum over axes; NaN if an element is NaN.

    Complex numbers are ordered lexicographically.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      initial: a lower bound of the result; required with ``where``, and for empty arrays.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.

    Returns:
      An array without the reduced axes, of the dtype of ``a``.

    Raises:
      ValueError: if an empty reduction or ``where`` has no ``initial``, or an axis does not exist.

    The derivative is divided equally among equal maxima.

    >>> max(np.array([[1, 4], [3, 2]]), axis=1).tolist()
    [4, 3]
    >>> max(np.array([1, 4, 3]), initial=0, where=np.array([True, False, True])).tolist()
    3
    """
    return _extreme(_max, a, axis, out, keepdims, initial, where)


def min(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Minimum over axes; NaN if an element is NaN.

    Complex numbers are ordered lexicographically.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes; all by default.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      initial: an upper bound of the result; required with ``where``, and for empty arrays.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.

    Returns:
      An array without the reduced axes, of the dtype of ``a``.

    Raises:
      ValueError: if an empty reduction or ``where`` has no ``initial``, or an axis does not exist.

    The derivative is divided equally among equal minima.

    >>> min(np.array([[1, 4], [3, 2]]), axis=1).tolist()
    [1, 2]
    """
    return _extreme(_min, a, axis, out, keepdims, initial, where)


def amax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Maximum over axes; an alias of :func:`max`.

    Args:
      a, axis, out, keepdims, initial, where: as for :func:`max`.

    Returns:
      An array without the reduced axes, of the dtype of ``a``.

    Raises:
      ValueError: if an empty reduction or ``where`` has no ``initial``, or an axis does not exist.

    >>> amax(np.array([[1, 4], [3, 2]]), axis=1).tolist()
    [4, 3]
    """
    return _extreme(_max, a, axis, out, keepdims, initial, where)


def amin(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Minimum over axes; an alias of :func:`min`.

    Args:
      a, axis, out, keepdims, initial, where: as for :func:`min`.

    Returns:
      An array without the reduced axes, of the dtype of ``a``.

    Raises:
      ValueError: if an empty reduction or ``where`` has no ``initial``, or an axis does not exist.

    >>> amin(np.array([[1, 4], [3, 2]]), axis=1).tolist()
    [1, 2]
    """
    return _extreme(_min, a, axis, out, keepdims, initial, where)


def minmax(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Minimum and maximum over axes; NaN if an element is NaN.

    Args:
      a, axis, out, keepdims, where: as for :func:`max`.
      initial: a value included in both reductions; required with ``where``, and for empty arrays.

    Returns:
      A pair of arrays, as from :func:`min` and :func:`max`.

    Raises:
      ValueError: if an empty reduction or ``where`` has no ``initial``, or an axis does not exist.

    >>> [int(x) for x in minmax(np.array([3, 1, 2]))]
    [1, 3]
    """
    check_arrays("minmax", a)
    check_out("minmax", out)
    low = _extreme(_min, a, axis, None, keepdims, initial, where)
    return low, _extreme(_max, a, axis, None, keepdims, initial, where)


@compiled("axes", "keepdims")
def _ptp(a, *, axes, keepdims):
    x = strong(a)
    return restore_axes(lax.sub(lax.reduce_max(x, axes), lax.reduce_min(x, axes)), axes, keepdims)


@one_call("axis", "keepdims")
def ptp(
    a: ArrayLike, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False
) -> Array:
    """Range (maximum minus minimum) over axes; integers may wrap.

    Args:
      a: an array of numbers.
      axis: an axis or a sequence of axes; all by default.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.

    Returns:
      An array without the reduced axes, of the dtype of ``a``.

    Raises:
      TypeError: for booleans.
      ValueError: if the reduction is empty, or an axis does not exist.

    >>> ptp(np.array([[1, 5], [7, 2]]), axis=1).tolist()
    [4, 5]
    """
    check_arrays("ptp", a)
    check_out("ptp", out)
    aval = typeof(a)
    if aval.dtype == np.bool_:
        raise TypeError("ptp does not accept booleans: convert them to integers first")
    axes = axes_of(axis, aval.ndim)
    _check_not_empty("ptp", aval.shape, axes)
    spread: Array = _ptp(a, axes=axes, keepdims=bool(keepdims))
    return spread


def is_nonzero(x: Any) -> Array:
    """True where an element is not zero; NaN is not zero."""
    dtype = typeof(x).dtype
    return x if dtype == np.bool_ else lax.ne(x, np.zeros((), dtype)[()])


@compiled("axes", "keepdims", name="all")
def _all_of(a, where=None, *, axes, keepdims):
    return restore_axes(lax.reduce_and(masked(is_nonzero(a), where, True), axes), axes, keepdims)


@compiled("axes", "keepdims", name="any")
def _any_of(a, where=None, *, axes, keepdims):
    return restore_axes(lax.reduce_or(masked(is_nonzero(a), where, False), axes), axes, keepdims)


_all, _any = FastPath(_all_of), FastPath(_any_of)


def _truth(path: FastPath, a: Any, axis: Any, out: Any, keepdims: Any, where: Any) -> Array:
    key = short_key(axis, keepdims) if where is out is None else None
    if key is not None:
        fast: Array | None = path.lookup(key, a)
        if fast is not None:
            return fast
    name = path.function.__name__
    check_arrays(name, a)
    check_out(name, out)
    aval = typeof(a)
    static = {"axes": axes_of(axis, aval.ndim), "keepdims": bool(keepdims)}
    if key is not None:
        return path.call(key, (a,), **static)
    check_where(name, where, aval.shape)
    truth: Array = path.function(*trim_none(a, where), **static)
    return truth


def all(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """True if all elements over axes are nonzero; true for empty reductions.

    Args:
      a: an array or a number of any dtype; NaN is nonzero.
      axis: an axis or a sequence of axes; all by default.
      out: unsupported.
      keepdims: keep the reduced axes with size 1.
      where: a mask that broadcasts to ``a``; elements where it is false are ignored.

    Returns:
      A boolean array without the reduced axes.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    >>> all(np.array([[1, 0], [2, 3]]), axis=1).tolist()
    [False, True]
    """
    return _truth(_all, a, axis, out, keepdims, where)


def any(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """True if any element over axes is nonzero; false for empty reductions.

    Args:
      a, axis, out, keepdims, where: as for :func:`all`.

    Returns:
      A boolean array without the reduced axes.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    >>> any(np.array([[1, 0], [0, 0]]), axis=1).tolist()
    [True, False]
    """
    return _truth(_any, a, axis, out, keepdims, where)


@compiled("axes", "keepdims")
def _count_nonzero(a, *, axes, keepdims):
    ones = lax.convert_element_type(is_nonzero(a), dtypes.default_int())
    return restore_axes(lax.reduce_sum(ones, axes), axes, keepdims)


@one_call("axis", "keepdims")
def count_nonzero(
    a: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Array:
    """Number of nonzero elements over axes; NaN is not zero.

    Args:
      a: an array or a number of any dtype.
      axis: an axis or a sequence of axes; all by default.
      keepdims: keep the reduced axes with size 1.

    Returns:
      An array of the default integer dtype without the reduced axes.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    >>> int(count_nonzero(np.array([0.0, 2.0, np.nan])))
    2
    """
    check_arrays("count_nonzero", a)
    axes = axes_of(axis, typeof(a).ndim)
    counts: Array = _count_nonzero(a, axes=axes, keepdims=bool(keepdims))
    return counts


def place_of(op: _Op, x: Any, axis: int | None, keepdims: bool) -> Array:
    """Index of an extremum along an axis, or in the flattened array."""
    shape = typeof(x).shape
    if axis is None:
        out = op(lax.reshape(x, (typeof(x).size,)), 0, dtypes.default_int())
        return lax.reshape(out, (1,) * len(shape)) if keepdims else out
    return restore_axes(op(x, axis, dtypes.default_int()), (axis,), keepdims)


@compiled("axis", "keepdims")
def _argmax(a, *, axis, keepdims):
    return place_of(lax.argmax, a, axis, keepdims)


@compiled("axis", "keepdims")
def _argmin(a, *, axis, keepdims):
    return place_of(lax.argmin, a, axis, keepdims)


def call_for_place(fun: _Op, a: Any, axis: Any, out: Any, keepdims: Any) -> Array:
    """Check the arguments of an argmax-like function, and call it."""
    name = fun.__name__
    check_arrays(name, a)
    check_out(name, out)
    aval = typeof(a)
    if is_complex_dtype(aval.dtype):
        raise TypeError(f"{name} does not accept dtype {aval.dtype.name}: take its abs or real")
    position = None if axis is None else one_axis(axis, aval.ndim)
    if not (aval.size if position is None else aval.shape[position]):
        raise ValueError(f"attempt to get {name} of an empty sequence: shape {aval.shape}")
    place: Array = fun(a, axis=position, keepdims=bool(keepdims))
    return place


@one_call("axis", "keepdims")
def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the maximum: the first of equal elements; the first NaN counts as the maximum.

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

    >>> argmax(np.array([[1, 5], [7, 2]]), axis=1).tolist()
    [1, 0]
    """
    return call_for_place(_argmax, a, axis, out, keepdims)


@one_call("axis", "keepdims")
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the minimum: the first of equal elements; the first NaN counts as the minimum.

    Args:
      a, axis, out, keepdims: as for :func:`argmax`.

    Returns:
      An array of the default integer dtype.

    Raises:
      TypeError: if ``a`` is complex.
      ValueError: if the reduction is empty, or the axis does not exist.

    >>> argmin(np.array([[1, 5], [7, 2]]), axis=1).tolist()
    [0, 1]
    """
    return call_for_place(_argmin, a, axis, out, keepdims)
