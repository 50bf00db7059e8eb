"""Pipelines over buffers that the caller reserves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax

from . import _grid
from ._block_mapping import INDEX_DTYPE
from ._buffered_refs import BufferedRef, BufferType
from ._control import when


class PipelineStep(NamedTuple):
    """The step of a pipeline, which a function may ask for.

    Attributes:
      index: the indices of the step in the grid, ``int32`` scalars.
      local_index: the number of the step, counted by the core that runs it.
    """

    index: tuple[Any, ...]
    local_index: Any


class Steps(NamedTuple):
    """The steps of a pipeline.

    Attributes:
      sizes: the grid.
      local: the grid of one core.
      divided: the dimension that cores divide, and ``first`` the core's first index along it.
      total: the number of steps of one core.
    """

    sizes: Sequence[Any]
    local: Sequence[Any]
    divided: int | None
    first: Any
    total: Any

    def indices(self, t: Any) -> list[Any]:
        """The indices of a step in the grid."""
        ids = _grid.indices_of(t, self.local)
        if self.divided is not None:
            ids[self.divided] = lax.add(ids[self.divided], self.first)
        return ids


def run_buffered(
    body: Callable[..., None], steps: Steps, refs: Sequence[Any], allocations: Sequence[Any],
    scratches: Sequence[Any], explicit: bool,
) -> None:  # fmt: skip
    """Run the steps of a pipeline on buffers.

    The next block of an operand is copied during a step, if there are several buffers. A result
    is copied while later steps fill the other buffers.

    Args:
      explicit: whether ``body`` receives the step first.

    Raises:
      TypeError, ValueError: for buffers that do not match the references.
    """
    _check(refs, allocations)
    buffers = [b if b.copy_in_slot is not None else b.initialize_slots() for b in allocations]
    first = steps.indices(np.int32(0))
    total = lax.convert_element_type(steps.total, INDEX_DTYPE)
    for n, (ref, b) in enumerate(zip(refs, buffers)):
        if _prefetches(b) and not b.prefetched_count:
            when(lax.gt(total, np.int32(0)))(lambda b=b, ref=ref: b.copy_in(ref, first))
        if _prefetches(b):
            buffers[n] = b.with_slot_index(copy_in_slot=np.int32(1))

    def step(t: Any, states: Any) -> Any:
        t = lax.convert_element_type(t, INDEX_DTYPE)
        ids = steps.indices(t)
        before = steps.indices(lax.max(lax.sub(t, np.int32(1)), np.int32(0)))
        last = lax.ge(t, lax.sub(total, np.int32(1)))
        following = steps.indices(lax.min(lax.add(t, np.int32(1)), lax.sub(total, np.int32(1))))
        own = [_with_counts(b, count) for b, (count, _) in zip(buffers, states)]
        ends = []
        for ref, b, (_, copied) in zip(refs, own, states):
            is_first = lax.bitwise_or(lax.eq(t, np.int32(0)), _differ(b, ids, before))
            moves = _differ(b, ids, following)
            ends.append(lax.bitwise_or(last, moves))
            when(is_first)(lambda b=b, ref=ref, copied=copied: _begin(b, ref, ids, steps, copied))
            if _prefetches(b):
                fetch = lax.bitwise_and(moves, lax.bitwise_not(last))
                when(fetch)(lambda b=b, ref=ref: b.copy_in(ref, following))
        position = [PipelineStep(tuple(ids), t)] if explicit else []
        with _grid.at(ids, steps.sizes):
            body(*position, *[b.current_ref for b in own], *scratches)
        results = []
        for ref, b, end, (count, copied) in zip(refs, own, ends, states):
            if b.is_output:
                when(end)(lambda b=b, ref=ref: _end(b, ref, ids))
            now = lax.convert_element_type(end, np.int32)
            newest = [t, *copied[:-1]] if copied else []
            copied = [lax.select(end, new, old) for new, old in zip(newest, copied)]
            results.append((lax.add(count, now), copied))
        return results

    states: Any = [
        (np.int32(0), [np.int32(0)] * (b.buffer_count if _waits_later(b) else 0)) for b in buffers
    ]
    states = lax.fori_loop(np.int32(0), steps.total, step, states)
    for ref, b, (count, copied) in zip(refs, buffers, states):
        for k in range(len(copied) - 1, -1, -1):
            number = lax.sub(count, np.int32(k + 1))
            own = b.with_slot_index(wait_out_slot=number)
            when(lax.ge(number, np.int32(0)))(
                lambda own=own, ref=ref, t=copied[k]: own.wait_out(ref, steps.indices(t))
            )


def _check(refs: Sequence[Any], allocations: Sequence[Any]) -> None:
    if len(allocations) != len(refs):
        raise ValueError(
            f"the pipeline has {len(refs)} references, but got {len(allocations)} allocations"
        )
    for i, (ref, b) in enumerate(zip(refs, allocations)):
        if not isinstance(b, BufferedRef) or not hasattr(b.window_ref, "at"):
            raise TypeError(
                f"allocation {i} of a pipeline is a BufferedRef with memory, got {type(b).__name__}"
                ": pass what run_scoped passes to its function"
            )
        if b.window_ref.dtype != ref.dtype or len(b.spec.block_shape) != len(ref.shape):
            raise ValueError(
                f"allocation {i} has buffers of {np.dtype(b.window_ref.dtype)} for blocks "
                f"{b.spec.block_shape}, the reference is {np.dtype(ref.dtype)}{list(ref.shape)}"
            )


def _prefetches(b: BufferedRef) -> bool:
    """Return True if the next block is copied during a step."""
    return b.buffer_type is BufferType.INPUT and b.is_buffered


def _waits_later(b: BufferedRef) -> bool:
    """Return True if copies to the array are awaited when their buffer is needed again."""
    return b.buffer_type is BufferType.OUTPUT


def _with_counts(b: BufferedRef, count: Any) -> BufferedRef:
    """The buffers in a step, after ``count`` blocks."""
    ahead = lax.add(count, np.int32(1)) if _prefetches(b) else count
    return b.with_slot_index(ahead, count, count, lax.sub(count, np.int32(b.buffer_count)))


def _differ(b: BufferedRef, ids: Sequence[Any], others: Sequence[Any]) -> Any:
    """Return True, a traced Boolean, if two steps have different blocks."""
    differ: Any = np.bool_(False)
    for x, y in zip(b.block_index(ids), b.block_index(others)):
        differ = lax.bitwise_or(differ, lax.ne(x, y))
    return differ


def _begin(
    b: BufferedRef, ref: Any, ids: Sequence[Any], steps: Steps, copied: Sequence[Any]
) -> None:
    """Wait for the block of a step, or until its buffer was copied to an array.

    Args:
      copied: the last steps that copied buffers, one for each buffer, newest first. The oldest
        one's size is awaited, because partial blocks are smaller.
    """
    if b.is_input:
        if not _prefetches(b):
            b.copy_in(ref, ids)
        b.wait_in(ref, ids)
    else:
        when(lax.ge(b.wait_out_slot, np.int32(0)))(
            lambda: b.wait_out(ref, steps.indices(copied[-1]))
        )


def _end(b: BufferedRef, ref: Any, ids: Sequence[Any]) -> None:
    """Copy the block of a step to its array."""
    b.copy_out(ref, ids)
    if b.is_input_output:  # a later step may read it
        b.with_slot_index(wait_out_slot=b.copy_out_slot).wait_out(ref, ids)
