"""Results with and without the native kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from primax_core import jit
from primax_ffi_cpu import native_kernels

REAL = [f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
EPSILON = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1.2e-7, "complex64": 1.2e-7}


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def epsilon(dtype: np.dtype) -> float:
    return EPSILON.get(dtype.name, 2.3e-16)


def both(fun: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """The results of a compiled function with the native kernels, and without."""
    native = jit(fun)(*args)
    with native_kernels(False):
        return native, jit(fun)(*args)


def calls(fun: Callable[..., Any], *args: Any) -> bool:
    """Return True if a compiled function calls one of the library's handlers."""
    return "custom_call @primax_cpu_" in jit(fun).lower(*args).as_text()


def equal_bits(x: Any, y: Any) -> None:
    """The same dtype, shape and bits, except for the bits of NaN."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.dtype == y.dtype and x.shape == y.shape
    nan = x != x
    assert np.array_equal(nan, y != y)
    x, y = np.where(nan, np.zeros_like(x), x), np.where(nan, np.zeros_like(y), y)
    assert x.tobytes() == y.tobytes()


def samples(shape: tuple[int, ...], dtype: np.dtype, seed: int = 0) -> np.ndarray:
    """Random numbers: all values of integers, normal floats."""
    rng = np.random.default_rng(seed)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)
