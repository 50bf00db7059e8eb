"""Different elements, and where they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, typeof

from ._checks import check_arrays, one_axis
from ._functions import compiled
from ._reducing import is_inexact
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
    """Where elements differ; NaN from NaN only if asked for."""
    out = lax.ne(x, y)
    if equal_nan and is_inexact(typeof(x).dtype):
        out = lax.bitwise_and(out, lax.bitwise_or(lax.eq(x, x), lax.eq(y, y)))
    return out


def first_mask(rows: Any, equal_nan: bool) -> Any:
    """Which of sorted rows are not like the one before."""
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
    """Positions of rows in order of their first elements, of their second where those are equal,
    and so on: sorted stably by one column after the other, from the last."""
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
    """Sorted rows, which of them are new, and with ``indices`` their order and each element's rank
    among the new ones."""
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


@compiled("size", "axis", "wanted")
def _padded(rows, mask, order, fill_value, *, size, axis, wanted):
    n = typeof(mask).shape[0]
    places, real = true_places(mask, size)
    if not n:
        out = lax.full((size, *typeof(rows).shape[1:]), np.zeros((), typeof(rows).dtype)[()])
        values = filled(out, real, fill_value)
        zeros = lax.full((size,), np.zeros((), dtypes.default_int())[()])
        return (values, *[zeros for w in wanted if w != "inverse"])
    start = lax.full_like(places, 0)
    values = take_rows(rows, lax.select(real, places, start))
    if fill_value is not None:
        values = filled(values, real, fill_value)
    outs = [lax.transpose(values, _back(typeof(values).ndim, axis)) if axis else values]
    if "index" in wanted:
        index = take_rows(order, lax.select(real, places, start))
        outs.append(lax.convert_element_type(index, dtypes.default_int()))
    if "counts" in wanted:
        # Up to the next new one, or to the end.
        beyond = true_places(mask, size + 1)[0]
        ends = lax.slice_in_dim(beyond, 1, size + 1)
        outs.append(lax.convert_element_type(lax.sub(ends, places), dtypes.default_int()))
    return tuple(outs)


def _back(ndim: int, axis: int) -> tuple[int, ...]:
    return (*range(1, axis + 1), 0, *range(axis + 1, ndim))


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None,
    fill_value: Any = None, sorted: bool = True,
) -> Any:  # fmt: skip
    """The different elements of an array in ascending order.

    Args:
      ar: an array.
      return_index: also return where each of them comes first.
      return_inverse: also return which of them each element is, in the shape of ``ar`` (along
        ``axis`` if that is given).
      return_counts: also return how often each comes.
      axis: compare the slices along this axis; by default elements.
      equal_nan: whether NaN counts as one element.
      size: how many to return, needed inside ``jit``. If there are fewer, the values are padded
        with ``fill_value``, counts with 0, indices with that of the first.
      fill_value: by default the first value.
      sorted: ``False`` allows any order; they come out in order all the same.

    Returns:
      The values, or a tuple of them and of what else is asked for, in the order of the arguments.

    Raises:
      ConcretizationTypeError: inside ``jit``, without ``size``.

    >>> unique(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    check_arrays("unique", ar)
    shape = typeof(ar).shape
    if axis is not None:
        axis = one_axis(axis, len(shape)) if shape else None
    wanted = tuple(
        name
        for name, asked in (
            ("index", return_index),
            ("inverse", return_inverse),
            ("counts", return_counts),
        )
        if asked
    )
    length = size_of("unique", size)
    outs = different("unique", ar, wanted, axis, bool(equal_nan), length, fill_value)
    return first_of(outs)


def different(
    name: str, ar: Any, wanted: tuple[str, ...], axis: int | None, equal_nan: bool,
    size: int | None, fill_value: Any,
) -> list[Any]:  # fmt: skip
    """Different elements, then ``"index"``, ``"inverse"`` and ``"counts"`` as wanted."""
    shape = typeof(ar).shape
    rows, mask, *rest = _parts(
        ar, equal_nan=equal_nan, indices=bool(wanted) or axis is not None, axis=axis
    )
    order, inverse = rest if rest else (None, None)
    n = typeof(mask).shape[0]
    if size is None:
        outs = _known(name, rows, mask, order, axis, wanted)
    else:
        if not n and size and fill_value is None:
            raise ValueError(
                f"{name} of an empty array with a size has nothing to pad with: give fill_value="
            )
        outs = list(_padded(rows, mask, order, fill_value, size=size, axis=axis, wanted=wanted))
    if "inverse" in wanted:
        full: Any = lax.convert_element_type(inverse, dtypes.default_int())
        at = 1 + ("index" in wanted)
        outs.insert(at, lax.reshape(full, shape) if axis is None else full)
    return outs


def _known(
    name: str, rows: Any, mask: Any, order: Any, axis: int | None, wanted: tuple[str, ...]
) -> list[Any]:
    places = known_places(name, mask)
    values = chosen(rows, places)
    outs = [lax.transpose(values, _back(values.ndim, axis)) if axis else values]
    if "index" in wanted:
        outs.append(placed(np.asarray(order)[places].astype(dtypes.default_int())))
    if "counts" in wanted:
        ends = np.append(places[1:], typeof(mask).shape[0])[: len(places)]
        outs.append(placed((ends - places).astype(dtypes.default_int())))
    return outs


class UniqueAllResult(NamedTuple):
    """What :func:`unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What :func:`unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What :func:`unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def _each_nan(name: str, x: Any, wanted: tuple[str, ...], size: Any, fill_value: Any) -> list[Any]:
    check_arrays(name, x)
    return different(name, x, wanted, None, False, size_of(name, size), fill_value)


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAllResult:
    """Different elements, where each comes first, which each element is, and how often each comes.

    Each NaN counts as different; ``size`` and ``fill_value`` as in :func:`unique`.
    """
    return UniqueAllResult(
        *_each_nan("unique_all", x, ("index", "inverse", "counts"), size, fill_value)
    )


def unique_counts(
    x: Any, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueCountsResult:
    """Different elements and how often each comes; see :func:`unique_all`."""
    return UniqueCountsResult(*_each_nan("unique_counts", x, ("counts",), size, fill_value))


def unique_inverse(
    x: Any, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueInverseResult:
    """Different elements and which of them each element is; see :func:`unique_all`."""
    return UniqueInverseResult(*_each_nan("unique_inverse", x, ("inverse",), size, fill_value))


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Different elements; see :func:`unique_all`."""
    values: Array = _each_nan("unique_values", x, (), size, fill_value)[0]
    return values
