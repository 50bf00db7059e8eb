"""Special functions computed in ``float64``, for operands of any precision.

For narrower floats the series need fewer terms, and cancellation is harmless in ``float64``. A TPU
has no ``float64`` and computes in ``float32``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, jvp, lower
from .._ir.rules import UnsupportedRule
from .._ir.samples import samples
from .._lower.lazy import hlo, mlir, shaped
from .._trace.core import typeof
from .._transform.jvp import jvp_of
from .._transform.zeros import Zero, add_tangents
from . import arithmetic, comparison, exponential, magnitude, rounding
from .bitwise import bitwise_and, bitwise_not, bitwise_or
from .comparison import compare
from .control.cond import cond
from .control.while_loop import while_loop
from .conversion import convert
from .dynamic_slicing import dynamic_slice, dynamic_update_slice
from .elementwise import (
    derivatives,
    elementwise,
    full_like,
    full_of,
    scalar_like,
    to_shape,
    unary,
)
from .reducing import reduce_max
from .reshaping import reshape
from .selection import clamp, select


class Real:
    """An array with operators; Python operands are converted to its dtype."""

    __slots__ = ("x",)

    def __init__(self, x: Any):
        self.x: Any = x

    def _of(self, other: Any) -> Any:
        return other.x if type(other) is Real else scalar_like(self.x, other)

    def __add__(self, other: Any) -> Real:
        return Real(arithmetic.add(self.x, self._of(other)))

    def __sub__(self, other: Any) -> Real:
        return Real(arithmetic.sub(self.x, self._of(other)))

    def __mul__(self, other: Any) -> Real:
        return Real(arithmetic.mul(self.x, self._of(other)))

    def __truediv__(self, other: Any) -> Real:
        return Real(arithmetic.div(self.x, self._of(other)))

    def __rsub__(self, other: Any) -> Real:
        return Real(arithmetic.sub(self._of(other), self.x))

    def __rtruediv__(self, other: Any) -> Real:
        return Real(arithmetic.div(self._of(other), self.x))

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Real:
        return Real(arithmetic.neg(self.x))

    def __lt__(self, other: Any) -> Truth:
        return Truth(comparison.lt(self.x, self._of(other)))

    def __le__(self, other: Any) -> Truth:
        return Truth(comparison.le(self.x, self._of(other)))

    def __gt__(self, other: Any) -> Truth:
        return Truth(comparison.gt(self.x, self._of(other)))

    def __ge__(self, other: Any) -> Truth:
        return Truth(comparison.ge(self.x, self._of(other)))

    def equals(self, other: Any) -> Truth:
        """True where elements are equal."""
        return Truth(comparison.eq(self.x, self._of(other)))

    def isnan(self) -> Truth:
        """True where elements are NaN."""
        return Truth(comparison.ne(self.x, self.x))

    def __abs__(self) -> Real:
        return Real(magnitude.abs(self.x))

    def max(self, other: Any) -> Real:
        """The larger of two elements."""
        return Real(arithmetic.max(self.x, self._of(other)))

    def min(self, other: Any) -> Real:
        """The smaller of two elements."""
        return Real(arithmetic.min(self.x, self._of(other)))

    def power(self, n: int) -> Real:
        """An integer power."""
        return Real(arithmetic.integer_pow(self.x, n))


class Truth:
    """A boolean array with operators."""

    __slots__ = ("x",)

    def __init__(self, x: Any):
        self.x: Any = x

    def __and__(self, other: Truth) -> Truth:
        return Truth(bitwise_and(self.x, other.x))

    def __or__(self, other: Truth) -> Truth:
        return Truth(bitwise_or(self.x, other.x))

    def __invert__(self) -> Truth:
        return Truth(bitwise_not(self.x))


def where(condition: Truth, yes: Real | float, no: Real | float, like: Real | None = None) -> Real:
    """Elements of ``yes`` or ``no``; if both are numbers, with the dtype of ``like``."""
    like = like or (yes if type(yes) is Real else no)  # type: ignore[assignment]
    shape = typeof(condition.x).shape
    cases = [to_shape(like._of(v), shape) for v in (yes, no)]  # type: ignore[union-attr]
    return Real(select(condition.x, *cases))


def rarely(needed: Truth, fun: Callable[..., Real], *operands: Real) -> Real:
    """``cond`` around an expensive branch that is rarely needed.

    If any element of ``needed`` is True, the result is ``fun(*operands)``, otherwise the first
    operand.
    """
    # On a CPU, XLA divides reductions other than extrema of floats into several loops.
    some = reduce_max(convert(needed.x, dtypes.f32), tuple(range(typeof(needed.x).ndim)))
    some = comparison.gt(some, scalar_like(some, 0))
    arrays = [o.x for o in operands]
    return Real(cond(some, lambda *xs: fun(*map(Real, xs)).x, lambda *xs: xs[0], *arrays))


def _lifted(fun: Callable) -> Callable[[Real], Real]:
    return lambda x: Real(fun(x.x))


# On a CPU, XLA calls a library function for each float64 logarithm; this one is vectorized.
def _lower_log(last, ctx, x):
    """A logarithm, with powers of a series to ``last``; below 21 for positive finite operands."""
    if ctx.in_avals[0].dtype != dtypes.f64:
        return hlo.log(x)
    shape = ctx.in_avals[0].shape
    kind = {d: mlir.tensor_type(shape, np.dtype(d)) for d in ("int64", "int32", "float64")}

    def const(value, dtype=np.float64):
        return shaped.full(np.asarray(value, dtype), shape)

    # x = 2^k m, with m in [sqrt(1/2), sqrt(2))
    root = int(np.sqrt(0.5).view(np.int64))
    bits = hlo.bitcast_convert(kind["int64"], x)
    biased = hlo.add(bits, const((1023 << 52) - root, np.int64))
    biased = hlo.shift_right_logical(biased, const(52, np.int64))
    k = hlo.subtract(biased, const(1023, np.int64))
    m = hlo.subtract(bits, hlo.shift_left(k, const(52, np.int64)))
    m = hlo.bitcast_convert(kind["float64"], m)
    k = hlo.convert(kind["float64"], hlo.convert(kind["int32"], k))
    # XLA would compute a quotient of two arrays with several uses in a loop of its own, but not a
    # product with a reciprocal. The largest term, 2 s, is a separate quotient.
    top, bottom = hlo.subtract(m, const(1)), hlo.add(m, const(1))
    s = hlo.multiply(top, hlo.divide(const(1), bottom))
    z = hlo.multiply(s, s)
    out = const(2 / last)
    for n in range(last - 2, 1, -2):
        out = hlo.add(hlo.multiply(out, z), const(2 / n))
    twice = hlo.divide(hlo.add(top, top), bottom)
    out = hlo.add(hlo.multiply(s, hlo.multiply(z, out)), twice)
    out = hlo.add(hlo.multiply(k, const(math.log(2))), out)
    if last < 21:
        return out
    small = compare("LT", x, const(np.finfo(np.float64).tiny), dtypes.f64)
    out = hlo.select(small, const(-math.inf), out)
    out = hlo.select(compare("EQ", x, const(math.inf), dtypes.f64), x, out)
    negative = compare("LT", x, const(0), dtypes.f64)
    out = hlo.select(negative, const(math.nan), out)
    return hlo.select(compare("NE", x, x, dtypes.f64), x, out)


def _logarithm(name: str, last: int) -> Callable[[Real], Real]:
    prim = unary(name, ("float",), lambda ctx, x: hlo.log(x))
    derivatives(prim, lambda g, out, x: arithmetic.div(g, x))
    prim.unsupported(samples, "the functions that are computed with it have samples")

    @prim.rule(lower.on("cpu"))
    def _lower_cpu(ctx, x):
        return _lower_log(last, ctx, x)

    return _lifted(prim.bind)


log: Final = _logarithm("log_in_float64", 21)
log_for_power: Final = _logarithm("log_for_power", 13)
"""Logarithm of positive finite numbers, with an error of 4e-13."""
log1p: Final = _lifted(exponential.log1p)
exp: Final = _lifted(exponential.exp)
expm1: Final = _lifted(exponential.expm1)
sqrt: Final = _lifted(exponential.sqrt)
floor: Final = _lifted(rounding.floor)
sign: Final = _lifted(magnitude.sign)


def pow(x: Real, y: Real) -> Real:
    """``x`` to the powers in ``y``."""
    return Real(exponential.pow(x.x, y.x))


def horner(x: Real, coefficients: Sequence[float]) -> Real:
    """The polynomial with these coefficients, lowest power first."""
    out: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = x * out + c
    return out


_in_powers: Final = cache(np.polynomial.chebyshev.cheb2poly)


def chebyshev(t: Real, coefficients: Sequence[float]) -> Real:
    """A Chebyshev series on [-1, 1] with quickly decreasing terms, computed in powers of ``t``."""
    return horner(t, _in_powers(coefficients).tolist())


# Primitives


def computed_in_float64(
    name: str,
    fun: Callable[..., Real],
    operands: int,
    *rules: Callable | None,
    orders: int = 1,
    narrow: bool = False,
    short: bool = False,
) -> Primitive:
    """Elementwise primitive of floats, computed by a function of :class:`Real` operands.

    Args:
      fun: ``(precise, *operands) -> Real``. ``precise`` is True if the result needs the precision
        of ``float64``, False if that of ``float32`` is enough. It is differentiated in forward
        mode.
      rules: for each operand, the partial derivative as a function of the operands, or ``None`` for
        a separate primitive that differentiates ``fun``.
      orders: how often ``fun`` can be differentiated.
      narrow: compute in ``float32`` if ``precise`` is False. Derivatives are computed in
        ``float64``.
      short: the function compiles to one loop, so large arrays are not split into blocks.
    """
    prim = Primitive(name)

    @cache
    def converting(precise: bool, work: Any, blocks: bool) -> Callable:
        whole = _converting(_of_arrays(partial(fun, precise)), work)
        return partial(_in_blocks, whole) if blocks else whole

    def emit(ctx, *values):
        shape, dtype = ctx.out_avals[0].shape, ctx.in_avals[0].dtype
        precise = dtype == dtypes.f64
        work = dtypes.f64
        if not precise and (narrow or ctx.platform == "tpu"):
            work = dtypes.f32
        size = math.prod(shape)
        blocks = not short and ctx.platform == "cpu" and 8 * _BLOCK < size < 2**31 - _BLOCK
        avals = [ShapedArray(shape, dtype)] * operands
        return ctx.call(converting(precise, work, blocks), *values, in_avals=avals)

    elementwise(prim, emit, ("float",))
    partials: dict[int, Primitive] = {}
    rules = rules or (None,) * operands

    def partial_by(i: int) -> Callable:
        if not orders:
            raise UnsupportedRule(
                f"primitive {name} does not support differentiation by operand {i}: it is itself "
                "such a derivative, and higher orders are not implemented"
            )
        if i not in partials:
            partials[i] = computed_in_float64(
                f"{name}_d{i}", derivative_of(fun, i), operands, orders=orders - 1, short=short
            )
            partials[i].unsupported(samples, f"the kit reaches it by way of {name}")
        return partials[i].bind

    @prim.rule(jvp)
    def _jvp(primals, tangents):
        out = prim.bind(*primals)
        shape = typeof(out).shape
        total: Any = Zero.like(out)
        for i, (rule, t) in enumerate(zip(rules, tangents)):
            if type(t) is not Zero:
                factor = (rule or partial_by(i))(*primals)
                total = add_tangents(total, to_shape(arithmetic.mul(t, factor), shape))
        return out, total

    return prim


# Number of elements that fit into a CPU core's cache with all intermediate results.
_BLOCK: Final = 1 << 14


def _converting(fun: Callable, work: Any) -> Callable:
    def call(*arrays):
        return convert(fun(*[convert(a, work) for a in arrays]), typeof(arrays[0]).dtype)

    return call


def _in_blocks(fun: Callable, *arrays: Any) -> Any:
    """An elementwise function of large arrays, in blocks; the last two blocks may overlap."""
    shape = typeof(arrays[0]).shape
    size = math.prod(shape)
    flat = [reshape(a, (size,)) for a in arrays]

    def block(state):
        i, out = state
        at = (clamp(scalar_like(i, 0), i, scalar_like(i, size - _BLOCK)),)
        part = fun(*[dynamic_slice(a, at, (_BLOCK,)) for a in flat])
        return arithmetic.add(i, scalar_like(i, _BLOCK)), dynamic_update_slice(out, part, at)

    start = (full_of(ShapedArray((), dtypes.i32), 0), full_like(flat[0], 0))
    done = while_loop(lambda s: comparison.lt(s[0], scalar_like(s[0], size)), block, start)
    return reshape(done[1], shape)


def _of_arrays(fun: Callable[..., Real]) -> Callable:
    return lambda *arrays: fun(*map(Real, arrays)).x


def derivative_of(fun: Callable[..., Real], i: int) -> Callable[..., Real]:
    """Partial derivative of a function for :func:`computed_in_float64` by one operand."""

    def derivative(precise: bool, *operands: Real) -> Real:
        arrays = [o.x for o in operands]
        tangents = [full_like(a, 1) if j == i else None for j, a in enumerate(arrays)]
        run = _of_arrays(partial(fun, precise))
        _, (tangent,) = jvp_of(lambda *xs: [run(*xs)], arrays, tangents)
        return Real(full_like(arrays[i], 0) if tangent is None else tangent)

    return derivative
