"""Copies between references."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from primax_core.extend import current_trace

from ._copy_operations import bind_copy, copy_start_p, copy_wait_p
from ._selected import SelectedRef
from ._semaphores import semaphore_signal, semaphore_wait
from ._typing import Reference


@dataclass(frozen=True)
class AsyncCopy:
    """A copy that is started and waited for.

    On a CPU and a GPU it is made when it starts.
    """

    src_ref: Any
    dst_ref: Any
    sem: Any
    add: bool = False

    def _choose(self, fun: Callable[[AsyncCopy], None]) -> bool:
        """Apply a function to the copy of the chosen reference; False if all are known."""
        for name in ("src_ref", "dst_ref", "sem"):
            ref = getattr(self, name)
            if isinstance(ref, SelectedRef):
                ref.branches(lambda r, name=name: fun(replace(self, **{name: r})))
                return True
        return False

    @property
    def _size(self) -> int:
        return math.prod(self.dst_ref.shape) * np.dtype(self.dst_ref.dtype).itemsize

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Begin the copy; ``add`` adds to the destination instead."""
        if self._choose(lambda copy: copy.start(priority, add=add)):
            return
        refs = [x for x in (self.src_ref, self.dst_ref, self.sem) if x is not None]
        traced = current_trace() is not None
        if traced and bind_copy(copy_start_p, refs, self._size, add or self.add):
            return
        value = _contents(self.src_ref)
        _write(self.dst_ref, _contents(self.dst_ref) + value if add or self.add else value)
        if self.sem is not None:
            semaphore_signal(self.sem, self._size)

    def wait(self) -> None:
        """Wait until the copy has been made."""
        if self.sem is None or self._choose(lambda copy: copy.wait()):
            return
        refs = [self.src_ref, self.dst_ref, self.sem]
        if current_trace() is None or not bind_copy(copy_wait_p, refs, self._size):
            semaphore_wait(self.sem, self._size)


def make_async_copy(
    src_ref: Reference,
    dst_ref: Reference,
    sem: Reference | None = None,
    *,
    src_sem: Reference | None = None,
) -> AsyncCopy:
    """A copy between references or views of them that has not been started.

    Args:
      src_ref, dst_ref: source and destination, of equal shapes and dtypes.
      sem: a semaphore of kind `SemaphoreType.DMA`, which counts the bytes copied.
      src_sem: not supported: only copies between devices have two semaphores.

    Raises:
      ValueError: if shapes or dtypes differ.
    """
    if src_sem is not None:
        raise ValueError("make_async_copy takes one semaphore for a copy on one device")
    if src_ref.shape != dst_ref.shape or src_ref.dtype != dst_ref.dtype:
        raise ValueError(
            f"a copy from {np.dtype(src_ref.dtype)}{list(src_ref.shape)} to "
            f"{np.dtype(dst_ref.dtype)}{list(dst_ref.shape)}: shapes and dtypes have to agree"
        )
    return AsyncCopy(src_ref, dst_ref, sem)


def async_copy(
    src_ref: Reference,
    dst_ref: Reference,
    sem: Reference | None = None,
    *,
    src_sem: Reference | None = None,
    priority: int = 0,
    add: bool = False,
) -> AsyncCopy:
    """Start a copy between references or views of them; the result has the method ``wait``.

    Arguments and errors are those of `make_async_copy`.

    Args:
      priority: a hint for the TPU.
      add: whether to add to the destination instead.
    """
    copy = make_async_copy(src_ref, dst_ref, sem, src_sem=src_sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref: Reference, dst_ref: Reference, *, add: bool = False) -> None:
    """Copy between references or views of them. Arguments and errors are those of `async_copy`."""
    async_copy(src_ref, dst_ref, add=add)


def _contents(ref: Any) -> Any:
    return ref.get() if hasattr(ref, "base") else ref[...]


def _write(ref: Any, value: Any) -> None:
    if hasattr(ref, "base"):
        ref.set(value)
    else:
        ref[...] = value


def make_async_remote_copy(
    src_ref: Reference,
    dst_ref: Reference,
    send_sem: Reference,
    recv_sem: Reference,
    device_id: Any,
    device_id_type: Any = None,
) -> AsyncCopy:
    """A copy to another device.

    Raises:
      NotImplementedError: on this backend, where a kernel runs on one device.
    """
    raise NotImplementedError(
        "a copy to another device inside of a kernel is not supported on this backend: end the "
        "kernel, move its result with lax.ppermute or lax.all_gather in shard_map, and go on in a "
        "second kernel"
    )


def async_remote_copy(
    src_ref: Reference,
    dst_ref: Reference,
    send_sem: Reference,
    recv_sem: Reference,
    device_id: Any,
    device_id_type: Any = None,
) -> AsyncCopy:
    """A copy to another device that is started. Raises the errors of `make_async_remote_copy`."""
    return make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)
