"""Clients and devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .._base.config import config, on_update, read_global, state
from .._base.identity import ENV_PREFIX
from .._base.locks import new_rlock
from . import plugins
from .jaxlib_versions import _jax

Client: TypeAlias = Any

if TYPE_CHECKING:  # jaxlib has no type stubs

    class Device:
        """A device: it runs executables and stores arrays."""

        id: int
        platform: str
        device_kind: str
        process_index: int
        local_hardware_id: int
        client: Any

        def __getattr__(self, name: str) -> Any: ...

else:
    Device = _jax.Device

_lock = new_rlock()
_shared_cpu_client: Any = None
_forked = False

# Clients by platform, the default one first. The dict is replaced, never changed, so that readers
# need no lock.
_clients: dict[str, Any] = {}

# Raises an error for devices of clients that were dropped; ``None`` if none ever were.
check_current: Callable[[Sequence[Device]], None] | None = None


# Clients


def share_cpu_client(client: Client) -> None:
    """Use the CPU client of another copy of the library, so that both see the same devices.

    Raises:
      RuntimeError: if this copy has already started its own client.
    """
    global _shared_cpu_client
    with _lock:
        if _clients:
            raise RuntimeError("the CPU client has started already; share it before any use")
        _shared_cpu_client = client


def clients() -> dict[str, Any]:
    """All clients of jaxlib by platform; they are started on first use.

    Returns:
      A dict of clients by platform name; the default backend is first.

    Raises:
      RuntimeError: if a required platform cannot be started, or after a fork.

    Clients are objects of jaxlib: wheels pass them on, and use the functions of this library
    where there is one.

    >>> from primax_core.extend.runtime import clients
    >>> "cpu" in clients()
    True
    """
    global _clients
    if not _clients:
        with _lock:
            if not _clients:
                _clients = _start_clients()
    return _clients


def started_clients() -> dict[str, Any]:
    """The clients that are already started; it starts none.

    Returns:
      A dict of clients by platform name; empty before the first use of a device.

    For reports and clean-up that must not start a backend.

    >>> from primax_core.extend.runtime import clients, started_clients
    >>> started_clients().keys() <= clients().keys()
    True
    """
    return dict(_clients)


def _start_clients() -> dict[str, Any]:
    requested = [p.strip() for p in (config.platforms or "").split(",") if p.strip()]
    available = plugins.start(requested)
    available["cpu"] = _shared_cpu_client or _make_cpu_client()
    if not requested:
        return available
    chosen = {}
    for name in requested:
        for alias in plugins.platforms_named(name):
            if alias in available:
                chosen[alias] = available[alias]
    if not chosen:
        raise RuntimeError(
            f"no platform of {requested} could be started; available: {sorted(available)}. "
            "Change the option `platforms` or install the plugin."
        )
    chosen.setdefault("cpu", available["cpu"])  # for values from the host and for callbacks
    return chosen


def _make_cpu_client() -> Client:
    n = read_global("num_cpu_devices")
    kwargs = {"num_devices": n} if n > 0 else {}
    kwargs.update(plugins.joined)
    return _jax.get_tfrt_cpu_client(asynchronous=config.cpu_enable_async_dispatch, **kwargs)


def _refuse_when_started(option: str):
    def listener(value: Any) -> None:
        if _clients and value != read_global(option):
            raise RuntimeError(
                f"{option} must be set before the devices are first used, but they are already in "
                "use: set it right after the import, or with the environment variable "
                f"{ENV_PREFIX}{option.upper()}={value}"
            )

    return listener


on_update("num_cpu_devices", _refuse_when_started("num_cpu_devices"))


def client_of(name: str | None = None) -> Client:
    """The client of a platform.

    Args:
      name: the platform; by default the default platform.

    Returns:
      A client of jaxlib.

    Raises:
      RuntimeError: if the platform is not available.

    The client is started on first use.

    >>> from primax_core.extend.runtime import client_of
    >>> client_of("cpu").platform
    'cpu'
    """
    by_platform = clients()
    if name is None:
        return next(iter(by_platform.values()))
    aliases = plugins.platforms_named(name)
    for alias in aliases:
        if alias in by_platform:
            return by_platform[alias]
    present = ", ".join(sorted(by_platform))
    if len(aliases) > 1:
        raise RuntimeError(
            f"Unknown backend: '{name}' requested, but no platforms that are instances of {name} "
            f"are present. Platforms present are: {present}"
        )
    raise RuntimeError(f"Unknown backend {name}. Available backends are {sorted(by_platform)}")


def note_fork() -> bool:
    """Called in a forked process; return True if the devices were already in use."""
    global _forked
    _forked = bool(_clients)
    return _forked


def check_not_forked() -> None:
    """Raise an error in a process that was forked after the devices were in use: it would hang.

    Raises:
      RuntimeError: in such a process.
    """
    if _forked:
        raise RuntimeError(
            "this process was forked from one whose devices were already in use. XLA's threads do "
            "not survive os.fork, so computations would hang here. Start the process with "
            "multiprocessing.get_context('spawn') (or 'forkserver'), or fork before the first "
            "operation."
        )


# Devices


class DeviceList(list):
    """A list of devices whose ``IndexError`` lists the devices."""

    __slots__ = ()

    def __getitem__(self, index):
        try:
            return super().__getitem__(index)
        except IndexError:
            raise IndexError(_out_of_range(self, index)) from None


def _out_of_range(devices: list, index: int) -> str:
    platform = devices[0].platform if devices else "cpu"
    text = f"there is no {platform} device number {index}: the devices are {list(devices)}"
    if platform == "cpu":
        text += (
            ". For more CPU devices set the option num_cpu_devices before the first operation, "
            f"for example with the environment variable {ENV_PREFIX}NUM_CPU_DEVICES=8"
        )
    return text


def platform_of(device: Device) -> str:
    """The platform name used by lowering rules: ``cpu``, ``cuda``, ``rocm`` or ``tpu``.

    Args:
      device: a device.

    Returns:
      A string. It differs from ``device.platform``, which is ``gpu`` for CUDA and ROCm.

    Rules are registered for these names: ``lower.on("cuda")``.

    >>> from primax_core import devices
    >>> from primax_core.extend.runtime import platform_of
    >>> platform_of(devices("cpu")[0])
    'cpu'
    """
    name = device.platform
    if name == "gpu":
        return "rocm" if "rocm" in device.client.platform_version.lower() else "cuda"
    return name


def default_backend() -> str:
    """Name of the default platform of computations: ``cpu``, ``gpu`` or ``tpu``.

    It is the platform with the highest priority among the available ones; the option
    ``platforms`` selects others.

    Returns:
      A string.

    Raises:
      RuntimeError: if a required platform cannot be started.

    The call starts the backends, so a process must not fork after it.

    >>> from primax_core import default_backend, devices
    >>> default_backend() in ("cpu", "gpu", "tpu")
    True
    >>> devices()[0].platform == default_backend()
    True
    """
    return client_of().platform


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a platform, over all processes.

    Args:
      backend: the platform: ``cpu``, ``gpu``, ``cuda``, ``rocm`` or ``tpu``; by default the
        default platform.

    Returns:
      A list of devices, ordered by id. Their attributes include ``id``, ``platform``,
      ``device_kind`` and ``process_index``.

    Raises:
      RuntimeError: if the platform is not available.

    The call starts the backends, so a process must not fork after it. Arrays are moved to a
    device by :func:`device_put`.

    >>> from primax_core import device_put, devices
    >>> device = devices("cpu")[0]
    >>> device.platform, device.id
    ('cpu', 0)
    >>> device_put(1.0, device).devices() == {device}
    True
    """
    return DeviceList(client_of(backend).devices())


def local_devices(
    process_index: int | None = None,
    backend: str | None = None,
    host_id: int | None = None,
) -> list[Device]:
    """The devices of this process, or of another one.

    Args:
      process_index: index of the process; by default this one.
      backend: the platform: ``cpu``, ``gpu``, ``cuda``, ``rocm`` or ``tpu``; by default the
        default platform.
      host_id: old name of ``process_index``.

    Returns:
      A list of devices.

    Raises:
      RuntimeError: if the platform is not available.
      ValueError: if the process does not exist.

    The call starts the backends, so a process must not fork after it. Only the values on local
    devices can be read.

    >>> from primax_core import local_devices, process_index
    >>> {device.process_index for device in local_devices()} == {process_index()}
    True
    """
    client = client_of(backend)
    index = process_index if process_index is not None else host_id
    if index is None:
        index = client.process_index()
    elif index not in process_indices(backend):
        raise ValueError(
            f"Unknown process_index {index}: the processes are {process_indices(backend)}"
        )
    return DeviceList([d for d in client.devices() if d.process_index == index])


def device_count(backend: str | None = None) -> int:
    """Number of devices of a platform, over all processes.

    Args:
      backend: the platform: ``cpu``, ``gpu``, ``cuda``, ``rocm`` or ``tpu``; by default the
        default platform.

    Returns:
      An integer, the length of :func:`devices`.

    Raises:
      RuntimeError: if the platform is not available.

    The call starts the backends, so a process must not fork after it.

    >>> from primax_core import device_count, devices
    >>> device_count("cpu") == len(devices("cpu"))
    True
    """
    return len(client_of(backend).devices())


def local_device_count(backend: str | None = None) -> int:
    """Number of devices of a platform in this process.

    Args:
      backend: the platform: ``cpu``, ``gpu``, ``cuda``, ``rocm`` or ``tpu``; by default the
        default platform.

    Returns:
      An integer, the length of :func:`local_devices`.

    Raises:
      RuntimeError: if the platform is not available.

    The call starts the backends, so a process must not fork after it. The option
    ``num_cpu_devices`` divides a CPU into several devices.

    >>> from primax_core import device_count, local_device_count
    >>> 1 <= local_device_count() <= device_count()
    True
    """
    return len(local_devices(None, backend))


def process_index(backend: str | None = None) -> int:
    """Index of this process among all processes of the computation.

    Args:
      backend: the platform: ``cpu``, ``gpu``, ``cuda``, ``rocm`` or ``tpu``; by default the
        default platform.

    Returns:
      An integer from 0 to ``process_count() - 1``; 0 if there is one process.

    Raises:
      RuntimeError: if the platform is not available.

    The call starts the backends, so a process must not fork after it. Programs use it to divide
    data, and to write files in one process only.

    >>> from primax_core import process_count, process_index
    >>> 0 <= process_index() < process_count()
    True
    """
    return client_of(backend).process_index()


def process_count(backend: str | None = None) -> int:
    """Number of processes that compute together.

    Args:
      backend: the platform: ``cpu``, ``gpu``, ``cuda``, ``rocm`` or ``tpu``; by default the
        default platform.

    Returns:
      An integer; 1 without ``primax.distributed.initialize``.

    Raises:
      RuntimeError: if the platform is not available.

    The call starts the backends, so a process must not fork after it.

    >>> from primax_core import process_count, process_indices
    >>> process_count() == len(process_indices())
    True
    """
    return 1 + max(d.process_index for d in client_of(backend).devices())


def process_indices(backend: str | None = None) -> list[int]:
    """Indices of all processes that have devices of a platform.

    Args:
      backend: the platform: ``cpu``, ``gpu``, ``cuda``, ``rocm`` or ``tpu``; by default the
        default platform.

    Returns:
      A sorted list of integers.

    Raises:
      RuntimeError: if the platform is not available.

    The call starts the backends, so a process must not fork after it.

    >>> from primax_core import process_index, process_indices
    >>> process_index() in process_indices()
    True
    """
    return sorted({d.process_index for d in client_of(backend).devices()})


def device_from_id(platform: str, device_id: int) -> Device:
    """The device with an id.

    Raises:
      ValueError: if the platform has no such device.
    """
    known = devices(platform)
    for device in known:
        if device.id == device_id:
            return device
    raise ValueError(_out_of_range(known, device_id))


def default_device() -> Device:
    """The device of uncommitted values.

    Raises:
      ValueError: if the option ``default_device`` is neither a device nor a platform name.
    """
    chosen = state.default_device
    if chosen is None:
        return _first_device()
    if isinstance(chosen, Device):
        return chosen
    if isinstance(chosen, str):
        try:
            return local_devices(None, chosen)[0]
        except RuntimeError as e:
            raise ValueError(_not_a_default(chosen)) from e
    device = getattr(chosen, "_device", None)  # a SingleDeviceSharding
    if isinstance(device, Device):
        return device
    raise ValueError(_not_a_default(chosen))


def _not_a_default(chosen: Any) -> str:
    return (
        "the option default_device takes a device (e.g. primax.devices('cpu')[0]) or the name of "
        f"one of the platforms {sorted(clients())}, got: {chosen!r}"
    )


_first: list[Device] = []


def _first_device() -> Device:
    if not _first:
        _first.append(local_devices()[0])
    return _first[0]
