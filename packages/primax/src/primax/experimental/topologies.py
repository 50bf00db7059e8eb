"""Descriptions of sets of devices: the reference's ``jax.experimental.topologies``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import primax_core as _core
from primax_core import Device as Device


class TopologyDescription:
    """A set of devices that programs may be compiled for."""

    def __init__(self, devices: Sequence[Any]) -> None:
        self.devices: list[Any] = list(devices)

    def __repr__(self) -> str:
        return f"TopologyDescription({self.devices})"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices of this process, of a platform or of the default one."""
    return TopologyDescription(_core.devices(platform))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> TopologyDescription:
    """The devices of a named topology that need not be attached.

    Args:
      topology_name: a name of the platform's; ``""`` for what is attached.

    Raises:
      NotImplementedError: for the CPU, and for topologies that are not attached.
    """
    attached = get_attached_topology(platform)
    found = attached.devices[0].platform
    raise NotImplementedError(
        f"topology {topology_name!r} not implemented for {platform or found}: programs are "
        "compiled for devices that are attached; see get_attached_topology"
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: Sequence[str],
    *,
    contiguous_submeshes: bool = False,
) -> NoReturn:
    """A mesh of the topology's devices, which are not part of this version.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        "make_mesh: this version of Primax computes on one device at a time, without meshes"
    )
