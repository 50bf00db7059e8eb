"""Accelerator plugins from the ``jax_plugins`` entry points, found without importing jax."""

from __future__ import annotations

import os
import sys
from typing import Any

from .._base.source import warn

_ALIASES = {
    "gpu": ("cuda", "rocm", "gpu"),
    "cuda": ("cuda", "gpu"),
    "rocm": ("rocm", "gpu"),
    "tpu": ("tpu",),
    "cpu": ("cpu",),
}


def platforms_named(name: str) -> tuple[str, ...]:
    """The platforms that a name covers (``gpu`` covers ``cuda`` and ``rocm``)."""
    return _ALIASES.get(name, (name,))


class Unavailable(Exception):
    """A plugin is installed, but its hardware is not available."""


joined: dict[str, Any] = {}
"""Options of the CPU client of one process among several: ``distributed_client``, ``node_id``,
``num_nodes``, ``collectives``, ``num_devices``. Empty for a single process."""

plugin_options: dict[str, Any] = {}
"""Further options of the clients of plugins, in one process among several."""

_running: dict[str, list[tuple[Any, Any]]] = {}


def running(platform: str) -> list[tuple[Any, Any]]:
    """The started plugins of a platform: the API of each, and the module that registers native
    functions with it."""
    return _running.get(platform, [])


def note_running(platform: str, api: Any, extension: Any) -> None:
    """Record a started plugin."""
    _running.setdefault(platform, []).append((api, extension))


def start(requested: list[str]) -> dict[str, Any]:
    """Clients of the installed plugins, by platform.

    A plugin without its hardware is skipped, and one that fails issues a warning, unless its
    platform was requested.

    Args:
      requested: requested platforms; if not empty, no others are started.

    Raises:
      RuntimeError: if the plugin of a requested platform cannot be started.
    """
    started: dict[str, Any] = {}
    if requested and all(w == "cpu" for w in requested):
        return started
    for name, module in _entry_points():
        platform = platform_in(name)
        starter = _STARTERS.get(platform)
        if starter is None or platform in started:
            continue
        if requested and not any(platform in platforms_named(w) for w in requested):
            continue
        try:
            started[platform] = starter(module)
        except Exception as e:  # a broken plugin must not prevent use of the CPU
            if requested:
                raise RuntimeError(f"platform {platform} could not be started: {e}") from e
            if not isinstance(e, Unavailable):
                warn(
                    f"plugin {name} ({platform}) is installed but could not be started: {e}. "
                    'Computing on the CPU; set the option platforms="cpu" to silence this.'
                )
    return started


def platform_in(entry_point: str) -> str:
    """The platform in the name of an entry point: ``xla_cuda13`` is ``cuda``."""
    return next((p for p in ("cuda", "rocm", "tpu") if p in entry_point), entry_point)


def _entry_points() -> list[tuple[str, str]]:
    """Names and modules of the installed plugins."""
    # Reading the metadata of every installed distribution takes tens of milliseconds, so check
    # first whether the path contains anything that could be a plugin.
    names = _names_on_path()
    plugins = []
    if "jax_plugins" in names or any(n.startswith(("jax_cuda", "jax_rocm")) for n in names):
        from importlib.metadata import entry_points

        plugins = [(e.name, e.module) for e in entry_points(group="jax_plugins")]
    if "libtpu" in names:  # without an entry point
        plugins.append(("tpu", "libtpu"))
    return plugins


def _names_on_path() -> set[str]:
    names: set[str] = set()
    for entry in sys.path:
        try:
            names.update(os.listdir(entry or "."))
        except OSError:
            continue
    return names


def _start_cuda(module: str) -> Any:
    from .plugin_start import start_cuda

    return start_cuda(module)


def _start_tpu(module: str) -> Any:
    from .plugin_start import start_tpu

    return start_tpu(module)


_STARTERS = {"cuda": _start_cuda, "tpu": _start_tpu}
