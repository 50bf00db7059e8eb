"""Bitwise functions of integers: complement, shifts, bit counts, packing."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._arithmetic import operate
from ._checks import check_arrays, one_axis
from ._functions import compiled, elementwise


@elementwise
def invert(x: ArrayLike, /) -> Array:
    """Each element with all bits flipped; logical negation for booleans.

    Args:
      x: an array or a number of integers or booleans.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> invert(np.array([0, 1, -3], np.int32))
    Array([-1, -2,  2], dtype=int32)
    """
    return lax.bitwise_not(x)


bitwise_not = invert
bitwise_invert = invert


def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x << y``: bits shifted to higher positions; 0 if ``y`` is negative or too large.

    Args:
      x, y: integers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> left_shift(np.array([1, 3], np.int32), 2)
    Array([ 4, 12], dtype=int32)
    """
    return operate("left_shift", operator.lshift, x, y)


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 >> x2``: bits shifted to lower positions; an arithmetic shift for signed integers.

    Args:
      x1, x2: integers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> right_shift(np.array([8, -8], np.int32), 2)
    Array([ 2, -2], dtype=int32)
    """
    return operate("right_shift", operator.rshift, x1, x2)


bitwise_left_shift = left_shift
bitwise_right_shift = right_shift


def _whole(dtype: Any) -> bool:
    return dtype == np.bool_ or dtypes.issubdtype(dtype, np.integer)


@elementwise
def bitwise_count(x: ArrayLike, /) -> Array:
    """Number of bits that are set in the absolute value of each element, as ``uint8``.

    Args:
      x: an array or a number of integers or booleans.

    Returns:
      A ``uint8`` array of the shape of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> bitwise_count(np.array([0, 7, -8], np.int32))
    Array([0, 3, 1], dtype=uint8)
    """
    dtype = typeof(x).dtype
    if not _whole(dtype):
        raise TypeError(f"bitwise_count needs integers or booleans, got {dtype.name}")
    if dtype == np.bool_:
        return lax.convert_element_type(x, np.uint8)
    if dtypes.issubdtype(dtype, np.signedinteger):
        x = lax.abs(x)
    return lax.convert_element_type(lax.population_count(x), np.uint8)


def _check_order(bitorder: str) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"'order' must be either 'little' or 'big', got {bitorder!r}")


def _places(bitorder: str) -> np.ndarray:
    places = np.arange(8, dtype=np.uint8)
    return places if bitorder == "little" else places[::-1]


@compiled("axis", "bitorder")
def _packbits(a, *, axis, bitorder):
    bits = lax.convert_element_type(a != 0 if a.dtype != np.bool_ else a, np.uint8)
    if axis is None:
        bits, axis = lax.reshape(bits, (typeof(bits).size,)), 0
    shape = typeof(bits).shape
    missing = -shape[axis] % 8
    edges = [(0, missing if i == axis else 0, 0) for i in range(len(shape))]
    padded = lax.pad(bits, np.uint8(0), edges)
    groups = (*shape[:axis], (shape[axis] + missing) // 8, 8, *shape[axis + 1 :])
    place = lax.broadcast_in_dim(_places(bitorder), groups, (axis + 1,))
    return lax.reduce_or(lax.shift_left(lax.reshape(padded, groups), place), (axis + 1,))


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Nonzero flags of eight elements packed into the bits of one ``uint8``.

    Args:
      a: integers or booleans.
      axis: the axis to pack along; the flattened array by default. The last byte is padded with 0
        bits.
      bitorder: ``"big"`` stores the first element in the highest bit, ``"little"`` in the lowest.

    Returns:
      A ``uint8`` array with ``ceil(size / 8)`` elements along the axis.

    Raises:
      TypeError: if ``a`` is not of integer or boolean dtype.

    The inverse is :func:`unpackbits`.

    >>> packbits(np.array([1, 0, 1])).tolist()
    [160]
    """
    check_arrays("packbits", a)
    aval = typeof(a)
    if not _whole(aval.dtype):
        raise TypeError(
            f"packbits: expected an input array of integer or boolean data type, got "
            f"{aval.dtype.name}"
        )
    _check_order(bitorder)
    place = None if axis is None or not aval.shape else one_axis(axis, aval.ndim)
    return _packbits(a, axis=place, bitorder=bitorder)


@compiled("axis", "count", "bitorder")
def _unpackbits(a, *, axis, count, bitorder):
    if axis is None:
        a, axis = lax.reshape(a, (typeof(a).size,)), 0
    shape = typeof(a).shape
    groups = (*shape[: axis + 1], 8, *shape[axis + 1 :])
    operand_axes = tuple(i for i in range(len(groups)) if i != axis + 1)
    place = lax.broadcast_in_dim(_places(bitorder), groups, (axis + 1,))
    bits = lax.shift_right_logical(lax.broadcast_in_dim(a, groups, operand_axes), place)
    bits = lax.bitwise_and(bits, np.uint8(1))
    length = 8 * shape[axis]
    out = lax.reshape(bits, (*shape[:axis], length, *shape[axis + 1 :]))
    if count is None:
        return out
    size = count if count >= 0 else length + count
    edges = [(0, size - length if i == axis else 0, 0) for i in range(len(shape))]
    return lax.pad(out, np.uint8(0), edges)


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of ``uint8`` elements as an array of 0 and 1.

    Args:
      a: an array of dtype ``uint8``.
      axis: the axis to unpack, which becomes eight times as long; the flattened array by default.
      count: the number of bits to return: the result is truncated or padded with 0. A negative
        number drops that many bits at the end.
      bitorder: ``"big"`` returns the highest bit first, ``"little"`` the lowest.

    Returns:
      A ``uint8`` array.

    Raises:
      TypeError: if ``a`` is not of dtype ``uint8``.

    >>> unpackbits(np.array([160], np.uint8), count=3).tolist()
    [1, 0, 1]
    """
    check_arrays("unpackbits", a)
    aval = typeof(a)
    if aval.dtype != np.uint8:
        raise TypeError(
            f"unpackbits: expected an input array of unsigned byte data type, got {aval.dtype.name}"
        )
    _check_order(bitorder)
    place = None if axis is None or not aval.shape else one_axis(axis, aval.ndim)
    size = aval.size if place is None else aval.shape[place]
    bits = None if count is None else operator.index(count)
    if bits is not None and bits < -8 * size:
        raise ValueError(f"unpackbits: count={bits} drops more than the {8 * size} bits")
    return _unpackbits(a, axis=place, count=bits, bitorder=bitorder)
