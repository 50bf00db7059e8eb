"""Airy functions of real numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise

from .._elementary import choose, is_double
from ._bessel_kernels import (
    hankel_far,
    modified_at_infinity,
    modified_second_kind,
    power_series,
)
from ._operands import called, differentiable, in_blocks

_AI_0: Final = 0.35502805388781724
_AI_SLOPE: Final = -0.2588194037928068
_SERIES_BELOW: Final = 2.8
_ROOT_3: Final = math.sqrt(3.0)


def _power_series(x: Any) -> tuple[Any, Any, Any, Any]:
    """``Ai``, ``Ai'``, ``Bi``, ``Bi'`` near 0: DLMF 9.4."""
    cube = x * x * x
    f = g = f1 = g1 = lax.full_like(x, 0.0)
    for k in reversed(range(18 if is_double(x) else 11)):
        # Each factor is the quotient of two successive terms.
        f = 1 + f * cube * (1 / ((3 * k + 2) * (3 * k + 3)))
        g = 1 + g * cube * (1 / ((3 * k + 3) * (3 * k + 4)))
        f1 = 1 + f1 * cube * (1 / ((3 * k + 3) * (3 * k + 5)))
        g1 = 1 + g1 * cube * (1 / ((3 * k + 1) * (3 * k + 3)))
    f1, g = 0.5 * (x * x) * f1, x * g
    one, two = _AI_0 * f, _AI_SLOPE * g
    one1, two1 = _AI_0 * f1, _AI_SLOPE * g1
    return one + two, one1 + two1, _ROOT_3 * (one - two), _ROOT_3 * (one1 - two1)


def _airy_slopes(x: Any, out: Any) -> Any:
    """Airy's equation ``w'' = x w``, for functions with the scale of `_scaled_airy`."""
    ai, ai1, bi, bi1 = out
    root = lax.sqrt(choose(x > 0, x, 1.0))
    rate = choose(x > 0, root, 0.0)
    return ai1 + rate * ai, x * ai + rate * ai1, bi1 - rate * bi, x * bi - rate * bi1


@differentiable(_airy_slopes)
@in_blocks
def _scaled_airy(x: Any) -> tuple[Any, Any, Any, Any]:
    """``Ai``, ``Ai'``, ``Bi``, ``Bi'``; for positive ``x`` times ``exp(±2/3 x^(3/2))``.

    Bessel functions of orders -1/3 and 2/3: DLMF 9.6, with 10.4.2 and 10.27.2.
    """
    near = (x < 1) & (x > -_SERIES_BELOW)
    right = (x >= 1) & (x < np.inf)
    left = (x <= -_SERIES_BELOW) & (x > -np.inf)
    size = choose(right | left, lax.abs(x), 1.0)
    root = lax.sqrt(size)
    zeta = (2 / 3) * (size * root)
    order = lax.full_like(x, -1 / 3)
    z = choose(right, zeta, 1.0)
    k, k1 = modified_second_kind(order, z)
    few = z < 20
    i, i1 = power_series(order, z, right & few, 1.0)
    i = choose(few, i, modified_at_infinity(order, z, right & ~few))
    i1 = choose(few, i1, modified_at_infinity(order + 1, z, right & ~few))
    wave = (_ROOT_3 / math.pi) * lax.exp(-2 * z)
    positive = (
        root * k / (math.pi * _ROOT_3), -size * k1 / (math.pi * _ROOT_3),
        root / _ROOT_3 * (2 * i - wave * k), size / _ROOT_3 * (2 * i1 + wave * k1),
    )  # fmt: skip
    j, j1, y, y1 = hankel_far(order, zeta, left)
    negative = (
        root * (0.5 * j + (0.5 / _ROOT_3) * y), size * (0.5 * j1 + (0.5 / _ROOT_3) * y1),
        root * ((0.5 / _ROOT_3) * j - 0.5 * y), size * ((0.5 / _ROOT_3) * j1 - 0.5 * y1),
    )  # fmt: skip
    inner = choose(near, x, 0.0)
    above = choose(inner > 0, inner, 0.0)
    growth = lax.exp((2 / 3) * (above * lax.sqrt(choose(above > 0, above, 1.0))))
    ai, ai1, bi, bi1 = _power_series(inner)
    series = (ai * growth, ai1 * growth, bi / growth, bi1 / growth)
    # Scaled Ai is 0 at infinity, and the derivatives are infinite.
    limits = (0.0, -np.inf, 0.0, np.inf)
    at_minus_infinity = (0.0, np.nan, 0.0, np.nan)
    outs = []
    for a, b, c, high, low in zip(series, positive, negative, limits, at_minus_infinity):
        far = choose(x == np.inf, high, choose(x == -np.inf, low, lax.full_like(x, np.nan)))
        outs.append(choose(near, a, choose(right, b, choose(left, c, far))))
    return tuple(outs)


def _exponent(x: Any) -> Any:
    positive = (x > 0) & (x < np.inf)
    z = choose(positive, x, 1.0)
    return choose(positive, (2 / 3) * (z * lax.sqrt(z)), choose(x == np.inf, x, 0.0))


def _airy(x: Any) -> tuple[Any, Any, Any, Any]:
    ai, ai1, bi, bi1 = _scaled_airy(x)
    exponent = _exponent(x)
    # Half of the factor at a time, because the whole may overflow
    small, large = lax.exp(-exponent), lax.exp(0.5 * exponent)
    end = x == np.inf
    outs = (ai * small, ai1 * small, bi * large * large, bi1 * large * large)
    limits = (0.0, 0.0, np.inf, np.inf)
    a, b, c, d = (choose(end, limit, out) for limit, out in zip(limits, outs))
    return a, b, c, d


def _scaled(x: Any) -> tuple[Any, Any, Any, Any]:
    """Scaled ``Ai`` of negative numbers would be complex."""
    ai, ai1, bi, bi1 = _scaled_airy(x)
    return choose(x < 0, np.nan, ai), choose(x < 0, np.nan, ai1), bi, bi1


@elementwise
def airy(z: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Airy functions ``Ai`` and ``Bi`` with their derivatives.

    Args:
      z: real numbers.

    Returns:
      ``Ai``, ``Ai'``, ``Bi``, ``Bi'``, differentiable to any order.

    Raises:
      ValueError: if the argument is complex.

    >>> [round(float(x), 4) for x in airy(1.0)]
    [0.1353, -0.1591, 1.2074, 0.9324]
    """
    return called("airy", _airy, z)


@elementwise
def airye(z: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Airy functions scaled by exponentials, which do not underflow or overflow.

    With ``c = 2/3 z^(3/2)``, the results of :func:`airy` are multiplied by ``exp(c)``, ``exp(c)``,
    ``exp(-|Re c|)`` and ``exp(-|Re c|)``. The first two are NaN for negative numbers, for which
    they are complex.

    Args:
      z: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      Four arrays of the shape of ``z``: the scaled ``Ai``, ``Ai'``, ``Bi`` and ``Bi'``.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    >>> [round(float(x), 4) for x in airye(100.0)]
    [0.0892, -0.8922, 0.1784, 1.7839]
    """
    return called("airye", _scaled, z)
