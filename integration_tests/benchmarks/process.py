"""Cases that need a fresh process: import, cold start, memory. NumPy is not imported here."""

from __future__ import annotations

import os
import time
from pathlib import Path

from .case import Cases, Namespace

CASES = Cases()


def resident_bytes() -> float:
    """Resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


@CASES.measured("import", "import", "ms", 0.35)
def _(ns: Namespace) -> float:
    start = time.perf_counter()
    _ = ns.jax
    return time.perf_counter() - start


@CASES.measured("import numpy", "import with .numpy", "ms")
def _(ns: Namespace) -> float:
    start = time.perf_counter()
    _ = ns.jax, ns.jnp
    return time.perf_counter() - start


@CASES.measured("memory", "memory after import", "MiB")
def _(ns: Namespace) -> float:
    _ = ns.jax
    return resident_bytes()


@CASES.measured("memory", "memory after a small jit", "MiB")
def _(ns: Namespace) -> float:
    out = ns.jax.jit(lambda x: ns.lax.sin(x) * 2.0)(1.0)
    ns.jax.block_until_ready(out)
    return resident_bytes()


def cold_operation(ns: Namespace) -> float:
    """Seconds of the first eager operation of a process; the client and the array exist already."""
    x = ns.jax.device_put(1.5)
    ns.jax.block_until_ready(x)
    start = time.perf_counter()
    ns.jax.block_until_ready(ns.lax.sin(x))
    return time.perf_counter() - start


# Both share one cache folder, which is empty before the first.
CASES.measured("cold 1", "cold eager op, first process", "ms", 0.6)(cold_operation)
CASES.measured("cold 2", "cold eager op, later process", "ms", 0.1)(cold_operation)
