"""Measurement of the sizes from which the native kernels are faster than XLA's forms.

``python -m primax_ffi_cpu.measure`` prints the table of ``primax_ffi_cpu._thresholds`` for this
machine; ``--operations`` and ``--dtypes`` select rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from primax_core import enable_x64, jit, lax

from ._option import native_kernels
from ._sorting import SORTED
from ._thresholds import measuring

REPEATS: Final = 16
"""Operations of a program, so that the time of its call is a small part."""

SIZES: Final = (2, 4, 8, 16, 32, 64, 128)


def _sorted(x: Any, _: int) -> Any:
    return lax.sort(x)


def _argsorted(x: Any, n: int) -> Any:
    return lax.sort((x, lax.iota(np.int32, n)))[0]


def _largest(x: Any, n: int) -> Any:
    values = lax.top_k(x, max(1, n // 8))[0]
    return lax.concatenate([values, lax.slice(x, (values.shape[0],), (n,))], 0)


OPERATIONS: Final[dict[str, Callable[[Any, int], Any]]] = {
    "sort": _sorted,
    "argsort": _argsorted,
    "top_k": _largest,
}


def elements(dtype: np.dtype, n: int) -> np.ndarray:
    """Random numbers of a dtype."""
    rng = np.random.default_rng(n)
    if dtype.kind == "b":
        return rng.random(n) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
    x = rng.normal(size=n)
    return (x + 1j * rng.normal(size=n) if dtype.kind == "c" else x).astype(dtype)


def seconds(operation: str, dtype: np.dtype, n: int, native: bool) -> float:
    """Shortest CPU time of an operation on a line of n elements, within a program."""
    run = OPERATIONS[operation]

    def program(x: Any) -> Any:
        for _ in range(REPEATS):
            # Half of the elements in reverse: no sorted input.
            half = n // 2
            x = lax.concatenate([lax.rev(lax.slice(x, (half,), (n,)), (0,)),
                                 lax.slice(x, (0,), (half,))], 0)  # fmt: skip
            x = run(lax.optimization_barrier(x), n)
        return x

    with native_kernels(native), measuring():
        compiled = jit(program)
        x = elements(dtype, n)
        best = np.inf
        for _ in range(30):
            start = time.process_time()
            for _ in range(10):
                np.asarray(compiled(x))
            best = min(best, time.process_time() - start)
    return best / 10 / REPEATS


def least_sizes(operations: list[str], dtypes: list[str]) -> Iterator[tuple[str, str, int]]:
    """For each operation and dtype the least of ``SIZES`` from which on the kernel is faster."""
    with enable_x64(True):
        for operation in operations:
            for name in dtypes:
                dtype = lax.full((), 0, name).dtype
                if operation == "top_k" and dtype.kind == "c":
                    continue
                least = 1
                for n in SIZES:
                    with_kernel, without = (seconds(operation, dtype, n, b) for b in (True, False))
                    if with_kernel > 1.1 * without:  # not by chance
                        least = 2 * n
                yield operation, name, least


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m primax_ffi_cpu.measure", description=__doc__)
    parser.add_argument("--operations", nargs="+", choices=OPERATIONS, default=[*OPERATIONS])
    parser.add_argument("--dtypes", nargs="+", choices=sorted(SORTED), default=sorted(SORTED))
    options = parser.parse_args(arguments)
    for operation, dtype, least in least_sizes(options.operations, options.dtypes):
        if least > 1:
            print(f'    ("{operation}", "{dtype}"): {least},', flush=True)


if __name__ == "__main__":
    main()
