"""Deletion and insertion of rows, and trimming of zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, Tracer, cast, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import axes_of, check_arrays, one_axis
from ._creation import asarray
from ._functions import compiled
from ._positions import nonzero
from ._reading import counted_from_start
from ._shapes import ravel
from ._taking import rows_at


def delete(
    arr: ArrayLike,
    obj: slice | ArrayLike | Sequence[Any],
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """An array without some rows along an axis.

    Args:
      arr: an array or a number.
      obj: the rows to delete: an integer, a slice, integers, or a mask of one axis. It must be
        concrete, except for integers with ``assume_unique_indices``.
      axis: the axis; ``None`` flattens the array.
      assume_unique_indices: declare that the integers of ``obj`` are unique rows, so that the size
        of the result is static.

    Returns:
      An array of the dtype of ``arr``.

    Raises:
      IndexError: if integers are out of bounds (ValueError for a single integer).
      ConcretizationTypeError: if ``obj`` is traced.

    >>> delete(np.array([1, 2, 3]), 1).tolist()
    [1, 3]
    >>> delete(np.array([[1, 2], [3, 4]]), np.array([0]), axis=1).tolist()
    [[2], [4]]
    """
    check_arrays("delete", arr)
    x = asarray(arr) if axis is not None else ravel(arr)
    at = one_axis(0 if axis is None else axis, x.ndim)
    n = x.shape[at]
    if isinstance(obj, slice):
        return _without(x, np.arange(n)[obj], at)
    check_arrays("delete", obj)
    aval = typeof(obj)
    if aval.dtype == np.bool_:
        if aval.shape != (n,):
            raise ValueError(
                f"delete: a mask must have one axis of the size of the array's, {n}, got shape "
                f"{aval.shape}"
            )
    elif not dtypes.issubdtype(aval.dtype, np.integer):
        raise ValueError(f"delete: obj must be integers or booleans, got dtype {aval.dtype}")
    if isinstance(obj, Tracer):
        if not assume_unique_indices or aval.dtype == np.bool_:
            raise ConcretizationTypeError(
                obj,
                "delete: obj must be concrete, because it determines the size of the result. "
                "For unique integers, pass assume_unique_indices=True.",
            )
        return _delete(x, obj, axis=at)
    known = np.asarray(obj)
    if known.dtype == np.bool_:
        return _without(x, np.flatnonzero(known), at)
    _check_rows(known, n, at)
    return _without(x, known.reshape(-1), at)


def _check_rows(known: np.ndarray, n: int, axis: int) -> None:
    for i in known.reshape(-1).tolist():
        if not -n <= i < n:
            error = IndexError if known.ndim else ValueError
            raise error(f"delete: index {i} is out of bounds for axis {axis} with size {n}")


def _without(x: Array, rows: np.ndarray, axis: int) -> Array:
    remaining = np.delete(np.arange(x.shape[axis], dtype=np.int32), rows)
    return rows_at(x, remaining, axis=axis)


@compiled("axis")
def _delete(x, obj, *, axis):
    n, count = typeof(x).shape[axis], typeof(obj).size
    rows = lax.reshape(counted_from_start(obj, n), (count,))
    remaining = (
        lax.full((n,), True, np.dtype(np.bool_)).at[rows].set(False, wrap_negative_indices=False)
    )
    (places,) = nonzero(remaining, size=max(n - count, 0))
    return rows_at(x, places, axis=axis)


def insert(
    arr: ArrayLike,
    obj: slice | ArrayLike | Sequence[Any],
    values: ArrayLike | Sequence[Any],
    axis: int | None = None,
) -> Array:
    """An array with rows inserted along an axis.

    Args:
      arr: an array or a number.
      obj: the rows to insert before: an integer, a slice, integers, or a mask of one axis.
        Integers may be traced; those out of bounds are clamped.
      values: the rows to insert, broadcast to the other axes of the array.
      axis: the axis; ``None`` flattens the array.

    Returns:
      An array of the dtype of ``arr``.

    >>> insert(np.array([1, 2], np.int32), 1, 9)
    Array([1, 9, 2], dtype=int32)
    >>> insert(np.array([[1, 2], [3, 4]]), 1, 9, axis=1).tolist()
    [[1, 9, 2], [3, 9, 4]]
    """
    check_arrays("insert", arr, values)
    x = asarray(arr) if axis is not None else ravel(arr)
    at = one_axis(0 if axis is None else axis, x.ndim)
    n = x.shape[at]
    if isinstance(obj, slice):
        obj = np.arange(n)[obj]
    check_arrays("insert", obj)
    aval = typeof(obj)
    if aval.dtype == np.bool_ and aval.shape == (n,) and not isinstance(obj, Tracer):
        obj = np.flatnonzero(np.asarray(obj))
    elif not dtypes.issubdtype(aval.dtype, np.integer):
        raise ValueError(f"insert: obj must be integers, got {aval.dtype} of shape {aval.shape}")
    if typeof(obj).ndim > 1:
        raise ValueError(f"insert: obj must have at most one axis, got shape {typeof(obj).shape}")
    return _insert(x, obj, values, axis=at)


@compiled("axis")
def _insert(x, obj, values, *, axis):
    own, values_aval = typeof(x), typeof(values)
    values = cast(values, values_aval, own.dtype, own.weak_type)
    n, rank = own.shape[axis], own.ndim
    scalar = typeof(obj).ndim == 0
    count = 1 if scalar else typeof(obj).shape[0]
    rows = lax.expand_dims(asarray(values), tuple(range(rank - values_aval.ndim)))
    if scalar and values_aval.ndim:
        # The first axis of the values corresponds to the axis of the array.
        order = list(range(1, rows.ndim))
        order.insert(axis, 0)
        rows = lax.transpose(rows, tuple(order))
    if count == 1:
        count = rows.shape[axis]
    shape = (*own.shape[:axis], count, *own.shape[axis + 1 :])
    rows = lax.broadcast_in_dim(rows, shape, tuple(range(rank)))
    if not count:
        return asarray(x)
    index = counted_from_start(obj, n)
    low, high = lax.full_like(index, 0, shape=()), lax.full_like(index, n, shape=())
    index = lax.clamp(low, index, high)
    index = lax.broadcast_in_dim(index, (count,), () if index.ndim == 0 else (0,))
    # A stable sort puts inserted rows before the rows that they name, in their order.
    own_keys = 2 * lax.iota(index.dtype, n) + index.dtype.type(1)
    keys = lax.concatenate([2 * index, own_keys], 0)
    _, places = lax.sort_key_val(keys, lax.iota(np.dtype(np.int32), n + count))
    return rows_at(lax.concatenate([rows, x], axis), places, axis=axis)


def trim_zeros(
    filt: ArrayLike | Sequence[Any], trim: str = "fb", axis: int | Sequence[int] | None = None
) -> Array:
    """An array without leading and trailing zeros. The values must be concrete.

    Args:
      filt: an array or a number.
      trim: ``"f"`` trims the front, ``"b"`` the back, ``"fb"`` both.
      axis: one axis or several, all by default; slices that are all zero are trimmed.

    Returns:
      An array of the dtype of ``filt``, of the same number of axes.

    Raises:
      ConcretizationTypeError: if the array is traced.

    >>> trim_zeros(np.array([0, 1, 0, 2, 0])).tolist()
    [1, 0, 2]
    >>> trim_zeros(np.array([0, 1, 0, 2, 0]), "f").tolist()
    [1, 0, 2, 0]
    """
    check_arrays("trim_zeros", filt)
    if isinstance(filt, Tracer):
        raise ConcretizationTypeError(
            filt, "trim_zeros: the shape of the result depends on values, so it cannot be traced."
        )
    sides = str(trim).lower()
    if sides not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    x = asarray(filt)
    places = np.argwhere(np.asarray(x))
    bounds = [(0, n) for n in x.shape]
    for i in axes_of(axis, x.ndim):
        n = x.shape[i]
        first, last = (places[:, i].min(), places[:, i].max() + 1) if len(places) else (n, n)
        start = int(first) if "f" in sides else 0
        bounds[i] = (start, int(last) if "b" in sides else n)
        if not len(places):
            bounds[i] = (0, 0)
    return lax.slice(x, [a for a, _ in bounds], [b for _, b in bounds])
