"""Sorting, selection and cumulative operations on the CPU, with and without primax-ffi-cpu.

Figures are CPU time of all threads: native kernels divide their work among XLA's.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Cases, Namespace

CASES = Cases()
WITH, WITHOUT = "native kernels", "without native kernels"

Prepare = Callable[[Namespace], tuple[Callable[..., Any], Any]]


def least(ns: Namespace, fun: Callable[..., Any], x: Any, number: int) -> float:
    """Seconds of CPU time of a compiled call, the least of several."""
    compiled = ns.jax.jit(fun)
    wait = ns.jax.block_until_ready
    for _ in range(2):
        wait(compiled(x))
    gc.collect()
    times = []
    for _ in range(number):
        start = time.process_time_ns()
        wait(compiled(x))
        times.append(time.process_time_ns() - start)
    return min(times) / 1e9


def compared(name: str, budget: float | None = None, number: int = 20) -> Callable[[Prepare], None]:
    """Register a function and its operand, to be measured with and without the kernels."""

    def register(prepare: Prepare) -> None:
        for group, suffix in ((WITH, ""), (WITHOUT, ", without")):

            @CASES.measured(group, name + suffix, "ms", None if suffix else budget)
            def _(ns: Namespace) -> float:
                fun, x = prepare(ns)
                return least(ns, fun, ns.jnp.asarray(x), number)

    return register


def floats(*shape: int) -> np.ndarray:
    """Normal numbers, the same in each process."""
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


compared("sort 1e6")(lambda ns: (ns.jnp.sort, floats(10**6)))
compared("argsort 1e6")(lambda ns: (ns.jnp.argsort, floats(10**6)))
compared("sort 1000x1000 rows")(lambda ns: (ns.jnp.sort, floats(1000, 1000)))
compared("sort 1000x1000 columns")(lambda ns: (lambda x: ns.jnp.sort(x, 0), floats(1000, 1000)))
compared("sort 1000")(lambda ns: (ns.jnp.sort, floats(1000)))
compared("sort 100")(lambda ns: (ns.jnp.sort, floats(100)))
compared("top_k 100 of 1e6")(lambda ns: (lambda x: ns.jax.lax.top_k(x, 100), floats(10**6)))
compared("unique 1e5")(
    lambda ns: (
        lambda x: ns.jnp.unique(x, size=1000),
        np.random.default_rng(0).integers(0, 1000, 10**5).astype(np.int32),
    )
)
for _n in (10**5, 10**6):
    compared(f"permutation {_n:.0e}")(
        lambda ns, n=_n: (lambda key: ns.jax.random.permutation(key, n), ns.jax.random.key(0))
    )
    compared(f"median {_n:.0e}")(lambda ns, n=_n: (ns.jnp.median, floats(n)))
compared("quantile 1e6, 3 ranks")(
    lambda ns: (
        lambda x: ns.jnp.quantile(x, np.float32([0.1, 0.5, 0.9])), floats(10**6),
    )
)  # fmt: skip
compared("cumsum 1e6")(lambda ns: (ns.jnp.cumsum, floats(10**6)))
compared("cumsum 1000x1000 rows")(lambda ns: (lambda x: ns.jnp.cumsum(x, 1), floats(1000, 1000)))
compared("cumsum 1000x1000 columns")(lambda ns: (lambda x: ns.jnp.cumsum(x, 0), floats(1000, 1000)))
compared("cummax 1e6")(lambda ns: (ns.jax.lax.cummax, floats(10**6)))
compared("cumlogsumexp 1e6")(lambda ns: (ns.jax.lax.cumlogsumexp, floats(10**6)))
