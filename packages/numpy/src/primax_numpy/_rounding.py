"""Rounding to integers and to decimals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays, check_out
from ._creation import asarray
from ._functions import compiled, elementwise
from ._promotion import as_inexact, check_not_complex, is_complex, is_floating

_EVEN: Final = lax.RoundingMethod.TO_NEAREST_EVEN


def _rounded(name: str, op: Callable[[Any], Any], x: Any) -> Any:
    """Floats rounded; integers and booleans unchanged."""
    check_not_complex(name, x, TypeError)
    return op(x) if is_floating(x) else x


@elementwise
def floor(x: ArrayLike, /) -> Array:
    """Largest integer not above each element, in its dtype; the derivative is zero.

    Args:
      x: an array or a number of real dtype; integers and booleans are returned unchanged.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is 0 everywhere.

    >>> floor(np.array([-1.5, 0.2, 2.0], np.float32))
    Array([-2.,  0.,  2.], dtype=float32)
    """
    return _rounded("floor", lax.floor, x)


@elementwise
def ceil(x: ArrayLike, /) -> Array:
    """Smallest integer not below each element, in its dtype; the derivative is zero.

    Args:
      x: an array or a number of real dtype; integers and booleans are returned unchanged.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is 0 everywhere.

    >>> ceil(np.array([-1.5, 0.2, 2.0], np.float32))
    Array([-1.,  1.,  2.], dtype=float32)
    """
    return _rounded("ceil", lax.ceil, x)


def toward_zero(x: Any) -> Any:
    """Floats truncated toward zero."""
    return lax.select(x < 0, lax.ceil(x), lax.floor(x))


@elementwise
def trunc(x: ArrayLike) -> Array:
    """Each element truncated toward zero, in its dtype; the derivative is zero.

    Args:
      x: an array or a number of real dtype; integers and booleans are returned unchanged.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is 0 everywhere.

    >>> trunc(np.array([-1.5, 0.2, 2.7], np.float32))
    Array([-1.,  0.,  2.], dtype=float32)
    """
    return _rounded("trunc", toward_zero, x)


@elementwise
def rint(x: ArrayLike, /) -> Array:
    """Nearest integer to each element, halves to even; integers become floats.

    Args:
      x: an array or a number; integers and booleans are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats and complex numbers.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is 0 everywhere.

    >>> rint(np.array([-1.5, 0.5, 2.7], np.float32))
    Array([-2.,  0.,  3.], dtype=float32)
    """
    if not dtypes.issubdtype(typeof(x).dtype, np.inexact):
        x = as_inexact(x)
        return lax.convert_element_type(x, typeof(x).dtype)
    return _to_decimals(x, 0)


@compiled("decimals")
def _round(a, *, decimals):
    return _to_decimals(a, decimals)


def _to_decimals(x: Any, decimals: int) -> Any:
    aval = typeof(x)
    if is_complex(x):
        parts = lax.real(x), lax.imag(x)
        return lax.complex(*[_to_decimals(p, decimals) for p in parts])
    if not decimals:
        return lax.round(x, _EVEN)
    if aval.dtype == dtypes.f16:  # a large number times a power of 10 overflows
        x = lax.convert_element_type(x, dtypes.f32)
    # Both powers of 10 and their reciprocals are normal numbers.
    most = int(math.log10(float(dtypes.finfo(typeof(x).dtype).max))) - 1
    out: Any
    if decimals > most:
        out = x
    elif decimals > 0:
        scaled = x * 10.0**decimals
        # A number whose multiple overflows has no decimals.
        out = lax.select(lax.is_finite(scaled), lax.round(scaled, _EVEN) / 10.0**decimals, x)
    elif decimals >= -most:
        out = lax.round(x / 10.0**-decimals, _EVEN) * 10.0**-decimals
    else:
        out = x * 0.0  # NaN for infinities and NaN
    return out if typeof(out).dtype == aval.dtype else lax.convert_element_type(out, aval.dtype)


@one_call("decimals")
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Elements rounded to a number of decimals, halves to even.

    Args:
      a: an array or a number.
      decimals: the number of decimals; negative numbers round floats to powers of 10.
      out: unsupported.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      ValueError: if ``a`` is boolean.
      NotImplementedError: if ``a`` is of integer dtype and ``decimals`` is negative.

    The derivative is 0 everywhere.

    >>> round(np.array([0.5, 1.5, 2.5], np.float32)).tolist()
    [0.0, 2.0, 2.0]
    """
    check_arrays("round", a)
    check_out("round", out)
    decimals = operator.index(decimals)
    dtype = typeof(a).dtype
    if dtype == np.bool_:
        raise ValueError("round does not support booleans: they have no decimals")
    if dtypes.issubdtype(dtype, np.integer):
        if decimals < 0:
            raise NotImplementedError(
                "round of integers to negative decimals is not supported; convert them to floats "
                "first"
            )
        return asarray(a)
    return _round(a, decimals=decimals)


around = round
