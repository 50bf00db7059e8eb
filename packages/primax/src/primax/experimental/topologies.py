"""Device topologies: the reference's ``jax.experimental.topologies``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import primax_core as _core
from primax_core import Device as Device

from .._several_devices import EXTRA, WHEEL
from .._wheels import wheel as _wheel

if TYPE_CHECKING:
    from primax_distributed import Mesh


class TopologyDescription:
    """A set of target devices for compilation."""

    def __init__(self, devices: Sequence[Any]) -> None:
        self.devices: list[Any] = list(devices)

    def __repr__(self) -> str:
        return f"TopologyDescription({self.devices})"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Return the devices of this process, of a platform or the default platform."""
    return TopologyDescription(_core.devices(platform))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> TopologyDescription:
    """Return the devices of a named topology, which need not be attached.

    Args:
      topology_name: a topology name of the platform; ``""`` for attached devices.

    Raises:
      NotImplementedError: for the CPU, and for topologies that are not attached.
    """
    attached = get_attached_topology(platform)
    available = attached.devices[0].platform
    raise NotImplementedError(
        f"topology {topology_name!r} not implemented for {platform or available}: functions are "
        "compiled for attached devices only; see get_attached_topology"
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: Sequence[str],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """Create a mesh of the topology's devices.

    Args:
      topo: the topology.
      mesh_shape: sizes of the axes, whose product is the number of devices.
      axis_names: names of the axes.
      contiguous_submeshes: see :func:`primax.experimental.mesh_utils.create_device_mesh`.

    Raises:
      ImportError: if ``primax_distributed`` is not installed.
      ValueError: if the sizes do not fit.
    """
    distributed = _wheel(WHEEL, EXTRA)
    devices = distributed.mesh_utils.create_device_mesh(
        mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes
    )
    mesh: Mesh = distributed.Mesh(devices, axis_names)
    return mesh
