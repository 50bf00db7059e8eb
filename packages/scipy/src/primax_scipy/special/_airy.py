"""Airy functions."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise, is_complex, strong

from .._elementary import ROOT_HALF, ROOT_PI, chebyshev, choose, is_double
from . import _airy_tables as tables
from ._complex_airy import complex_airy, complex_airye
from ._operands import called, differentiable

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


def _left(zeta: Any, root: Any) -> tuple[Any, Any, Any, Any]:
    """The functions of ``-x``, by amplitudes and a phase: DLMF 9.7(ii)."""
    inverse = tables.LEFT / zeta
    t = 2 * (inverse * inverse) - 1
    p, r = chebyshev(t, tables.AI_LEFT_EVEN), chebyshev(t, tables.SLOPE_LEFT_EVEN)
    q, s = (chebyshev(t, v) / zeta for v in (tables.AI_LEFT_ODD, tables.SLOPE_LEFT_ODD))
    sine, cosine = lax.sin(zeta), lax.cos(zeta)
    scale = ROOT_HALF / ROOT_PI
    c, d = scale * (cosine + sine), scale * (sine - cosine)
    return (
        (c * p + d * q) / root,
        (d * r - c * s) * root,
        (c * q - d * p) / root,
        (c * r + d * s) * root,
    )


def _right(zeta: Any, root: Any) -> tuple[Any, Any, Any, Any]:
    """The scaled functions of positive numbers, on three intervals of ``zeta``."""
    low, middle, high = tables.RIGHT
    first, last = zeta < middle, zeta >= high
    inverse = 1 / zeta
    ends = (1 / middle, 1 / low), (1 / high, 1 / middle), (0.0, 1 / high)
    a, b, c = ((2 * inverse - (u + v)) * (1 / (v - u)) for u, v in ends)
    t = choose(first, a, choose(last, c, b))
    ai, ai1, bi, bi1 = (
        _selected_chebyshev(t, columns, first, last)
        for columns in (
            tables.AI_RIGHT, tables.AI_SLOPE_RIGHT, tables.BI_RIGHT, tables.BI_SLOPE_RIGHT,
        )
    )  # fmt: skip
    half, whole = 0.5 / ROOT_PI, 1 / ROOT_PI
    return half * ai / root, -half * ai1 * root, whole * bi / root, whole * bi1 * root


def _selected_chebyshev(t: Any, columns: Any, first: Any, last: Any) -> Any:
    """One of three Chebyshev series of each element, by Clenshaw's recurrence."""
    double = is_double(t)
    series = [values if double else values[:count] for count, values in columns]
    model, before, value = lax.full_like(t, 0.0), lax.full_like(t, 0.0), lax.full_like(t, 0.0)
    twice = t + t
    for i, (a, b, c) in reversed(list(enumerate(zip_longest(*series, fillvalue=0.0)))):
        term = choose(first, model + a, choose(last, model + c, b))
        factor = twice if i else t
        value, before = factor * value - before + term, value
    return value


@differentiable(_airy_slopes)
def _scaled_airy(x: Any) -> tuple[Any, Any, Any, Any]:
    """``Ai``, ``Ai'``, ``Bi``, ``Bi'``; for positive ``x`` times ``exp(±2/3 x^(3/2))``.

    The power series near 0, Chebyshev series of the factors of the asymptotic forms elsewhere.
    """
    near = (x < 1) & (x > -_SERIES_BELOW)
    right = (x >= 1) & (x < np.inf)
    left = (x <= -_SERIES_BELOW) & (x > -np.inf)
    size = choose(right, x, choose(left, -x, 1.0))
    root = lax.sqrt(size)
    zeta = (2 / 3) * (size * root)
    fourth = lax.sqrt(root)
    positive = _right(choose(right, zeta, 1.0), fourth)
    negative = _left(choose(left, zeta, 4.0), fourth)
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
      z: real or complex numbers, an array or a number; integers are converted to the default float
        type.

    Returns:
      Four arrays of the shape of ``z``, ``Ai``, ``Ai'``, ``Bi`` and ``Bi'``, differentiable to any
      order; holomorphic for complex numbers. Those are NaN for parts from 1e9 on.

    Raises:
      TypeError: if the argument is not an array or a number. Lists are not converted.

    Chebyshev series for real numbers, modified Bessel functions of :func:`iv` and :func:`kv` for
    complex ones (DLMF 9.6 and 9.2.11).

    >>> [round(float(x), 4) for x in airy(1.0)]
    [0.1353, -0.1591, 1.2074, 0.9324]
    """
    if is_complex(z):
        return complex_airy(strong(z))
    return called("airy", _airy, z)


@elementwise
def airye(z: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Airy functions scaled by exponentials, which do not underflow or overflow.

    With ``c = 2/3 z^(3/2)``, the results of :func:`airy` are multiplied by ``exp(c)``, ``exp(c)``,
    ``exp(-|Re c|)`` and ``exp(-|Re c|)``. The first two are NaN for negative real numbers, for
    which they are complex.

    Args:
      z: real or complex numbers, an array or a number; integers are converted to the default float
        type.

    Returns:
      Four arrays of the shape of ``z``: the scaled ``Ai``, ``Ai'``, ``Bi`` and ``Bi'``.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.

    Of complex numbers, the latter two are not holomorphic, because their factor is real.

    >>> [round(float(x), 4) for x in airye(100.0)]
    [0.0892, -0.8922, 0.1784, 1.7839]
    """
    if is_complex(z):
        return complex_airye(strong(z))
    return called("airye", _scaled, z)
