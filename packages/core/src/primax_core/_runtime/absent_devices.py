"""Devices to compile for that this process does not have: another CPU, GPUs, TPUs.

jaxlib's compile-only clients compile; nothing of what they compile can be run by this process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

from .._base.locks import new_rlock
from . import custom_calls, native_targets, plugin_start, plugins
from .devices import client_of
from .jaxlib_versions import JAXLIB_VERSION, _jax

_lock: Final = new_rlock()
_apis: Final[dict[tuple[str, str], Any]] = {}
_topologies: Final[dict[tuple[Any, ...], Any]] = {}
_lowering_for: Final[ContextVar[AbsentDevice | None]] = ContextVar("lowering_for", default=None)


def absent_target(platform: str) -> str | None:
    """The target of the absent device that a program is being lowered for, in a lowering rule.

    Args:
      platform: the platform of the rule.

    Returns:
      The target, such as ``sm_90``; ``None`` if the program is lowered for a device of this
      process, for another platform, or for no particular device. Programs for CPUs may have been
      lowered before the target is known; then it is ``None`` too.

    Rules that compile kernels themselves choose the architecture by it, see :func:`compile_only`.

    >>> from primax_core.extend.native import absent_target
    >>> absent_target("cuda") is None
    True
    """
    device = _lowering_for.get()
    return device.target if device is not None and device.platform == platform else None


@contextmanager
def lowering_for(device: AbsentDevice) -> Iterator[None]:
    """Set the device of :func:`absent_target`."""
    token = _lowering_for.set(device)
    try:
        yield
    finally:
        _lowering_for.reset(token)


class AbsentDevice:
    """A device to compile for, from :func:`compile_only`.

    Attributes:
      platform: ``cpu``, ``cuda`` or ``tpu``.
      target: what to compile for, such as ``sm_90``.
      raw: jaxlib's device, which can only be compiled for.
    """

    __slots__ = ("platform", "target", "raw")

    platform: str
    target: str
    raw: Any

    def __init__(self, platform: str, target: str, raw: Any):
        self.platform = platform
        self.target = target
        self.raw = raw

    def __repr__(self) -> str:
        return f"AbsentDevice({self.platform}, {self.target})"


def compile_only(
    platform: str,
    target: str,
    *,
    library: str | os.PathLike[str] | None = None,
    topology: str | None = None,
) -> list[AbsentDevice]:
    """Devices that programs can be compiled for although this process does not have them.

    ``jit(f).lower(x).compile(devices=devices[:1])`` compiles; for several devices the arguments
    have shardings over as many of this process. The result can be inspected; calling it is an
    error.

    Args:
      platform: ``cpu``, ``cuda`` or ``tpu``.
      target: the kind of device. ``cpu``: a processor of this architecture, such as ``x86-64-v3``,
        with features, as in ``haswell,-fma``. ``cuda``: ``sm_90``, or the text
        of a ``GpuTargetConfigProto``. ``tpu``: a topology such as ``v5e:2x2``.
      library: the path of the plugin's library (``xla_cuda_plugin.so``, ``libtpu.so``); by default
        that of the installed package.
      topology: for ``cuda``, the numbers of processes, of devices and so on, such as ``1x1x1``.

    Returns:
      A list of devices that cannot compute: they are the targets of compilations.

    Raises:
      ImportError: if the plugin of the platform is not installed.
      NotImplementedError: if the installed jaxlib cannot compile for such devices.
      ValueError: for a target that the compiler does not know.
    """
    makers = {"cpu": _cpu, "cuda": _cuda, "tpu": _tpu}
    if platform not in makers:
        raise ValueError(f"programs can be compiled for {', '.join(makers)}, not for {platform!r}")
    path = None if library is None else os.fspath(library)
    if path is not None and platform != "cpu" and not os.path.isfile(path):
        raise ImportError(f"there is no library of a plugin at {path}")
    with _lock:
        key = (platform, target, path, topology)
        named = _topologies.get(key)
        if named is None:
            # The topology must live as long as its devices.
            named = _topologies[key] = makers[platform](target, path, topology)
    name, described = named
    return [AbsentDevice(platform, name, d) for d in described._make_compile_only_devices()]


def compile_for(
    module: Any, context: Any, devices: Sequence[AbsentDevice], options: Any, name: str
) -> Any:
    """jaxlib's executable of a module for absent devices.

    Args:
      module: the lowered module.
      context: the MLIR context of the module.
      options: jaxlib's compile options.
      name: the name of the program in messages.

    Raises:
      NotImplementedError: if the module calls Python, or jaxlib has no compiler for the platform.
    """
    device = devices[0]
    if module.callbacks:
        raise NotImplementedError(
            f"{name} calls Python functions, which belong to this process: it cannot be compiled "
            f"for {device.target} ({device.platform})"
        )
    custom_calls.ensure(module.needs)
    raw_devices = _jax.DeviceList(tuple(d.raw for d in devices))
    try:
        with context:
            return device.raw.client.compile(module.located(), raw_devices, options)
    except Exception as e:
        if "No compiler factory" in str(e):
            _too_old("compile for another CPU", e)
        raise


class AbsentExecutable:
    """An executable for an absent device, in the place of one that runs."""

    __slots__ = ("raw", "in_layouts", "_name", "_device")

    def __init__(self, raw: Any, name: str, device: AbsentDevice):
        self.raw = raw
        self.in_layouts: Sequence[Any] = ()
        self._name = name
        self._device = device

    def __call__(self, args: Sequence[Any]) -> NoReturn:
        """Raise the error of a program that cannot run here."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            f"{self._name} was compiled for {self._device.target} ({self._device.platform}), a "
            "device that this process does not have: it can be inspected (as_text, "
            "memory_analysis, cost_analysis, runtime_executable().serialize()), but not run. "
            "Compile it without `devices` to run it here"
        )

    def _refused(self) -> Any:
        self._refuse()

    loaded = property(_refused)
    in_shardings = property(_refused)
    out_specs = property(_refused)


def _too_old(what: str, cause: BaseException | None = None) -> NoReturn:
    raise NotImplementedError(
        f"jaxlib {'.'.join(map(str, JAXLIB_VERSION))} cannot {what}: install jaxlib 0.11"
    ) from cause


# CPU

X86: Final = (
    "x86-64 x86-64-v2 x86-64-v3 x86-64-v4 nehalem westmere sandybridge ivybridge haswell broadwell "
    "skylake skylake-avx512 cascadelake cooperlake icelake-server sapphirerapids "
    "znver1 znver2 znver3 znver4"
).split()
ARM: Final = (
    "generic cortex-a57 cortex-a72 cortex-a76 neoverse-n1 neoverse-n2 neoverse-v1 neoverse-v2 "
    "apple-m1 apple-m2"
).split()
_FEATURE: Final = re.compile(r"[+-][a-z0-9_.-]+")


def _cpu(target: str, library: str | None, topology: str | None) -> tuple[str, Any]:
    if library is not None or topology is not None:
        raise ValueError("compile_only('cpu') takes neither a library nor a topology")
    described = _jax.get_topology_for_devices([client_of("cpu").local_devices()[0]])
    if not hasattr(described, "serialize"):
        _too_old("compile for another CPU")
    data = described.serialize()
    _, machine = _cpu_parts(data)
    triple, own, features = (machine[n].decode() for n in (1, 2, 3))
    processor, *changes = target.split(",")
    names = X86 if triple.startswith("x86_64") else ARM
    known = {f[1:] for f in features.split(",")}
    # LLVM ends the process for an unknown processor, and ignores an unknown feature.
    if processor not in (*names, own):
        raise ValueError(
            f"{processor!r} is not a processor of this architecture ({triple}) that "
            f"compile_only knows: {', '.join(names)}"
        )
    for change in changes:
        if not _FEATURE.fullmatch(change) or change[1:] not in known:
            raise ValueError(
                f"{change!r} is not a change of features of {triple}: write +avx2 or -avx2, with "
                f"one of {', '.join(sorted(known))}"
            )
    return target, _jax.DeviceTopology.deserialize(
        _with_processor(data, processor, ",".join(changes))
    )


# jaxlib has no Python class of the topology's protocol buffer; these are its fields.
_ATTRIBUTES, _VALUE, _DEVICE, _MACHINE = 9, 2, 1, 5


def _cpu_parts(data: bytes) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """The fields of the description of CPUs, and those of its machine."""
    wrapped = _fields(_fields(data)[_ATTRIBUTES])
    cpus = _fields(wrapped[_VALUE])
    return cpus, _fields(cpus[_MACHINE])


def _with_processor(data: bytes, processor: str, features: str) -> bytes:
    """The serialized topology with one device, of another processor and features."""
    outer = _pairs(data)
    wrapped = _pairs(dict(outer)[_ATTRIBUTES])
    cpus = _pairs(dict(wrapped)[_VALUE])
    machine = dict(_pairs(dict(cpus)[_MACHINE]))
    machine[2], machine[3] = processor.encode(), features.encode()
    device = next(pair for pair in cpus if pair[0] == _DEVICE)
    cpus = [device, *(pair for pair in cpus if pair[0] not in (_DEVICE, _MACHINE))]
    cpus.append((_MACHINE, _joined(list(machine.items()))))
    wrapped = [(n, _joined(cpus) if n == _VALUE else v) for n, v in wrapped]
    return _joined([(n, _joined(wrapped) if n == _ATTRIBUTES else v) for n, v in outer])


def _fields(data: bytes) -> dict[int, Any]:
    return dict(_pairs(data))


def _pairs(data: bytes) -> list[tuple[int, Any]]:
    """Fields of a protocol buffer: integers and bytes by number."""
    pairs: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        tag, at = _integer(data, at)
        value, at = _integer(data, at)
        if tag & 7 == 2:
            pairs.append((tag >> 3, data[at : at + value]))
            at += value
        elif tag & 7 == 0:
            pairs.append((tag >> 3, value))
        else:
            _too_old("describe its CPUs in the form that this library reads")
    return pairs


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _joined(pairs: list[tuple[int, Any]]) -> bytes:
    parts = []
    for number, value in pairs:
        if isinstance(value, int):
            parts += [_bytes_of(number << 3), _bytes_of(value)]
        else:
            parts += [_bytes_of(number << 3 | 2), _bytes_of(len(value)), value]
    return b"".join(parts)


def _bytes_of(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


# GPU and TPU

_GPU: Final = (
    "gpu_device_info {{ threads_per_block_limit: 1024 threads_per_warp: 32 "
    "shared_memory_per_block: 49152 shared_memory_per_core: 233472 threads_per_core_limit: 2048 "
    "core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 "
    "block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800 "
    "clock_rate_ghz: 1.98 device_memory_size: 84978434048 shared_memory_per_block_optin: 232448 "
    "cuda_compute_capability {{ major: {major} minor: {minor} }} registers_per_core_limit: 65536 "
    'registers_per_block_limit: 65536 }} platform_name: "CUDA" '
    "dnn_version_info {{ major: 9 minor: 12 patch: 0 }} "
    "runtime_version {{ major: 13 minor: 0 patch: 0 }} "
    'device_description_str: "sm_{major}{minor}"'
)
"""Sizes and speeds of an H100; the compiler's choices for other GPUs differ from their own."""


def _cuda(target: str, library: str | None, topology: str | None) -> tuple[str, Any]:
    text = target
    if "gpu_device_info" not in text:
        chip = re.fullmatch(r"sm_(\d+)(\d)", text)
        if chip is None:
            raise ValueError(
                f"the target of cuda is {target!r}: it is the compute capability, such as "
                "'sm_90', or the text of a GpuTargetConfigProto"
            )
        text = _GPU.format(major=chip[1], minor=chip[2])
    else:
        target = "a GPU"
    options = {"target_config": text, "topology": topology or "1x1x1"}
    return target, _topology(_plugin("cuda", library), target, "", options)


def _tpu(target: str, library: str | None, topology: str | None) -> tuple[str, Any]:
    if topology is not None:
        raise ValueError("the target of tpu is its topology, such as 'v5e:2x2'")
    return target, _topology(_plugin("tpu", library), target, target, {})


def _topology(api: Any, target: str, name: str, options: dict[str, str]) -> Any:
    try:
        return _jax.get_c_api_topology(api, name, options)
    except Exception as e:
        raise ValueError(f"the compiler does not accept the target {target!r}: {e}") from e


def _plugin(platform: str, library: str | None) -> Any:
    """The API of a plugin for compiling; it is another instance than the one of a client."""
    path = library or _installed(platform)
    api = _apis.get((platform, path))
    if api is None:
        if platform == "tpu" and not plugin_start.has_tpu():
            # Otherwise libtpu waits for minutes for the metadata server of a TPU machine.
            os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
            os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")
        name = f"{plugin_start.private_name(platform)}_compiler{len(_apis)}"
        api = _apis[platform, path] = _jax.load_pjrt_plugin(name, path, None)
        if platform == "tpu":
            _jax.initialize_pjrt_plugin(name)
        else:
            plugin_start.register_cuda_targets(api, 12 if "cuda12" in path else 13)
            native_targets.renew()
    return api


def _installed(platform: str) -> str:
    """The library of an installed plugin."""
    own = ".".join(map(str, JAXLIB_VERSION))
    try:
        if platform == "tpu":
            return str(plugin_start.beside("libtpu", "libtpu.so"))
        for version in (13, 12):
            if plugin_start.installed_version(f"jax_cuda{version}_pjrt") is not None:
                plugin_start.check_plugin_version(
                    f"jax_cuda{version}_pjrt",
                    plugin_start.installed_version(f"jax_cuda{version}_pjrt"),
                )
                module = f"jax_plugins.xla_cuda{version}"
                return str(plugin_start.beside(module, "xla_cuda_plugin.so"))
    except (plugins.Unavailable, ModuleNotFoundError):
        pass
    line = (
        "pip install libtpu"
        if platform == "tpu"
        else f"pip install --no-deps 'jax-cuda13-pjrt=={own}.*'"
    )
    raise ImportError(
        f"jaxlib alone cannot compile for {platform}; the compiler is in the plugin, which needs "
        f"neither the hardware nor its driver: {line}, or pass the path of its library as "
        "library=..."
    )
