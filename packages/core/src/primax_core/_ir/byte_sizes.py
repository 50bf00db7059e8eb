"""Sizes of values in memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from . import dtypes


def nbytes(aval: Any) -> int:
    """Bytes of a value, or of the contents of a reference, from its type."""
    aval = getattr(aval, "inner_aval", aval)
    dtype: Any = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        extended: Any = dtype
        aval = extended.physical_aval(aval)
        dtype = aval.dtype
    if dtype == dtypes.float0:
        return 0
    return -(-prod(aval.shape) * dtypes.itemsize_bits(dtype) // 8)


def total_bytes(avals: Sequence[Any]) -> int:
    """Bytes of several values."""
    return sum(map(nbytes, avals))
