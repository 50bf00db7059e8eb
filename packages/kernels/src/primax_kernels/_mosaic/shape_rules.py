"""Rules of operations that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from primax_core import lax

from .conversion import convert
from .emitter import Emitter
from .registry import REWRITES, Context, mosaic
from .types import INT32
from .values import Value

MAX_PIECES: Final = 64
"""The most parts that a strided slice is joined from."""


@lax.broadcast_in_dim_p.rule(mosaic)
def _broadcast(
    ctx: Context, x: Value, *, shape: tuple[int, ...], broadcast_dimensions: Sequence[int], **_: Any
) -> Value:
    e = ctx.emitter
    shape = tuple(shape)
    if x.shape:
        places = dict(zip(broadcast_dimensions, x.shape))
        x = e.reshape(x, tuple(places.get(axis, 1) for axis in range(len(shape))))
    return e.broadcast(x, shape)


@lax.reshape_p.rule(mosaic)
def _reshape(ctx: Context, x: Value, *, new_sizes: tuple[int, ...], **_: Any) -> Value:
    return ctx.emitter.reshape(x, tuple(new_sizes))


@lax.squeeze_p.rule(mosaic)
def _squeeze(ctx: Context, x: Value, **_: Any) -> Value:
    return ctx.emitter.reshape(x, ctx.out_aval.shape)


@lax.transpose_p.rule(mosaic)
def _transpose(ctx: Context, x: Value, *, permutation: Sequence[int], **_: Any) -> Value:
    return ctx.emitter.transpose(x, permutation)


@lax.iota_p.rule(mosaic)
def _iota(
    ctx: Context, *_sizes: Any, dtype: Any, shape: tuple[int, ...], dimension: int, **_: Any
) -> Value:
    e = ctx.emitter
    return convert(e, e.positions(tuple(shape), dimension), dtype)


@lax.slice_p.rule(mosaic)
def _slice(
    ctx: Context, x: Value, *, start_indices: Sequence[int], limit_indices: Sequence[int],
    strides: Sequence[int] | None, **_: Any,
) -> Value:  # fmt: skip
    e = ctx.emitter
    steps = tuple(strides or (1,) * len(x.shape))
    sizes = [limit - start for start, limit in zip(start_indices, limit_indices)]
    x = e.part(x, list(map(int, start_indices)), sizes)
    for axis, (step, n) in enumerate(zip(steps, ctx.out_aval.shape)):
        x = strided(ctx, x, axis, int(step), n)
    return x


def strided(ctx: Context, x: Value, axis: int, step: int, n: int) -> Value:
    """``n`` elements along an axis, ``step`` apart, from the first one.

    Raises:
      MosaicError: for more elements than parts are joined from.
    """
    e = ctx.emitter
    if step == 1:
        return x
    if n > MAX_PIECES:
        raise ctx.error(
            f"{n} elements with a stride of {step} along axis {axis}; at most {MAX_PIECES} are "
            "joined: reshape the operand before the kernel, so that the stride is an axis"
        )
    sizes = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    pieces = [e.part(x, _at(axis, i * step, len(sizes)), sizes) for i in range(n)]
    return e.concatenate(pieces, axis)


def _at(axis: int, start: int, rank: int) -> list[int]:
    return [start if a == axis else 0 for a in range(rank)]


def as_index(e: Emitter, x: Value) -> Value:
    """A position as an ``int32``."""
    return convert(e, x, INT32)


def dynamic_part(e: Emitter, x: Value, start: Value, n: int, axis: int) -> Value:
    """``n`` elements along an axis from a computed start, cyclically."""
    size = x.shape[axis]
    if start.known is not None and 0 <= start.known <= size - n:
        starts = _at(axis, start.known, len(x.shape))
    else:
        x = e.rotate(x, _modulo(e, e.subtract(e.index(0), start), size), axis)
        starts = [0] * len(x.shape)
    return e.part(x, starts, (*x.shape[:axis], n, *x.shape[axis + 1 :]))


def _modulo(e: Emitter, x: Value, n: int) -> Value:
    """The remainder of an integer scalar that is not negative."""
    if x.known is not None:
        return e.index(x.known % n)
    size = e.index(n)
    rest = e.binary("arith.remsi", x, size, (-(n - 1), n - 1))
    return e.binary("arith.remsi", e.add(rest, size), size, (0, n - 1))


def placed(e: Emitter, x: Value, update: Value, starts: Sequence[Value]) -> Value:
    """``x`` with a part replaced; elements of the part outside of ``x`` are dropped."""
    mask: Value | None = None
    for axis, start in enumerate(starts):
        n, size = update.shape[axis], x.shape[axis]
        if n == size and start.known == 0:
            continue
        distance = e.subtract(e.positions(x.shape, axis), start)
        low = e.compare("ge", distance, e.index(0))
        inside = e.binary("arith.andi", low, e.compare("lt", distance, e.index(n)))
        mask = inside if mask is None else e.binary("arith.andi", mask, inside)
        if n not in (1, size):
            rest = (*update.shape[:axis], size - n, *update.shape[axis + 1 :])
            update = e.concatenate([update, e.constant(0, update.dtype, rest)], axis)
        if n != 1:
            update = e.rotate(update, _modulo(e, start, size), axis)
    update = e.broadcast(update, x.shape)
    if mask is None:
        return update
    return e.from_words(e.select(mask, e.words(update), e.words(x)), x.dtype)


@lax.dynamic_slice_p.rule(mosaic)
def _dynamic_slice(
    ctx: Context, x: Value, *starts: Value, slice_sizes: Sequence[int], **_: Any
) -> Value:
    e = ctx.emitter
    for axis, (start, n) in enumerate(zip(starts, slice_sizes)):
        size = x.shape[axis]
        if n != size:
            x = dynamic_part(e, x, e.clamp(as_index(e, start), 0, size - n), n, axis)
    return x


@lax.dynamic_update_slice_p.rule(mosaic)
def _dynamic_update_slice(ctx: Context, x: Value, update: Value, *starts: Value, **_: Any) -> Value:
    e = ctx.emitter
    clamped = [
        e.clamp(as_index(e, s), 0, n - k) for s, n, k in zip(starts, x.shape, update.shape)
    ]  # fmt: skip
    return placed(e, x, update, clamped)


@lax.concatenate_p.rule(mosaic)
def _concatenate(ctx: Context, *parts: Value, dimension: int, **_: Any) -> Value:
    return ctx.emitter.concatenate([x for x in parts if x.shape[dimension]], dimension)


@lax.pad_p.rule(mosaic)
def _pad(ctx: Context, x: Value, value: Value, *, padding_config: Any, **_: Any) -> Value:
    e = ctx.emitter
    for axis, (low, high, interior) in enumerate(padding_config):
        if interior:
            raise ctx.error("pad adds elements between elements: do this before the kernel")
        n = x.shape[axis]
        first, last = max(-int(low), 0), n - max(-int(high), 0)
        sizes = (*x.shape[:axis], last - first, *x.shape[axis + 1 :])
        parts = [e.part(x, _at(axis, first, len(sizes)), sizes)]
        for count, place in ((int(low), 0), (int(high), 1)):
            if count > 0:
                shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
                parts.insert(place * len(parts), e.broadcast(value, shape))
        x = e.concatenate(parts, axis)
    return x


@lax.split_p.rule(mosaic)
def _split(ctx: Context, x: Value, *, sizes: Sequence[int], axis: int, **_: Any) -> list[Value]:
    start, parts = 0, []
    for n in sizes:
        shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
        parts.append(ctx.emitter.part(x, _at(axis, start, len(shape)), shape))
        start += n
    return parts


@lax.rev_p.rule(mosaic)
def _reverse(ctx: Context, x: Value, *, dimensions: Sequence[int], **_: Any) -> Value:
    e = ctx.emitter
    for axis in dimensions:
        n = x.shape[axis]
        if n > MAX_PIECES:
            raise ctx.error(
                f"rev of {n} elements along axis {axis}; at most {MAX_PIECES} are joined: use an "
                "index map that counts backwards, or reverse the operand before the kernel"
            )
        sizes = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        pieces = [e.part(x, _at(axis, n - 1 - i, len(sizes)), sizes) for i in range(n)]
        x = e.concatenate(pieces, axis)
    return x


_READ = "read the elements in a loop, each at a scalar position"
REWRITES.update({
    "gather": _READ,
    "scatter": "write the elements in a loop, each at a scalar position",
    "scatter-add": "compare positions with iota, and sum the selected elements",
    "sort": "sort before or after the kernel",
    "top_k": "take argmax repeatedly, or select before or after the kernel",
    "reduce_window": "read shifted blocks and combine them",
    "tile": "broadcast along a new axis, or concatenate",
})  # fmt: skip
