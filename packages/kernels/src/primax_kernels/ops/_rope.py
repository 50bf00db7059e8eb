"""Rotary position embedding."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec
from .._call import pallas_call
from .._grid import program_id
from .._helpers import cdiv
from .._typing import ArrayLike
from ._blocks import is_tpu, rows_block
from ._common import accumulator, block_size, cast, filled, inside, operand, positive

_INT32 = np.dtype(np.int32)


class _Config(NamedTuple):
    base: float
    interleaved: bool
    block: int
    whole: bool


def rope(
    x: ArrayLike,
    positions: ArrayLike | None = None,
    *,
    base: float = 10000.0,
    interleaved: bool = False,
    block: int | None = None,
) -> Any:
    """Rotate pairs of elements by angles that grow with the position (Su et al., 2021).

    The pair ``i`` of ``d / 2`` is rotated by ``position * base ** (-2 i / d)``. Angles are
    ``float32`` for 16-bit floats.

    Args:
      x: array of floats of shape ``(..., length, heads, d)`` with an even ``d``.
      positions: ``int32`` of shape ``(length,)`` or ``(..., length)``, by default 0, 1, ...
      base: the longest wavelength divided by 2π.
      interleaved: whether the pairs are neighbours, instead of element ``i`` and ``i + d / 2``.
      block: positions of a step, by default chosen for the platform.

    Returns:
      Array with the shape and dtype of ``x``.

    Raises:
      TypeError, ValueError: for other dtypes and shapes.

    Derivatives in both modes are those of operations on arrays.

    >>> import numpy as np
    >>> x = np.array([1, 0], np.float32).reshape(1, 1, 2)  # 2 positions, 1 head
    >>> np.asarray(rope(np.concatenate([x, x])), np.float64).round(3).tolist()
    [[[1.0, 0.0]], [[0.54, 0.841]]]
    """
    aval = operand("rope", "x", x)
    if aval.ndim < 3:
        raise ValueError(f"rope: x has the shape (..., length, heads, d), got {aval.shape}")
    *batch, length, heads, d = aval.shape
    if d % 2:
        raise ValueError(f"rope: the last axis of x has an even size, got {d}")
    if positions is not None:
        shape = operand("rope", "positions", positions, kinds=(_INT32,)).shape
        if shape not in ((length,), (*batch, length)):
            raise ValueError(
                f"rope: positions has the shape {(length,)} or {(*batch, length)}, got {shape}"
            )
    rows = block_size("rope", "block", block, rows_block(length, heads * d), length)
    config = _Config(positive("rope", "base", base), bool(interleaved), rows, is_tpu())
    return _rope(config, x, positions)


@functools.partial(jit, static_argnums=0)
def _rope(config: _Config, x: Any, positions: Any) -> Any:
    *batch, length, heads, d = x.shape
    dtype = typeof(x).dtype
    if 0 in x.shape:
        return filled(x.shape, 0, dtype)
    wide, half = accumulator(dtype), d // 2
    n = math.prod(batch)
    if positions is None:
        positions = lax.iota(np.int32, length)
    own = positions.shape != (length,) or (bool(batch) and positions.ndim > 1)
    positions = lax.reshape(positions, (n if own else 1, length, 1, 1))
    place = BlockSpec((None, config.block, 1, 1), lambda b, i: (b if own else 0, i, 0, 0))
    if config.whole:
        return lax.reshape(
            _of_whole_rows(config, lax.reshape(x, (n, length, heads, d)), positions, place), x.shape
        )

    def kernel(positions_ref: Any, first_ref: Any, second_ref: Any, out: Any) -> None:
        i = program_id(1)
        numbers = lax.broadcasted_iota(wide, (1, 1, half), 2)
        rates = lax.exp(numbers * wide.type(-2 * math.log(config.base) / d))
        angles = cast(inside(positions_ref[...], (0, i, length)), wide) * rates
        cos, sin = lax.cos(angles), lax.sin(angles)
        x, y = (cast(inside(r[...], (0, i, length)), wide) for r in (first_ref, second_ref))
        a, b = (cast(z, dtype) for z in (x * cos - y * sin, x * sin + y * cos))
        if config.interleaved:
            out[:, :, :, 0], out[:, :, :, 1] = a, b
        else:
            out[:, :, 0, :], out[:, :, 1, :] = a, b

    pairs = (half, 2) if config.interleaved else (2, half)
    block = (None, config.block, heads)
    parts = [
        BlockSpec((*block, half, None), lambda b, i, part=part: (b, i, 0, 0, part))
        if config.interleaved
        else BlockSpec((*block, None, half), lambda b, i, part=part: (b, i, 0, part, 0))
        for part in (0, 1)
    ]
    split = lax.reshape(x, (n, length, heads, *pairs))
    result = pallas_call(
        kernel, ShapeDtypeStruct(split.shape, dtype), name="rope",
        grid=(n, cdiv(length, config.block)),
        in_specs=[place, *parts],
        out_specs=BlockSpec((*block, *pairs), lambda b, i: (b, i, 0, 0, 0)),
    )(positions, split, split)  # fmt: skip
    return lax.reshape(result, x.shape)


def _of_whole_rows(config: _Config, x: Any, positions: Any, place: BlockSpec) -> Any:
    """The rotation in blocks of whole rows: the last two axes of an array on a TPU are not split.

    Args:
      place: blocks of the positions.
    """
    n, length, heads, d = x.shape
    dtype, wide, half = typeof(x).dtype, accumulator(typeof(x).dtype), d // 2

    def kernel(positions_ref: Any, x_ref: Any, out: Any) -> None:
        i = program_id(1)
        element = lax.broadcasted_iota(np.int32, (1, 1, d), 2)
        x = cast(inside(x_ref[...], (0, i, length)), wide)
        if config.interleaved:
            pair = lax.shift_right_logical(element, np.int32(1))
            is_first = lax.bitwise_and(element, np.int32(1)) == np.int32(0)
            cut = lambda a, b: lax.slice_in_dim(x, a, b, axis=2)
            following = lax.concatenate([cut(1, d), cut(0, 1)], 2)
            previous = lax.concatenate([cut(d - 1, d), cut(0, d - 1)], 2)
            other = lax.select(lax.broadcast_in_dim(is_first, x.shape, (0, 1, 2)),
                               -following, previous)  # fmt: skip
        else:
            pair = lax.select(element < np.int32(half), element, element - np.int32(half))
            first, second = (lax.slice_in_dim(x, k * half, (k + 1) * half, axis=2) for k in (0, 1))
            other = lax.concatenate([-second, first], 2)
        rates = lax.exp(cast(pair, wide) * wide.type(-2 * math.log(config.base) / d))
        angles = cast(inside(positions_ref[...], (0, i, length)), wide) * rates
        out[...] = cast(x * lax.cos(angles) + other * lax.sin(angles), dtype)

    rows = BlockSpec((None, config.block, heads, d), lambda b, i: (b, i, 0, 0))
    return pallas_call(
        kernel, ShapeDtypeStruct(x.shape, dtype), name="rope",
        grid=(n, cdiv(length, config.block)), in_specs=[place, rows], out_specs=rows,
    )(positions, x)  # fmt: skip
