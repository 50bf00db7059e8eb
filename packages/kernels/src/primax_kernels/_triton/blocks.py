"""Starts of the blocks of a kernel's operands."""

from __future__ import annotations

from collections.abc import Sequence

from .._block_mapping import BlockMapping
from .emitter import Emitter
from .memory import MemoryRef, as_int32
from .registry import lower_jaxpr
from .values import Value


def block_at(
    e: Emitter, mapping: BlockMapping, pointer: str, ids: Sequence[Value],
    prefetched: Sequence[MemoryRef], separated: bool = False,
) -> MemoryRef:  # fmt: skip
    """The block of a step.

    A block that would leave the array, with its padding, is moved into it.

    Args:
      ids: the indices of the grid.
      prefetched: references to the prefetched scalars.
    """
    index = lower_jaxpr(e, mapping.index_map, [*ids, *prefetched])
    starts = []
    for i, extent, n in zip(index, mapping.extents, mapping.aval.shape):
        low, high = extent.padding
        if extent.step == extent.size:
            last = (-(-n // extent.size) - 1) * extent.size
        else:
            last = low + n + max(high, extent.size) - extent.size
        start = e.clamp(e.multiply(as_int32(e, i), e.index(extent.step)), 0, last)
        starts.append(e.subtract(start, e.index(low)))
    return MemoryRef(
        e, pointer, mapping.aval.dtype, mapping.aval.shape, starts, mapping.extents, separated
    )


def is_covered(mapping: BlockMapping, grid: Sequence[int]) -> bool:
    """Return True if the blocks of all steps are the whole array."""
    for form, extent, n in zip(mapping.forms, mapping.extents, mapping.aval.shape):
        if form is None or any(extent.padding):
            return False
        if extent.size >= n and form.is_constant and form.constant == 0:
            continue
        d = form.dimension
        if d is None or extent.step != extent.size or -(-n // extent.size) > grid[d]:
            return False
    return True


def same_blocks(x: BlockMapping, y: BlockMapping) -> bool:
    """Return True if two operands have the same blocks in each step."""
    return x.extents == y.extents and None not in x.forms and x.forms == y.forms


def depends_on(mapping: BlockMapping, dimensions: Sequence[int]) -> bool:
    """Return True if the block may move with some dimensions of the grid."""
    return any(f is None or any(f.coefficients[d] for d in dimensions) for f in mapping.forms)


def pointer_argument(j: int, element: str) -> str:
    """A parameter of the function; XLA's buffers are aligned."""
    return f"%p{j}: !tt.ptr<{element}> {{tt.divisibility = 16 : i32}}"
