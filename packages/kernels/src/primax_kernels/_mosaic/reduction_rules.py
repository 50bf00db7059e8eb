"""Rules of reductions and cumulative operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax

from .._emission.elements import bits, highest, is_unsigned, lowest
from .conversion import convert
from .elementwise_rules import extreme
from .emitter import Emitter
from .registry import REWRITES, Context, mosaic
from .types import BOOL, FLOAT32, INT32
from .values import Value

Combine = Callable[[Emitter, Value, Value], Value]

_SIGN: Final = 1 << 31


def reduced(e: Emitter, kind: str, x: Value, axes: Sequence[int], neutral: Any) -> Value:
    """The reduction of elements of 32 bits, signed or floats, by an operation that Mosaic has.

    Args:
      kind: ``add``, ``maximumf``, ``minimumf``, ``maxsi`` or ``minsi``.
      neutral: the neutral element.
    """
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    if all(x.shape[a] == 1 for a in axes):
        return e.reshape(x, shape)
    start = e.constant(neutral, x.dtype, shape)
    to = start.type
    listed = sorted(int(a) for a in axes)
    text = f"vector.multi_reduction <{kind}>, {x.name}, {start.name} {listed} : {x.type} to {to}"
    return e.op(text, x.dtype, shape)


def summed(e: Emitter, x: Value, axes: Sequence[int]) -> Value:
    """The sum of elements of 32 bits."""
    return reduced(e, "add", x, axes, 0)


@lax.reduce_sum_p.rule(mosaic)
def _sum(ctx: Context, x: Value, *, axes: Sequence[int], **_: Any) -> Value:
    e = ctx.emitter
    return _narrow(e, summed(e, e.words(x), axes), ctx.out_aval.dtype)


def _narrow(e: Emitter, x: Value, dtype: Any) -> Value:
    dtype = np.dtype(dtype)
    if dtype != BOOL and bits(dtype) == 32:
        return Value(x.name, dtype, x.shape)
    return e.from_words(x, dtype)


def _extreme(name: str) -> Callable[..., Value]:
    def rule(ctx: Context, x: Value, *, axes: Sequence[int], **_: Any) -> Value:
        return largest(ctx.emitter, x, axes, name)

    return rule


def largest(e: Emitter, x: Value, axes: Sequence[int], name: str = "max") -> Value:
    """The ``max`` or ``min`` along axes; NaN if an element is."""
    wide = e.words(x)
    if wide.is_float:
        neutral = (lowest if name == "max" else highest)(FLOAT32)
        result = reduced(e, f"{name}imumf", wide, axes, neutral)
        # Mosaic's reductions may drop NaN.
        missing = e.words(e.compare("ne", wide, wide))
        count = reduced(e, "maxsi", missing, axes, 0)
        some = e.compare("ne", count, e.constant(0, INT32, count.shape))
        result = e.select(some, e.constant(np.nan, FLOAT32, result.shape), result)
        return e.from_words(result, x.dtype)
    unsigned = bits(x.dtype) == 32 and is_unsigned(x.dtype)
    signed = Value(wide.name, INT32, wide.shape)
    if unsigned:  # the order of unsigned integers is that of signed ones with the other sign
        signed = e.binary("arith.xori", signed, e.constant(-_SIGN, INT32, signed.shape))
    neutral = (lowest if name == "max" else highest)(INT32)
    result = reduced(e, f"{name}si", signed, axes, neutral)
    if unsigned:
        result = e.binary("arith.xori", result, e.constant(-_SIGN, INT32, result.shape))
    return _narrow(e, result, x.dtype)


lax.reduce_max_p.rule(mosaic)(_extreme("max"))
lax.reduce_min_p.rule(mosaic)(_extreme("min"))


def _logical(name: str) -> Callable[..., Value]:
    def rule(ctx: Context, x: Value, *, axes: Sequence[int], **_: Any) -> Value:
        e = ctx.emitter
        if x.dtype == BOOL:
            return largest(e, x, axes, name)
        op = "arith.andi" if name == "min" else "arith.ori"
        return _folded(ctx, x, axes, lambda e_, a, b: e_.binary(op, a, b))

    return rule


lax.reduce_and_p.rule(mosaic)(_logical("min"))
lax.reduce_or_p.rule(mosaic)(_logical("max"))


@lax.reduce_xor_p.rule(mosaic)
def _xor(ctx: Context, x: Value, *, axes: Sequence[int], **_: Any) -> Value:
    return _folded(ctx, x, axes, lambda e, a, b: e.binary("arith.xori", a, b))


@lax.reduce_prod_p.rule(mosaic)
def _product(ctx: Context, x: Value, *, axes: Sequence[int], **_: Any) -> Value:
    return _folded(ctx, x, axes, lambda e, a, b: e.multiply(a, b))


def _folded(ctx: Context, x: Value, axes: Sequence[int], combine: Combine) -> Value:
    """A reduction by halves: each step combines the first half of an axis with the second."""
    e = ctx.emitter
    wide = e.words(x)
    for axis in axes:
        n = wide.shape[axis]
        while n > 1:
            half, rest = n // 2, n % 2
            first = _piece(e, wide, axis, 0, half)
            combined = combine(e, first, _piece(e, wide, axis, half, half))
            tail = [_piece(e, wide, axis, n - 1, 1)] if rest else []
            wide = e.concatenate([combined, *tail], axis)
            n = half + rest
    return _narrow(e, e.reshape(wide, ctx.out_aval.shape), ctx.out_aval.dtype)


def _piece(e: Emitter, x: Value, axis: int, start: int, n: int) -> Value:
    starts = [start if a == axis else 0 for a in range(len(x.shape))]
    return e.part(x, starts, (*x.shape[:axis], n, *x.shape[axis + 1 :]))


def _position(name: str) -> Callable[..., Value]:
    def rule(ctx: Context, x: Value, *, axes: Sequence[int], index_dtype: Any, **_: Any) -> Value:
        """The first position of the extreme element, or of a NaN."""
        e = ctx.emitter
        (axis,) = axes
        best = largest(e, x, axes, name)
        column = tuple(1 if a == axis else n for a, n in enumerate(x.shape))
        best = e.broadcast(e.reshape(e.words(best), column), x.shape)
        wide = e.words(x)
        equal = e.compare("eq", wide, best)
        if wide.is_float:
            equal = e.binary("arith.ori", equal, e.compare("ne", wide, wide))
        beyond = e.constant(x.shape[axis], INT32, x.shape)
        places = e.select(equal, e.positions(x.shape, axis), beyond)
        return convert(e, largest(e, places, axes, "min"), index_dtype)

    return rule


lax.argmax_p.rule(mosaic)(_position("max"))
lax.argmin_p.rule(mosaic)(_position("min"))


def _cumulative(combine: Combine, neutral: Callable[[Any], Any]) -> Callable[..., Value]:
    def rule(ctx: Context, x: Value, *, axis: int, reverse: bool, **_: Any) -> Value:
        """Partial results: each step combines elements that are twice as far apart."""
        e = ctx.emitter
        wide = e.words(x)
        n, distance = x.shape[axis], 1
        while distance < n:
            shape = (*wide.shape[:axis], distance, *wide.shape[axis + 1 :])
            fill = e.constant(neutral(wide.dtype), wide.dtype, shape)
            part = _piece(e, wide, axis, distance if reverse else 0, n - distance)
            moved = e.concatenate([part, fill] if reverse else [fill, part], axis)
            wide = combine(e, wide, moved)
            distance *= 2
        return _narrow(e, wide, ctx.out_aval.dtype)

    return rule


lax.cumsum_p.rule(mosaic)(_cumulative(lambda e, a, b: e.add(a, b), lambda dtype: 0))
lax.cumprod_p.rule(mosaic)(_cumulative(lambda e, a, b: e.multiply(a, b), lambda dtype: 1))
lax.cummax_p.rule(mosaic)(_cumulative(lambda e, a, b: extreme(e, a, b, "maximum"), lowest))
lax.cummin_p.rule(mosaic)(_cumulative(lambda e, a, b: extreme(e, a, b, "minimum"), highest))
REWRITES["cumlogsumexp"] = "subtract the maximum, and take the logarithm of cumsum of exp"
