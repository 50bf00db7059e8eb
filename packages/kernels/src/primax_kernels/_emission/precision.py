"""Rounding of numbers to fewer bits, by operations on their bits."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Jaxpr, ShapedArray, stage

_PARTS: Final = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
"""Numbers of bits of the exponent and of the mantissa."""

SMALLER_EXPONENT: Final = "convert to the dtype with this precision and back"
"""The rewrite of a rounding that `rounding` does not do."""


def rounding(aval: Any, exponent_bits: int, mantissa_bits: int) -> Jaxpr | None:
    """``lax.reduce_precision`` as a jaxpr; ``None`` if exponents become smaller.

    Mantissas are rounded to the nearest number, ties to even, by an addition to the integer with
    the same bits, whose carry reaches the exponent.
    """
    own_exponent, own_mantissa = _PARTS.get(np.dtype(aval.dtype).name, (99, 0))
    if exponent_bits < own_exponent:
        return None
    dropped = own_mantissa - mantissa_bits
    integers = np.dtype(f"uint{np.dtype(aval.dtype).itemsize * 8}").type

    def rounded(x: Any) -> list[Any]:
        if dropped <= 0:
            return [x]
        bits = lax.bitcast_convert_type(x, integers)

        def like(value: int) -> Any:
            return lax.full(x.shape, value, integers)

        last = lax.bitwise_and(lax.shift_right_logical(bits, like(dropped)), like(1))
        half = lax.add(last, like((1 << (dropped - 1)) - 1))
        all_bits = np.iinfo(integers).max
        bits = lax.bitwise_and(lax.add(bits, half), like(all_bits ^ ((1 << dropped) - 1)))
        return [lax.select(lax.eq(x, x), lax.bitcast_convert_type(bits, x.dtype), x)]

    return stage(rounded, [ShapedArray(aval.shape, aval.dtype)])
