"""Rules of reads and writes of references."""

from __future__ import annotations

from typing import Any

from primax_core.extend import references

from .._access import former_get_p, masked_get_p, masked_swap_p
from .._memory_spaces import unwritten_value
from .._poison import poison_p
from . import types
from .memory import MemoryRef, RegisterRef
from .registry import Context, triton
from .values import Value

Reference = MemoryRef | RegisterRef

ATOMIC = ("float16", "float32", "float64", "int32", "uint32", "int64", "uint64")
"""Types of elements that are added in one step."""


@references.get_p.rule(triton)
def _get(ctx: Context, ref: Reference, *operands: Value, index: Any, **_: Any) -> Value:
    return ref.read(index, operands)


@references.swap_p.rule(triton)
def _swap(
    ctx: Context, ref: Reference, value: Value, *operands: Value, index: Any, **_: Any
) -> Value:
    old = ref.read(index, operands) if ctx.is_used() else value
    ref.write(value, index, operands)
    return old


@references.addupdate_p.rule(triton)
def _add(
    ctx: Context, ref: Reference, value: Value, *operands: Value, index: Any, **_: Any
) -> list[Value]:
    e = ctx.emitter
    if isinstance(ref, RegisterRef):
        ref.add(value, index, operands)
        return []
    if references.INTEGER_ARRAY in (index or ()):
        if ref.dtype.name not in ATOMIC:
            raise ctx.error(
                f"addition of {ref.dtype.name} at an array of positions; it exists for "
                f"{', '.join(ATOMIC)}"
            )
        ref.add(value, index, operands)
        return []
    old = ref.read(index, operands)
    both = "arith.ori" if ref.dtype == types.BOOL else None
    ref.write(e.binary(both, old, value) if both else e.add(old, value), index, operands)
    return []


@former_get_p.rule(triton)
@masked_get_p.rule(triton)
def _masked_get(
    ctx: Context, ref: Reference, mask: Value, other: Value, *operands: Value, index: Any
) -> Value:
    e = ctx.emitter
    if isinstance(ref, MemoryRef):
        return ref.read(index, operands, mask, other)
    return e.select(mask, _part_of_registers(ctx, ref, index, operands), other)


@masked_swap_p.rule(triton)
def _masked_swap(
    ctx: Context, ref: Reference, value: Value, mask: Value, *operands: Value, index: Any
) -> Value:
    if isinstance(ref, MemoryRef):
        old = ref.read(index, operands, mask) if ctx.is_used() else value
        ref.write(value, index, operands, mask)
        return old
    old = _part_of_registers(ctx, ref, index, operands)
    ref.write(ctx.emitter.select(mask, value, old), index, operands)
    return old


def _part_of_registers(ctx: Context, ref: RegisterRef, index: Any, operands: Any) -> Value:
    for entry in index or ():
        if type(entry) is references.DynamicSlice:
            raise ctx.error(
                "a masked access to a computed slice of scratch memory, which is held in "
                "registers; select with a comparison of iota on the whole reference"
            )
    return ref.read(index, operands)


@references.new_ref_p.rule(triton)
def _new_ref(ctx: Context, value: Value, **_: Any) -> RegisterRef:
    return RegisterRef(ctx.emitter, value)


@references.empty_ref_p.rule(triton)
def _empty_ref(ctx: Context, *, ty: Any, **_: Any) -> RegisterRef:
    e = ctx.emitter
    return RegisterRef(e, e.constant(types.unwritten(ty.dtype), ty.dtype, ty.shape))


@references.freeze_p.rule(triton)
def _freeze(ctx: Context, ref: Reference, **_: Any) -> Value:
    return ref.read(None, ())


@references.free_ref_p.rule(triton)
def _free_ref(ctx: Context, ref: Reference, **_: Any) -> list[Value]:
    return []


@poison_p.rule(triton)
def _poison(ctx: Context, ref: Reference, *, everywhere: bool) -> list[Value]:
    if everywhere:
        e = ctx.emitter
        ref.write(e.constant(unwritten_value(ref.dtype), ref.dtype, ref.shape), None, ())
    return []
