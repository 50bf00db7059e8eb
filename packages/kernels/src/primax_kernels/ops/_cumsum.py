"""Cumulative sums."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec
from .._call import pallas_call
from .._control import when
from .._grid import num_programs, program_id
from .._helpers import cdiv
from .._typing import ArrayLike
from ..tpu import VMEM
from ._blocks import scan_block
from ._common import (
    FLOATS,
    INTEGERS,
    axis_in,
    block_sizes,
    cast,
    filled,
    inside,
    operand,
    row_sum,
)


class _Config(NamedTuple):
    axis: int
    reverse: bool
    block: tuple[int, ...]


def cumsum(
    x: ArrayLike, *, axis: int = -1, reverse: bool = False,
    block: tuple[int | None, int | None] | None = None,
) -> Any:  # fmt: skip
    """Sums of the elements up to each position along an axis.

    A step sums a part of a row and adds the sum of the parts before it. Sums of 16-bit floats are
    ``float32`` and rounded at the end.

    Args:
      x: array of floats or integers.
      axis: axis of the sums.
      reverse: whether to sum from the end.
      block: rows and elements of a step; ``None`` stands for a default of the platform.

    Returns:
      Array with the shape and dtype of ``x``. Sums of integers wrap around.

    Raises:
      TypeError, ValueError: for other dtypes, and axes that the array does not have.

    Derivatives in both modes are those of operations on arrays.

    >>> cumsum(np.array([1, 2, 3], np.float32))
    Array([1., 3., 6.], dtype=float32)
    """
    aval = operand("cumsum", "x", x, kinds=(*FLOATS, *INTEGERS))
    axis = axis_in("cumsum", axis, aval.ndim)
    n = aval.shape[axis]
    rows = aval.size // max(n, 1)
    parts = "rows", "elements"
    sizes = block_sizes("cumsum", "block", block, parts, scan_block(rows, n), (rows, n))
    return _cumsum(_Config(axis, bool(reverse), sizes), x)


@functools.partial(jit, static_argnums=0)
def _cumsum(config: _Config, x: Any) -> Any:
    if not x.size:
        return x
    last, axis = x.ndim - 1, config.axis
    order = [*[a for a in range(last + 1) if a != axis], axis]
    moved = lax.transpose(x, order) if axis != last else x
    n = x.shape[axis]
    y = lax.reshape(_of_rows(config, lax.reshape(moved, (x.size // n, n))), moved.shape)
    return lax.transpose(y, [order.index(a) for a in range(last + 1)]) if axis != last else y


def _of_rows(config: _Config, x: Any) -> Any:
    rows, n = x.shape
    br, bn = config.block
    dtype, steps = typeof(x).dtype, cdiv(n, bn)
    wide = np.dtype(np.float32) if dtype in FLOATS and dtype.itemsize == 2 else dtype

    def number(step: Any) -> Any:
        """Number of the block along the row."""
        return np.int32(steps - 1) - step if config.reverse else step

    def kernel(x_ref: Any, out: Any, *scratch: Any) -> None:
        step = program_id(1)
        block = cast(inside(x_ref[...], (0, program_id(0), rows), (1, number(step), n)), wide)
        sums = lax.cumsum(block, 1, reverse=config.reverse)
        if steps == 1:
            out[...] = cast(sums, dtype)
            return
        (before,) = scratch

        @when(step == 0)
        def _start() -> None:
            before[...] = filled(before.shape, 0, wide)

        out[...] = cast(sums + before[...], dtype)

        @when(step < num_programs(1) - 1)
        def _next() -> None:
            before[...] += cast(row_sum(block), wide)

    spec = BlockSpec((br, bn), lambda i, j: (i, number(j)))
    return pallas_call(
        kernel, ShapeDtypeStruct(x.shape, dtype), name="cumsum", grid=(cdiv(rows, br), steps),
        in_specs=[spec], out_specs=spec,
        scratch_shapes=[VMEM((br, 1), wide)] if steps > 1 else [],
    )(x)  # fmt: skip
