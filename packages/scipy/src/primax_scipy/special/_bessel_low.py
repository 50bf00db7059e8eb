"""Bessel functions of orders 0 and 1, by Chebyshev series."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise

from .._elementary import ROOT_HALF, bounded, chebyshev, choose
from . import _bessel_tables as tables
from ._operands import called
from ._sines import sine_and_cosine

# Functions of the first and second kind


def _in_phase(x: Any, order: int) -> tuple[Any, Any]:
    """``J`` and ``Y`` from 8 on, by amplitude and phase."""
    inverse = 1 / x
    t = 128 * (inverse * inverse) - 1
    p = chebyshev(t, (tables.P0_FAR, tables.P1_FAR)[order])
    q = inverse * chebyshev(t, (tables.Q0_FAR, tables.Q1_FAR)[order])
    sine, cosine = sine_and_cosine(x)
    # cos and sin of x - π/4 or x - 3π/4
    even, odd = ROOT_HALF * (cosine + sine), ROOT_HALF * (sine - cosine)
    c, s = (even, odd) if order == 0 else (odd, -even)
    amplitude = math.sqrt(2 / math.pi) / lax.sqrt(x)
    return amplitude * (p * c - q * s), amplitude * (p * s + q * c)


def _near_parts(x: Any) -> tuple[Any, Any, Any]:
    near = x < 8
    low = choose(near, x, 1.0)
    return near, low, low * low * (1 / 32) - 1


def _first_kind(x: Any, order: int) -> Any:
    size = lax.abs(x)
    near, low, t = _near_parts(size)
    value = chebyshev(t, (tables.J0_NEAR, tables.J1_NEAR)[order])
    far, _ = _in_phase(choose(near | (size == np.inf), 8.0, size), order)
    out = choose(near, low * value if order else value, choose(size == np.inf, 0.0, far))
    out = choose((x < 0) & (order == 1), -out, out)
    return choose(x != x, x, out)


def _second_kind(x: Any, order: int) -> Any:
    near, low, t = _near_parts(x)
    low = choose(low > 0, low, 1.0)
    log = lax.log(0.5 * low)
    first = chebyshev(t, (tables.J0_NEAR, tables.J1_NEAR)[order])
    if order == 0:
        value = (2 / math.pi) * (log * first) + chebyshev(t, tables.Y0_NEAR)
    else:
        rest = (2 / math.pi) * (log * first) + chebyshev(t, tables.Y1_NEAR)
        value = low * rest - (2 / math.pi) / low
    _, far = _in_phase(choose(near | (x == np.inf), 8.0, x), order)
    out = choose(near, value, choose(x == np.inf, 0.0, far))
    return choose(x > 0, out, choose(x == 0, -np.inf, lax.full_like(x, np.nan)))


_j0 = custom_jvp(lambda x: _first_kind(x, 0))
_j1 = custom_jvp(lambda x: _first_kind(x, 1))
_y0 = custom_jvp(lambda x: _second_kind(x, 0))
_y1 = custom_jvp(lambda x: _second_kind(x, 1))


@_j0.defjvp
def _j0_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _j0(x), -t * _j1(x)


@_j1.defjvp
def _j1_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = _j1(x)
    zero = x == 0
    ratio = choose(zero, 0.5, y / choose(zero, 1.0, x))
    return y, t * (_j0(x) - ratio)


@_y0.defjvp
def _y0_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _y0(x), -t * _y1(x)


@_y1.defjvp
def _y1_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = _y1(x)
    return y, t * (_y0(x) - y / x)


@elementwise
def j0(x: ArrayLike) -> Array:
    """Bessel function of the first kind and order 0, for real numbers.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The function is even and tends to 0. The derivative is ``-j1(x)``.

    >>> round(float(j0(1.0)), 5)
    0.7652
    >>> [round(float(v), 4) for v in j0(np.float32([0.0, -1.0, 10.0]))]
    [1.0, 0.7652, -0.2459]
    """
    return called("j0", _j0, x)


@elementwise
def j1(x: ArrayLike) -> Array:
    """Bessel function of the first kind and order 1, for real numbers.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The function is odd and tends to 0. The derivative is ``j0(x) - j1(x) / x``, and 1/2 at 0.

    >>> round(float(j1(1.0)), 5)
    0.44005
    >>> [round(float(v), 4) for v in j1(np.float32([0.0, -1.0, 10.0]))]
    [0.0, -0.4401, 0.0435]
    """
    return called("j1", _j1, x)


@elementwise
def y0(x: ArrayLike) -> Array:
    """Bessel function of the second kind and order 0; ``-inf`` at 0, NaN for negative numbers.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``-y1(x)``.

    >>> round(float(y0(1.0)), 5)
    0.08826
    >>> [round(float(v), 4) for v in y0(np.float32([0.0, 2.0, -1.0]))]
    [-inf, 0.5104, nan]
    """
    return called("y0", _y0, x)


@elementwise
def y1(x: ArrayLike) -> Array:
    """Bessel function of the second kind and order 1; ``-inf`` at 0, NaN for negative numbers.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``y0(x) - y1(x) / x``.

    >>> round(float(y1(1.0)), 5)
    -0.78121
    >>> [round(float(v), 4) for v in y1(np.float32([0.0, 2.0, -1.0]))]
    [-inf, -0.107, nan]
    """
    return called("y1", _y1, x)


# Modified functions of the second kind


def _modified(x: Any, order: int, scaled: bool) -> Any:
    near = x < 2
    low = choose(near & (x > 0), x, 1.0)
    t = low * low * 0.5 - 1
    log = lax.log(0.5 * low)
    if order == 0:
        value = chebyshev(t, tables.K0_NEAR) - log * chebyshev(t, tables.I0_NEAR)
    else:
        rest = chebyshev(t, tables.K1_NEAR) + log * chebyshev(t, tables.I1_NEAR)
        value = low * rest + 1 / low
    high = choose(near, 2.0, x)
    far = chebyshev(4 / high - 1, (tables.K0_FAR, tables.K1_FAR)[order]) / lax.sqrt(high)
    if scaled:
        value = value * lax.exp(low)
    else:
        far = far * lax.exp(-high)
    out = choose(near, value, far)
    return choose(
        x > 0, bounded(out, 0.0, np.inf), choose(x == 0, np.inf, lax.full_like(x, np.nan))
    )


_k0 = custom_jvp(lambda x: _modified(x, 0, False))
_k1 = custom_jvp(lambda x: _modified(x, 1, False))
_k0e = custom_jvp(lambda x: _modified(x, 0, True))
_k1e = custom_jvp(lambda x: _modified(x, 1, True))


@_k0.defjvp
def _k0_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _k0(x), -t * _k1(x)


@_k1.defjvp
def _k1_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = _k1(x)
    return y, -t * (_k0(x) + y / x)


@_k0e.defjvp
def _k0e_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = _k0e(x)
    return y, t * (y - _k1e(x))


@_k1e.defjvp
def _k1e_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = _k1e(x)
    return y, t * (y - _k0e(x) - y / x)


@elementwise
def k0(x: ArrayLike) -> Array:
    """Modified Bessel function of the second kind and order 0; infinite at 0, NaN for negative
    numbers.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. It underflows for large ``x``;
      :func:`k0e` does not.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``-k1(x)``.

    >>> round(float(k0(1.0)), 5)
    0.42102
    >>> [round(float(v), 4) for v in k0(np.float32([0.0, 2.0, -1.0]))]
    [inf, 0.1139, nan]
    """
    return called("k0", _k0, x)


@elementwise
def k1(x: ArrayLike) -> Array:
    """Modified Bessel function of the second kind and order 1; infinite at 0, NaN for negative
    numbers.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. It underflows for large ``x``;
      :func:`k1e` does not.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``-k0(x) - k1(x) / x``.

    >>> round(float(k1(1.0)), 5)
    0.60191
    >>> [round(float(v), 4) for v in k1(np.float32([0.0, 2.0, -1.0]))]
    [inf, 0.1399, nan]
    """
    return called("k1", _k1, x)


@elementwise
def k0e(x: ArrayLike) -> Array:
    """``exp(x)`` times :func:`k0`, which does not underflow.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. It is infinite at 0, and NaN for
      negative numbers.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``k0e(x) - k1e(x)``.

    >>> round(float(k0e(1000.0)), 5)
    0.03963
    >>> [round(float(v), 4) for v in k0e(np.float32([0.0, 2.0, -1.0]))]
    [inf, 0.8416, nan]
    """
    return called("k0e", _k0e, x)


@elementwise
def k1e(x: ArrayLike) -> Array:
    """``exp(x)`` times :func:`k1`, which does not underflow.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. It is infinite at 0, and NaN for
      negative numbers.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``k1e(x) * (1 - 1 / x) - k0e(x)``.

    >>> round(float(k1e(1000.0)), 5)
    0.03965
    >>> [round(float(v), 4) for v in k1e(np.float32([0.0, 2.0, -1.0]))]
    [inf, 1.0335, nan]
    """
    return called("k1e", _k1e, x)
