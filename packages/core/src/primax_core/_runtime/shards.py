"""Shards: the parts of an array on each device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .devices import Device
    from .sharding import Index, Sharding


class Shard:
    """The part of an array on one device.

    Args:
      device: the device.
      sharding: the sharding of the whole array.
      global_shape: shape of the whole array.
      data: the shard as an array on its device; ``None`` on a device of another process.
      part: a function that returns ``data``, called on first use.
    """

    __slots__ = ("_device", "_sharding", "_global_shape", "_data", "_part")

    def __init__(
        self,
        device: Device,
        sharding: Sharding,
        global_shape: tuple[int, ...],
        data: Any = None,
        part: Callable[[Device], Any] | None = None,
    ):
        self._device = device
        self._sharding = sharding
        self._global_shape = tuple(global_shape)
        self._data = data
        self._part = part

    @property
    def device(self) -> Device:
        """The device of the shard."""
        return self._device

    @property
    def index(self) -> Index:
        """The index of the shard: a slice for each axis of the whole array."""
        return self._indices()[self._device]

    @property
    def replica_id(self) -> int:
        """Number of preceding devices, in the sharding's order, with the same shard."""
        indices = self._indices()
        own = indices[self._device]
        before = list(indices)[: list(indices).index(self._device)]
        return sum(indices[d] == own for d in before)

    @property
    def data(self) -> Any:
        """The shard as an array on its device; ``None`` on a device of another process."""
        if self._part is not None:
            self._data, self._part = self._part(self._device), None
        return self._data

    def _indices(self):
        return self._sharding.devices_indices_map(self._global_shape)

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )
