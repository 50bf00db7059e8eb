"""Configurations of a call on their way to a measurement: traced, compiled, compared."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from primax_core import block_until_ready, dtypes, jit, tree_util
from primax_core.extend import Tracer

from .configs import Config, described
from .measuring import Timing, measure

_MAX_THREADS: Final = 8


@dataclass
class Candidate:
    """A configuration, and what became of it.

    Attributes:
      config: the configuration.
      reason: why it is not measured; empty if it is.
      error: the exception of ``reason``.
      lowered: the traced and lowered call.
      compiled: the executable.
      timing: its times.
    """

    config: Config
    reason: str = ""
    error: Exception | None = None
    lowered: Any = None
    compiled: Any = None
    timing: Timing | None = None

    def drop(self, stage: str, error: Exception) -> None:
        """Leave the configuration out because of an error."""
        text = (str(error).strip().splitlines() or [""])[0]
        self.reason = f"{stage}: {type(error).__name__}: {text}"
        self.error, self.lowered, self.compiled = error, None, None


def lower_all(
    candidates: Sequence[Candidate], fun: Callable[..., Any], args: Sequence[Any],
    options: Mapping[str, Any],
) -> None:  # fmt: skip
    """Trace and lower each candidate; those whose blocks or operations are refused are dropped."""
    for c in candidates:
        try:
            c.lowered = jit(functools.partial(fun, **options, **c.config)).lower(*args)
        except Exception as error:
            c.drop("refused", error)


def compile_all(candidates: Sequence[Candidate]) -> None:
    """Compile the lowered candidates, several at a time."""
    lowered = [c for c in candidates if c.lowered is not None]
    threads = max(1, min(len(lowered), os.cpu_count() or 1, _MAX_THREADS))
    with ThreadPoolExecutor(threads, "autotune") as pool:
        list(pool.map(_compile, lowered))


def _compile(candidate: Candidate) -> None:
    try:
        candidate.compiled = candidate.lowered.compile()
    except Exception as error:
        candidate.drop("not compiled", error)
    candidate.lowered = None


def compare_all(
    candidates: Sequence[Candidate], args: Sequence[Any], rtol: float, atol: float
) -> None:
    """Drop candidates whose results differ from those of the first one."""
    expected: Any = None
    first: Candidate | None = None
    for c in [c for c in candidates if c.compiled is not None]:
        try:
            results = [np.asarray(x) for x in tree_util.tree_leaves(c.compiled(*args))]
        except Exception as error:
            c.drop("failed", error)
            continue
        if first is None:
            first, expected = c, results
            continue
        problem = difference(results, expected, rtol, atol)
        if problem:
            c.compiled = None
            c.reason = f"wrong: {problem} from the results with {described(first.config)}"


def difference(results: Sequence[Any], expected: Sequence[Any], rtol: float, atol: float) -> str:
    """Description of the first difference beyond the tolerances; empty if there is none."""
    for i, (x, y) in enumerate(zip(results, expected)):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"result {i} is {x.dtype}{list(x.shape)}, which differs"
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        if x.dtype.kind in "biu":
            wide = x.dtype
        x, y = x.astype(wide), y.astype(wide)
        if not np.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True):
            far = np.count_nonzero(~np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True))
            return f"result {i} differs in {far} of {x.size} elements"
    return ""


def time_all(candidates: Sequence[Candidate], args: Sequence[Any], **how: Any) -> None:
    """Measure the compiled candidates."""
    ready = [c for c in candidates if c.compiled is not None]
    timings = measure([functools.partial(_run, c.compiled, args) for c in ready], **how)
    for c, timing in zip(ready, timings):
        c.timing = timing
        if timing.error is not None:
            c.drop("failed", timing.error)
            c.timing = None


def _run(compiled: Callable[..., Any], args: Sequence[Any], n: int) -> None:
    results: Any = None
    for _ in range(n):
        results = compiled(*args)
    block_until_ready(results)


def concrete(args: Sequence[Any]) -> list[Any]:
    """Arguments with arrays in the place of shapes and dtypes.

    Floating-point numbers are normally distributed, and integers are 0.

    Raises:
      TypeError: for traced values.
    """
    numbers = np.random.default_rng(0)

    def array(x: Any) -> Any:
        if isinstance(x, Tracer):
            raise TypeError(
                "tune measures with concrete arrays, and got a traced one: call tune outside of "
                "jit, grad and vmap, also with ShapeDtypeStruct"
            )
        if isinstance(x, np.ndarray) or not _is_type(x):
            return x
        if dtypes.issubdtype(x.dtype, np.inexact):
            return numbers.standard_normal(x.shape).astype(x.dtype)
        return np.zeros(x.shape, x.dtype)

    return [tree_util.tree_map(array, a) for a in args]


def _is_type(x: Any) -> bool:
    return hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__array__")
