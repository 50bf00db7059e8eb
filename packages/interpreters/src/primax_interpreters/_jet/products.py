"""Products, quotients and powers."""

from __future__ import annotations

from math import comb
from typing import Any

from primax_core.extend import Primitive, Zero, add_tangents, typeof
from primax_core.extend.elementwise import to_shape
from primax_core.lax import (
    conv_general_dilated_p,
    div,
    div_p,
    dot_general_p,
    full_like,
    integer_pow_p,
    mul,
    mul_p,
    neg,
    square_p,
)

from .interpreter import taylor
from .series import bilinear, leibniz, scaled


def _is_bilinear(prim: Primitive) -> None:
    @prim.rule(taylor)
    def _taylor(primals, series, **params):
        (x, y), (xs, ys) = primals, series
        return bilinear(lambda a, b: prim.bind(a, b, **params), x, y, xs, ys)


for _prim in (mul_p, dot_general_p, conv_general_dilated_p):
    _is_bilinear(_prim)


def _squares(u: list, k: int, zero: Zero) -> Any:
    """The ``k``-th derivative of a square: equal products are computed once."""
    total: Any = zero
    for i in range(k // 2 + 1):
        if type(u[i]) is Zero or type(u[k - i]) is Zero:
            continue
        times = comb(k, i) * (1 if 2 * i == k else 2)
        total = add_tangents(total, scaled(mul(u[i], u[k - i]), times))
    return total


def _squared(u: list) -> list:
    first = square_p.bind(u[0])
    return [first, *(_squares(u, k, Zero.like(first)) for k in range(1, len(u)))]


def _times(u: list, v: list) -> list:
    out, terms = bilinear(mul, u[0], v[0], u[1:], v[1:])
    return [out, *terms]


def _quotient(x: Any, y: Any, xs: list, ys: list) -> list:
    """``z = x / y`` from ``z y = x``: each derivative from those before it."""
    zs: list[Any] = [div(x, y)]
    zero, shape = Zero.like(zs[0]), typeof(zs[0]).shape
    for k in range(1, len(xs) + 1):
        known = leibniz(mul, [*zs, zero], [Zero.like(y), *ys], k, zero)
        rest = xs[k - 1] if type(known) is Zero else neg(known)
        if type(known) is not Zero and type(xs[k - 1]) is not Zero:
            rest = add_tangents(to_shape(xs[k - 1], shape), neg(known))
        zs.append(zero if type(rest) is Zero else to_shape(div(rest, y), shape))
    return zs


@square_p.rule(taylor)
def _square_taylor(primals, series):
    out, *terms = _squared([*primals, *series[0]])
    return out, terms


@div_p.rule(taylor)
def _div_taylor(primals, series):
    out, *terms = _quotient(*primals, *series)
    return out, terms


@integer_pow_p.rule(taylor)
def _integer_pow_taylor(primals, series, *, y):
    (x,), (xs,) = primals, series
    out = integer_pow_p.bind(x, y=y)
    if y == 0:
        return out, [Zero.like(out)] * len(xs)
    n, base = abs(y), [x, *xs]
    while not n & 1:
        n, base = n >> 1, _squared(base)
    power = base
    while n := n >> 1:
        base = _squared(base)
        if n & 1:
            power = _times(power, base)
    if y < 0:
        one = full_like(x, 1)
        power = _quotient(one, power[0], [Zero.like(one)] * len(xs), power[1:])
    return out, power[1:]
