"""Tolerances of comparisons, by dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from .._ir import dtypes
from .._ir.element_types import DTypeLike
from .._trace.typing import ArrayLike


class _Limits(NamedTuple):
    """Tolerance of equal computations, tolerance of derivatives against differences, and the step
    of
    central differences: about the cube root of the dtype's precision."""

    value: float
    gradient: float
    step: float


# Complex dtypes have the limits of their real dtypes.
_LIMITS: Final[dict[np.dtype, _Limits]] = {
    np.dtype(np.float64): _Limits(1e-12, 1e-5, 6e-6),
    np.dtype(np.float32): _Limits(2e-5, 2e-2, 5e-3),
    np.dtype(np.float16): _Limits(4e-3, 1e-1, 5e-2),
    np.dtype(ml_dtypes.bfloat16): _Limits(3e-2, 2e-1, 5e-2),
}
_NARROW: Final = _Limits(0.25, 0.25, 5e-2)


def _limits(dtype: Any) -> _Limits:
    dtype = np.dtype(dtype)
    return _LIMITS.get(np.finfo(dtype).dtype if dtype.kind == "c" else dtype, _NARROW)


def value_tolerance(dtype: DTypeLike) -> float:
    """Tolerance of equal computations, relative to the largest of the compared values."""
    return _limits(dtype).value if dtypes.issubdtype(dtype, np.inexact) else 0.0


def gradient_tolerance(dtype: DTypeLike) -> float:
    """Tolerance of derivatives against differences computed in a dtype."""
    return _limits(dtype).gradient


def difference_step(dtype: DTypeLike) -> float:
    """The step of central differences."""
    return _limits(dtype).step


def to_float64(x: ArrayLike) -> np.ndarray:
    """The values in a dtype of NumPy: narrow floats as float64, narrow integers as int64."""
    x = np.asarray(x)
    if x.dtype.kind in "biufc":
        return x
    return x.astype(np.float64) if dtypes.issubdtype(x.dtype, np.floating) else x.astype(np.int64)


def mismatch(actual: ArrayLike, expected: ArrayLike, tolerance: float) -> str | None:
    """Description of the difference of two arrays, or ``None``.

    ``tolerance`` is relative to the largest value.
    """
    a, b = to_float64(actual), to_float64(expected)
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
    actual: Sequence[Any], expected: Sequence[Any], tolerance: float | None = None
) -> str | None:
    """Description of the difference of two lists of arrays.

    Args:
      actual: arrays.
      expected: the arrays that they should be.
      tolerance: allowed error; by default that of each dtype.

    Returns:
      A text that begins with the number of the result; ``None`` if the lists agree. NaN equals
      NaN.

    The checks of the conformance kit compare by it, so rules of users are held to the same
    tolerance.

    >>> import numpy as np
    >>> from primax_core.testing import mismatches
    >>> x = np.ones(3, np.float32)
    >>> mismatches([x], [x]) is None, mismatches([x], [2 * x]) is None
    (True, False)
    """
    if len(actual) != len(expected):
        return f"{len(actual)} results where {len(expected)} are expected"
    for i, (a, b) in enumerate(zip(actual, expected)):
        allowed = value_tolerance(np.asarray(b).dtype) if tolerance is None else tolerance
        text = mismatch(a, b, allowed)
        if text is not None:
            return text if len(actual) == 1 else f"result {i}: {text}"
    return None
