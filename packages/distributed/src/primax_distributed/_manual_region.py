"""The region of a `shard_map`: its mesh, its manual axes, and the types on both sides."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from primax_core.extend import AbstractRef, ShapedArray
from primax_core.extend.placements import is_placed, unplaced
from primax_core.extend.runtime import bounded_cache
from primax_core.extend.traces import named_axes

from ._abstract_mesh import AbstractMesh
from ._collectives import MeshAxesOwner
from ._mesh_axes import AxisType
from ._mesh_options import current_abstract_mesh
from ._named import Placement
from ._reshard import check_partial
from ._spec import PartitionSpec, entry_of

Names = frozenset[Hashable]
_NONE: Final[Names] = frozenset()


@dataclass(frozen=True)
class Region:
    """The axes of a `shard_map`.

    Attributes:
      mesh: the abstract mesh around the region.
      manual: the axes that become manual in it.
      checked: the types of values say along which axes they vary.
    """

    mesh: AbstractMesh
    manual: Names
    checked: bool

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The axes that become manual, in the order of the mesh."""
        return tuple([n for n in self.mesh.axis_names if n in self.manual])

    @property
    def inner(self) -> AbstractMesh:
        """The mesh in the region."""
        key = (self.mesh, self.manual)
        mesh: AbstractMesh | None = _inner_meshes.get(key)
        if mesh is None:
            types = dict.fromkeys(self.manual, AxisType.Manual)
            mesh = _inner_meshes[key] = self.mesh.update_axis_types(types)
        return mesh

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Context manager for traces of the region's body."""
        inner = self.inner
        sizes = {n: inner._sizes[n] for n in self.names}
        owner = MeshAxesOwner(inner, self.checked)
        with current_abstract_mesh(inner), named_axes(sizes, owner):
            yield

    def size(self, names: Sequence[Hashable]) -> int:
        """The number of positions along some axes."""
        return math.prod([self.mesh._sizes[n] for n in names])

    def unmentioned(self, spec: PartitionSpec) -> tuple[Hashable, ...]:
        """The axes of the region that a spec does not contain."""
        used = {*spec.names, *spec.unreduced, *spec.reduced}
        return tuple([n for n in self.names if n not in used])

    def local_aval(self, aval: Any, spec: PartitionSpec) -> Any:
        """The type of the part of one position."""
        if isinstance(aval, AbstractRef):
            return aval.update(inner_aval=self.local_aval(aval.inner_aval, spec))
        axes = spec.axes(aval.ndim)
        shape = [d // self.size(names) for d, names in zip(aval.shape, axes)]
        outer: Any = aval.placement if is_placed(aval) else None
        outer_spec = [()] * aval.ndim if outer is None else outer.spec
        rest = [tuple([n for n in names if n not in self.manual]) for names in outer_spec]
        varying, unreduced, reduced = _axes_of(outer)
        if self.checked:
            varying |= {*spec.names}
            unreduced |= spec.unreduced
            reduced |= spec.reduced
        kind = spec.unreduced_kind or (outer.unreduced_kind if outer is not None else None)
        placement = Placement.of(
            self.inner,
            rest,
            varying=varying,
            unreduced=unreduced,
            reduced=reduced,
            unreduced_kind=kind if unreduced else None,
        )
        if placement is not unplaced:
            check_partial(placement)
        return ShapedArray(shape, aval.dtype, aval.weak_type, placement)

    def global_aval(self, aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        """The type of a result whose parts have a type."""
        axes = spec.axes(aval.ndim)
        shape = [d * self.size(names) for d, names in zip(aval.shape, axes)]
        inner: Any = aval.placement if is_placed(aval) else None
        explicit = {*self.mesh.explicit_axes}
        divided = [tuple([n for n in names if n in explicit]) for names in axes]
        if inner is not None:
            divided = [(*a, *b) for a, b in zip(divided, inner.spec)]
        varying, unreduced, reduced = _axes_of(inner)
        unreduced = (unreduced - self.manual) | spec.unreduced
        kind = spec.unreduced_kind or (inner.unreduced_kind if inner is not None else None)
        placement = Placement.of(
            self.mesh,
            divided,
            varying=varying - self.manual,
            unreduced=unreduced,
            reduced=(reduced - self.manual) | spec.reduced,
            unreduced_kind=kind if unreduced else None,
        )
        return ShapedArray(shape, aval.dtype, aval.weak_type, placement)


_inner_meshes: Final = bounded_cache()


def _axes_of(placement: Any) -> tuple[Names, Names, Names]:
    if placement is None:
        return _NONE, _NONE, _NONE
    return placement.varying, placement.unreduced, placement.reduced


def spec_with_axis(spec: PartitionSpec, i: int, names: Sequence[Hashable] = ()) -> PartitionSpec:
    """The spec of values with one more axis at `i`, divided along `names`."""
    entries = [*spec, *[None] * (i - len(spec))]
    return spec.update(partitions=[*entries[:i], entry_of(tuple(names)), *entries[i:]])


def same_placement(aval: ShapedArray, mesh: AbstractMesh) -> ShapedArray:
    """The type over another mesh of the same axes."""
    if not is_placed(aval):
        return aval
    placement: Any = aval.placement
    return aval.update(placement=placement.update(mesh=mesh))
