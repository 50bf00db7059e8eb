"""Tilings: XLA's description of the division of an array over the partitions of an executable.

Loaded on first use: only arrays on several devices have one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _hlo

from .jaxlib_versions import HloSharding

_REPLICATED = _hlo.OpSharding.Type.REPLICATED


class Tiling:
    """The parts of an array: ``tiles[i]`` equal parts along axis ``i``.

    Attributes:
      tiles: the number of parts along each axis.
      order: int[*tiles, replicas], the numbers of the partitions with each part. A partition's
        number is the position of its device in the sharding.

    >>> tiling = Tiling.along_mesh((2, 4), [(1,), ()])
    >>> tiling.tiles, tiling.order.tolist()
    ((4, 1), [[[0, 4]], [[1, 5]], [[2, 6]], [[3, 7]]])
    """

    __slots__ = ("tiles", "order", "_iota")

    def __init__(self, tiles: Sequence[int], order: np.ndarray, _iota: Any = None):
        self.tiles = tuple(tiles)
        self.order = order
        self._iota = _iota  # the shape of the mesh and the permutation of its axes

    @classmethod
    def along_mesh(cls, mesh_shape: Sequence[int], axes: Sequence[Sequence[int]]) -> Tiling:
        """The tiling along the axes of a mesh, whose partitions are numbered in row-major order.

        Args:
          mesh_shape: sizes of the axes of the mesh.
          axes: for each axis of the array, the mesh axes that divide it, major first.

        Raises:
          ValueError: if an axis of the mesh is used twice.
        """
        used = [i for group in axes for i in group]
        if len(set(used)) != len(used):
            raise ValueError(f"an axis of the mesh divides two axes of the array: {axes}")
        rest = [i for i in range(len(mesh_shape)) if i not in used]
        tiles = [math.prod(mesh_shape[i] for i in group) for group in axes]
        ids = np.arange(math.prod(mesh_shape)).reshape(mesh_shape)
        order = (*used, *rest)
        return cls(tiles, ids.transpose(order).reshape([*tiles, -1]), (tuple(mesh_shape), order))

    @classmethod
    def of_xla(cls, sharding: Any, ndim: int, partitions: int) -> Tiling:
        """The tiling of one of XLA's shardings, for an array of ``ndim`` axes."""
        if ndim == 0 or sharding.is_replicated():
            return cls((1,) * ndim, np.arange(partitions).reshape((1,) * ndim + (-1,)))
        if not sharding.is_tiled() or sharding.is_maximal() or sharding.is_manual():
            raise ValueError(f"{sharding!r} does not divide an array over all partitions")
        dims = sharding.tile_assignment_dimensions()
        order = np.asarray(sharding.tile_assignment_devices())
        return cls(dims[:ndim], order.reshape([*dims[:ndim], -1]))

    @property
    def key(self) -> tuple:
        """A hashable value, equal for equal tilings."""
        return self.tiles, self.order.tobytes()

    def to_xla(self) -> Any:
        """XLA's sharding (``HloSharding``)."""
        replicas = self.order.shape[-1]
        if replicas == self.order.size:
            return HloSharding.replicate()
        dims = self.tiles if replicas == 1 else (*self.tiles, replicas)
        kinds = [_REPLICATED] if replicas > 1 else []
        if self._iota is not None:
            return HloSharding.iota_tile(dims, *self._iota, kinds)
        return HloSharding.subgroup_with_device_ordering(self.order.reshape(dims), kinds)

    def __repr__(self) -> str:
        return f"Tiling(tiles={self.tiles}, order={self.order.tolist()})"
