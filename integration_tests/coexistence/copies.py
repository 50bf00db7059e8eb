"""Use two vendored copies and the original, and jax if asked, in one process; print JSON.

``python copies.py`` with any of ``jax`` and ``busy``: with the latter, threads of all libraries
compute while the interpreter exits.
"""

from __future__ import annotations

import json
import pickle
import sys
import threading
from typing import Any

import acme
import numpy as np
import zenith.lib

import primax_core
import primax_numpy

CORES = {"acme": acme.core, "zenith": zenith.lib.core, "primax_core": primax_core}
if "jax" in sys.argv:
    import jax

    CORES["jax"] = jax


def submodule(core: Any, name: str) -> Any:
    return sys.modules.get(f"{core.__name__}.{name}")


def dtypes() -> dict[str, str]:
    """Default floating type of each library, which its environment variable sets."""
    return {k: str(core.lax.full((2,), 1.0).dtype) for k, core in CORES.items()}


def gradients() -> dict[str, list[float]]:
    x = np.linspace(0.5, 2, 4, dtype=np.float32)

    def gradient(core: Any) -> Any:
        return core.jit(core.vmap(core.grad(lambda v: core.lax.sin(v) * v)))(x)

    return {k: np.asarray(gradient(core)).tolist() for k, core in CORES.items()}


def pointers() -> dict[str, bool]:
    """Return True for each pair of libraries between which an array passes without a copy."""
    same = {}
    for source, core in CORES.items():
        x = core.device_put(np.arange(4096, dtype=np.float32))
        for k, other in CORES.items():
            y = other.dlpack.from_dlpack(x)
            own = type(y).__module__.partition(".")[0]
            assert own in (other.__name__.partition(".")[0], "jaxlib"), (k, type(y))
            np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
            same[f"{source} to {k}"] = y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    return same


def pickles() -> dict[str, str]:
    """The module of the class of an array that was pickled and loaded."""
    modules = {}
    for k, core in CORES.items():
        x = core.device_put(np.arange(3, dtype=np.float32))
        loaded = pickle.loads(pickle.dumps(x))
        np.testing.assert_array_equal(np.asarray(loaded), np.asarray(x))
        assert type(loaded) is type(x)
        modules[k] = type(loaded).__module__
    return modules


def methods() -> list[str]:
    """Libraries whose arrays have the methods of the NumPy layer."""
    own = [k for k in CORES if k != "jax"]
    return [k for k in own if hasattr(CORES[k].lax.full((2,), 1.0), "sum")]


def finish_caches() -> None:
    for core in CORES.values():
        writer = submodule(core, "_runtime.disk.writer")
        if writer is not None:
            writer.finish()


def compute_forever(core: Any) -> None:
    x = np.ones((64, 64), np.float32)
    f = core.jit(lambda a: core.lax.dot(core.lax.sin(a), a))
    while True:
        f(x)
        core.lax.exp(x)


def main() -> None:
    np.testing.assert_allclose(acme.numpy.arange(4.0).sum(), 6)
    np.testing.assert_allclose(primax_numpy.arange(4.0).sum(), 6)
    report = {
        "dtypes": dtypes(),
        "gradients": gradients(),
        "pointers": pointers(),
        "pickles": pickles(),
        "methods": methods(),
        "environment": acme.core.print_environment_info(return_string=True),
        "stamp": [
            len(submodule(core, "_lower.source_fingerprint")._take(2**63))
            for core in (acme.core, primax_core)
        ],
        "vendor": [name for name in sys.modules if ".vendor" in name],
    }
    finish_caches()
    print(json.dumps(report))
    if "busy" in sys.argv:
        # Without jax, whose own threads abort the process in the same situation.
        for core in (acme.core, zenith.lib.core, primax_core):
            threading.Thread(target=compute_forever, args=(core,), daemon=True).start()
        for core in CORES.values():
            core.lax.sin(np.float32(1)).block_until_ready()


main()
