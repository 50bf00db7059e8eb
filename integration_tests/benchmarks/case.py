"""Benchmark cases and timing of calls."""

from __future__ import annotations

import gc
import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any


class Namespace:
    """A library under test by JAX's module paths; each module is imported on first use."""

    def __init__(self, root: str) -> None:
        self.root = root

    def _module(self, path: str = "") -> ModuleType:
        return importlib.import_module(self.root + path)

    @cached_property
    def jax(self) -> Any:
        """The root module: ``jit``, ``grad``, ``tree``, ..."""
        return self._module()

    @cached_property
    def jnp(self) -> Any:
        """The NumPy layer."""
        return self._module(".numpy")

    @cached_property
    def lax(self) -> Any:
        """The primitives."""
        return self._module(".lax")

    @cached_property
    def nn(self) -> Any:
        """Neural-network functions."""
        return self._module(".nn")

    @cached_property
    def random(self) -> Any:
        """Random numbers."""
        return self._module(".random")


@dataclass(frozen=True)
class Case:
    """One measured quantity.

    ``run`` returns seconds, or bytes if ``unit`` is MiB. ``budget`` is the largest ratio to the
    reference that the design allows. All cases of a ``group`` share one process.
    """

    name: str
    group: str
    unit: str
    budget: float | None
    run: Callable[[Namespace], float]


SCALE = {"µs": 1e6, "ms": 1e3, "s": 1.0, "MiB": 1 / 2**20}


def per_call(ns: Namespace, call: Callable[[], Any], batch_seconds: float = 0.01) -> float:
    """Median seconds of ``call``, over batches that wait for the last result."""

    def batch(number: int) -> float:
        start = time.perf_counter()
        for _ in range(number):
            out = call()
        ns.jax.block_until_ready(out)
        return time.perf_counter() - start

    for _ in range(3):
        batch(1)
    number = 1
    while (elapsed := batch(number)) < batch_seconds:
        number = max(2 * number, int(number * batch_seconds / elapsed))
    gc.collect()
    gc.disable()
    try:
        return statistics.median(batch(number) / number for _ in range(9))
    finally:
        gc.enable()


class Cases(list[Case]):
    """The cases of one module, collected by its decorators."""

    def measured(
        self, group: str, name: str, unit: str, budget: float | None = None
    ) -> Callable[[Callable[[Namespace], float]], Callable[[Namespace], float]]:
        """Register a function that returns its own measurement."""

        def register(run: Callable[[Namespace], float]) -> Callable[[Namespace], float]:
            self.append(Case(name, group, unit, budget, run))
            return run

        return register

    def timed(
        self, group: str, name: str, budget: float | None = None, unit: str = "µs"
    ) -> Callable[[Callable[[Namespace], Callable[[], Any]]], None]:
        """Register a function that prepares a call; the call is timed."""

        def register(prepare: Callable[[Namespace], Callable[[], Any]]) -> None:
            self.append(Case(name, group, unit, budget, lambda ns: per_call(ns, prepare(ns))))

        return register
