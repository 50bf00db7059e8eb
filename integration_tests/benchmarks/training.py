"""The transformer's training step: tracing, lowering, compiling, the first step, steady steps."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from . import clock, model
from .case import Cases, Namespace, per_call

CASES = Cases()
DEEP = model.Size(layers=12)
SHALLOW = model.Size(layers=4)


@cache
def _arguments(ns: Namespace) -> tuple[Any, Any, Any]:
    return model.make_arguments(ns, DEEP)


def _trace(ns: Namespace) -> Any:
    """Create a new step each time, so that no earlier trace is reused."""
    return ns.jax.jit(model.make_step(ns, DEEP)).trace(*_arguments(ns))


@cache
def _compiled(ns: Namespace) -> tuple[Any, float]:
    lowered = _trace(ns).lower()
    start = time.perf_counter()
    compiled = lowered.compile()
    return compiled, time.perf_counter() - start


def _repeat(measure: Callable[[], float], times: int = 5) -> float:
    return statistics.median(measure() for _ in range(times))


@CASES.measured("training", "trace, 12 layers, first in the process", "ms")
def _(ns: Namespace) -> float:
    _arguments(ns)
    start = time.perf_counter()
    _trace(ns)
    return time.perf_counter() - start


@CASES.measured("training", "trace, 12 layers", "ms", 0.35)
def _(ns: Namespace) -> float:
    _arguments(ns)

    def once() -> float:
        start = time.perf_counter()
        _trace(ns)
        return time.perf_counter() - start

    return _repeat(once)


@CASES.measured("training", "lower, 12 layers", "ms", 0.5)
def _(ns: Namespace) -> float:
    def once() -> float:
        traced = _trace(ns)
        start = time.perf_counter()
        traced.lower()
        return time.perf_counter() - start

    return _repeat(once)


@CASES.measured("training", "compile, 12 layers", "s")
def _(ns: Namespace) -> float:
    return _compiled(ns)[1]


@CASES.measured("training", "steady step, 12 layers", "ms", 1.0)
def _(ns: Namespace) -> float:
    step, _ = _compiled(ns)
    arguments = _arguments(ns)
    return per_call(ns, lambda: step(*arguments)[1], batch_seconds=0.1)


def first_step(ns: Namespace) -> float:
    """Seconds from process start to the end of the first step."""
    step = ns.jax.jit(model.make_step(ns, SHALLOW))
    out = step(*model.make_arguments(ns, SHALLOW))
    ns.jax.block_until_ready(out)
    return time.perf_counter() - clock.START


# Both share one cache folder, which is empty before the first.
CASES.measured("first step 1", "time to first step, 4 layers, first process", "s")(first_step)
CASES.measured("first step 2", "time to first step, 4 layers, later process", "s", 0.25)(first_step)
