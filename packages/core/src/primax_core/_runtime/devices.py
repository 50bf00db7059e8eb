"""Clients and devices."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .._base.config import config, state
from .jaxlib_versions import GSPMDSharding, HloSharding, _jax

Device = _jax.Device
Client = _jax.Client

_lock = threading.RLock()
_clients: dict[str, Any] = {}
_shared_cpu_client: Any = None


def _make_cpu_client():
    n = config.num_cpu_devices
    kwargs = {"num_devices": n} if n and n > 0 else {}
    return _jax.get_tfrt_cpu_client(asynchronous=True, **kwargs)


def share_cpu_client(client) -> None:
    """Use another copy's CPU client, so that both see the same devices.

    Raises:
      RuntimeError: if this copy has already started its own.
    """
    with _lock:
        if "cpu" in _clients:
            raise RuntimeError("the CPU client has started already; share it before any use")
        _clients["cpu"] = client


def clients() -> dict[str, Any]:
    """All clients by platform, started on first use; the default backend is first."""
    if not _clients or "cpu" not in _clients:
        with _lock:
            _start_clients()
    return _clients


def _start_clients() -> None:
    if "cpu" in _clients and len(_clients) > 1:
        return
    from . import plugins

    wanted = [p.strip() for p in (config.platforms or "").split(",") if p.strip()]
    started = plugins.start(wanted)
    cpu = _clients.get("cpu") or _make_cpu_client()
    _clients.clear()
    if wanted:
        found = {**started, "cpu": cpu}
        for name in wanted:
            for alias in plugins.platforms_named(name):
                if alias in found:
                    _clients[alias] = found[alias]
        if not _clients:
            raise RuntimeError(
                f"no platform of {wanted} could be started; available: {sorted(found)}. "
                "Change the option `platforms` or install the plugin."
            )
        _clients.setdefault("cpu", cpu)
        return
    _clients.update(started)
    _clients["cpu"] = cpu


def client_of(name: str | None = None):
    """The client of a platform, of the default one without a name."""
    found = clients()
    if name is None:
        return next(iter(found.values()))
    from . import plugins

    for alias in plugins.platforms_named(name):
        if alias in found:
            return found[alias]
    raise RuntimeError(
        f"Unknown backend {name!r}: the available platforms are {', '.join(sorted(found))}."
    )


def default_backend() -> str:
    """Name of the platform that computations run on by default: ``cpu``, ``gpu`` or ``tpu``."""
    return client_of().platform


def devices(backend: str | None = None) -> list:
    """All devices of a platform (of the default one without a name)."""
    return list(client_of(backend).devices())


def local_devices(process_index: int | None = None, backend: str | None = None, host_id=None):
    """The devices of this process, or of another one."""
    client = client_of(backend)
    index = client.process_index() if process_index is None else process_index
    found = [d for d in client.devices() if d.process_index == index]
    if not found and index != client.process_index():
        raise ValueError(f"Unknown process_index {index}")
    return found


def device_count(backend: str | None = None) -> int:
    """Number of devices over all processes."""
    return len(client_of(backend).devices())


def local_device_count(backend: str | None = None) -> int:
    """Number of devices of this process."""
    return len(local_devices(None, backend))


def process_index(backend: str | None = None) -> int:
    """Index of this process."""
    return client_of(backend).process_index()


def process_count(backend: str | None = None) -> int:
    """Number of processes."""
    return 1 + max(d.process_index for d in client_of(backend).devices())


def process_indices(backend: str | None = None) -> list[int]:
    """Indices of all processes."""
    return sorted({d.process_index for d in client_of(backend).devices()})


def default_device():
    """The device that uncommitted values live on."""
    chosen = state.default_device
    if chosen is None:
        return _first_device()
    if isinstance(chosen, str):
        return local_devices(None, chosen)[0]
    return chosen


_first: list = []


def _first_device():
    if not _first:
        _first.append(local_devices()[0])
    return _first[0]


class SingleDeviceSharding:
    """The whole array on one device.

    Implements the Sharding protocol that executables and transfers use: ``device_set``,
    ``memory_kind``, ``is_fully_replicated``, ``is_fully_addressable``, ``shard_shape``,
    ``devices_indices_map``, ``_hlo_sharding(ndim)`` and ``_raw`` (the object that jaxlib is given).
    """

    __slots__ = ("_device", "memory_kind", "_raw", "_device_list", "__weakref__")

    _made: dict = {}

    def __new__(cls, device, *, memory_kind: str | None = None):
        key = (device, memory_kind)
        found = cls._made.get(key)
        if found is not None:
            return found
        if not isinstance(device, Device):
            raise TypeError(
                f"SingleDeviceSharding needs a device, got {device!r} of type {type(device)}; "
                "see primax.devices()"
            )
        self = object.__new__(cls)
        self._device = device
        self.memory_kind = memory_kind
        self._device_list = _jax.DeviceList((device,))
        replicated = HloSharding.replicate()
        self._raw = (
            GSPMDSharding((device,), replicated, memory_kind=memory_kind)
            if memory_kind
            else GSPMDSharding((device,), replicated)
        )
        return cls._made.setdefault(key, self)

    @property
    def device_set(self) -> set:
        """The devices that hold a part."""
        return {self._device}

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return True

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return self._device.process_index == self._device.client.process_index()

    @property
    def addressable_devices(self) -> set:
        """The devices of this process among them."""
        return {self._device} if self.is_fully_addressable else set()

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return 1

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the part on one device."""
        return tuple(shape)

    def devices_indices_map(self, shape: tuple[int, ...]) -> dict:
        """Which part of an array of this shape each device holds."""
        return {self._device: (slice(None),) * len(shape)}

    addressable_devices_indices_map = devices_indices_map

    def is_equivalent_to(self, other, ndim: int) -> bool:
        """Whether an array of ``ndim`` axes lies the same way under both."""
        return self is other

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same device, another kind of memory."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def _hlo_sharding(self, ndim: int):
        return HloSharding.replicate()

    def __reduce__(self):
        return _sharding_of_device_id, (self._device.platform, self._device.id, self.memory_kind)

    def __repr__(self):
        kind = self.memory_kind or "device"
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={kind})"


def _sharding_of_device_id(platform, device_id, memory_kind):
    for d in devices(platform):
        if d.id == device_id:
            return SingleDeviceSharding(d, memory_kind=memory_kind)
    return SingleDeviceSharding(_first_device(), memory_kind=memory_kind)


def device_assignment(devs) -> Any:
    """jaxlib's device assignment of one computation over these devices."""
    return _jax.DeviceAssignment.create(np.array([[d.id for d in devs]], np.int32))
