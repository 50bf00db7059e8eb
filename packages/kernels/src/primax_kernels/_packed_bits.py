"""Elements of 6 bits in bytes, as elements of 2 and of 4 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import typeof

from ._typing import ArrayLike

_SIGNED: Final = {2: np.dtype("int2"), 4: np.dtype("int4")}
_INT8 = np.dtype(np.int8)
_UINT8 = np.dtype(np.uint8)


def split_bits(x: ArrayLike, bitwidths: Sequence[int]) -> tuple[Any, ...]:
    """Parts of the bits of bytes, as signed integers of 2 or 4 bits.

    Args:
      x: an array of ``int8`` or ``uint8``.
      bitwidths: the number of bits of each part, 2 or 4, from the lowest bits of a byte.

    Returns:
      An ``int2`` or ``int4`` array for each part, of the shape of ``x``.

    Raises:
      TypeError: for an array of another dtype.
      ValueError: for other numbers of bits, or more than 8 together.

    >>> import numpy as np
    >>> parts = split_bits(np.array([0b01_0011, 0b10_1111], np.uint8), (4, 2))
    >>> [np.asarray(part).astype(int).tolist() for part in parts]
    [[3, -1], [1, -2]]
    """
    dtype = typeof(x).dtype
    if dtype not in (_INT8, _UINT8):
        raise TypeError(f"split_bits takes an array of int8 or uint8, got {typeof(x)}")
    widths = tuple(bitwidths)
    if any(n not in _SIGNED for n in widths) or sum(widths) > 8:
        raise ValueError(f"split_bits takes parts of 2 or 4 bits, 8 together at most, got {widths}")
    parts, start = [], 0
    for n in widths:
        # Shifted to the highest bits and back, so that the sign is extended.
        up = lax.shift_left(x, lax.full(x.shape, 8 - n - start, dtype))
        signed = lax.bitcast_convert_type(up, _INT8)
        part = lax.shift_right_arithmetic(signed, lax.full(x.shape, 8 - n, _INT8))
        parts.append(lax.convert_element_type(part, _SIGNED[n]))
        start += n
    return tuple(parts)


def join_bits(*, two_bits: ArrayLike | None = None, four_bits: ArrayLike | None = None) -> Any:
    """Bytes of parts of 4 and 2 bits: the first in the lowest bits, and the second above.

    Args:
      two_bits: an array of ``int2`` or ``uint2``.
      four_bits: an array of ``int4`` or ``uint4``, of the same shape. One part may be absent.

    Returns:
      An ``int8`` array, whose other bits are 0.

    Raises:
      TypeError: for other dtypes.
      ValueError: without arrays, or for different shapes.
    """
    names = {2: ("int2", "uint2"), 4: ("int4", "uint4")}
    parts = [(n, x) for n, x in ((4, four_bits), (2, two_bits)) if x is not None]
    if not parts:
        raise ValueError("join_bits takes two_bits, four_bits or both")
    for n, x in parts:
        if typeof(x).dtype.name not in names[n]:
            raise TypeError(
                f"join_bits takes {' or '.join(names[n])} for the part of {n} bits, got {typeof(x)}"
            )
    if len({x.shape for _, x in parts}) > 1:
        raise ValueError(
            f"join_bits takes parts of one shape, got {two_bits.shape} and {four_bits.shape}"
        )
    total: Any = None
    start = 0
    for n, x in parts:
        byte = lax.convert_element_type(x, _INT8)
        byte = lax.bitwise_and(byte, lax.full(x.shape, (1 << n) - 1, _INT8))
        byte = lax.shift_left(byte, lax.full(x.shape, start, _INT8))
        total = byte if total is None else lax.bitwise_or(total, byte)
        start += n
    return total


def pack_fp6(fp6_in_8b: ArrayLike) -> tuple[Any, Any]:
    """Numbers of 6 bits, each in a byte, as arrays of their upper 2 and their lower 4 bits.

    Args:
      fp6_in_8b: an array of ``int8`` or ``uint8``.

    Returns:
      ``(two_bits, four_bits)``, arrays of ``int2`` and ``int4``.

    Raises:
      TypeError: for an array of another dtype.
    """
    four, two = split_bits(fp6_in_8b, (4, 2))
    return two, four


def unpack_fp6(two_bits: ArrayLike, four_bits: ArrayLike) -> Any:
    """The bytes of `pack_fp6`, whose upper two bits are 0. Errors are those of `join_bits`.

    >>> import numpy as np
    >>> unpack_fp6(*pack_fp6(np.array([-1, 5, 63, 64], np.int8)))
    Array([63,  5, 63,  0], dtype=int8)
    """
    return join_bits(two_bits=two_bits, four_bits=four_bits)
