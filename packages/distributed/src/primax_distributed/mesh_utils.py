"""Orders of devices in meshes, so that neighbours along an axis are connected directly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from primax_core import devices as all_devices

from ._topology import Topology, assignments, blocks_of_processes, ring

DeviceArray: TypeAlias = np.ndarray[Any, Any]
Handler: TypeAlias = Callable[..., "DeviceArray | None"]

_TRAY: Final = (0, 1, 2, 3, 6, 7, 4, 5)
"""Positions of the 8 cores of a tray of 2x2 chips along a ring."""


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> DeviceArray:
    """Arrange devices in an array whose axes follow the connections between them.

    On TPUs each axis of the mesh is assigned to axes of the torus that its size fills, the last
    axis first; small topologies are arranged in a ring. Other devices keep their order.

    Args:
      mesh_shape: sizes of the axes; order them by increasing communication.
      devices: the devices, by default all of the default platform.
      contiguous_submeshes: require that the devices of each process are a contiguous part of the
        array.
      allow_split_physical_axes: allow that two axes of the mesh share an axis of the torus.

    Returns:
      Device[*mesh_shape], a NumPy array for the constructor of ``Mesh``.

    Raises:
      ValueError: if the number of devices is not the product of the sizes; on TPUs, if the axes of
        the torus cannot be assigned, or the parts of processes are not contiguous.

    >>> from primax_core import devices
    >>> create_device_mesh((1, 1), devices()[:1]).shape
    (1, 1)
    """
    shape = tuple(mesh_shape)
    ordered = list(all_devices() if devices is None else devices)
    if math.prod(shape) != len(ordered) or not ordered:
        raise ValueError(
            f"a device mesh of shape {shape} needs {math.prod(shape)} devices, got {len(ordered)}: "
            "pass as many with the argument devices"
        )
    if ordered[0].platform != "tpu":
        return _array(ordered, shape)
    handler = device_kind_handler_dict.get(ordered[0].device_kind)
    arranged = None
    if handler is not None and not contiguous_submeshes:
        arranged = handler(shape, ordered)
    if arranged is None:
        arranged = _along_torus(shape, ordered, contiguous_submeshes, allow_split_physical_axes)
    return arranged


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> DeviceArray:
    """Arrange devices of several slices or processes, which a slower network connects.

    Args:
      mesh_shape: sizes of the axes within one slice.
      dcn_mesh_shape: sizes of the same axes over the slices; their product is the number of slices.
        Missing sizes at the front are 1.
      devices: the devices, by default all of the default platform.
      process_is_granule: take the devices of one process together instead of those of one slice.
      should_sort_granules_by_key: order slices by their number instead of their first device.
      allow_split_physical_axes: see :func:`create_device_mesh`.

    Returns:
      A NumPy array of devices, whose axis ``i`` has the size
      ``dcn_mesh_shape[i] * mesh_shape[i]``; the position of the slice is the major part.

    Raises:
      ValueError: if a device has no slice, or the numbers do not fit.

    >>> from primax_core import devices
    >>> create_hybrid_device_mesh((1,), (1,), devices()[:1], process_is_granule=True).shape
    (1,)
    """
    ordered = list(all_devices() if devices is None else devices)
    inner, outer = tuple(mesh_shape), tuple(dcn_mesh_shape)
    rank = max(len(inner), len(outer))
    inner, outer = ((1,) * (rank - len(s)) + s for s in (inner, outer))
    granules = _granules(ordered, process_is_granule, should_sort_granules_by_key)
    if len(granules) != math.prod(outer):
        what = "processes" if process_is_granule else "slices"
        raise ValueError(
            f"a device mesh over {what} of shape {outer} needs {math.prod(outer)} {what}, but the "
            f"devices belong to {len(granules)}"
        )
    mesh = np.empty([o * i for o, i in zip(outer, inner)], dtype=object)
    for position, granule in zip(np.ndindex(outer), granules):
        part = create_device_mesh(
            inner, granule, allow_split_physical_axes=allow_split_physical_axes
        )
        mesh[tuple([slice(p * i, (p + 1) * i) for p, i in zip(position, inner)])] = part
    return mesh


def _granules(devices: list[Any], of_process: bool, by_key: bool) -> list[list[Any]]:
    attribute = "process_index" if of_process else "slice_index"
    granules: dict[Any, list[Any]] = {}
    for device in devices:
        key = getattr(device, attribute, None)
        if key is None:
            raise ValueError(
                f"the device {device!r} has no {attribute}: for devices without slices set "
                "process_is_granule=True"
            )
        granules.setdefault(key, []).append(device)
    return [granules[key] for key in (sorted(granules) if by_key else granules)]


def _array(devices: Sequence[Any], shape: tuple[int, ...]) -> DeviceArray:
    array = np.empty(len(devices), dtype=object)
    array[:] = devices
    return array.reshape(shape)


def _along_torus(
    shape: tuple[int, ...], devices: list[Any], contiguous: bool, split: bool
) -> DeviceArray:
    topology = Topology.of(devices)
    if topology is None:  # a part of a slice that is no box
        if contiguous:
            raise ValueError(
                f"the {len(devices)} devices are no box of the torus, so contiguous_submeshes=True "
                "cannot be satisfied"
            )
        return _array(devices, shape)
    meshes = _meshes(topology, shape, split)
    if contiguous:
        meshes = filter(blocks_of_processes, meshes)
    mesh = next(meshes, None)
    if mesh is None:
        raise ValueError(_unassignable(shape, topology.shape, contiguous, split))
    return mesh


def _meshes(topology: Topology, shape: tuple[int, ...], split: bool) -> Iterator[DeviceArray]:
    """All arrangements along the axes of a torus, without split axes first."""
    for splitting in (False, True) if split else (False,):
        for chosen in assignments(shape, topology.shape, splitting):
            yield topology.arranged(chosen).reshape(shape)


def _unassignable(
    shape: tuple[int, ...], torus: tuple[int, ...], contiguous: bool, split: bool
) -> str:
    text = "x".join(map(str, torus))
    if contiguous:
        return (
            f"no arrangement of the torus {text} as {shape} has a contiguous part for each process"
        )
    hint = "" if split else "; with allow_split_physical_axes=True a part of an axis is enough"
    return (
        f"the torus {text} cannot be arranged as {shape}: each size must be the product of some "
        f"axes of the torus{hint}"
    )


# Arrangements of small topologies


def _two_cores(mesh_shape: tuple[int, ...], devices: list[Any], **_: Any) -> DeviceArray | None:
    """v2 and v3, in their order; trays are rings."""
    if len(devices) == len(_TRAY):
        return _array([devices[i] for i in _TRAY], mesh_shape)
    mesh = _array(devices, mesh_shape)
    return mesh[..., _TRAY] if mesh_shape and mesh_shape[-1] == len(_TRAY) else mesh


def _two_cores_on_torus(
    mesh_shape: tuple[int, ...], devices: list[Any], **_: Any
) -> DeviceArray | None:
    """v7: layers of 2x2 chips with two cores are rings."""
    topology = Topology.of(devices)
    if topology is None or topology.shape[:2] != (2, 2) or topology.shape[3:] != (2,):
        return None
    layers = topology.array.transpose(2, 1, 0, 3).reshape(-1, len(_TRAY))
    return layers[:, _TRAY].reshape(mesh_shape)


def _four_in_a_ring(
    mesh_shape: tuple[int, ...], devices: list[Any], **_: Any
) -> DeviceArray | None:
    """Hosts of 2x2 chips."""
    return _rings(mesh_shape, devices, (4,), ())


def _plane(mesh_shape: tuple[int, ...], devices: list[Any], **_: Any) -> DeviceArray | None:
    """v5e and v6e, whose topologies have two axes."""
    return _rings(mesh_shape, devices, (4, 8), (16,))


def _rings(
    mesh_shape: tuple[int, ...],
    devices: list[Any],
    sizes: tuple[int, ...],
    sizes_of_one_axis: tuple[int, ...],
) -> DeviceArray | None:
    axes = [size for size in mesh_shape if size > 1]
    if len(devices) not in sizes and (len(devices) not in sizes_of_one_axis or len(axes) > 1):
        return None
    topology = Topology.of(devices)
    path = None if topology is None else ring(topology.array)
    return None if path is None else _array(path, mesh_shape)


def _cube(mesh_shape: tuple[int, ...], devices: list[Any], **_: Any) -> DeviceArray | None:
    """v5p: a cube of 8 chips is a ring."""
    topology = Topology.of(devices) if len(devices) == 8 else None
    if topology is None or topology.shape != (2, 2, 2):
        return None
    bottom, top = (ring(topology.array[:, :, z : z + 1]) for z in range(2))
    assert bottom is not None and top is not None
    return _array([*bottom, *reversed(top)], mesh_shape)


device_kind_handler_dict: Final[Mapping[str, Handler]] = {
    "TPU v2": _two_cores,
    "TPU v3": _two_cores,
    "TPU v4 lite": _four_in_a_ring,
    "TPU v5": _cube,
    "TPU v5 lite": _plane,
    "TPU v5e": _plane,
    "TPU v5p": _cube,
    "TPU v6 lite": _plane,
    "TPU7": _two_cores_on_torus,
    "TPU7x": _two_cores_on_torus,
    "TPU8i": _four_in_a_ring,
}
"""Functions ``(mesh_shape, devices) -> array or None`` for small topologies, by kind of device."""
