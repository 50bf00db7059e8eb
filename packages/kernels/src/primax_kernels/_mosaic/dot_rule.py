"""Products of matrices, for matrix units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax

from .._emission.elements import bits
from .conversion import convert
from .reduction_rules import summed
from .registry import Context, mosaic
from .types import FLOAT32, INT32
from .values import Value

_EXACT: Final = {"HIGHEST", "F32_F32_F32", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9"}
_PLAIN: Final = {"DEFAULT", "BF16_BF16_F32", "ANY_F8_ANY_F8_F32"}
"""Precisions with which ``float32`` is multiplied exactly, and rounded to ``bfloat16``."""

_UNITS: Final = ("bfloat16", "float32", "int8")
"""Types that matrix units multiply."""


@lax.dot_general_p.rule(mosaic)
def _dot_general(
    ctx: Context, x: Value, y: Value, *, dimension_numbers: Any, precision: Any, **_: Any
) -> Value:
    e = ctx.emitter
    (x_over, y_over), (x_batch, y_batch) = dimension_numbers
    x, y = _of_one_type(ctx, x, y)
    x, x_free = _arranged(ctx, x, x_batch, x_over)
    y, y_free = _arranged(ctx, y, y_batch, y_over)
    accumulator = FLOAT32 if x.is_float else INT32
    if x.dtype.name in _UNITS:
        result = _on_unit(ctx, x, y, precision, accumulator)
    else:
        result = _multiplied(ctx, x, y, accumulator)
    batch = tuple(ctx.out_aval.shape[: len(x_batch)])
    result = e.reshape(result, (*batch, *x_free, *y_free))
    return convert(e, result, ctx.out_aval.dtype)


def _of_one_type(ctx: Context, x: Value, y: Value) -> tuple[Value, Value]:
    e = ctx.emitter
    if x.dtype == y.dtype and x.dtype.name in _UNITS:
        return x, y
    if x.is_float or y.is_float:
        narrow = all(v.is_float and bits(v.dtype) <= 16 for v in (x, y))
        wide = np.dtype("bfloat16") if narrow else FLOAT32
        return convert(e, x, wide), convert(e, y, wide)
    return convert(e, x, INT32), convert(e, y, INT32)


def _arranged(
    ctx: Context, x: Value, batch: Sequence[int], over: Sequence[int]
) -> tuple[Value, tuple[int, ...]]:
    """An operand with the axes batch (if any), free, summed, and the sizes of its free axes."""
    e = ctx.emitter
    free = [a for a in range(len(x.shape)) if a not in batch and a not in over]
    sizes = tuple(x.shape[a] for a in free)
    shape = (math.prod(sizes), math.prod(x.shape[a] for a in over))
    if batch:
        shape = (math.prod(x.shape[a] for a in batch), *shape)
    return e.reshape(e.transpose(x, [*batch, *free, *over]), shape), sizes


def _on_unit(ctx: Context, x: Value, y: Value, precision: Any, accumulator: Any) -> Value:
    e = ctx.emitter
    n = len(x.shape) - 2
    shape = (*x.shape[:-1], y.shape[-2])
    start = e.constant(0, accumulator, shape)
    listed = f"[{n + 1}], [{n + 1}], [{n}], [{n}]"
    order = [0, 0, 0, 1, 1, 1] if n else [0, 0, 1, 0]
    batch = "[0], [0]" if n else "[], []"
    numbers = f"#tpu.dot_dimension_numbers<{listed}, {order}, {batch}>"
    how = ""
    if x.dtype == FLOAT32 and _is_exact(ctx, precision):
        how = ", precision = #tpu.contract_precision<fp32>"
    text = (
        f"tpu.matmul {x.name}, {y.name}, {start.name} {{dimension_numbers = {numbers}{how}, "
        f"transpose_lhs_hint = false}} : {x.type}, {y.type}, {start.type} -> {start.type}"
    )
    return e.op(text, accumulator, shape)


def _is_exact(ctx: Context, precision: Any) -> bool:
    """Return True if products of ``float32`` are not rounded to ``bfloat16`` first."""
    if precision is None:
        return False
    pair = precision if isinstance(precision, tuple) else (precision,)
    names = {getattr(p, "name", str(p)) for p in pair}
    if names & _EXACT:
        return True
    if names <= _PLAIN:
        return False
    raise ctx.error(
        f"dot_general of float32 with precision {precision}; on TPUs it is DEFAULT (bfloat16) or "
        "HIGHEST (float32)"
    )


def _multiplied(ctx: Context, x: Value, y: Value, accumulator: Any) -> Value:
    """Products of elements, summed, for types that matrix units do not have."""
    e = ctx.emitter
    n = len(x.shape) - 2
    batch, (rows, k), columns = x.shape[:n], x.shape[n:], y.shape[n]
    if math.prod(batch) * rows * k * columns > 1 << 20:
        raise ctx.error(
            f"dot_general of {x.dtype.name} with blocks of {x.shape} and {y.shape}; matrix units "
            f"multiply {', '.join(_UNITS)}: convert to one of them, or use smaller blocks"
        )
    x = e.reshape(x, (*batch, rows, 1, k))
    y = e.reshape(y, (*batch, 1, columns, k))
    return summed(e, e.multiply(x, y), [n + 2])
