"""Bessel functions of real order, and modified ones.

Those of complex numbers are in `_complex_bessel`.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, elementwise, is_complex

from .._double_precision import in_double
from .._elementary import choose
from ._bessel_kernels import (
    modified,
    modified_work,
    ordinary,
    ordinary_work,
    sine_and_cosine_of_turns,
    without_zero_times,
)
from ._complex_bessel import of_complex
from ._operands import called, differentiable, in_blocks

_LARGEST_ORDER = 1e6


def _ordinary_slopes(v: Any, x: Any, out: Any) -> Any:
    """DLMF 10.6.2."""
    j, j1, y, y1 = out
    return v / x * j - j1, j - (v + 1) / x * j1, v / x * y - y1, y - (v + 1) / x * y1


def _modified_slopes(v: Any, x: Any, out: Any) -> Any:
    """DLMF 10.29.2, for functions scaled by exponentials."""
    i, i1, k, k1 = out
    up, down = v / x, (v + 1) / x
    return up * i + i1 - i, i - down * i1 - i1, up * k - k1 + k, k1 - k - down * k1


ordinary_pairs = differentiable(None, _ordinary_slopes)(
    in_blocks(in_double(ordinary), ordinary_work)
)
modified_pairs = differentiable(None, _modified_slopes)(
    in_blocks(in_double(modified), modified_work)
)


def _is_whole(v: Any) -> Any:
    return v == lax.floor(v)


def is_odd(v: Any) -> Any:
    return lax.rem(lax.abs(v), lax.full_like(v, 2.0)) == 1


def split_order(v: Any, x: Any) -> tuple[Any, Any, Any]:
    """Absolute order and argument for the kernels, and whether they are inside of their domain.

    ``choose`` instead of ``abs`` has a derivative at order 0.
    """
    size, z = choose(v < 0, -v, v), choose(x < 0, -x, x)
    inside = (size <= _LARGEST_ORDER) & (z > 0) & (z < np.inf)
    return choose(inside, size, 0.0), choose(inside, z, 1.0), inside


def _at_zero(v: Any, x: Any, sign: float) -> Any:
    """The power series of ``J`` or ``I`` to the third power, for integral ``v >= 0`` at ``x = 0``;
    infinite for negative ``v`` that are not integral."""
    square = sign * 0.25 * (x * x)
    small: Any = choose((v < 0) & ~_is_whole(v), np.inf, lax.full_like(x, 0.0))
    size = lax.abs(v)
    for n in range(4):
        term = (0.5 * x) ** n * (1 / math.factorial(n)) * (1 + square / (n + 1))
        small = choose(size == n, term, small)
    return small


def _by_parity(v: Any, x: Any, value: Any) -> Any:
    """The value at ``x`` of a function of integral order from that at ``|x|``; else NaN."""
    left = choose(_is_whole(v), choose(is_odd(v), -value, value), np.nan)
    return choose(x < 0, left, value)


def _beyond(v: Any, x: Any, inside: Any, value: Any, at_zero: Any, at_infinity: Any) -> Any:
    """A value inside of the domain, and limits at its ends."""
    ends = lax.full_like(x, np.nan)
    ends = choose(lax.abs(x) == np.inf, at_infinity, ends)
    ends = choose(x == 0, at_zero, ends)
    ends = choose((v != v) | (lax.abs(v) > _LARGEST_ORDER), np.nan, ends)
    return choose(inside, value, ends)


def _first_kind(v: Any, x: Any) -> Any:
    size, z, inside = split_order(v, x)
    j, _, y, _ = ordinary_pairs(size, z)
    sine, cosine = sine_and_cosine_of_turns(size)
    value = choose(v < 0, cosine * j - without_zero_times(sine, y), j)
    zero = _by_parity(v, choose(v < 0, -1.0, lax.full_like(x, 1.0)), _at_zero(v, x, -1.0))
    zero = choose((v < 0) & ~_is_whole(v), np.inf, zero)
    return _beyond(v, x, inside, _by_parity(v, x, value), zero, 0.0)


def _second_kind(v: Any, x: Any) -> Any:
    size, z, inside = split_order(v, x)
    j, _, y, _ = ordinary_pairs(size, z)
    sine, cosine = sine_and_cosine_of_turns(size)
    value = choose(v < 0, without_zero_times(cosine, y) + sine * j, y)
    value = choose(x < 0, np.nan, value)
    pole = choose(cosine > 0, lax.full_like(x, -np.inf), np.inf)
    pole = choose(cosine == 0, 0.0, pole)
    zero = choose(v < 0, pole, -np.inf)
    return _beyond(v, x, inside, value, zero, choose(x < 0, np.nan, lax.full_like(x, 0.0)))


def _modified_first_kind(v: Any, x: Any, scaled: bool) -> Any:
    size, z, inside = split_order(v, x)
    i, _, k, _ = modified_pairs(size, z)
    sine, _ = sine_and_cosine_of_turns(size)
    if scaled:
        k = k * lax.exp(-2 * z)
    else:
        # Half of the factor at a time, because the whole may overflow
        half = lax.exp(0.5 * z)
        i, k = i * half * half, k * lax.exp(-z)
    value = choose(v < 0, i + (2 / math.pi) * without_zero_times(sine, k), i)
    infinite = lax.full_like(x, 0.0) if scaled else _by_parity(v, x, lax.full_like(x, np.inf))
    return _beyond(v, x, inside, _by_parity(v, x, value), _at_zero(v, x, 1.0), infinite)


def _modified_second_kind(v: Any, x: Any, scaled: bool) -> Any:
    size, z, inside = split_order(v, x)
    _, _, k, _ = modified_pairs(size, z)
    value = k if scaled else k * lax.exp(-z)
    value = choose(x < 0, np.nan, value)
    infinite = choose(x < 0, np.nan, lax.full_like(x, 0.0))
    return _beyond(v, x, inside, value, np.inf, infinite)


@elementwise
def jv(v: ArrayLike, z: ArrayLike) -> Array:
    """Bessel function of the first kind and real order.

    Args:
      v: orders, real numbers of magnitude up to 1e6; the time grows with the order.
      z: real or complex numbers. Negative real ones give NaN unless ``v`` is integral; complex ones
        have a cut there, on which the values are those above it.

    Derivatives of any order with respect to ``z``; with respect to ``v`` one in reverse mode and
    more in forward mode.

    Raises:
      ValueError: if ``v`` is complex.

    Of complex numbers, the function is computed from modified Bessel functions in the right
    half-plane (DLMF 10.27, 10.34), for parts of magnitude below 1e15, and NaN beyond. It is
    holomorphic: ``grad`` needs ``holomorphic=True``.

    >>> round(float(jv(0.5, 1.0)), 5)
    0.6714
    >>> out = complex(jv(0.5, 1.0 + 1.0j))
    >>> round(out.real, 4), round(out.imag, 4)
    (0.9679, 0.0602)
    """
    if is_complex(z) or is_complex(v):
        return of_complex("jv", v, z)
    return called("jv", _first_kind, v, z)


jn: Final = jv
"""The same as :func:`jv`."""


@elementwise
def jve(v: ArrayLike, z: ArrayLike) -> Array:
    """Exponentially scaled Bessel function of the first kind, ``exp(-|Im z|) J_v(z)``.

    The factor is 1 for real ``z``, for which the results equal those of :func:`jv`.

    Args:
      v: orders, real numbers of magnitude up to 1e6.
      z: real or complex numbers. Negative real ones give NaN unless ``v`` is integral; complex ones
        have a cut there, on which the values are those above it.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if ``v`` is complex, or the shapes do not broadcast.

    Derivatives are those of :func:`jv`.

    The factor is real, so that the function of complex numbers is not holomorphic.

    >>> round(float(jve(0.5, 1.0)), 5)
    0.6714
    """
    if is_complex(z) or is_complex(v):
        return of_complex("jve", v, z)
    return called("jve", _first_kind, v, z)


@elementwise
def yv(v: ArrayLike, z: ArrayLike) -> Array:
    """Bessel function of the second kind and real order; NaN for negative real ``z``.

    Args:
      v: orders, real numbers of magnitude up to 1e6; the time grows with the order.
      z: real or complex numbers, as for :func:`jv`; negative real ones give NaN.

    Derivatives are as for :func:`jv`.

    Raises:
      ValueError: if ``v`` is complex.

    >>> round(float(yv(0.5, 1.0)), 5)
    -0.4311
    """
    if is_complex(z) or is_complex(v):
        return of_complex("yv", v, z)
    return called("yv", _second_kind, v, z)


@elementwise
def yve(v: ArrayLike, z: ArrayLike) -> Array:
    """Exponentially scaled Bessel function of the second kind, ``exp(-|Im z|) Y_v(z)``.

    The factor is 1 for real ``z``, for which the results equal those of :func:`yv`.

    Args:
      v: orders, real numbers of magnitude up to 1e6.
      z: real or complex numbers, as for :func:`jv`; negative real ones give NaN.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if ``v`` is complex, or the shapes do not broadcast.

    Derivatives are those of :func:`yv`.

    The factor is real, so that the function of complex numbers is not holomorphic.

    >>> round(float(yve(0.5, 1.0)), 5)
    -0.4311
    """
    if is_complex(z) or is_complex(v):
        return of_complex("yve", v, z)
    return called("yve", _second_kind, v, z)


@elementwise
def iv(v: ArrayLike, z: ArrayLike) -> Array:
    """Modified Bessel function of the first kind and real order.

    Args:
      v: orders, real numbers of magnitude up to 1e6; the time grows with the order.
      z: real or complex numbers. Negative real ones give NaN unless ``v`` is integral; complex ones
        have a cut there, on which the values are those above it.

    Derivatives are as for :func:`jv`.

    Raises:
      ValueError: if ``v`` is complex.

    >>> round(float(iv(0.5, 1.0)), 5)
    0.93767
    """
    if is_complex(z) or is_complex(v):
        return of_complex("iv", v, z)
    return called("iv", lambda v, x: _modified_first_kind(v, x, False), v, z)


@elementwise
def ive(v: ArrayLike, z: ArrayLike) -> Array:
    """``exp(-|Re z|)`` times :func:`iv`, which does not overflow.

    Args:
      v: orders, real numbers.
      z: real or complex numbers. Negative real ones give NaN unless ``v`` is integral; complex ones
        have a cut there, on which the values are those above it.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if ``v`` is complex, or the shapes do not broadcast.

    The derivative with respect to real ``z`` is ``ive(v + 1, z) + (v / z - sign(z)) * ive(v, z)``.

    The factor is real, so that the function of complex numbers is not holomorphic.

    >>> round(float(ive(0.5, 1000.0)), 5)
    0.01262
    """
    if is_complex(z) or is_complex(v):
        return of_complex("ive", v, z)
    return called("ive", lambda v, x: _modified_first_kind(v, x, True), v, z)


@elementwise
def kv(v: ArrayLike, z: ArrayLike) -> Array:
    """Modified Bessel function of the second kind and real order; NaN for negative real ``z``.

    Args:
      v: orders, real numbers of magnitude up to 1e6; the time grows with the order.
      z: real or complex numbers, as for :func:`jv`; negative real ones give NaN.

    Derivatives are as for :func:`jv`.

    Raises:
      ValueError: if ``v`` is complex.

    >>> round(float(kv(0.5, 1.0)), 5)
    0.46107
    """
    if is_complex(z) or is_complex(v):
        return of_complex("kv", v, z)
    return called("kv", lambda v, x: _modified_second_kind(v, x, False), v, z)


@elementwise
def kve(v: ArrayLike, z: ArrayLike) -> Array:
    """``exp(z)`` times :func:`kv`, which does not underflow.

    Args:
      v: orders, real numbers; the function is even in them.
      z: real or complex numbers, as for :func:`jv`; 0 gives infinity and negative real ones NaN.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if ``v`` is complex, or the shapes do not broadcast.

    The derivative with respect to ``z`` is ``(1 + v / z) * kve(v, z) - kve(v + 1, z)``.

    >>> round(float(kve(0.5, 1000.0)), 5)
    0.03963
    """
    if is_complex(z) or is_complex(v):
        return of_complex("kve", v, z)
    return called("kve", lambda v, x: _modified_second_kind(v, x, True), v, z)


# Integral orders


def _check_orders(name: str, n: Any) -> None:
    if typeof(n).dtype.kind not in "iu":
        raise TypeError(
            f"{name}: orders must be integers, got {typeof(n).dtype.name}; {name[0]}v accepts "
            "real orders"
        )


def yn(n: ArrayLike, x: ArrayLike) -> Array:
    """Bessel function of the second kind and integral order.

    Args:
      n: orders, integers.
      x: real or complex numbers, as for :func:`yv`; 0 gives ``-inf`` and negative real ones NaN.

    Returns:
      An array of the common shape.

    Raises:
      TypeError: if ``n`` does not have integers, or an argument is not an array or a number.
      ValueError: if the shapes do not broadcast.

    The derivative with respect to ``x`` is ``(yn(n - 1, x) - yn(n + 1, x)) / 2``.

    >>> round(float(yn(1, 1.0)), 5)
    -0.78121
    >>> [round(float(v), 4) for v in yn(np.int32([0, 1, 2]), 2.0)]
    [0.5104, -0.107, -0.6174]
    """
    check_arrays("yn", n, x)
    _check_orders("yn", n)
    out: Array = yv(n, x)
    return out


def kn(n: ArrayLike, x: ArrayLike) -> Array:
    """Modified Bessel function of the second kind and integral order.

    Args:
      n: orders, integers; the function is even in them.
      x: real or complex numbers, as for :func:`kv`; 0 gives infinity and negative real ones NaN.

    Returns:
      An array of the common shape.

    Raises:
      TypeError: if ``n`` does not have integers, or an argument is not an array or a number.
      ValueError: if the shapes do not broadcast.

    The derivative with respect to ``x`` is ``-(kn(n - 1, x) + kn(n + 1, x)) / 2``.

    >>> round(float(kn(1, 1.0)), 5)
    0.60191
    >>> [round(float(v), 4) for v in kn(np.int32([0, 1, 2]), 2.0)]
    [0.1139, 0.1399, 0.2538]
    """
    check_arrays("kn", n, x)
    _check_orders("kn", n)
    out: Array = kv(n, x)
    return out
