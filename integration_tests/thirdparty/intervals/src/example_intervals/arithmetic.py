"""Rules for the core's elementwise primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Primitive, typeof

from .intervals import Interval, hull, interval


def increasing(prim: Primitive) -> None:
    """Rule for a function that increases in all operands."""

    @prim.rule(interval)
    def _(*values, **params):
        return Interval(
            prim.bind(*(x.low for x in values), **params),
            prim.bind(*(x.high for x in values), **params),
        )


for _prim in (
    lax.add_p, lax.max_p, lax.min_p, lax.exp_p, lax.exp2_p, lax.expm1_p, lax.log_p, lax.log1p_p,
    lax.sqrt_p, lax.cbrt_p, lax.tanh_p, lax.sinh_p, lax.asinh_p, lax.atan_p, lax.asin_p, lax.erf_p,
    lax.logistic_p, lax.floor_p, lax.ceil_p, lax.sign_p, lax.and_p, lax.or_p, lax.clamp_p,
    lax.nextafter_p,
):  # fmt: skip
    increasing(_prim)


@lax.neg_p.rule(interval)
def _interval(x):
    return Interval(lax.neg(x.high), lax.neg(x.low))


@lax.not_p.rule(interval)
def _not_interval(x):
    return Interval(lax.bitwise_not(x.high), lax.bitwise_not(x.low))


@lax.sub_p.rule(interval)
def _sub_interval(x, y):
    return Interval(lax.sub(x.low, y.high), lax.sub(x.high, y.low))


def _of_corners(op: Callable, x: Interval, y: Interval) -> Interval:
    """Hull of the results at the four corners."""
    corners = [op(a, b) for a in x for b in y]
    low = high = corners[0]
    for c in corners[1:]:
        low, high = lax.min(low, c), lax.max(high, c)
    return Interval(low, high)


@lax.mul_p.rule(interval)
def _mul_interval(x, y, **_):
    return _of_corners(_product, x, y)


def _product(a, b):
    """Product in which zero times infinity is zero: the infinity represents a bound."""
    out = lax.mul(a, b)
    return lax.select_n(lax.ne(out, out), out, lax.full_like(out, 0))


@lax.div_p.rule(interval)
def _div_interval(x, y):
    out = _of_corners(lax.div, x, y)
    zero = lax.full_like(y.low, 0)
    through = lax.bitwise_and(lax.le(y.low, zero), lax.ge(y.high, zero))
    through = _spread(through, out.low)
    infinite = lax.full_like(out.low, np.inf)
    return Interval(
        lax.select_n(through, out.low, lax.neg(infinite)),
        lax.select_n(through, out.high, infinite),
    )


def _spread(x: Any, like: Any) -> Any:
    shape = typeof(like).shape
    return x if typeof(x).shape == shape else lax.broadcast(x, shape)


def _even(op: Callable, x: Interval) -> Interval:
    """Rule for a function that decreases to zero and then increases."""
    a, b = op(x.low), op(x.high)
    zero = lax.full_like(x.low, 0)
    across = lax.bitwise_and(lax.le(x.low, zero), lax.ge(x.high, zero))
    least = lax.min(a, b)
    return Interval(lax.select_n(across, least, op(zero)), lax.max(a, b))


lax.square_p.rule(interval)(lambda x: _even(lax.square, x))
lax.abs_p.rule(interval)(lambda x: _even(lax.abs, x))
lax.cosh_p.rule(interval)(lambda x: _even(lax.cosh, x))


@lax.integer_pow_p.rule(interval)
def _integer_pow_interval(x, *, y):
    power = lambda v: lax.integer_pow(v, abs(y))
    out = _even(power, x) if y % 2 == 0 else Interval(power(x.low), power(x.high))
    if y >= 0:
        return out
    one = lax.full_like(x.low, 1)
    return lax.div_p.require(interval)(Interval(one, one), out)


def _wave(op: Callable, peak: float) -> Callable:
    """Rule for sine and cosine: the bounds are at the ends or at an extremum."""

    def rule(x, **_):
        a, b = op(x.low), op(x.high)
        whole = lambda shift: _crosses(x, peak + shift)
        one = lax.full_like(a, 1)
        return Interval(
            lax.select_n(whole(np.pi), lax.min(a, b), lax.neg(one)),
            lax.select_n(whole(0.0), lax.max(a, b), one),
        )

    return rule


def _crosses(x: Interval, place: float) -> Any:
    """Return True if ``place + 2πk`` is in an interval for some ``k``, up to rounding."""
    turn = lax.full_like(x.low, 2 * np.pi)
    at = lax.full_like(x.low, place)
    first = lax.ceil(lax.div(lax.sub(x.low, at), turn) - lax.full_like(x.low, 1e-6))
    return lax.le(lax.add(at, lax.mul(first, turn)), x.high)


lax.sin_p.rule(interval)(_wave(lax.sin, np.pi / 2))
lax.cos_p.rule(interval)(_wave(lax.cos, 0.0))


@lax.lt_p.rule(interval)
def _lt_interval(x, y):
    return Interval(lax.lt(x.high, y.low), lax.lt(x.low, y.high))


@lax.le_p.rule(interval)
def _le_interval(x, y):
    return Interval(lax.le(x.high, y.low), lax.le(x.low, y.high))


lax.gt_p.rule(interval)(lambda x, y: lax.lt_p.require(interval)(y, x))
lax.ge_p.rule(interval)(lambda x, y: lax.le_p.require(interval)(y, x))


@lax.eq_p.rule(interval)
def _eq_interval(x, y):
    surely = lax.bitwise_and(lax.eq(x.low, y.high), lax.eq(x.high, y.low))
    maybe = lax.bitwise_and(lax.le(x.low, y.high), lax.le(y.low, x.high))
    return Interval(surely, maybe)


@lax.ne_p.rule(interval)
def _ne_interval(x, y):
    return lax.not_p.require(interval)(lax.eq_p.require(interval)(x, y))


@lax.select_n_p.rule(interval)
def _select_n_interval(which, *cases):
    if which.aval.dtype == np.bool_:
        which = Interval(*(lax.convert_element_type(w, np.int32) for w in which))
    result = None
    for k, case in enumerate(cases):
        index = lax.full_like(which.low, k)
        possible = lax.bitwise_and(lax.le(which.low, index), lax.le(index, which.high))
        if result is None:
            result, any_before = case, possible
            continue
        both = hull(result, case)
        alone = Interval(*(lax.select_n(possible, a, b) for a, b in zip(result, case)))
        joint = lax.bitwise_and(possible, any_before)
        result = Interval(*(lax.select_n(joint, a, b) for a, b in zip(alone, both)))
        any_before = lax.bitwise_or(any_before, possible)
    return result
