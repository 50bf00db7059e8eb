"""Conversions between types of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._emission.elements import fits
from . import types
from .emitter import Emitter
from .types import BOOL, FLOAT32, INT32, bits, is_float, is_unsigned
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
    if dtype == BOOL:
        zero = e.constant(0, x.dtype, x.shape)
        return e.compare("ne", x, zero)
    if x.is_float:
        return _between_floats(e, x, dtype) if is_float(dtype) else _float_to_integer(e, x, dtype)
    if is_float(dtype):
        return _integer_to_float(e, x, dtype)
    return _between_integers(e, x, dtype)


def _between_floats(e: Emitter, x: Value, dtype: np.dtype) -> Value:
    if types.is_f8(x.dtype) or types.is_f8(dtype):
        if bits(dtype) == 8 and bits(x.dtype) != 32:
            x = convert(e, x, FLOAT32)
        middle = dtype if bits(dtype) <= 32 else FLOAT32
        rounding = ", rounding = rtne" if types.is_f8(middle) else ""
        to = types.tensor(types.element(middle), x.padded)
        text = f"tt.fp_to_fp {x.name}{rounding} : {x.type} -> {to}"
        return convert(e, e.op(text, middle, x.shape), dtype)
    if bits(x.dtype) == bits(dtype):  # bfloat16 and float16
        return convert(e, convert(e, x, FLOAT32), dtype)
    if {bits(x.dtype), bits(dtype)} == {16, 64}:
        return convert(e, convert(e, x, FLOAT32), dtype)
    return e.changed("arith.extf" if bits(dtype) > bits(x.dtype) else "arith.truncf", x, dtype)


def _float_to_integer(e: Emitter, x: Value, dtype: np.dtype) -> Value:
    if bits(x.dtype) < 32:
        x = convert(e, x, FLOAT32)
    if bits(dtype) < 32:
        info = np.iinfo(dtype)
        whole = e.changed("arith.fptosi", x, INT32)
        return _between_integers(e, e.clamp(whole, int(info.min), int(info.max)), dtype)
    return e.changed("arith.fptoui" if is_unsigned(dtype) else "arith.fptosi", x, dtype)


def _integer_to_float(e: Emitter, x: Value, dtype: np.dtype) -> Value:
    middle = FLOAT32 if bits(dtype) < 32 else dtype
    x = e.changed("arith.uitofp" if is_unsigned(x.dtype) else "arith.sitofp", x, middle)
    return convert(e, x, dtype)


def _between_integers(e: Emitter, x: Value, dtype: np.dtype) -> Value:
    bounds = x.bounds if x.bounds is not None and fits(x.bounds, dtype) else None
    source = 1 if x.dtype == BOOL else bits(x.dtype)
    if source == bits(dtype):
        return Value(x.name, dtype, x.shape, bounds)
    if source > bits(dtype):
        return e.changed("arith.trunci", x, dtype).having(bounds)
    op = "arith.extui" if is_unsigned(x.dtype) else "arith.extsi"
    return e.changed(op, x, dtype).having(bounds)
