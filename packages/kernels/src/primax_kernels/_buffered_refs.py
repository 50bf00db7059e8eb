"""Buffers of a pipeline's blocks, and the copies between them and arrays."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from primax_core import ds, lax, tree_util

from ._block_specs import Blocked, BlockSpec, Squeezed
from ._control import when
from ._copies import AsyncCopy, make_async_copy
from ._memory_spaces import memory_ref
from ._semaphores import SemaphoreType
from ._tpu_memory import VMEM


class BufferType(enum.Enum):
    """Use of a pipeline's buffer: blocks are read, written, or both."""

    INPUT = 1
    OUTPUT = 2
    INPUT_OUTPUT = 3
    MANUAL = 4

    @property
    def is_input(self) -> bool:
        """True if blocks are copied into the buffer."""
        return self in (BufferType.INPUT, BufferType.INPUT_OUTPUT)

    @property
    def is_output(self) -> bool:
        """True if blocks are copied out of the buffer."""
        return self in (BufferType.OUTPUT, BufferType.INPUT_OUTPUT)


@tree_util.register_pytree_node_class
@dataclass(frozen=True)
class BufferedRef:
    """Buffers for the blocks of an array in a pipeline, and the counts of copies so far.

    `create` and its variants describe the memory: `run_scoped` and `get_global` reserve it, because
    a `BufferedRef` is a pytree. `emit_pipeline_with_allocations` copies by itself; the methods
    below are for pipelines that are written by hand.

    Attributes:
      spec: the blocks.
      buffer_type: whether blocks are read or written.
      in_buffer_count, out_buffer_count: numbers of blocks that are copied in and out at once.
      block_shape: the shape of a buffer.
      prefetched_count: number of blocks whose copies were started before the pipeline.
      window_ref: memory of all buffers, with the axis of the buffers in front.
      sem_recvs, sem_sends: semaphores of the copies into each buffer, and out of it.
      copy_in_slot, wait_in_slot, copy_out_slot, wait_out_slot: numbers of copies that were started
        and awaited. Copy ``i`` uses the buffer ``i % buffer_count``.
    """

    spec: BlockSpec
    buffer_type: BufferType
    in_buffer_count: int
    out_buffer_count: int
    block_shape: tuple[int, ...]
    prefetched_count: int = 0
    window_ref: Any = None
    sem_recvs: Any = None
    sem_sends: Any = None
    copy_in_slot: Any = None
    wait_in_slot: Any = None
    copy_out_slot: Any = None
    wait_out_slot: Any = None

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Memory, semaphores and counts are children."""
        children = tuple(getattr(self, name) for name in _CHILDREN)
        rest = tuple(getattr(self, name) for name in _STATIC)
        return children, rest

    @classmethod
    def tree_unflatten(cls, rest: tuple[Any, ...], children: Sequence[Any]) -> BufferedRef:
        """The inverse of `tree_flatten`."""
        return cls(**dict(zip(_STATIC, rest)), **dict(zip(_CHILDREN, children)))

    @classmethod
    def create(
        cls, spec: BlockSpec, dtype_or_type: Any, buffer_type: BufferType,
        buffer_count: int | tuple[int, int] | None = None, grid_rank: int | None = None,
        use_lookahead: bool = False, source_memory_space: Any = None, tiling: Any = None,
        is_trivial_windowing: bool = False, prefetched_count: int = 0,
    ) -> BufferedRef:  # fmt: skip
        """Types of the memory for blocks.

        Args:
          spec: the blocks, with a block shape.
          dtype_or_type: dtype of the elements, or a type with it.
          buffer_type: ``INPUT``, ``OUTPUT`` or ``INPUT_OUTPUT``.
          buffer_count: number of buffers, a pair (in, out) for ``INPUT_OUTPUT``, which has one less
            than their sum. By default that of ``spec.pipeline_mode``, or 2.
          prefetched_count: number of blocks that are copied before the pipeline, 0 or 1.
          grid_rank, source_memory_space, tiling, is_trivial_windowing: not needed here; layouts are
            Mosaic's.

        Raises:
          TypeError: for another ``buffer_type``.
          ValueError: for a spec without sizes, or a number of buffers that is not positive.
          NotImplementedError: for ``MANUAL`` and ``use_lookahead``.
        """
        if not isinstance(buffer_type, BufferType):
            raise TypeError(f"buffer_type is a member of BufferType, got {buffer_type!r}")
        if buffer_type is BufferType.MANUAL:
            raise NotImplementedError(
                "BufferType.MANUAL has no copies: pass the reference itself to the function of the "
                "pipeline (it may use references from outside), and copy with async_copy"
            )
        if use_lookahead:
            raise NotImplementedError(
                "BufferedRef fetches the next block one step before it is needed, and has no "
                "lookahead over several steps: leave use_lookahead away"
            )
        sizes = tuple(n for n in _sizes(spec) if n is not None)
        into, out = _counts(spec, buffer_type, buffer_count)
        count = into + out - (into > 0 and out > 0)
        space = VMEM if spec.memory_space is None else spec.memory_space
        dtype = dtype_or_type
        if not isinstance(dtype, (type, str, np.dtype)):
            dtype = dtype.dtype
        semaphores = SemaphoreType.DMA((count,))
        return cls(
            spec, buffer_type, into, out, sizes, prefetched_count,
            memory_ref((count, *sizes), dtype, space),
            semaphores if into else None, semaphores if out else None,
        )  # fmt: skip

    @classmethod
    def input(
        cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int | None = None, **options: Any
    ) -> BufferedRef:
        """Buffers of blocks that are read. Arguments are those of `create`."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT, buffer_count, **options)

    @classmethod
    def output(
        cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int | None = None, **options: Any
    ) -> BufferedRef:
        """Buffers of blocks that are written. Arguments are those of `create`."""
        return cls.create(spec, dtype_or_type, BufferType.OUTPUT, buffer_count, **options)

    @classmethod
    def input_output(
        cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: Any = None, **options: Any
    ) -> BufferedRef:
        """Buffers of blocks that are read and written. Arguments are those of `create`."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT_OUTPUT, buffer_count, **options)

    @property
    def buffer_count(self) -> int:
        """The number of buffers."""
        into, out = self.in_buffer_count, self.out_buffer_count
        return into + out - (into > 0 and out > 0)

    @property
    def is_buffered(self) -> bool:
        """True if there are several buffers."""
        return self.buffer_count > 1

    @property
    def is_input(self) -> bool:
        """True if blocks are copied into the buffers."""
        return self.buffer_type.is_input

    @property
    def is_output(self) -> bool:
        """True if blocks are copied out of the buffers."""
        return self.buffer_type.is_output

    @property
    def is_input_output(self) -> bool:
        """True if blocks are read and written."""
        return self.buffer_type is BufferType.INPUT_OUTPUT

    @property
    def compute_index(self) -> Callable[..., Any] | None:
        """The index map."""
        return self.spec.index_map

    @property
    def current_ref(self) -> Any:
        """The buffer that the function of the pipeline receives, a view."""
        count = self.wait_in_slot if self.buffer_type.is_input else self.copy_out_slot
        return self.window_ref.at[self._slot(count)]

    def initialize_slots(self) -> BufferedRef:
        """A copy whose counts are 0."""
        return self.with_slot_index(*[np.int32(0)] * 4)

    def with_slot_index(
        self, copy_in_slot: Any = None, copy_out_slot: Any = None, wait_in_slot: Any = None,
        wait_out_slot: Any = None,
    ) -> BufferedRef:  # fmt: skip
        """A copy with other counts; ``None`` keeps one."""
        changes = {
            "copy_in_slot": copy_in_slot, "copy_out_slot": copy_out_slot,
            "wait_in_slot": wait_in_slot, "wait_out_slot": wait_out_slot,
        }  # fmt: skip
        return replace(self, **{k: v for k, v in changes.items() if v is not None})

    def with_spec(self, spec: BlockSpec) -> BufferedRef:
        """A copy with other blocks of the same shape.

        Raises:
          ValueError: for another shape.
        """
        sizes = tuple(n for n in _sizes(spec) if n is not None)
        if sizes != self.block_shape:
            raise ValueError(
                f"the buffers have blocks of shape {self.block_shape}, the new specification has "
                f"{sizes}"
            )
        return replace(self, spec=spec)

    def with_window_ref(self, window_ref: Any) -> BufferedRef:
        """A copy with other memory."""
        return replace(self, window_ref=window_ref)

    def advance_copy_in_slot(self, predicate: Any = True) -> BufferedRef:
        """A copy after one more copy in was started, if ``predicate``."""
        return self.with_slot_index(copy_in_slot=_next(self.copy_in_slot, predicate))

    def advance_wait_in_slot(self, predicate: Any = True) -> BufferedRef:
        """A copy after one more block was used, if ``predicate``."""
        return self.with_slot_index(wait_in_slot=_next(self.wait_in_slot, predicate))

    def advance_copy_out_slot(self, predicate: Any = True) -> BufferedRef:
        """A copy after one more copy out was started, if ``predicate``."""
        return self.with_slot_index(copy_out_slot=_next(self.copy_out_slot, predicate))

    def advance_wait_out_slot(self, predicate: Any = True) -> BufferedRef:
        """A copy after one more copy out was awaited, if ``predicate``."""
        return self.with_slot_index(wait_out_slot=_next(self.wait_out_slot, predicate))

    def copy_in(self, src_ref: Any, grid_indices: Sequence[Any]) -> None:
        """Start to copy the block of a step into the next buffer."""
        self._each_copy(src_ref, grid_indices, self.copy_in_slot, True, AsyncCopy.start)

    def wait_in(self, src_ref: Any, grid_indices: Sequence[Any]) -> None:
        """Wait until the block of a step was copied."""
        self._each_copy(src_ref, grid_indices, self.wait_in_slot, True, AsyncCopy.wait)

    def copy_out(self, dst_ref: Any, grid_indices: Sequence[Any]) -> None:
        """Start to copy the current buffer to the block of a step."""
        self._each_copy(dst_ref, grid_indices, self.copy_out_slot, False, AsyncCopy.start)

    def wait_out(self, dst_ref: Any, grid_indices: Sequence[Any]) -> None:
        """Wait until a buffer was copied to the block of a step."""
        self._each_copy(dst_ref, grid_indices, self.wait_out_slot, False, AsyncCopy.wait)

    def compute_slice(self, grid_indices: Sequence[Any]) -> tuple[Any, ...]:
        """The index of the block of a step in its array, an entry for each axis."""
        parts: list[Any] = []
        for i, size in zip(self.block_index(grid_indices), _sizes(self.spec), strict=True):
            parts.append(i if size is None else ds(lax.mul(i, np.int32(size)), size))
        return tuple(parts)

    def block_index(self, grid_indices: Sequence[Any]) -> list[Any]:
        """The index of the block of a step, an entry for each axis."""
        if self.spec.index_map is None:
            return [np.int32(0)] * len(self.spec.block_shape)
        index = self.spec.index_map(*grid_indices)
        index = tuple(index) if isinstance(index, (tuple, list)) else (index,)
        return [lax.convert_element_type(i, np.int32) for i in index]

    def _slot(self, count: Any) -> Any:
        n = self.buffer_count
        return np.int32(0) if n == 1 else lax.rem(count, np.int32(n))

    def _each_copy(
        self, ref: Any, grid_indices: Sequence[Any], count: Any, into: bool,
        act: Callable[[AsyncCopy], None],
    ) -> None:  # fmt: skip
        """Start or await the copy of a block; that of a partial one has the rest of the array."""
        slot = self._slot(count)
        semaphore = (self.sem_recvs if into else self.sem_sends).at[slot]
        index, sizes = self.block_index(grid_indices), _sizes(self.spec)

        def copied(there: tuple[Any, ...], here: tuple[Any, ...]) -> None:
            axis = len(there)
            if axis == len(sizes):
                ends = ref.at[there], self.window_ref.at[(slot, *here)]
                act(make_async_copy(*(ends if into else ends[::-1]), semaphore))
                return
            i, size, n = index[axis], sizes[axis], ref.shape[axis]
            if size is None:
                copied((*there, i), here)
                return
            start = lax.mul(i, np.int32(size))
            if n % size == 0:
                copied((*there, ds(start, size)), (*here, slice(0, size)))
                return
            whole, rest = n // size, n % size
            if whole:  # a start that is known to be inside keeps its divisor
                block = lax.max(lax.min(i, np.int32(whole - 1)), np.int32(0))
                inner = lax.mul(block, np.int32(size))
                when(lax.lt(i, np.int32(whole)))(
                    lambda: copied((*there, ds(inner, size)), (*here, slice(0, size)))
                )
            when(lax.ge(i, np.int32(whole)))(
                lambda: copied((*there, slice(n - rest, n)), (*here, slice(0, rest)))
            )

        copied((), ())


_CHILDREN = (
    "window_ref", "sem_recvs", "sem_sends", "copy_in_slot", "wait_in_slot", "copy_out_slot",
    "wait_out_slot",
)  # fmt: skip
_STATIC = (
    "spec", "buffer_type", "in_buffer_count", "out_buffer_count", "block_shape", "prefetched_count",
)  # fmt: skip


def _sizes(spec: BlockSpec) -> list[int | None]:
    """The size of the block along each axis, ``None`` where the kernel does not see the axis.

    Raises:
      ValueError: for other blocks than those of a fixed size at multiples of it.
    """
    shape = getattr(spec, "block_shape", None)
    if shape is None:
        raise ValueError(
            f"a BufferedRef has a BlockSpec with a block shape, got {spec!r}: write the sizes of "
            "the array for a whole one"
        )
    sizes: list[int | None] = []
    for entry in shape:
        if entry is None or isinstance(entry, Squeezed):
            sizes.append(None)
        elif isinstance(entry, Blocked) or hasattr(entry, "__index__"):
            sizes.append(int(getattr(entry, "block_size", entry)))
        else:
            raise ValueError(
                f"a BufferedRef has blocks of sizes and None, got {entry!r} in {spec!r}: use "
                "emit_pipeline, which reserves buffers by itself"
            )
    return sizes


def _counts(spec: BlockSpec, buffer_type: BufferType, count: Any) -> tuple[int, int]:
    """The numbers of buffers in and out."""
    if count is None:
        count = 2 if spec.pipeline_mode is None else spec.pipeline_mode.buffer_count
        count = (count, 1) if buffer_type is BufferType.INPUT_OUTPUT else count
    pair = isinstance(count, tuple)
    if pair != (buffer_type is BufferType.INPUT_OUTPUT) and pair:
        raise ValueError(f"buffer_count is one number for {buffer_type}, got {count!r}")
    into, out = count if pair else (count, 1 if buffer_type is BufferType.INPUT_OUTPUT else count)
    if min(into, out) < 1:
        raise ValueError(f"buffer_count is at least 1, got {count!r}")
    return into * buffer_type.is_input, out * buffer_type.is_output


def _next(count: Any, predicate: Any) -> Any:
    if predicate is True:
        return lax.add(count, np.int32(1))
    return lax.add(count, lax.convert_element_type(predicate, np.int32))
