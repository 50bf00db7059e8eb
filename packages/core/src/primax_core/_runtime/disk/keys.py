"""What a compiled program depends on, besides its module.

An executable holds machine code for one processor and calls into one jaxlib, and jaxlib checks
neither when it loads one. So all that could differ between two processes that share a folder is
part of the key.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from ..._base.digest import digest as digest_of
from ..jaxlib_versions import build, topology_fingerprint

FORMAT: Final = "primax executable 1"

# Read by XLA besides the compile options, which hold what it made of most of XLA_FLAGS.
_VARIABLES: Final = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "NPROC")

_machines: dict[tuple, tuple] = {}


def executable_key(digest: bytes, options: bytes, machine: tuple) -> bytes:
    """The key of an executable: of a module's digest, compile options, and `machine`."""
    parts = (FORMAT, digest, options, machine)
    return digest_of(repr(parts).encode())


def link_key(program: bytes, machine: tuple) -> bytes:
    """The key of a link: of a program's key and `machine`."""
    return digest_of(repr((FORMAT, "link", program, machine)).encode())


def machine(devs: tuple) -> tuple:
    """What the machine code for these devices depends on."""
    found = _machines.get(devs)
    if found is None:
        found = _machines[devs] = describe(devs)
    return found


def describe(devs: tuple) -> tuple:
    """jaxlib, the host and the devices, in a form that says everything and compares by value."""
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
    """The processor and how many of its cores this process may use."""
    try:
        usable = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        usable = 0
    machine = os.uname().machine if hasattr(os, "uname") else ""
    return (sys.platform, machine, os.cpu_count(), usable, *_processor())


# Of /proc/cpuinfo: x86 names its instruction sets in "flags", ARM in "Features".
_FIELDS: Final = frozenset((
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
    "isa", "uarch", "cpu",
))  # fmt: skip


def _processor() -> tuple:
    """Model and features of the processor, as exactly as the system tells."""
    try:
        # The first processor's paragraph only: a large machine takes milliseconds for all.
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(16384)
    except OSError:
        return _processor_elsewhere()
    return processor_of(text.decode("utf-8", "replace"))


def processor_of(text: str) -> tuple:
    """The lines of /proc/cpuinfo that say what machine code runs, of its first paragraph."""
    found = []
    for line in text.partition("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        if name.strip() in _FIELDS:
            found.append((name.strip(), value.strip()))
    return tuple(found)


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
