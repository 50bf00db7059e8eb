"""Accelerator plugins from the ``jax_plugins`` entry points, found without importing jax."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import sys
from typing import Any

from .._base.identity import ROOT
from .._base.source import warn
from .jaxlib_versions import JAXLIB_VERSION, _jax

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


def _private_name(platform: str) -> str:
    """Name of a loaded plugin: copies of this library, and jax, each use their own."""
    return f"{ROOT.replace('.', '_')}_{platform}"


def _start_cuda(module: str):
    library = _beside(module, "xla_cuda_plugin.so")
    if not _has_nvidia_device():
        raise Unavailable("no NVIDIA device or driver was found on this machine")
    version = 13 if "13" in module else 12
    check_plugin_version(f"jax_cuda{version}_pjrt", _installed_version(f"jax_cuda{version}_pjrt"))
    _load_nvidia_libraries(version)
    name = _private_name("cuda")
    api = _jax.load_pjrt_plugin(name, str(library), None)
    _register_profiler(api)
    _jax.initialize_pjrt_plugin(name)
    from jaxlib import xla_client  # imports the logging module

    options = xla_client.generate_pjrt_gpu_plugin_options()
    client = _jax.get_c_api_client(name, options, None, None)
    _register_cuda_targets(api, version)
    return client


def _register_profiler(api) -> None:
    from jaxlib import _profiler

    _profiler.register_plugin_profiler(api)


def _beside(module: str, file: str) -> pathlib.Path:
    """A file in the folder of a module, which is not imported."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise Unavailable(f"module {module} is not installed")
    path = pathlib.Path(spec.origin).parent / file
    if not path.exists():
        raise Unavailable(f"{path} does not exist")
    return path


def _has_nvidia_device() -> bool:
    nodes = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia")
    return any(map(os.path.exists, nodes))


def _installed_version(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def check_plugin_version(distribution: str, installed: str | None) -> None:
    """Raise an error for a plugin of another jaxlib version, which jaxlib does not check.

    Raises:
      RuntimeError: if the first three numbers of the versions differ.
    """
    own = ".".join(map(str, JAXLIB_VERSION))
    if installed is not None and installed.split(".")[:3] != own.split("."):
        raise RuntimeError(
            f"{distribution} {installed} does not belong to jaxlib {own}: "
            f"pip install '{distribution}=={own}.*'"
        )


def _load_nvidia_libraries(version: int) -> None:
    import ctypes

    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        spec = None
    roots = list(spec.submodule_search_locations or ()) if spec else []
    folders = [f"cu{version}/lib", "nccl/lib", "nvshmem/lib", "cudnn/lib"]
    if version == 12:
        folders = ["*/lib"]
    pending = [
        lib
        for root in roots
        for folder in folders
        for lib in sorted(pathlib.Path(root).glob(f"{folder}/*.so*"))
    ]
    # Libraries depend on one another in no listed order: repeat until no more can be loaded.
    while pending:
        left = []
        for lib in pending:
            try:
                ctypes.CDLL(str(lib), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                left.append(lib)
        if len(left) == len(pending):
            return
        pending = left


def _register_cuda_targets(api, version: int) -> None:
    package = f"jax_cuda{version}_plugin"
    try:
        extension = importlib.import_module(f"{package}.cuda_plugin_extension")
    except ImportError:
        return
    for key, value in extension.ffi_types().items():
        extension.register_custom_type(api, key, value)
    for key, value in extension.ffi_handlers().items():
        extension.register_custom_call_target(api, key, value, "CUDA", 1)
    for part in ("_solver", "_linalg", "_sparse", "_prng", "_rnn", "_hybrid", "_triton"):
        try:
            module = importlib.import_module(f"{package}.{part}")
        except ImportError:
            continue
        for key, value, *_ in module.registrations().get("CUDA", ()):
            extension.register_custom_call_target(api, key, value, "CUDA", 1)


def _start_tpu(module: str):
    library = _beside("libtpu", "libtpu.so")
    if not any(map(os.path.exists, ("/dev/accel0", "/dev/vfio/0", "/dev/vfio/vfio"))):
        raise Unavailable("no TPU was found on this machine")
    name = _private_name("tpu")
    _jax.load_pjrt_plugin(name, str(library), None)
    _jax.initialize_pjrt_plugin(name)
    return _jax.get_c_api_client(name, {}, None, None)


_STARTERS = {"cuda": _start_cuda, "tpu": _start_tpu}
