"""Segment reductions: elements with the same segment number are combined."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, Tracer, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, ShardingLike

from .._checks import check_arrays
from .._functions import compiled
from .._reading import mode_of


def segment_sum(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    bucket_size: int | None = None, mode: Any = None, out_sharding: ShardingLike | None = None,
) -> Array:  # fmt: skip
    """Sums of the slices of an array with the same segment number.

    Args:
      data: ``[n, ...]``, or an array that broadcasts to ``segment_ids.shape + data.shape[1:]``.
      segment_ids: ``int[n]``, the segment of each slice; numbers outside 0 to ``num_segments - 1``
        are dropped.
      num_segments: the number of segments, by default one more than the largest number, which
        must then be concrete.
      indices_are_sorted, unique_indices: declarations that permit faster code.
      bucket_size: reduce buckets of this many slices separately, then combine them, which
        improves the precision.
      mode: the treatment of numbers out of bounds, as in ``x.at[...]``.

    Returns:
      ``[num_segments, ...]``; segments without elements are zero.

    Raises:
      ValueError: if the shapes do not match.
      TypeError: if segment numbers are not integers.
      ConcretizationTypeError: if segment numbers are traced and ``num_segments`` is ``None``.

    >>> segment_sum(np.float32([1, 2, 4]), np.int32([0, 0, 2])).tolist()
    [3.0, 0.0, 4.0]
    """
    if out_sharding is not None:
        return with_out_sharding(
            segment_sum,
            out_sharding,
            data,
            segment_ids,
            num_segments,
            indices_are_sorted,
            unique_indices,
            bucket_size,
            mode,
        )
    return _segments(
        "segment_sum", data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode,
    )  # fmt: skip


def segment_prod(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    bucket_size: int | None = None, mode: Any = None, out_sharding: ShardingLike | None = None,
) -> Array:  # fmt: skip
    """Products of the slices of an array with the same segment number.

    Args:
      data: ``[n, ...]``, or an array that broadcasts to ``segment_ids.shape + data.shape[1:]``.
      segment_ids: ``int[n]``, the segment of each slice; numbers outside 0 to ``num_segments - 1``
        are dropped.
      num_segments: the number of segments, by default one more than the largest number, which must
        then be concrete.
      indices_are_sorted, unique_indices, bucket_size, mode, out_sharding: as for
        :func:`segment_sum`.

    Returns:
      ``[num_segments, ...]``; segments without elements are 1.

    Raises:
      ValueError, TypeError, ConcretizationTypeError: as for :func:`segment_sum`.

    The result is differentiable with respect to the data only with ``unique_indices``.

    >>> segment_prod(np.float32([2, 3, 4]), np.int32([0, 0, 2])).tolist()
    [6.0, 1.0, 4.0]
    """
    if out_sharding is not None:
        return with_out_sharding(
            segment_prod,
            out_sharding,
            data,
            segment_ids,
            num_segments,
            indices_are_sorted,
            unique_indices,
            bucket_size,
            mode,
        )
    return _segments(
        "segment_prod", data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode,
    )  # fmt: skip


def segment_max(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    bucket_size: int | None = None, mode: Any = None, out_sharding: ShardingLike | None = None,
) -> Array:  # fmt: skip
    """Maxima of the slices of an array with the same segment number.

    Args:
      data: ``[n, ...]``, or an array that broadcasts to ``segment_ids.shape + data.shape[1:]``.
      segment_ids: ``int[n]``, the segment of each slice; numbers outside 0 to ``num_segments - 1``
        are dropped.
      num_segments: the number of segments, by default one more than the largest number, which must
        then be concrete.
      indices_are_sorted, unique_indices, bucket_size, mode, out_sharding: as for
        :func:`segment_sum`.

    Returns:
      ``[num_segments, ...]``; segments without elements are -inf or the smallest integer.

    Raises:
      ValueError, TypeError, ConcretizationTypeError: as for :func:`segment_sum`.

    >>> segment_max(np.float32([2, 3, 4]), np.int32([0, 0, 2])).tolist()
    [3.0, -inf, 4.0]
    """
    if out_sharding is not None:
        return with_out_sharding(
            segment_max,
            out_sharding,
            data,
            segment_ids,
            num_segments,
            indices_are_sorted,
            unique_indices,
            bucket_size,
            mode,
        )
    return _segments(
        "segment_max", data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode,
    )  # fmt: skip


def segment_min(
    data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
    indices_are_sorted: bool = False, unique_indices: bool = False,
    bucket_size: int | None = None, mode: Any = None, out_sharding: ShardingLike | None = None,
) -> Array:  # fmt: skip
    """Minima of the slices of an array with the same segment number.

    Args:
      data: ``[n, ...]``, or an array that broadcasts to ``segment_ids.shape + data.shape[1:]``.
      segment_ids: ``int[n]``, the segment of each slice; numbers outside 0 to ``num_segments - 1``
        are dropped.
      num_segments: the number of segments, by default one more than the largest number, which must
        then be concrete.
      indices_are_sorted, unique_indices, bucket_size, mode, out_sharding: as for
        :func:`segment_sum`.

    Returns:
      ``[num_segments, ...]``; segments without elements are inf or the largest integer.

    Raises:
      ValueError, TypeError, ConcretizationTypeError: as for :func:`segment_sum`.

    >>> segment_min(np.float32([2, 3, 4]), np.int32([0, 0, 2])).tolist()
    [2.0, inf, 4.0]
    """
    if out_sharding is not None:
        return with_out_sharding(
            segment_min,
            out_sharding,
            data,
            segment_ids,
            num_segments,
            indices_are_sorted,
            unique_indices,
            bucket_size,
            mode,
        )
    return _segments(
        "segment_min", data, segment_ids, num_segments, indices_are_sorted, unique_indices,
        bucket_size, mode,
    )  # fmt: skip


_SCATTERS: Final[dict[str, Any]] = {
    "segment_sum": lax.scatter_add,
    "segment_prod": lax.scatter_mul,
    "segment_max": lax.scatter_max,
    "segment_min": lax.scatter_min,
}
_REDUCTIONS: Final[dict[str, Any]] = {
    "segment_sum": lax.reduce_sum,
    "segment_prod": lax.reduce_prod,
    "segment_max": lax.reduce_max,
    "segment_min": lax.reduce_min,
}


def _segments(name, data, ids, count, sorted_, unique, bucket_size, mode) -> Array:
    check_arrays(name, data, ids)
    x, i = typeof(data), typeof(ids)
    if not dtypes.issubdtype(i.dtype, np.integer):
        raise TypeError(f"{name}: segment_ids must be integers, got {i.dtype.name}")
    if name in ("segment_sum", "segment_prod") and x.dtype == np.bool_:
        raise TypeError(f"{name} does not accept booleans: convert the data to integers first")
    data, ids = _matched(name, data, ids)
    if count is None:
        count = _known_count(name, ids)
    count = operator.index(count)
    if count < 0:
        raise ValueError(f"{name}: num_segments must be non-negative, got {count}.")
    return _combined(
        data, ids, name=name, count=count, sorted_=bool(sorted_), unique=bool(unique),
        bucket_size=bucket_size, mode=mode_of(mode),
    )  # fmt: skip


def _matched(name: str, data: Any, ids: Any) -> tuple[Any, Any]:
    """The data with one slice for each number, and the numbers in one axis or none."""
    x, i = typeof(data), typeof(ids)
    shape = (*i.shape, *x.shape[1:])
    if x.shape != shape:
        last = shape[len(shape) - x.ndim :]
        if x.ndim > len(shape) or any(size not in (1, n) for size, n in zip(x.shape, last)):
            raise ValueError(
                f"{name}: segment_ids must have one number for each slice of the data, got shapes "
                f"{i.shape} and {x.shape}"
            )
        data = lax.broadcast_in_dim(data, shape, tuple(range(len(shape) - x.ndim, len(shape))))
    if i.ndim > 1:
        n = math.prod(i.shape)
        data, ids = lax.reshape(data, (n, *x.shape[1:])), lax.reshape(ids, (n,))
    return data, ids


def _known_count(name: str, ids: Any) -> int:
    if isinstance(ids, Tracer):
        raise ConcretizationTypeError(
            ids,
            f"{name}() needs `num_segments`, because the maximum of traced numbers is unknown: "
            f"pass {name}(data, segment_ids, num_segments=...)",
        )
    known = np.asarray(ids)
    if not known.size:
        raise ValueError(f"{name}: pass num_segments, because segment_ids is empty")
    return max(int(known.max()) + 1, 0)


def _least(name: str, dtype: Any) -> Any:
    """The identity of the reduction, which is the value of empty segments."""
    if name in ("segment_sum", "segment_prod"):
        return np.asarray(int(name == "segment_prod"), dtype)[()]
    lowest = name == "segment_max"
    if dtype == np.bool_:
        return np.bool_(not lowest)
    if dtypes.issubdtype(dtype, np.integer):
        info = dtypes.iinfo(dtype)
        return np.asarray(info.min if lowest else info.max, dtype)[()]
    return np.asarray(-np.inf if lowest else np.inf, dtype)[()]


@compiled("name", "count", "sorted_", "unique", "bucket_size", "mode", name="segments")
def _combined(data, ids, *, name, count, sorted_, unique, bucket_size, mode):
    if not typeof(ids).ndim:
        data, ids = lax.expand_dims(data, (0,)), lax.expand_dims(ids, (0,))
    n, *tail = typeof(data).shape
    buckets = 1 if not bucket_size else max(-(-n // bucket_size), 1)
    shape = (count, *tail) if buckets == 1 else (buckets, count, *tail)
    start = lax.full(shape, _least(name, typeof(data).dtype), typeof(data).dtype)
    lead = len(shape) - len(tail)
    ids = lax.convert_element_type(ids, _index_type(typeof(ids).dtype))
    index = lax.expand_dims(ids, (1,))
    if buckets > 1:
        bucket = lax.convert_element_type(
            (np.arange(n, dtype=np.int32) // bucket_size)[:, None], typeof(ids).dtype
        )
        index = lax.concatenate([bucket, index], 1)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, len(tail) + 1)),
        inserted_window_dims=tuple(range(lead)),
        scatter_dims_to_operand_dims=tuple(range(lead)),
    )
    out = _SCATTERS[name](
        start, index, data, numbers, indices_are_sorted=sorted_, unique_indices=unique,
        mode=mode or lax.GatherScatterMode.FILL_OR_DROP,
    )  # fmt: skip
    return out if buckets == 1 else _REDUCTIONS[name](out, (0,))


def _index_type(dtype: Any) -> Any:
    return np.dtype(np.int64 if dtype.itemsize == 8 else np.int32)
