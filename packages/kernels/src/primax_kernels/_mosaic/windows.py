"""Blocks of operands and results as windows, which Mosaic copies before and after each step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core.extend import dce_jaxpr, stage

from .._block_mapping import INDEX, BlockMapping
from .._block_specs import RevisitMode
from .._cpu.folding import eval_folded
from .._kernel import Kernel
from .emitter import Emitter
from .errors import located
from .memory import Reference
from .registry import lower_jaxpr
from .shape_rules import as_index
from .types import INT32, array_attribute, tile
from .values import Value

_COMPUTED: Final = -(1 << 63)
"""The size of a dimension that the call passes as an operand, as MLIR writes it."""

_MAX_STEPS: Final = 1 << 14
"""The most steps whose blocks are compared one by one."""


def space_of(kernel: Kernel, mapping: BlockMapping) -> str:
    """The memory of an operand's blocks: ``vmem``, ``smem``, ``any`` or ``hbm``.

    Raises:
      MosaicError: for another memory.
    """
    if not mapping.aval.shape:
        return "smem"
    name = str(getattr(mapping.memory_space, "value", mapping.memory_space))
    if mapping.memory_space is None or name == "default":
        return "vmem"
    if name not in ("vmem", "smem", "any", "hbm"):
        raise located(
            f"{mapping.name} has the memory space {mapping.memory_space}; blocks are in VMEM or "
            "SMEM, whole arrays in ANY or HBM",
            kernel,
        )
    return name


def is_window(space: str) -> bool:
    """Return True if blocks are copied to the memory of the core."""
    return space in ("vmem", "smem")


def window_shape(mapping: BlockMapping) -> tuple[int, ...]:
    """Sizes of a block, squeezed axes included."""
    return tuple(e.size for e in mapping.extents) or (1,)


def reference_of(mapping: BlockMapping, name: str, space: str) -> Reference:
    """The reference to the block of a step, or to the whole array."""
    if not mapping.aval.shape:
        return Reference(name, mapping.aval.dtype, (1,), space, (True,))
    if not is_window(space):
        return Reference(name, mapping.aval.dtype, mapping.aval.shape, space)
    squeezed = [e.squeezed for e in mapping.extents]
    return Reference(name, mapping.aval.dtype, window_shape(mapping), space, squeezed)


def has_elements(mapping: BlockMapping) -> bool:
    """Return True if blocks begin at any element along some axis."""
    return any(e.step != e.size or any(e.padding) for e in mapping.extents)


def window_attribute(mapping: BlockMapping, space: str, transform: str) -> str:
    """The parameters of a window; empty for arrays that are not copied."""
    if not is_window(space):
        return "{}"
    bounds = array_attribute(window_shape(mapping))
    kind = ""
    if has_elements(mapping):
        low = [e.padding[0] for e in mapping.extents]
        high = [e.padding[1] for e in mapping.extents]
        kind = f", window_kind = #tpu.element_window<{low}, {high}>"
    mode = ""
    if mapping.buffers is not None:
        word = "synchronous" if mapping.buffers.buffer_count == 1 else "double_buffered"
        mode = f"pipeline_mode = #tpu.pipeline_mode<{word}>, "
        if mapping.buffers.revisit is not None:
            mode += f"revisit_mode = #tpu.revisit_mode<{mapping.buffers.revisit.value}>, "
    return f"{{{mode}transform_indices = @{transform}, window_bounds = {bounds}{kind}}}"


def buffer_count(mapping: BlockMapping) -> int:
    """The number of buffers of a block."""
    return 2 if mapping.buffers is None else mapping.buffers.buffer_count


def reason_of_buffers(mapping: BlockMapping) -> str | None:
    """The reason for which a `Buffered` cannot be, or ``None``."""
    buffers = mapping.buffers
    if buffers is None:
        return None
    if buffers.buffer_count > 2:
        return (
            f"{mapping.name} has buffer_count={buffers.buffer_count}; a block of a kernel has one "
            "buffer or two: use tpu.emit_pipeline_with_allocations for more"
        )
    if buffers.use_lookahead or buffers.prefetched_count:
        return (
            f"{mapping.name} has {buffers}; blocks of a kernel are fetched one step before: leave "
            "use_lookahead and prefetched_count away"
        )
    if buffers.revisit is RevisitMode.ANY and buffers.buffer_count == 2:
        return (
            f"{mapping.name} has RevisitMode.ANY and two buffers; blocks that steps share at any "
            "time have one: use Buffered(1, revisit=RevisitMode.ANY)"
        )
    return None


def transform_function(
    kernel: Kernel, mapping: BlockMapping, name: str, prefetched: Sequence[Reference]
) -> str:
    """The function from the grid's indices to the index of a block."""
    e = Emitter(kernel)
    ids = grid_indices(kernel)
    index = block_index(e, kernel, mapping, ids, prefetched)
    if not index:
        index = [e.index(0)]
    arguments = ", ".join([f"{i.name}: i32" for i in grid_arguments(kernel)]
                          + [f"{r.name}: {r.type}" for r in prefetched])  # fmt: skip
    results = ", ".join("i32" for _ in index)
    body = "\n".join(e.lines)
    names = ", ".join(i.name for i in index)
    head = f"func.func @{name}({arguments}) -> ({results}) {{"
    return f"{head}\n{body}\n  return {names} : {results}\n}}\n"


def grid_indices(kernel: Kernel) -> list[Value]:
    """The indices of the grid."""
    return [
        Value(f"%i{d}", INT32, (), (0, max(n - 1, 0))) for d, n in enumerate(kernel.grid)
    ]  # fmt: skip


def least_grid(kernel: Kernel) -> tuple[int, ...]:
    """The grid with the steps that there are at least: computed sizes may be 0."""
    return tuple(0 if d in kernel.dynamic else n for d, n in enumerate(kernel.grid))


def bounds_of(kernel: Kernel) -> tuple[int, ...]:
    """The grid in the text, at least one dimension."""
    bounds = [_COMPUTED if d in kernel.dynamic else n for d, n in enumerate(kernel.grid)]
    return tuple(bounds) or (1,)


def grid_arguments(kernel: Kernel) -> list[Value]:
    """The arguments of functions: the indices of the grid, at least one."""
    return grid_indices(kernel) or [Value("%i0", INT32, (), (0, 0))]


def block_index(
    e: Emitter, kernel: Kernel, mapping: BlockMapping, ids: Sequence[Value],
    prefetched: Sequence[Any],
) -> list[Value]:  # fmt: skip
    """The index of a block, moved into the array.

    Raises:
      MosaicError: if a block may begin between the tiles of an array.
    """
    index = [as_index(e, x) for x in lower_jaxpr(e, mapping.index_map, [*ids, *prefetched])]
    elements = has_elements(mapping)
    tiles = tile(len(mapping.extents), mapping.aval.dtype)
    results = []
    for axis, (i, extent, n) in enumerate(zip(index, mapping.extents, mapping.aval.shape)):
        low, high = extent.padding
        if extent.step == extent.size:
            i = e.clamp(i, 0, max(-(-n // max(extent.size, 1)) - 1, 0))
            i = e.multiply(i, e.index(extent.size)) if elements else i
        else:
            i = e.clamp(i, 0, max(low + n + max(high, extent.size) - extent.size, 0))
        if elements and extent.size != n and not i.divisible(tiles[axis]):
            raise located(
                f"{mapping.name}: blocks begin at elements that are not known to be multiples of "
                f"{tiles[axis]} along axis {axis}: use multiples, as lambda i: i * {tiles[axis]}, "
                "or blocks of the whole axis",
                kernel,
            )
        results.append(i)
    return results


# Results


def still_dimensions(kernel: Kernel, mapping: BlockMapping) -> list[int]:
    """Dimensions of the grid after the last one with which a block moves."""
    rank = len(kernel.grid)
    if None in mapping.forms:
        return []
    moving = [
        d for d in range(rank)
        if kernel.grid[d] > 1 and any(f.coefficients[d] for f in mapping.forms if f)
    ]  # fmt: skip
    return list(range(max(moving, default=-1) + 1, rank))


def needs_contents(kernel: Kernel, o: int) -> bool:
    """Return True if a step that comes to a block of a result first uses or keeps its contents."""
    still = still_dimensions(kernel, kernel.outputs[o])
    rank = len(kernel.grid)
    free = rank - len(still)
    jaxpr = kernel.discharged
    avals = [v.aval for v in jaxpr.invars]

    def first(*args: Any) -> list[Any]:
        indices = [*args[:free], *[np.int32(0)] * len(still)]
        return eval_folded(jaxpr, [*indices, *args[free:]])

    program = stage(first, [INDEX] * free + avals[rank:])
    _, used = dce_jaxpr(program, [True] * len(program.outvars))
    return list(used)[free + len(kernel.prefetched) + len(kernel.inputs) + o]


def visits_are_runs(kernel: Kernel, mapping: BlockMapping) -> bool:
    """Return True if the steps that share a block follow each other, as far as it is known."""
    if kernel.prefetched and None in mapping.forms:
        return True
    if math.prod(kernel.grid) > _MAX_STEPS:
        moving = len(kernel.grid) - len(still_dimensions(kernel, mapping))
        apart = {f.dimension for f in mapping.forms if f is not None and not f.is_constant}
        apart |= {d for d in range(moving) if kernel.grid[d] == 1}
        return None not in mapping.forms and set(range(moving)) <= apart
    seen: set[tuple[int, ...]] = set()
    previous: tuple[int, ...] | None = None
    for ids in itertools.product(*map(range, kernel.grid)):
        block = _index_at(mapping, ids)
        if block != previous and block in seen:
            return False
        seen.add(block)
        previous = block
    return True


def _index_at(mapping: BlockMapping, ids: Sequence[int]) -> tuple[int, ...]:
    """A value that tells the blocks of an operand apart, in a step."""
    if None in mapping.forms:
        return tuple(mapping.starts(ids, []))
    return tuple(
        f.constant + sum(c * i for c, i in zip(f.coefficients, ids)) for f in mapping.forms if f
    )


def is_first_visit(
    e: Emitter, kernel: Kernel, mapping: BlockMapping, ids: Sequence[Value],
    sizes: Sequence[Value], prefetched: Sequence[Any],
) -> Value | None:  # fmt: skip
    """The condition that a step is the first on a block; ``None`` if each is.

    Args:
      sizes: the sizes of the grid.
    """
    if None not in mapping.forms:
        still = [d for d in still_dimensions(kernel, mapping) if kernel.grid[d] > 1]
        first: Value | None = None
        for d in still:
            start = e.compare("eq", ids[d], e.index(0))
            first = start if first is None else e.binary("arith.andi", first, start)
        return first
    step = e.index(0)
    for i, size in zip(ids, sizes):
        step = e.add(e.multiply(step, size), i)
    before = e.maximum(e.subtract(step, e.index(1)), e.index(0))
    previous: list[Value] = []
    for n, size in zip(reversed(kernel.grid), reversed(sizes)):
        previous.insert(0, e.binary("arith.remsi", before, size, (0, max(n - 1, 0))))
        before = e.binary("arith.divsi", before, size, (0, 2**31 - 1))
    first = e.compare("eq", step, e.index(0))
    now = block_index(e, kernel, mapping, ids, prefetched)
    for a, b in zip(now, block_index(e, kernel, mapping, previous, prefetched)):
        first = e.binary("arith.ori", first, e.compare("ne", a, b))
    return first
