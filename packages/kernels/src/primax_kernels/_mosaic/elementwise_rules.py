"""Rules of operations on elements.

Elements of less than 32 bits are computed with 32 bits. Functions that the TPU's compiler does not
have are composed of those that it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import add_any_p

from .._emission.elements import bits, is_unsigned
from .._emission.precision import SMALLER_EXPONENT, rounding
from .._gpu_operations import approx_tanh_p, max_contiguous_p, multiple_of_p
from .conversion import convert
from .emitter import Emitter
from .registry import REWRITES, Context, mosaic
from .types import BOOL, FLOAT32, INT32
from .values import Value

Rule = Callable[..., Value]


def _computed(fun: Rule) -> Rule:
    """A rule on elements of 32 bits, whose result has the dtype of the equation."""

    def rule(ctx: Context, *values: Value, **params: Any) -> Value:
        wide = [ctx.emitter.words(x) for x in values]
        result = fun(ctx, *wide, **params)
        dtype = np.dtype(ctx.out_aval.dtype)
        if result.dtype == dtype:
            return result
        if dtype != BOOL and bits(dtype) == 32 and not result.is_float:
            return Value(result.name, dtype, result.shape, result.bounds, result.multiple)
        return ctx.emitter.from_words(result, dtype)

    return rule


def _constant(e: Emitter, value: Any, like: Value) -> Value:
    return e.constant(value, like.dtype, like.shape)


# Arithmetic


@_computed
def _sum(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
    return ctx.emitter.add(x, y)


@_computed
def _product(ctx: Context, x: Value, y: Value, *, out_dtype: Any = None, **_: Any) -> Value:
    e = ctx.emitter
    if out_dtype is not None:
        x, y = (e.words(convert(e, v, out_dtype)) for v in (x, y))
    return e.multiply(x, y)


lax.add_p.rule(mosaic)(_sum)
add_any_p.rule(mosaic)(_sum)
lax.sub_p.rule(mosaic)(_computed(lambda ctx, x, y, **_: ctx.emitter.subtract(x, y)))
lax.mul_p.rule(mosaic)(_product)
lax.square_p.rule(mosaic)(_computed(lambda ctx, x, **_: ctx.emitter.multiply(x, x)))


def _division(remainder: bool) -> Rule:
    def rule(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
        if x.is_float:
            return ctx.emitter.binary("arith.remf" if remainder else "arith.divf", x, y)
        return _integer_division(ctx.emitter, x, y, remainder)

    return rule


lax.div_p.rule(mosaic)(_computed(_division(remainder=False)))
lax.rem_p.rule(mosaic)(_computed(_division(remainder=True)))


def _integer_division(e: Emitter, x: Value, y: Value, remainder: bool) -> Value:
    """Division of integers; by 0 the quotient is -1 and the remainder ``x``, as in XLA."""
    op = ("arith.rem" if remainder else "arith.div") + ("ui" if is_unsigned(x.dtype) else "si")
    if x.bounds and y.bounds and x.bounds[0] >= 0 and y.bounds[0] > 0:
        low, high = x.bounds[0] // y.bounds[1], x.bounds[1] // y.bounds[0]
        bounds = (0, min(y.bounds[1] - 1, x.bounds[1])) if remainder else (low, high)
        return e.binary(op, x, y, bounds)
    if y.bounds is not None and (y.bounds[0] > 0 or y.bounds[1] < -1):
        return e.binary(op, x, y)
    x, y = e.together(x, y)
    one, zero = _constant(e, 1, y), _constant(e, 0, y)
    by_zero = e.compare("eq", y, zero)
    all_ones = np.iinfo(x.dtype).max if is_unsigned(x.dtype) else -1
    special = x if remainder else _constant(e, all_ones, x)
    unusual = by_zero
    if not is_unsigned(x.dtype):
        # The least integer divided by -1 overflows: its quotient is itself, the remainder 0.
        by_minus = e.compare("eq", y, _constant(e, -1, y))
        negated = zero if remainder else e.subtract(zero, x)
        special = e.select(by_zero, special, negated)
        unusual = e.binary("arith.ori", by_zero, by_minus)
    return e.select(unusual, special, e.binary(op, x, e.select(unusual, one, y)))


def extreme(e: Emitter, x: Value, y: Value, name: str) -> Value:
    """The ``maximum`` or ``minimum`` of elements of 32 bits; NaN if one of them is."""
    if x.is_float:
        return e.binary(f"arith.{name}f", x, y)
    return e.minimum(x, y) if name == "minimum" else e.maximum(x, y)


lax.max_p.rule(mosaic)(_computed(lambda ctx, x, y, **_: extreme(ctx.emitter, x, y, "maximum")))
lax.min_p.rule(mosaic)(_computed(lambda ctx, x, y, **_: extreme(ctx.emitter, x, y, "minimum")))


@lax.clamp_p.rule(mosaic)
@_computed
def _clamp(ctx: Context, low: Value, x: Value, high: Value, **_: Any) -> Value:
    return extreme(ctx.emitter, extreme(ctx.emitter, x, low, "maximum"), high, "minimum")


@lax.neg_p.rule(mosaic)
@_computed
def _negative(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    return e.unary("arith.negf", x) if x.is_float else e.subtract(_constant(e, 0, x), x)


@lax.abs_p.rule(mosaic)
@_computed
def _absolute(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    if x.is_float:
        return e.unary("math.absf", x)
    return x if is_unsigned(x.dtype) else e.maximum(x, e.subtract(_constant(e, 0, x), x))


@lax.sign_p.rule(mosaic)
@_computed
def _sign(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    zero, one = _constant(e, 0, x), _constant(e, 1, x)
    result = e.select(e.compare("gt", x, zero), one, x)  # NaN and zeros are their own sign
    if not is_unsigned(x.dtype):
        result = e.select(e.compare("lt", x, zero), _constant(e, -1, x), result)
    return result


@lax.one_minus_square_p.rule(mosaic)
@_computed
def _one_minus_square(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    one = _constant(e, 1, x)
    return e.multiply(e.add(one, x), e.subtract(one, x))


@lax.integer_pow_p.rule(mosaic)
@_computed
def _integer_power(ctx: Context, x: Value, *, y: int, **_: Any) -> Value:
    e = ctx.emitter
    result, n, base = None, abs(y), x
    while n:
        if n & 1:
            result = base if result is None else e.multiply(result, base)
        n >>= 1
        base = e.multiply(base, base) if n else base
    if result is None:
        return _constant(e, 1, x)
    return e.binary("arith.divf", _constant(e, 1, result), result) if y < 0 else result


@lax.is_finite_p.rule(mosaic)
def _is_finite(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    x = e.words(x)
    return e.compare("lt", e.unary("math.absf", x), _constant(e, np.inf, x))


@lax.round_p.rule(mosaic)
@_computed
def _round(ctx: Context, x: Value, *, rounding_method: Any, **_: Any) -> Value:
    to_even = int(getattr(rounding_method, "value", rounding_method)) == 1
    return ctx.emitter.unary("math.roundeven" if to_even else "math.round", x)


# Functions

_NATIVE: Final = {
    "exp": "math.exp", "exp2": "math.exp2", "log": "math.log", "log2": "math.log2",
    "log1p": "math.log1p", "sin": "math.sin", "cos": "math.cos", "tan": "math.tan",
    "tanh": "math.tanh", "sqrt": "math.sqrt", "rsqrt": "math.rsqrt", "erf": "math.erf",
    "floor": "math.floor", "ceil": "math.ceil",
}  # fmt: skip
"""Functions that Mosaic has itself."""


def _native(op: str) -> Rule:
    return lambda ctx, x, **_: ctx.emitter.unary(op, x)


for _name, _op in _NATIVE.items():
    getattr(lax, f"{_name}_p").rule(mosaic)(_computed(_native(_op)))
approx_tanh_p.rule(mosaic)(_computed(_native("math.tanh")))


def on_vectors(e: Emitter, fun: Callable[..., Value], *values: Value) -> Value:
    """An operation that exists for vectors only, also on scalars."""
    if values[0].shape:
        return fun(*values)
    result = fun(*(e.broadcast(x, (1, 1)) for x in values))
    return e.reshape(result, ())


@lax.pow_p.rule(mosaic)
@_computed
def _power(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
    e = ctx.emitter
    x, y = e.together(x, convert(e, y, FLOAT32))
    return on_vectors(e, lambda a, b: e.binary("math.powf", a, b), x, y)


lax.atan2_p.rule(mosaic)(_computed(lambda ctx, x, y, **_: ctx.emitter.binary("math.atan2", x, y)))


@lax.logistic_p.rule(mosaic)
@_computed
def _logistic(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    one = _constant(e, 1, x)
    below = e.unary("math.exp", e.unary("arith.negf", x))
    return e.binary("arith.divf", one, e.add(one, below))


def _exponential_minus_one(e: Emitter, x: Value) -> Value:
    """``exp(x) - 1``: ``2 tanh(x / 2) / (1 - tanh(x / 2))`` where the difference cancels."""
    half = e.multiply(x, _constant(e, 0.5, x))
    t = e.unary("math.tanh", half)
    near = e.binary("arith.divf", e.add(t, t), e.subtract(_constant(e, 1, x), t))
    far = e.subtract(e.unary("math.exp", x), _constant(e, 1, x))
    size = e.unary("math.absf", x)
    is_near = e.compare("lt", size, _constant(e, 0.5, x))
    tiny = e.compare("lt", size, _constant(e, 1e-4, x))
    series = e.add(x, e.multiply(half, x))
    return e.select(tiny, series, e.select(is_near, near, far))


lax.expm1_p.rule(mosaic)(_computed(lambda ctx, x, **_: _exponential_minus_one(ctx.emitter, x)))


@lax.sinh_p.rule(mosaic)
@_computed
def _sinh(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    below = _exponential_minus_one(e, e.unary("arith.negf", x))
    return e.multiply(e.subtract(_exponential_minus_one(e, x), below), _constant(e, 0.5, x))


@lax.cosh_p.rule(mosaic)
@_computed
def _cosh(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    pair = e.unary("math.exp", x), e.unary("math.exp", e.unary("arith.negf", x))
    return e.multiply(e.add(*pair), _constant(e, 0.5, x))


@lax.atan_p.rule(mosaic)
@_computed
def _atan(ctx: Context, x: Value, **_: Any) -> Value:
    return ctx.emitter.binary("math.atan2", x, _constant(ctx.emitter, 1, x))


@lax.cbrt_p.rule(mosaic)
@_computed
def _cbrt(ctx: Context, x: Value, **_: Any) -> Value:
    """A power, improved by a step of Newton's iteration."""
    e = ctx.emitter
    size = e.unary("math.absf", x)
    third = _constant(e, 1 / 3, x)
    root = e.unary("math.exp", e.multiply(e.unary("math.log", size), third))
    square = e.multiply(root, root)
    root = e.subtract(
        root, e.multiply(third, e.subtract(root, e.binary("arith.divf", size, square)))
    )
    root = e.select(e.compare("lt", x, _constant(e, 0, x)), e.unary("arith.negf", root), root)
    regular = e.compare("lt", _constant(e, 0, x), size)
    finite = e.compare("lt", size, _constant(e, np.inf, x))
    return e.select(e.binary("arith.andi", regular, finite), root, x)


REWRITES.update({
    "erfc": "use 1 - erf(x) where x is small, or compute it before the kernel",
    "nextafter": "change the bits of the number, with bitcast_convert_type",
})  # fmt: skip


# Comparisons, selection, bits


def _comparison(predicate: str) -> Rule:
    def rule(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
        e = ctx.emitter
        if x.dtype == BOOL and predicate in ("eq", "ne"):
            x, y = e.together(x, y)
            differ = e.binary("arith.xori", x, y)
            return differ if predicate == "ne" else _inverse(e, differ)
        return e.compare(predicate, e.words(x), e.words(y))

    return rule


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    getattr(lax, f"{_name}_p").rule(mosaic)(_comparison(_name))


@lax.select_n_p.rule(mosaic)
def _select(ctx: Context, which: Value, *cases: Value, **_: Any) -> Value:
    e = ctx.emitter
    wide = [e.words(x) for x in cases]
    if which.dtype == BOOL:
        result = e.select(which, wide[-1], wide[0])
    else:
        result = wide[-1]
        which = e.words(which)
        for i in reversed(range(len(wide) - 1)):
            result = e.select(e.compare("le", which, _constant(e, i, which)), wide[i], result)
    result = e.broadcast(result, ctx.out_aval.shape)
    return e.from_words(result, ctx.out_aval.dtype)


def _bitwise(op: str) -> Rule:
    def rule(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
        e = ctx.emitter
        if x.dtype == BOOL:
            return e.binary(op, x, y)
        return e.from_words(e.binary(op, e.words(x), e.words(y)), x.dtype)

    return rule


for _name, _op in (("and", "arith.andi"), ("or", "arith.ori"), ("xor", "arith.xori")):
    getattr(lax, f"{_name}_p").rule(mosaic)(_bitwise(_op))


def _inverse(e: Emitter, x: Value) -> Value:
    return e.binary("arith.xori", x, _constant(e, True, x))


@lax.not_p.rule(mosaic)
def _not(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    if x.dtype == BOOL:
        return _inverse(e, x)
    wide = e.words(x)
    ones = np.iinfo(wide.dtype).max if is_unsigned(wide.dtype) else -1
    return e.from_words(e.binary("arith.xori", wide, _constant(e, ones, wide)), x.dtype)


def _shift(op: str, keeps_sign: bool = False) -> Rule:
    def rule(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
        e = ctx.emitter
        n = bits(ctx.out_aval.dtype)
        x, y = e.together(x, y)
        if op == "arith.shrui" and n < 32:  # the sign has no copies
            x = e.binary("arith.andi", x, _constant(e, 2**n - 1, x))
        if y.bounds is not None and 0 <= y.bounds[0] and y.bounds[1] < n:
            return e.binary(op, x, y)
        # Amounts as large as the integer, which hardware takes modulo, shift everything out.
        unsigned = Value(y.name, np.dtype(np.uint32), y.shape)
        fits = e.compare("lt", unsigned, _constant(e, n, unsigned))
        amount = e.select(fits, y, _constant(e, n - 1 if keeps_sign else 0, y))
        shifted = e.binary(op, x, amount)
        return shifted if keeps_sign else e.select(fits, shifted, _constant(e, 0, x))

    return rule


lax.shift_left_p.rule(mosaic)(_computed(_shift("arith.shli")))
lax.shift_right_logical_p.rule(mosaic)(_computed(_shift("arith.shrui")))
lax.shift_right_arithmetic_p.rule(mosaic)(_computed(_shift("arith.shrsi", keeps_sign=True)))


def _counted(op: str) -> Rule:
    def rule(ctx: Context, x: Value, **_: Any) -> Value:
        e = ctx.emitter
        n = bits(ctx.out_aval.dtype)
        if n < 32:
            x = e.binary("arith.andi", x, _constant(e, 2**n - 1, x))
        count = on_vectors(e, lambda v: e.unary(op, v), x)
        if op == "math.ctlz" and n < 32:
            count = e.subtract(count, _constant(e, 32 - n, count))
        return count

    return rule


lax.population_count_p.rule(mosaic)(_computed(_counted("math.ctpop")))
lax.clz_p.rule(mosaic)(_computed(_counted("math.ctlz")))


@lax.convert_element_type_p.rule(mosaic)
def _convert(ctx: Context, x: Value, *, new_dtype: Any, **_: Any) -> Value:
    return convert(ctx.emitter, x, new_dtype)


@lax.bitcast_convert_type_p.rule(mosaic)
def _bitcast(ctx: Context, x: Value, *, new_dtype: Any, **_: Any) -> Value:
    e = ctx.emitter
    dtype = np.dtype(new_dtype)
    if bits(dtype) != bits(x.dtype) or BOOL in (x.dtype, dtype):
        raise ctx.error(
            f"bitcast_convert_type from {x.dtype.name} to {dtype.name}: both must have the same "
            "number of bits"
        )
    to = Value("", dtype, x.shape)
    if to.element == x.element:
        return Value(x.name, dtype, x.shape)
    if not x.shape and bits(dtype) == 32:
        return e.op(f"arith.bitcast {x.name} : {x.type} to {to.type}", dtype)
    return on_vectors(
        e,
        lambda v: e.op(
            f"tpu.bitcast {v.name} : {v.type} -> {Value('', dtype, v.shape).type}", dtype, v.shape
        ),
        x,
    )


def _identity(ctx: Context, x: Value, **_: Any) -> Value:
    return x


for _name in ("stop_gradient", "name"):
    if (_prim := getattr(lax, f"{_name}_p", None)) is not None:
        _prim.rule(mosaic)(_identity)
max_contiguous_p.rule(mosaic)(_identity)


@multiple_of_p.rule(mosaic)
def _multiple_of(ctx: Context, x: Value, *, values: tuple[int, ...]) -> Value:
    if x.shape or x.known is not None or x.divisible(values[0]) or x.dtype != INT32:
        return x
    n = math.lcm(values[0], x.multiple)
    text = f"tpu.assume_multiple {x.name}, {n} : {x.type}"
    return ctx.emitter.op(text, x.dtype, (), x.bounds, multiple=n)


@lax.reduce_precision_p.rule(mosaic)
def _reduce_precision(ctx: Context, x: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    jaxpr = rounding(ctx.in_avals[0], exponent_bits, mantissa_bits)
    if jaxpr is None:
        raise ctx.error(
            f"reduce_precision with {exponent_bits} bits of exponents; {SMALLER_EXPONENT}"
        )
    return ctx.lower(jaxpr, [x])[0]
