"""Clients, devices and caches: the reference's ``jax.extend.backend``."""

from __future__ import annotations

from collections.abc import Callable, Sequence as _Sequence
from importlib import import_module as _import_module
from typing import Any, NoReturn

import numpy as _np

import primax_core as _core
from primax_core import clear_caches as _clear_caches
from primax_core.extend import (
    as_operand as _as_operand,
    clients as _clients,
    register_cache as _register_cache,
    set_trace as _set_trace,
)


def __getattr__(name: str) -> Any:
    if name == "ifrt_proxy":  # clients of devices behind a proxy; loaded on first use
        return _import_module("jaxlib._ifrt_proxy")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def backends() -> dict[str, Any]:
    """Return jaxlib's clients by platform, the default first; start them if necessary."""
    return dict(_clients())


def get_backend(platform: Any = None) -> Any:
    """Return the client of a platform, or of the default platform.

    Args:
      platform: its name, or a client, which is returned.

    Raises:
      RuntimeError: for an unknown platform; the message lists the known platforms.
    """
    if platform is not None and not isinstance(platform, str):
        return platform
    return _core.devices(platform)[0].client


def backend_xla_version(platform: Any = None) -> int | None:
    """Return the XLA version of a platform's plugin, or ``None`` if it reports none."""
    version: int | None = getattr(get_backend(platform), "xla_version", None)
    return version


def get_default_device() -> Any:
    """Return the default device of results."""
    with _set_trace(None):
        (device,) = _as_operand(_np.int32(0)).devices()
    return device


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: _Sequence[Any] | _np.ndarray | None = None,
    env_options_overrides: dict[str, str] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """Create jaxlib's options for compiling a module.

    Args:
      device_assignment: device numbers, ``int[replicas, partitions]``; ``int[partitions]`` for one
        replica.
      env_options_overrides: XLA options as strings, by name.
      fdo_profile: a profile for feedback-directed optimization.
      detailed_logging: ignored; the compiler's own variables control logging.
      backend: ignored.
    """
    jaxlib = _import_module("jaxlib._jax")
    options = jaxlib.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = num_replicas
    options.num_partitions = build.num_partitions = num_partitions
    build.use_spmd_partitioning = num_partitions > 1
    if fdo_profile is not None:
        build.fdo_profile = fdo_profile
    if device_assignment is not None:
        numbers = _np.array(device_assignment)
        if numbers.ndim == 1 and num_replicas == 1:
            numbers = numbers[None, :]
        if numbers.shape != (num_replicas, num_partitions):
            raise ValueError(
                f"device_assignment has the shape {numbers.shape} for {num_replicas} replicas and "
                f"{num_partitions} partitions"
            )
        options.device_assignment = jaxlib.DeviceAssignment.create(numbers)
    if env_options_overrides:
        options.env_option_overrides = list(env_options_overrides.items())
    return options


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Register a cache that ``clear_caches`` clears.

    Args:
      cache: an object with ``cache_clear()``, such as the result of ``functools.lru_cache``.
      for_what: a description of the cache.
    """
    if not callable(getattr(cache, "cache_clear", None)):
        raise TypeError(f"the cache for {for_what} has no method cache_clear: {cache!r}")
    _register_cache(cache.cache_clear)


def clear_in_memory_compilation_cache() -> None:
    """Clear the in-memory caches of jaxprs and executables; the disk cache remains."""
    _clear_caches()


def clear_backends(_crash: bool = False) -> NoReturn:
    """Unsupported: shut down all clients, which arrays and executables reference.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        "clear_backends: clients live as long as the process: arrays and executables use "
        "them. Set options such as num_cpu_devices before the first use of a device, or start a "
        "new process; clear_caches() empties the caches."
    )


def register_backend_factory(
    name: str,
    factory: Callable[[], Any],
    *,
    priority: int = 0,
    fail_quietly: bool = True,
    experimental: bool = False,
    make_topology: Callable[..., Any] | None = None,
    c_api: Any = None,
) -> NoReturn:
    """Unsupported: register a platform by a function that creates its client.

    Raises:
      NotImplementedError: always; the message describes PJRT plugins.
    """
    raise NotImplementedError(
        f"register_backend_factory({name!r}): platforms are PJRT plugins. Install the "
        f"plugin as a package with an entry point of the group 'jax_plugins'."
    )
