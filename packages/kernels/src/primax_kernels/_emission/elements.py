"""Elements of arrays: kinds of dtypes, bounds, and constants as text in MLIR."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from primax_core import dtypes

INT32: Final = np.dtype(np.int32)
INT64: Final = np.dtype(np.int64)
FLOAT32: Final = np.dtype(np.float32)
BOOL: Final = np.dtype(np.bool_)

ELEMENTS: Final = {
    "bool": "i1",
    "int8": "i8",
    "uint8": "i8",
    "int16": "i16",
    "uint16": "i16",
    "int32": "i32",
    "uint32": "i32",
    "bfloat16": "bf16",
    "float32": "f32",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
}
"""Types of elements that all backends have, by dtype; the signs of integers are in operations."""


def identifier(name: str) -> str:
    """A name as MLIR has it: letters of ASCII, digits behind them, and underscores.

    >>> identifier("add 2"), identifier("2nd"), identifier("")
    ('add_2', '_2nd', 'kernel')
    """
    word = re.sub(r"\W", "_", name, flags=re.ASCII) or "kernel"
    return f"_{word}" if word[0].isdigit() else word


def is_float(dtype: Any) -> bool:
    """Return True if elements are floating-point numbers."""
    return bool(dtypes.issubdtype(dtype, np.floating))


def is_unsigned(dtype: Any) -> bool:
    """Return True if elements are unsigned integers or Booleans."""
    return np.dtype(dtype).kind in "ub"


def bits(dtype: Any) -> int:
    """The number of bits of an element in memory."""
    return np.dtype(dtype).itemsize * 8


def fits(bounds: tuple[int, int], dtype: Any) -> bool:
    """Return True if integers within bounds are values of an integer type."""
    info = np.iinfo(dtype)
    return bool(info.min <= bounds[0] and bounds[1] <= info.max)


def literal(value: Any, dtype: Any) -> str:
    """A constant as text, exact for each dtype.

    >>> literal(0.5, np.float32), literal(np.inf, np.float32), literal(3, np.int32)
    ('0.5', '0x7F800000', '3')
    """
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return "true" if value else "false"
    if not is_float(dtype):
        signed = np.dtype(f"int{bits(dtype)}")
        return str(int(np.asarray(value).astype(dtype).view(signed)))
    exact = np.asarray(value).astype(dtype)
    number = float(exact)
    if not np.isfinite(number):
        return f"0x{int(exact.view(f'uint{bits(dtype)}')):0{bits(dtype) // 4}X}"
    text = repr(number)
    return text if "e" not in text else f"{number:.17e}"


def lowest(dtype: Any) -> Any:
    """The value that a maximum never prefers."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return False
    return -np.inf if is_float(dtype) else np.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    """The value that a minimum never prefers."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return True
    return np.inf if is_float(dtype) else np.iinfo(dtype).max


def unwritten(dtype: Any) -> Any:
    """The contents of memory before the first write: NaN, or 0 where the dtype has none."""
    if is_float(dtype):
        return np.nan
    return 0
