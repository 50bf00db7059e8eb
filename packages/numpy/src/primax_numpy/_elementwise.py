"""Elementwise functions with NumPy's promotion and broadcasting."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Array,
    any_number,
    cast,
    dtypes,
    inexact,
    library_function,
    promoted,
    typeof,
)

from ._checks import check_arrays
from ._creation import asarray

_Unary: TypeAlias = Callable[[Any], Array]
_Binary: TypeAlias = Callable[[Any, Any], Array]


def _float_function(name: str, op: Callable[..., Any], doc: str) -> _Unary:
    """A function of one operand that turns integers into floats."""

    def general(x):
        check_arrays(name, x)
        aval = typeof(x)
        dtype, weak = inexact(aval.dtype, aval.weak_type)
        return op(x if dtype == aval.dtype else cast(x, aval, dtype, weak))

    general.__name__ = name
    general.__doc__ = doc
    return library_function(general)


exp: _Unary = _float_function(
    "exp", lax.exp, "Exponential of each element; integers become floats."
)
expm1: _Unary = _float_function("expm1", lax.expm1, "``exp(x) - 1``, accurate near zero.")
log: _Unary = _float_function("log", lax.log, "Natural logarithm of each element.")
log1p: _Unary = _float_function("log1p", lax.log1p, "``log(1 + x)``, accurate near zero.")
sin: _Unary = _float_function("sin", lax.sin, "Sine of each element, in radians.")
cos: _Unary = _float_function("cos", lax.cos, "Cosine of each element, in radians.")
tan: _Unary = _float_function("tan", lax.tan, "Tangent of each element, in radians.")
tanh: _Unary = _float_function("tanh", lax.tanh, "Hyperbolic tangent of each element.")
sqrt: _Unary = _float_function("sqrt", lax.sqrt, "Non-negative square root of each element.")


def _operator_function(name: str, op: Callable[..., Any], doc: str) -> _Binary:
    """A function that is one of the arrays' operators."""

    def general(x, y, /):
        check_arrays(name, x, y)
        if not isinstance(x, Array) and not isinstance(y, Array):
            x = asarray(x)
        return op(x, y)

    general.__name__ = general.__qualname__ = name
    general.__doc__ = doc
    return general


add: _Binary = _operator_function("add", operator.add, "``x + y``.")
subtract: _Binary = _operator_function("subtract", operator.sub, "``x - y``.")
multiply: _Binary = _operator_function("multiply", operator.mul, "``x * y``.")
divide: _Binary = _operator_function(
    "divide", operator.truediv, "``x / y``; integers become floats."
)
power: _Binary = _operator_function("power", operator.pow, "``x ** y``.")
equal: _Binary = _operator_function("equal", operator.eq, "``x == y``, elementwise.")
greater: _Binary = _operator_function("greater", operator.gt, "``x > y``, elementwise.")
less: _Binary = _operator_function("less", operator.lt, "``x < y``, elementwise.")


def negative(x: Any, /) -> Array:
    """``-x``."""
    check_arrays("negative", x)
    return lax.neg(x)


def abs(x: Any, /) -> Array:
    """Absolute value of each element; real for complex ones."""
    check_arrays("abs", x)
    dtype = typeof(x).dtype
    if dtype == np.bool_ or dtypes.issubdtype(dtype, np.unsignedinteger):
        return asarray(x)
    return lax.abs(x)


@library_function
def _square(x):
    check_arrays("square", x)
    if typeof(x).dtype == np.bool_:
        x = lax.convert_element_type(x, np.int32)
    return lax.integer_pow(x, 2)


def square(x: Any, /) -> Array:
    """``x * x``; booleans count as integers."""
    return _square(x)


def broadcast_together(*xs: Any) -> list[Any]:
    """Operands repeated to their common shape."""
    shape = np.broadcast_shapes(*(typeof(x).shape for x in xs))
    n = len(shape)
    return [
        x
        if typeof(x).shape == shape
        else lax.broadcast_in_dim(x, shape, tuple(range(n - typeof(x).ndim, n)))
        for x in xs
    ]


def _extremum(name: str, op: Callable[..., Any], doc: str) -> _Binary:
    def general(x, y, /):
        check_arrays(name, x, y)
        x, y = promoted(name, x, y, any_number)
        if typeof(x).shape != typeof(y).shape:
            x, y = broadcast_together(x, y)
        return op(x, y)

    general.__name__ = general.__qualname__ = name
    general.__doc__ = doc
    return library_function(general)


maximum: _Binary = _extremum("maximum", lax.max, "The larger of two elements; NaN if either is.")
minimum: _Binary = _extremum("minimum", lax.min, "The smaller of two elements; NaN if either is.")


@library_function
def _clip(arr, low, high):
    if low is not None:
        arr = maximum(arr, low)
    return arr if high is None else minimum(arr, high)


def clip(arr: Any, /, min: Any = None, max: Any = None) -> Array:
    """Elements brought into ``[min, max]``; where ``min > max`` the result is ``max``."""
    if min is None or max is None:
        check_arrays("clip", arr)
        if min is max:
            return asarray(arr)
        return minimum(arr, max) if min is None else maximum(arr, min)
    return _clip(arr, min, max)


def isnan(x: Any, /) -> Array:
    """Whether each element is not a number."""
    check_arrays("isnan", x)
    return lax.ne(x, x)


def isfinite(x: Any, /) -> Array:
    """Whether each element is neither infinite nor NaN."""
    check_arrays("isfinite", x)
    dtype = typeof(x).dtype
    if dtypes.issubdtype(dtype, np.complexfloating):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    if not dtypes.issubdtype(dtype, np.floating):
        return lax.full_like(x, True, np.dtype(bool))
    return lax.is_finite(x)


@library_function
def _select(condition, x, y):
    check_arrays("where", condition, x, y)
    if typeof(condition).dtype != np.bool_:
        condition = lax.ne(condition, np.zeros((), typeof(condition).dtype)[()])
    x, y = promoted("where", x, y, any_number)
    if not typeof(condition).shape:
        x, y = broadcast_together(x, y)
    else:
        condition, x, y = broadcast_together(condition, x, y)
    return lax.select(condition, x, y)


def where(condition: Any, x: Any, y: Any, /) -> Array:
    """Elements of ``x`` where the condition holds, else of ``y``, broadcast together.

    The derivative of the unselected operand is zero, but if its own derivative is infinite the
    product is NaN: guard the operand itself in such cases.
    """
    return _select(condition, x, y)
