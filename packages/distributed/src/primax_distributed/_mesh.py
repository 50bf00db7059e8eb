"""Meshes: devices along named axes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from contextlib import ContextDecorator
from typing import Any, Final

import numpy as np

from primax_core import Device, devices as all_devices
from primax_core.extend.runtime import client_of

from ._abstract_mesh import AbstractMesh, abstract_device_of
from ._interning import Interned, put
from ._mesh_axes import Axes, AxisType, BaseMesh, checked_names
from ._mesh_options import enter_mesh, exit_mesh

_meshes: Final[Interned[Mesh]] = Interned()


class Mesh(BaseMesh, ContextDecorator):
    """Devices along named axes.

    Equal meshes are one object. ``with mesh:`` is deprecated; use :func:`set_mesh`.

    Args:
      devices: devices in an array with one axis for each name; the attribute has it as a read-only
        NumPy array.
      axis_names: names of the axes; a string is one name.
      axis_types: an :class:`AxisType` for each axis; by default ``Auto``.

    Raises:
      TypeError: if a name or a type has the wrong type, or ``devices`` contains something else.
      ValueError: if the numbers of axes, names and types differ, or if a name or a device occurs
        twice.

    >>> from primax_core import devices
    >>> Mesh(devices()[:1], "x").abstract_mesh.shape["x"]
    1
    """

    __slots__ = ("_flat_devices_tuple", "abstract_mesh", "devices", "empty")

    devices: np.ndarray[Any, Any]
    abstract_mesh: AbstractMesh
    empty: bool
    _flat_devices_tuple: tuple[Device, ...]

    def __new__(
        cls,
        devices: Any,
        axis_names: str | Sequence[Hashable],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:
        array = _array_of(devices)
        names = checked_names("Mesh", axis_names)
        if array.ndim != len(names):
            raise ValueError(
                f"Mesh needs one name for each axis of devices, got an array of shape "
                f"{array.shape} and names {names}"
            )
        if array.size == 0 or (not names and array.item() is None):
            return _empty_mesh()
        axes = Axes("Mesh", array.shape, names, axis_types, AxisType.Auto)
        flat = tuple(array.flat)
        key = (*axes.key, flat)
        known = _meshes.get(key)
        if known is not None:
            return known
        _check_devices(flat)
        return _meshes.add(key, lambda: _new_mesh(cls, array, flat, axes))

    def _key_on_disk(self) -> tuple[Any, ...]:
        devices = [(d.platform, d.id, d.device_kind) for d in self._flat_devices_tuple]
        return *super()._key_on_disk(), devices

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self._flat_devices_tuple)

    @property
    def is_scalar(self) -> bool:
        """True if the mesh is one device without axes."""
        return not self.axis_names and not self.empty

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """int[*axis_sizes], the numbers of the devices."""
        ids = [device.id for device in self._flat_devices_tuple]
        return np.array(ids, np.int64).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process, in the order of the mesh."""
        return [d for d in self._flat_devices_tuple if _is_local(d)]

    @property
    def is_multi_process(self) -> bool:
        """True if a device belongs to another process."""
        return len(self.local_devices) != self.size

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh with the devices of this process.

        Raises:
          ValueError: if these devices are no sub-array of the mesh.
        """
        if not self.is_multi_process:
            return self
        local = np.vectorize(_is_local, otypes=[bool])(self.devices)
        others = [tuple(j for j in range(local.ndim) if j != i) for i in range(local.ndim)]
        indices = [np.flatnonzero(local.any(axis)) for axis in others]
        part = np.ix_(*indices)
        if not local.any() or not local[part].all():
            raise ValueError(
                f"the devices of this process, {self.local_devices}, are no sub-array of {self}: "
                "order the devices so that those of a process are contiguous (make_mesh does)"
            )
        return Mesh(self.devices[part], self.axis_names, self.axis_types)

    @property
    def _internal_device_list(self) -> tuple[Device, ...]:
        return self._flat_devices_tuple

    def update(
        self,
        devices: Any = None,
        axis_names: str | Sequence[Hashable] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:
        """A mesh with some arguments of the constructor replaced.

        >>> from primax_core import devices
        >>> str(Mesh(devices()[:1], "x").update(axis_names="y"))
        "Mesh('y': 1, axis_types=(Auto,))"
        """
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self) -> Mesh:
        enter_mesh(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        exit_mesh()

    def __reduce__(self) -> tuple[Any, ...]:
        ids = [(d.platform, d.id) for d in self._flat_devices_tuple]
        return _restored, (ids, self.axis_sizes, self.axis_names, self.axis_types)

    def _repr_html_(self) -> str:
        """The mesh in a notebook."""
        from ._html import mesh_html  # loaded on first use

        return mesh_html(self)

    def __repr__(self) -> str:
        types = "" if self.empty else f", axis_types={self.axis_types}"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"

    def __str__(self) -> str:
        return "Mesh()" if self.empty else f"Mesh({self._axes_text()})"


def _array_of(devices: Any) -> np.ndarray[Any, Any]:
    if isinstance(devices, np.ndarray):
        return devices
    return np.array(devices, dtype=object)


def _check_devices(devices: tuple[Any, ...]) -> None:
    seen = set()
    for device in devices:
        if not hasattr(device, "id") or not hasattr(device, "platform"):
            raise TypeError(
                f"Mesh needs an array of devices, got {device!r} of type "
                f"{type(device).__name__} in it; see primax.devices()"
            )
        if device in seen:
            raise ValueError(f"the device {device!r} occurs twice in a mesh")
        seen.add(device)


def _new_mesh(
    cls: type[Mesh], devices: np.ndarray[Any, Any], flat: tuple[Any, ...], axes: Axes
) -> Mesh:
    array = np.empty(axes.sizes, dtype=object)
    array[...] = devices
    array.flags.writeable = False
    self = object.__new__(cls)
    self._set_axes(axes)
    put(self, "devices", array)
    put(self, "empty", not flat)
    put(self, "_flat_devices_tuple", flat)
    abstract_device = abstract_device_of(flat) if axes.names else None
    abstract = AbstractMesh(*axes.key, abstract_device=abstract_device)
    put(self, "abstract_mesh", abstract)
    return self


def _empty_mesh() -> Mesh:
    axes = Axes("Mesh", (), (), (), AxisType.Auto)
    none = np.array(None, dtype=object)
    return _meshes.add((*axes.key, ()), lambda: _new_mesh(Mesh, none, (), axes))


def _restored(ids: list[tuple[str, int]], sizes: Any, names: Any, types: Any) -> Mesh:
    if not ids:
        return _empty_mesh()
    platforms = {platform for platform, _ in ids}
    present = {(p, d.id): d for p in platforms for d in client_of(p).devices()}
    missing = [f"{platform}:{i}" for platform, i in ids if (platform, i) not in present]
    if missing:
        raise RuntimeError(
            f"a mesh was pickled with devices that this process does not have: {', '.join(missing)}"
        )
    array = np.empty(len(ids), dtype=object)
    array[:] = [present[platform, i] for platform, i in ids]
    return Mesh(array.reshape(sizes), names, types)


def _is_local(device: Any) -> bool:
    return bool(device.process_index == device.client.process_index())


empty_mesh: Final = _empty_mesh()
"""The mesh without devices."""


def make_mesh(
    axis_sizes: Sequence[int],
    axis_names: str | Sequence[Hashable],
    axis_types: AxisType | Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """A mesh whose axes follow the connections between the devices.

    Args:
      axis_sizes: sizes of the axes; order them by increasing communication.
      axis_names: names of the axes.
      axis_types: an :class:`AxisType` for each axis; by default ``Explicit``.
      devices: the devices, by default all of the default platform. If there are more than the
        product of the sizes, the first ones are used.

    Raises:
      TypeError: if a size, name or type has the wrong type.
      ValueError: if there are too few devices, the numbers of sizes, names and types differ, or a
        name occurs twice.

    >>> str(make_mesh((1,), ("x",)))
    "Mesh('x': 1, axis_types=(Explicit,))"
    """
    axes = Axes("make_mesh", axis_sizes, axis_names, axis_types, AxisType.Explicit)
    available = list(all_devices() if devices is None else devices)
    size = math.prod(axes.sizes)
    if len(available) < size:
        platform = available[0].platform if available else "cpu"
        hint = " (on CPU, set the option num_cpu_devices first)" if platform == "cpu" else ""
        raise ValueError(
            f"make_mesh needs {size} devices for axes of sizes {axes.sizes}, but there are "
            f"{len(available)}{hint}"
        )
    from .mesh_utils import create_device_mesh  # loaded on first use

    ordered = create_device_mesh(axes.sizes, available[:size], allow_split_physical_axes=True)
    return Mesh(ordered, axes.names, axes.types)
