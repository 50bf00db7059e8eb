"""Checks of the arguments of ``NamedSharding``."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from primax_core import Device
from primax_core.extend.runtime import SingleDeviceSharding
from primax_core.extend.traces import current_trace

from ._abstract_mesh import AbstractMesh
from ._mesh import Mesh
from ._mesh_axes import AxisType
from ._mesh_options import current_abstract_mesh
from ._reshard import cannot_become_partial
from ._spec import PartitionSpec, UnreducedKind

_MEMORY_KINDS: Final = ("device", "pinned_host", "unpinned_host")


def check_spec(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    """Raise ``ValueError`` unless a spec divides along axes of a mesh, each once."""
    sizes = mesh._sizes
    seen = set()
    for name in spec.names:
        if name not in sizes:
            raise ValueError(_unknown(f"{spec}", (name,), mesh))
        if name in seen:
            raise ValueError(
                f"{spec} divides along the mesh axis {name!r} twice: each mesh axis can divide one "
                "axis of an array"
            )
        seen.add(name)
    for role, names in (("unreduced", spec.unreduced), ("reduced", spec.reduced)):
        if unknown := [n for n in names if n not in sizes]:
            raise ValueError(_unknown(f"{role} of {spec}", unknown, mesh))
        if others := names - {*mesh.explicit_axes}:
            raise ValueError(
                f"{role} of {spec} contains {_list(others)}, but only axes of the type Explicit "
                f"can be {role}; the mesh is {mesh}"
            )
    if not spec.is_constrained and mesh.axis_types and AxisType.Auto not in mesh.axis_types:
        raise ValueError(
            f"{spec} has an unconstrained entry, but no axis of {mesh} has the type Auto, along "
            "which the compiler could divide it: use None or the name of an axis"
        )


def check_target(what: str, spec: PartitionSpec) -> None:
    """Check the spec to which values are moved.

    Raises:
      ValueError: if it names axes that are manual in this context.
      ShardingTypeError: if traced values become partial ones with it that are not summed.
    """
    if spec.unreduced_kind not in (None, UnreducedKind.sum) and current_trace() is not None:
        raise cannot_become_partial("a traced value", spec)
    mesh = current_abstract_mesh.value
    manual = {*mesh.manual_axes} if mesh is not None else ()
    if names := [name for name in spec.names if name in manual]:
        raise ValueError(
            f"{what}: {spec} divides along {_list(names)}, but inside of shard_map over this axis "
            "each device has its own part of an array. Leave the axis out of the spec; to divide "
            "values in another way, use a collective such as lax.all_to_all, or several shard_maps"
        )


def _unknown(where: str, names: Iterable[Hashable], mesh: Mesh | AbstractMesh) -> str:
    hint = f"its axes are {mesh.axis_names}" if mesh.axis_names else "it has no axes"
    return f"{where} contains {_list(names)}, which {mesh} does not have: {hint}"


def _list(names: Iterable[Hashable]) -> str:
    return ", ".join(sorted(map(repr, names)))


def checked_memory_kind(mesh: Mesh | AbstractMesh, kind: str | None) -> str | None:
    """The memory kind on the devices of a mesh; ``None`` is their default.

    Raises:
      ValueError: if they do not have it.
    """
    if isinstance(mesh, Mesh) and not mesh.empty:
        device = mesh._flat_devices_tuple[0]
        if isinstance(device, Device):
            return SingleDeviceSharding(device, memory_kind=kind).memory_kind
    if kind is not None and kind not in _MEMORY_KINDS:
        raise ValueError(
            f"there is no memory kind {kind!r}: the kinds are {', '.join(_MEMORY_KINDS)}"
        )
    return kind
