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
    sizes = iter(index[len(mapping.extents) :])
    starts: list[Value] = []
    ends: list[Value | None] = []
    places: list[Value | None] = []
    for i, extent, n in zip(index, mapping.extents, mapping.aval.shape):
        low, high = extent.padding
        places.append(e.clamp(as_int32(e, i), 0, n - 1) if extent.indirect else None)
        if extent.indirect:
            starts.append(e.index(0))
            ends.append(None)
            continue
        if extent.step == extent.size:
            last = (-(-n // extent.size) - 1) * extent.size
        else:
            last = low + n + max(high, extent.size) - extent.size
        start = e.clamp(e.multiply(as_int32(e, i), e.index(extent.step)), 0, last)
        starts.append(e.subtract(start, e.index(low)))
        size = e.clamp(as_int32(e, next(sizes)), 0, extent.size) if extent.bounded else None
        ends.append(None if size is None else e.add(start, size))
    return MemoryRef(
        e, pointer, mapping.aval.dtype, mapping.aval.shape, starts, mapping.extents, separated,
        ends, places,
    )  # fmt: skip


def pointer_argument(j: int, element: str) -> str:
    """A parameter of the function; XLA's buffers are aligned."""
    return f"%p{j}: !tt.ptr<{element}> {{tt.divisibility = 16 : i32}}"
