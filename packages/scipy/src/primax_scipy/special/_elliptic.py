"""Legendre's elliptic integrals, and Jacobi's elliptic functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise

from .._elementary import choose, is_double
from ._carlson import first_kind, second_kind
from ._operands import called, differentiable


def _geometric_means(b: Any) -> tuple[Any, Any]:
    """The arithmetic-geometric mean of 1 and ``b``, and the sum of ``2^(n-1) c_n²``, ``n >= 1``:
    DLMF 19.8."""
    eps = float(dtypes.finfo(typeof(b).dtype).eps)

    def going(state: Any) -> Any:
        i, a, b, _, _ = state
        # The mean converges quadratically.
        far = lax.abs(a - b) > math.sqrt(eps) * 0.5 * a
        return (i < 40) & lax.reduce_or(far, tuple(range(far.ndim)))

    def step(state: Any) -> Any:
        i, a, b, power, total = state
        c = 0.5 * (a - b)
        return i + 1, 0.5 * (a + b), lax.sqrt(a * b), 2 * power, total + power * (c * c)

    one = lax.full_like(b, 1.0)
    start = (0, one, b, one, lax.full_like(b, 0.0))
    _, a, b, power, total = lax.while_loop(going, step, start)
    c = 0.5 * (a - b)
    return 0.5 * (a + b), total + power * (c * c)


def _zero(x: Any) -> Any:
    return lax.full_like(x, 0.0)


def _one(x: Any) -> Any:
    return lax.full_like(x, 1.0)


@differentiable(lambda p, _: -second_kind(_zero(p), _one(p), p) / 6)
def _complete_first(p: Any) -> Any:
    """``K`` of the complementary parameter."""
    plain = (p > 0) & (p < np.inf)
    mean, _ = _geometric_means(lax.sqrt(choose(plain, p, 1.0)))
    ends = choose(p == 0, np.inf, choose(p == np.inf, 0.0, lax.full_like(p, np.nan)))
    return choose(plain, (0.5 * math.pi) / mean, ends)


def _complete_second_slope(m: Any, _: Any) -> Any:
    return -second_kind(_zero(m), 1 - m, _one(m)) / 6


@differentiable(_complete_second_slope)
def _complete_second(m: Any) -> Any:
    plain = (m < 1) & (m > -np.inf)
    inner = choose(plain, m, 0.0)
    mean, total = _geometric_means(lax.sqrt(1 - inner))
    value = (0.5 * math.pi) * (1 - 0.5 * inner - total) / mean
    return choose(plain, value, choose(m == 1, 1.0, choose(m < 1, np.inf, m * np.nan)))


@elementwise
def ellipkm1(p: ArrayLike) -> Array:
    """Complete elliptic integral of the first kind of ``1 - p``, accurate for small ``p``.

    Args:
      p: real numbers; 0 gives infinity, negative ones NaN.

    Returns:
      An array of the shape of ``p``, and of its dtype for floats.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The values agree with ``ellipk(1 - p)``, where the subtraction rounds small ``p`` to 0.

    >>> round(float(ellipkm1(1e-30)), 4)
    35.9251
    >>> round(float(ellipkm1(0.5)), 4)
    1.8541
    """
    return called("ellipkm1", _complete_first, p)


@elementwise
def ellipk(m: ArrayLike) -> Array:
    """Complete elliptic integral of the first kind, by the arithmetic-geometric mean.

    Args:
      m: the parameter, the square of the modulus; 1 gives infinity, larger numbers NaN.

    Derivatives of two orders in both modes, of more in forward mode.

    Raises:
      ValueError: if the argument is complex.

    >>> round(float(ellipk(0.5)), 5)
    1.85407
    """
    return called("ellipk", lambda m: _complete_first(1 - m), m)


@elementwise
def ellipe(m: ArrayLike) -> Array:
    """Complete elliptic integral of the second kind, by the arithmetic-geometric mean.

    Args:
      m: the parameter, the square of the modulus; larger numbers than 1 give NaN.

    Derivatives of two orders in both modes, of more in forward mode.

    Raises:
      ValueError: if the argument is complex.

    >>> round(float(ellipe(0.5)), 5)
    1.35064
    """
    return called("ellipe", _complete_second, m)


# Incomplete integrals


def _reduced(phi: Any) -> tuple[Any, Any, Any]:
    """The number of half turns, sine, and squared cosine of the rest."""
    finite = lax.abs(phi) < np.inf
    angle = choose(finite, phi, 0.0)
    turns = lax.floor(angle / math.pi + 0.5)
    odd = lax.rem(lax.abs(turns), lax.full_like(turns, 2.0)) == 1
    s, c = lax.sin(angle), lax.cos(angle)
    return turns, choose(odd, -s, s), c * c


def _first_by_parameter(phi: Any, m: Any, _: Any) -> Any:
    turns, s, c2 = _reduced(phi)
    square = s * s
    part = s * square * second_kind(c2, _one(m), c2 + (1 - m) * square)
    whole = choose(turns == 0, 0.0, turns) * second_kind(_zero(m), _one(m), 1 - m)
    return part / 6 + choose(turns == 0, 0.0, whole) / 3


def _second_by_parameter(phi: Any, m: Any, _: Any) -> Any:
    turns, s, c2 = _reduced(phi)
    square = s * s
    part = s * square * second_kind(c2, c2 + (1 - m) * square, _one(m))
    whole = turns * second_kind(_zero(m), 1 - m, _one(m))
    return -part / 6 - choose(turns == 0, 0.0, whole) / 3


def _delta(phi: Any, m: Any) -> Any:
    s, c = lax.sin(phi), lax.cos(phi)
    return lax.sqrt(c * c + (1 - m) * (s * s))


@differentiable(lambda phi, m, _: 1 / _delta(phi, m), _first_by_parameter)
def _incomplete_first(phi: Any, m: Any) -> Any:
    turns, s, c2 = _reduced(phi)
    inside = (m <= 1) & (m > -np.inf) & (lax.abs(phi) < np.inf)
    parameter = choose(inside, m, 0.0)
    value = s * first_kind(c2, c2 + (1 - parameter) * (s * s), _one(s))
    whole = 2 * turns * _complete_first(1 - parameter)
    value = value + choose(turns == 0, 0.0, whole)
    # cos² of the nearest number to π/2 is not 0.
    value = choose((m == 1) & (c2 < 1e-30), lax.sign(phi) * np.inf, value)
    ends = choose((lax.abs(phi) == np.inf) & (m <= 1), phi, phi * np.nan)
    ends = choose((m == -np.inf) & (lax.abs(phi) < np.inf), 0.0, ends)
    return choose(inside, value, ends)


@differentiable(lambda phi, m, _: _delta(phi, m), _second_by_parameter)
def _incomplete_second(phi: Any, m: Any) -> Any:
    turns, s, c2 = _reduced(phi)
    inside = (m <= 1) & (m > -np.inf) & (lax.abs(phi) < np.inf)
    parameter = choose(inside, m, 0.0)
    d2 = c2 + (1 - parameter) * (s * s)
    one = _one(s)
    # For small Δ both terms are large; this form has no cancellation: DLMF 19.25.10.
    steep = (parameter > 0.5) & (c2 < 0.5)
    first = first_kind(c2, d2, one)
    plain = s * (first - parameter * (s * s) / 3 * second_kind(c2, d2, one))
    cosine = lax.sqrt(c2)
    safe = choose(d2 > 0, d2, 1.0)
    size = lax.abs(s)
    rest = (1 - parameter) * (first + parameter * (s * s) / 3 * second_kind(c2, one, safe))
    other = s * rest + choose(s < 0, -one, one) * parameter * size * cosine / lax.sqrt(safe)
    value = choose(steep & (d2 > 0), other, plain)
    value = choose((parameter == 1), s, value)
    whole = 2 * turns * _complete_second(parameter)
    value = value + choose(turns == 0, 0.0, whole)
    ends = choose((lax.abs(phi) == np.inf) & (m <= 1), phi, phi * np.nan)
    ends = choose((m == -np.inf) & (lax.abs(phi) < np.inf), np.inf, ends)
    return choose(inside, value, ends)


@elementwise
def ellipkinc(phi: ArrayLike, m: ArrayLike) -> Array:
    """Incomplete elliptic integral of the first kind, by Carlson's integrals.

    Args:
      phi: amplitudes, real numbers.
      m: the parameter, the square of the modulus; larger numbers than 1 give NaN.

    Derivatives of two orders in both modes, of more in forward mode.

    Raises:
      ValueError: if an argument is complex.

    >>> round(float(ellipkinc(1.0, 0.5)), 5)
    1.08322
    """
    return called("ellipkinc", _incomplete_first, phi, m)


@elementwise
def ellipeinc(phi: ArrayLike, m: ArrayLike) -> Array:
    """Incomplete elliptic integral of the second kind, by Carlson's integrals.

    Args:
      phi: amplitudes, real numbers.
      m: the parameter, the square of the modulus; larger numbers than 1 give NaN.

    Derivatives of two orders in both modes, of more in forward mode.

    Raises:
      ValueError: if an argument is complex.

    >>> round(float(ellipeinc(1.0, 0.5)), 5)
    0.92733
    """
    return called("ellipeinc", _incomplete_second, phi, m)


# Jacobi's functions


def _by_argument(u: Any, m: Any, out: Any) -> Any:
    sn, cn, dn, _ = out
    return cn * dn, -sn * dn, -m * (sn * cn), dn


def _by_modulus(u: Any, m: Any, out: Any) -> Any:
    """Derivatives of the equation ``F(ph, m) = u``."""
    sn, cn, dn, ph = out
    slope = -dn * _first_by_parameter(ph, m, None)
    return cn * slope, -sn * slope, -sn * (0.5 * sn + m * (cn * slope)) / dn, slope


def _hyperbolic(x: Any) -> tuple[Any, Any, Any, Any]:
    """The limits for ``m = 1``: DLMF 22.5(ii)."""
    inverse = 1 / lax.cosh(x)
    return lax.tanh(x), inverse, inverse, 2 * lax.atan(lax.tanh(0.5 * x))


@differentiable(_by_argument, _by_modulus)
def _jacobi(u: Any, m: Any) -> tuple[Any, Any, Any, Any]:
    """Descending Landen transformation: DLMF 22.7(i), and 22.20(ii) for the angle."""
    inside = (m >= 0) & (m <= 1) & (lax.abs(u) < np.inf)
    last = m == 1
    parameter = choose(inside & ~last, m, 0.0)
    x = choose(inside, u, 0.0)

    def down(means: Any, _: Any) -> tuple[Any, Any]:
        a, b = means
        mean = 0.5 * (a + b)
        return (mean, lax.sqrt(a * b)), (0.5 * (a - b) / mean, b / mean)

    def up(functions: Any, step: Any) -> tuple[Any, None]:
        """DLMF 22.7.1 to 22.7.3; ``e`` is ``1 - dn``. Corrections lose less than products."""
        sn, cn, dn, e = functions
        ratio, rest = step
        square = ratio * (sn * sn)
        scale = 1 / (1 + square)
        change = (e + square) * scale
        cosine = choose(change < 0.5, cn - cn * change, cn * (dn * scale))
        sine = sn + sn * ((ratio - square) * scale)
        return (sine, cosine, (rest + ratio * (cn * cn)) * scale, 2 * square * scale), None

    # Loops, because XLA would repeat written-out steps for each of the results.
    start = _one(m), lax.sqrt(1 - parameter)
    (a, _), steps = lax.scan(down, start, None, length=7 if is_double(m) else 5)
    angle = a * x
    first = lax.sin(angle), lax.cos(angle), _one(m), _zero(m)
    (sn, cn, _, _), _ = lax.scan(up, first, steps, reverse=True)
    # The amplitude is in the same quadrant as the angle.
    ph = lax.atan2(sn, cn)
    ph = ph + (2 * math.pi) * lax.floor((angle - ph) * (0.5 / math.pi) + 0.5)
    dn = lax.sqrt(cn * cn + (1 - parameter) * (sn * sn))
    limits = lax.cond(
        lax.reduce_or(last, tuple(range(typeof(m).ndim))), _hyperbolic, lambda x: (x,) * 4, x
    )
    outs = (choose(last, limit, v) for limit, v in zip(limits, (sn, cn, dn, ph)))
    a, b, c, d = (choose(inside, v, np.nan) for v in outs)
    return a, b, c, d


@elementwise
def ellipj(u: ArrayLike, m: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Jacobi's elliptic functions ``sn``, ``cn``, ``dn``, and the amplitude ``ph``.

    Args:
      u: arguments, real numbers.
      m: the parameter from 0 to 1, the square of the modulus; others give NaN.

    Returns:
      A tuple of four arrays; ``ph`` is the inverse of :func:`ellipkinc` with respect to ``phi``.

    Derivatives of two orders in both modes, of more in forward mode.

    Raises:
      ValueError: if an argument is complex.

    >>> [round(float(x), 4) for x in ellipj(0.5, 0.5)]
    [0.4708, 0.8823, 0.943, 0.4901]
    """
    return called("ellipj", _jacobi, u, m)
