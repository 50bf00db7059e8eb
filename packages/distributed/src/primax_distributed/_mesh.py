"""Meshes: devices along named axes, and their shapes without devices."""

from __future__ import annotations

import enum
import math
import operator
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

import numpy as np

from primax_core import Device, devices as all_devices
from primax_core.extend.runtime import client_of

from ._interning import Immutable, Interned, put
from ._mesh_options import enter_mesh, exit_mesh

_M = TypeVar("_M", bound="BaseMesh")


class AxisType(enum.Enum):
    """The way in which arrays are divided along an axis of a mesh.

    Attributes:
      Auto: the compiler chooses.
      Explicit: the types of arrays contain it, and operations determine it for their results.
      Manual: the function is written for the part of one device (`shard_map`).
    """

    Auto = 1
    Explicit = 2
    Manual = 3

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class AbstractDevice:
    """The kind of the devices of a mesh: as much as a traced program may depend on.

    Args:
      device_kind: name of the hardware.
      num_cores: cores of one device, where the platform has such a number.
      platform: name of the platform.
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({self._text()})"

    def _text(self) -> str:
        kind, cores, platform = self.device_kind, self.num_cores, self.platform
        return f"device_kind={kind}, num_cores={cores}, platform={platform}"


class BaseMesh(Immutable):
    """Names, sizes and types of axes: what `Mesh` and `AbstractMesh` have in common."""

    __slots__ = ("_sizes", "axis_names", "axis_sizes", "axis_types")

    axis_names: tuple[Hashable, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    _sizes: dict[Hashable, int]

    def _set_axes(self, axes: Axes) -> None:
        put(self, "axis_sizes", axes.sizes)
        put(self, "axis_names", axes.names)
        put(self, "axis_types", axes.types)
        put(self, "_sizes", dict(zip(axes.names, axes.sizes)))

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """Sizes of the axes by name."""
        return OrderedDict(self._sizes)

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        """Pairs of a name and a size."""
        return tuple(self._sizes.items())

    def _key_on_disk(self) -> tuple[Any, ...]:
        """The contents, for keys of the cache on disk."""
        return self.axis_sizes, self.axis_names, self.axis_types

    def _of_type(self, kind: AxisType) -> tuple[Hashable, ...]:
        return tuple([n for n, t in zip(self.axis_names, self.axis_types) if t is kind])

    @property
    def auto_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes of type ``Auto``."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes of type ``Explicit``."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Hashable, ...]:
        """Names of the axes of type ``Manual``."""
        return self._of_type(AxisType.Manual)

    def _all_of(self, *kinds: AxisType) -> bool:
        return bool(self.axis_types) and all(t in kinds for t in self.axis_types)

    @property
    def are_all_axes_auto(self) -> bool:
        """True if there are axes and all have the type ``Auto``."""
        return self._all_of(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        """True if there are axes and all have the type ``Explicit``."""
        return self._all_of(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        """True if there are axes and all have the type ``Manual``."""
        return self._all_of(AxisType.Manual)

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """True if there are axes and none has the type ``Auto``."""
        return self._all_of(AxisType.Explicit, AxisType.Manual)

    @property
    def _are_all_axes_auto_or_manual(self) -> bool:
        return self._all_of(AxisType.Auto, AxisType.Manual)

    @property
    def _any_axis_auto(self) -> bool:
        return AxisType.Auto in self.axis_types

    @property
    def _any_axis_explicit(self) -> bool:
        return AxisType.Explicit in self.axis_types

    @property
    def _any_axis_manual(self) -> bool:
        return AxisType.Manual in self.axis_types

    @property
    def _any_axis_auto_or_manual(self) -> bool:
        return self._any_axis_auto or self._any_axis_manual

    @property
    def _name_to_type(self) -> dict[Hashable, AxisType]:
        return dict(zip(self.axis_names, self.axis_types))

    def _axes_text(self) -> str:
        sizes = ", ".join(f"'{name}': {size}" for name, size in self._sizes.items())
        return f"{sizes}, axis_types={self.axis_types}"


class Axes:
    """Checked names, sizes and types of axes."""

    __slots__ = ("names", "sizes", "types")

    def __init__(self, owner: str, sizes: Any, names: Any, types: Any, default: AxisType) -> None:
        self.sizes: tuple[int, ...] = _checked_sizes(owner, sizes)
        self.names: tuple[Hashable, ...] = checked_names(owner, names)
        if len(self.sizes) != len(self.names):
            raise ValueError(
                f"{owner} needs one name for each axis, got sizes {self.sizes} and names "
                f"{self.names}"
            )
        self.types: tuple[AxisType, ...] = _checked_types(owner, types, self.names, default)

    @property
    def key(self) -> tuple[Any, ...]:
        """The contents."""
        return self.sizes, self.names, self.types


def _checked_sizes(owner: str, sizes: Any) -> tuple[int, ...]:
    try:
        checked = tuple([operator.index(size) for size in sizes])
    except TypeError:
        raise TypeError(
            f"{owner} takes a sequence of integers as sizes of axes, such as (2, 4), got {sizes!r}"
        ) from None
    if any(size <= 0 for size in checked):
        raise ValueError(f"{owner} needs positive sizes of axes, got {checked}")
    return checked


def checked_names(owner: str, names: Any) -> tuple[Hashable, ...]:
    """Names of axes as a tuple; a string is one name.

    Raises:
      TypeError: if a name is not hashable.
      ValueError: if a name is ``None`` or occurs twice.
    """
    checked = (names,) if isinstance(names, str) else tuple(names)
    try:
        doubled = [name for i, name in enumerate(checked) if name in {*checked[:i]}]
    except TypeError:
        raise TypeError(f"names of axes must be hashable, {owner} got {checked}") from None
    if None in checked:
        raise ValueError(f"the axes of {owner} need names other than None, got {checked}")
    if doubled:
        raise ValueError(
            f"the axes of {owner} need different names, but {doubled[0]!r} occurs twice in "
            f"{checked}"
        )
    return checked


def _checked_types(
    owner: str, types: Any, names: tuple[Hashable, ...], default: AxisType
) -> tuple[AxisType, ...]:
    if types is None:
        return (default,) * len(names)
    checked = tuple(types) if isinstance(types, (tuple, list)) else (types,)
    for kind in checked:
        if not isinstance(kind, AxisType):
            raise TypeError(
                f"axis_types of {owner} must be members of AxisType, such as AxisType.Auto, got "
                f"{kind!r} of type {type(kind).__name__}"
            )
    if len(checked) != len(names):
        raise ValueError(
            f"{owner} needs one axis type for each axis, got {checked} for the axes {names}"
        )
    return checked


_abstract_meshes: Final[Interned[AbstractMesh]] = Interned()


class AbstractMesh(BaseMesh):
    """Names, sizes and types of the axes of a mesh, without devices.

    Equal abstract meshes are one object.

    Args:
      axis_sizes: sizes of the axes.
      axis_names: names of the axes.
      axis_types: an :class:`AxisType` for each axis; by default ``Explicit``.
      abstract_device: the kind of the devices, if it is known.

    Raises:
      TypeError: if a size, a name or a type has the wrong type.
      ValueError: if the numbers of sizes, names and types differ, if a name occurs twice, or if a
        size is not positive.

    >>> AbstractMesh((2, 4), ("x", "y"))
    AbstractMesh('x': 2, 'y': 4, axis_types=(Explicit, Explicit))
    """

    __slots__ = ("abstract_device",)

    abstract_device: AbstractDevice | None

    def __new__(
        cls,
        axis_sizes: Sequence[int],
        axis_names: str | Sequence[Hashable],
        axis_types: AxisType | Sequence[AxisType] | None = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> AbstractMesh:
        axes = Axes("AbstractMesh", axis_sizes, axis_names, axis_types, AxisType.Explicit)
        if abstract_device is not None and not isinstance(abstract_device, AbstractDevice):
            raise TypeError(f"abstract_device must be an AbstractDevice, got {abstract_device!r}")
        key = (*axes.key, abstract_device)
        known = _abstract_meshes.get(key)
        if known is not None:
            return known
        self = object.__new__(cls)
        self._set_axes(axes)
        put(self, "abstract_device", abstract_device)
        return _abstract_meshes.add(key, lambda: self)

    @property
    def size(self) -> int:
        """Number of devices of a mesh of this shape; 0 if there are no axes."""
        return math.prod(self.axis_sizes) if self.axis_sizes else 0

    @property
    def empty(self) -> bool:
        """True if there are no axes."""
        return not self.axis_names

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """This mesh."""
        return self

    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: str | Sequence[Hashable] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
        **kwargs: Any,
    ) -> AbstractMesh:
        """An abstract mesh with some arguments of the constructor replaced.

        >>> AbstractMesh((2,), ("x",)).update(axis_types=AxisType.Auto)
        AbstractMesh('x': 2, axis_types=(Auto,))
        """
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **kwargs},
        )

    def update_axis_types(self, types: Mapping[Hashable, AxisType]) -> AbstractMesh:
        """An abstract mesh with the types of the named axes replaced; other names are ignored."""
        kinds = [types.get(n, t) for n, t in zip(self.axis_names, self.axis_types)]
        return self.update(axis_types=kinds)

    def _no_devices(self) -> NoReturn:
        raise ValueError(
            f"{self} has no devices: an AbstractMesh has names, sizes and types of axes only. Use "
            "a Mesh"
        )

    @property
    def devices(self) -> NoReturn:
        """Raise ``ValueError``: there are no devices."""
        self._no_devices()

    @property
    def device_ids(self) -> NoReturn:
        """Raise ``ValueError``, as ``devices``."""
        self._no_devices()

    @property
    def is_multi_process(self) -> NoReturn:
        """Raise ``ValueError``, as ``devices``."""
        self._no_devices()

    @property
    def local_devices(self) -> NoReturn:
        """Raise ``ValueError``, as ``devices``."""
        self._no_devices()

    @property
    def local_mesh(self) -> NoReturn:
        """Raise ``ValueError``, as ``devices``."""
        self._no_devices()

    def __enter__(self) -> NoReturn:
        self._no_devices()

    def __exit__(self, *exc_info: object) -> None:
        pass

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_abstract, (*self._key(), self.abstract_device)

    def _key(self) -> tuple[Any, ...]:
        return self.axis_sizes, self.axis_names, self.axis_types

    def __repr__(self) -> str:
        if not self.axis_names:
            return "AbstractMesh((), axis_types=())"
        device = self.abstract_device
        kind = "" if device is None else f", {device._text()}"
        return f"AbstractMesh({self._axes_text()}{kind})"


def _restored_abstract(
    sizes: Any, names: Any, types: Any, device: AbstractDevice | None
) -> AbstractMesh:
    return AbstractMesh(sizes, names, types, abstract_device=device)


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


def abstract_device_of(devices: Sequence[Any]) -> AbstractDevice | None:
    """The kind of devices, or ``None`` if they differ."""
    kinds = {(d.device_kind, getattr(d, "num_cores", None), d.platform) for d in devices}
    return AbstractDevice(*kinds.pop()) if len(kinds) == 1 else None


empty_mesh: Final = _empty_mesh()
"""The mesh without devices."""

empty_abstract_mesh: Final = AbstractMesh((), ())
"""The abstract mesh without axes."""


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
