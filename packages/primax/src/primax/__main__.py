"""``python -m primax``: versions, devices, variables and cache of this installation, and a test."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

import numpy as np

import primax
from primax_core import cache

# Wheels, their packages, and the extra of the facade that installs each
WHEELS: Final = (
    ("primax", "primax", ""),
    ("primax-core", "primax_core", ""),
    ("primax-numpy", "primax_numpy", "numpy"),
    ("primax-nn", "primax_nn", "nn"),
    ("primax-scipy", "primax_scipy", "scipy"),
    ("primax-interpreters", "primax_interpreters", "interpreters"),
    ("primax-distributed", "primax_distributed", "distributed"),
    ("primax-kernels", "primax_kernels", "kernels"),
    ("primax-ffi", "primax_ffi", "ffi"),
    ("primax-ffi-cpu", "primax_ffi_cpu", "native"),
)
_PREFIXES: Final = ("PRIMAX_", "JAX_", "XLA_", "CUDA_VISIBLE", "TPU_")


def _installed(wheel: str, package: str, extra: str) -> str:
    if find_spec(package) is None:
        return f"not installed; pip install 'primax[{extra}]'"
    try:
        return version(wheel)
    except PackageNotFoundError:
        return "imported from sources"


def _line(name: str, value: object) -> str:
    return f"  {name:<20} {value}"


def _versions() -> Iterator[str]:
    yield "wheels"
    for wheel in WHEELS:
        yield _line(wheel[0], _installed(*wheel))
    yield "environment"
    yield _line("python", f"{platform.python_version()} at {sys.executable}")
    for name in ("jaxlib", "numpy"):
        yield _line(name, version(name))
    yield _line("platform", platform.platform())
    yield _line("cores", _cores())


def _cores() -> str:
    total = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else total
    return str(total) if usable == total else f"{usable} of {total}, by the process's affinity"


def _devices() -> Iterator[str]:
    yield "devices"
    try:
        devices = primax.devices()
    except RuntimeError as error:  # a platform that was asked for does not start
        devices = []
        yield _line("none", error)
    for device in devices:
        memory = device.memory_stats() or {}
        limit = memory.get("bytes_limit")
        size = "" if limit is None else f", {limit / 2**30:.1f} GiB"
        yield _line(str(device), f"{device.device_kind}{size}")
    yield "variables"
    names = sorted(n for n in os.environ if n.startswith(_PREFIXES))
    yield from [_line(n, os.environ[n]) for n in names] or [_line("none", "")]


def _jit() -> bool:
    return float(primax.jit(lambda x: x * 2 + 1)(3.0)) == 7


def _derivatives() -> bool:
    second = primax.grad(primax.grad(lambda x: x * x * x))
    return float(second(2.0)) == 12


def _batches() -> bool:
    return primax.vmap(lambda x: x * x)(primax.lax.iota("int32", 4)).tolist() == [0, 1, 4, 9]


def _loops() -> bool:
    return float(primax.lax.fori_loop(0, 5, lambda i, x: x * 2, 1.0)) == 32


def _cholesky() -> bool:
    matrix = primax.lax.full((2, 2), 1.0) + primax.lax.eq(
        primax.lax.broadcasted_iota("int32", (2, 2), 0),
        primax.lax.broadcasted_iota("int32", (2, 2), 1),
    )
    factor = primax.lax.linalg.cholesky(matrix)
    return abs(float(np.asarray(factor)[0, 0]) - 2**0.5) < 1e-6


def _random() -> bool:
    from primax import random

    return random.bits(random.key(0), (2,)).tolist() == [4070199207, 4202968722]


def _functions() -> bool:
    from primax.scipy import special

    return abs(float(special.erf(0.5)) - 0.5204999) < 1e-6


def _relu() -> bool:
    from primax import nn

    return float(nn.relu(-1.0)) == 0


# Name, package that is needed, test
_TESTS: Final[tuple[tuple[str, str, Callable[[], bool]], ...]] = (
    ("jit", "primax_core", _jit),
    ("grad", "primax_core", _derivatives),
    ("vmap", "primax_core", _batches),
    ("loops", "primax_core", _loops),
    ("linear algebra", "primax_core", _cholesky),
    ("random numbers", "primax_numpy", _random),
    ("special functions", "primax_scipy", _functions),
    ("neural networks", "primax_nn", _relu),
)


def _test() -> int:
    print("test")
    failures = 0
    for name, package, function in _TESTS:
        if find_spec(package) is None:
            print(_line(name, f"skipped: {package} is not installed"))
            continue
        started = time.perf_counter()
        try:
            passed = function()
        except Exception:  # of any kind: the report goes on with the next test
            traceback.print_exc(limit=-3)
            passed = False
        failures += not passed
        milliseconds = (time.perf_counter() - started) * 1e3
        print(_line(name, f"{'passed' if passed else 'FAILED'} in {milliseconds:.0f} ms"))
    print(f"{failures} of {len(_TESTS)} failed" if failures else "no failure")
    return 1 if failures else 0


def main(arguments: list[str] | None = None) -> int:
    """Print the report; with ``--test``, also compute a few values. Return the exit status."""
    parser = argparse.ArgumentParser("python -m primax", description=__doc__)
    parser.add_argument("--test", action="store_true", help="compute a few known values")
    options = parser.parse_args(arguments)
    for lines in (_versions, _devices):
        print("\n".join(lines()))
    print("cache of executables on disk (python -m primax_core.cache)")
    cache.main(["info"])
    return _test() if options.test else 0


if __name__ == "__main__":
    raise SystemExit(main())
