"""Rules of operations that only GPUs have, of hints, and of operations that GPUs lack."""

from __future__ import annotations

import json
from typing import Any

from .._devices import device_position_p
from .._gpu_operations import (
    approx_tanh_p,
    barrier_p,
    inline_asm_p,
    max_contiguous_p,
    multiple_of_p,
)
from .._remote_operations import remote_copy_start_p, remote_copy_wait_p, remote_signal_p
from . import types
from .conversion import convert
from .registry import Context, triton
from .types import FLOAT32
from .values import Value


@inline_asm_p.rule(triton)
def _inline_asm(
    ctx: Context, *values: Value, asm: str, constraints: str, pack: int, results: Any
) -> list[Value]:
    dtypes = [r.dtype for r in results]
    return inline_asm(ctx, values, asm, constraints, pack, dtypes, results[0].shape)


def inline_asm(
    ctx: Context, values: Any, asm: str, constraints: str, pack: int, dtypes: Any,
    shape: tuple[int, ...],
) -> list[Value]:  # fmt: skip
    """Instructions on each element of tensors."""
    e = ctx.emitter
    name = e.name()
    tensors = [types.tensor(types.element(d), types.padded(shape)) for d in dtypes]
    several = len(dtypes) > 1
    operands = ", ".join(x.name for x in values)
    e.line(
        f"{name}{f':{len(dtypes)}' if several else ''} = tt.elementwise_inline_asm "
        f"{_quoted(asm)} {{constraints = {_quoted(constraints)}, packed_element = {pack} : i32, "
        f"pure = true}} {operands} : {', '.join(x.type for x in values)} -> {', '.join(tensors)}"
    )
    names = [f"{name}#{i}" for i in range(len(dtypes))] if several else [name]
    return [Value(n, d, shape) for n, d in zip(names, dtypes)]


def _quoted(text: str) -> str:
    """A string of MLIR."""
    return json.dumps(text).replace("\\n", "\\0A").replace("\\t", "\\09").replace("\\r", "\\0D")


@approx_tanh_p.rule(triton)
def _approx_tanh(ctx: Context, x: Value) -> Value:
    wide = convert(ctx.emitter, x, FLOAT32)
    text = "tanh.approx.f32 $0, $1;"
    (result,) = inline_asm(ctx, [wide], text, "=f,f", 1, [FLOAT32], x.shape)
    return convert(ctx.emitter, result, x.dtype)


@barrier_p.rule(triton)
def _barrier(ctx: Context) -> list[Value]:
    ctx.emitter.line("gpu.barrier")
    return []


@multiple_of_p.rule(triton)
def _multiple_of(ctx: Context, x: Value, *, values: tuple[int, ...]) -> Value:
    ctx.emitter.annotate(x, "tt.divisibility", values)
    return x


@max_contiguous_p.rule(triton)
def _max_contiguous(ctx: Context, x: Value, *, values: tuple[int, ...]) -> Value:
    ctx.emitter.annotate(x, "tt.contiguity", values)
    return x


@remote_copy_start_p.rule(triton)
@remote_copy_wait_p.rule(triton)
@remote_signal_p.rule(triton)
def _remote(ctx: Context, *values: Any, **params: Any) -> list[Value]:
    raise ctx.error(
        "a copy or signal to another device, which Triton does not have: end the kernel, move its "
        "result with lax.ppermute or lax.all_gather in shard_map, and go on in a second kernel"
    )


@device_position_p.rule(triton)
def _position(ctx: Context, **params: Any) -> Value:
    raise ctx.error(
        "lax.axis_index over an axis of the mesh, which Triton does not have: pass it as an operand"
    )
