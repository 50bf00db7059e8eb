"""Algorithms for ragged products: tiles of rows, or masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .arithmetic import add, max, min, sub
from .bitwise import bitwise_and
from .broadcasting import broadcast_in_dim, broadcasted_iota
from .comparison import ge, lt
from .contracting import dot_general
from .control.while_loop import while_loop
from .conversion import convert_element_type
from .cumulative import cumsum
from .dynamic_slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_slice,
)
from .permuting import transpose
from .reshaping import reshape
from .selection import select_n
from .slicing import pad

# Rows of a tile: enough for an efficient matrix product, with little waste at the end of a group.
# The smaller tile is for groups with less than twice the larger number of rows on average.
_TILES: Final = (32, 64)


def bounds(sizes: ArrayLike, offset: Sequence[Any], n_local: int) -> tuple[Any, Any]:
    """Start and end of each group: of all groups, or of ``n_local`` groups from ``offset``."""
    if typeof(sizes).dtype.itemsize < 4:
        sizes = convert_element_type(sizes, np.int32)
    last = typeof(sizes).ndim - 1
    ends = cumsum(sizes, last)
    starts = sub(ends, sizes)
    if not offset:
        return starts, ends
    first = reshape(offset[0], ())

    def local(x):
        # Groups after the last one are empty.
        more = [(0, n_local if axis == last else 0, 0) for axis in range(last + 1)]
        filled = pad(x, np.zeros((), typeof(x).dtype)[()], more)
        return dynamic_slice_in_dim(filled, first, n_local, last)

    return local(starts), local(ends)


def _zero(dtype: Any) -> Any:
    return np.zeros((), dtype)[()]


def by_masks(
    x: ArrayLike,
    y: ArrayLike,
    limits: tuple[Any, ...],
    axes: Any,
    prefix: tuple[int, ...],
    params: dict[Any, Any],
) -> Any:
    """Ragged product as one ordinary product with a copy of ``x`` for each group, masked to it."""
    starts, ends = limits
    shape = typeof(x).shape
    n_groups = typeof(starts).shape[-1]
    full = (n_groups, *shape)
    if typeof(starts).ndim > 1:
        dims = (*[a + 1 for a in prefix], 0)
    else:
        dims = (0,)
    at = broadcasted_iota(typeof(starts).dtype, full, axes.ragged + 1)
    inside = bitwise_and(
        ge(at, broadcast_in_dim(starts, full, dims)), lt(at, broadcast_in_dim(ends, full, dims))
    )
    copies = broadcast_in_dim(x, full, tuple(range(1, len(full))))
    zero = broadcast_in_dim(_zero(typeof(x).dtype), full, ())
    masked = select_n(inside, zero, copies)
    xc, xb = ([a + 1 for a in part] for part in (axes.xc, axes.xb))
    if axes.mode == "keep":
        numbers = (([*xc, 0], [*axes.yc, axes.group[0]]), (xb, axes.yb))
        return dot_general(masked, y, numbers, **params)
    out = dot_general(masked, y, ((xc, axes.yc), (xb, axes.yb)), **params)
    n = len(xb)
    return transpose(out, (n, *range(n), *range(n + 1, typeof(out).ndim)))


def by_tiles(
    x: ArrayLike, y: ArrayLike, limits: tuple[Any, ...], axes: Any, params: dict[Any, Any]
) -> Any:
    """Ragged product as a loop over tiles of rows, each within one group."""
    rows, n_groups = typeof(x).shape[axes.ragged], typeof(limits[0]).shape[0]
    small, large = _TILES
    size = large if rows >= 2 * large * n_groups else small
    compute = _kept if axes.mode == "keep" else _summed
    return compute(x, y, limits, axes, size if size < rows else rows, params)


def _tile_loop(limits: tuple, m: int, tile: int, body: Any, init: Any, finish: Any = None) -> Any:
    """Loop over the tiles of all groups: ``acc = body(group, first, start, end, acc)``.

    ``first`` is the start of the slice of ``tile`` rows. Its rows from ``start`` to ``end`` belong
    to the group.
    """
    starts, ends = limits
    index = typeof(starts).dtype
    one, n_groups = np.ones((), index)[()], typeof(starts).shape[0]
    size, last = np.asarray(tile, index)[()], np.asarray(m - tile, index)[()]

    def more(state):
        return lt(state[0], np.asarray(n_groups, index)[()])

    def group(state):
        g, acc = state
        start = max(dynamic_index_in_dim(starts, g, 0, False), _zero(index))
        end = min(dynamic_index_in_dim(ends, g, 0, False), np.asarray(m, index)[()])

        def step(inner):
            at, acc = inner
            first = max(min(at, last), _zero(index))
            return add(at, size), body(g, first, at, end, acc)

        _, acc = while_loop(lambda inner: lt(inner[0], end), step, (start, acc))
        return add(g, one), acc

    return while_loop(more, group, (_zero(index), init))[1]


def _kept(x, y, limits, axes, tile: int, params: dict) -> Any:
    """Product of each group of rows with the group's matrix."""
    # As matrices: rows first, contracting axes last.
    xf, xc = axes.xf, axes.xc
    others = tuple(a for a in xf if a != axes.ragged)
    x_shape, y_shape = typeof(x).shape, typeof(y).shape
    rows, free = x_shape[axes.ragged], [x_shape[a] for a in others]
    k = math.prod([x_shape[a] for a in xc])
    left = reshape(transpose(x, (axes.ragged, *others, *xc)), (rows, math.prod(free), k))
    y_free = [y_shape[a] for a in axes.yf]
    right = transpose(y, (axes.group[0], *axes.yc, *axes.yf))
    right = reshape(right, (y_shape[axes.group[0]], k, math.prod(y_free)))
    numbers = (((2,), (0,)), ((), ()))
    probe = _product_type(left, right, params)
    out_shape = (rows, math.prod(free), math.prod(y_free))
    init = broadcast_in_dim(_zero(probe), out_shape, ())

    def body(g, first, start, end, out):
        part = dynamic_slice_in_dim(left, first, tile, 0)
        matrix = dynamic_index_in_dim(right, g, 0, False)
        new = dot_general(part, matrix, numbers, **params)
        old = dynamic_slice_in_dim(out, first, tile, 0)
        at = add(broadcasted_iota(typeof(first).dtype, typeof(new).shape, 0), first)
        meant = bitwise_and(ge(at, start), lt(at, end))
        zero = _zero(typeof(first).dtype)
        return dynamic_update_slice(out, select_n(meant, old, new), (first, zero, zero))

    out = _tile_loop(limits, rows, tile, body, init)
    out = reshape(out, (rows, *free, *y_free))
    free_axes = [axes.ragged, *others]
    order = [free_axes.index(a) for a in xf]
    return transpose(out, (*order, *range(len(free_axes), len(free_axes) + len(y_free))))


def _summed(x, y, limits, axes, tile: int, params: dict) -> Any:
    """For each group, the sum of products over its rows."""
    i = axes.xc.index(axes.ragged)
    x_more, y_more = ([a for j, a in enumerate(part) if j != i] for part in (axes.xc, axes.yc))
    x_shape, y_shape = typeof(x).shape, typeof(y).shape
    rows, more = x_shape[axes.ragged], math.prod([x_shape[a] for a in x_more])
    x_free, y_free = [x_shape[a] for a in axes.xf], [y_shape[a] for a in axes.yf]
    left = transpose(x, (axes.ragged, *x_more, *axes.xf))
    left = reshape(left, (rows, more, math.prod(x_free)))
    right = transpose(y, (axes.yc[i], *y_more, *axes.yf))
    right = reshape(right, (rows, more, math.prod(y_free)))
    numbers = (((0, 1), (0, 1)), ((), ()))
    dtype = _product_type(left, right, params)
    n_groups = typeof(limits[0]).shape[0]
    shape = (n_groups, math.prod(x_free), math.prod(y_free))
    accumulator_dtype = (
        np.dtype(np.float32) if dtypes.itemsize_bits(dtype) < 32 and _is_float(dtype) else dtype
    )
    init = broadcast_in_dim(_zero(accumulator_dtype), shape, ())

    def body(g, first, start, end, out):
        part = dynamic_slice_in_dim(left, first, tile, 0)
        at = add(broadcasted_iota(typeof(first).dtype, typeof(part).shape, 0), first)
        meant = bitwise_and(ge(at, start), lt(at, end))
        zeros = broadcast_in_dim(_zero(typeof(part).dtype), typeof(part).shape, ())
        part = select_n(meant, zeros, part)
        other = dynamic_slice_in_dim(right, first, tile, 0)
        new = dot_general(part, other, numbers, **params)
        zero = _zero(typeof(first).dtype)
        start_indices = (g, zero, zero)
        old = dynamic_slice(out, start_indices, (1, *shape[1:]))
        new = reshape(convert_element_type(new, accumulator_dtype), (1, *shape[1:]))
        return dynamic_update_slice(out, add(old, new), start_indices)

    out = _tile_loop(limits, rows, tile, body, init)
    return reshape(convert_element_type(out, dtype), (n_groups, *x_free, *y_free))


def _product_type(x: Any, y: Any, params: dict) -> Any:
    return params["preferred_element_type"] or typeof(x).dtype


def _is_float(dtype: Any) -> bool:
    return dtypes.issubdtype(dtype, np.floating)
