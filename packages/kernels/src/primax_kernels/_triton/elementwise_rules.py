"""Rules of operations on elements.

Functions of NVIDIA's mathematical library stand for those that Triton does not have. Elements of
less than 32 bits are computed in ``float32``. Division and square roots of ``float32``, and the
exponential, have errors of up to 2 units in the last place, as everywhere in Triton.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import add_any_p

from .._emission.precision import SMALLER_EXPONENT, rounding
from . import types
from .conversion import convert
from .registry import Context, triton
from .types import BOOL, FLOAT32, is_unsigned
from .values import Value


def _wide(ctx: Context, *values: Value) -> tuple[Value, ...]:
    """Floats of at least 32 bits."""
    return tuple(
        convert(ctx.emitter, x, FLOAT32) if x.is_float and types.bits(x.dtype) < 32 else x
        for x in values
    )


def _narrow(ctx: Context, x: Value) -> Value:
    """A result with the dtype of the equation."""
    return convert(ctx.emitter, x, ctx.out_aval.dtype)


# Arithmetic


def _sum(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
    (x, y) = _f8_wide(ctx, x, y)
    return _narrow(ctx, ctx.emitter.add(x, y))


def _difference(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
    (x, y) = _f8_wide(ctx, x, y)
    return _narrow(ctx, ctx.emitter.subtract(x, y))


def _product(ctx: Context, x: Value, y: Value, *, out_dtype: Any = None, **_: Any) -> Value:
    e = ctx.emitter
    if out_dtype is not None:
        x, y = convert(e, x, out_dtype), convert(e, y, out_dtype)
    (x, y) = _f8_wide(ctx, x, y)
    return _narrow(ctx, e.multiply(x, y))


def _f8_wide(ctx: Context, *values: Value) -> tuple[Value, ...]:
    """Floats of more than 8 bits, which have arithmetic."""
    return tuple(convert(ctx.emitter, x, FLOAT32) if types.is_f8(x.dtype) else x for x in values)


lax.add_p.rule(triton)(_sum)
add_any_p.rule(triton)(_sum)
lax.sub_p.rule(triton)(_difference)
lax.mul_p.rule(triton)(_product)


@lax.div_p.rule(triton)
def _quotient(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
    e = ctx.emitter
    if x.is_float:
        x, y = _wide(ctx, x, y)
        return _narrow(ctx, e.binary("arith.divf", x, y))
    return _integer_division(ctx, x, y, remainder=False)


@lax.rem_p.rule(triton)
def _remainder(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
    e = ctx.emitter
    if x.is_float:
        x, y = _wide(ctx, x, y)
        return _narrow(ctx, e.binary("arith.remf", x, y))
    return _integer_division(ctx, x, y, remainder=True)


def _integer_division(ctx: Context, x: Value, y: Value, remainder: bool) -> Value:
    """Division of integers; by 0 the quotient is -1 and the remainder ``x``, as in XLA."""
    e = ctx.emitter
    op = ("arith.rem" if remainder else "arith.div") + ("ui" if is_unsigned(x.dtype) else "si")
    if x.bounds and y.bounds and x.bounds[0] >= 0 and y.bounds[0] > 0:
        low, high = x.bounds[0] // y.bounds[1], x.bounds[1] // y.bounds[0]
        bounds = (0, min(y.bounds[1] - 1, x.bounds[1])) if remainder else (low, high)
        return e.binary(op, x, y, bounds)
    if y.bounds is not None and (y.bounds[0] > 0 or y.bounds[1] < -1):
        return e.binary(op, x, y)
    x, y = e.together(x, y)
    one, zero = e.constant(1, y.dtype, y.shape), e.constant(0, y.dtype, y.shape)
    by_zero = e.compare("eq", y, zero)
    whole = (
        e.constant(-1, x.dtype, x.shape)
        if not is_unsigned(x.dtype)
        else e.constant(np.iinfo(x.dtype).max, x.dtype, x.shape)
    )
    special = x if remainder else whole
    unusual = by_zero
    if not is_unsigned(x.dtype):
        # The least integer divided by -1 overflows: its quotient is itself, the remainder 0.
        by_minus = e.compare("eq", y, e.constant(-1, y.dtype, y.shape))
        negated = zero if remainder else e.subtract(zero, x)
        special = e.select(by_zero, special, negated)
        unusual = e.binary("arith.ori", by_zero, by_minus)
    return e.select(unusual, special, e.binary(op, x, e.select(unusual, one, y)))


@lax.max_p.rule(triton)
def _maximum(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
    return _extreme(ctx, x, y, "maximum")


@lax.min_p.rule(triton)
def _minimum(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
    return _extreme(ctx, x, y, "minimum")


def _extreme(ctx: Context, x: Value, y: Value, name: str) -> Value:
    e = ctx.emitter
    if x.is_float:
        x, y = _f8_wide(ctx, x, y)
        return _narrow(ctx, e.binary(f"arith.{name}f", x, y))
    return getattr(e, name)(x, y)


@lax.clamp_p.rule(triton)
def _clamp(ctx: Context, low: Value, x: Value, high: Value, **_: Any) -> Value:
    return _extreme(ctx, _extreme(ctx, x, low, "maximum"), high, "minimum")


@lax.neg_p.rule(triton)
def _negative(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    if x.is_float:
        (x,) = _f8_wide(ctx, x)
        return _narrow(ctx, e.unary("arith.negf", x))
    return e.subtract(e.constant(0, x.dtype, x.shape), x)


@lax.abs_p.rule(triton)
def _absolute(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    if x.is_float:
        (x,) = _wide(ctx, x)
        return _narrow(ctx, e.unary("math.absf", x))
    if is_unsigned(x.dtype):
        return x
    return e.maximum(x, e.subtract(e.constant(0, x.dtype, x.shape), x))


@lax.sign_p.rule(triton)
def _sign(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    (x,) = _wide(ctx, x)
    zero, one = e.constant(0, x.dtype, x.shape), e.constant(1, x.dtype, x.shape)
    result = e.select(e.compare("gt", x, zero), one, x)  # NaN and zeros are their own sign
    if not is_unsigned(x.dtype):
        result = e.select(e.compare("lt", x, zero), e.constant(-1, x.dtype, x.shape), result)
    return _narrow(ctx, result)


@lax.square_p.rule(triton)
def _square(ctx: Context, x: Value, **_: Any) -> Value:
    return _product(ctx, x, x)


@lax.one_minus_square_p.rule(triton)
def _one_minus_square(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    (wide,) = _wide(ctx, x)
    one = e.constant(1, wide.dtype, wide.shape)
    return _narrow(ctx, e.multiply(e.add(one, wide), e.subtract(one, wide)))


@lax.integer_pow_p.rule(triton)
def _integer_power(ctx: Context, x: Value, *, y: int, **_: Any) -> Value:
    e = ctx.emitter
    (base,) = _wide(ctx, x)
    result, n = None, abs(y)
    while n:
        if n & 1:
            result = base if result is None else e.multiply(result, base)
        n >>= 1
        base = e.multiply(base, base) if n else base
    if result is None:
        return e.constant(1, x.dtype, x.shape)
    if y < 0:
        result = e.binary("arith.divf", e.constant(1, result.dtype, result.shape), result)
    return _narrow(ctx, result)


@lax.is_finite_p.rule(triton)
def _is_finite(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    (x,) = _wide(ctx, x)
    return e.compare("lt", e.unary("math.absf", x), e.constant(np.inf, x.dtype, x.shape))


@lax.round_p.rule(triton)
def _round(ctx: Context, x: Value, *, rounding_method: Any, **_: Any) -> Value:
    to_even = int(getattr(rounding_method, "value", rounding_method)) == 1
    (x,) = _wide(ctx, x)
    name = "rint" if to_even else "round"
    return _narrow(ctx, ctx.emitter.external(_symbol(name, x), x))


# Functions

_NATIVE: Final = {
    "exp": "math.exp", "exp2": "math.exp2", "log": "math.log", "log2": "math.log2",
    "sin": "math.sin", "cos": "math.cos", "sqrt": "math.sqrt", "rsqrt": "math.rsqrt",
    "erf": "math.erf", "floor": "math.floor", "ceil": "math.ceil",
}  # fmt: skip
"""Operations that Triton has itself."""

_EXTERNAL: Final = {
    "tan": "tan", "tanh": "tanh", "sinh": "sinh", "cosh": "cosh", "asin": "asin", "acos": "acos",
    "atan": "atan", "atan2": "atan2", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
    "expm1": "expm1", "log1p": "log1p", "cbrt": "cbrt", "erfc": "erfc", "erf_inv": "erfinv",
    "nextafter": "nextafter",
}  # fmt: skip
"""Functions of the library."""


def _symbol(name: str, x: Value) -> str:
    return f"__nv_{name}" if types.bits(x.dtype) == 64 else f"__nv_{name}f"


def _native(op: str) -> Any:
    def rule(ctx: Context, x: Value, **_: Any) -> Value:
        (x,) = _wide(ctx, x)
        return _narrow(ctx, ctx.emitter.unary(op, x))

    return rule


def _external(name: str) -> Any:
    def rule(ctx: Context, *values: Value, **_: Any) -> Value:
        values = _wide(ctx, *values)
        if len(values) == 2:
            values = ctx.emitter.together(*values)
        if name == "nextafter" and ctx.out_aval.dtype != values[0].dtype:
            raise ctx.error("nextafter is computed for float32 and float64 only; convert before it")
        return _narrow(ctx, ctx.emitter.external(_symbol(name, values[0]), *values))

    return rule


for _name, _op in _NATIVE.items():
    getattr(lax, f"{_name}_p").rule(triton)(_native(_op))
for _name, _function in _EXTERNAL.items():
    getattr(lax, f"{_name}_p").rule(triton)(_external(_function))


@lax.logistic_p.rule(triton)
def _logistic(ctx: Context, x: Value, **_: Any) -> Value:
    e = ctx.emitter
    (x,) = _wide(ctx, x)
    one = e.constant(1, x.dtype, x.shape)
    below = e.unary("math.exp", e.unary("arith.negf", x))
    return _narrow(ctx, e.binary("arith.divf", one, e.add(one, below)))


@lax.pow_p.rule(triton)
def _power(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
    e = ctx.emitter
    (x,) = _wide(ctx, x)
    x, y = e.together(x, convert(e, y, x.dtype))
    return _narrow(ctx, e.external(_symbol("pow", x), x, y))


# Comparisons, selection, bits


def _comparison(predicate: str) -> Any:
    def rule(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
        x, y = _f8_wide(ctx, x, y)
        return ctx.emitter.compare(predicate, x, y)

    return rule


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    getattr(lax, f"{_name}_p").rule(triton)(_comparison(_name))


@lax.select_n_p.rule(triton)
def _select(ctx: Context, which: Value, *cases: Value, **_: Any) -> Value:
    e = ctx.emitter
    if which.dtype == BOOL:
        result = e.select(which, cases[-1], cases[0])
    else:
        result = cases[-1]
        for i in reversed(range(len(cases) - 1)):
            chosen = e.compare("le", which, e.constant(i, which.dtype, which.shape))
            result = e.select(chosen, cases[i], result)
    return e.broadcast(result, ctx.out_aval.shape)


def _bitwise(op: str) -> Any:
    def rule(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
        return ctx.emitter.binary(op, x, y)

    return rule


for _name, _op in (("and", "arith.andi"), ("or", "arith.ori"), ("xor", "arith.xori")):
    getattr(lax, f"{_name}_p").rule(triton)(_bitwise(_op))


@lax.not_p.rule(triton)
def _not(ctx: Context, x: Value, **_: Any) -> Value:
    ones = True if x.dtype == BOOL else -1 if x.dtype.kind == "i" else np.iinfo(x.dtype).max
    e = ctx.emitter
    return e.binary("arith.xori", x, e.constant(ones, x.dtype, x.shape))


def _shift(op: str, keeps_sign: bool = False) -> Any:
    def rule(ctx: Context, x: Value, y: Value, **_: Any) -> Value:
        e = ctx.emitter
        n = types.bits(x.dtype)
        x, y = e.together(x, y)
        if y.bounds is not None and 0 <= y.bounds[0] and y.bounds[1] < n:
            return e.binary(op, x, y)
        # Amounts as large as the integer, which hardware takes modulo, shift everything out.
        unsigned = Value(y.name, np.dtype(f"uint{n}"), y.shape)
        fits = e.compare("lt", unsigned, e.constant(n, unsigned.dtype, y.shape))
        amount = e.select(fits, y, e.constant(n - 1 if keeps_sign else 0, y.dtype, y.shape))
        shifted = e.binary(op, x, amount)
        return shifted if keeps_sign else e.select(fits, shifted, e.constant(0, x.dtype, x.shape))

    return rule


lax.shift_left_p.rule(triton)(_shift("arith.shli"))
lax.shift_right_logical_p.rule(triton)(_shift("arith.shrui"))
lax.shift_right_arithmetic_p.rule(triton)(_shift("arith.shrsi", keeps_sign=True))


def _counted(name: str) -> Any:
    def rule(ctx: Context, x: Value, **_: Any) -> Value:
        e = ctx.emitter
        n = types.bits(x.dtype)
        wide = np.dtype(np.int64 if n == 64 else np.int32)
        unsigned = Value(x.name, np.dtype(f"uint{n}"), x.shape)
        symbol = f"__nv_{name}{'ll' if n == 64 else ''}"
        count = e.external(symbol, convert(e, unsigned, wide), dtype=np.int32)
        if name == "clz" and n < 32:
            count = e.subtract(count, e.constant(32 - n, np.int32, x.shape))
        return convert(e, count, x.dtype)

    return rule


lax.population_count_p.rule(triton)(_counted("popc"))
lax.clz_p.rule(triton)(_counted("clz"))


@lax.convert_element_type_p.rule(triton)
def _convert(ctx: Context, x: Value, *, new_dtype: Any, **_: Any) -> Value:
    return convert(ctx.emitter, x, new_dtype)


@lax.bitcast_convert_type_p.rule(triton)
def _bitcast(ctx: Context, x: Value, *, new_dtype: Any, **_: Any) -> Value:
    e = ctx.emitter
    if types.bits(new_dtype) != types.bits(x.dtype) or BOOL in (x.dtype, np.dtype(new_dtype)):
        raise ctx.error(
            f"bitcast_convert_type from {x.dtype.name} to {np.dtype(new_dtype).name}: both must "
            "have the same number of bits"
        )
    if types.element(new_dtype) == x.element:
        return Value(x.name, np.dtype(new_dtype), x.shape)
    to = types.tensor(types.element(new_dtype), x.padded)
    return e.op(f"tt.bitcast {x.name} : {x.type} -> {to}", new_dtype, x.shape)


def _identity(ctx: Context, x: Value, **_: Any) -> Value:
    return x


for _name in ("stop_gradient", "name"):
    if (_prim := getattr(lax, f"{_name}_p", None)) is not None:
        _prim.rule(triton)(_identity)


@lax.reduce_precision_p.rule(triton)
def _reduce_precision(ctx: Context, x: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    jaxpr = rounding(ctx.in_avals[0], exponent_bits, mantissa_bits)
    if jaxpr is None:
        raise ctx.error(
            f"reduce_precision with {exponent_bits} bits of exponents; {SMALLER_EXPONENT}"
        )
    return ctx.lower(jaxpr, [x])[0]
