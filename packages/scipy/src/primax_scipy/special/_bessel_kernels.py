"""Bessel functions of two consecutive real orders, for positive arguments.

The order is split into an integer and a rest ``mu`` of at most 1/2. Functions of the second kind at
``mu`` and ``mu + 1`` are computed by Temme's series up to 2 and by a continued fraction from 2 on
(Temme, *On the numerical evaluation of the modified Bessel function of the third kind*, J. Comput.
Phys. 19, 1975; Campbell, *On Temme's algorithm*, ACM TOMS 6, 1980), which converges for imaginary
arguments too. The recurrence increases the order. Functions of the first kind follow by the same
recurrence while it is stable, otherwise by a power series, or by the Wronskian with the continued
fraction of the quotient of two orders (Gautschi, SIAM Review 9, 1967).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from primax_core import lax
from primax_core.extend import dtypes, typeof
from primax_numpy.declaring import is_complex

from .._elementary import ROOT_HALF, bounded, choose, is_double
from ._bessel_tables import RECIPROCAL_GAMMA_EVEN, RECIPROCAL_GAMMA_ODD
from ._gammas import real_gamma
from ._operands import if_any, level
from ._sines import of_turns, sine_and_cosine

_CYCLES = 20_000
_UNROLLED = 4
"""Terms that are added before the next test for the end of a sum, if steps are short."""


def _tiny(x: Any) -> float:
    """The relative size of a term that does not matter."""
    return float(dtypes.finfo(typeof(x).dtype).eps) / 4


def sums(
    step: Callable[[Any, Any], tuple[Any, Any]], active: Any, state: Any, totals: Any,
    matters: Callable[[Any, Any], Any] | None = None, unrolled: int = _UNROLLED,
) -> Any:  # fmt: skip
    """Totals to which ``step(k, state) -> (state, terms)`` adds, until terms do not matter."""
    tiny = _tiny(totals[0])

    def any_matters(terms: Any, totals: Any) -> Any:
        out: Any = False
        for term, total in zip(terms, totals, strict=True):
            out = (lax.abs(term) > tiny * lax.abs(total)) | out
        return out

    test = any_matters if matters is None else matters

    def going(carry: Any) -> Any:
        k, active, _, _ = carry
        return (k < _CYCLES) & lax.reduce_or(active, tuple(range(active.ndim)))

    def body(carry: Any) -> Any:
        k, active, state, totals = carry
        groups = []
        for i in range(unrolled):
            state, terms = step(lax.convert_element_type(k + i, typeof(totals[0]).dtype), state)
            groups.append(terms)
        more = active & test(terms, totals)
        sums = [sum(group[1:], group[0]) for group in zip(*groups, strict=True)]
        totals = tuple(choose(active, b + a, b) for a, b in zip(sums, totals, strict=True))
        return k + unrolled, more, tuple(state), totals

    return lax.while_loop(going, body, (1, active, tuple(state), tuple(totals)))[3]


def _polynomial(x: Any, coefficients: Any) -> Any:
    total: Any = lax.full_like(x, 0.0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def sine_and_cosine_of_turns(v: Any) -> tuple[Any, Any]:
    """``sin(πv)`` and ``cos(πv)``, exact at multiples of 1/2."""
    return of_turns(0.5 * v)


def reciprocal_gammas(mu: Any) -> tuple[Any, Any, Any, Any]:
    """Temme's gamma 1 and gamma 2, the reciprocals of ``gamma(1 + mu)`` and ``gamma(1 - mu)``."""
    square = mu * mu
    gamma1 = _polynomial(square, RECIPROCAL_GAMMA_ODD)
    gamma2 = _polynomial(square, RECIPROCAL_GAMMA_EVEN)
    return gamma1, gamma2, gamma2 - mu * gamma1, gamma2 + mu * gamma1


def temme_series(mu: Any, x: Any, active: Any, sign: float) -> tuple[Any, Any]:
    """``K`` (``sign=1``) or ``-π/2 Y`` (``sign=-1``) of orders ``mu`` and ``mu + 1`` up to 2."""
    x = choose(active, x, 1.0)
    square = mu * mu
    gamma1, gamma2, plus, minus = reciprocal_gammas(mu)
    log = math.log(2) - lax.log(x)
    sigma = mu * log
    near = lax.abs(sigma) < 0.1
    low = sigma * sigma
    series = 1 + low / 6 * (1 + low / 20 * (1 + low / 42 * (1 + low / 72)))
    ratio = choose(near, series, lax.sinh(sigma) / choose(near, 1.0, sigma))
    f = (gamma1 * lax.cosh(sigma) + gamma2 * ratio * log) / (plus * minus)
    power = lax.exp(sigma)
    p, q = 0.5 * power / plus, 0.5 / (power * minus)
    # 2/mu sin²(π mu / 2), only for Y
    turns = [
        (-1) ** k * math.pi ** (2 * k + 2) / math.factorial(2 * k + 2) for k in range(11)
    ]  # fmt: skip
    r = mu * _polynomial(square, turns) if sign < 0 else lax.full_like(mu, 0.0)
    quarter = sign * 0.25 * (x * x)

    def step(k: Any, state: Any) -> Any:
        f, p, q, c = state
        f = (k * f + p + q) / ((k - mu) * (k + mu))
        c = c * quarter / k
        p, q = p / (k - mu), q / (k + mu)
        change = c * (f + r * q)
        return (f, p, q, c), (change, c * p - k * change)

    one = lax.full_like(x, 1.0)
    first, second = sums(step, active, (f, p, q, one), (f + r * q, p))
    return first, second * (2 / x)


def _fraction(mu: Any, x: Any, active: Any) -> tuple[Any, Any]:
    """``s`` and ``h`` of Temme's continued fraction for ``K``.

    ``K_mu = sqrt(π / 2x) exp(-x) / s``, and ``K_(mu+1) = K_mu (mu + x + 1/2 - h) / x``.
    """
    rest = 0.25 - mu * mu
    d = 1 / (2 * (1 + x))

    def step(k: Any, state: Any) -> Any:
        a, d, delta, p, before, q = state
        b = 2 * (k + x)
        new = (b * p + (a / k) * before) / (k + 1)
        a, q, b = a - 2 * k, q + new, b + 2
        d = 1 / (b + a * d)
        delta = (b * d - 1) * delta
        return (a, d, delta, new, p, q), (q * delta, delta)

    tiny = _tiny(x)
    zero = lax.full_like(x, 0.0)
    s, h = sums(
        step, active, (-rest, d, d, rest, zero, rest), (1 + rest * d, d),
        lambda terms, totals: lax.abs(terms[0]) > tiny * lax.abs(totals[0]),
    )  # fmt: skip
    return s, rest * h


def _imaginary_fraction(mu: Any, x: Any, active: Any) -> tuple[Any, Any, Any, Any]:
    """Real and imaginary parts of the results of `_fraction` for ``-i x``."""
    rest = 0.25 - mu * mu
    y = -2 * x  # the imaginary part of b
    zero, one = lax.full_like(x, 0.0), lax.full_like(x, 1.0)
    scale = 1 / (4 + y * y)
    dr, di = 2 * scale, -y * scale

    def step(k: Any, state: Any) -> Any:
        a, dr, di, er, ei, pr, pi, beforer, beforei, qr, qi = state
        factor, back = a / k, 1 / (k + 1)
        newr = (2 * k * pr - y * pi + factor * beforer) * back
        newi = (2 * k * pi + y * pr + factor * beforei) * back
        a, qr, qi = a - 2 * k, qr + newr, qi + newi
        b = 2 * (k + 1)
        lowr, lowi = b + a * dr, y + a * di
        scale = 1 / (lowr * lowr + lowi * lowi)
        dr, di = lowr * scale, -lowi * scale
        ur, ui = b * dr - y * di - 1, b * di + y * dr
        er, ei = ur * er - ui * ei, ur * ei + ui * er
        terms = (qr * er - qi * ei, qr * ei + qi * er, er, ei)
        return (a, dr, di, er, ei, newr, newi, pr, pi, qr, qi), terms

    tiny = _tiny(x)

    def matters(terms: Any, totals: Any) -> Any:
        size = lax.abs(terms[0]) + lax.abs(terms[1])
        return size > tiny * (lax.abs(totals[0]) + lax.abs(totals[1]))

    state = (-rest, dr, di, dr, di, rest, zero, zero, zero, rest, zero)
    sr, si, hr, hi = sums(step, active, state, (one + rest * dr, rest * di, dr, di), matters, 1)
    return sr, si, rest * hr, rest * hi


def modified_second_kind(mu: Any, x: Any) -> tuple[Any, Any]:
    """``exp(x) K`` of orders ``mu`` and ``mu + 1``, for ``|mu| <= 1/2``."""
    near = x <= 2
    low = if_any(near, 2, lambda mu, x, near: temme_series(mu, x, near, 1.0), mu, x, near)
    z = choose(near, 2.0, x)
    s, h = _fraction(mu, z, ~near)
    first = math.sqrt(0.5 * math.pi) / (lax.sqrt(z) * s)
    second = first * ((mu + 0.5 - h) / z + 1)
    scale = lax.exp(choose(near, x, 0.0))
    return choose(near, scale * low[0], first), choose(near, scale * low[1], second)


_TEMME_END = 3.0


def hankel_far(mu: Any, x: Any, active: Any) -> tuple[Any, Any, Any, Any]:
    """``J_mu``, ``J_(mu+1)``, ``Y_mu``, ``Y_(mu+1)`` for ``|mu| <= 1/2``, from about 3 on."""
    y = choose(active, x, _TEMME_END)
    limit = 1e16 if is_double(x) else 1e8  # the fraction is 1 there
    sr, si, hr, hi = _imaginary_fraction(mu, bounded(y, 1.0, limit), active)
    # H = sqrt(2 / πx) exp(i (x - π mu / 2 - π / 4)) / s
    sine, cosine = sine_and_cosine(y)
    b, a = (ROOT_HALF * v for v in of_turns(0.25 * mu))
    cosine_shift, sine_shift = a - b, a + b  # of shift + π/4
    re = cosine * cosine_shift + sine * sine_shift
    im = sine * cosine_shift - cosine * sine_shift
    scale = math.sqrt(2 / math.pi) / (lax.sqrt(y) * (sr * sr + si * si))
    re, im = scale * (re * sr + im * si), scale * (im * sr - re * si)
    # The next order is this times (mu + 1/2 - h) / x - i.
    fr, fi = (mu + 0.5 - hr) / y, -hi / y - 1
    return re, re * fr - im * fi, im, im * fr + re * fi


def _hankel(mu: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """As `hankel_far`; up to 3 the first two are zero."""
    near = x <= _TEMME_END
    low = if_any(near, 2, lambda mu, x, near: temme_series(mu, x, near, -1.0), mu, x, near)
    j, j1, y, y1 = if_any(~near, 4, hankel_far, mu, x, ~near)
    scale = -2 / math.pi
    return (
        choose(near, 0.0, j), choose(near, 0.0, j1),
        choose(near, scale * low[0], y), choose(near, scale * low[1], y1),
    )  # fmt: skip


def upwards(following: Callable[[Any, Any], list[Any]], n: Any, *pairs: tuple[Any, Any]) -> Any:
    """Pairs of orders ``mu + n`` and ``mu + n + 1`` from those of orders ``mu`` and ``mu + 1``.

    Args:
      following: a function of ``k`` and of the pairs of orders ``mu + k - 1`` and ``mu + k`` that
        returns the functions of order ``mu + k + 1``.
    """
    last = lax.reduce_max(n, tuple(range(n.ndim)))

    def going(state: Any) -> Any:
        return state[0] < last

    def step(state: Any) -> Any:
        k, pairs = state
        k = k + 1
        more = k <= n
        new = [
            (choose(more, high, low), choose(more, highest, high))
            for (low, high), highest in zip(pairs, following(k, pairs), strict=True)
        ]
        return k, new

    return lax.while_loop(going, step, (lax.full_like(last, 0.0), list(pairs)))[1]


def _recurrence(mu: Any, x: Any, sign: float) -> Callable[[Any, Any], list[Any]]:
    """``F_(v+1) = 2 v / x F_v - sign F_(v-1)``, for `upwards`."""
    inverse = 2 / x

    def following(k: Any, pairs: Any) -> list[Any]:
        factor = (mu + k) * inverse
        return [factor * high - sign * low for low, high in pairs]

    return following


def without_zero_times(factor: Any, z: Any) -> Any:
    """The product of a real and a real or complex array, 0 where the factor is, also for infinite
    ``z``; with the derivative of a zero of the factor, which is ``z``."""
    if not is_complex(z):
        return factor * choose((factor == 0) & ~lax.is_finite(z), 0.0, z)
    finite = lax.is_finite(lax.real(z)) & lax.is_finite(lax.imag(z))
    z = choose((factor == 0) & ~finite, 0.0, z)
    return lax.complex(factor * lax.real(z), factor * lax.imag(z))


def scaled_power(v: Any, half: Any) -> Any:
    """``half**v / gamma(v + 1)``, for large orders by Stirling's series."""
    limit = 150.0 if is_double(v) else 30.0
    large = v > limit
    small = choose(large, limit, v)
    power = lax.pow(half, small) / real_gamma(1 + small)
    # (e x / 2v)^v / sqrt(2πv)
    big = choose(large, v, limit)
    w = 1 / (big * big)
    rest = (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w / 1680))) / big
    beyond = lax.pow(math.e * (half / big), big) * lax.exp(-rest) / lax.sqrt(2 * math.pi * big)
    return choose(large, beyond, power)


def power_series(v: Any, x: Any, active: Any, sign: float) -> tuple[Any, Any]:
    """``J`` (``sign=-1``) or ``exp(-x) I`` of orders ``v`` and ``v + 1``."""
    x, v = choose(active, x, 1.0), choose(active, v, 0.0)
    quarter = sign * 0.25 * (x * x)

    def step(k: Any, state: Any) -> Any:
        first, second = state
        factor = quarter / k
        terms = (first * (factor / (v + k)), second * (factor / (v + k + 1)))
        return terms, terms

    one = lax.full_like(x, 1.0)
    first, second = sums(step, active, (one, one), (one, one))
    half = 0.5 * x
    head = scaled_power(v, half)
    if sign > 0:
        head = head * lax.exp(-x)
    return head * first, head * (half / (v + 1)) * second


def _quotient(v: Any, x: Any, active: Any, sign: float) -> Any:
    """``J_(v+1) / J_v`` for ``x < v`` (``sign=-1``), or ``I_(v+1) / I_v``."""
    x, v = choose(active, x, 1.0), choose(active, v, 2.0)
    inverse = 2 / x
    d = 1 / ((v + 1) * inverse)

    def step(k: Any, state: Any) -> Any:
        d, delta = state
        b = (v + 1 + k) * inverse
        d = 1 / (b + sign * d)
        delta = (b * d - 1) * delta
        return (d, delta), (delta,)

    return sums(step, active, (d, d), (d,))[0]


def _ordinary_cases(v: Any, x: Any) -> tuple[Any, Any, Any]:
    """Conditions of the recurrence, the power series, and the Wronskian for ``J``."""
    few = (x <= _TEMME_END) | (x * x < 4 * (v + 1))
    return ~few & (x >= v), few, ~few & (x < v)


def ordinary(v: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """``J_v``, ``J_(v+1)``, ``Y_v``, ``Y_(v+1)`` for ``v >= 0`` and ``x > 0``."""
    n = lax.floor(v + 0.5)
    mu = v - n
    j, j1, y, y1 = _hankel(mu, x)
    (j, j1), (y, y1) = upwards(_recurrence(mu, x, 1.0), n, (j, j1), (y, y1))
    up, few, middle = _ordinary_cases(v, x)
    series = if_any(few, 2, lambda v, x, few: power_series(v, x, few, -1.0), v, x, few)
    r = _quotient(v, x, middle, -1.0)
    finite = middle & (lax.abs(y1) < float(dtypes.finfo(typeof(x).dtype).max))
    below = choose(finite, r * y - y1, 1.0)
    wronskian = choose(finite, (2 / math.pi) / (x * below), 0.0)
    j = choose(few, series[0], choose(up, j, wronskian))
    j1 = choose(few, series[1], choose(up, j1, r * wronskian))
    return j, j1, y, y1


def ordinary_work(v: Any, x: Any) -> Any:
    """A level for each case of `ordinary`, which increases with the number of cycles."""
    up, few, _ = _ordinary_cases(v, x)
    near = x <= _TEMME_END
    fraction = 30 / choose(near, _TEMME_END, x)
    steps = lax.min(0.5 * v, lax.full_like(v, 10.0))
    cases = choose(
        few, choose(near, steps, 11 + fraction), choose(up, 22 + 2 * fraction, 43 + fraction)
    )
    return level(choose(v > 100, 54 + lax.log(choose(v > 100, 0.01 * v, 1.0)), cases))


def _modified_cases(v: Any, x: Any) -> tuple[Any, Any, Any]:
    """Conditions of the power series, the expansion at infinity, and the Wronskian for ``I``."""
    few = (x < 20) | (x * x < 40 * (v + 1))
    far = ~few & (x > 20 + 0.5 * (v * v))
    return few, far, ~few & ~far


def modified(v: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """``exp(-x) I_v``, ``exp(-x) I_(v+1)``, ``exp(x) K_v``, ``exp(x) K_(v+1)`` for ``v >= 0`` and
    ``x > 0``."""
    n = lax.floor(v + 0.5)
    mu = v - n
    ((k, k1),) = upwards(_recurrence(mu, x, -1.0), n, modified_second_kind(mu, x))
    few, far, middle = _modified_cases(v, x)
    series = if_any(few, 2, lambda v, x, few: power_series(v, x, few, 1.0), v, x, few)
    r = _quotient(v, x, middle, 1.0)
    finite = middle & (k1 < float(dtypes.finfo(typeof(x).dtype).max))
    wronskian = choose(finite, 1 / (x * choose(finite, k1 + r * k, 1.0)), 0.0)
    beyond = if_any(far, 2, _pair_at_infinity, v, x, far)
    i = choose(few, series[0], choose(far, beyond[0], wronskian))
    i1 = choose(few, series[1], choose(far, beyond[1], r * wronskian))
    return i, i1, k, k1


def modified_work(v: Any, x: Any) -> Any:
    """A level for each case of `modified`, which increases with the number of cycles."""
    few, far, _ = _modified_cases(v, x)
    cases = choose(
        few, 2 * lax.min(x, lax.full_like(x, 20.0)), choose(far, 45.0, lax.full_like(x, 50.0))
    )
    return level(choose(v > 100, 54 + lax.log(choose(v > 100, 0.01 * v, 1.0)), cases))


def _pair_at_infinity(v: Any, x: Any, active: Any) -> tuple[Any, Any]:
    return modified_at_infinity(v, x, active), modified_at_infinity(v + 1, x, active)


def modified_at_infinity(v: Any, x: Any, active: Any) -> Any:
    """``exp(-x) I_v`` for large ``x``: DLMF 10.40.1."""
    x, v = choose(active, x, 100.0), choose(active, v, 0.0)
    square = 4 * (v * v)
    inverse = 0.125 / x

    def step(k: Any, state: Any) -> Any:
        odd = 2 * k - 1
        term = state[0] * (-(square - odd * odd) / k * inverse)
        return (term,), (term,)

    one = lax.full_like(x, 1.0)
    (total,) = sums(step, active, (one,), (one,))
    return total / lax.sqrt(2 * math.pi * x)
