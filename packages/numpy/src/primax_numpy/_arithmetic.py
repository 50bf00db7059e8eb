"""Quotients, remainders, powers, magnitudes and signs."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays, converted
from ._creation import asarray
from ._functions import elementwise
from ._promotion import as_inexact, as_real, broadcast_together, inexact_pair, pair

_QUICK = (Array, int, float)


def operate(name: str, op: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Apply a binary operator to any two operands."""
    if isinstance(x, Array) and isinstance(y, _QUICK):
        return op(x, y)
    check_arrays(name, x, y)
    if not isinstance(x, Array) and not isinstance(y, Array):
        x = asarray(x)
    return op(x, y)


# Quotients and remainders


def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 / x2``; integers become floats.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast; integers are converted to floats.

    Returns:
      A float array of the common shape; complex if an operand is.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivatives are ``1 / x2`` and ``-x1 / x2**2``. Division by 0 gives infinities, and NaN for
    0 / 0.

    >>> divide(np.array([1, 2], np.int32), 4)
    Array([0.25, 0.5 ], dtype=float32)
    """
    return operate("divide", operator.truediv, x1, x2)


def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 / x2`` elementwise; integers become floats. An alias of :func:`divide`.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast.

    Returns:
      A float array of the common shape; complex if an operand is.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    Division by 0 gives infinities, and NaN for 0 / 0.

    >>> true_divide(np.array([1, 2], np.int32), 4)
    Array([0.25, 0.5 ], dtype=float32)
    """
    return operate("true_divide", operator.truediv, x1, x2)


def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 // x2``: quotients rounded toward minus infinity; the derivative is zero.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: for complex numbers.

    >>> floor_divide(np.array([7.0, -7.0], np.float32), 2.0)
    Array([ 3., -4.], dtype=float32)
    """
    return operate("floor_divide", operator.floordiv, x1, x2)


def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 % x2``: the remainder of :func:`floor_divide`, with the sign of ``x2``.

    The result is NaN for floats modulo 0, and 0 for integers modulo 0.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivative with respect to ``x1`` is 1.

    >>> remainder(np.array([7, -7], np.int32), 3)
    Array([1, 2], dtype=int32)
    """
    return operate("remainder", operator.mod, x1, x2)


def mod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 % x2``: the remainder of :func:`floor_divide`, with the sign of ``x2``.

    The result is NaN for floats modulo 0, and 0 for integers modulo 0.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> mod(np.array([7, -7], np.int32), 3)
    Array([1, 2], dtype=int32)
    """
    return operate("mod", operator.mod, x1, x2)


@elementwise
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """Pairs of floor quotient and remainder, as Python's ``divmod`` returns them.

    For infinite operands the quotient may differ from :func:`floor_divide`.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast.

    Returns:
      Two arrays of the common shape.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> divmod(np.array([7, -7], np.int32), 3)
    (Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))
    """
    return builtins.divmod(converted(x1), converted(x2))


def _no_bool(dtype: Any, weak_type: bool) -> tuple[Any, bool]:
    return (dtypes.i32, False) if dtype == np.bool_ else (dtype, weak_type)


@elementwise
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Remainder of division rounded toward zero, with the sign of ``x1``.

    The result is NaN for floats modulo 0, and 0 for integers modulo 0.

    Args:
      x1, x2: arrays or numbers whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    >>> fmod(np.array([7, -7], np.int32), 3)
    Array([ 1, -1], dtype=int32)
    """
    x, y = pair("fmod", x1, x2, _no_bool)
    if dtypes.issubdtype(typeof(x).dtype, np.integer):
        y = lax.select(y == 0, lax.full_like(y, 1), y)
    return lax.rem(x, y)


# Powers


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 ** x2`` elementwise.

    Integer bases with integer exponents give integers, which wrap on overflow.

    Args:
      x1: bases.
      x2: exponents, whose shape broadcasts with that of ``x1``.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an integer is raised to a negative Python number.

    The derivatives are ``x2 * x1**(x2 - 1)`` and ``log(x1) * x1**x2``.

    >>> power(np.array([2, 3], np.int32), 2)
    Array([4, 9], dtype=int32)
    >>> power(np.float32(4), 0.5)
    Array(2., dtype=float32)
    """
    return operate("power", operator.pow, x1, x2)


def pow(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 ** x2`` elementwise; an alias of :func:`power`.

    Args:
      x1: bases.
      x2: exponents, whose shape broadcasts with that of ``x1``.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: if an integer is raised to a negative Python number.

    >>> pow(np.array([2, 3], np.int32), 2)
    Array([4, 9], dtype=int32)
    """
    return operate("pow", operator.pow, x1, x2)


@elementwise
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x ** y`` computed in floating point, also for integers.

    Args:
      x, y: arrays or numbers whose shapes broadcast.

    Returns:
      A float array of the common shape; complex if an operand is.

    Raises:
      TypeError: if an operand is not an array or a number. Lists are not converted.

    The derivatives are those of :func:`power`.

    >>> float_power(np.array([2, 4], np.int32), 0.5)
    Array([1.4142135, 2.       ], dtype=float32, weak_type=True)
    """
    return lax.pow(*inexact_pair("float_power", x, y))


@elementwise
def square(x: ArrayLike, /) -> Array:
    """``x * x``; booleans count as integers.

    Args:
      x: an array or a number of real or complex dtype.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``2 * x``.

    >>> square(np.array([-1.5, 0.0, 2.0], np.float32))
    Array([2.25, 0.  , 4.  ], dtype=float32)
    """
    if typeof(x).dtype == np.bool_:
        x = lax.convert_element_type(x, np.int32)
    return lax.integer_pow(x, 2)


@elementwise
def reciprocal(x: ArrayLike, /) -> Array:
    """``1 / x``; integers become floats.

    Args:
      x: an array or a number of real or complex dtype; integers are converted to floats.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is ``-1 / x**2``. The reciprocal of 0 is infinite.

    >>> reciprocal(np.array([-2.0, 0.0, 4.0], np.float32))
    Array([-0.5 ,   inf,  0.25], dtype=float32)
    """
    return lax.integer_pow(as_inexact(x), -1)


# Magnitudes and signs


@elementwise
def abs(x: ArrayLike, /) -> Array:
    """Absolute value of each element; real for complex ones.

    The derivative at 0 is 1. The smallest integer has no positive counterpart and is returned
    unchanged.

    Args:
      x: an array or a number of real or complex dtype, or of integers.

    Returns:
      An array of the shape of ``x``, of its dtype; the real dtype for complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> abs(np.array([-1.5, 0.0, 2.0], np.float32))
    Array([1.5, 0. , 2. ], dtype=float32)
    """
    dtype = typeof(x).dtype
    if dtype == np.bool_ or dtypes.issubdtype(dtype, np.unsignedinteger):
        return x
    return lax.abs(x)


absolute = abs


@elementwise
def fabs(x: ArrayLike, /) -> Array:
    """Absolute value of each element as a float. Complex numbers raise an error.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      A float array of the shape of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is that of :func:`abs`.

    >>> fabs(np.array([-1.5, 0.0, 2.0], np.float32))
    Array([1.5, 0. , 2. ], dtype=float32)
    """
    return lax.abs(as_real("fabs", x))


@elementwise
def positive(x: ArrayLike, /) -> Array:
    """The elements unchanged.

    Args:
      x: an array or a number of real or complex dtype, or of integers.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is 1.

    >>> positive(np.array([-1.5, 0.0, 2.0], np.float32))
    Array([-1.5,  0. ,  2. ], dtype=float32)
    """
    return x


@elementwise
def sign(x: ArrayLike, /) -> Array:
    """Sign of each element: -1, 0 or 1, NaN for NaN; ``x / abs(x)`` for complex numbers.

    Args:
      x: an array or a number of real or complex dtype.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is 0 everywhere.

    >>> sign(np.array([-1.5, 0.0, 2.0], np.float32))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    out = lax.sign(x)
    if not dtypes.issubdtype(typeof(x).dtype, np.inexact):
        return out
    return lax.select(x == 0, lax.full_like(out, 0), out)  # and not -0.0


# Divisors and multiples


def _integers(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    x, y = pair(name, x, y)
    if not dtypes.issubdtype(typeof(x).dtype, np.integer):
        raise ValueError(f"Arguments to {name} must be integers, got {typeof(x).dtype.name}.")
    x, y = broadcast_together(x, y)
    if dtypes.issubdtype(typeof(x).dtype, np.unsignedinteger):
        return x, y
    return lax.abs(x), lax.abs(y)


def _euclid(x: Any, y: Any) -> Any:
    def step(pair: Any) -> Any:
        a, b = pair
        left = lax.rem(a, lax.select(b == 0, lax.full_like(b, 1), b))
        return lax.select(b == 0, a, b), lax.select(b == 0, b, left)

    def unfinished(pair: Any) -> Any:
        return lax.reduce_or(pair[1] != 0, tuple(range(typeof(pair[1]).ndim)))

    return lax.while_loop(unfinished, step, (x, y))[0]


@elementwise
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Greatest common divisors of integers: nonnegative, and 0 only if both operands are 0.

    Args:
      x1, x2: arrays or numbers of integer dtype whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      ValueError: if an operand is not of integer dtype.

    The function is not differentiable, because its operands are integers.

    >>> gcd(np.array([12, 18]), -8).tolist()
    [4, 2]
    """
    return _euclid(*_integers("gcd", x1, x2))


@elementwise
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Least common multiples of integers: nonnegative, and 0 if an operand is 0.

    Args:
      x1, x2: arrays or numbers of integer dtype whose shapes broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      ValueError: if an operand is not of integer dtype.

    The result wraps if it does not fit the dtype.

    >>> lcm(np.array([12, 18]), -8).tolist()
    [24, 72]
    """
    x, y = _integers("lcm", x1, x2)
    divisor: Any = _euclid(x, y)
    safe = lax.select(divisor == 0, lax.full_like(divisor, 1), divisor)
    return lax.div(x, safe) * y
