"""Errors of computed values in units in the last place (ulp) of the exact value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

# Digits of the reference values. Functions that cancel near their zeros need many.
DIGITS = 60


@dataclass(frozen=True)
class Exact:
    """Exact values rounded to two numbers of ``float64``, and those that are left out.

    ``normal`` is False where the exact value is not finite, overflows, or is subnormal, and where
    an argument is subnormal: XLA flushes subnormal numbers to zero.
    """

    head: np.ndarray
    tail: np.ndarray
    normal: np.ndarray


@dataclass(frozen=True)
class Error:
    """Largest and median error in ulp, and the arguments of the largest."""

    worst: float
    median: float
    at: tuple[float, ...] = ()

    def __str__(self) -> str:
        return f"{shown(self.worst)} at {', '.join(repr(x) for x in self.at)}"


def shown(ulp: float) -> str:
    """Two significant digits of an error."""
    if np.isinf(ulp):
        return "inf"
    return f"{ulp:.1f}" if ulp < 100 else f"{ulp:.1e}".replace("e+0", "e").replace("e+", "e")


def exact(fun: Callable[..., Any], operands: Sequence[np.ndarray], dtype: Any) -> Exact:
    """Values of a function of mpmath numbers."""
    info = np.finfo(dtype)
    n = len(operands[0])
    head, tail, normal = np.zeros(n), np.zeros(n), np.zeros(n, bool)
    low, high = mpmath.mpf(float(info.tiny)), mpmath.mpf(float(info.max))
    with mpmath.workdps(DIGITS):
        for i, arguments in enumerate(zip(*operands, strict=True)):
            if any(np.any((x != 0) & (np.abs(x) < info.tiny)) for x in arguments):
                continue
            try:
                value = fun(*[_number(x) for x in arguments])
            except (ZeroDivisionError, ValueError, mpmath.libmp.NoConvergence):
                continue
            if isinstance(value, mpmath.mpc):
                if value.imag != 0:
                    continue
                value = value.real
            if not mpmath.isfinite(value) or not low <= abs(value) <= high:
                continue
            head[i], normal[i] = float(value), True
            tail[i] = float(value - mpmath.mpf(head[i]))
    return Exact(head, tail, normal)


def _number(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return [mpmath.mpf(float(y)) for y in x]
    return mpmath.mpf(float(x))


def error(computed: Any, values: Exact, operands: Sequence[np.ndarray], dtype: Any) -> Error:
    """The largest error of computed values, and the median."""
    got = np.asarray(computed).astype(np.float64)
    rounded = np.abs(values.head).astype(dtype)
    spacing = np.spacing(rounded).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        ulp = np.abs((got - values.head) - values.tail) / spacing
    ulp = np.where(np.isfinite(got), ulp, np.inf)[values.normal]
    if not ulp.size:
        raise ValueError("no point has a finite, normal value")
    i = int(np.argmax(ulp))
    at = [x[values.normal][i] for x in operands]
    return Error(float(ulp[i]), float(np.median(ulp)), tuple(_plain(x) for x in at))


def _plain(x: Any) -> Any:
    return float(x) if np.ndim(x) == 0 else [float(y) for y in x]
