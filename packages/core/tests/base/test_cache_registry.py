"""The registry of caches: ``clear_caches`` empties every module-level cache."""

from __future__ import annotations

import gc
import sys
import types
import weakref

import numpy as np
import pytest

import primax_core as px
from primax_core import clear_caches, device_put, lax

X = np.float32([[1, 2], [3, 4]])

# Tables that are not caches: registrations and interned objects.
KEPT = {
    "_base.config._interned": "keys of configurations",
    "_base.config._threads": "threads with their own configuration",
    "_base.locks._all": "locks to free after a fork",
    "_engine.jit_cache._all": "jitted functions, held weakly",
    "_ir.avals._interned": "interned types",
    "_ir.primitive._all": "primitives, held weakly",
    "_ir.ref_types._interned": "interned types of references",
    "_lower.cache_key._own_rules": "rules of the library",
    "_lower.compile._loaded": "executables, held weakly; some are being written to the disk",
    "_lower.context._element_types": "MLIR types of dtypes, filled at import",
    "_lower.source_fingerprint._packages": "registrations of packages",
    "_runtime.array._specs": "interned specs",
    "_runtime.custom_calls._done": "targets registered with XLA, which keeps them",
    "_runtime.custom_calls._providers": "registrations of targets",
    "_runtime.devices._clients": "clients",
    "_runtime.devices._first": "the default client",
    "_runtime.disk.keys._machines": "fingerprints of machines, one for each client",
    "_runtime.in_flight._all": "threads with running executions",
    "_runtime.in_flight._at_exit": "exit handlers",
    "_trace.core._type_of": "registrations of value types",
    "extend.fast_path._all": "fast paths, held weakly",
}


def containers() -> dict[str, int]:
    """Sizes of the module-level containers of the core."""
    sizes = {}
    for name, module in list(sys.modules.items()):
        if not name.startswith("primax_core.") or not isinstance(module, types.ModuleType):
            continue
        for key, value in vars(module).items():
            kinds = (dict, list, set, weakref.WeakSet, weakref.WeakKeyDictionary,
                     weakref.WeakValueDictionary)  # fmt: skip
            if isinstance(value, kinds) and not key.startswith("__"):
                sizes[f"{name.removeprefix('primax_core.')}.{key}"] = len(value)
    return sizes


def work(n: int) -> None:
    """Fill the caches with jaxprs that are distinct for each number."""
    x = device_put(np.arange(n + 4.0, dtype=np.float32))
    y = x + 1.5 * n
    y = y**2 / (n + 3.0)
    f = px.jit(lambda v: lax.reduce_sum(lax.sin(v) * float(n + 0.5), (0,)))
    f(y)
    px.grad(f)(y)
    px.hessian(lambda v: lax.reduce_sum(v * v * v, (0,)))(y)
    px.vmap(lambda v: lax.sin(v) + n)(y)
    px.jvp(lambda v: lax.scan(lambda c, e: (c * e, c), v[0] if False else n * 1.0, v), (y,), (y,))
    lax.reduce(y, np.float32(n), lambda a, b: a + b, (0,))
    lax.scatter_add(
        y, np.array([[n % 3]]), np.ones((1,), np.float32),
        lax.ScatterDimensionNumbers((), (0,), (0,)),
    )  # fmt: skip
    lax.fft(y, "fft", (n + 4,))
    px.make_jaxpr(lambda v: lax.cond(v.shape[0] > 2, lax.sin, lax.cos, v))(y)


@pytest.mark.filterwarnings("ignore")
def test_clear_caches_empties_all_module_level_caches():
    work(0)
    clear_caches()
    gc.collect()
    before = containers()
    work(1)
    work(2)
    clear_caches()
    gc.collect()  # executables are freed with their jaxprs
    after = containers()
    grown = {
        name: (before.get(name, 0), size)
        for name, size in after.items()
        if size > before.get(name, 0) and name not in KEPT
    }
    assert not grown


def test_the_workload_fills_all_caches():
    """The test above would pass if nothing were cached."""
    from primax_core.lax import operators

    clear_caches()
    device_put(X) + 7.25
    assert len(operators._scalars) == 1


def test_live_arrays_excludes_internal_arrays():
    clear_caches()
    before = len(px.live_arrays())
    x = device_put(X)
    for i in range(50):
        x + (i + 0.25)
    assert len(px.live_arrays()) == before + 1
    clear_caches()
    assert len(px.live_arrays()) == before + 1
