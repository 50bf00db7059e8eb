"""Clients, devices and caches: the reference's ``jax.extend.backend``."""

from __future__ import annotations

from collections.abc import Callable
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


def backends() -> dict[str, Any]:
    """The clients of jaxlib by platform, started if need be; the default one is first."""
    return dict(_clients())


def get_backend(platform: Any = None) -> Any:
    """The client of a platform, or of the default one.

    Args:
      platform: its name, or a client, which is given back.

    Raises:
      RuntimeError: if there is no such platform, with those that there are.
    """
    if platform is not None and not isinstance(platform, str):
        return platform
    return _core.devices(platform)[0].client


def backend_xla_version(platform: Any = None) -> int | None:
    """The version of XLA that a platform's plugin tells; ``None`` where it tells none."""
    found: int | None = getattr(get_backend(platform), "xla_version", None)
    return found


def get_default_device() -> Any:
    """The device that results are on where nothing says otherwise."""
    with _set_trace(None):
        (device,) = _as_operand(_np.int32(0)).devices()
    return device


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: dict[str, str] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """Options of jaxlib for compiling a module.

    Args:
      device_assignment: numbers of the devices, ``int[replicas, partitions]``; ``int[partitions]``
        for one replica.
      env_options_overrides: options of XLA by name, with their texts.
      fdo_profile: a profile that the compiler optimizes for.
      detailed_logging: has no influence: the compiler logs by its own variables.
      backend: a client; has no influence.
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
    """Have a cache of one's own emptied by ``clear_caches``.

    Args:
      cache: has ``cache_clear()``, as what ``functools.lru_cache`` makes.
      for_what: what it is for, for readers.
    """
    if not callable(getattr(cache, "cache_clear", None)):
        raise TypeError(f"the cache for {for_what} has no method cache_clear: {cache!r}")
    _register_cache(cache.cache_clear)


def clear_in_memory_compilation_cache() -> None:
    """Forget programs and executables; those on disk stay."""
    _clear_caches()


def clear_backends(_crash: bool = False) -> NoReturn:
    """End all clients, which is not possible: arrays and executables hold theirs.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        "clear_backends: clients live as long as the process, since arrays and executables hold "
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
    """Add a platform by a function that makes its client, which is not possible.

    Raises:
      NotImplementedError: always; it says how platforms are found.
    """
    raise NotImplementedError(
        f"register_backend_factory({name!r}): platforms are found as PJRT plugins. Install the "
        f"plugin as a package with an entry point of the group 'jax_plugins'."
    )
