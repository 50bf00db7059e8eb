"""Operands of a kernel as arrays from which each step takes its block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import typeof
from primax_core.extend.dimensions import is_static, max_dim, min_dim
from primax_core.extend.references import parse_index, read_at, write_at

from .._block_mapping import BlockMapping, Extent
from .._memory_spaces import unwritten_value
from .facts import axis_of, count


class Layout(NamedTuple):
    """Axes of an array, from which the parallel dimensions of a grid are split off.

    Attributes:
      mapping: the blocks of the operand.
      split: for each axis, the parallel dimension with which its block moves alone, or ``None``.
      outside: elements added before and after each axis, so that no block leaves the array.
    """

    mapping: BlockMapping
    split: tuple[int | None, ...]
    outside: tuple[tuple[int, int], ...]

    @property
    def column_shape(self) -> tuple[int, ...]:
        """Shape of the part that all steps of one column take their blocks from."""
        return tuple(
            e.size if d is not None else lo + n + hi
            for n, e, d, (lo, hi) in zip(
                self.mapping.aval.shape, self.mapping.extents, self.split, self.outside
            )
        )


def layout_of(mapping: BlockMapping, grid: Sequence[int], parallel: Sequence[bool]) -> Layout:
    """The layout of an operand."""
    split: list[int | None] = [None] * len(mapping.extents)
    for d, is_parallel in enumerate(parallel):
        axis = axis_of(mapping, d, grid) if is_parallel else None
        if axis is not None:
            split[axis] = d
    outside = tuple(
        _outside(n, e, mapping, axis, grid) if split[axis] is None else _partial(n, e)
        for axis, (n, e) in enumerate(zip(mapping.aval.shape, mapping.extents))
    )
    return Layout(mapping, tuple(split), outside)


def _partial(n: int, extent: Extent) -> tuple[int, int]:
    return 0, count(n, extent) * extent.size - n


def _outside(
    n: int, extent: Extent, mapping: BlockMapping, axis: int, grid: Sequence[int]
) -> tuple[int, int]:
    if extent.indirect:
        return 0, 0
    if extent.step == extent.size and extent.is_plain:
        return _partial(n, extent)
    # Windows may begin anywhere: after the last element, unless the index map excludes it.
    lo, hi = extent.padding
    form = mapping.forms[axis]
    first, last = (None, n - 1) if form is None else form.bounds(grid)
    last = n - 1 if first is None or first < 0 else last - lo  # negative ones count from the end
    return lo, max_dim(hi, min_dim(last, n - 1) + extent.size - n)


def _is_inside(layout: Layout) -> bool:
    """Return True if no block leaves the array; False if that depends on symbolic sizes."""
    return all(is_static(part) and not any(part) for part in layout.outside)


def padded(x: Any, layout: Layout) -> Any:
    """An operand with the elements outside of it that blocks may reach: see `unwritten_value`."""
    if _is_inside(layout):
        return x
    dtype = typeof(x).dtype
    config = [(lo, hi, 0) for lo, hi in layout.outside]
    return lax.pad(x, lax.full((), unwritten_value(dtype), dtype), config)


def unwritten(shape: Sequence[int], dtype: Any) -> Any:
    """Contents of memory before the first write: see `unwritten_value`."""
    return lax.full(tuple(shape), unwritten_value(dtype), dtype)


def cut(x: Any, layout: Layout) -> Any:
    """A result without the elements outside of it."""
    if _is_inside(layout):
        return x
    starts = [lo for lo, _ in layout.outside]
    limits = [lo + n for (lo, _), n in zip(layout.outside, layout.mapping.aval.shape)]
    return lax.slice(x, starts, limits)


def starts_of(layout: Layout, index: Sequence[Any]) -> list[Any]:
    """The position of the block with an index in the part of a column.

    Indirect axes have an array of positions. Numbers of elements along bounded axes follow.
    """
    starts: list[Any] = []
    for i, e, d in zip(index, layout.mapping.extents, layout.split):
        if d is not None:
            starts.append(np.int32(0))
        elif isinstance(i, np.generic):
            starts.append(np.int32(int(i) * e.step))
        else:
            starts.append(lax.mul(i, np.int32(e.step)) if e.step != 1 else i)
    return [*starts, *index[len(starts) :]]


def read_block(x: Any, layout: Layout, starts: Sequence[Any]) -> Any:
    """A block, without the squeezed axes."""
    extents = layout.mapping.extents
    sizes = [e.size for e in extents]
    if not layout.mapping.is_plain:
        x = _read_part(x, layout, starts)
    elif x.shape != tuple(sizes):
        x = lax.dynamic_slice(x, starts, sizes)
    squeezed = [axis for axis, e in enumerate(extents) if e.squeezed]
    return lax.squeeze(x, squeezed) if squeezed else x


def write_block(x: Any, layout: Layout, starts: Sequence[Any], block: Any) -> Any:
    """The array with a block replaced."""
    extents = layout.mapping.extents
    sizes = tuple(e.size for e in extents)
    block = lax.reshape(block, sizes) if block.shape != sizes else block
    if not layout.mapping.is_plain:
        return _write_part(x, layout, starts, block)
    return block if x.shape == sizes else lax.dynamic_update_slice(x, block, starts)


# Bounded slices, and positions


def _window(x: Any, layout: Layout, starts: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Starts and sizes of the window that has a block, which is whole along an indirect axis."""
    rows = list(zip(starts, layout.mapping.extents, x.shape))
    return (
        [np.int32(0) if e.indirect else start for start, e, _ in rows],
        [n if e.indirect else e.size for _, e, n in rows],
    )


def _part_of(shape: Sequence[int], layout: Layout, starts: Sequence[Any]) -> tuple[Any, Any]:
    """The indirect axis's index, and the mask of the elements in bounded slices, or ``None``."""
    extents = layout.mapping.extents
    sizes = iter(starts[len(extents) :])
    index, mask = None, None
    for axis, e in enumerate(extents):
        if e.indirect:
            last = np.int32(max(shape[axis] - 1, 0))
            inside = lax.clamp(np.int32(0), starts[axis], last)
            index = [slice(None)] * axis, inside
        elif e.bounded:
            position = lax.broadcasted_iota(np.int32, tuple(e.size for e in extents), axis)
            here = lax.lt(position, lax.broadcast(next(sizes), position.shape))
            mask = here if mask is None else lax.bitwise_and(mask, here)
    return index and (*index[0], index[1]), mask


def _read_part(x: Any, layout: Layout, starts: Sequence[Any]) -> Any:
    x = lax.dynamic_slice(x, *_window(x, layout, starts))
    index, mask = _part_of(x.shape, layout, starts)
    if index is not None:
        x = read_at(x, *parse_index(x.shape, index))
    return x if mask is None else lax.select(mask, x, unwritten(x.shape, x.dtype))


def _write_part(x: Any, layout: Layout, starts: Sequence[Any], block: Any) -> Any:
    begin, sizes = _window(x, layout, starts)
    window = lax.dynamic_slice(x, begin, sizes)
    index, mask = _part_of(window.shape, layout, starts)
    former = window if index is None else read_at(window, *parse_index(window.shape, index))
    block = block if mask is None else lax.select(mask, block, former)
    if index is not None:
        block = write_at(window, *parse_index(window.shape, index), block)
    return lax.dynamic_update_slice(x, block, begin)
