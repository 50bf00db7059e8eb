"""Floor division, remainders and integer powers, with the semantics of Python's operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.jit_cache import library_function
from .._ir import dtypes
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .arithmetic import add, div, mul, neg, sub
from .bitwise import bitwise_and, bitwise_or, shift_right_logical
from .comparison import eq, lt, ne
from .elementwise import full_like, joint_shape, scalar_like, to_shape
from .magnitude import abs, sign
from .rounding import rem, round
from .selection import select
from .stopping import stop_gradient


def _is(x: Any, kind: type) -> bool:
    return dtypes.issubdtype(typeof(x).dtype, kind)


def _choose(condition: Any, on_true: Any, on_false: Any) -> Array:
    """``select`` that broadcasts scalar cases."""
    shapes = [typeof(v).shape for v in (condition, on_true, on_false)]
    shape = max(shapes, key=len)
    shape = tuple(
        max(s[i] for s in shapes if s) if all(s[i] for s in shapes if s) else 0
        for i in range(len(shape))
    )
    if shapes[0]:
        condition = to_shape(condition, shape)
    return select(condition, to_shape(on_true, shape), to_shape(on_false, shape))


def _zero(x: Any) -> Any:
    return scalar_like(x, 0)


def floor_divide(x: ArrayLike, y: ArrayLike) -> Array:
    """Quotients of operands of one dtype, rounded toward minus infinity.

    Raises:
      TypeError: for complex numbers.
    """
    if _is(x, np.complexfloating):
        raise TypeError("floor_divide does not support complex-valued inputs")
    if _is(x, np.unsignedinteger):
        return div(x, y)
    if _is(x, np.integer):
        return _integer_floor_divide(x, y)
    return _float_floor_divide(x, y)


def divided(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Quotients rounded toward minus infinity, and the remainders."""
    if _is(x, np.complexfloating):
        raise TypeError("divmod does not support complex-valued inputs")
    if _is(x, np.integer):
        return floor_divide(x, y), remainder(x, y)
    return _float_divmod(x, y)


@library_function
def _integer_floor_divide(x, y):
    quotient = div(x, y)
    inexact = bitwise_and(ne(sign(x), sign(y)), ne(rem(x, y), _zero(x)))
    return _choose(inexact, sub(quotient, scalar_like(quotient, 1)), quotient)


@library_function
def _float_divmod(x, y):
    left = rem(x, y)
    exact = _choose(eq(y, _zero(y)), x, sub(x, left))
    quotient = div(exact, y)
    below = bitwise_and(ne(left, _zero(left)), ne(sign(y), sign(left)))
    left = _with_sign_of(y, _choose(below, add(left, y), left))
    quotient = round(_choose(below, sub(quotient, scalar_like(quotient, 1)), quotient))
    # A quotient that rounds to 0 is 0.0; a quotient of zero has the sign of the division.
    quotient = _choose(eq(quotient, _zero(quotient)), _zero(quotient), quotient)
    return _choose(eq(x, _zero(x)), stop_gradient(div(x, y)), quotient), left


@library_function
def _float_floor_divide(x, y):
    """Floor division in which a quotient with infinity is that of the true division.

    ``1.0 // -inf`` is -0.0, as the Python array API standard specifies. Python's -1.0 is consistent
    with the remainder.
    """
    quotient, endless = div(x, y), scalar_like(x, np.inf)
    infinite = bitwise_or(eq(abs(x), endless), eq(abs(y), endless))
    return _choose(infinite, round(quotient), _float_divmod(x, y)[0])


def _with_sign_of(y: Any, left: Any) -> Any:
    """A remainder with the sign of the divisor, also if it is zero; the derivative is 1."""
    nothing = stop_gradient(mul(left, left))  # 0.0 where it is selected
    signed = _choose(lt(y, _zero(y)), neg(add(neg(left), nothing)), add(left, nothing))
    return _choose(eq(left, _zero(left)), signed, left)


@library_function
def remainder(x, y):
    """Remainder of floor division, with the sign of ``y``.

    0 for integers modulo 0, NaN for floats modulo 0.
    """
    whole = _is(y, np.integer)
    if whole:
        y = _choose(eq(y, _zero(y)), full_like(y, 1), y)
    left = rem(x, y)
    below = bitwise_and(ne(lt(left, _zero(left)), lt(y, _zero(y))), ne(left, _zero(left)))
    left = _choose(below, add(left, y), left)
    return left if whole else _with_sign_of(y, left)


@library_function
def integer_power(x, y):
    """Integers raised to the powers in ``y``, of the same dtype, by squaring; the result wraps.

    Only the 6 lowest bits of exponents are used; a higher power of 2 has overflowed every dtype.
    """
    shape = joint_shape("power", (typeof(x), typeof(y)))
    one = to_shape(scalar_like(x, 1), shape)
    out = _choose(bitwise_and(eq(x, _zero(x)), ne(y, _zero(y))), full_like(one, 0), one)
    for i in range(6):
        if i:
            x = mul(x, x)
            y = shift_right_logical(y, scalar_like(y, 1))
        odd = ne(bitwise_and(y, scalar_like(y, 1)), _zero(y))
        out = _choose(odd, mul(out, x), out)
    return out
