"""Unique elements, their indices and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays, one_axis
from ._functions import compiled
from ._reduction_helpers import is_inexact
from ._selecting import (
    chosen,
    filled,
    first_of,
    known_places,
    placed,
    put_at,
    ranks_of,
    size_of,
    take_rows,
    true_places,
)


def differs(x: Any, y: Any, equal_nan: bool) -> Any:
    """True where elements differ; NaN differs from NaN unless ``equal_nan``."""
    out = lax.ne(x, y)
    if equal_nan and is_inexact(typeof(x).dtype):
        out = lax.bitwise_and(out, lax.bitwise_or(lax.eq(x, x), lax.eq(y, y)))
    return out


def first_mask(rows: Any, equal_nan: bool) -> Any:
    """True where a sorted row differs from the previous one."""
    shape = typeof(rows).shape
    if shape[0] == 0:
        return lax.full((0,), np.False_)
    new = differs(
        lax.slice_in_dim(rows, 1, shape[0]), lax.slice_in_dim(rows, 0, shape[0] - 1), equal_nan
    )
    if len(shape) > 1:
        new = lax.reduce_or(new, tuple(range(1, len(shape))))
    return lax.concatenate([lax.full((1,), np.True_), new], 0)


def _order_of_rows(rows: Any) -> Any:
    """Indices that sort rows lexicographically, by a stable sort of each column from the last."""
    n, width = typeof(rows).shape
    places = lax.iota(np.int32, n)
    if not n or not width:
        return places

    def by_column(order, column):
        keys = take_rows(column, order)
        return lax.sort((keys, order), 0, True, 1)[1], None

    columns = lax.transpose(lax.stop_gradient(rows), (1, 0))
    if width == 1:
        return by_column(places, lax.squeeze(columns, (0,)))[0]
    return lax.scan(by_column, places, columns, reverse=True)[0]


@compiled("equal_nan", "indices", "axis")
def _parts(ar, *, equal_nan, indices, axis):
    """Sorted rows and the mask of first occurrences; with ``indices`` also their order and the
    unique index of each element.
    """
    if axis is None:
        rows = lax.reshape(ar, (typeof(ar).size,))
        if not indices:
            rows = lax.sort(rows, 0)
            return rows, first_mask(rows, equal_nan)
        rows, order = lax.sort((rows, lax.iota(np.int32, typeof(rows).size)), 0, True, 1)
        mask = first_mask(rows, equal_nan)
    else:
        shape = typeof(ar).shape
        others = [i for i in range(len(shape)) if i != axis]
        rows = lax.transpose(ar, (axis, *others)) if axis else ar
        flat = lax.reshape(rows, (shape[axis], int(np.prod([shape[i] for i in others]))))
        order = _order_of_rows(flat)
        rows = take_rows(rows, order) if shape[axis] else rows
        mask = first_mask(take_rows(flat, order) if shape[axis] else flat, equal_nan)
    if not indices:
        return rows, mask
    inverse = put_at(typeof(mask).shape[0], order, ranks_of(mask))
    return rows, mask, order, inverse


@compiled("size", "axis", "extras")
def _padded(rows, mask, order, fill_value, *, size, axis, extras):
    n = typeof(mask).shape[0]
    places, real = true_places(mask, size)
    if not n:
        out = lax.full((size, *typeof(rows).shape[1:]), np.zeros((), typeof(rows).dtype)[()])
        values = filled(out, real, fill_value)
        zeros = lax.full((size,), np.zeros((), dtypes.default_int())[()])
        return (values, *[zeros for w in extras if w != "inverse"])
    start = lax.full_like(places, 0)
    values = take_rows(rows, lax.select(real, places, start))
    if fill_value is not None:
        values = filled(values, real, fill_value)
    outs = [lax.transpose(values, _back(typeof(values).ndim, axis)) if axis else values]
    if "index" in extras:
        index = take_rows(order, lax.select(real, places, start))
        outs.append(lax.convert_element_type(index, dtypes.default_int()))
    if "counts" in extras:
        # Up to the next unique element, or to the end.
        beyond = true_places(mask, size + 1)[0]
        ends = lax.slice_in_dim(beyond, 1, size + 1)
        outs.append(lax.convert_element_type(lax.sub(ends, places), dtypes.default_int()))
    return tuple(outs)


def _back(ndim: int, axis: int) -> tuple[int, ...]:
    return (*range(1, axis + 1), 0, *range(axis + 1, ndim))


def unique(
    ar: ArrayLike | Sequence[Any],
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """Sorted unique elements of an array.

    Args:
      ar: an array.
      return_index: also return the index of the first occurrence of each.
      return_inverse: also return the index of each element in the unique values, in the shape of
        ``ar`` (along ``axis`` if specified).
      return_counts: also return the number of occurrences of each.
      axis: compare slices along this axis; by default elements.
      equal_nan: treat all NaN as one element.
      size: the size of the result, required under ``jit``. Missing values are padded with
        ``fill_value``, counts with 0, indices with that of the first.
      fill_value: the padding, by default the first value.
      sorted: ``False`` allows any order, but the result is always sorted.

    Returns:
      The values, or a tuple of the values and the requested extras, in the order of the arguments.

    Raises:
      ConcretizationTypeError: under ``jit`` without ``size``.

    >>> unique(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    check_arrays("unique", ar)
    shape = typeof(ar).shape
    if axis is not None:
        axis = one_axis(axis, len(shape)) if shape else None
    extras = tuple(
        name
        for name, asked in (
            ("index", return_index),
            ("inverse", return_inverse),
            ("counts", return_counts),
        )
        if asked
    )
    length = size_of("unique", size)
    outs = different("unique", ar, extras, axis, bool(equal_nan), length, fill_value)
    return first_of(outs)


def different(
    name: str, ar: Any, extras: tuple[str, ...], axis: int | None, equal_nan: bool,
    size: int | None, fill_value: Any,
) -> list[Any]:  # fmt: skip
    """Unique elements, followed by those of ``"index"``, ``"inverse"`` and ``"counts"`` in
    ``extras``.
    """
    shape = typeof(ar).shape
    rows, mask, *rest = _parts(
        ar, equal_nan=equal_nan, indices=bool(extras) or axis is not None, axis=axis
    )
    order, inverse = rest if rest else (None, None)
    n = typeof(mask).shape[0]
    if size is None:
        outs = _known(name, rows, mask, order, axis, extras)
    else:
        if not n and size and fill_value is None:
            raise ValueError(
                f"{name} of an empty array with a size has nothing to pad with: give fill_value="
            )
        outs = list(_padded(rows, mask, order, fill_value, size=size, axis=axis, extras=extras))
    if "inverse" in extras:
        full: Any = lax.convert_element_type(inverse, dtypes.default_int())
        at = 1 + ("index" in extras)
        outs.insert(at, lax.reshape(full, shape) if axis is None else full)
    return outs


def _known(
    name: str, rows: Any, mask: Any, order: Any, axis: int | None, extras: tuple[str, ...]
) -> list[Any]:
    places = known_places(name, mask)
    values = chosen(rows, places)
    outs = [lax.transpose(values, _back(values.ndim, axis)) if axis else values]
    if "index" in extras:
        outs.append(placed(np.asarray(order)[places].astype(dtypes.default_int())))
    if "counts" in extras:
        ends = np.append(places[1:], typeof(mask).shape[0])[: len(places)]
        outs.append(placed((ends - places).astype(dtypes.default_int())))
    return outs


class UniqueAllResult(NamedTuple):
    """The result of :func:`unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """The result of :func:`unique_counts`."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """The result of :func:`unique_inverse`."""

    values: Array
    inverse_indices: Array


def _each_nan(name: str, x: Any, extras: tuple[str, ...], size: Any, fill_value: Any) -> list[Any]:
    check_arrays(name, x)
    return different(name, x, extras, None, False, size_of(name, size), fill_value)


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAllResult:
    """Unique elements, indices of first occurrences, inverse indices and counts.

    Every NaN is a separate element.

    Args:
      x: an array or a number, which is flattened.
      size: the number of elements to return, required under ``jit``: the result is truncated or
        padded.
      fill_value: the padding of the values, by default the first one.

    Returns:
      A named tuple ``(values, indices, inverse_indices, counts)``. The inverse indices have the
      shape of ``x``, the others are vectors.

    Raises:
      ConcretizationTypeError: if ``x`` is traced and ``size`` is ``None``.

    See :func:`unique` for rows along an axis.

    >>> [x.tolist() for x in unique_all(np.array([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    return UniqueAllResult(
        *_each_nan("unique_all", x, ("index", "inverse", "counts"), size, fill_value)
    )


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """Unique elements in ascending order, and their counts.

    Every NaN is a separate element.

    Args:
      x: an array or a number, which is flattened.
      size: the number of elements to return, required under ``jit``: the result is truncated or
        padded.
      fill_value: the padding of the values, by default the first one.

    Returns:
      A named tuple ``(values, counts)`` of vectors.

    Raises:
      ConcretizationTypeError: if ``x`` is traced and ``size`` is ``None``.

    >>> [x.tolist() for x in unique_counts(np.array([3, 1, 3]))]
    [[1, 3], [1, 2]]
    """
    return UniqueCountsResult(*_each_nan("unique_counts", x, ("counts",), size, fill_value))


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """Unique elements in ascending order, and the indices that restore the array from them.

    Every NaN is a separate element.

    Args:
      x: an array or a number, which is flattened.
      size: the number of elements to return, required under ``jit``: the result is truncated or
        padded.
      fill_value: the padding of the values, by default the first one.

    Returns:
      A named tuple ``(values, inverse_indices)``; the indices have the shape of ``x``.

    Raises:
      ConcretizationTypeError: if ``x`` is traced and ``size`` is ``None``.

    >>> [x.tolist() for x in unique_inverse(np.array([3, 1, 3]))]
    [[1, 3], [1, 0, 1]]
    """
    return UniqueInverseResult(*_each_nan("unique_inverse", x, ("inverse",), size, fill_value))


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Unique elements in ascending order.

    Every NaN is a separate element.

    Args:
      x: an array or a number, which is flattened.
      size: the number of elements to return, required under ``jit``: the result is truncated or
        padded.
      fill_value: the padding of the values, by default the first one.

    Returns:
      A vector of the dtype of ``x``.

    Raises:
      ConcretizationTypeError: if ``x`` is traced and ``size`` is ``None``.

    >>> unique_values(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    values: Array = _each_nan("unique_values", x, (), size, fill_value)[0]
    return values
