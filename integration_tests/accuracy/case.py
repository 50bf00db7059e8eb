"""One function with its exact values and the arguments that it is tried with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .points import Draw


@dataclass(frozen=True)
class Case:
    """One function.

    Args:
      name: path below the package, for example ``numpy.exp2``.
      exact: the function of mpmath numbers.
      ranges: arguments in both dtypes.
      single, double: arguments in ``float32`` or ``float64`` only.
      keywords: keyword arguments of the call.
      pick: index of the result, for functions that return several.
      peer: whether NumPy or SciPy has the function under the same path.
      slow: whether exact values take long; then a tenth of the arguments is tried, beside SciPy.
    """

    name: str
    exact: Callable[..., Any]
    ranges: tuple[Draw, ...] = ()
    single: tuple[Draw, ...] = ()
    double: tuple[Draw, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)
    pick: int | None = None
    peer: bool = True
    slow: bool = False

    @property
    def title(self) -> str:
        """Name in tables."""
        name = self.name
        for prefix in ("numpy.", "scipy.special.", "scipy."):
            name = name.removeprefix(prefix)
        return name if self.pick is None else f"{name}[{self.pick}]"

    def drawn(self, dtype: Any, count: int, seed: int = 0) -> list[np.ndarray]:
        """About ``count`` arguments: arrays, one for each operand."""
        ranges = (*self.ranges, *(self.double if dtype == np.float64 else self.single))
        random = np.random.default_rng(seed)
        count = max(count // 10, min(count, 12)) if self.slow else count
        parts = [draw(random, -(-count // len(ranges))) for draw in ranges]
        tuples = [p if isinstance(p, tuple) else (p,) for p in parts]
        return [_cast(np.concatenate(part), dtype) for part in zip(*tuples, strict=True)]


def _cast(x: np.ndarray, dtype: Any) -> np.ndarray:
    return x.astype(np.int32 if x.dtype.kind == "i" else dtype)
