"""Order statistics of neighbourhoods: minima, maxima, medians, ranks."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike, DTypeLike
from primax_numpy.declaring import check_arrays, compiled, one_axis

from ._arguments import (
    Integers,
    Modes,
    Neighbours,
    bounds,
    cast_back,
    check_modes,
    chosen_axes,
    extended,
    image,
    integers,
    per_axis,
    result_dtype,
)

_NETWORK = 64


def footprint_of(name: str, size: Any, footprint: Any, count: int) -> Any:
    """The neighbourhood as a NumPy array of booleans with ``count`` dimensions."""
    if footprint is None:
        if size is None:
            raise ValueError(f"{name}: size or footprint is needed")
        sizes = integers(name, "size", size, count)
        if any(n < 1 for n in sizes):
            raise ValueError(f"{name}: sizes must be positive, got {sizes}")
        return np.ones(sizes, bool)
    try:
        out = np.asarray(footprint).astype(bool)
    except Exception as error:
        raise TypeError(f"{name}: footprint must be a constant array, not a traced one") from error
    if out.ndim != count or not out.any():
        raise ValueError(
            f"{name}: footprint must have {count} dimensions and a true element, got shape "
            f"{out.shape}"
        )
    return out


class Footprint:
    """A neighbourhood as a static argument."""

    def __init__(self, mask: Any):
        self.mask = np.ascontiguousarray(mask)
        self._key = (self.mask.shape, self.mask.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Footprint) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def running(x: Any, axis: int, size: int, n: int, combine: Callable[[Any, Any], Any]) -> Any:
    """An idempotent operation of ``size`` consecutive elements, by doubling."""
    width = 1
    while 2 * width <= size:
        length = typeof(x).shape[axis]
        x = combine(
            lax.slice_in_dim(x, 0, length - width, axis=axis),
            lax.slice_in_dim(x, width, length, axis=axis),
        )
        width *= 2
    if width == size:
        return lax.slice_in_dim(x, 0, n, axis=axis)
    return combine(
        lax.slice_in_dim(x, 0, n, axis=axis),
        lax.slice_in_dim(x, size - width, size - width + n, axis=axis),
    )


def neighbours(x: Any, mask: Any, axes: Any, shape: Any) -> list[Any]:
    """The neighbours of all positions, one array for each element of a mask, of an extended array.

    Args:
      shape: the shape of the array without its extension.
    """
    parts = []
    for offset in np.argwhere(mask):
        start = [0] * len(shape)
        for axis, o in zip(axes, offset):
            start[axis] = int(o)
        limits = [s + n for s, n in zip(start, shape)]
        parts.append(lax.slice(x, start, limits))
    return parts


def _arguments(name, x, size, footprint, mode, origin, axes):
    image(name, x)
    chosen = chosen_axes(axes, typeof(x).ndim)
    mask = footprint_of(name, size, footprint, len(chosen))
    modes = per_axis(name, "mode", mode, len(chosen))
    check_modes(name, modes)
    origins = integers(name, "origin", origin, len(chosen))
    befores = tuple(bounds(name, n, o)[0] for n, o in zip(mask.shape, origins))
    return chosen, Footprint(mask), modes, befores


def widened(x, mask, axes, modes, befores, cval):
    """An array extended for a neighbourhood."""
    ndim = typeof(x).ndim
    for axis, n, before, mode in zip(axes, mask.shape, befores, modes):
        widths = [(0, 0)] * ndim
        widths[axis] = (before, n - 1 - before)
        x = extended(x, widths, (mode,) * ndim, cval)
    return x


@compiled("axes", "footprint", "modes", "befores", "largest", "dtype", name="extremum_filter")
def _extremum(x, cval, *, axes, footprint, modes, befores, largest, dtype):
    combine = lax.max if largest else lax.min
    shape, mask = typeof(x).shape, footprint.mask
    if mask.all():
        for axis, n, before, mode in zip(axes, mask.shape, befores, modes):
            wide = widened(x, np.ones(n, bool), (axis,), (mode,), (before,), cval)
            x = running(wide, axis, n, shape[axis], combine)
        return cast_back(x, dtype)
    total: Any = None
    for part in neighbours(widened(x, mask, axes, modes, befores, cval), mask, axes, shape):
        total = part if total is None else combine(total, part)
    return cast_back(total, dtype)


def _extremum_filter(
    name, x, size, footprint, output, mode, cval, origin, axes, largest
) -> Array:  # fmt: skip
    check_arrays(name, cval)
    chosen, shape, modes, befores = _arguments(name, x, size, footprint, mode, origin, axes)
    out: Array = _extremum(
        x, cval, axes=chosen, footprint=shape, modes=modes, befores=befores, largest=largest,
        dtype=result_dtype(name, x, output),
    )  # fmt: skip
    return out


def maximum_filter(
    input: ArrayLike,
    size: Integers | None = None,
    footprint: Neighbours | None = None,
    output: DTypeLike | None = None,
    mode: Modes = "reflect",
    cval: ArrayLike = 0.0,
    origin: Integers = 0,
    *,
    axes: Integers | None = None,
) -> Array:
    """Maximum of the neighbours.

    Args:
      input: an array of real numbers.
      size: the sizes of a box, one value or one for each axis.
      footprint: a constant array of booleans, the neighbourhood instead of a box.
      output: the dtype of the result, by default that of the input.
      mode, cval, origin, axes: as in `correlate`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a size, a shape, a mode or an origin is invalid.
      TypeError: if the footprint is traced, or ``input`` is not an array.

    The derivative is that of the largest neighbour; equal ones share it.

    >>> maximum_filter(np.int32([1, 5, 2, 3]), 3).tolist()
    [5, 5, 5, 3]
    """
    return _extremum_filter(
        "maximum_filter", input, size, footprint, output, mode, cval, origin, axes, True
    )


def minimum_filter(
    input: ArrayLike,
    size: Integers | None = None,
    footprint: Neighbours | None = None,
    output: DTypeLike | None = None,
    mode: Modes = "reflect",
    cval: ArrayLike = 0.0,
    origin: Integers = 0,
    *,
    axes: Integers | None = None,
) -> Array:
    """Minimum of the neighbours.

    Args:
      input: an array of real numbers.
      size: the sizes of a box, one value or one for each axis.
      footprint: a constant array of booleans, the neighbourhood instead of a box.
      output: the dtype of the result, by default that of the input.
      mode, cval, origin, axes: as in `correlate`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a size, a shape, a mode or an origin is invalid.
      TypeError: if the footprint is traced, or ``input`` is not an array.

    The derivative is that of the smallest neighbour; equal ones share it.

    >>> minimum_filter(np.int32([4, 1, 2, 3]), 3).tolist()
    [1, 1, 1, 2]
    """
    return _extremum_filter(
        "minimum_filter", input, size, footprint, output, mode, cval, origin, axes, False
    )


def maximum_filter1d(
    input: ArrayLike, size: int, axis: int = -1, output: DTypeLike | None = None,
    mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    """Maximum of ``size`` neighbours along one axis.

    Args:
      input: an array of real numbers.
      size: the number of neighbours, a positive Python integer.
      axis: the axis, the last by default.
      output, mode, cval, origin: as in `correlate1d`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if the size, the axis, the mode or the origin is invalid.

    >>> maximum_filter1d(np.int32([[1, 5], [2, 3]]), 2, axis=0).tolist()
    [[1, 5], [2, 5]]
    """
    axis = one_axis(axis, typeof(image("maximum_filter1d", input)).ndim)
    return maximum_filter(input, size, None, output, mode, cval, origin, axes=(axis,))


def minimum_filter1d(
    input: ArrayLike, size: int, axis: int = -1, output: DTypeLike | None = None,
    mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0,
) -> Array:  # fmt: skip
    """Minimum of ``size`` neighbours along one axis.

    Args:
      input: an array of real numbers.
      size: the number of neighbours, a positive Python integer.
      axis: the axis, the last by default.
      output, mode, cval, origin: as in `correlate1d`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if the size, the axis, the mode or the origin is invalid.

    >>> minimum_filter1d(np.int32([[1, 5], [2, 3]]), 2, axis=0).tolist()
    [[1, 5], [1, 3]]
    """
    axis = one_axis(axis, typeof(image("minimum_filter1d", input)).ndim)
    return minimum_filter(input, size, None, output, mode, cval, origin, axes=(axis,))


def _merge_pairs(n: int) -> list[tuple[int, int]]:
    """Comparators of Batcher's odd-even merge sort: Knuth, TAOCP 5.2.2, algorithm M."""
    pairs = []
    top = 1 << (n - 1).bit_length() >> 1
    p = top
    while p > 0:
        q, r, d = top, 0, p
        while True:
            pairs += [(i, i + d) for i in range(n - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1
    return pairs


def ranked(parts: list[Any], rank: int) -> Any:
    """The element of a rank at each position, by a sorting network."""
    if len(parts) > _NETWORK:
        return lax.index_in_dim(lax.sort(pnp.stack(parts), 0), rank, 0, keepdims=False)
    for i, j in _merge_pairs(len(parts)) if len(parts) > 1 else []:
        parts[i], parts[j] = lax.min(parts[i], parts[j]), lax.max(parts[i], parts[j])
    return parts[rank]


@compiled("axes", "footprint", "modes", "befores", "rank", "dtype", name="rank_filter")
def _rank(x, cval, *, axes, footprint, modes, befores, rank, dtype):
    wide = widened(x, footprint.mask, axes, modes, befores, cval)
    parts = neighbours(wide, footprint.mask, axes, typeof(x).shape)
    return cast_back(ranked(parts, rank), dtype)


def _rank_filter(name, x, rank_of, size, footprint, output, mode, cval, origin, axes) -> Array:
    check_arrays(name, cval)
    chosen, shape, modes, befores = _arguments(name, x, size, footprint, mode, origin, axes)
    out: Array = _rank(
        x, cval, axes=chosen, footprint=shape, modes=modes, befores=befores,
        rank=rank_of(int(shape.mask.sum())), dtype=result_dtype(name, x, output),
    )  # fmt: skip
    return out


def median_filter(
    input: ArrayLike,
    size: Integers | None = None,
    footprint: Neighbours | None = None,
    output: DTypeLike | None = None,
    mode: Modes = "reflect",
    cval: ArrayLike = 0.0,
    origin: Integers = 0,
    *,
    axes: Integers | None = None,
) -> Array:
    """Median of the neighbours, the upper one of an even number.

    Args:
      input: an array of real numbers.
      size: the sizes of a box, one value or one for each axis.
      footprint: a constant array of booleans, the neighbourhood instead of a box.
      output: the dtype of the result, by default that of the input.
      mode, cval, origin, axes: as in `correlate`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if a size, a shape, a mode or an origin is invalid.
      TypeError: if the footprint is traced, or ``input`` is not an array.

    The derivative is that of the neighbour that is the median.

    >>> median_filter(np.int32([1, 9, 2, 3]), 3).tolist()
    [1, 2, 3, 3]
    """
    return _rank_filter(
        "median_filter", input, lambda n: n // 2, size, footprint, output, mode, cval, origin, axes
    )


def rank_filter(
    input: ArrayLike,
    rank: int,
    size: Integers | None = None,
    footprint: Neighbours | None = None,
    output: DTypeLike | None = None,
    mode: Modes = "reflect",
    cval: ArrayLike = 0.0,
    origin: Integers = 0,
    *,
    axes: Integers | None = None,
) -> Array:
    """The neighbour of a rank, counted from the smallest or from the largest.

    Args:
      input: an array of real numbers.
      rank: 0 for the smallest neighbour, -1 for the largest; a Python integer.
      size: the sizes of a box, one value or one for each axis.
      footprint: a constant array of booleans, the neighbourhood instead of a box.
      output: the dtype of the result, by default that of the input.
      mode, cval, origin, axes: as in `correlate`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if there are not so many neighbours, or a size, a shape, a mode or an origin is
        invalid.
      TypeError: if the footprint is traced, or ``input`` is not an array.

    >>> rank_filter(np.int32([1, 9, 2, 3]), -2, 3).tolist()
    [1, 2, 3, 3]
    """
    rank = operator.index(rank)

    def rank_of(n: int) -> int:
        if not -n <= rank < n:
            raise ValueError(f"rank_filter: rank={rank} is out of range for {n} neighbours")
        return rank % n

    return _rank_filter(
        "rank_filter", input, rank_of, size, footprint, output, mode, cval, origin, axes
    )


def percentile_filter(
    input: ArrayLike,
    percentile: float,
    size: Integers | None = None,
    footprint: Neighbours | None = None,
    output: DTypeLike | None = None,
    mode: Modes = "reflect",
    cval: ArrayLike = 0.0,
    origin: Integers = 0,
    *,
    axes: Integers | None = None,
) -> Array:
    """The neighbour at a percentile, rounded down to a rank.

    Args:
      input: an array of real numbers.
      percentile: between 0 and 100; or between -100 and 0, to which 100 is added. A Python number.
      size: the sizes of a box, one value or one for each axis.
      footprint: a constant array of booleans, the neighbourhood instead of a box.
      output: the dtype of the result, by default that of the input.
      mode, cval, origin, axes: as in `correlate`.

    Returns:
      An array of the shape of ``input``, in its dtype or ``output``.

    Raises:
      ValueError: if the percentile is not between -100 and 100, or a size, a shape, a mode or an
        origin is invalid.
      TypeError: if the footprint is traced, or ``input`` is not an array.

    >>> percentile_filter(np.int32([1, 9, 2, 3]), 50, 3).tolist()
    [1, 2, 3, 3]
    """
    percent = percentile + 100.0 if percentile < 0 else float(percentile)
    if not 0 <= percent <= 100:
        raise ValueError(f"percentile_filter: percentile={percentile} is out of range")

    def rank_of(n: int) -> int:
        return n - 1 if percent == 100 else int(n * percent / 100)

    return _rank_filter(
        "percentile_filter", input, rank_of, size, footprint, output, mode, cval, origin, axes
    )
