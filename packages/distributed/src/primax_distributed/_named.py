"""``NamedSharding``: arrays divided along the named axes of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from primax_core import Device
from primax_core.extend import runtime, typeof
from primax_core.extend.placements import Placement as PlacementOfTypes, is_placed, unplaced
from primax_core.extend.runtime import Sharding, SingleDeviceSharding, bounded_cache

from ._abstract_mesh import AbstractMesh
from ._axis_casts import cast_manual, difference_of_manual
from ._explicit import spec_of
from ._interning import Interned
from ._mesh import Mesh
from ._mesh_axes import AxisType
from ._mesh_options import current_mesh, forbidden_axes
from ._named_checks import check_spec, check_target, checked_memory_kind
from ._no_collectives import check_types
from ._placement_text import placement_text
from ._reshard import cast_explicit, moved_to, reshard_to, uncast_explicit, without_explicit_axes
from ._shardy_text import sharding_text
from ._spec import UNCONSTRAINED, PartitionSpec, UnreducedKind, checked_kind, entry_of

if TYPE_CHECKING:
    from primax_core.extend.runtime import Tiling

Index = tuple[slice, ...]
Shape = tuple[int, ...]

_SHAPES: Final = 256
"""Shapes whose indices a sharding keeps."""

_instances: Final[Interned[NamedSharding]] = Interned()
_from_tilings: Final = bounded_cache()


class NamedSharding(Sharding):
    """A mesh, and for each axis of an array the mesh axes along which it is divided.

    Equal shardings are one object. Over an :class:`AbstractMesh` it describes a type; what needs
    devices raises ``ValueError``.

    Args:
      mesh: a :class:`Mesh` or :class:`AbstractMesh`.
      spec: a :class:`PartitionSpec`.
      memory_kind: the memory kind of the shards, by default the one in which executables compute.

    Raises:
      TypeError: if an argument has the wrong type.
      ValueError: if the spec names an axis that the mesh does not have, or one axis twice; if
        unreduced or reduced axes do not have the type ``Explicit``; if it has unconstrained entries
        and no axis has the type ``Auto``; or for a memory kind that the devices do not have.

    >>> mesh = AbstractMesh((2, 4), ("x", "y"))
    >>> NamedSharding(mesh, PartitionSpec("y", "x")).shard_shape((8, 8))
    (2, 4)
    """

    __slots__ = ("_indices", "_memory_kind", "_tilings", "mesh", "spec")

    mesh: Mesh | AbstractMesh
    spec: PartitionSpec
    _memory_kind: str | None
    _indices: dict[Shape, dict[Device, Index]]
    _tilings: dict[int, Tiling]

    def __new__(
        cls, mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: str | None = None
    ) -> NamedSharding:
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"NamedSharding needs a PartitionSpec, got {spec!r} of type {type(spec).__name__}: "
                "write PartitionSpec('x', None)"
            )
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError(
                f"NamedSharding needs a Mesh or AbstractMesh, got {mesh!r} of type "
                f"{type(mesh).__name__}"
            )
        known = _instances.get((mesh, spec, memory_kind))
        if known is not None:
            return known
        check_spec(mesh, spec)
        kind = checked_memory_kind(mesh, memory_kind)
        self = object.__new__(cls)
        self.mesh, self.spec, self._memory_kind = mesh, spec, kind
        self._by_rank, self._indices, self._tilings = {}, {}, {}
        self = _instances.add((mesh, spec, kind), lambda: self)
        return _instances.add((mesh, spec, memory_kind), lambda: self)

    # Devices

    @property
    def _devices(self) -> tuple[Device, ...]:
        mesh = self.mesh
        if isinstance(mesh, AbstractMesh):
            raise self._without_devices()
        return mesh._flat_devices_tuple

    def _without_devices(self) -> ValueError:
        return ValueError(
            f"{self} has no devices: its mesh is abstract. Use one over a Mesh; jit also takes it "
            "in `with set_mesh(mesh):`"
        )

    @property
    def _is_abstract(self) -> bool:
        return isinstance(self.mesh, AbstractMesh)

    def _over_devices_of(self, shardings: Sequence[Sharding]) -> Sharding:
        if not self._is_abstract:
            return self
        meshes = [s.mesh for s in shardings if isinstance(s, NamedSharding)]
        for mesh in (*meshes, current_mesh.value):
            if isinstance(mesh, Mesh) and mesh.shape_tuple == self.mesh.shape_tuple:
                return self.update(mesh=mesh)
        return self

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        return self._devices

    @property
    def num_devices(self) -> int:
        """Number of devices, also over an abstract mesh."""
        return self.mesh.size

    @property
    def memory_kind(self) -> str | None:
        """The memory kind of the shards."""
        return self._memory_kind

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same mesh and spec with another memory kind."""
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(self, **changes: Any) -> NamedSharding:
        """A sharding with some of ``mesh``, ``spec`` and ``memory_kind`` replaced.

        Raises:
          TypeError: for other names.

        >>> sharding = NamedSharding(AbstractMesh((2,), ("x",)), PartitionSpec("x"))
        >>> sharding.update(spec=PartitionSpec()).spec
        P()
        """
        parts = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self._memory_kind}
        if unknown := changes.keys() - parts.keys():
            raise TypeError(
                f"NamedSharding.update takes mesh, spec and memory_kind, not {sorted(unknown)}"
            )
        return NamedSharding(**{**parts, **changes})

    # Division of arrays

    @property
    def _summed(self) -> NamedSharding | None:
        spec = self.spec
        if not spec.unreduced:
            return None
        return self.update(spec=spec.update(unreduced=frozenset(), unreduced_kind=None))

    def _reshard(self, array: Any) -> Any:
        return moved_to(array, self)

    @property
    def is_fully_replicated(self) -> bool:
        """True if every device has the whole array."""
        sizes = self.mesh._sizes
        return all(sizes[n] == 1 for n in (*self.spec.names, *self.spec.unreduced))

    @property
    def replicated_axes(self) -> frozenset[Hashable]:
        """The mesh axes along which all devices have the same part."""
        spec = self.spec
        used = {*spec.names, *spec.unreduced, *spec.reduced}
        return frozenset(self.mesh.axis_names) - used

    def _tiling(self, ndim: int) -> Tiling:
        tiling = self._tilings.get(ndim)
        if tiling is None:
            position = {name: i for i, name in enumerate(self.mesh.axis_names)}
            axes = [[position[n] for n in names] for names in self.spec.axes(ndim)]
            unreduced = sorted(position[n] for n in self.spec.unreduced)
            sizes = self.mesh.axis_sizes
            tiling = self._tilings[ndim] = runtime.Tiling.along_mesh(sizes, axes, unreduced)
        return tiling

    def _checked_tiles(self, shape: Shape) -> tuple[int, ...]:
        tiles = self._tiling(len(shape)).tiles
        for axis, (size, n) in enumerate(zip(shape, tiles)):
            if size % n:
                raise ValueError(self._indivisible(shape, axis, n))
        return tiles

    def _indivisible(self, shape: Shape, axis: int, n: int) -> str:
        names = self.spec.axes(len(shape))[axis]
        along = " and ".join(f"{name!r} of size {self.mesh._sizes[name]}" for name in names)
        what = "axis" if len(names) == 1 else "axes"
        padded = -(-shape[axis] // n) * n
        return (
            f"axis {axis} of an array of shape {shape} has the size {shape[axis]}, which is not "
            f"divisible by {n}: {self.spec} divides it along the mesh {what} {along}. Pad it to "
            f"{padded}, or use a spec that does not divide it"
        )

    def shard_shape(self, global_shape: Shape) -> Shape:
        """Shape of the shard of one device.

        Raises:
          ValueError: if the spec has more entries than the array axes, or a size is not divisible.
        """
        shape = tuple(global_shape)
        return tuple([size // n for size, n in zip(shape, self._checked_tiles(shape))])

    def devices_indices_map(self, global_shape: Shape) -> dict[Device, Index]:
        """The index of each device's shard of an array of this shape.

        Raises:
          ValueError: if the spec has more entries than the array axes, or a size is not divisible.
        """
        shape = tuple(global_shape)
        indices = self._indices.get(shape)
        if indices is None:
            if len(self._indices) > _SHAPES:
                self._indices.clear()
            indices = self._indices[shape] = self._indices_of(shape)
        return dict(indices)

    def _indices_of(self, shape: Shape) -> dict[Device, Index]:
        devices, tiles = self._devices, self._checked_tiles(shape)
        slices = [
            [slice(None)] if n == 1 else [slice(d // n * i, d // n * (i + 1)) for i in range(n)]
            for d, n in zip(shape, tiles)
        ]
        order = self._tiling(len(shape)).order
        index_of: list[Index] = [()] * len(devices)
        for part in np.ndindex(*tiles):
            index = tuple([slices[axis][i] for axis, i in enumerate(part)])
            for partition in order[part].tolist():
                index_of[partition] = index
        return dict(zip(devices, index_of))

    def _mesh_axes(self) -> tuple[tuple[Hashable, ...], np.ndarray[Any, Any]] | None:
        mesh = self.mesh
        return None if isinstance(mesh, AbstractMesh) else (mesh.axis_names, mesh.devices)

    def _equivalence(self, ndim: int) -> tuple[Any, ...]:
        mesh = self.mesh
        devices = mesh.axis_sizes if isinstance(mesh, AbstractMesh) else self._devices
        kind = self.spec.unreduced_kind
        return devices, self._memory_kind, kind, self._hlo_sharding(ndim)

    def _for_result(self, what: str) -> NamedSharding:
        kinds = self.mesh._name_to_type
        for name in (*self.spec.names, *self.spec.unreduced, *self.spec.reduced):
            if kinds[name] is not AxisType.Explicit:
                raise ValueError(
                    f"{what} got the sharding {self.spec}, but the mesh axis {name!r} has the type "
                    f"{kinds[name]!r}: the sharding of a result can only name axes of the type "
                    "Explicit. Use with_sharding_constraint for axes of the type Auto"
                )
        return self

    def _permuted(self, axes: Sequence[int]) -> NamedSharding:
        entries = [*self.spec, *(None,) * (len(axes) - len(self.spec))]
        spec = self.spec.update(partitions=[entries[i] for i in axes])
        return NamedSharding(self.mesh, spec, memory_kind=self._memory_kind)

    def _applied(self, fun: Callable[..., Any], *operands: Any) -> Any:
        out = reshard_to(fun(*map(without_explicit_axes, operands)), self)
        if forbidden_axes.value:
            name = getattr(fun, "__name__", "a function with out_sharding")
            check_types(name, [typeof(x) for x in operands], [typeof(out)])
        return out

    def _check_axes(self, what: str) -> None:
        check_target(what, self.spec)

    def _check_constraint(self, aval: Any) -> bool:
        if not self.mesh.are_all_axes_explicit:
            return True
        own = self._placement(aval.ndim)
        spec = aval.placement.spec if is_placed(aval) else ((),) * aval.ndim
        if spec != (((),) * aval.ndim if own is unplaced else own.spec):
            raise AssertionError(
                "with_sharding_constraint is an assertion where all mesh axes have the type "
                f"Explicit: the value has the type {aval.str_short()}, which is not divided as "
                f"{self.spec} says. Use reshard(x, spec) to divide it otherwise"
            )
        return True

    # Compilation

    def _hlo_sharding(self, ndim: int) -> Any:
        return self._tiling(ndim).to_xla()

    def _sdy(self, ndim: int, open_axes: frozenset[int] = frozenset()) -> str | None:
        return sharding_text(self.mesh, self.spec, ndim, open_axes)

    def _replicated(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec(), memory_kind=self._memory_kind)

    def _from_xla(self, tiling: Tiling) -> NamedSharding:
        key = (self.mesh, self._memory_kind, tiling.key)
        known: NamedSharding | None = _from_tilings.get(key)
        if known is None:
            from ._mesh_of_tiling import mesh_and_spec  # loaded on first use

            if not isinstance(self.mesh, Mesh):
                raise self._without_devices()
            mesh, spec = mesh_and_spec(self.mesh, tiling)
            known = _from_tilings[key] = NamedSharding(mesh, spec, memory_kind=self._memory_kind)
        return known

    def _batched(self, axis: int, name: Any = None) -> NamedSharding:
        entries = list(self.spec)
        entries += [None] * (axis - len(entries))
        names = name if isinstance(name, tuple) else (name,)
        spec = self.spec.update(
            partitions=[*entries[:axis], name, *entries[axis:]],
            reduced=self.spec.reduced.difference(names),  # the examples are on different devices
        )
        return NamedSharding(self.mesh, spec, memory_kind=self._memory_kind)

    def _placement(self, ndim: int) -> Any:
        explicit = self.mesh.explicit_axes
        if not explicit:
            return unplaced
        spec = self.spec
        names = [tuple([n for n in axes if n in explicit]) for axes in spec.axes(ndim)]
        return Placement.of(
            self.mesh.abstract_mesh,
            names,
            unreduced=spec.unreduced,
            reduced=spec.reduced,
            unreduced_kind=spec.unreduced_kind,
        )

    def _of_placement(self, placement: Any, ndim: int) -> NamedSharding | None:
        if placement is unplaced:  # equal on all devices along explicit axes
            if not self.mesh.are_all_axes_explicit:
                return None
            return NamedSharding(self.mesh, PartitionSpec(*(None,) * ndim), self._memory_kind)
        entries = [entry_of(names) for names in placement.spec]
        if AxisType.Auto in self.mesh.axis_types:
            entries = [UNCONSTRAINED if entry is None else entry for entry in entries]
        spec = PartitionSpec(
            *entries,
            unreduced=placement.explicit(placement.unreduced),
            reduced=placement.explicit(placement.reduced),
            unreduced_kind=placement.kind_in_spec,
        )
        return NamedSharding(self.mesh, spec, memory_kind=self._memory_kind)

    def _key_on_disk(self) -> tuple[Any, ...]:
        return self.mesh, self.spec, self._memory_kind

    # Copies

    def __reduce__(self) -> tuple[Any, ...]:
        kind = self._memory_kind
        if isinstance(self.mesh, Mesh) and not self.mesh.empty and self._on_default_memory():
            kind = None
        return NamedSharding, (self.mesh, self.spec, kind)

    def __copy__(self) -> NamedSharding:
        return self

    def __deepcopy__(self, memo: Any) -> NamedSharding:
        return self

    def _repr_html_(self) -> str:
        """The sharding in a notebook."""
        from ._html import sharding_html  # loaded on first use

        return sharding_html(self)

    def __repr__(self) -> str:
        kind = "" if self._memory_kind is None else f", memory_kind={self._memory_kind}"
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{kind})"


def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """The sharding with the whole array on one device.

    Args:
      device: a device.
      memory_kind: the memory kind of the array, by default the one in which executables compute.

    Raises:
      TypeError: if ``device`` is not a device.
      ValueError: if it does not have the memory kind.

    >>> from primax_core import devices
    >>> make_single_device_sharding(devices()[0]).num_devices
    1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


# Placements

_placements: Final[Interned[Placement]] = Interned()
_NONE: Final[frozenset[Hashable]] = frozenset()


class Placement(PlacementOfTypes):
    """The mesh axes in the type of a value. Equal placements are one object.

    Attributes:
      mesh: an abstract mesh.
      spec: for each axis of the value, the explicit mesh axes that divide it.
      varying: the manual axes along which the values of devices differ.
      unreduced: the explicit and manual axes along which devices have partial values.
      reduced: the explicit and manual axes along which the cotangent is unreduced.
      unreduced_kind: the reduction of the unreduced axes.
    """

    __slots__ = (
        "mesh", "reduced", "spec", "unreduced", "unreduced_kind", "varying"
    )  # fmt: skip

    mesh: AbstractMesh
    spec: tuple[tuple[Hashable, ...], ...]
    varying: frozenset[Hashable]
    unreduced: frozenset[Hashable]
    reduced: frozenset[Hashable]
    unreduced_kind: UnreducedKind | None

    is_fully_replicated = False

    @classmethod
    def of(
        cls,
        mesh: AbstractMesh,
        spec: Sequence[tuple[Hashable, ...]],
        *,
        varying: Collection[Hashable] = _NONE,
        unreduced: Collection[Hashable] = _NONE,
        reduced: Collection[Hashable] = _NONE,
        unreduced_kind: UnreducedKind | None = None,
    ) -> Any:
        """The placement with these attributes; `unplaced` if they say nothing.

        >>> mesh = AbstractMesh((2, 4), ("x", "y"))
        >>> Placement.of(mesh, [("x",), ()], reduced={"y"}).text((8, 16))
        '[8@x,16]{R:y}'
        """
        if not (any(spec) or varying or unreduced or reduced):
            return unplaced
        partial = frozenset(unreduced)
        kind = checked_kind(unreduced_kind, partial)
        key = (mesh, tuple(spec), frozenset(varying), partial, frozenset(reduced), kind)
        known = _placements.get(key)
        if known is not None:
            return known
        self = object.__new__(cls)
        self.mesh, self.spec, self.varying, self.unreduced, self.reduced, self.unreduced_kind = key
        return _placements.add(key, lambda: self)

    def update(self, **changes: Any) -> Any:
        """A placement with some attributes replaced."""
        unreduced = changes.get("unreduced", self.unreduced)
        parts = {
            "mesh": self.mesh,
            "spec": self.spec,
            "varying": self.varying,
            "unreduced": unreduced,
            "reduced": self.reduced,
            "unreduced_kind": self.unreduced_kind if unreduced else None,
        }
        return Placement.of(**{**parts, **changes})

    @property
    def sharding(self) -> NamedSharding:
        """The sharding that the type of such a value has: over the abstract mesh."""
        spec = PartitionSpec(
            *map(entry_of, self.spec),
            unreduced=self.explicit(self.unreduced),
            reduced=self.explicit(self.reduced),
            unreduced_kind=self.kind_in_spec,
        )
        return NamedSharding(self.mesh, spec)

    def explicit(self, names: frozenset[Hashable]) -> frozenset[Hashable]:
        """Those of some axes that are explicit."""
        return names & {*self.mesh.explicit_axes} if names else names

    def manual(self, names: frozenset[Hashable]) -> frozenset[Hashable]:
        """Those of some axes that are manual."""
        return names & {*self.mesh.manual_axes} if names else names

    @property
    def kind_in_spec(self) -> UnreducedKind | None:
        """The reduction of the unreduced explicit axes; ``None`` if there are none."""
        return self.unreduced_kind if self.explicit(self.unreduced) else None

    def text(self, shape: Sequence[Any]) -> str:
        """A shape with the placement, as in ``f32[8@x,16]{V:y}``."""
        return placement_text(
            shape,
            self.spec,
            self.mesh.axis_names,
            {"V": self.varying, _unreduced_mark(self.unreduced_kind): self.unreduced}
            | {"R": self.reduced},
        )

    def without_axis(self, i: int) -> Any:
        """The placement of one slice along axis ``i``."""
        return self.update(spec=(*self.spec[:i], *self.spec[i + 1 :]))

    def with_axis(self, i: int) -> Any:
        """The placement of values that are stacked along a new axis ``i``."""
        return self.update(spec=(*self.spec[:i], (), *self.spec[i:]))

    def only_axis(self, i: int) -> Any:
        """The placement of a vector that is divided as axis ``i``; ``None`` if it is not."""
        return Placement.of(self.mesh, [self.spec[i]]) if self.spec[i] else None

    def stacked(self, placement: Any, ndim: int, i: int) -> Any:
        """The placement of values stacked along a new axis ``i`` that is divided as this vector."""
        if placement is unplaced:
            return Placement.of(self.mesh, [*((),) * i, self.spec[0], *((),) * (ndim - i)])
        return placement.update(spec=(*placement.spec[:i], self.spec[0], *placement.spec[i:]))

    def cast(self, x: Any) -> Any:
        """A value of another placement, or of none, as one of this placement.

        Raises:
          TypeError: if that needs a reduction.
        """
        x = cast_explicit(x, self)
        actual = typeof(x).placement
        return cast_manual(x, self, None if actual is unplaced else actual)

    def uncast(self, x: Any) -> Any:
        """A value of this placement as one that is whole on each device.

        Raises:
          TypeError: if it varies along manual axes.
        """
        x = uncast_explicit(x)
        if typeof(x).placement is unplaced:
            return x
        raise TypeError(
            f"a value of type {typeof(x)} is needed with a type that says nothing: sum it with "
            "lax.psum along the axes along which it varies"
        )

    def difference(self, expected: Any, actual: Any) -> str:
        """The difference of two types, and how to mend it, for messages."""
        if spec_of(expected) != spec_of(actual):
            return (
                "the explicit mesh axes that divide them do not match; use reshard(x, spec) to "
                "divide one as the other"
            )
        return difference_of_manual(expected, actual, self.mesh)

    @property
    def is_partial(self) -> bool:
        """True if the value is unreduced along explicit axes."""
        return bool(self.explicit(self.unreduced))

    @property
    def cotangent(self) -> Any:
        """The placement of cotangents: unreduced and reduced axes are exchanged.

        In a region of manual axes the cotangent is not unreduced along the others.
        """
        reduced = self.manual(self.reduced) if self.mesh.manual_axes else self.reduced
        kind = self.unreduced_kind if reduced else None
        return self.update(unreduced=reduced, reduced=self.unreduced, unreduced_kind=kind)

    def __reduce__(self) -> tuple[Any, ...]:
        names = (self.varying, self.unreduced, self.reduced)
        return _restored_placement, (self.mesh, self.spec, *names, self.unreduced_kind)

    def __copy__(self) -> Placement:
        return self

    def __deepcopy__(self, memo: Any) -> Placement:
        return self

    def __repr__(self) -> str:
        return f"Placement({self.text(['_'] * len(self.spec))}, {self.mesh})"


def _unreduced_mark(kind: UnreducedKind | None) -> str:
    return "U" if kind in (None, UnreducedKind.sum) else f"U_{kind.name}"


def _restored_placement(mesh, spec, varying, unreduced, reduced, kind):  # type: ignore[no-untyped-def]
    return Placement.of(
        mesh, spec, varying=varying, unreduced=unreduced, reduced=reduced, unreduced_kind=kind
    )
