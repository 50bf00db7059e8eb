"""Products of groups of rows with a matrix each."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec, PrefetchScalarGridSpec
from .._call import pallas_call
from .._control import when
from .._grid import num_programs, program_id
from .._helpers import cdiv
from .._typing import ArrayLike, DTypeLike, PrecisionLike
from ..tpu import VMEM
from ._backward_kernels import with_backward
from ._blocks import group_rows, matmul_block
from ._common import (
    SIGNED_INTEGERS,
    accumulator,
    block_size,
    cast,
    filled,
    inside,
    operand,
    product,
    same_dtype,
)

_NAME = "grouped_matmul"


class _Config(NamedTuple):
    block: tuple[int, ...]
    out_dtype: Any
    precision: Any


def grouped_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    *,
    block: tuple[int | None, int | None, int | None] | None = None,
    out_dtype: DTypeLike | None = None,
    precision: PrecisionLike | None = None,
) -> Any:
    """Products of consecutive groups of rows with one matrix for each group.

    For mixtures of experts: the same as ``lax.ragged_dot``. Rows are copied into tiles that belong
    to one group each (Gale et al., 2022), so that the work does not grow with the number of groups.

    Args:
      lhs: rows of shape ``(m, k)``, floats.
      rhs: matrices of shape ``(groups, k, n)``, of the same dtype.
      group_sizes: number of rows of each group, integers of shape ``(groups,)`` with a sum of at
        most ``m``; other numbers give undefined results.
      block: rows of a tile, summed elements and columns of a step; ``None`` stands for a default of
        the platform.
      out_dtype: dtype of the result, by default that of ``lhs``.
      precision: precision of the products, as of ``lax.dot_general``.

    Returns:
      Array of shape ``(m, n)``. Rows that belong to no group are 0.

    Raises:
      TypeError: for other dtypes, or two different ones.
      ValueError: for shapes that do not match.

    The reverse derivative is two kernels. Forward mode runs operations on arrays.

    >>> import numpy as np
    >>> rows = np.ones((3, 1), np.float32)
    >>> matrices = np.array([10, 20], np.float32).reshape(2, 1, 1)
    >>> np.asarray(grouped_matmul(rows, matrices, np.array([1, 2], np.int32))).ravel()
    array([10., 20., 20.], dtype=float32)
    """
    x, y = operand(_NAME, "lhs", lhs, rank=2), operand(_NAME, "rhs", rhs, rank=3)
    same_dtype(_NAME, lhs=x, rhs=y)
    sizes = operand(_NAME, "group_sizes", group_sizes, rank=1, kinds=SIGNED_INTEGERS)
    (m, k), (groups, k_rhs, n) = x.shape, y.shape
    if k != k_rhs:
        raise ValueError(
            f"{_NAME}: rhs has the shape (groups, k, n) with k = {k}, the last axis of lhs, got "
            f"{y.shape}"
        )
    if sizes.shape != (groups,):
        raise ValueError(
            f"{_NAME}: group_sizes has an entry for each of {groups} groups, got {sizes.shape}"
        )
    block = (None, None, None) if block is None else block
    if not isinstance(block, (tuple, list)) or len(block) != 3:
        raise ValueError(f"{_NAME}: block is (rows, summed elements, columns), got {block!r}")
    _, bk, bn = matmul_block(m, k, n, x.dtype.itemsize * 8)
    default = group_rows(m, groups), bk, bn
    chosen = tuple(
        block_size(_NAME, f"block[{i}]", block[i], default[i], size)
        for i, size in enumerate((m, k, n))
    )
    dtype = np.dtype(x.dtype if out_dtype is None else out_dtype)
    config = _Config((chosen[0], chosen[1], chosen[2]), dtype, precision)
    return _grouped(config, lhs, rhs, group_sizes)


@functools.partial(jit, static_argnums=0)
def _grouped(config: _Config, lhs: Any, rhs: Any, group_sizes: Any) -> Any:
    if 0 in (*lhs.shape, *rhs.shape):
        return filled((lhs.shape[0], rhs.shape[2]), 0, config.out_dtype)
    return _products(config, lhs, rhs, cast(group_sizes, np.dtype(np.int32)))


class _Tiles(NamedTuple):
    """Tiles of rows, each of one group.

    Attributes:
      group: group of each tile.
      rows: row of each row of the tiles, that number of rows where there is none.
      places: row of the tiles of each row.
      belongs: rows that belong to a group.
    """

    group: Any
    rows: Any
    places: Any
    belongs: Any


def _tiles(sizes: Any, m: int, size: int) -> _Tiles:
    """Tiles for groups of rows. Each group has at least one, so that each result is written."""
    groups = sizes.shape[0]
    n = m // size + groups
    ends = lax.cumsum(sizes)
    starts = ends - sizes
    counts = lax.max((sizes + np.int32(size - 1)) // np.int32(size), filled((groups,), 1, np.int32))
    tile_ends = lax.cumsum(counts)
    tile_starts = tile_ends - counts
    group = _number_of(tile_ends, n, groups - 1)
    first = _taken(tile_starts, group)
    within = (lax.iota(np.int32, n) - first) * np.int32(size)
    begin = lax.broadcast_in_dim(_taken(starts, group) + within, (n, size), (0,))
    left = lax.broadcast_in_dim(_taken(sizes, group) - within, (n, size), (0,))
    offset = lax.broadcasted_iota(np.int32, (n, size), 1)
    rows = lax.select(offset < left, begin + offset, filled((n, size), m, np.int32))
    own = _number_of(ends, m, groups - 1)
    place = lax.iota(np.int32, m) - _taken(starts, own) + _taken(tile_starts, own) * np.int32(size)
    last = lax.index_in_dim(ends, groups - 1, 0, keepdims=False)
    return _Tiles(group, lax.reshape(rows, (n * size,)), place, lax.iota(np.int32, m) < last)


def _number_of(ends: Any, n: int, last: int) -> Any:
    """For each of the numbers below ``n`` how many ends are not above it, at most ``last``."""
    shape = n, ends.shape[0]
    above = lax.broadcast_in_dim(ends, shape, (1,)) <= lax.broadcasted_iota(np.int32, shape, 0)
    count = lax.reduce_sum(cast(above, np.dtype(np.int32)), (1,))
    return lax.min(count, filled((n,), last, np.int32))


def _taken(x: Any, index: Any) -> Any:
    """Elements or rows at some positions; 0 beyond the array."""
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, x.ndim)), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    return lax.gather(
        x, lax.expand_dims(index, (1,)), numbers, (1, *x.shape[1:]), mode="fill", fill_value=0
    )


def _back(config: _Config, rows: Any, tiles: _Tiles) -> Any:
    """The rows of tiles in the order of the operand, 0 for those of no group."""
    index = lax.select(
        tiles.belongs, tiles.places, filled(tiles.places.shape, rows.shape[0], np.int32)
    )
    return _taken(rows, index)


def _products_of_arrays(config: _Config, lhs: Any, rhs: Any, sizes: Any) -> Any:
    tiles = _tiles(sizes, lhs.shape[0], config.block[0])
    rows = _of_tiles(config, _taken(lhs, tiles.rows), rhs, tiles.group, False)
    return _back(config, rows, tiles)


def _of_tiles(config: _Config, lhs: Any, rhs: Any, group: Any, flip: bool) -> Any:
    """Products of tiles with the matrices of their groups, transposed if ``flip``."""
    tile, bk, bn = config.block
    bk, bn = (bn, bk) if flip else (bk, bn)
    k, n = lhs.shape[1], rhs.shape[1 if flip else 2]
    bk, bn = min(bk, k), min(bn, n)
    wide, steps = accumulator(typeof(lhs).dtype), cdiv(k, bk)

    def kernel(group: Any, lhs_ref: Any, rhs_ref: Any, out: Any, *scratch: Any) -> None:
        j, step = program_id(1), program_id(2)
        x = inside(lhs_ref[...], (1, step, k))
        limits = ((1, step, k), (0, j, n)) if flip else ((0, step, k), (1, j, n))
        terms = product(
            x, inside(rhs_ref[...], *limits), (1, 1 if flip else 0), wide, config.precision
        )
        if steps == 1:
            out[...] = cast(terms, out.dtype)
            return
        (sums,) = scratch

        @when(step == 0)
        def _start() -> None:
            sums[...] = filled(sums.shape, 0, wide)

        sums[...] += terms

        @when(step == num_programs(2) - 1)
        def _end() -> None:
            out[...] = cast(sums[...], out.dtype)

    matrices = (
        BlockSpec((None, bn, bk), lambda t, j, s, group: (group[t], j, s))
        if flip
        else BlockSpec((None, bk, bn), lambda t, j, s, group: (group[t], s, j))
    )
    return pallas_call(
        kernel, ShapeDtypeStruct((lhs.shape[0], n), config.out_dtype), name=_NAME,
        grid_spec=PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(group.shape[0], cdiv(n, bn), steps),
            in_specs=[BlockSpec((tile, bk), lambda t, j, s, group: (t, s)), matrices],
            out_specs=BlockSpec((tile, bn), lambda t, j, s, group: (t, j)),
            scratch_shapes=[VMEM((tile, bn), wide)] if steps > 1 else [],
        ),
    )(group, lhs, rhs)  # fmt: skip


def _sums_of_groups(config: _Config, lhs: Any, ct: Any, group: Any, shape: Any, dtype: Any) -> Any:
    """For each group the sum over its tiles of ``lhsᵀ ct``."""
    tile, bk, bn = config.block
    _, k, n = shape
    wide = accumulator(typeof(lhs).dtype)
    tiles = group.shape[0]

    def kernel(group: Any, lhs_ref: Any, ct_ref: Any, out: Any, sums: Any) -> None:
        i, j, t = program_id(0), program_id(1), program_id(2)
        own = group[t]
        before = group[lax.max(t - 1, np.int32(0))]
        after = group[lax.min(t + 1, np.int32(tiles - 1))]

        @when(lax.bitwise_or(t == 0, own != before))
        def _start() -> None:
            sums[...] = filled(sums.shape, 0, wide)

        x, y = inside(lhs_ref[...], (1, i, k)), inside(ct_ref[...], (1, j, n))
        sums[...] += product(x, y, (0, 0), wide, config.precision)

        @when(lax.bitwise_or(t == tiles - 1, own != after))
        def _end() -> None:
            out[...] = cast(sums[...], dtype)

    return pallas_call(
        kernel, ShapeDtypeStruct(shape, dtype), name=f"{_NAME}_groups",
        grid_spec=PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(cdiv(k, bk), cdiv(n, bn), tiles),
            in_specs=[
                BlockSpec((tile, bk), lambda i, j, t, group: (t, i)),
                BlockSpec((tile, bn), lambda i, j, t, group: (t, j)),
            ],
            out_specs=BlockSpec((None, bk, bn), lambda i, j, t, group: (group[t], i, j)),
            scratch_shapes=[VMEM((bk, bn), wide)],
        ),
    )(group, lhs, ct)  # fmt: skip


def _forward(config: _Config, lhs: Any, rhs: Any, sizes: Any) -> tuple[Any, Any]:
    return _products(config, lhs, rhs, sizes), (lhs, rhs, sizes)


def _backward(config: _Config, residuals: Any, ct: Any) -> tuple[Any, Any, None]:
    lhs, rhs, sizes = residuals
    tiles = _tiles(sizes, lhs.shape[0], config.block[0])
    ct = _taken(cast(ct, typeof(lhs).dtype), tiles.rows)
    own = config._replace(out_dtype=typeof(lhs).dtype)
    dlhs = _back(own, _of_tiles(own, ct, rhs, tiles.group, True), tiles)
    rows = _taken(lhs, tiles.rows)
    drhs = _sums_of_groups(own, rows, ct, tiles.group, rhs.shape, typeof(rhs).dtype)
    return dlhs, drhs, None


_products = with_backward(_products_of_arrays, _forward, _backward)
