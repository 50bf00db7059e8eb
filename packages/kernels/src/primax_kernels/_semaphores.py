"""Semaphores: memory of counters with which steps, copies and devices wait for each other."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from primax_core.extend import AbstractRef, ShapedArray

from ._memory_spaces import MemoryRef, unwritten_value
from ._tpu_memory import ACC

COUNT = np.dtype(np.int32)


class semaphore:
    """Kind of memory of semaphores that kernels signal and wait for."""


class dma_semaphore(semaphore):
    """Kind of memory of semaphores that copies signal."""


class barrier_semaphore(semaphore):
    """Kind of memory of semaphores of barriers."""


class SemaphoreType(enum.Enum):
    """Types of semaphores, for ``scratch_shapes`` and `run_scoped`.

    A member is the type of one semaphore; called with a shape, that of an array of them.
    """

    REGULAR = semaphore
    DMA = dma_semaphore
    BARRIER = barrier_semaphore

    def __call__(self, shape: tuple[int, ...]) -> MemoryRef:
        """The type of an array of semaphores."""
        return MemoryRef(ShapedArray(tuple(shape), COUNT), self)

    def get_ref_aval(self) -> AbstractRef:
        """The type of the reference that a kernel receives."""
        return AbstractRef(ShapedArray((), COUNT), self)


def begins_with_zeros(memory_space: Any) -> bool:
    """Return True for semaphores and for accumulators of matrix units."""
    return isinstance(memory_space, (SemaphoreType, ACC))


def first_value(ref_aval: AbstractRef) -> Any:
    """The elements of scratch memory before the first write."""
    if begins_with_zeros(ref_aval.memory_space):
        return 0
    return unwritten_value(ref_aval.dtype)
