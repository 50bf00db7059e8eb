"""Shardings: the abstract class, and the core's implementation for one device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from .._ir.avals import unplaced
from .devices import Device, device_from_id
from .jaxlib_versions import GSPMDSharding, HloSharding, _jax

if TYPE_CHECKING:
    from .tilings import Tiling

Index = tuple[slice, ...]
Shape = tuple[int, ...]


class Sharding(ABC):
    """The placement of an array on devices.

    Equal shardings are one object: a subclass interns its instances in ``__new__``, so that caches
    compare by identity. A subclass defines the abstract members and must not override the others:

    - users call the properties and methods without an underscore;
    - transfers use `_devices`, `devices_indices_map` and `_jaxlib`;
    - executables use `_devices` for the order of their devices, `_hlo_sharding` for the comparison
      with XLA's choice, and `_jaxlib` for their results;
    - lowering uses `_sdy`.

    A subclass for several devices also defines `_replicated`, `_from_xla`, `_batched`, `_placement`
    and `_of_placement`, whose defaults are those of one device, `_summed` and `_reshard` if it can
    have partial values, and `_mesh_axes`, if it has a mesh,
    for the names in reports. One that may have no devices yet,
    or is not determined by devices and tiling alone, defines `_equivalence`, `num_devices` and
    `shard_shape`, too.
    """

    __slots__ = ("_by_rank", "__weakref__")

    _by_rank: dict[int, Any]

    # Abstract

    @property
    @abstractmethod
    def _devices(self) -> tuple[Device, ...]:
        """The devices, in the order of partitions."""

    @property
    @abstractmethod
    def memory_kind(self) -> str | None:
        """The memory kind of the shards: ``device``, ``pinned_host`` ..."""

    @property
    @abstractmethod
    def is_fully_replicated(self) -> bool:
        """True if every device has the whole array."""

    @abstractmethod
    def devices_indices_map(self, global_shape: Shape) -> dict[Device, Index]:
        """The index of each device's shard of an array of this shape."""

    @abstractmethod
    def with_memory_kind(self, kind: str) -> Sharding:
        """The same devices with another memory kind."""

    @abstractmethod
    def _hlo_sharding(self, ndim: int) -> Any:
        """XLA's description for an array of ``ndim`` axes."""

    @abstractmethod
    def _sdy(self, ndim: int, open_axes: frozenset[int] = frozenset()) -> str | None:
        """Text of the Shardy attribute of a value of ``ndim`` axes, or ``None``.

        The mesh is written in place: ``#sdy.sharding<mesh<["x"=2]>, [{"x"}, {}]>``. The partitioner
        may divide ``open_axes`` further: ``{?}``.
        """

    # For several devices

    @property
    def _is_abstract(self) -> bool:
        """True for a sharding over a mesh without devices: it describes a type."""
        return False

    def _same_devices(self, other: Sharding) -> bool:
        """True if both have the same devices; for an abstract one only their number counts."""
        if self._is_abstract or other._is_abstract:
            return self.num_devices == other.num_devices
        return self._devices == other._devices

    def _over_devices_of(self, shardings: Sequence[Sharding]) -> Sharding:
        """If this is abstract, the sharding over the devices of arrays or of the context.

        Args:
          shardings: those of the arrays, of which the first over a mesh of the same axes counts.

        Returns:
          This sharding if there are none.
        """
        return self

    def _replicated(self) -> Sharding:
        """The sharding with the whole array on each of the same devices."""
        return self

    def _from_xla(self, tiling: Tiling) -> Sharding:
        """The sharding over the same devices with a tiling that XLA chose for a result."""
        return self

    @property
    def _summed(self) -> Sharding | None:
        """If each device has partial values, the sharding of their sums."""
        return None

    def _reshard(self, array: Any) -> Any:
        """The array with this sharding; partial values are summed, or made of whole ones."""
        return array

    def _batched(self, axis: int, name: Any = None) -> Sharding:
        """The sharding of a batch of arrays with this sharding, with a new axis at ``axis``.

        Args:
          name: the mesh axes that divide the new axis (``spmd_axis_name`` of ``vmap``).
        """
        return self

    def _placement(self, ndim: int) -> Any:
        """The placement in the aval of an array of ``ndim`` axes with this sharding."""
        return unplaced

    def _of_placement(self, placement: Any, ndim: int) -> Sharding | None:
        """The sharding over the same devices that a result's placement requires, or ``None``."""
        return None

    def _for_result(self, what: str) -> Sharding:
        """The sharding as the parameter ``out_sharding`` of an operation.

        Args:
          what: the name of the operation, for errors.

        Raises:
          ValueError: if the result of an operation cannot have it.
        """
        return self

    def _permuted(self, axes: Sequence[int]) -> Sharding:
        """The sharding of an array whose axis ``i`` is axis ``axes[i]`` of one with this one."""
        return self

    def _applied(self, fun: Callable[..., Any], *operands: Any) -> Any:
        """The result of a function of arrays, with this sharding.

        The types of values in the function do not say how they are divided.
        """
        return fun(*operands)

    def _check_constraint(self, aval: Any) -> bool:
        """Raise an error if `with_sharding_constraint` may not give it to a value of a type."""
        return True

    def _check_axes(self, what: str) -> None:
        """Raise an error if it divides along axes of a mesh that are manual in this context."""
        return

    def _mesh_axes(self) -> tuple[tuple[Any, ...], np.ndarray] | None:
        """The names of mesh axes and the array of devices along them; ``None`` without a mesh."""
        return None

    def _equivalence(self, ndim: int) -> tuple[Any, ...]:
        """Devices, memory kind, reduction of partial values and tiling; equal if equivalent."""
        return self._devices, self.memory_kind, None, self._hlo_sharding(ndim)

    # Derived

    @property
    def device_set(self) -> set[Device]:
        """The devices with a shard."""
        return set(self._devices)

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return len(self._devices)

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process."""
        return {d for d in self._devices if d.process_index == d.client.process_index()}

    @property
    def has_addressable_devices(self) -> bool:
        """True if this process has a shard."""
        return bool(self.addressable_devices)

    @property
    def is_fully_addressable(self) -> bool:
        """True if all devices belong to this process."""
        return len(self.addressable_devices) == len(self._devices)

    def addressable_devices_indices_map(self, global_shape: Shape) -> dict[Device, Index]:
        """The index of the shard on each device of this process, for an array of this shape."""
        own = self.addressable_devices
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d in own}

    def shard_shape(self, global_shape: Shape) -> Shape:
        """Shape of the shard of one device."""
        index = next(iter(self.devices_indices_map(tuple(global_shape)).values()))
        return tuple(len(range(*s.indices(d))) for s, d in zip(index, global_shape, strict=True))

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Return True if both place an array of ``ndim`` axes equally."""
        return self is other or self._equivalence(ndim) == other._equivalence(ndim)

    def _jaxlib(self, ndim: int) -> Any:
        """jaxlib's sharding of arrays of ``ndim`` axes."""
        converted = self._by_rank.get(ndim)
        if converted is None:
            converted = self._by_rank[ndim] = self._make_jaxlib(ndim)
        return converted

    def _make_jaxlib(self, ndim: int):
        devices, tiling = self._devices, self._hlo_sharding(ndim)
        if not devices:  # aborts the process in jaxlib
            raise ValueError(f"{self} has no devices")
        if self._on_default_memory():
            return GSPMDSharding(devices, tiling)
        return GSPMDSharding(devices, tiling, memory_kind=self.memory_kind)

    def _on_default_memory(self) -> bool:
        return self.memory_kind in (None, self._default_memory_kind())

    def _default_memory_kind(self) -> str | None:
        return "device" if self._is_abstract else default_memory_kind(self._devices[0])

    def _computing(self) -> Sharding:
        """The same devices with the memory kind in which executables compute."""
        if self._on_default_memory():
            return self
        return self.with_memory_kind(self._default_memory_kind())

    def _device_list(self) -> Any:
        return _jax.DeviceList(self._devices)


_conversions: dict[type, Callable[[Any], Sharding]] = {}


def register_sharding(kind: type, convert: Callable[[Any], Sharding]) -> None:
    """Accept instances of a class wherever users pass a sharding.

    Args:
      kind: a class, without its subclasses.
      convert: returns the sharding, which may depend on options of scope ``"trace"``, or raises
        an error that says what is missing.

    Returns:
      ``None``.

    Partition specs are such objects: their sharding is that of the mesh in effect.

    >>> from primax_core import device_put, devices
    >>> from primax_core.extend.runtime import SingleDeviceSharding, register_sharding
    >>> class FirstDevice:
    ...     pass
    >>> register_sharding(FirstDevice, lambda _: SingleDeviceSharding(devices()[0]))
    >>> device_put(1.0, FirstDevice()).committed
    True
    """
    _conversions[kind] = convert


def as_sharding(x: Any) -> Any:
    """The sharding of an object that users pass in place of one.

    Args:
      x: an instance of a class that :func:`register_sharding` has registered, or any other
        object.

    Returns:
      A sharding; other objects unchanged.

    Public functions with an argument for shardings call it.

    >>> from primax_core.extend.runtime import as_sharding
    >>> as_sharding(None) is None
    True
    """
    convert = _conversions.get(type(x))
    return x if convert is None else convert(x)


class PartitionSpecLike(Protocol):
    """Names of mesh axes for the axes of an array: a sharding on the mesh that is set.

    An instance of ``PartitionSpec``, whose class is in another wheel.
    """

    @property
    def unreduced(self) -> Any:
        """The mesh axes along which each device has a part of a sum."""


ShardingLike: TypeAlias = Sharding | PartitionSpecLike
"""A sharding, or names of mesh axes for the axes of an array."""


_makers: dict[type, Callable[[Any, Sequence[Any], str | None], Sharding]] = {}


def register_mesh(
    kind: type, make: Callable[[Any, Sequence[Any], str | None], Sharding]
) -> None:  # fmt: skip
    """Define the shardings over meshes of a class, for exported functions.

    An exported function has names and sizes of mesh axes instead of devices.

    Args:
      kind: a class with a property ``shape_tuple``, the names and sizes of the axes.
      make: ``(mesh, entries, memory_kind) -> Sharding``; ``entries`` has for each axis of the
        array a tuple of the mesh axes that divide it, or ``None`` where the partitioner may
        choose.

    Returns:
      ``None``.

    The wheel that defines meshes calls it when it is imported.

    >>> from primax_core.extend.runtime import register_mesh
    >>> class Grid:
    ...     shape_tuple = (("x", 1),)
    >>> def make(mesh, entries, memory_kind):
    ...     raise NotImplementedError
    >>> register_mesh(Grid, make)
    """
    _makers[kind] = make


def sharding_maker(kind: type) -> Callable[[Any, Sequence[Any], str | None], Sharding] | None:
    """The function that was registered for a class of meshes."""
    return _makers.get(kind)


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    >>> from primax_core import devices
    >>> SingleDeviceSharding(devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """

    __slots__ = ("_device", "_memory_kind")

    _instances: dict[tuple[Device, str | None], SingleDeviceSharding] = {}

    def __new__(cls, device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
        known = cls._instances.get((device, memory_kind))
        if known is not None:
            return known
        if not isinstance(device, Device):
            raise TypeError(
                f"SingleDeviceSharding needs a device, got {device!r} of type {type(device)}; "
                "see primax.devices()"
            )
        default = default_memory_kind(device)
        kind = default if memory_kind is None else _checked_kind(device, memory_kind)
        self = object.__new__(cls)
        self._device, self._memory_kind, self._by_rank = device, kind, {}
        self = cls._instances.setdefault((device, kind), self)
        return cls._instances.setdefault((device, memory_kind), self)

    @property
    def _devices(self) -> tuple[Device, ...]:
        return (self._device,)

    @property
    def memory_kind(self) -> str | None:
        """The memory kind of the array."""
        return self._memory_kind

    @property
    def is_fully_replicated(self) -> bool:
        """True: the device has the whole array."""
        return True

    def devices_indices_map(self, global_shape: Shape) -> dict[Device, Index]:
        """The index of the device's shard: the whole array."""
        return {self._device: (slice(None),) * len(global_shape)}

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same device with another memory kind."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def _hlo_sharding(self, ndim: int) -> Any:
        return HloSharding.replicate()

    def _sdy(self, ndim: int, open_axes: frozenset[int] = frozenset()) -> str | None:
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        kind = None if self._on_default_memory() else self._memory_kind
        return _restored, (self._device.platform, self._device.id, kind)

    def __copy__(self) -> SingleDeviceSharding:
        return self

    def __deepcopy__(self, memo: Any) -> SingleDeviceSharding:
        return self

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self._memory_kind})"


def _restored(platform: str, device_id: int, memory_kind: str | None) -> SingleDeviceSharding:
    return SingleDeviceSharding(device_from_id(platform, device_id), memory_kind=memory_kind)


def default_memory_kind(device: Device) -> str | None:
    """The memory kind in which executables of a device compute."""
    try:
        return device.default_memory().kind
    except RuntimeError:  # a device description for ahead-of-time compilation
        return None


def _checked_kind(device: Device, kind: str) -> str:
    known = [m.kind for m in device.addressable_memories()]
    if kind not in known:
        name = device.device_kind
        raise ValueError(
            f"Could not find memory addressable by device {name}. Device {name} can address the "
            f"following memory kinds: {', '.join(sorted(known))}. Got memory kind: {kind}"
        )
    return kind


def device_assignment(devices: tuple[Device, ...]) -> Any:
    """jaxlib's device assignment of a computation on these devices."""
    if not devices:  # aborts the process in jaxlib
        raise ValueError("a computation needs at least one device")
    return _jax.DeviceAssignment.create(np.array([[d.id for d in devices]], np.int32))
