"""Integers in the order of other numbers, and with their positions: what the CPU sorts fast.

XLA's CPU backend sorts a single array of integers several times as fast as floats, or as several
arrays, which it compares by a compiled function for each pair of elements.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._trace.array import Array
from .._trace.core import typeof
from . import arithmetic as b
from .bitwise import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    shift_left,
    shift_right_arithmetic,
)
from .broadcasting import broadcasted_iota, full_like
from .comparison import gt, lt
from .conversion import bitcast_convert_type, convert
from .elementwise import accepts
from .selection import select_n

_I32: Final = np.dtype(np.int32)
_I64: Final = np.dtype(np.int64)
_F32: Final = np.dtype(np.float32)


def packable(dtype: Any) -> bool:
    """Whether :func:`order_key` gives numbers that leave room for positions in 64 bits."""
    return not accepts(dtype, ("complex",)) and dtypes.itemsize_bits(dtype) <= 32


def order_key(x: Any) -> Array:
    """Integers in the order in which real numbers are sorted: equal zeros, and NaN last."""
    if not accepts(typeof(x).dtype, ("float",)):
        return _signed(x)
    bits = _float_bits(x)
    limits = np.iinfo(typeof(bits).dtype)
    size = bitwise_and(bits, full_like(bits, limits.max))
    key = select_n(lt(bits, full_like(bits, 0)), size, b.neg(size))
    infinity = np.asarray(np.inf, f"f{limits.bits // 8}").view(limits.dtype)
    nan = gt(size, full_like(bits, int(infinity)))
    return select_n(nan, key, full_like(bits, limits.max))


def total_order_key(x: Any) -> Array:
    """Integers in the order of real numbers of at most 32 bits: a zero or a NaN with a sign is
    less than one without."""
    return _flipped(_float_bits(x)) if accepts(typeof(x).dtype, ("float",)) else _signed(x)


def floats_of(key: Array) -> Array:
    """The floats of 32 bits whose :func:`total_order_key` is given."""
    return bitcast_convert_type(_flipped(key), _F32)


def with_positions(key: Array, axis: int) -> Array:
    """Numbers of 64 bits: a key of 32 bits, and below it the position along an axis."""
    places = convert(broadcasted_iota(np.int32, typeof(key).shape, axis), _I64)
    wide = convert(key, _I64)
    return bitwise_or(shift_left(wide, full_like(wide, 32)), places)


def _float_bits(x: Any) -> Array:
    """The bits of floats of 32 or 64 bits; narrower ones are widened."""
    if typeof(x).dtype == np.float64:
        return bitcast_convert_type(x, _I64)
    return bitcast_convert_type(convert(x, _F32), _I32)


def _flipped(bits: Array) -> Array:
    """Magnitude and sign to two's complement and back, but for negative numbers one lower."""
    sign = shift_right_arithmetic(bits, full_like(bits, 31))
    return bitwise_xor(bits, bitwise_and(sign, full_like(bits, 2**31 - 1)))


def _signed(x: Any) -> Array:
    """Integers in the order of others, of 32 bits or more and signed if they have 32."""
    dtype = typeof(x).dtype
    if dtype == np.uint32:
        bits = bitcast_convert_type(x, _I32)
        return bitwise_xor(bits, full_like(bits, -(2**31)))
    return convert(x, _I32) if dtypes.itemsize_bits(dtype) < 32 else x
