"""Spherical Bessel functions."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled

from .._elementary import choose
from ._bessel_orders import is_odd, modified_pairs, ordinary_pairs
from ._operands import called
from ._polynomials import MOST_DEGREES

_PARITY: Final = {"j": 0, "y": 1, "i": 0}
"""Degrees of even functions of the argument, modulo 2."""


def _ends(kind: str, degree: Any, x: Any) -> Any:
    """Limits at 0, with two terms of the power series, and at infinity; else NaN."""
    if kind in "yk":
        zero = lax.full_like(x, -np.inf if kind == "y" else np.inf)
    else:
        square = x * x
        zero = choose(degree == 0, 1 + (square if kind == "i" else -square) / 6, 0.0)
        zero = choose(degree == 1, x / 3, choose(degree == 2, square / 15, zero))
    infinity = np.inf if kind == "i" else 0.0
    return choose(x == 0, zero, choose(lax.abs(x) == np.inf, infinity, lax.full_like(x, np.nan)))


def _pair(kind: str, n: Any, x: Any) -> list[Any]:
    """Functions of degrees ``n`` and ``n + 1``: DLMF 10.47."""
    known = (n >= 0) & (n <= MOST_DEGREES)
    inside = known & (x != 0) & (lax.abs(x) < np.inf)
    z, v = choose(inside, lax.abs(x), 1.0), choose(inside, n, 0.0) + 0.5
    scale = math.sqrt(0.5 * math.pi) / lax.sqrt(z)
    if kind in "jy":
        both = ordinary_pairs(v, z)
    else:
        i, i1, k, k1 = modified_pairs(v, z)
        half, small = lax.exp(0.5 * z), lax.exp(-z)
        both = (i * half * half, i1 * half * half, k * small, k1 * small)
    outs = []
    for k, value in enumerate(both[:2] if kind in "ji" else both[2:]):
        value = choose(inside, scale * value, _ends(kind, n + k, lax.abs(x)))
        odd = is_odd(n + k + _PARITY.get(kind, 0))
        left = choose(odd, -value, value)
        if kind == "k":  # DLMF 10.47.11 and 10.47.17
            first = choose(inside, math.pi * scale * both[k], lax.full_like(x, np.inf))
            left = choose(is_odd(n + k), value, -value) - choose(value == np.inf, 0.0, first)
        outs.append(choose(known, choose(x < 0, left, value), np.nan))
    return outs


@compiled("kind", "derivative", name="spherical_bessel")
def _spherical(n, z, *, kind, derivative):
    def value(n: Any, x: Any) -> Any:
        low, high = _pair(kind, n, x)
        if not derivative:
            return low
        # DLMF 10.51.2 and 10.51.5
        zero = x == 0
        at_zero: Any = choose(n == 1, 1 / 3, lax.full_like(x, 0.0))
        if kind in "yk":
            at_zero = lax.full_like(x, np.inf if kind == "y" else -np.inf)
        slope = n / choose(zero, 1.0, x) * low + (high if kind == "i" else -high)
        return choose(zero, at_zero, slope)

    return called(f"spherical_{kind}n", value, n, z)


def _checked(kind: str, n: Any, z: Any, derivative: Any) -> Array:
    name = f"spherical_{kind}n"
    check_arrays(name, n, z)
    if typeof(n).dtype.kind not in "iu":
        raise TypeError(f"{name}: degrees must be integers, got {typeof(n).dtype.name}")
    out: Array = _spherical(n, z, kind=kind, derivative=operator.truth(derivative))
    return out


def spherical_jn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Spherical Bessel function of the first kind, ``sqrt(π / 2z) J_(n+1/2)(z)``.

    Args:
      n: degrees, nonnegative integers up to 1e6; others give NaN.
      z: real numbers.
      derivative: return the derivative with respect to ``z``.

    It is differentiable to any order with respect to ``z``.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if ``z`` is complex.

    >>> round(float(spherical_jn(1, 2.0)), 5)
    0.4354
    """
    return _checked("j", n, z, derivative)


def spherical_yn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Spherical Bessel function of the second kind, ``sqrt(π / 2z) Y_(n+1/2)(z)``.

    Args:
      n: degrees, nonnegative integers up to 1e6; others give NaN.
      z: real numbers.
      derivative: return the derivative with respect to ``z``.

    Returns:
      An array of the common shape of ``n`` and ``z``.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if ``z`` is complex.

    It is differentiable to any order with respect to ``z``.

    >>> round(float(spherical_yn(0, 2.0)), 5)
    0.20807
    >>> round(float(spherical_yn(0, 2.0, derivative=True)), 5)
    0.35061
    """
    return _checked("y", n, z, derivative)


def spherical_in(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Modified spherical Bessel function of the first kind, ``sqrt(π / 2z) I_(n+1/2)(z)``.

    Args:
      n: degrees, nonnegative integers up to 1e6; others give NaN.
      z: real numbers.
      derivative: return the derivative with respect to ``z``.

    Returns:
      An array of the common shape of ``n`` and ``z``.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if ``z`` is complex.

    It is differentiable to any order with respect to ``z``.

    >>> round(float(spherical_in(0, 2.0)), 5)
    1.81343
    >>> round(float(spherical_in(0, 2.0, derivative=True)), 5)
    0.97438
    """
    return _checked("i", n, z, derivative)


def spherical_kn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Modified spherical Bessel function of the second kind, ``sqrt(π / 2z) K_(n+1/2)(z)``.

    Args:
      n: degrees, nonnegative integers up to 1e6; others give NaN.
      z: real numbers; negative ones give NaN.
      derivative: return the derivative with respect to ``z``.

    Returns:
      An array of the common shape of ``n`` and ``z``.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if ``z`` is complex.

    It is differentiable to any order with respect to ``z``.

    >>> round(float(spherical_kn(0, 2.0)), 5)
    0.10629
    >>> round(float(spherical_kn(0, 2.0, derivative=True)), 5)
    -0.15944
    """
    return _checked("k", n, z, derivative)
