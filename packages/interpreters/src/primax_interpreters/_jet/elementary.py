"""Exponentials, roots, trigonometric and hyperbolic functions.

Those that are missing (logarithms, inverse functions, error functions, ...) have derivatives that
are simpler than they are, and follow from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import Primitive, Zero, add_tangents
from primax_core.extend.elementwise import scalar_like
from primax_core.lax import (
    cos,
    cos_p,
    cosh,
    cosh_p,
    exp,
    exp2_p,
    exp_p,
    expm1_p,
    logistic_p,
    mul,
    neg,
    one_minus_square,
    sin,
    sin_p,
    sinh,
    sinh_p,
    sub,
    tanh_p,
)

from .interpreter import taylor
from .series import by_equation, leibniz, scaled

_LN2 = float(np.log(2.0))


def _minus(x: Any) -> Any:
    return x if type(x) is Zero else neg(x)


@exp_p.rule(taylor)
def _exp_taylor(primals, series, **params):
    out = exp_p.bind(*primals, **params)
    return by_equation(out, series[0], lambda ys: ys[-1])


@exp2_p.rule(taylor)
def _exp2_taylor(primals, series, **params):
    out = exp2_p.bind(*primals, **params)
    return by_equation(out, [scaled(t, _LN2) for t in series[0]], lambda ys: ys[-1])


@expm1_p.rule(taylor)
def _expm1_taylor(primals, series, **params):
    first = exp(*primals)
    _, terms = by_equation(first, series[0], lambda ys: ys[-1])
    return expm1_p.bind(*primals, **params), terms


def _coupled(prim: Primitive, partner: Any, sign: int, partner_sign: int) -> None:
    """``y' = sign z x'`` and ``z' = partner_sign y x'``."""

    @prim.rule(taylor)
    def _taylor(primals, series, **params):
        (x,), (xs,) = primals, series
        ys, zs = [prim.bind(x, **params)], [partner(x)]
        zero = Zero.like(ys[0])
        for k in range(len(xs)):
            dy = leibniz(mul, zs, xs, k, zero)
            dz = leibniz(mul, ys, xs, k, zero) if k + 1 < len(xs) else zero
            ys.append(dy if sign > 0 else _minus(dy))
            zs.append(dz if partner_sign > 0 else _minus(dz))
        return ys[0], ys[1:]


_coupled(sin_p, cos, 1, -1)
_coupled(cos_p, sin, -1, 1)
_coupled(sinh_p, cosh, 1, 1)
_coupled(cosh_p, sinh, 1, 1)


@tanh_p.rule(taylor)
def _tanh_taylor(primals, series, **params):
    out = tanh_p.bind(*primals, **params)

    def factor(ys):
        if len(ys) == 1:
            return one_minus_square(out)
        return _minus(leibniz(mul, ys, ys, len(ys) - 1, Zero.like(out)))

    return by_equation(out, series[0], factor)


@logistic_p.rule(taylor)
def _logistic_taylor(primals, series, **params):
    out = logistic_p.bind(*primals, **params)

    def factor(ys):
        if len(ys) == 1:
            return mul(out, sub(scalar_like(out, 1), out))
        squares = leibniz(mul, ys, ys, len(ys) - 1, Zero.like(out))
        return add_tangents(ys[-1], _minus(squares))

    return by_equation(out, series[0], factor)
