"""Accelerator plugins, found through the ``jax_plugins`` entry points without importing jax."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import sys
import warnings
from typing import Any

from .jaxlib_versions import _jax, xla_client

_ALIASES = {
    "gpu": ("cuda", "rocm", "gpu"),
    "cuda": ("cuda", "gpu"),
    "rocm": ("rocm", "gpu"),
    "tpu": ("tpu",),
    "cpu": ("cpu",),
}


def platforms_named(name: str) -> tuple[str, ...]:
    """The platforms a user may mean by a name (``gpu`` covers ``cuda`` and ``rocm``)."""
    return _ALIASES.get(name, (name,))


def start(wanted: list[str]) -> dict[str, Any]:
    """Clients of the installed plugins, by platform; a plugin that fails warns and is left out.

    Args:
      wanted: platforms asked for; when not empty, others are not started.
    """
    found: dict[str, Any] = {}
    if wanted and all(w == "cpu" for w in wanted):
        return found
    for name, module in _entry_points():
        platform = "cuda" if "cuda" in name else "tpu" if "tpu" in name else name
        if wanted and not any(platform in platforms_named(w) for w in wanted):
            continue
        if platform in found:
            continue
        starter = _STARTERS.get(platform)
        if starter is None:
            continue
        try:
            client = starter(module)
        except Exception as e:  # noqa: BLE001 - a broken plugin must not stop the CPU
            if wanted:
                raise RuntimeError(f"platform {platform} could not be started: {e}") from e
            warnings.warn(
                f"plugin {name} ({platform}) is installed but could not be started: {e}. "
                'Computing on the CPU; set the option platforms="cpu" to silence this.',
                stacklevel=2,
            )
            continue
        if client is not None:
            found[platform] = client
    return found


def _entry_points() -> list[tuple[str, str]]:
    # Reading the metadata of every installed distribution takes tens of milliseconds, so look
    # first whether anything that could hold a plugin is on the path.
    if not _may_have_plugins():
        return []
    from importlib.metadata import entry_points

    return [(e.name, e.value) for e in entry_points(group="jax_plugins")]


def _may_have_plugins() -> bool:
    for entry in sys.path:
        try:
            names = os.listdir(entry or ".")
        except OSError:
            continue
        for n in names:
            if n == "jax_plugins" or n == "libtpu" or n.startswith(("jax_cuda", "jax_rocm")):
                return True
    return False


def _start_cuda(module: str):
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return None
    folder = pathlib.Path(spec.origin).parent
    library = folder / "xla_cuda_plugin.so"
    if not library.exists():
        return None
    if not _has_nvidia_device():
        return None
    version = 13 if "13" in module else 12
    _check_version(f"jax_cuda{version}_pjrt")
    _load_nvidia_libraries(version)
    name = "primax_cuda"
    api = _jax.load_pjrt_plugin(name, str(library), None)
    from jaxlib import _profiler

    _profiler.register_plugin_profiler(api)
    _jax.initialize_pjrt_plugin(name)
    options = xla_client.generate_pjrt_gpu_plugin_options()
    client = _jax.get_c_api_client(name, options, None, None)
    _register_cuda_targets(api, version)
    return client


def _has_nvidia_device() -> bool:
    return any(
        os.path.exists(p) for p in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg", "/proc/driver/nvidia")
    )


def _check_version(distribution: str) -> None:
    from importlib.metadata import PackageNotFoundError, version

    from jaxlib import version as jaxlib_version

    try:
        found = version(distribution)
    except PackageNotFoundError:
        return
    if found != jaxlib_version.__version__:
        raise RuntimeError(
            f"{distribution} {found} does not belong to jaxlib {jaxlib_version.__version__}: "
            f"pip install {distribution}=={jaxlib_version.__version__}"
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
    # Libraries depend on one another in no listed order: go round until nothing more loads.
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
        registrations = module.registrations()
        for targets in registrations.values():
            for target in targets:
                key, value, *api_version = target
                extension.register_custom_call_target(
                    api, key, value, "CUDA", api_version[0] if api_version else 0
                )


def _start_tpu(module: str):
    spec = importlib.util.find_spec("libtpu")
    if spec is None or spec.origin is None:
        return None
    library = pathlib.Path(spec.origin).parent / "libtpu.so"
    if not library.exists() or not any(
        os.path.exists(p) for p in ("/dev/accel0", "/dev/vfio/0", "/dev/vfio/vfio")
    ):
        return None
    name = "primax_tpu"
    _jax.load_pjrt_plugin(name, str(library), None)
    _jax.initialize_pjrt_plugin(name)
    return _jax.get_c_api_client(name, {}, None, None)


_STARTERS = {"cuda": _start_cuda, "tpu": _start_tpu}
