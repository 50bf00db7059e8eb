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
        self.tiles: tuple[int, ...] = tuple(tiles)
        self.order: np.ndarray = order
        self.partial: int = partial
        # The shape of the mesh, the axes that divide those of the array, and the unreduced ones.
        self._iota = _iota

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
        groups = [*map(tuple, axes), tuple(unreduced)]
        used = [i for group in groups for i in group]
        if len(set(used)) != len(used):
            raise ValueError(
                f"an axis of the mesh divides two axes of the array, or is unreduced too: {axes}, "
                f"unreduced {tuple(unreduced)}"
            )
        tiles = [math.prod(mesh_shape[i] for i in group) for group in axes]
        ids = np.arange(math.prod(mesh_shape)).reshape(mesh_shape)
        order = ids.transpose(_permutation(mesh_shape, groups)).reshape([*tiles, -1])
        partial = math.prod(mesh_shape[i] for i in unreduced)
        return cls(tiles, order, partial, (tuple(mesh_shape), groups[:-1], groups[-1]))

    @classmethod
    def of_xla(cls, sharding: Any, ndim: int, partitions: int) -> Tiling:
        """The tiling of one of XLA's shardings, for an array of ``ndim`` axes."""
        if sharding.is_replicated() or sharding.is_unreduced():
            order = np.arange(partitions).reshape((1,) * ndim + (-1,))
            return cls((1,) * ndim, order, partitions if sharding.is_unreduced() else 1)
        kinds = sharding.subgroup_types()
        divides = sharding.is_tiled() and not sharding.is_maximal() and not sharding.is_manual()
        if not divides or not {*kinds} <= {_REPLICATED, _UNREDUCED}:
            raise ValueError(f"{sharding!r} does not divide an array over all partitions")
        dims = sharding.tile_assignment_dimensions()
        partial = [ndim + i for i, kind in enumerate(kinds) if kind == _UNREDUCED]
        rest = [i for i in range(ndim, len(dims)) if i not in partial]
        order = np.asarray(sharding.tile_assignment_devices()).reshape(dims)
        order = order.transpose(*range(ndim), *partial, *rest).reshape([*dims[:ndim], -1])
        return cls(dims[:ndim], order, math.prod(dims[i] for i in partial))

    @property
    def key(self) -> tuple[Any, ...]:
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
            mesh_shape, axes, unreduced = self._iota
            order = _permutation(mesh_shape, [*axes, unreduced])
            return HloSharding.iota_tile(dims, mesh_shape, order, kinds)
        return HloSharding.subgroup_with_device_ordering(self.order.reshape(dims), kinds)

    def with_axis(self, axis: int) -> Tiling:
        """The tiling of an array with one more axis, which is not divided."""
        tiles = (*self.tiles[:axis], 1, *self.tiles[axis:])
        iota = self._iota
        if iota is not None:
            iota = iota[0], [*iota[1][:axis], (), *iota[1][axis:]], iota[2]
        return Tiling(tiles, self.order.reshape([*tiles, -1]), self.partial, iota)

    def to_sdy(self, ndim: int, open_axes: frozenset[int] = frozenset()) -> str:
        """Text of Shardy's attribute.

        Its mesh is that of :meth:`along_mesh`, otherwise one with an axis for each axis of the
        array.
        """
        if self._iota is not None:
            mesh_shape, groups, partial = self._iota
            sizes = [f'"m{i}"={n}' for i, n in enumerate(mesh_shape)]
            named = [[f'"m{i}"' for i in group] for group in groups] or [[] for _ in range(ndim)]
            dims = _dimensions(named, open_axes)
            unreduced = _unreduced([f'"m{i}"' for i in partial])
            return f"#sdy.sharding<mesh<[{', '.join(sizes)}]>, [{dims}]{unreduced}>"
        replicas = self.order.shape[-1] // self.partial
        tiles = (1,) * ndim if replicas == self.order.size else self.tiles
        sizes = [f'"a{i}"={n}' for i, n in enumerate(tiles) if n > 1]
        sizes += [f'"u"={self.partial}'] if self.partial > 1 else []
        sizes += [f'"r"={replicas}'] if replicas > 1 or not sizes else []
        ids = self.order.reshape(-1).tolist()
        listed = "" if ids == sorted(ids) else f", device_ids={ids}"
        dims = _dimensions([[f'"a{i}"'] if n > 1 else [] for i, n in enumerate(tiles)], open_axes)
        unreduced = _unreduced(['"u"'] if self.partial > 1 else [])
        return f"#sdy.sharding<mesh<[{', '.join(sizes)}]{listed}>, [{dims}]{unreduced}>"

    def __repr__(self) -> str:
        partial = "" if self.partial == 1 else f", partial={self.partial}"
        return f"Tiling(tiles={self.tiles}, order={self.order.tolist()}{partial})"


def _permutation(mesh_shape: Sequence[int], axes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The axes of a mesh: those that divide the array, then the others."""
    used = [i for group in axes for i in group]
    return (*used, *(i for i in range(len(mesh_shape)) if i not in used))


def _dimensions(named: list[list[str]], open_axes: frozenset[int]) -> str:
    for i in open_axes:
        named[i].append("?")
    return ", ".join(f"{{{', '.join(names)}}}" for names in named)


def _unreduced(names: list[str]) -> str:
    return f", unreduced={{{', '.join(names)}}}" if names else ""
