"""Indices of nonzero elements, and conversion between multi-indices and flat indices."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, Tracer, as_operand, dtypes
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike

from ._checks import (
    check_arrays,
    check_out,
    converted,
    dtype_argument,
    not_integers,
    one_axis,
)
from ._creation import asarray
from ._functions import compiled
from ._reading import fill_number
from ._shapes import ravel
from ._taking import check_range, modulo, positions_of, rows_at, truth


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]:
    """Indices of the nonzero elements, one array for each axis.

    Args:
      a: an array with at least one axis.
      size: the number of indices to return: the result is truncated, or padded with
        ``fill_value``. Required under transformations, where the number of nonzero elements is
        unknown.
      fill_value: a number, or a tuple of one for each axis; 0 by default.

    Returns:
      A tuple of vectors of the default integer dtype, in row-major order.

    Raises:
      ConcretizationTypeError: if ``a`` is traced and ``size`` is ``None``.
      ValueError: if ``a`` is a scalar.

    >>> [x.tolist() for x in nonzero(np.array([[0, 3], [5, 4]]))]
    [[0, 1, 1], [1, 0, 1]]
    >>> nonzero(np.array([0, 3, 0, 4], np.int32), size=3, fill_value=-1)
    (Array([ 1,  3, -1], dtype=int32),)
    """
    check_arrays("nonzero", a)
    if not typeof(a).ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed: use nonzero(atleast_1d(x)) instead."
        )
    return _positions("nonzero", a, size, fill_value)


def _positions(name: str, a: Any, size: int | None, fill_value: Any) -> tuple[Array, ...]:
    a = converted(a)
    fills = _fills(name, fill_value, typeof(a).ndim)
    if size is None:
        if isinstance(a, Tracer):
            raise ConcretizationTypeError(
                a,
                f"The size argument of {name} must be given while tracing, because the number of "
                f"positions depends on values: pass the maximum as {name}(x, size=n); "
                "fill_value= is the padding for missing ones.",
            )
        indices = np.asarray(a).nonzero()
        return tuple([as_operand(p.astype(dtypes.default_int())) for p in indices])
    arrays = [f for f in fills if _is_array(f)]
    numbers = tuple([None if _is_array(f) else f for f in fills])
    return tuple(_nonzero(a, *arrays, size=_count(name, size), fills=numbers))


def _count(name: str, size: Any) -> int:
    try:
        return operator.index(size)
    except TypeError as e:
        raise not_integers(f"{name}: size must be a concrete integer, got {size!r}", size) from e


def _is_array(fill: Any) -> bool:
    return isinstance(fill, (Array, np.ndarray, np.generic))


def _fills(name: str, fill_value: Any, ndim: int) -> tuple[Any, ...]:
    if fill_value is None:
        return (0,) * ndim
    if isinstance(fill_value, tuple):
        if len(fill_value) != ndim:
            raise ValueError(
                f"{name}: fill_value tuple must have length equal to number of axes ({ndim}); got "
                f"{len(fill_value)}"
            )
        fills = fill_value
    else:
        fills = (fill_value,) * ndim
    if any(np.ndim(v) for v in fills):
        raise ValueError(
            f"{name}: fill_value must be a scalar or tuple of scalars; got {fill_value}"
        )
    return tuple([v if _is_array(v) else fill_number(v) for v in fills])


@compiled("size", "fills")
def _nonzero(a, *arrays, size, fills):
    """Positions, padded with numbers and, in place of ``None``, with the arrays in their order."""
    shape, index = typeof(a).shape, dtypes.default_int()
    n = typeof(a).size
    rest = iter(arrays)
    fills = [next(rest) if f is None else f for f in fills]
    flags = lax.reshape(truth(a), (n,))
    if not n or not size:
        return tuple([lax.full((size,), f, _filled_dtype(f)) for f in fills])
    number = lax.cumsum(lax.convert_element_type(flags, index))
    # Each nonzero index is scattered to its rank; the others are out of bounds and dropped.
    place = lax.select(flags, number - index.type(1), lax.full_like(number, size))
    flat_index = lax.full((size,), 0, index).at[place].set(lax.iota(index, n), mode="drop")
    missing = lax.ge(lax.iota(index, size), number[-1])
    out = []
    for axis, fill in enumerate(fills):
        stride = math.prod(shape[axis + 1 :])
        place = lax.rem(
            lax.div(flat_index, lax.full_like(flat_index, stride)),
            lax.full_like(flat_index, shape[axis]),
        )
        dtype = _filled_dtype(fill)
        filling = lax.full((size,), fill, dtype)
        out.append(lax.select(missing, filling, lax.convert_element_type(place, dtype)))
    return tuple(out)


def _filled_dtype(fill: Any) -> Any:
    """The dtype of positions and padding: integers of Python take that of the positions."""
    index = dtypes.default_int()
    if isinstance(fill, int):
        return index
    aval = typeof(fill)
    return dtypes.lattice_result(((index, False), (aval.dtype, aval.weak_type)))[0]


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Indices of the nonzero elements, one row for each.

    Args:
      a: an array or a number.
      size: the number of indices to return: the result is truncated, or padded with
        ``fill_value``. Required under transformations, where the number of nonzero elements is
        unknown.
      fill_value: a number, or a tuple of one for each axis; 0 by default.

    Returns:
      An array of shape ``(count, a.ndim)`` of the default integer dtype.

    Raises:
      ConcretizationTypeError: if ``a`` is traced and ``size`` is ``None``.

    >>> argwhere(np.array([[0, 3], [5, 4]])).tolist()
    [[0, 1], [1, 0], [1, 1]]
    """
    check_arrays("argwhere", a)
    if not typeof(a).ndim:
        if size is None and isinstance(a, Tracer):
            _positions("argwhere", a, size, None)
        count = int(bool(np.asarray(a))) if size is None else _count("argwhere", size)
        return lax.full((count, 0), 0, dtypes.default_int())
    indices = _positions("argwhere", a, size, fill_value)
    return _columns(*indices)


@compiled(name="argwhere")
def _columns(*indices):
    return lax.concatenate([lax.expand_dims(p, (1,)) for p in indices], 1)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Indices of the nonzero elements of the flattened array.

    Args:
      a: an array or a number.
      size: the number of indices to return: the result is truncated, or padded with
        ``fill_value``. Required under transformations, where the number of nonzero elements is
        unknown.
      fill_value: the padding, 0 by default.

    Returns:
      A vector of the default integer dtype.

    Raises:
      ConcretizationTypeError: if ``a`` is traced and ``size`` is ``None``.

    >>> flatnonzero(np.array([[0, 3], [5, 4]])).tolist()
    [1, 2, 3]
    """
    check_arrays("flatnonzero", a)
    return _positions("flatnonzero", ravel(a), size, fill_value)[0]


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """The elements of the flattened array where the condition is true.

    Args:
      condition: flattened; nonzero elements are true.
      arr: an array or a number, flattened.
      size: the number of elements to return: the result is truncated, or padded with
        ``fill_value``. Required under transformations.
      fill_value: the padding, 0 by default.

    Returns:
      A vector of the dtype of ``arr``.

    Raises:
      ConcretizationTypeError: if ``condition`` is traced and ``size`` is ``None``.
      ValueError: if the condition is true beyond the end of the array.

    >>> x = np.array([[1, 2], [3, 4]])
    >>> extract(x > 2, x).tolist()
    [3, 4]
    """
    check_arrays("extract", condition, arr)
    return _compressed("extract", ravel(condition), ravel(arr), 0, size, fill_value)


def compress(
    condition: ArrayLike, a: ArrayLike, axis: int | None = None, *, size: int | None = None,
    fill_value: ArrayLike = 0, out: None = None,
) -> Array:  # fmt: skip
    """The rows along an axis where the condition is true.

    Args:
      condition: a vector; nonzero elements are true. Rows beyond its end are dropped.
      a: an array or a number.
      axis: the axis; ``None`` flattens the array.
      size: the number of rows to return: the result is truncated, or padded with ``fill_value``.
        Required under transformations.
      fill_value: the padding, 0 by default.
      out: unsupported.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      ConcretizationTypeError: if ``condition`` is traced and ``size`` is ``None``.
      ValueError: if the condition has several axes, or is true beyond the end of the array.

    >>> compress(np.array([False, True]), np.array([[1, 2], [3, 4]]), axis=0).tolist()
    [[3, 4]]
    """
    check_arrays("compress", condition, a)
    check_out("compress", out)
    if typeof(condition).ndim != 1:
        raise ValueError(
            f"compress: condition must be a 1D array, got shape {typeof(condition).shape}"
        )
    x = ravel(a) if axis is None else asarray(a)
    at = one_axis(0 if axis is None else axis, x.ndim)
    return _compressed("compress", asarray(condition), x, at, size, fill_value)


def _compressed(
    name: str, condition: Array, x: Array, axis: int, size: int | None, fill_value: Any
) -> Array:
    n = x.shape[axis]
    if size is not None and not 0 < _count(name, size) <= n:
        raise ValueError(
            f"{name}: size must be positive and not greater than the size of the axis; got "
            f"size={size} for {n} elements"
        )
    if condition.shape[0] > n and not isinstance(condition, Tracer):
        if np.asarray(condition)[n:].any():
            raise ValueError(
                f"{name}: condition of {condition.shape[0]} elements contains entries that are out "
                f"of bounds of an axis of size {n}"
            )
    if size is None:
        (rows,) = _positions(name, condition, None, None)
        return rows_at(x, rows, axis=axis)
    return _compress(condition, x, fill_value, axis=axis, size=_count(name, size))


@compiled("axis", "size")
def _compress(condition, x, fill_value, *, axis, size):
    n = typeof(x).shape[axis]
    flags = truth(condition)
    flags = lax.slice_in_dim(flags, 0, min(n, flags.shape[0]))
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    filling = lax.broadcast_in_dim(lax.convert_element_type(fill_value, x.dtype), shape, ())
    if not flags.shape[0] or not size or not x.size:
        return filling
    (rows,) = _nonzero(flags, size=size, fills=(n,))
    inside = lax.lt(rows, lax.full_like(rows, n))
    safe = lax.select(inside, rows, lax.full_like(rows, 0))
    mask = lax.broadcast_in_dim(inside, shape, (axis,))
    return lax.select(mask, rows_at(x, safe, axis=axis), filling)


# Flat indices


def ravel_multi_index(
    multi_index: ArrayLike | Sequence[Any],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Flat indices of multi-indices, which are given as an array for each axis.

    Args:
      multi_index: integer arrays, one for each axis; they are broadcast together.
      dims: the shape of the array.
      mode: the treatment of indices out of bounds: ``"raise"`` an error (they must be concrete),
        ``"wrap"`` takes them modulo the size, ``"clip"`` clamps them, ``"ignore"`` does not check.
      order: ``"C"`` (row-major) or ``"F"`` (column-major).
      dtype: the dtype of the result; the promoted one by default.

    Returns:
      An integer array of the common shape of ``multi_index``.

    >>> ravel_multi_index((np.array([0, 1]), np.array([2, 0])), (2, 3)).tolist()
    [2, 3]
    """
    parts = tuple(multi_index)
    shape = tuple([operator.index(d) for d in dims])
    if len(parts) != len(shape):
        raise ValueError(
            f"ravel_multi_index: {len(parts)} arrays of positions for an array of shape {shape}"
        )
    check_arrays("ravel_multi_index", *parts)
    if mode not in ("raise", "wrap", "clip", "ignore"):
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'.")
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: order must be 'C' or 'F', got {order!r}")
    for p in parts:
        if not dtypes.issubdtype(typeof(p).dtype, np.integer):
            raise ValueError(
                f"ravel_multi_index: positions must be integers, got dtype {typeof(p).dtype}"
            )
    if mode == "raise":
        for p, d in zip(parts, shape):
            check_range("ravel_multi_index", p, d, "positions")
    result_dtype = dtype_argument(dtype, "ravel_multi_index") or _holding(parts, math.prod(shape))
    return _ravel_multi_index(*parts, shape=shape, mode=mode, order=order, dtype=result_dtype)


def _holding(parts: Sequence[Any], size: int) -> Any:
    """The promoted dtype of the positions, or the default integer if that is too narrow."""
    avals = [typeof(p) for p in parts]
    if not avals:
        return dtypes.default_int()
    dtype, _ = dtypes.lattice_result(tuple([(p.dtype, p.weak_type) for p in avals]))
    return dtype if size - 1 <= dtypes.iinfo(dtype).max else dtypes.default_int()


@compiled("shape", "mode", "order", "dtype")
def _ravel_multi_index(*parts, shape, mode, order, dtype):
    together = broadcast_shapes(*[typeof(p).shape for p in parts])
    out = lax.full(together, 0, dtype)
    axes = range(len(shape)) if order == "C" else range(len(shape) - 1, -1, -1)
    for axis in axes:
        p, n = parts[axis], shape[axis]
        if mode == "wrap" and n:
            p = modulo(p, n)
        elif mode == "clip":
            p = positions_of(p)
            low, high = (lax.full_like(p, i, shape=()) for i in (0, max(n - 1, 0)))
            p = lax.clamp(low, p, high)
        p = lax.convert_element_type(p, dtype)
        p = lax.broadcast_in_dim(p, together, tuple(range(len(together) - p.ndim, len(together))))
        out = lax.add(lax.mul(out, lax.full_like(out, n)), p)
    return out


def unravel_index(indices: ArrayLike | Sequence[Any], shape: ShapeLike) -> tuple[Array, ...]:
    """Multi-indices, as an array for each axis, of flat indices.

    Args:
      indices: integers; negative ones count from the end, and those out of bounds are clamped.
      shape: the shape of the array; its sizes may be traced.

    Returns:
      A tuple of an integer array of the shape of ``indices`` for each axis.

    Raises:
      TypeError: if ``indices`` are not integers.

    The inverse is :func:`ravel_multi_index`.

    >>> [x.tolist() for x in unravel_index(np.array([2, 3]), (2, 3))]
    [[0, 1], [2, 0]]
    """
    check_arrays("unravel_index", indices)
    sized = isinstance(shape, (tuple, list)) or getattr(shape, "ndim", 0)
    sizes = tuple(shape) if sized else (shape,)
    computed = any(isinstance(d, Tracer) for d in sizes)
    dims = () if computed else tuple([operator.index(d) for d in sizes])
    kind = typeof(indices).dtype
    if kind != np.bool_ and not dtypes.issubdtype(kind, np.integer):
        raise TypeError(f"unravel_index: indices must be integers, got {typeof(indices).dtype}")
    if computed:
        return tuple(_unravel_of_computed(indices, *sizes))
    return tuple(_unravel_index(indices, shape=dims))


@compiled()
def _unravel_of_computed(indices, *sizes):
    aval = typeof(indices)
    result_dtype = None if aval.dtype == np.bool_ or aval.weak_type else aval.dtype
    wide = lax.convert_element_type(indices, dtypes.default_int())
    dims = [lax.convert_element_type(d, typeof(wide).dtype) for d in sizes]
    total = dims[0]
    for d in dims[1:]:
        total = lax.mul(total, d)
    zero, one = (lax.full_like(wide, v, shape=()) for v in (0, 1))
    if not dtypes.issubdtype(aval.dtype, np.unsignedinteger):
        negative = lax.lt(wide, lax.full_like(wide, 0))
        shifted = lax.add(wide, lax.broadcast(total, aval.shape))
        wide = lax.select(negative, shifted, wide)
    rest = lax.clamp(zero, wide, lax.max(lax.sub(total, one), zero))
    out = []
    for d in reversed(dims):
        divisor = lax.broadcast(lax.max(d, one), aval.shape)
        position = lax.rem(rest, divisor)
        rest = lax.div(rest, divisor)
        out.append(
            position if result_dtype is None else lax.convert_element_type(position, result_dtype)
        )
    return tuple(reversed(out))


@compiled("shape")
def _unravel_index(indices, *, shape):
    aval = typeof(indices)
    total = math.prod(shape)
    result_dtype = None if aval.dtype == np.bool_ or aval.weak_type else aval.dtype
    wide = lax.convert_element_type(indices, dtypes.default_int())
    size = lax.full_like(wide, total)
    if not dtypes.issubdtype(aval.dtype, np.unsignedinteger):
        negative = lax.lt(wide, lax.full_like(wide, 0))
        wide = lax.select(negative, lax.add(wide, size), wide)
    low = lax.full_like(wide, 0, shape=())
    rest = lax.clamp(low, wide, lax.full_like(wide, max(total - 1, 0), shape=()))
    out = []
    for n in reversed(shape):
        divisor = lax.full_like(rest, max(n, 1))
        position = lax.rem(rest, divisor)
        rest = lax.div(rest, divisor)
        out.append(
            position if result_dtype is None else lax.convert_element_type(position, result_dtype)
        )
    return tuple(reversed(out))
