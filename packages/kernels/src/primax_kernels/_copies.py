"""Copies between references."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from primax_core.extend import Primitive, current_trace

from ._access import described
from ._copy_operations import bind_copy, copy_start_p, copy_wait_p
from ._devices import Axes, DeviceIdType, logical_device
from ._remote_operations import bind_remote, remote_copy_start_p, remote_copy_wait_p
from ._selected import SelectedRef
from ._semaphore_operations import check_semaphore, is_reference, semaphore_signal, semaphore_wait
from ._semaphores import SemaphoreType
from ._typing import DeviceId, Reference


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
      TypeError: if the source or the destination is no reference.
      ValueError: if shapes or dtypes differ.
    """
    if src_sem is not None:
        raise ValueError("make_async_copy takes one semaphore for a copy on one device")
    _check_equal_types(src_ref, dst_ref)
    return AsyncCopy(src_ref, dst_ref, sem)


def _check_equal_types(src_ref: Any, dst_ref: Any) -> None:
    for ref in (src_ref, dst_ref):
        if not is_reference(ref):
            raise TypeError(
                f"a copy is between references or views of them, such as ref.at[0:8]; got "
                f"{described(ref)}"
            )
    if src_ref.shape != dst_ref.shape or src_ref.dtype != dst_ref.dtype:
        raise ValueError(
            f"a copy from {np.dtype(src_ref.dtype)}{list(src_ref.shape)} to "
            f"{np.dtype(dst_ref.dtype)}{list(dst_ref.shape)}: shapes and dtypes have to agree"
        )


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


@dataclass(frozen=True)
class RemoteCopy:
    """A copy to another device, see `make_async_remote_copy`."""

    src_ref: Any
    dst_ref: Any
    send_sem: Any
    recv_sem: Any
    device: Any
    mesh: Axes

    def _bind(self, prim: Primitive, **params: Any) -> None:
        names = ("src_ref", "dst_ref", "send_sem", "recv_sem")
        refs = [getattr(self, name) for name in names]
        for name, ref in zip(names, refs):
            if isinstance(ref, SelectedRef):
                ref.branches(lambda r, n=name: replace(self, **{n: r})._bind(prim, **params))
                return
        nbytes = math.prod(self.dst_ref.shape) * np.dtype(self.dst_ref.dtype).itemsize
        bind_remote(
            prim, "make_async_remote_copy", refs, self.device, nbytes=nbytes, mesh=self.mesh,
            **params,
        )  # fmt: skip

    def start(self, priority: int = 0) -> None:
        """Begin the copy; ``priority`` is a hint."""
        self._bind(remote_copy_start_p)

    def wait(self) -> None:
        """Wait until the copy has left this device, and one into ``dst_ref`` has arrived."""
        self.wait_send()
        self.wait_recv()

    def wait_send(self) -> None:
        """Wait until the copy has left this device: the source may be written again."""
        self._bind(remote_copy_wait_p, arrived=False)

    def wait_recv(self) -> None:
        """Wait until a copy of this size into ``dst_ref`` has arrived from another device."""
        self._bind(remote_copy_wait_p, arrived=True)


def make_async_remote_copy(
    src_ref: Reference,
    dst_ref: Reference,
    send_sem: Reference,
    recv_sem: Reference,
    device_id: DeviceId,
    device_id_type: DeviceIdType | str | None = None,
) -> RemoteCopy:
    """A copy to another device of the mesh that has not been started.

    The kernel is called inside of a ``shard_map`` whose axes are all those of the mesh, and all
    devices run it. On TPUs the copy is one of the chip's. The destination has to be ready: devices
    tell each other so by `get_barrier_semaphore`. On CPUs the copies of all devices are
    a collective: each device has to reach the call, so that conditions around it may depend on the
    grid and not on values of the device.

    Args:
      src_ref: the source, a reference or a view of it, on this device.
      dst_ref: the destination, in the memory of the other device.
      send_sem: a semaphore of kind `SemaphoreType.DMA` on this device; it counts what has left.
      recv_sem: one on the other device; it counts what has arrived.
      device_id: a sequence with the position along each axis of the mesh; a dict from names of axes
        to positions, where other positions are those of this device; or an integer
        scalar, on a mesh of one axis or with ``DeviceIdType.LOGICAL``.
      device_id_type: a `DeviceIdType`; by default ``MESH``.

    Returns:
      An object with the methods ``start``, ``wait``, ``wait_send`` and ``wait_recv``.

    Raises:
      RuntimeError: if the kernel is not called inside of a ``shard_map``.
      TypeError: for arrays in place of references, a semaphore of another kind, or positions that
        are no integers.
      ValueError: if shapes or dtypes differ, or the number of the device does not fit the mesh.

    Derivatives are those of collectives on arrays.
    """
    function = "make_async_remote_copy"
    _check_equal_types(src_ref, dst_ref)
    for name, semaphore in (("send_sem", send_sem), ("recv_sem", recv_sem)):
        check_semaphore(function, name, semaphore, SemaphoreType.DMA)
    device, mesh = logical_device(function, device_id, device_id_type)
    return RemoteCopy(src_ref, dst_ref, send_sem, recv_sem, device, mesh)


def async_remote_copy(
    src_ref: Reference,
    dst_ref: Reference,
    send_sem: Reference,
    recv_sem: Reference,
    device_id: DeviceId,
    device_id_type: DeviceIdType | str | None = None,
) -> RemoteCopy:
    """A copy to another device that is started; see `make_async_remote_copy`."""
    copy = make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)
    copy.start()
    return copy
