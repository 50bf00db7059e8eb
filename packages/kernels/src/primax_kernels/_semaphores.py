"""Semaphores: counters with which steps and copies wait for each other."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import AbstractRef, ShapedArray

from ._access import atomic_add
from ._memory_spaces import MemoryRef, unwritten_value
from ._tpu_memory import ACC
from ._typing import ArrayLike, Reference

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


def _check_is_one(function: str, semaphore: Any) -> None:
    if semaphore.shape != ():
        raise ValueError(
            f"{function} takes one semaphore, got an array of shape {semaphore.shape}: choose one "
            "by an index, such as semaphores.at[0]"
        )


def semaphore_read(sem_or_view: Reference) -> Any:
    """The count of a semaphore, an ``int32`` scalar.

    Raises:
      ValueError: for an array of semaphores.
    """
    _check_is_one("semaphore_read", sem_or_view)
    return sem_or_view[...] if not hasattr(sem_or_view, "get") else sem_or_view.get()


def semaphore_signal(
    sem_or_view: Reference,
    inc: ArrayLike = 1,
    *,
    device_id: Any = None,
    device_id_type: Any = None,
    core_index: Any = None,
) -> None:
    """Add ``inc`` to a semaphore.

    Raises:
      ValueError: for an array of semaphores.
      NotImplementedError: for the semaphore of another device.
    """
    if device_id is not None or core_index is not None:
        raise NotImplementedError(
            "semaphore_signal to another device or core: here a kernel runs on one device"
        )
    _check_is_one("semaphore_signal", sem_or_view)
    atomic_add(sem_or_view, ..., lax.convert_element_type(inc, COUNT))


def semaphore_wait(sem_or_view: Reference, value: ArrayLike = 1, *, decrement: bool = True) -> None:
    """Wait until a semaphore has at least ``value``, then subtract it.

    Steps on a CPU run one after the other, so a semaphore has its value by then, or never gets it.

    Args:
      decrement: whether to subtract.

    Raises:
      ValueError: for an array of semaphores.
    """
    _check_is_one("semaphore_wait", sem_or_view)
    if decrement:
        atomic_add(sem_or_view, ..., lax.neg(lax.convert_element_type(value, COUNT)))
