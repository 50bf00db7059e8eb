"""Piecewise activations. Each docstring states the derivative at the kinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import custom_jvp, lax
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise

from ._functions import with_float


@custom_jvp
def _positive_part(x: Any) -> Any:
    return pnp.maximum(x, 0)


@_positive_part.defjvp
def _positive_part_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    # The derivative at 0 is 0; that of a maximum would be one half.
    return _positive_part(x), lax.select(x > 0, t, lax.full_like(t, 0))


@elementwise
def relu(x: ArrayLike) -> Array:
    """Positive part, ``max(x, 0)``; its derivative at 0 is 0 (Nair and Hinton, 2010).

    Args:
      x: an array or a number of any numeric dtype; integers remain integers.

    Returns:
      An array of the shape of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> relu(np.array([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """
    if not dtypes.issubdtype(typeof(x).dtype, np.inexact):
        return pnp.maximum(x, 0)
    return _positive_part(x)


def piecewise(
    x: Any, low: float, high: float, inner: Callable[[Any], Any], below: Any, above: Any
) -> Any:
    """A piecewise function: ``below`` up to ``low``, ``above`` from ``high`` on, ``inner`` between.

    Args:
      below, above: numbers, or the array ``x``.
    """
    low_part, high_part = x <= low, x >= high
    # The inner function is evaluated at 0 where it is not selected: its derivative might be
    # infinite.
    safe = lax.select(lax.bitwise_or(low_part, high_part), lax.full_like(x, 0), x)
    inside = lax.select(low_part, _like(x, below), inner(safe))
    return lax.select(high_part, _like(x, above), inside)


def _like(x: Any, value: Any) -> Any:
    return value if value is x else lax.full_like(x, value)


@elementwise
def relu6(x: ArrayLike) -> Array:
    """Elements clamped to ``[0, 6]``; the derivative is 0 at both ends (Howard et al., 2017).

    Args:
      x: an array or a number; integers and booleans become floats.

    Returns:
      An array of the shape of ``x``; floats retain their dtype.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> relu6(np.array([-1.0, 2.5, 8.0])).tolist()
    [0.0, 2.5, 6.0]
    """
    x = with_float("relu6", x)
    return piecewise(x, 0.0, 6.0, lambda x: x, 0.0, 6.0)


@elementwise
def hard_sigmoid(x: ArrayLike) -> Array:
    """Linear from 0 at -3 to 1 at 3, constant outside; the derivative is 0 at both ends.

    Args:
      x: an array or a number; integers and booleans become floats.

    Returns:
      An array of the shape of ``x``; floats retain their dtype.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    It is a piecewise linear function with the shape of :func:`sigmoid`.

    >>> hard_sigmoid(np.array([-4.0, 0.0, 1.5])).tolist()
    [0.0, 0.5, 0.75]
    """
    x = with_float("hard_sigmoid", x)
    return piecewise(x, -3.0, 3.0, lambda x: (x + 3.0) * (1 / 6), 0.0, 1.0)


@elementwise
def hard_silu(x: ArrayLike) -> Array:
    """``x * hard_sigmoid(x)``: 0 up to -3 and ``x`` from 3 on (Howard et al., 2019).

    The derivative is 0 at -3 and 1 at 3.

    Args:
      x: an array or a number; integers and booleans become floats.

    Returns:
      An array of the shape of ``x``; floats retain their dtype.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> hard_silu(np.array([-4.0, 1.5, 4.0])).tolist()
    [0.0, 1.125, 4.0]
    """
    x = with_float("hard_silu", x)
    return piecewise(x, -3.0, 3.0, lambda x: x * ((x + 3.0) * (1 / 6)), 0.0, x)


hard_swish: Final = hard_silu


@elementwise
def hard_tanh(x: ArrayLike) -> Array:
    """Elements clamped to ``[-1, 1]``; the derivative at both ends is 1.

    Args:
      x: an array or a number of any numeric dtype; integers remain integers.

    Returns:
      An array of the shape of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    The derivative is 0 outside of the interval, and 1 within.

    >>> hard_tanh(np.array([-3.0, 0.5, 3.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    dtype = typeof(x).dtype
    if dtype == np.bool_:
        return pnp.minimum(x, 1)
    out = pnp.where(x > 1, 1, x)
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return out
    return pnp.where(x < -1, -1, out)


@elementwise
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, ``x`` from 1 on, and the parabola ``(x + 1)**2 / 4`` between them.

    It is the integral of :func:`sparse_sigmoid`.

    Args:
      x: an array or a number; integers and booleans become floats.

    Returns:
      An array of the shape of ``x``; floats retain their dtype.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> sparse_plus(np.array([-2.0, 0.0, 3.0])).tolist()
    [0.0, 0.25, 3.0]
    """
    x = with_float("sparse_plus", x)
    return piecewise(x, -1.0, 1.0, lambda x: lax.square(x + 1.0) / 4.0, 0.0, x)


@elementwise
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Linear from 0 at -1 to 1 at 1, constant outside; the derivative at both ends is one quarter.

    Args:
      x: an array or a number; integers and booleans become floats.

    Returns:
      An array of the shape of ``x``; floats retain their dtype.

    Raises:
      ValueError: if ``x`` is complex.
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> sparse_sigmoid(np.array([-2.0, 0.5, 3.0])).tolist()
    [0.0, 0.75, 1.0]
    """
    return 0.5 * pnp.clip(with_float("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


# Exponential for negative arguments


def _exponential_left(x: Any, scaled: Callable[[Any], Any]) -> Any:
    positive = x > 0
    safe = lax.select(positive, lax.full_like(x, 0), x)
    return pnp.where(positive, x, scaled(safe))


@elementwise
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """``x`` where positive, else ``alpha * (exp(x) - 1)`` (Clevert et al., 2016).

    Args:
      x: an array; integers become floats.
      alpha: the negated limit at minus infinity, a number or an array. It is also the derivative
        at 0.

    Returns:
      An array of the common shape of ``x`` and ``alpha``.

    Raises:
      TypeError: if an argument is not an array or a number.

    >>> elu(np.array([0.0, 2.0]), alpha=0.5).tolist()
    [0.0, 2.0]
    >>> np.float64(elu(np.array([-1.0, -np.inf]))).round(4).tolist()
    [-0.6321, -1.0]
    """
    x = with_float("elu", x)
    return _exponential_left(x, lambda x: alpha * lax.expm1(x))


@elementwise
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """``x`` where positive, else ``alpha * (exp(x / alpha) - 1)`` (Barron, 2017).

    Args:
      x: an array; integers become floats.
      alpha: the negated limit at minus infinity, a number or an array. The derivative at 0 is
        always 1.

    Returns:
      An array of the common shape of ``x`` and ``alpha``.

    Raises:
      TypeError: if an argument is not an array or a number.

    >>> np.float64(celu(np.array([-1.0, 0.0, 2.0]), alpha=0.5)).round(4).tolist()
    [-0.4323, 0.0, 2.0]
    """
    x = with_float("celu", x)
    return _exponential_left(x, lambda x: alpha * pnp.expm1(x / alpha))


_SELU_ALPHA: Final = 1.6732632423543772848170429916717
_SELU_SCALE: Final = 1.0507009873554804934193349852946


@elementwise
def selu(x: ArrayLike) -> Array:
    """Scaled exponential linear unit, ``scale * elu(x, alpha)``.

    The two constants preserve mean 0 and variance 1 of activations through layers (Klambauer et
    al., 2017). The derivative at 0 is the left derivative, 1.758.

    Args:
      x: an array or a number; integers and booleans become floats.

    Returns:
      An array of the shape of ``x``; floats retain their dtype.

    Raises:
      TypeError: if ``x`` is not an array or a number. Lists are not converted.

    >>> np.float64(selu(np.array([-1.0, 0.0, 1.0]))).round(4).tolist()
    [-1.1113, 0.0, 1.0507]
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@elementwise
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """``x`` where nonnegative, else ``negative_slope * x`` (Maas et al., 2013).

    Args:
      x: an array or a number.
      negative_slope: a number or an array. The derivative at 0 is 1.

    Returns:
      An array of the common shape of the arguments, in their promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number.

    >>> leaky_relu(np.array([-2.0, 3.0]), 0.5).tolist()
    [-1.0, 3.0]
    """
    return pnp.where(x >= 0, x, negative_slope * x)
