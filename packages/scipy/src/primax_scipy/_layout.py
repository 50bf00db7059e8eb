"""Constants, padding and slices along one axis of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import dtypes, inexact, typeof
from primax_numpy.declaring import check_arrays


def real_dtype(x: Any) -> Any:
    """The dtype of the real part of inexact values."""
    return dtypes.finfo(typeof(x).dtype).dtype


def constant(values: Any, x: Any) -> Any:
    """NumPy values in the precision of an array: complex values become complex numbers."""
    values = np.asarray(values)
    real = np.dtype(real_dtype(x))
    if values.dtype.kind == "c":
        return values.astype(np.complex128 if real == np.float64 else np.complex64)
    return values.astype(real)


def along(vector: Any, axis: int, ndim: int) -> Any:
    """A vector reshaped to broadcast along an axis of arrays of a rank."""
    shape = [1] * ndim
    shape[axis] = -1
    return pnp.reshape(vector, shape) if ndim > 1 else vector


def padded(x: Any, axis: int, before: int, after: int) -> Any:
    """An axis with zeros on both sides; negative widths remove elements."""
    if not before and not after:
        return x
    widths = [(0, 0, 0)] * typeof(x).ndim
    widths[axis] = (before, after, 0)
    return lax.pad(x, lax.full((), 0, typeof(x).dtype), widths)


def resized(x: Any, axis: int, n: int) -> Any:
    """An axis truncated or padded with zeros to a length."""
    return padded(x, axis, 0, n - typeof(x).shape[axis])


def single_at_least(x: Any) -> Any:
    """Floats of less than 32 bits converted to ``float32``."""
    return lax.convert_element_type(x, np.float32) if typeof(x).dtype.itemsize < 4 else x


def as_operand(name: str, x: Any) -> Any:
    """An array argument; sequences of numbers are converted by NumPy.

    Raises:
      TypeError: if it is neither an array nor a sequence of numbers.
    """
    if isinstance(x, (list, tuple)):
        x = pnp.stack([pnp.asarray(v) for v in x]) if _has_arrays(x) else np.asarray(x)
        if isinstance(x, np.ndarray) and x.dtype == object:
            raise TypeError(f"{name} requires an array or a sequence of numbers")
        return x
    check_arrays(name, x)
    return x


def _has_arrays(values: Any) -> bool:
    return any(not isinstance(v, (int, float, complex, list, tuple, np.ndarray)) for v in values)


def check_mode(name: str, mode: Any, modes: tuple[str, ...], parameter: str = "mode") -> None:
    """Raise ValueError unless a parameter is one of some strings."""
    if mode not in modes:
        raise ValueError(f"{name}: {parameter} must be one of {list(modes)}, got {mode!r}")


def together(*xs: Any) -> list[Any]:
    """Operands in one inexact dtype of at least 32 bits; their ranks stay different."""
    avals = [typeof(x) for x in xs]
    dtype, _ = inexact(*dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in avals])))
    return [single_at_least(lax.convert_element_type(x, dtype)) for x in xs]
