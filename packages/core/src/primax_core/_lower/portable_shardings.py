"""Shardings in portable modules, independent of devices: names and sizes of mesh axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._runtime.sharding import Sharding, sharding_maker
from .lazy import mlir


class PortableSharding(NamedTuple):
    """The division of an array along the axes of a mesh that has no devices.

    Attributes:
      axes: names and sizes of the axes of the mesh, in order; none on one device, or if the
        division over several is not determined.
      entries: for each axis of the array the mesh axes that divide it; ``None`` if that is open.
      memory_kind: the memory kind, ``None`` for the default.
    """

    axes: tuple[tuple[str, int], ...]
    entries: tuple[tuple[str, ...] | None, ...]
    memory_kind: str | None = None

    def fits(self, mesh: Any) -> bool:
        """Return True if a mesh has the same axes."""
        return [(str(name), size) for name, size in mesh.shape_tuple] == list(self.axes)

    def over(self, mesh: Any) -> Sharding:
        """The sharding over a mesh with these axes.

        Raises:
          TypeError: if it is no mesh.
          ValueError: if it has other axes.
        """
        make = sharding_maker(type(mesh))
        if make is None:
            raise TypeError(f"shardings of an exported function need a mesh, got {mesh!r}")
        if self.axes and not self.fits(mesh):
            expected = ", ".join(f"{name!r}: {size}" for name, size in self.axes)
            raise ValueError(
                f"the function was exported with a mesh of the axes {{{expected}}}, but the mesh "
                f"is {mesh}: pass one with the same axes, or divide the arguments otherwise; calls "
                f"only need {math.prod(n for _, n in self.axes)} devices"
            )
        names = {str(name): name for name, _ in mesh.shape_tuple}
        entries = [None if e is None else tuple([names[n] for n in e]) for e in self.entries]
        return make(mesh, entries, self.memory_kind)


def describe(
    shardings: Sequence[Sharding | None], avals: Sequence[Any]
) -> tuple[PortableSharding | None, ...]:
    """The shardings of arrays of these types without their devices.

    Raises:
      ValueError: for partial values, and devices in another order than that of the mesh.
    """
    return tuple([None if s is None else _described(s, a.ndim) for s, a in zip(shardings, avals)])


def with_kinds(
    shardings: Sequence[PortableSharding | None], kinds: Sequence[str | None], avals: Sequence[Any],
    several: bool,
) -> tuple[PortableSharding | None, ...]:  # fmt: skip
    """The shardings, with memory kinds where they are not ``None``.

    Args:
      several: the arrays are on several devices; if their division is not known, it is open.
    """
    entry = None if several else ()
    return tuple([
        s if k is None else (s or PortableSharding((), (entry,) * a.ndim))._replace(memory_kind=k)
        for s, k, a in zip(shardings, kinds, avals)
    ])  # fmt: skip


def _described(sharding: Sharding, ndim: int) -> PortableSharding:
    dialect = mlir.sdy()
    text = sharding._sdy(ndim)
    attribute = dialect.TensorShardingAttr(mlir.parse_sharding(text))
    mesh = dialect.MeshAttr(attribute.mesh_or_ref)
    if list(mesh.device_ids) or list(attribute.unreduced_axes):
        raise ValueError(
            f"a function with an argument or result of the sharding {sharding} cannot be exported: "
            "only divisions along axes of a mesh can be written, without partial values"
        )
    axes = [dialect.MeshAxisAttr(a) for a in mesh.axes]
    entries = []
    for dim in map(dialect.DimensionShardingAttr, attribute.dimension_shardings):
        names = tuple([dialect.AxisRefAttr(a).name for a in dim.axes])
        entries.append(names if dim.is_closed else None)
    kind = None if sharding._on_default_memory() else sharding.memory_kind
    return PortableSharding(tuple([(a.name, a.size) for a in axes]), tuple(entries), kind)
