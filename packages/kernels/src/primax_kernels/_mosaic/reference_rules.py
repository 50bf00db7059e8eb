"""Rules of reads and writes of references."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import references

from .._access import former_get_p, masked_get_p, masked_swap_p
from .._memory_spaces import unwritten_value
from .._poison import poison_p
from .._semaphores import SemaphoreType
from . import types
from .memory import Reference
from .positions import has_positions, lowered
from .registry import Context, mosaic
from .types import BOOL
from .values import Value


@references.get_p.rule(mosaic)
def _get(ctx: Context, ref: Reference, *operands: Value, index: Any, **_: Any) -> Value:
    if has_positions(index, operands):
        return lowered(ctx, [ref, *operands], index)[0]
    return ref.read(ctx, index, operands)


@references.swap_p.rule(mosaic)
def _swap(
    ctx: Context, ref: Reference, value: Value, *operands: Value, index: Any, **_: Any
) -> Value:
    if has_positions(index, operands):
        return lowered(ctx, [ref, value, *operands], index)[0]
    old = ref.read(ctx, index, operands) if ctx.is_used() else value
    ref.write(ctx, value, index, operands)
    return old


@references.addupdate_p.rule(mosaic)
def _add(
    ctx: Context, ref: Reference, value: Value, *operands: Value, index: Any, **_: Any
) -> list[Value]:
    if has_positions(index, operands):
        return lowered(ctx, [ref, value, *operands], index)
    e = ctx.emitter
    old = ref.read(ctx, index, operands)
    if ref.dtype == BOOL:
        total = e.binary("arith.ori", old, value)
    else:
        total = e.from_words(e.add(e.words(old), e.words(value)), ref.dtype)
    ref.write(ctx, total, index, operands)
    return []


@former_get_p.rule(mosaic)
@masked_get_p.rule(mosaic)
def _masked_get(
    ctx: Context, ref: Reference, mask: Value, other: Value, *operands: Value, index: Any
) -> Value:
    if has_positions(index, operands):
        return lowered(ctx, [ref, mask, other, *operands], index)[0]
    return ref.read(ctx, index, operands, mask, other)


@masked_swap_p.rule(mosaic)
def _masked_swap(
    ctx: Context, ref: Reference, value: Value, mask: Value, *operands: Value, index: Any
) -> Value:
    if has_positions(index, operands):
        return lowered(ctx, [ref, value, mask, *operands], index)[0]
    if ctx.is_used():
        e = ctx.emitter
        zero = e.constant(0, ref.dtype, ctx.out_aval.shape)
        old = ref.read(ctx, index, operands, mask, zero)
    else:
        old = value
    ref.write(ctx, value, index, operands, mask)
    return old


def new_memory(ctx: Context, shape: tuple[int, ...], dtype: Any, space: Any = None) -> Reference:
    """Memory of the kernel.

    Args:
      space: its memory space; by default SMEM for a scalar, and VMEM for others.
    """
    if space is SemaphoreType.DMA:
        name, _ = ctx.emitter.memory(types.DMA_SEMAPHORE, shape, "semaphore_mem")
        return Reference(name, dtype, shape, "semaphore_mem")
    if isinstance(space, SemaphoreType) and ctx.emitter.kernel.communicates:
        name, _ = ctx.emitter.memory(types.SEMAPHORE, shape, "semaphore_mem")
        return Reference(name, dtype, shape, "semaphore_mem", semaphore=types.SEMAPHORE)
    scalars = not shape or isinstance(space, SemaphoreType) or str(space).lower() == "smem"
    sizes = shape or (1,)
    kind = "smem" if scalars else "vmem"
    name, _ = ctx.emitter.memory(types.element(types.stored(dtype)), sizes, kind)
    return Reference(name, dtype, sizes, kind, None if shape else (True,))


@references.new_ref_p.rule(mosaic)
def _new_ref(ctx: Context, value: Value, *, memory_space: Any = None, **_: Any) -> Reference:
    ref = new_memory(ctx, value.shape, value.dtype, memory_space)
    ref.write(ctx, value, None, ())
    return ref


@references.empty_ref_p.rule(mosaic)
def _empty_ref(ctx: Context, *, ty: Any, memory_space: Any = None, **_: Any) -> Reference:
    return new_memory(ctx, tuple(ty.shape), np.dtype(ty.dtype), memory_space)


@references.freeze_p.rule(mosaic)
def _freeze(ctx: Context, ref: Reference, **_: Any) -> Value:
    return ref.read(ctx, None, ())


@references.free_ref_p.rule(mosaic)
def _free_ref(ctx: Context, ref: Reference, **_: Any) -> list[Value]:
    return []


@poison_p.rule(mosaic)
def _poison(ctx: Context, ref: Reference, *, everywhere: bool) -> list[Value]:
    if everywhere:
        value = ctx.emitter.constant(unwritten_value(ref.dtype), ref.dtype, ref.shape)
        ref.write(ctx, value, None, ())
    return []
