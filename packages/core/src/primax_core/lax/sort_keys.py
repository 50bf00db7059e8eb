"""Integer sort keys, optionally combined with indices, which the CPU sorts fast.

XLA's CPU backend sorts a single array of integers several times as fast as an array of floats or
several arrays, for which it calls a compiled comparator for each pair of elements.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.element_types import DTypeLike
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
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


def packable(dtype: DTypeLike) -> bool:
    """Return True if the keys of :func:`order_key` fit into 64 bits together with indices."""
    return not accepts(dtype, ("complex",)) and dtypes.itemsize_bits(dtype) <= 32


def order_key(x: ArrayLike) -> Array:
    """Integers in the sort order of real numbers: zeros are equal, and NaN is last."""
    if not accepts(typeof(x).dtype, ("float",)):
        return _signed(x)
    bits = _float_bits(x)
    limits = np.iinfo(typeof(bits).dtype)
    size = bitwise_and(bits, full_like(bits, limits.max))
    key = select_n(lt(bits, full_like(bits, 0)), size, b.neg(size))
    infinity = np.asarray(np.inf, f"f{limits.bits // 8}").view(limits.dtype)
    nan = gt(size, full_like(bits, int(infinity)))
    return select_n(nan, key, full_like(bits, limits.max))


def total_order_key(x: ArrayLike) -> Array:
    """Integers in the total order of real numbers of at most 32 bits.

    Zeros and NaNs with the sign bit set precede those without.
    """
    return _flipped(_float_bits(x)) if accepts(typeof(x).dtype, ("float",)) else _signed(x)


def floats_of(key: Array) -> Array:
    """Inverse of :func:`total_order_key` for float32."""
    return bitcast_convert_type(_flipped(key), _F32)


def with_positions(key: Array, axis: int) -> Array:
    """64-bit integers: a 32-bit key in the high half, the index along an axis in the low half."""
    indices = convert(broadcasted_iota(np.int32, typeof(key).shape, axis), _I64)
    key_64 = convert(key, _I64)
    return bitwise_or(shift_left(key_64, full_like(key_64, 32)), indices)


def _float_bits(x: Any) -> Array:
    """The bits of floats of 32 or 64 bits; narrower floats are converted to float32."""
    if typeof(x).dtype == np.float64:
        return bitcast_convert_type(x, _I64)
    return bitcast_convert_type(convert(x, _F32), _I32)


def _flipped(bits: Array) -> Array:
    """Convert sign and magnitude to one's complement, and back."""
    sign = shift_right_arithmetic(bits, full_like(bits, 31))
    return bitwise_xor(bits, bitwise_and(sign, full_like(bits, 2**31 - 1)))


def _signed(x: Any) -> Array:
    """Integers in the same order, with at least 32 bits, and signed if they have 32 bits."""
    dtype = typeof(x).dtype
    if dtype == np.uint32:
        bits = bitcast_convert_type(x, _I32)
        return bitwise_xor(bits, full_like(bits, -(2**31)))
    return convert(x, _I32) if dtypes.itemsize_bits(dtype) < 32 else x
