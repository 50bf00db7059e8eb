"""Rounding, remainders, adjacent floats, and tests of finiteness."""

from __future__ import annotations

import enum
from typing import Final

import numpy as np

from .._ir.primitive import Primitive
from .._ir.samples import Sample, bf16, f32, samples
from .._lower.lazy import chlo, hlo
from .._trace.array import Array
from .._trace.typing import ArrayLike
from .arithmetic import div, mul, neg
from .elementwise import (
    binary,
    derivatives,
    elementwise,
    elementwise_samples,
    fast_path,
    no_derivative,
    unary,
)
from .magnitude import abs, sign

_FLOAT: Final = ("float",)


class RoundingMethod(enum.IntEnum):
    """Rounding of numbers halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


floor_p: Final = unary("floor", _FLOAT, lambda ctx, x: hlo.floor(x))
ceil_p: Final = unary("ceil", _FLOAT, lambda ctx, x: hlo.ceil(x))
round_p: Final = Primitive("round")
is_finite_p: Final = unary(
    "is_finite", _FLOAT, lambda ctx, x: hlo.is_finite(x), lambda dtype: np.dtype(np.bool_)
)


def _emit_round(ctx, x, *, rounding_method):
    if rounding_method is RoundingMethod.AWAY_FROM_ZERO:
        return hlo.round_nearest_afz(x)
    return hlo.round_nearest_even(x)


elementwise(round_p, _emit_round, _FLOAT)

for _prim in (floor_p, ceil_p, round_p, is_finite_p):
    no_derivative(_prim)


@fast_path(floor_p)
def floor(x: ArrayLike) -> Array:
    """Largest integers not greater than the elements, as floats; the derivative is zero."""
    return floor_p.bind(x)


@fast_path(ceil_p)
def ceil(x: ArrayLike) -> Array:
    """Smallest integers not less than the elements, as floats; the derivative is zero."""
    return ceil_p.bind(x)


@fast_path(round_p, rounding_method=RoundingMethod.AWAY_FROM_ZERO)
def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Nearest integers, as floats; the derivative is zero.

    Args:
      rounding_method: rounding of halves: away from zero, or to even.

    >>> round(np.array([0.5, 1.5, 2.5], np.float32)).tolist()
    [1.0, 2.0, 3.0]
    >>> round(np.array([0.5, 1.5, 2.5], np.float32), RoundingMethod.TO_NEAREST_EVEN).tolist()
    [0.0, 2.0, 2.0]
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


@fast_path(is_finite_p)
def is_finite(x: ArrayLike) -> Array:
    """True where elements are neither infinite nor NaN."""
    return is_finite_p.bind(x)


rem_p: Final = binary("rem", ("integer", "float"), lambda x, y: hlo.remainder(x, y))


@fast_path(rem_p)
def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """Remainder of division rounded toward zero, with the sign of ``x``.

    An integer modulo 0 is the integer. Dtypes and shapes are as for :func:`add`.

    >>> rem(np.array([7, -7]), np.array([3, 3])).tolist()
    [1, -1]
    """
    return rem_p.bind(x, y)


derivatives(
    rem_p,
    lambda g, out, x, y: g,
    lambda g, out, x, y: mul(neg(g), mul(sign(div(x, y)), floor(abs(div(x, y))))),
)

nextafter_p: Final = binary("nextafter", _FLOAT, lambda x, y: chlo.next_after(x, y))


@fast_path(nextafter_p)
def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The adjacent floats of ``x1`` in the direction of ``x2``.

    The derivative is that of ``x1``.
    """
    return nextafter_p.bind(x1, x2)


derivatives(nextafter_p, lambda g, out, x, y: g, None)


for _prim in (floor_p, ceil_p, is_finite_p):
    elementwise_samples(_prim, "f")
elementwise_samples(rem_p, "f", arity=2, low=0.7)
elementwise_samples(nextafter_p, "f", arity=2)


@round_p.rule(samples)
def _samples():
    for method in RoundingMethod:
        yield Sample(f32(3, 2), rounding_method=method)
    yield Sample(bf16(0, 2), rounding_method=RoundingMethod.TO_NEAREST_EVEN)
