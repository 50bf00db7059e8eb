"""Conversions between types of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._emission.elements import bits, fits, is_float, is_unsigned
from .emitter import Emitter
from .types import BOOL, FLOAT32, INT32
from .values import Value


def convert(e: Emitter, x: Value, dtype: Any) -> Value:
    """A value with another dtype, by the rules of ``lax.convert_element_type``.

    Floats outside of the range of an integer type become its nearest integer, NaN becomes 0.
    """
    dtype = np.dtype(dtype)
    if x.dtype == dtype:
        return x
    if x.known is not None:
        return e.constant(x.known, dtype, x.shape)
    wide = e.words(x)
    if dtype == BOOL:
        return e.compare("ne", wide, e.constant(0, wide.dtype, x.shape))
    if is_float(dtype):
        if not wide.is_float:
            op = "arith.uitofp" if is_unsigned(wide.dtype) else "arith.sitofp"
            wide = e.changed(op, wide, FLOAT32)
        return e.from_words(wide, dtype)
    if wide.is_float:
        return e.from_words(_float_to_integer(e, wide, dtype), dtype)
    narrow = e.from_words(wide, dtype)
    if x.bounds is None or not fits(x.bounds, dtype):
        return narrow.having(None)
    return narrow.having(x.bounds, x.multiple)


def _float_to_integer(e: Emitter, x: Value, dtype: np.dtype) -> Value:
    """Integers of 32 bits in the range of ``dtype``, as the hardware converts only those inside."""
    info = np.iinfo(dtype)
    unsigned = bits(dtype) == 32 and is_unsigned(dtype)
    whole = e.changed(
        "arith.fptoui" if unsigned else "arith.fptosi", x, dtype if unsigned else INT32
    )
    low = e.constant(int(info.min), whole.dtype, x.shape)
    high = e.constant(int(info.max), whole.dtype, x.shape)
    # The bounds are rounded to powers of two, or are exact.
    below = e.compare("le", x, e.constant(float(info.min), FLOAT32, x.shape))
    above = e.compare("ge", x, e.constant(float(info.max), FLOAT32, x.shape))
    limited = e.select(above, high, e.select(below, low, whole))
    missing = e.compare("ne", x, x)
    return e.select(missing, e.constant(0, whole.dtype, x.shape), limited)
