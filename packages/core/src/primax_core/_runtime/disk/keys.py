"""Keys of the cache: everything that an executable depends on.

An executable contains machine code for one processor and calls into one version of jaxlib, and
jaxlib checks neither when it loads one. Therefore the key includes everything that may differ
between two processes that share a folder.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from ..._base.digest import digest as digest_of
from ..jaxlib_versions import build, topology_fingerprint

FORMAT: Final = "primax executable 1"

# Environment variables that XLA reads, besides the compile options (which include XLA_FLAGS).
_VARIABLES: Final = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "NPROC")

_machines: dict[tuple, tuple] = {}


def executable_key(digest: bytes, options: bytes, machine: tuple) -> bytes:
    """Key of an executable: the digest of its module, the compile options, and `machine`."""
    parts = (FORMAT, digest, options, machine)
    return digest_of(repr(parts).encode())


def link_key(program: bytes, machine: tuple) -> bytes:
    """Key of a link: the key of a jaxpr, and `machine`."""
    return digest_of(repr((FORMAT, "link", program, machine)).encode())


def machine(devs: tuple) -> tuple:
    """Everything that machine code for these devices depends on."""
    description = _machines.get(devs)
    if description is None:
        description = _machines[devs] = describe(devs)
    return description


def describe(devs: tuple) -> tuple:
    """Description of jaxlib, the host and the devices, compared by value."""
    client = devs[0].client
    return (
        ("jaxlib", *build()),
        ("host", *host()),
        ("variables", *((name, os.environ.get(name)) for name in _VARIABLES)),
        ("client", client.platform, client.platform_version, client.runtime_type),
        ("topology", topology_fingerprint(devs)),
        ("devices", len(client.devices()), *((d.id, d.device_kind) for d in devs)),
    )


def host() -> tuple:
    """The processor, and the number of its cores available to this process."""
    try:
        usable = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        usable = 0
    machine = os.uname().machine if hasattr(os, "uname") else ""
    return (sys.platform, machine, os.cpu_count(), usable, *_processor())


# Fields of /proc/cpuinfo: x86 lists its instruction sets in "flags", ARM in "Features".
_FIELDS: Final = frozenset((
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
    "isa", "uarch", "cpu",
))  # fmt: skip


def _processor() -> tuple:
    """Model and features of the processor, as exactly as the system reports them."""
    try:
        # Only the first processor's paragraph: a large machine takes milliseconds for all of them.
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(16384)
    except OSError:
        return _processor_elsewhere()
    return processor_of(text.decode("utf-8", "replace"))


def processor_of(text: str) -> tuple:
    """The fields of the first paragraph of /proc/cpuinfo that determine the machine code."""
    fields = []
    for line in text.partition("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        if name.strip() in _FIELDS:
            fields.append((name.strip(), value.strip()))
    return tuple(fields)


def _processor_elsewhere() -> tuple:
    if sys.platform == "darwin":
        names = ("machdep.cpu.brand_string", "machdep.cpu.features", "machdep.cpu.leaf7_features",
                 "hw.cpufamily", "hw.cpusubfamily")  # fmt: skip
        return tuple((name, _sysctl(name)) for name in names)
    import platform

    return (("processor", platform.machine(), platform.processor()),)


def _sysctl(name: str) -> Any:
    import ctypes

    libc = ctypes.CDLL(None)
    size = ctypes.c_size_t(4096)
    buffer = ctypes.create_string_buffer(size.value)
    if libc.sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, ctypes.c_size_t(0)):
        return None
    return buffer.raw[: size.value]
