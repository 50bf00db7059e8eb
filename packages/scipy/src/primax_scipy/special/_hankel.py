"""Hankel functions, the Bessel functions of the third kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise, is_complex, strong

from .._elementary import choose
from .._functions import at_least_single
from ._bessel_kernels import sine_and_cosine_of_turns, without_zero_times
from ._bessel_orders import ordinary_pairs, split_order
from ._complex_bessel import of_complex
from ._operands import matched


def _parts(v: Any, x: Any, first: bool) -> tuple[Any, Any]:
    """Real and imaginary part; left of 0 the limits from above the cut: DLMF 10.11.5."""
    size, z, inside = split_order(v, x)
    j, _, y, _ = ordinary_pairs(size, z)
    sine, cosine = sine_and_cosine_of_turns(size)
    left = v < 0
    by_sine, by_cosine = without_zero_times(sine, y), without_zero_times(cosine, y)
    j, y = choose(left, cosine * j - by_sine, j), choose(left, by_cosine + sine * j, y)
    sine = choose(left, -sine, sine)
    by_sine, by_cosine = without_zero_times(sine, y), without_zero_times(cosine, y)
    turned = by_cosine + sine * j
    if first:
        re, im = choose(x < 0, by_sine - cosine * j, j), choose(x < 0, turned, y)
    else:
        re = choose(x < 0, 3 * (cosine * j) - by_sine, j)
        im = choose(x < 0, sine * j - by_cosine, -y)
    beyond = choose((x == np.inf) & (v == v), 0.0, lax.full_like(x, np.nan))
    return choose(inside, re, beyond), choose(inside, im, beyond)


def _hankel(name: str, v: Any, z: Any, first: bool, scaled: bool) -> Any:
    if is_complex(z) or is_complex(v):
        return of_complex(name, v, z)
    v, x = (at_least_single(strong(a)) for a in matched(name, v, z))
    re, im = _parts(v, x, first)
    if scaled:
        finite = lax.abs(x) < np.inf
        angle = choose(finite, x, 0.0)
        c, s = lax.cos(angle), lax.sin(angle)
        s = -s if first else s
        re, im = c * re - s * im, c * im + s * re
    return lax.complex(re, im)


@elementwise
def hankel1(v: ArrayLike, z: ArrayLike) -> Array:
    """Hankel function of the first kind and real order, ``jv(v, z) + 1j * yv(v, z)``.

    Args:
      v: orders, real numbers of magnitude up to 1e6; the time grows with the order.
      z: real or complex numbers; at negative ones, where the function has a cut, the values are
        those above it. At 0 the function is NaN, at infinity 0, and at complex numbers with parts
        from 1e15 on NaN.

    Returns:
      A complex array of the common shape: ``complex128`` for operands of 64 bits, ``complex64``
      otherwise.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if ``v`` is complex, or the shapes do not broadcast.

    The algorithm is that of :func:`jv`, and so are the derivatives. The function is holomorphic.

    >>> out = complex(hankel1(0.5, 1.0))
    >>> round(out.real, 4), round(out.imag, 4)
    (0.6714, -0.4311)
    """
    return _hankel("hankel1", v, z, True, False)


@elementwise
def hankel2(v: ArrayLike, z: ArrayLike) -> Array:
    """Hankel function of the second kind and real order, ``jv(v, z) - 1j * yv(v, z)``.

    Args:
      v: orders, real numbers of magnitude up to 1e6; the time grows with the order.
      z: real or complex numbers; at negative ones, where the function has a cut, the values are
        those above it. At 0 the function is NaN, at infinity 0, and at complex numbers with parts
        from 1e15 on NaN.

    Returns:
      A complex array of the common shape, as for :func:`hankel1`.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if ``v`` is complex, or the shapes do not broadcast.

    The algorithm is that of :func:`jv`, and so are the derivatives. The function is holomorphic.

    >>> out = complex(hankel2(0.5, 1.0))
    >>> round(out.real, 4), round(out.imag, 4)
    (0.6714, 0.4311)
    """
    return _hankel("hankel2", v, z, False, False)


@elementwise
def hankel1e(v: ArrayLike, z: ArrayLike) -> Array:
    """Scaled Hankel function of the first kind, ``hankel1(v, z) * exp(-1j * z)``.

    Args:
      v: orders, real numbers of magnitude up to 1e6; the time grows with the order.
      z: real or complex numbers, as for :func:`hankel1`.

    Returns:
      A complex array of the common shape, as for :func:`hankel1`.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if ``v`` is complex, or the shapes do not broadcast.

    >>> out = complex(hankel1e(0.5, 1.0))
    >>> round(out.real, 4), round(out.imag, 4)
    (0.0, -0.7979)
    """
    return _hankel("hankel1e", v, z, True, True)


@elementwise
def hankel2e(v: ArrayLike, z: ArrayLike) -> Array:
    """Scaled Hankel function of the second kind, ``hankel2(v, z) * exp(1j * z)``.

    Args:
      v: orders, real numbers of magnitude up to 1e6; the time grows with the order.
      z: real or complex numbers, as for :func:`hankel1`.

    Returns:
      A complex array of the common shape, as for :func:`hankel1`.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if ``v`` is complex, or the shapes do not broadcast.

    >>> out = complex(hankel2e(0.5, 1.0))
    >>> round(out.real, 4), round(out.imag, 4)
    (0.0, 0.7979)
    """
    return _hankel("hankel2e", v, z, False, True)
