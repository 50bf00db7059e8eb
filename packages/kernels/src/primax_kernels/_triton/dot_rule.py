"""Products of matrices, for tensor cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import dtypes

from . import types
from .conversion import convert
from .reduction_rules import sum_along
from .registry import Context, triton
from .types import FLOAT32, INT32
from .values import Value

_PRECISIONS: Final = {
    "DEFAULT": "tf32",
    "HIGH": "tf32x3",
    "HIGHEST": "ieee",
    "TF32_TF32_F32": "tf32",
    "TF32_TF32_F32_X3": "tf32x3",
    "BF16_BF16_F32_X3": "bf16x3",
    "BF16_BF16_F32_X6": "bf16x6",
    "F32_F32_F32": "ieee",
}
"""How ``float32`` operands are multiplied, by the precision of the operation."""

_PLAIN: Final = {
    "DEFAULT", "HIGH", "HIGHEST", "F16_F16_F32", "BF16_BF16_F32", "F64_F64_F64", "F32_F32_F32",
    "ANY_F8_ANY_F8_F32",
}  # fmt: skip
"""Precisions that say nothing else than the types of operands of fewer or more bits."""


@lax.dot_general_p.rule(triton)
def _dot_general(
    ctx: Context, x: Value, y: Value, *, dimension_numbers: Any, precision: Any, **_: Any
) -> Value:
    (x_over, y_over), (x_batch, y_batch) = dimension_numbers
    x, y = _of_one_type(ctx, x, y)
    accumulator = FLOAT32 if x.is_float else INT32
    if types.bits(x.dtype) == 64:
        accumulator = x.dtype
    x, x_free = _arranged(ctx, x, x_batch, x_over, last=True)
    y, y_free = _arranged(ctx, y, y_batch, y_over, last=False)
    k = x.padded[-1]
    if _for_tensor_cores(x) and k >= 256 // types.bits(x.dtype):
        result = _dot(ctx, x, y, precision, accumulator)
    else:
        result = _multiplied(ctx, x, y, accumulator)
    shape = ctx.out_aval.shape
    batch = shape[: len(x_batch)]
    result = ctx.emitter.reshape(result, (*batch, *x_free, *y_free)).like(shape)
    return convert(ctx.emitter, result, ctx.out_aval.dtype)


def _for_tensor_cores(x: Value) -> bool:
    return x.is_float or x.dtype == np.int8


def _of_one_type(ctx: Context, x: Value, y: Value) -> tuple[Value, Value]:
    """Operands with one dtype, unless both are floats of 8 bits."""
    if x.dtype == y.dtype or (types.is_f8(x.dtype) and types.is_f8(y.dtype)):
        return x, y
    if x.is_float and y.is_float:
        wide = max(x.dtype, y.dtype, key=types.bits)
        if types.bits(x.dtype) == types.bits(y.dtype):
            wide = FLOAT32
    else:
        wide = np.dtype(dtypes.promote_types(x.dtype, y.dtype))
    return convert(ctx.emitter, x, wide), convert(ctx.emitter, y, wide)


def _arranged(
    ctx: Context, x: Value, batch: Sequence[int], over: Sequence[int], last: bool
) -> tuple[Value, tuple[int, ...]]:
    """An operand with the axes batch (if any), rows, columns, and the sizes of its free axes.

    Elements outside of it along the summed axes are 0. All sizes are those of tensors.
    """
    e = ctx.emitter
    x = e.filled(x, over, 0)
    free = [a for a in range(len(x.shape)) if a not in batch and a not in over]
    pair = (free, list(over)) if last else (list(over), free)
    x = e.transpose(x, [*batch, *pair[0], *pair[1]])
    sizes = x.padded
    n, m = len(batch), len(pair[0])
    groups = [sizes[n : n + m], sizes[n + m :]]
    shape = ([math.prod(sizes[:n])] if n else []) + [math.prod(g) for g in groups]
    return e.reshape(x, tuple(shape)), tuple(groups[0 if last else 1])


def _dot(ctx: Context, x: Value, y: Value, precision: Any, accumulator: Any) -> Value:
    e = ctx.emitter
    shape = (*x.shape[:-1], y.shape[-1])
    start = e.constant(0, accumulator, shape)
    how = f", inputPrecision = {_input_precision(ctx, x, precision)}" if x.dtype == FLOAT32 else ""
    return e.op(
        f"tt.dot {x.name}, {y.name}, {start.name}{how} : {x.type} * {y.type} -> {start.type}",
        accumulator,
        shape,
    )


def _input_precision(ctx: Context, x: Value, precision: Any) -> str:
    pair = precision if isinstance(precision, tuple) else (precision, precision)
    if precision is None:
        return "tf32"
    if isinstance(precision, tuple) and len(precision) != 2:
        raise ctx.error(f"dot_general with precision {precision}; pass a Precision or a preset")
    names = [getattr(p, "name", str(p)) for p in pair]
    order = ("DEFAULT", "HIGH", "HIGHEST")
    name = max(names, key=order.index) if all(n in order for n in names) else names[0]
    if name not in _PRECISIONS:
        raise ctx.error(
            f"dot_general of float32 with precision {name}; Triton has {', '.join(_PRECISIONS)}"
        )
    return _PRECISIONS[name]


def _multiplied(ctx: Context, x: Value, y: Value, accumulator: Any) -> Value:
    """Products of elements, summed: for types without tensor cores, and short sums."""
    e = ctx.emitter
    rank = len(x.shape)
    x, y = convert(e, x, accumulator), convert(e, y, accumulator)
    elements = math.prod(x.padded) * y.padded[-1]
    if elements > types.MAX_ELEMENTS:
        raise ctx.error(
            f"dot_general of {x.dtype.name} with blocks of {x.shape} and {y.shape}, which has no "
            f"tensor cores and needs {elements} products in one tensor; the limit is "
            f"{types.MAX_ELEMENTS}: use smaller blocks, sums over at least "
            f"{256 // types.bits(x.dtype)} elements, or float32, float16, bfloat16 or int8"
        )
    x = e.expand_dims(x, rank)
    y = e.expand_dims(y, rank - 2)
    return sum_along(e, e.multiply(x, y), rank - 1)
