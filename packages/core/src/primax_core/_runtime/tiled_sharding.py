"""``TiledSharding``: any sharding that XLA can describe, without names of axes.

Loaded on first use.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from .devices import Device, device_from_id
from .sharding import Index, Shape, Sharding, default_memory_kind
from .tilings import Tiling


class TiledSharding(Sharding):
    """Equal parts along each axis, each on one or more devices.

    Args:
      devices: the devices, in the order of partitions.
      tiling: the partitions with each part.
      memory_kind: by default the memory in which executables compute.

    >>> from primax_core import devices
    >>> halves = TiledSharding(devices()[:2], Tiling.along_mesh((2,), [(0,), ()]))
    >>> halves.shard_shape((4, 3))
    (2, 3)
    """

    __slots__ = ("_device_tuple", "_tiling", "_memory_kind", "_indices")

    _instances: WeakValueDictionary[tuple, TiledSharding] = WeakValueDictionary()

    def __new__(
        cls, devices: Sequence[Device], tiling: Tiling, *, memory_kind: str | None = None
    ) -> TiledSharding:
        devices = tuple(devices)
        if tiling.order.size != len(devices):
            raise ValueError(f"{tiling} needs {tiling.order.size} devices, got {len(devices)}")
        kind = default_memory_kind(devices[0]) if memory_kind is None else memory_kind
        key = (devices, tiling.key, kind)
        known = cls._instances.get(key)
        if known is not None:
            return known
        self = object.__new__(cls)
        self._device_tuple, self._tiling, self._memory_kind = devices, tiling, kind
        self._by_rank, self._indices = {}, {}
        return cls._instances.setdefault(key, self)

    @property
    def _devices(self) -> tuple[Device, ...]:
        return self._device_tuple

    @property
    def memory_kind(self) -> str | None:
        """The memory kind of the parts."""
        return self._memory_kind

    @property
    def is_fully_replicated(self) -> bool:
        """True if every device has the whole array."""
        return set(self._tiling.tiles) <= {1} and self._tiling.partial == 1

    def devices_indices_map(self, global_shape: Shape) -> dict[Device, Index]:
        """The index of each device's part.

        Raises:
          ValueError: if the array has another number of axes, or a size does not divide.
        """
        shape = tuple(global_shape)
        known = self._indices.get(shape)
        if known is None:
            known = self._indices[shape] = self._indices_of(shape)
        return known

    def _indices_of(self, shape: Shape) -> dict[Device, Index]:
        tiles = self._tiles_of(len(shape))
        for axis, (size, n) in enumerate(zip(shape, tiles)):
            if size % n:
                raise ValueError(
                    f"axis {axis} of size {size} of an array of shape {shape} cannot be divided "
                    f"into {n} equal parts, as {self} requires"
                )
        order = self._tiling.order.reshape([*tiles, -1])
        indices = {}
        for at in itertools.product(*map(range, tiles)):
            part = tuple(
                slice(None) if n == 1 else slice(i * d // n, (i + 1) * d // n)
                for i, n, d in zip(at, tiles, shape)
            )
            indices.update((self._device_tuple[k], part) for k in order[at])
        return {d: indices[d] for d in self._device_tuple}

    def _tiles_of(self, ndim: int) -> tuple[int, ...]:
        tiles = self._tiling.tiles
        if len(tiles) != ndim and not self.is_fully_replicated:
            raise ValueError(f"{self} shards arrays of {len(tiles)} axes, not of {ndim}")
        return tiles if len(tiles) == ndim else (1,) * ndim

    def with_memory_kind(self, kind: str) -> TiledSharding:
        """The same parts in another memory kind."""
        return TiledSharding(self._device_tuple, self._tiling, memory_kind=kind)

    def _hlo_sharding(self, ndim: int) -> Any:
        self._tiles_of(ndim)
        return self._tiling.to_xla()

    def _sdy(self, ndim: int, open_axes: frozenset[int] = frozenset()) -> str | None:
        return self._tiling.to_sdy(ndim, open_axes)

    def _replicated(self) -> TiledSharding:
        n = len(self._device_tuple)
        return TiledSharding(self._device_tuple, Tiling((), np.arange(n)))

    def _from_xla(self, tiling: Tiling) -> TiledSharding:
        return TiledSharding(self._device_tuple, tiling)

    def _batched(self, axis: int, name: Any = None) -> TiledSharding:
        if name is not None:
            raise ValueError(f"{self} has no mesh axis {name!r}")
        tiling, kind = self._tiling.with_axis(axis), self._memory_kind
        return TiledSharding(self._device_tuple, tiling, memory_kind=kind)

    def __reduce__(self) -> tuple[Any, ...]:
        devices = [(d.platform, d.id) for d in self._device_tuple]
        kind = None if self._on_default_memory() else self._memory_kind
        tiling = self._tiling
        return _restored, (devices, tiling.tiles, tiling.order, tiling.partial, kind)

    def __copy__(self) -> TiledSharding:
        return self

    def __deepcopy__(self, memo: Any) -> TiledSharding:
        return self

    def __repr__(self) -> str:
        return f"TiledSharding({self._tiling!r}, memory_kind={self._memory_kind})"


def _restored(devices, tiles, order, partial, memory_kind) -> TiledSharding:
    devs = [device_from_id(platform, i) for platform, i in devices]
    return TiledSharding(devs, Tiling(tiles, order, partial), memory_kind=memory_kind)
