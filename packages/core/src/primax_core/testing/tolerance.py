"""How closely values agree, by dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from .._ir import dtypes

_VALUES: Final[dict[Any, float]] = {
    np.dtype(np.float64): 1e-12,
    np.dtype(np.complex128): 1e-12,
    np.dtype(np.float32): 2e-5,
    np.dtype(np.complex64): 2e-5,
    np.dtype(np.float16): 4e-3,
    np.dtype(ml_dtypes.bfloat16): 3e-2,
}
_GRADIENTS: Final[dict[Any, float]] = {
    np.dtype(np.float64): 1e-5,
    np.dtype(np.complex128): 1e-5,
    np.dtype(np.float32): 2e-2,
    np.dtype(np.complex64): 2e-2,
    np.dtype(np.float16): 1e-1,
    np.dtype(ml_dtypes.bfloat16): 2e-1,
}
_STEPS: Final[dict[Any, float]] = {
    np.dtype(np.float64): 6e-6,
    np.dtype(np.complex128): 6e-6,
    np.dtype(np.float32): 5e-3,
    np.dtype(np.complex64): 5e-3,
}


def value_tolerance(dtype: Any) -> float:
    """How far equal computations may differ relative to the largest of the compared values."""
    if not dtypes.issubdtype(dtype, np.inexact):
        return 0.0
    return _VALUES.get(np.dtype(dtype), 0.25)


def gradient_tolerance(dtype: Any) -> float:
    """How far derivatives may be from differences computed in a dtype."""
    return _GRADIENTS.get(np.dtype(dtype), 0.25)


def difference_step(dtype: Any) -> float:
    """The step of central differences: about the cube root of the dtype's precision."""
    return _STEPS.get(np.dtype(dtype), 5e-2)


def wide(x: Any) -> np.ndarray:
    """The values as NumPy numbers that NumPy computes with."""
    x = np.asarray(x)
    if x.dtype.kind in "biufc":
        return x
    return x.astype(np.float64) if dtypes.issubdtype(x.dtype, np.floating) else x.astype(np.int64)


def mismatch(found: Any, expected: Any, tolerance: float) -> str | None:
    """How two arrays differ, or ``None``; ``tolerance`` is relative to the largest value."""
    a, b = wide(found), wide(expected)
    if a.shape != b.shape:
        return f"shape {a.shape} where {b.shape} is expected"
    if a.size == 0:
        return None
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) if a.dtype.kind in "fc" else a == b
        finite = np.abs(b[np.isfinite(b)]) if b.dtype.kind in "fc" else np.abs(b)
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        close = same | (
            np.abs(np.subtract(a, b, dtype=np.result_type(a, b, float))) <= tolerance * scale
        )
    if close.all():
        return None
    at = np.unravel_index(np.argmin(close), close.shape)
    where = f" at {tuple(map(int, at))}" if at else ""
    return f"{a[at]} where {b[at]} is expected{where} (tolerance {tolerance * scale:.1e})"


def mismatches(
    found: Sequence[Any], expected: Sequence[Any], tolerance: float | None = None
) -> str | None:
    """How two lists of arrays differ, or ``None``; tolerances are those of the dtypes."""
    if len(found) != len(expected):
        return f"{len(found)} results where {len(expected)} are expected"
    for i, (a, b) in enumerate(zip(found, expected)):
        allowed = value_tolerance(np.asarray(b).dtype) if tolerance is None else tolerance
        text = mismatch(a, b, allowed)
        if text is not None:
            return text if len(found) == 1 else f"result {i}: {text}"
    return None
