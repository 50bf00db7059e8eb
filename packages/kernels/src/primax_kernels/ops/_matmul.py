"""Matrix product in blocks, with an epilogue."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import typeof

from .._block_specs import BlockSpec
from .._call import pallas_call
from .._control import when
from .._grid import num_programs, program_id
from .._helpers import cdiv
from .._typing import ArrayLike, DTypeLike, PrecisionLike
from ..tpu import VMEM
from ._blocks import matmul_block
from ._common import (
    FLOATS,
    INTEGERS,
    accumulator,
    block_sizes,
    cast,
    filled,
    inside,
    operand,
    product,
    same_dtype,
)

PARTS: Final = ("rows", "summed elements", "columns")
"""The sizes of a block."""


class _Config(NamedTuple):
    block: tuple[int, ...]
    out_dtype: Any
    epilogue: Callable[..., Any] | None
    transposed: tuple[bool, bool]
    precision: Any


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *extras: Any,
    block: tuple[int | None, int | None, int | None] | None = None,
    out_dtype: DTypeLike | None = None,
    epilogue: Callable[..., Any] | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    precision: PrecisionLike | None = None,
) -> Any:
    """Matrix product with a function of its elements, computed in blocks.

    Products of 16-bit floats are summed in ``float32``, of integers of at most 32 bits in
    ``int32``.

    Args:
      a: matrix of shape ``(m, k)``, of floats or integers.
      b: matrix of shape ``(k, n)``, of the same dtype.
      extras: operands of the epilogue, matrices or vectors that broadcast to ``(m, n)``.
      block: rows, summed elements and columns of a step; ``None`` stands for a default of the
        platform.
      out_dtype: dtype of the result, by default that of ``a``, for integers that of the sums.
      epilogue: function ``(sums, *extras) -> block`` of a block of sums and of the matching blocks
        of the extras, with 2 axes of the block's size or 1.
        The product is compiled for each function: define it outside of loops.
      transpose_a, transpose_b: whether an operand is transposed: ``a`` has the shape ``(k, m)``,
        ``b`` the shape ``(n, k)``.
      precision: precision of the products, as of ``lax.dot_general``.

    Returns:
      Matrix of shape ``(m, n)``.

    Raises:
      TypeError: for other dtypes, or two different ones.
      ValueError: for shapes that do not match, or extras without an epilogue.

    The derivative is that of plain operations on arrays; forward and reverse mode, any order.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> bias = np.array([-20, 0], np.float32)
    >>> relu = lambda x, bias: lax.max(x + bias, np.float32(0))
    >>> matmul(a, a.T, bias, epilogue=relu)
    Array([[ 0., 14.],
           [ 0., 50.]], dtype=float32)
    """
    kinds = (*FLOATS, *INTEGERS)
    x, y = (operand("matmul", n, v, rank=2, kinds=kinds) for n, v in (("a", a), ("b", b)))
    same_dtype("matmul", a=x, b=y)
    transposed = bool(transpose_a), bool(transpose_b)
    m, k = x.shape[::-1] if transposed[0] else x.shape
    k_b, n = y.shape[::-1] if transposed[1] else y.shape
    if k != k_b:
        raise ValueError(
            f"matmul: a has {k} and b has {k_b} elements along the summed axis (shapes {x.shape} "
            f"and {y.shape}, transpose_a={transposed[0]}, transpose_b={transposed[1]})"
        )
    if epilogue is None and extras:
        raise ValueError(f"matmul: {len(extras)} extra operands without an epilogue that uses them")
    if epilogue is not None and not callable(epilogue):
        raise TypeError(f"matmul: epilogue is a function or None, got {epilogue!r}")
    if out_dtype is None:
        out_dtype = x.dtype if x.dtype in FLOATS else accumulator(x.dtype)
    default = matmul_block(m, k, n, x.dtype.itemsize * 8)
    sizes = block_sizes("matmul", "block", block, PARTS, default, (m, k, n))
    config = _Config(sizes, np.dtype(out_dtype), epilogue, transposed, precision)
    return _matmul(config, a, b, *(_extra(i, e, m, n) for i, e in enumerate(extras)))


def _extra(i: int, x: Any, m: int, n: int) -> Any:
    """An operand of an epilogue as a matrix."""
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(f"matmul: extras[{i}] is an array, got {type(x).__name__}")
    shape = tuple(x.shape)
    wide = (1,) * (2 - len(shape)) + shape
    if len(shape) > 2 or wide[0] not in (1, m) or wide[1] not in (1, n):
        raise ValueError(
            f"matmul: extras[{i}] has the shape {shape}, which does not broadcast to {(m, n)}"
        )
    return lax.reshape(x, wide)


@functools.partial(jit, static_argnums=0)
def _matmul(config: _Config, a: Any, b: Any, *extras: Any) -> Any:
    flip_a, flip_b = config.transposed
    m, k = a.shape[::-1] if flip_a else a.shape
    n = b.shape[0 if flip_b else 1]
    bm, bk, bn = config.block
    total = accumulator(typeof(a).dtype)
    if 0 in (m, k, n):
        return _finished(config, filled((m, n), 0, total), extras)
    steps = cdiv(k, bk)

    def kernel(a_ref: Any, b_ref: Any, *refs: Any) -> None:
        i, j, step = program_id(0), program_id(1), program_id(2)
        rows, columns = (0, i, m), (1, j, n)
        x = inside(a_ref[...], *_flipped(flip_a, rows, (1, step, k)))
        y = inside(b_ref[...], *_flipped(flip_b, (0, step, k), columns))
        terms = product(x, y, (0 if flip_a else 1, 1 if flip_b else 0), total, config.precision)
        blocks = refs[: len(extras)]
        out = refs[len(extras)]

        def finish(sums: Any) -> None:
            values = [
                inside(r[...], *[
                    limit for limit, size in ((rows, e.shape[0]), (columns, e.shape[1])) if size > 1
                ])
                for r, e in zip(blocks, extras)
            ]  # fmt: skip
            out[...] = _finished(config, sums, values)

        if steps == 1:
            finish(terms)
            return
        sums = refs[-1]

        @when(step == 0)
        def _start() -> None:
            sums[...] = filled(sums.shape, 0, total)

        sums[...] += terms

        @when(step == num_programs(2) - 1)
        def _end() -> None:
            finish(sums[...])

    def extra_spec(e: Any) -> BlockSpec:
        long = e.shape[0] > 1, e.shape[1] > 1
        shape = bm if long[0] else 1, bn if long[1] else 1
        return BlockSpec(shape, lambda i, j, k: (i if long[0] else 0, j if long[1] else 0))

    return pallas_call(
        kernel, ShapeDtypeStruct((m, n), config.out_dtype), name="matmul",
        grid=(cdiv(m, bm), cdiv(n, bn), steps),
        in_specs=[
            BlockSpec((bk, bm), lambda i, j, k: (k, i)) if flip_a
            else BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            BlockSpec((bn, bk), lambda i, j, k: (j, k)) if flip_b
            else BlockSpec((bk, bn), lambda i, j, k: (k, j)),
            *map(extra_spec, extras),
        ],
        out_specs=BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        scratch_shapes=[VMEM((bm, bn), total)] if steps > 1 else [],
    )(a, b, *extras)  # fmt: skip


def _flipped(flip: bool, *limits: tuple[int, Any, int]) -> list[tuple[int, Any, int]]:
    """Limits of a block, for `inside`, whose axes are exchanged if ``flip``."""
    return [(1 - axis if flip else axis, number, size) for axis, number, size in limits]


def _finished(config: _Config, sums: Any, extras: Any) -> Any:
    """The result from sums: the epilogue, and the conversion to the result's dtype."""
    if config.epilogue is None:
        return cast(sums, config.out_dtype)
    result = config.epilogue(sums, *extras)
    shape = getattr(result, "shape", None)
    if shape != sums.shape:
        what = repr(result) if shape is None else f"the shape {shape}"
        raise ValueError(
            f"matmul: the epilogue returned {what} for a block of shape {sums.shape}; it returns "
            "an array of the block's shape"
        )
    return cast(result, config.out_dtype)
