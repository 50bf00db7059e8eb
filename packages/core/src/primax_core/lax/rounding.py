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
    """Rounding of numbers halfway between two integers.

    ``AWAY_FROM_ZERO`` rounds 0.5 to 1 and -0.5 to -1. ``TO_NEAREST_EVEN`` rounds 0.5 to 0 and 1.5
    to 2, so that errors cancel in sums. It is the argument ``rounding_method`` of :func:`round`.

    >>> x = np.array([0.5, 1.5, 2.5], np.float32)
    >>> round(x, RoundingMethod.TO_NEAREST_EVEN).tolist()
    [0.0, 2.0, 2.0]
    """

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
    """Largest integer not greater than each element, as a float.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype, or is not an array or a number.

    Infinities and NaN are returned unchanged. The derivative is zero everywhere. Under ``vmap``
    the batch is one operand.

    >>> x = np.array([1.5, -1.5, 2.0], np.float32)
    >>> floor(x).tolist()
    [1.0, -2.0, 2.0]
    """
    return floor_p.bind(x)


@fast_path(ceil_p)
def ceil(x: ArrayLike) -> Array:
    """Smallest integer not less than each element, as a float.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype, or is not an array or a number.

    Infinities and NaN are returned unchanged. The derivative is zero everywhere. Under ``vmap``
    the batch is one operand.

    >>> x = np.array([1.5, -1.5, 2.0], np.float32)
    >>> ceil(x).tolist()
    [2.0, -1.0, 2.0]
    """
    return ceil_p.bind(x)


@fast_path(round_p, rounding_method=RoundingMethod.AWAY_FROM_ZERO)
def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Nearest integer to each element, as a float.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.
      rounding_method: a :class:`RoundingMethod`: halves are rounded away from zero, or to the
        even integer.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype, or is not an array or a number.

    The derivative is zero everywhere. Under ``vmap`` the batch is one operand.

    >>> x = np.array([0.5, 1.5, 2.5], np.float32)
    >>> round(x).tolist()
    [1.0, 2.0, 3.0]
    >>> round(x, RoundingMethod.TO_NEAREST_EVEN).tolist()
    [0.0, 2.0, 2.0]
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


@fast_path(is_finite_p)
def is_finite(x: ArrayLike) -> Array:
    """True for each element that is neither infinite nor NaN.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.

    Returns:
      A boolean array of the shape of ``x``.

    Raises:
      TypeError: if ``x`` does not have a floating dtype, or is not an array or a number.

    The result has no derivative. Under ``vmap`` the batch is one operand.

    >>> x = np.array([1.0, np.inf, np.nan], np.float32)
    >>> is_finite(x).tolist()
    [True, False, False]
    >>> bool(is_finite(np.float32(2.0)))
    True
    """
    return is_finite_p.bind(x)


rem_p: Final = binary("rem", ("integer", "float"), lambda x, y: hlo.remainder(x, y))


@fast_path(rem_p)
def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """Remainder of a division rounded toward zero, with the sign of ``x``.

    Dtypes and shapes are as for :func:`add`. An integer modulo 0 is the integer; a float modulo 0
    is NaN.

    Args:
      x: the dividends, an array or a number of integer or floating dtype.
      y: the divisors, an array or a number of the dtype of ``x``.

    Returns:
      An array of the joint shape and of the operands' dtype, weakly typed if both operands are.

    Raises:
      TypeError: if the dtypes differ or the shapes are incompatible, or for booleans and complex
        numbers.

    The derivative with respect to ``x`` is 1, with respect to ``y`` the negative truncated
    quotient. Under ``vmap`` the batch is one operand.

    >>> rem(np.array([7, -7]), np.array([3, 3])).tolist()
    [1, -1]
    >>> rem(5.5, 2.0).item()
    1.5
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
    """The float adjacent to ``x1`` in the direction of ``x2``.

    Where both are equal, the result is ``x2``. NaN in one of them gives NaN.

    Args:
      x1: an array or a number of floating dtype.
      x2: an array or a number of the dtype of ``x1``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are not floating, or the shapes are incompatible.

    The derivative is that of ``x1``. Under ``vmap`` the batch is one operand.

    >>> nextafter(np.float32(1), np.float32(2)).item()
    1.0000001192092896
    >>> nextafter(np.float32(0), np.float32(-1)).item()
    -1.401298464324817e-45
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
