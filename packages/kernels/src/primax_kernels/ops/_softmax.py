"""Softmax of rows."""

from __future__ import annotations

import functools
from typing import Any

from primax_core import ShapeDtypeStruct, custom_jvp, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec
from .._call import pallas_call
from .._grid import program_id
from .._helpers import cdiv
from .._typing import ArrayLike
from ._blocks import rows_block
from ._common import accumulator, axis_in, block_size, cast, inside, operand, row_max, row_sum


def softmax(x: ArrayLike, *, axis: int = -1, block_rows: int | None = None) -> Any:
    """Exponentials of the elements along an axis, divided by their sum.

    Computed in ``float32`` for 16-bit floats, after subtraction of the maximum.

    Args:
      x: array of floats.
      axis: axis whose elements are normalised; a step computes whole rows along it.
      block_rows: rows of a step, by default chosen for the platform.

    Returns:
      Array with the shape and dtype of ``x``. Rows whose maximum is infinite are NaN.

    Raises:
      TypeError, ValueError: for other dtypes, and axes that the array does not have.

    Forward and reverse derivatives of any order use the result, not the kernel.

    >>> import numpy as np
    >>> softmax(np.log(np.array([[1, 1, 2]], np.float32)))
    Array([[0.25, 0.25, 0.5 ]], dtype=float32)
    """
    aval = operand("softmax", "x", x)
    axis = axis_in("softmax", axis, aval.ndim)
    n = aval.shape[axis]
    rows = aval.size // max(n, 1)
    block = block_size("softmax", "block_rows", block_rows, rows_block(rows, n), rows)
    return _softmax(axis, block, x)


@functools.partial(jit, static_argnums=(0, 1))
def _softmax(axis: int, block: int, x: Any) -> Any:
    shape, last = x.shape, x.ndim - 1
    if 0 in shape:
        return lax.full(shape, 0, typeof(x).dtype)
    order = [*[a for a in range(last + 1) if a != axis], axis]
    moved = lax.transpose(x, order) if axis != last else x
    y = _of_rows(block, lax.reshape(moved, (x.size // shape[axis], shape[axis])))
    y = lax.reshape(y, moved.shape)
    return lax.transpose(y, [order.index(a) for a in range(last + 1)]) if axis != last else y


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _of_rows(block: int, x: Any) -> Any:
    rows, n = x.shape
    wide = accumulator(typeof(x).dtype)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        x = cast(inside(x_ref[...], (0, program_id(0), rows)), wide)
        e = lax.exp(x - row_max(x))
        o_ref[...] = cast(e / row_sum(e), o_ref.dtype)

    spec = BlockSpec((block, n), lambda i: (i, 0))
    return pallas_call(
        kernel, ShapeDtypeStruct(x.shape, typeof(x).dtype), name="softmax",
        grid=(cdiv(rows, block),), in_specs=[spec], out_specs=spec,
    )(x)  # fmt: skip


@_of_rows.defjvp
def _jvp(block: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    y = _of_rows(block, *primals)
    wide = accumulator(typeof(y).dtype)
    weights, t = cast(y, wide), cast(tangents[0], wide)
    return y, cast(weights * (t - row_sum(weights * t)), typeof(y).dtype)
