"""Histograms: element counts in the bins of a row or a grid."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, Tracer, dtypes, is_operand
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, ShardingLike

from ._checks import check_arrays
from ._counting import counts_at
from ._creation import asarray
from ._functions import compiled, trim_none
from ._promotion import repeated
from ._reduction_helpers import float_of, is_complex_dtype, wide_of
from ._searching import before, bisected
from ._selecting import check_known, take_rows
from ._statistics import scalar


def _edges(a: Any, low: Any, high: Any, bins: int) -> Any:
    """Edges of equal bins from the minimum to the maximum, or between specified bounds."""
    dtype = typeof(a).dtype
    if low is None:
        if typeof(a).size:
            axes = tuple(range(typeof(a).ndim))
            low, high = lax.reduce_min(a, axes), lax.reduce_max(a, axes)
        else:
            low, high = scalar(0, dtype), scalar(1, dtype)
    low, high = (lax.convert_element_type(v, dtype) for v in (low, high))
    half = scalar(0.5, dtype)
    same = lax.eq(low, high)
    low, high = (
        lax.select(same, lax.sub(low, half), low),
        lax.select(same, lax.add(high, half), high),
    )
    places = lax.iota(np.int32, bins + 1)
    part = lax.div(lax.convert_element_type(places, dtype), scalar(max(bins, 1), dtype))
    low, high = (repeated(v, (bins + 1,)) for v in (low, high))
    out = lax.add(lax.mul(low, lax.sub(lax.full_like(part, 1), part)), lax.mul(high, part))
    return lax.select(lax.eq(places, lax.full_like(places, max(bins, 1))), high, out)


def _bin_of(a: Any, edges: Any, equal: bool) -> Any:
    """The bin of each element, or the number of bins if it is in none."""
    n = typeof(edges).shape[0] - 1
    first, last = (lax.squeeze(lax.slice_in_dim(edges, i, i + 1), (0,)) for i in (0, n))
    shape = typeof(a).shape
    inside = lax.bitwise_and(
        before(repeated(first, shape), a, "right"), before(a, repeated(last, shape), "right")
    )
    # NaN sorts after all edges, and is in no bin.
    inside = lax.bitwise_and(inside, lax.eq(a, a))
    if equal and not is_complex_dtype(typeof(a).dtype):
        width = lax.sub(last, first)
        position = lax.div(lax.sub(a, repeated(first, shape)), repeated(width, shape))
        position = lax.convert_element_type(lax.mul(position, lax.full_like(position, n)), np.int32)
        top = lax.full_like(position, n - 1)
        position = lax.clamp(lax.full_like(position, 0), position, top)
        # Rounding may be off by one bin.
        one = lax.full_like(position, 1)
        below = lax.lt(a, take_rows(edges, position))
        above = lax.ge(a, take_rows(edges, lax.add(position, one)))
        above = lax.bitwise_and(above, lax.lt(position, top))
        position = lax.select(
            below, lax.sub(position, one), lax.select(above, lax.add(position, one), position)
        )
    else:
        position = bisected(edges, a, "right")
        position = lax.min(
            lax.sub(position, lax.full_like(position, 1)), lax.full_like(position, n - 1)
        )
    return lax.select(inside, position, lax.full_like(position, n))


def _flat(x: Any, dtype: Any) -> Any:
    return lax.convert_element_type(lax.reshape(x, (typeof(x).size,)), dtype)


def _per_width(counts: Any, edges: Sequence[Any]) -> Any:
    """Counts divided by their sum and by the widths of the bins."""
    shape = typeof(counts).shape
    total = lax.reduce_sum(counts, tuple(range(len(shape))))
    counts = lax.div(counts, repeated(total, shape))
    for axis, e in enumerate(edges):
        n = typeof(e).shape[0]
        widths = lax.sub(lax.slice_in_dim(e, 1, n), lax.slice_in_dim(e, 0, n - 1))
        widths = lax.convert_element_type(widths, typeof(counts).dtype)
        counts = lax.div(counts, lax.broadcast_in_dim(widths, shape, (axis,)))
    return counts


@compiled("bins", "dtype", "density")
def _histogram(a, weights=None, edges=None, low=None, high=None, *, bins, dtype, density):
    wide = wide_of(dtype)
    x = _flat(a, wide)
    equal = edges is None
    edges = _edges(x, low, high, bins) if equal else lax.convert_element_type(edges, wide)
    if weights is not None:
        weights = _flat(weights, wide)
    n = typeof(edges).shape[0] - 1
    if n < 1:
        counts = lax.full((0,), scalar(0, wide))
    else:
        x, fixed = lax.stop_gradient(x), lax.stop_gradient(edges)
        kind = dtypes.default_int() if weights is None else wide
        counts = counts_at(_bin_of(x, fixed, equal), weights, n, kind)
        counts = lax.convert_element_type(counts, wide)
    if density:
        counts = _per_width(counts, [edges])
    return lax.convert_element_type(counts, dtype), lax.convert_element_type(edges, dtype)


@compiled("bins", "dtype")
def _bin_edges(a, low=None, high=None, *, bins, dtype):
    edges = _edges(_flat(a, wide_of(dtype)), low, high, bins)
    return lax.convert_element_type(edges, dtype)


def _range_of(name: str, range: Any) -> tuple[Any, Any]:
    if range is None:
        return None, None
    if is_operand(range):
        if typeof(range).shape != (2,):
            raise ValueError(
                f"{name}: range must be None or two numbers, got shape {typeof(range).shape}"
            )
        return tuple(lax.index_in_dim(range, i, 0, keepdims=False) for i in (0, 1))
    try:
        low, high = range
    except (TypeError, ValueError):
        raise ValueError(f"{name}: range must be None or two numbers, got {range}") from None
    check_arrays(f"{name}'s range", low, high)
    known = not isinstance(low, Tracer) and not isinstance(high, Tracer)
    if known and np.ndim(low) == np.ndim(high) == 0 and not np.asarray(low <= high):
        raise ValueError(f"{name}: range must ascend, got {low} and {high}")
    return low, high


def _check_edges(name: str, edges: Any) -> None:
    aval = typeof(edges)
    if aval.ndim != 1:
        raise ValueError(f"{name}: bins must be a number or a vector of edges, got {aval.shape}")
    if not isinstance(edges, Tracer):
        known = np.asarray(edges)
        if np.any(known[1:] < known[:-1]):
            raise ValueError(f"{name}: bins must ascend, got {known}")


def _by_rule(name: str, a: Any, bins: str, range: Any, weights: Any) -> Any:
    """Edges that NumPy chooses by a named rule."""
    if weights is not None:
        raise TypeError(f"{name}: bins={bins!r} does not support weights; pass a number of bins")
    check_known(f"{name}(bins={bins!r})", a)
    dtype = float_of(typeof(a).dtype)
    return asarray(np.histogram_bin_edges(np.asarray(a), bins, range).astype(dtype))


def _bins_of(name: str, bins: Any) -> tuple[int, Any]:
    """A number of bins, and explicit edges or ``None``."""
    if is_operand(bins) and typeof(bins).ndim:
        _check_edges(name, bins)
        return 0, bins
    if not is_operand(bins):
        raise TypeError(
            f"{name}: bins must be a number, an array of edges or the name of a rule, got "
            f"{type(bins)}"
        )
    n = operator.index(bins)
    if n < 0:
        raise ValueError(f"{name}: the number of bins must be positive, got {n}")
    return n, None


def _dtype_for(*arrays: Any) -> Any:
    avals = [typeof(x) for x in arrays if x is not None]
    return float_of(dtypes.lattice_result(tuple([(t.dtype, t.weak_type) for t in avals]))[0])


def histogram_bin_edges(
    a: ArrayLike,
    bins: int | str | ArrayLike | Sequence[Any] = 10,
    range: ArrayLike | Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The bin edges of :func:`histogram`.

    Args:
      a: an array, which is flattened.
      bins: a number of equal bins, a vector of edges, or (for concrete values) the name of a rule
        of NumPy for the number of bins, such as ``"auto"``.
      range: the first and the last edge of equal bins; by default the minimum and the maximum.
      weights: as for :func:`histogram`; they do not affect the edges of equal bins.

    Returns:
      A float vector of the edges, one more than bins.

    >>> histogram_bin_edges(np.array([1.0, 3.0]), bins=2).tolist()
    [1.0, 2.0, 3.0]
    """
    name = "histogram_bin_edges"
    check_arrays(name, a)
    if isinstance(bins, str):
        computed: Array = _by_rule(name, a, bins, range, weights)
        return computed
    n, edges = _bins_of(name, bins)
    dtype = _dtype_for(a)
    if edges is not None:
        return lax.convert_element_type(edges, dtype)
    low, high = _range_of(name, range)
    computed = _bin_edges(*trim_none(a, low, high), bins=n, dtype=dtype)
    return computed


def histogram(
    a: ArrayLike,
    bins: int | str | ArrayLike | Sequence[Any] = 10,
    range: ArrayLike | Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: ShardingLike | None = None,
) -> tuple[Array, Array]:
    """Number of elements in each bin.

    A bin includes its left edge, the last one both edges. Elements outside all bins are ignored.
    Complex numbers are ordered lexicographically.

    Args:
      a: an array, which is flattened.
      bins: a number of equal bins, a vector of edges, or (for concrete values) the name of a rule
        of NumPy for the number of bins, such as ``"auto"``.
      range: the first and the last edge of equal bins; by default the minimum and the maximum.
      weights: the weight of each element, 1 by default; of the shape of ``a``.
      density: normalize to a probability density.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      Counts and edges, both floats. If ``a`` contains NaN and ``range`` is ``None``, the edges are
      NaN and the counts 0.

    Counts are differentiable with respect to weights only.

    >>> counts, edges = histogram(np.array([1.0, 2.0, 2.0, 5.0]), bins=2)
    >>> counts.tolist(), edges.tolist()
    ([3.0, 1.0], [1.0, 3.0, 5.0])
    """
    if out_sharding is not None:
        return with_out_sharding(histogram, out_sharding, a, bins, range, weights, density)
    check_arrays("histogram", a)
    if weights is not None:
        check_arrays("histogram", a, weights)
        if typeof(weights).shape != typeof(a).shape:
            raise ValueError(
                "histogram: weights should have the same shape as a, got "
                f"{typeof(weights).shape} and {typeof(a).shape}"
            )
    if isinstance(bins, str):
        bins = _by_rule("histogram", a, bins, range, weights)
    n, edges = _bins_of("histogram", bins)
    dtype = _dtype_for(a, weights)
    low, high = (None, None) if edges is not None else _range_of("histogram", range)
    counts, used_edges = _histogram(
        *trim_none(a, weights, edges, low, high), bins=n, dtype=dtype, density=bool(density)
    )
    return counts, used_edges


@compiled("bins", "dtype", "count_dtype", "density")
def _histogramdd(sample, weights, edges, limits, *, bins, dtype, count_dtype, density):
    wide = wide_of(dtype)
    n = typeof(sample).shape[0]
    places, all_edges = None, []
    inside = lax.full((n,), np.True_)
    for i, (number, known, (low, high)) in enumerate(zip(bins, edges, limits)):
        x = lax.slice_in_dim(sample, i, i + 1, axis=1)
        x = _flat(x, wide)
        e = _edges(x, low, high, number) if known is None else lax.convert_element_type(known, wide)
        all_edges.append(e)
        size = typeof(e).shape[0] - 1
        at = _bin_of(lax.stop_gradient(x), lax.stop_gradient(e), known is None)
        inside = lax.bitwise_and(inside, lax.lt(at, lax.full_like(at, size)))
        places = at if places is None else lax.add(lax.mul(places, lax.full_like(at, size)), at)
    shape = tuple(typeof(e).shape[0] - 1 for e in all_edges)
    total = int(np.prod(shape))
    places = lax.select(inside, places, lax.full_like(places, total))
    summed = wide_of(count_dtype)
    if weights is not None:
        weights = lax.convert_element_type(weights, summed)
    counts = lax.reshape(counts_at(places, weights, total, summed), shape)
    if density:
        counts = _per_width(lax.convert_element_type(counts, wide), all_edges)
        count_dtype = dtype
    return (
        lax.convert_element_type(counts, count_dtype),
        [lax.convert_element_type(e, dtype) for e in all_edges],
    )


def histogramdd(
    sample: ArrayLike | Sequence[Any],
    bins: int | str | ArrayLike | Sequence[Any] = 10,
    range: ArrayLike | Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Number of points in each bin of a grid.

    Args:
      sample: ``[points, axes]``.
      bins: a number of equal bins for all axes, or for each axis a number or a vector of edges.
      range: for each axis ``None`` or the first and last edge of equal bins.
      weights: the weight of each point, 1 by default.
      density: normalize to a probability density.

    Returns:
      Counts, of integers without weights, and a list of the edges along each axis.

    >>> counts, edges = histogramdd(np.array([[1.0, 1.0], [3.0, 2.0]]), bins=2)
    >>> counts.tolist()
    [[1, 0], [0, 1]]
    """
    return _on_grid("histogramdd", sample, bins, range, weights, density)


def _on_grid(
    name: str, sample: Any, bins: Any, range: Any, weights: Any, density: Any
) -> tuple[Array, list[Array]]:
    check_arrays(name, sample)
    aval = typeof(sample)
    if aval.ndim != 2:
        raise ValueError(
            f"{name}: sample must have the axes [points, axes], got shape {aval.shape}"
        )
    n, rank = aval.shape
    each = [bins] * rank if is_operand(bins) and not typeof(bins).ndim else list(bins)
    if len(each) != rank:
        raise ValueError(f"{name}: should be a bin for each dimension, got {len(each)} for {rank}")
    ranges = [None] * rank if range is None else list(range)
    if len(ranges) != rank:
        raise ValueError(
            f"{name}: should be a range for each dimension, got {len(ranges)} for {rank}"
        )
    parsed = [_bins_of(name, b) for b in each]
    limits = [_range_of(name, r) for r in ranges]
    dtype = _dtype_for(sample)
    counted = dtypes.default_int()
    if weights is not None:
        check_arrays(name, sample, weights)
        if typeof(weights).shape != (n,):
            raise ValueError(
                f"{name}: should have one weight for each of {n} points, got shape "
                f"{typeof(weights).shape}"
            )
        counted = dtype = _dtype_for(sample, weights)
    edges = [e for _, e in parsed]
    numbers = tuple([b for b, _ in parsed])
    counts, edges = _histogramdd(
        sample, weights, edges, limits, bins=numbers, dtype=dtype, count_dtype=counted,
        density=bool(density),
    )  # fmt: skip
    return counts, edges


@compiled()
def _pairs(x, y):
    avals = [typeof(x), typeof(y)]
    dtype, _ = dtypes.lattice_result(tuple([(t.dtype, t.weak_type) for t in avals]))
    columns = [lax.expand_dims(lax.convert_element_type(v, dtype), (1,)) for v in (x, y)]
    return lax.concatenate(columns, 1)


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: int | str | ArrayLike | Sequence[Any] = 10,
    range: ArrayLike | Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Number of points of a plane in each bin of a grid.

    Args:
      x, y: vectors of coordinates.
      bins: a number of equal bins or a vector of edges for both axes, or a pair of these.
      range: ``((xmin, xmax), (ymin, ymax))``; by default the bounds of the points.
      weights, density: as in :func:`histogramdd`.

    Returns:
      Counts, the edges along ``x`` and those along ``y``.

    Counts are differentiable with respect to weights only.

    >>> counts, _, _ = histogram2d(np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0]), 2)
    >>> counts.tolist()
    [[1, 0], [0, 2]]
    """
    check_arrays("histogram2d", x, y)
    shapes = [typeof(v).shape for v in (x, y)]
    if shapes[0] != shapes[1] or len(shapes[0]) != 1:
        raise ValueError(f"histogram2d: x and y must be vectors of one length, got {shapes}")
    if not is_operand(bins) or typeof(bins).ndim:
        length = typeof(bins).shape[0] if is_operand(bins) else len(bins)
        if length not in (1, 2):
            bins = [asarray(bins)] * 2
        elif length == 1:
            bins = [bins[0]] * 2
    counts, edges = _on_grid("histogram2d", _pairs(x, y), bins, range, weights, density)
    return counts, edges[0], edges[1]
