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
_UNREDUCED = _hlo.OpSharding.Type.UNREDUCED


class Tiling:
    """The parts of an array: ``tiles[i]`` equal parts along axis ``i``.

    Attributes:
      tiles: the number of parts along each axis.
      order: int[*tiles, partial * replicas], the numbers of the partitions with each part. A
        partition's number is the position of its device in the sharding.
      partial: the number of partial values of each part, whose reduction is the part. The last axis
        of ``order`` has the replicas of one partial value next to each other.

    >>> tiling = Tiling.along_mesh((2, 4), [(1,), ()])
    >>> tiling.tiles, tiling.order.tolist()
    ((4, 1), [[[0, 4]], [[1, 5]], [[2, 6]], [[3, 7]]])
    """

    __slots__ = ("tiles", "order", "partial", "_iota")

    def __init__(
        self, tiles: Sequence[int], order: np.ndarray, partial: int = 1, _iota: Any = None
    ):
        self.tiles = tuple(tiles)
        self.order = order
        self.partial = partial
        self._iota = _iota  # the shape of the mesh and the permutation of its axes

    @classmethod
    def along_mesh(
        cls,
        mesh_shape: Sequence[int],
        axes: Sequence[Sequence[int]],
        unreduced: Sequence[int] = (),
    ) -> Tiling:
        """The tiling along the axes of a mesh, whose partitions are numbered in row-major order.

        Args:
          mesh_shape: sizes of the axes of the mesh.
          axes: for each axis of the array, the mesh axes that divide it, major first.
          unreduced: the mesh axes along which partitions have partial values.

        Raises:
          ValueError: if an axis of the mesh is used twice.
        """
        used = [*(i for group in axes for i in group), *unreduced]
        if len(set(used)) != len(used):
            raise ValueError(
                f"an axis of the mesh divides two axes of the array, or is unreduced too: {axes}, "
                f"unreduced {tuple(unreduced)}"
            )
        rest = [i for i in range(len(mesh_shape)) if i not in used]
        tiles = [math.prod(mesh_shape[i] for i in group) for group in axes]
        ids = np.arange(math.prod(mesh_shape)).reshape(mesh_shape)
        order = (*used, *rest)
        partial = math.prod(mesh_shape[i] for i in unreduced)
        parts = ids.transpose(order).reshape([*tiles, -1])
        return cls(tiles, parts, partial, (tuple(mesh_shape), order))

    @classmethod
    def of_xla(cls, sharding: Any, ndim: int, partitions: int) -> Tiling:
        """The tiling of one of XLA's shardings, for an array of ``ndim`` axes."""
        if sharding.is_replicated() or sharding.is_unreduced():
            order = np.arange(partitions).reshape((1,) * ndim + (-1,))
            return cls((1,) * ndim, order, partitions if sharding.is_unreduced() else 1)
        if not sharding.is_tiled() or sharding.is_maximal() or sharding.is_manual():
            raise ValueError(f"{sharding!r} does not divide an array over all partitions")
        dims = sharding.tile_assignment_dimensions()
        order = np.asarray(sharding.tile_assignment_devices()).reshape(dims)
        subgroups = {ndim + i: kind for i, kind in enumerate(sharding.subgroup_types())}
        if not {*subgroups.values()} <= {_REPLICATED, _UNREDUCED}:
            raise ValueError(f"{sharding!r} does not divide an array over all partitions")
        partial = [i for i, kind in subgroups.items() if kind == _UNREDUCED]
        rest = [i for i in range(ndim, len(dims)) if i not in partial]
        order = order.transpose(*range(ndim), *partial, *rest).reshape([*dims[:ndim], -1])
        return cls(dims[:ndim], order, math.prod(dims[i] for i in partial))

    @property
    def key(self) -> tuple:
        """A hashable value, equal for equal tilings."""
        return self.tiles, self.partial, self.order.tobytes()

    def to_xla(self) -> Any:
        """XLA's sharding (``HloSharding``)."""
        partial, replicas = self.partial, self.order.shape[-1] // self.partial
        if replicas == self.order.size:
            return HloSharding.replicate()
        if partial == self.order.size:
            return HloSharding.unreduced()
        groups = [(partial, _UNREDUCED), (replicas, _REPLICATED)]
        dims = (*self.tiles, *(n for n, _ in groups if n > 1))
        kinds = [kind for n, kind in groups if n > 1]
        if self._iota is not None:
            return HloSharding.iota_tile(dims, *self._iota, kinds)
        return HloSharding.subgroup_with_device_ordering(self.order.reshape(dims), kinds)

    def __repr__(self) -> str:
        partial = "" if self.partial == 1 else f", partial={self.partial}"
        return f"Tiling(tiles={self.tiles}, order={self.order.tolist()}{partial})"
