"""Rules of reductions and cumulative operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax

from . import types
from .conversion import convert
from .emitter import Emitter
from .registry import Context, triton
from .types import BOOL, FLOAT32, INT32, is_unsigned
from .values import Value

Combine = Callable[[Emitter, Value, Value], Value]


def _op(floats: str | None, integers: str, unsigned: str | None = None) -> Combine:
    def combine(e: Emitter, x: Value, y: Value) -> Value:
        if x.is_float:
            assert floats is not None
            return e.binary(floats, x, y)
        return e.binary(unsigned if unsigned and is_unsigned(x.dtype) else integers, x, y)

    return combine


def _log_of_sum(e: Emitter, x: Value, y: Value) -> Value:
    """``log(exp(x) + exp(y))``; two infinities of one sign are their sum."""
    largest = e.binary("arith.maximumf", x, y)
    infinite = e.compare("eq", x, y)
    terms = [e.unary("math.exp", e.subtract(v, largest)) for v in (x, y)]
    total = e.add(largest, e.unary("math.log", e.add(*terms)))
    limit = e.constant(np.inf, x.dtype)
    is_limit = e.compare("eq", e.unary("math.absf", x), limit)
    return e.select(e.binary("arith.andi", infinite, is_limit), x, total)


_SUM: Final = _op("arith.addf", "arith.addi")
_PRODUCT: Final = _op("arith.mulf", "arith.muli")
_MAXIMUM: Final = _op("arith.maximumf", "arith.maxsi", "arith.maxui")
_MINIMUM: Final = _op("arith.minimumf", "arith.minsi", "arith.minui")

_REDUCTIONS: Final[dict[str, tuple[Combine, Callable[[Any], Any]]]] = {
    "reduce_sum": (_SUM, lambda dtype: 0),
    "reduce_prod": (_PRODUCT, lambda dtype: 1),
    "reduce_max": (_MAXIMUM, types.lowest),
    "reduce_min": (_MINIMUM, types.highest),
    "reduce_and": (_op(None, "arith.andi"), lambda dtype: True if dtype == BOOL else -1),
    "reduce_or": (_op(None, "arith.ori"), lambda dtype: 0),
    "reduce_xor": (_op(None, "arith.xori"), lambda dtype: 0),
}
"""Operation and neutral element of each reduction."""

_SCANS: Final[dict[str, tuple[Combine, Callable[[Any], Any]]]] = {
    "cumsum": (_SUM, lambda dtype: 0),
    "cumprod": (_PRODUCT, lambda dtype: 1),
    "cummax": (_MAXIMUM, types.lowest),
    "cummin": (_MINIMUM, types.highest),
    "cumlogsumexp": (_log_of_sum, types.lowest),
}


def _wide(e: Emitter, x: Value) -> Value:
    """Floats of at least 32 bits: sums of many small ones are rounded once."""
    return convert(e, x, FLOAT32) if x.is_float and types.bits(x.dtype) < 32 else x


def _arguments(e: Emitter, values: Sequence[Value]) -> tuple[list[Value], list[Value]]:
    """Scalars that a region combines: those so far, and the next ones."""
    lefts = [Value(e.name(), x.dtype) for x in values]
    rights = [Value(e.name(), x.dtype) for x in values]
    listed = ", ".join(f"{x.name}: {x.element}" for x in (*lefts, *rights))
    e.line(f"^bb0({listed}):")
    return lefts, rights


def _combined(
    e: Emitter, op: str, attributes: str, values: Sequence[Value], shape: tuple[int, ...],
    combine: Callable[[list[Value], list[Value]], list[Value]],
) -> list[Value]:  # fmt: skip
    """The results of ``tt.reduce`` or ``tt.scan``."""
    name, n = e.name(), len(values)
    results = [
        Value(f"{name}#{i}" if n > 1 else name, x.dtype, shape) for i, x in enumerate(values)
    ]
    operands = ", ".join(x.name for x in values)
    left = name if n == 1 else f"{name}:{n}"
    e.line(f'{left} = "{op}"({operands}) <{{{attributes}}}> ({{')
    with e.region():
        lefts, rights = _arguments(e, values)
        outs = combine(lefts, rights)
        names, kinds = ", ".join(x.name for x in outs), ", ".join(x.element for x in outs)
        e.line(f"{op}.return {names} : {kinds}")
    taken, returned = (", ".join(x.type for x in vs) for vs in (values, results))
    e.line(f"}}) : ({taken}) -> {returned if n == 1 else f'({returned})'}")
    return results


def reduce_axis(e: Emitter, x: Value, axis: int, combine: Combine, neutral: Any) -> Value:
    """A value combined along an axis."""
    x = e.filled(x, [axis], neutral)
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    attributes = f"axis = {axis} : i32"
    (result,) = _combined(
        e, "tt.reduce", attributes, [x], shape, lambda a, b: [combine(e, a[0], b[0])]
    )
    return result


def sum_along(e: Emitter, x: Value, axis: int) -> Value:
    """The sum along an axis."""
    return reduce_axis(e, x, axis, _SUM, 0)


def _reduction(name: str) -> Any:
    combine, neutral = _REDUCTIONS[name]

    def rule(ctx: Context, x: Value, *, axes: Sequence[int], **_: Any) -> Value:
        e = ctx.emitter
        x = _wide(e, x)
        for axis in sorted(axes, reverse=True):
            x = reduce_axis(e, x, axis, combine, neutral(x.dtype))
        return convert(e, x, ctx.out_aval.dtype)

    return rule


def _scan(name: str) -> Any:
    combine, neutral = _SCANS[name]

    def rule(ctx: Context, x: Value, *, axis: int, reverse: bool, **_: Any) -> Value:
        e = ctx.emitter
        x = _wide(e, x)
        if reverse:
            x = e.filled(x, [axis], neutral(x.dtype))
        attributes = f"axis = {axis} : i32, reverse = {str(bool(reverse)).lower()}"
        (result,) = _combined(
            e, "tt.scan", attributes, [x], x.shape, lambda a, b: [combine(e, a[0], b[0])]
        )
        return convert(e, result, ctx.out_aval.dtype)

    return rule


for _name in _REDUCTIONS:
    getattr(lax, f"{_name}_p").rule(triton)(_reduction(_name))
for _name in _SCANS:
    getattr(lax, f"{_name}_p").rule(triton)(_scan(_name))


def _position_of(predicate: str, neutral: Callable[[Any], Any]) -> Any:
    """Rule of ``argmax`` and ``argmin``: the first position, or that of the first NaN."""

    def preferred(e: Emitter, a: list[Value], b: list[Value]) -> list[Value]:
        (x, i), (y, j) = a, b
        better, equal = e.compare(predicate, x, y), e.compare("eq", x, y)
        if x.is_float:
            x_nan, y_nan = e.compare("ne", x, x), e.compare("ne", y, y)
            only = e.binary("arith.andi", x_nan, e.compare("eq", y, y))
            better = e.binary("arith.ori", better, only)
            equal = e.binary("arith.ori", equal, e.binary("arith.andi", x_nan, y_nan))
        first = e.binary("arith.andi", equal, e.compare("lt", i, j))
        left = e.binary("arith.ori", better, first)
        return [e.select(left, x, y), e.select(left, i, j)]

    def rule(ctx: Context, x: Value, *, axes: Sequence[int], index_dtype: Any, **_: Any) -> Value:
        e = ctx.emitter
        (axis,) = axes
        x = _wide(e, x)
        x = convert(e, x, INT32) if x.dtype == BOOL else x
        x = e.filled(x, [axis], neutral(x.dtype))
        where = e.broadcast(e.positions(x.shape, axis), x.shape)
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        results = _combined(
            e, "tt.reduce", f"axis = {axis} : i32", [x, where], shape,
            lambda a, b: preferred(e, a, b),
        )  # fmt: skip
        return convert(e, results[1], index_dtype)

    return rule


lax.argmax_p.rule(triton)(_position_of("gt", types.lowest))
lax.argmin_p.rule(triton)(_position_of("lt", types.highest))
