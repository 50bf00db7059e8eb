"""Rules of operations that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primax_core import lax

from . import types
from .conversion import convert
from .memory import as_int32
from .registry import REWRITES, Context, triton
from .values import Value


@lax.broadcast_in_dim_p.rule(triton)
def _broadcast(
    ctx: Context, x: Value, *, shape: tuple[int, ...], broadcast_dimensions: Sequence[int], **_: Any
) -> Value:
    e = ctx.emitter
    if x.shape:
        for axis in range(len(shape)):
            if axis not in broadcast_dimensions:
                x = e.expand_dims(x, axis)
    return e.broadcast(x, shape)


@lax.reshape_p.rule(triton)
def _reshape(ctx: Context, x: Value, *, new_sizes: tuple[int, ...], **_: Any) -> Value:
    return reshape(ctx, x, tuple(new_sizes))


def reshape(ctx: Context, x: Value, shape: tuple[int, ...]) -> Value:
    """A value with another shape and the same order of elements.

    Raises:
      TritonError: if axes of sizes that are no powers of two are merged or split.
    """
    e = ctx.emitter
    if [n for n in x.shape if n != 1] == [n for n in shape if n != 1]:
        added = _added_axis(x.shape, shape)
        return e.expand_dims(x, added) if added is not None and x.shape else e.reshape(x, shape)
    if x.padded == x.shape and types.padded(shape) == shape:
        return e.reshape(x, shape)
    raise ctx.error(
        f"reshape from {x.shape} to {shape}: axes can be merged and split if all sizes are powers "
        "of two; choose such blocks, or reshape the operand before the kernel"
    )


def _added_axis(before: tuple[int, ...], after: tuple[int, ...]) -> int | None:
    """The axis of size 1 that is the only difference of two shapes."""
    for axis in range(len(after)):
        if (*before[:axis], 1, *before[axis:]) == after:
            return axis
    return None


@lax.squeeze_p.rule(triton)
def _squeeze(ctx: Context, x: Value, **_: Any) -> Value:
    return ctx.emitter.reshape(x, ctx.out_aval.shape)


@lax.transpose_p.rule(triton)
def _transpose(ctx: Context, x: Value, *, permutation: Sequence[int], **_: Any) -> Value:
    return ctx.emitter.transpose(x, permutation)


@lax.iota_p.rule(triton)
def _iota(
    ctx: Context, *_sizes: Any, dtype: Any, shape: tuple[int, ...], dimension: int, **_: Any
) -> Value:
    e = ctx.emitter
    positions = convert(e, e.positions(tuple(shape), dimension), dtype)
    return e.broadcast(positions, shape)


# Parts, by tt.gather along one axis after the other


@lax.slice_p.rule(triton)
def _slice(
    ctx: Context, x: Value, *, start_indices: Sequence[int], limit_indices: Sequence[int],
    strides: Sequence[int] | None, **_: Any,
) -> Value:  # fmt: skip
    e = ctx.emitter
    shape = ctx.out_aval.shape
    for axis, (start, n) in enumerate(zip(start_indices, shape)):
        stride = 1 if strides is None else strides[axis]
        if (start, stride, n) != (0, 1, x.shape[axis]):
            x = part(ctx, x, e.index(int(start)), int(stride), n, axis)
    return x


def part(ctx: Context, x: Value, start: Value, stride: int, n: int, axis: int) -> Value:
    """``n`` elements along an axis from a start that is in bounds."""
    e = ctx.emitter
    if start.known == 0 and stride == 1 and types.power_of_two(n) == x.padded[axis]:
        return x.like((*x.shape[:axis], n, *x.shape[axis + 1 :]))
    shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
    steps = e.multiply(e.positions(shape, axis), e.index(stride))
    where = e.clamp(e.add(steps, start), 0, x.padded[axis] - 1)
    return e.gather(x, where, axis)


@lax.dynamic_slice_p.rule(triton)
def _dynamic_slice(
    ctx: Context, x: Value, *starts: Value, slice_sizes: Sequence[int], **_: Any
) -> Value:
    for axis, (start, n) in enumerate(zip(starts, slice_sizes)):
        if n != x.shape[axis]:
            start = _start(ctx, start, x.shape[axis], n)
            x = part(ctx, x, start, 1, n, axis)
    return x


def _start(ctx: Context, start: Value, size: int, n: int) -> Value:
    """The start of a part, moved into bounds."""
    e = ctx.emitter
    return e.clamp(as_int32(e, start), 0, size - n)


@lax.dynamic_update_slice_p.rule(triton)
def _dynamic_update_slice(ctx: Context, x: Value, update: Value, *starts: Value, **_: Any) -> Value:
    return placed(ctx, x, update, [
        _start(ctx, s, n, k) for s, n, k in zip(starts, x.shape, update.shape)
    ])  # fmt: skip


def placed(ctx: Context, x: Value, update: Value, starts: Sequence[Value]) -> Value:
    """``x`` with a part replaced."""
    e = ctx.emitter
    mask: Value | None = None
    for axis, start in enumerate(starts):
        n, size = update.shape[axis], x.shape[axis]
        if n == size:
            continue
        distance = e.subtract(e.positions(x.shape, axis), start)
        low = e.compare("ge", distance, e.index(0))
        high = e.compare("lt", distance, e.index(n))
        mask = _conjunction(ctx, mask, e.binary("arith.andi", low, high), x.shape)
        if n != 1:
            where = e.clamp(distance, 0, update.padded[axis] - 1)
            update = e.gather(update, where, axis)
    return e.broadcast(update, x.shape) if mask is None else e.select(mask, update, x)


def _conjunction(ctx: Context, mask: Value | None, more: Value, shape: tuple[int, ...]) -> Value:
    more = ctx.emitter.broadcast(more, shape)
    both = ctx.emitter.both(mask, more)
    assert both is not None
    return both


@lax.concatenate_p.rule(triton)
def _concatenate(ctx: Context, *parts: Value, dimension: int, **_: Any) -> Value:
    e = ctx.emitter
    shape = ctx.out_aval.shape
    result: Value | None = None
    start = 0
    for x in parts:
        distance = e.subtract(e.positions(shape, dimension), e.index(start))
        where = e.clamp(distance, 0, x.padded[dimension] - 1)
        moved = e.gather(x, where, dimension)
        if result is None:
            result = moved
        else:
            result = e.select(e.compare("ge", distance, e.index(0)), moved, result)
        start += x.shape[dimension]
    assert result is not None
    return result


@lax.rev_p.rule(triton)
def _reverse(ctx: Context, x: Value, *, dimensions: Sequence[int], **_: Any) -> Value:
    e = ctx.emitter
    for axis in dimensions:
        last = e.index(x.shape[axis] - 1)
        where = e.subtract(last, e.positions(x.shape, axis))
        x = e.gather(x, e.clamp(where, 0, x.padded[axis] - 1), axis)
    return x


@lax.pad_p.rule(triton)
def _pad(ctx: Context, x: Value, value: Value, *, padding_config: Any, **_: Any) -> Value:
    e = ctx.emitter
    shape = ctx.out_aval.shape
    mask: Value | None = None
    for axis, (low, high, interior) in enumerate(padding_config):
        if interior:
            raise ctx.error("pad adds elements between elements: do this before the kernel")
        if not low and not high:
            continue
        n = x.shape[axis]
        to = (*x.shape[:axis], shape[axis], *x.shape[axis + 1 :])
        distance = e.subtract(e.positions(to, axis), e.index(int(low)))
        inside = e.binary(
            "arith.andi",
            e.compare("ge", distance, e.index(0)),
            e.compare("lt", distance, e.index(n)),
        )
        mask = _conjunction(ctx, mask, inside, shape)
        x = e.gather(x, e.clamp(distance, 0, x.padded[axis] - 1), axis)
    return x if mask is None else e.select(mask, x, e.broadcast(value, shape))


@lax.split_p.rule(triton)
def _split(ctx: Context, x: Value, *, sizes: Sequence[int], axis: int, **_: Any) -> list[Value]:
    start, parts = 0, []
    for n in sizes:
        parts.append(part(ctx, x, ctx.emitter.index(start), 1, n, axis))
        start += n
    return parts


_READ = "read the elements through the reference with an array of positions, ref[positions]"
REWRITES.update({
    "gather": _READ,
    "scatter": "write through the reference with an array of positions, ref[positions] = x",
    "scatter-add": "compare positions with iota, and sum the selected elements",
    "sort": "sort before or after the kernel",
    "top_k": "take argmax repeatedly, or select before or after the kernel",
    "reduce_window": "read shifted blocks and combine them",
    "tile": "broadcast along a new axis, or read the elements again",
})  # fmt: skip
