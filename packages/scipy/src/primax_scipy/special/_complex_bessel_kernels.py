"""Modified Bessel functions of two consecutive real orders, for complex numbers of one quadrant.

The methods are those of `_bessel_kernels`. Near the imaginary axis, where the continued fraction of
the quotient of two orders is slow, functions of the first kind follow from those of the second kind
at ``z`` and ``-z`` by DLMF 10.34.2; near the real axis from the expansion at infinity, DLMF
10.40.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from primax_core import lax
from primax_core.extend import dtypes, typeof

from .._elementary import ROOT_HALF, choose
from ._bessel_kernels import (
    reciprocal_gammas,
    scaled_power,
    sine_and_cosine_of_turns,
    sums,
    upwards,
)
from ._operands import if_any, level
from ._sines import sine_and_cosine

_TEMME_END: Final = 2.0
_SERIES_END: Final = 3.0


def as_complex(x: Any) -> Any:
    """A real array as a complex one."""
    return lax.complex(x, lax.full_like(x, 0.0))


def times(factor: Any, z: Any) -> Any:
    """The product of a real and a complex array."""
    return lax.complex(factor * lax.real(z), factor * lax.imag(z))


def times_i(z: Any) -> Any:
    """The product with the imaginary unit."""
    return lax.complex(-lax.imag(z), lax.real(z))


def stretched(exponent: Any, z: Any) -> Any:
    """``exp(exponent) z``, half of the factor at a time, because the whole may overflow."""
    half = lax.exp(0.5 * exponent)
    return times(half, times(half, z))


def phase(angle: Any) -> Any:
    """``exp(1j * angle)`` for real angles."""
    sine, cosine = sine_and_cosine(angle)
    return lax.complex(cosine, sine)


def phase_of_turns(v: Any) -> Any:
    """``exp(1j * pi * v)``, exact at multiples of 1/2."""
    sine, cosine = sine_and_cosine_of_turns(v)
    return lax.complex(cosine, sine)


def _inverse(z: Any) -> Any:
    """The reciprocal of numbers whose square does not overflow or vanish."""
    x, y = lax.real(z), lax.imag(z)
    scale = 1 / (x * x + y * y)
    return lax.complex(scale * x, -scale * y)


def _safe_inverse(z: Any) -> Any:
    """The reciprocal of any number except 0."""
    x, y = lax.real(z), lax.imag(z)
    unit = 1 / lax.max(lax.abs(x), lax.abs(y))
    return times(unit, _inverse(times(unit, z)))


def _size(z: Any) -> Any:
    return lax.abs(lax.real(z)) + lax.abs(lax.imag(z))


def _sums(step: Any, active: Any, state: Any, totals: Any, tested: int = 2) -> Any:
    """As `sums`; the first ``tested`` terms are compared with their totals."""
    tiny = float(dtypes.finfo(typeof(totals[0]).dtype).eps) / 4

    def matters(terms: Any, totals: Any) -> Any:
        out: Any = False
        for term, total in zip(terms[:tested], totals, strict=False):
            out = (_size(term) > tiny * _size(total)) | out
        return out

    return sums(step, active, state, totals, matters, 1)


def _temme_series(z: Any, mu: Any, active: Any) -> tuple[Any, Any]:
    """``K`` of orders ``mu`` and ``mu + 1`` up to 2."""
    z = choose(active, z, 1.0)
    gamma1, gamma2, plus, minus = reciprocal_gammas(mu)
    log = math.log(2) - lax.log(z)
    sigma = times(mu, log)
    near = lax.abs(sigma) < 0.1
    low = sigma * sigma
    series = 1 + low / 6 * (1 + low / 20 * (1 + low / 42 * (1 + low / 72)))
    power, other = lax.exp(sigma), lax.exp(-sigma)
    ratio = choose(near, series, 0.5 * (power - other) * _inverse(choose(near, 1.0, sigma)))
    f = times(gamma1, 0.5 * (power + other)) + times(gamma2, ratio * log)
    f = times(1 / (plus * minus), f)
    p, q = times(0.5 / plus, power), times(0.5 / minus, other)
    quarter = 0.25 * (z * z)

    def step(k: Any, state: Any) -> Any:
        f, p, q, c = state
        k = lax.real(k)
        below, above = 1 / (k - mu), 1 / (k + mu)
        f = times(below * above, times(k, f) + p + q)
        c = times(1 / k, c * quarter)
        p, q = times(below, p), times(above, q)
        change = c * f
        return (f, p, q, c), (change, c * p - times(k, change))

    first, second = _sums(step, active, (f, p, q, lax.full_like(z, 1.0)), (f, p))
    return first, second * (2 * _safe_inverse(z))


def _fraction(z: Any, mu: Any, active: Any) -> tuple[Any, Any]:
    """``exp(z) K`` of orders ``mu`` and ``mu + 1``, by Temme's continued fraction."""
    z = choose(active, z, 2.0)
    rest = as_complex(0.25 - mu * mu)
    d = 0.5 * _inverse(1 + z)

    def step(k: Any, state: Any) -> Any:
        a, d, delta, p, before, q = state
        b = 2 * (k + z)
        k = lax.real(k)
        new = times(1 / (k + 1), b * p + times(a / k, before))
        a, q, b = a - 2 * k, q + new, b + 2
        d = _inverse(b + times(a, d))
        delta = (b * d - 1) * delta
        return (a, d, delta, new, p, q), (q * delta, delta)

    state = (-lax.real(rest), d, d, rest, lax.full_like(z, 0.0), rest)
    s, h = _sums(step, active, state, (1 + rest * d, d), 1)
    first = math.sqrt(0.5 * math.pi) * _inverse(lax.sqrt(z) * s)
    return first, first * ((as_complex(mu + 0.5) - rest * h) * _inverse(z) + 1)


def _second_kind(z: Any, mu: Any, mirrored: Any) -> tuple[Any, Any, Any, Any]:
    """``exp(z) K`` of orders ``mu`` and ``mu + 1``, and the same at ``-z`` where ``mirrored``."""
    near = lax.abs(z) <= _TEMME_END
    low, low1 = if_any(near, 2, _temme_series, z, mu, near)
    scale = lax.exp(choose(near, z, 0.0))
    # One loop of two cycles instead of two calls, which would be compiled twice
    both = lambda a, b: lax.concatenate([a[None], b[None]], 0)
    high, high1 = lax.map(
        lambda xs: if_any(xs[1], 2, _fraction, xs[0], mu, xs[1]),
        (both(z, -z), both(~near, mirrored)),
    )
    k, k1 = choose(near, scale * low, high[0]), choose(near, scale * low1, high1[0])
    return k, k1, high[1], high1[1]


def _recurrence(mu: Any, inverse: Any) -> Callable[[Any, Any], list[Any]]:
    """That of ``K`` of ``z``, then of ``-z``, for :func:`upwards`."""

    def following(k: Any, pairs: Any) -> list[Any]:
        factor = times(2 * (mu + k), inverse)
        return [f * high + low for (low, high), f in zip(pairs, (factor, -factor), strict=True)]

    return following


def _power_series(z: Any, v: Any, active: Any) -> tuple[Any, Any]:
    """``exp(-Re z) I`` of orders ``v`` and ``v + 1``."""
    z, v = choose(active, z, 1.0), choose(active, v, 0.0)
    quarter = 0.25 * (z * z)

    def step(k: Any, state: Any) -> Any:
        first, second = state
        k = lax.real(k)
        terms = (
            times(1 / (k * (v + k)), first * quarter),
            times(1 / (k * (v + k + 1)), second * quarter),
        )
        return terms, terms

    one = lax.full_like(z, 1.0)
    first, second = _sums(step, active, (one, one), (one, one))
    size = scaled_power(v, 0.5 * lax.abs(z)) * lax.exp(-lax.real(z))
    head = times(size, phase(v * lax.atan2(lax.imag(z), lax.real(z))))
    return head * first, head * times(0.5 / (v + 1), z * second)


def _quotient(z: Any, v: Any, active: Any) -> tuple[Any, Any]:
    """``I_(v+1) / I_v``, twice."""
    z, v = choose(active, z, 1.0), choose(active, v, 2.0)
    inverse = 2 * _inverse(z)
    d = _inverse(times(v + 1, inverse))

    def step(k: Any, state: Any) -> Any:
        d, delta = state
        b = times(v + 1 + lax.real(k), inverse)
        d = _inverse(b + d)
        delta = (b * d - 1) * delta
        return (d, delta), (delta,)

    (out,) = _sums(step, active, (d, d), (d,))
    return out, out


def _at_infinity(z: Any, v: Any, active: Any) -> tuple[Any, Any]:
    """``exp(-z) I`` of orders ``v`` and ``v + 1`` without the exponentially small part."""
    z, v = choose(active, z, 100.0), choose(active, v, 0.0)
    inverse = 0.125 * _inverse(z)
    squares = 4 * (v * v), 4 * ((v + 1) * (v + 1))

    def step(k: Any, state: Any) -> Any:
        k = lax.real(k)
        odd = 2 * k - 1
        terms = tuple(
            times((odd * odd - square) / k, term * inverse)
            for square, term in zip(squares, state, strict=True)
        )
        return terms, terms

    one = lax.full_like(z, 1.0)
    first, second = _sums(step, active, (one, one), (one, one))
    scale = _inverse(lax.sqrt(2 * math.pi * z))
    return scale * first, scale * second


def _cases(v: Any, z: Any) -> tuple[Any, Any, Any, Any]:
    """Conditions of the power series, the values at ``-z``, the expansion at infinity, and the
    Wronskian for ``I``."""
    size, x = lax.abs(z), lax.real(z)
    square = size * size
    few = (size <= _SERIES_END) | (square < 4 * (v + 1))
    steep = x < ROOT_HALF * size
    mirrored = ~few & steep & (v <= size) & (v * v * x < 2 * square)
    far = ~few & ~steep & (size > 20 + 0.5 * (v * v))
    return few, mirrored, far, ~few & ~mirrored & ~far


def modified(v: Any, z: Any) -> tuple[Any, Any, Any, Any]:
    """``exp(-Re z) I_v``, ``exp(-Re z) I_(v+1)``, ``exp(z) K_v`` and ``exp(z) K_(v+1)``, for
    ``v > -1/2``.

    Where ``K`` overflows it is not finite.

    Args:
      v: orders.
      z: numbers of the first quadrant with its borders without 0, of the complex dtype of ``v``.
    """
    n = lax.floor(v + 0.5)
    mu = v - n
    few, mirrored, far, middle = _cases(v, z)
    k, k1, o, o1 = _second_kind(z, mu, mirrored)
    inverse = _safe_inverse(z)
    (k, k1), (o, o1) = upwards(_recurrence(mu, inverse), n, (k, k1), (o, o1))
    turn = phase(lax.imag(z))
    # exp(-z - Re z) exp(πiv) K_v / πi is the exponentially small part of I_v
    small = times(lax.exp(-2 * lax.real(z)), lax.conj(turn)) * phase_of_turns(v)
    finite = _is_finite(k1)
    k_or_0, k1_or_0 = choose(finite, k, 0.0), choose(finite, k1, 0.0)
    less, less1 = small * k_or_0, -(small * k1_or_0)
    over_pi_i = lambda w: -(1 / math.pi) * times_i(w)
    i, i1 = over_pi_i(turn * o - less), over_pi_i(turn * o1 - less1)

    beyond, beyond1 = if_any(far, 2, _at_infinity, z, v, far)
    i = choose(far, turn * beyond - over_pi_i(less), i)
    i1 = choose(far, turn * beyond1 - over_pi_i(less1), i1)

    ratio, _ = if_any(middle, 2, _quotient, z, v, middle)
    usual = middle & finite
    below = choose(usual, k1_or_0 + ratio * k_or_0, 1.0)
    wronskian = choose(usual, turn * inverse * _safe_inverse(below), 0.0)
    i, i1 = choose(middle, wronskian, i), choose(middle, ratio * wronskian, i1)

    series, series1 = if_any(few, 2, _power_series, z, v, few)
    return choose(few, series, i), choose(few, series1, i1), k, k1


def _is_finite(z: Any) -> Any:
    return _size(z) < math.inf


def modified_work(v: Any, z: Any) -> Any:
    """A level for each case of `modified`, which increases with the number of cycles."""
    few, mirrored, far, _ = _cases(v, z)
    size = lax.abs(z)
    near = size <= _TEMME_END
    fraction = 20 / choose(near, _TEMME_END, size)
    beyond = choose(far, 20 + fraction, choose(mirrored, 30 + fraction, 42 + fraction))
    cases = choose(few, choose(near, 0.0, 4 + fraction), beyond)
    return level(choose(v > 100, 54 + lax.log(choose(v > 100, 0.01 * v, 1.0)), cases))
