"""Largest elements of rows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec
from .._call import pallas_call
from .._grid import program_id
from .._helpers import cdiv
from .._typing import ArrayLike
from ._blocks import rows_block
from ._common import FLOATS, block_size, cast, filled, inside, operand, row_max

_KINDS = tuple(d for d in FLOATS if d.itemsize <= 4) + tuple(
    np.dtype(name) for name in ("int8", "int16", "int32", "uint8", "uint16")
)
_INT32 = np.dtype(np.int32)


def top_k(x: ArrayLike, k: int, *, block_rows: int | None = None) -> tuple[Any, Any]:
    """The ``k`` largest elements of each row and their positions, the largest first.

    A step takes the maximum ``k`` times, so that it is meant for small ``k``, such as the experts
    of a token. Equal elements have the order of their positions. NaN is larger than numbers,
    and 0 larger than -0.

    Args:
      x: array of shape ``(..., n)`` of floats of at most 32 bits, ``int8``, ``int16``, ``int32``,
        ``uint8`` or ``uint16``.
      k: number of elements, at most ``n``.
      block_rows: rows of a step, by default chosen for the platform.

    Returns:
      Elements with the dtype of ``x`` and positions in ``int32``, both of shape ``(..., k)``.

    Raises:
      TypeError, ValueError: for other dtypes, and a ``k`` out of range.

    The derivative of the elements is that of reading them at the positions.

    >>> values, where = top_k(np.array([3, 9, 9, 1], np.float32), 3)
    >>> values
    Array([9., 9., 3.], dtype=float32)
    >>> where
    Array([1, 2, 0], dtype=int32)
    """
    aval = operand("top_k", "x", x, kinds=_KINDS)
    if not aval.ndim:
        raise ValueError("top_k: x has the shape (..., n), got a scalar")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise TypeError(f"top_k: k is an integer known while tracing, got {type(k).__name__}")
    n = aval.shape[-1]
    if not 0 <= k <= n:
        raise ValueError(f"top_k: k is {k}, but the rows have {n} elements")
    rows = aval.size // max(n, 1)
    block = block_size("top_k", "block_rows", block_rows, rows_block(rows, n), rows)
    return _top_k(int(k), block, x)


@functools.partial(jit, static_argnums=(0, 1))
def _top_k(k: int, block: int, x: Any) -> tuple[Any, Any]:
    shape, n = (*x.shape[:-1], k), x.shape[-1]
    if not x.size or not k:
        return filled(shape, 0, typeof(x).dtype), filled(shape, 0, np.int32)
    rows = x.size // n
    flat = lax.reshape(x, (rows, n))
    where = _positions(k, block, _keys(lax.stop_gradient(flat)))
    numbers = lax.broadcasted_iota(np.int32, (rows, k), 0)
    index = lax.concatenate([lax.expand_dims(i, (2,)) for i in (numbers, where)], 2)
    dims = lax.GatherDimensionNumbers(
        offset_dims=(), collapsed_slice_dims=(0, 1), start_index_map=(0, 1)
    )
    values = lax.gather(flat, index, dims, (1, 1), mode="promise_in_bounds")
    return lax.reshape(values, shape), lax.reshape(where, shape)


def _keys(x: Any) -> Any:
    """Integers in the order of the elements."""
    if typeof(x).dtype not in FLOATS:
        return cast(x, _INT32)
    x = cast(x, np.dtype(np.float32))
    x = lax.select(x != x, filled(x.shape, np.nan, np.float32), x)  # all NaNs are equal
    bits = lax.bitcast_convert_type(x, np.int32)
    magnitude = lax.bitwise_and(bits, filled(bits.shape, 0x7FFFFFFF, np.int32))
    return lax.select(bits < 0, lax.bitwise_not(magnitude), bits)


def _positions(k: int, block: int, keys: Any) -> Any:
    rows, n = keys.shape
    limits = np.iinfo(np.int32)

    def kernel(keys_ref: Any, out: Any) -> None:
        keys = inside(keys_ref[...], (0, program_id(0), rows))
        numbers = lax.broadcasted_iota(np.int32, keys.shape, 1)
        places = lax.broadcasted_iota(np.int32, (block, k), 1)
        least, last = (filled(keys.shape, x, np.int32) for x in (limits.min, n))

        def body(i: Any, state: Any) -> Any:
            key, position, where = state
            # What comes after the last element: no element is written to mark it as taken.
            equal = lax.bitwise_and(keys == key, numbers > position)
            left = lax.bitwise_or(keys < key, equal)
            key = row_max(lax.select(left, keys, least))
            same = lax.bitwise_and(left, keys == key)
            position = lax.reduce_min(lax.select(same, numbers, last), (1,))
            position = lax.expand_dims(position, (1,))
            chosen = lax.broadcast_in_dim(position, where.shape, (0, 1))
            return key, position, lax.select(places == i, chosen, where)

        start = (
            filled((block, 1), limits.max, np.int32), filled((block, 1), -1, np.int32),
            filled((block, k), 0, np.int32),
        )  # fmt: skip
        out[...] = lax.fori_loop(np.int32(0), np.int32(k), body, start)[2]

    return pallas_call(
        kernel, ShapeDtypeStruct((rows, k), np.int32), name="top_k", grid=(cdiv(rows, block),),
        in_specs=[BlockSpec((block, n), lambda i: (i, 0))],
        out_specs=BlockSpec((block, k), lambda i: (i, 0)),
    )(keys)  # fmt: skip
