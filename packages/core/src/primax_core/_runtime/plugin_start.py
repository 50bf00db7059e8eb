"""Start of plugins: their libraries, clients and native functions; loaded only for plugins."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
from typing import Any

from .._base.identity import ROOT
from . import custom_calls, plugins
from .jaxlib_versions import JAXLIB_VERSION, _jax
from .plugins import Unavailable, note_running, running


def private_name(platform: str) -> str:
    """Name of a loaded plugin: copies of this library, and jax, each use their own."""
    return f"{ROOT.replace('.', '_')}_{platform}"


def start_cuda(module: str) -> Any:
    """The client of NVIDIA GPUs.

    Raises:
      Unavailable: without the library or a device.
    """
    library = beside(module, "xla_cuda_plugin.so")
    if not _has_nvidia_device():
        raise Unavailable("no NVIDIA device or driver was found on this machine")
    version = 13 if "13" in module else 12
    check_plugin_version(f"jax_cuda{version}_pjrt", installed_version(f"jax_cuda{version}_pjrt"))
    _load_nvidia_libraries(version)
    name = private_name("cuda")
    api = _loaded.get(name)
    again = api is not None
    if api is None:
        api = _loaded[name] = _jax.load_pjrt_plugin(name, str(library), None)
        _register_profiler(api)
        _jax.initialize_pjrt_plugin(name)
    from jaxlib import xla_client  # imports the logging module

    options = xla_client.generate_pjrt_gpu_plugin_options()
    client = _client(name, options)
    if not again:
        register_cuda_targets(api, version)
    return client


_loaded: dict[str, Any] = {}  # APIs of plugins; a library is loaded once


def _client(name: str, options: dict[str, Any]) -> Any:
    """The client of a plugin, for this process or, after joining, for all processes."""
    joined = plugins.joined
    if joined:
        options = {**options, "node_id": joined["node_id"], "num_nodes": joined["num_nodes"]}
        options.update(plugins.plugin_options)
    return _jax.get_c_api_client(name, options, joined.get("distributed_client"), None)


def _register_profiler(api) -> None:
    from jaxlib import _profiler

    _profiler.register_plugin_profiler(api)


def beside(module: str, file: str) -> pathlib.Path:
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


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution, or ``None``."""
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


def register_cuda_targets(api, version: int) -> None:
    """Register the native functions of jaxlib with a plugin, if their package is installed."""
    package = f"jax_cuda{version}_plugin"
    try:
        extension = importlib.import_module(f"{package}.cuda_plugin_extension")
    except ImportError:
        return
    note_running("cuda", api, extension)
    for key, value in extension.ffi_types().items():
        extension.register_custom_type(api, key, value)
    for key, value in extension.ffi_handlers().items():
        extension.register_custom_call_target(api, key, value, "CUDA", 1)
    for part in ("_solver", "_linalg", "_sparse", "_prng", "_rnn", "_hybrid", "_triton"):
        try:
            module = importlib.import_module(f"{package}.{part}")
        except ImportError:
            continue
        for key, value in module.registrations().items():
            extension.register_custom_call_target(api, key, value, "CUDA", 1)
    custom_calls.renew(["cuda_hybrid"])


@custom_calls.provides_custom_calls("cuda_hybrid")
def _initialize_hybrid() -> None:
    """Let the native functions that compute on the host look up LAPACK in SciPy."""
    for _, extension in running("cuda"):
        package = extension.__name__.rpartition(".")[0]
        importlib.import_module(f"{package}._hybrid").initialize()


def has_tpu() -> bool:
    """Return True if this machine has a TPU."""
    return any(map(os.path.exists, ("/dev/accel0", "/dev/vfio/0", "/dev/vfio/vfio")))


def start_tpu(module: str) -> Any:
    """The client of TPUs.

    Raises:
      Unavailable: without the library or a device.
    """
    library = beside("libtpu", "libtpu.so")
    if not has_tpu():
        raise Unavailable("no TPU was found on this machine")
    name = private_name("tpu")
    if name not in _loaded:
        _loaded[name] = _jax.load_pjrt_plugin(name, str(library), None)
        _jax.initialize_pjrt_plugin(name)
    # Hosts of TPUs find each other; they share only the coordination service.
    return _jax.get_c_api_client(name, {}, plugins.joined.get("distributed_client"), None)
