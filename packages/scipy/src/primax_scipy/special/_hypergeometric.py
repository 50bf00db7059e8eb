"""Hypergeometric functions of real arguments.

Series are summed until the result is stationary. The derivative with respect to the variable is the
function with shifted parameters; derivatives with respect to parameters differentiate the sums, in
reverse mode only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, jvp, lax
from primax_core.custom_derivatives import SymbolicZero
from primax_core.extend import Array, dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise, strong

from .._double_precision import in_double
from .._elementary import choose, is_double
from .._functions import at_least_single, like
from ._gammas import plain_sign
from ._operands import if_any, in_blocks, level, matched


def _whole(x: Any) -> Any:
    return x == lax.floor(x + 0.5)


def _ends(x: Any) -> Any:
    """True if a series with such a numerator parameter terminates."""
    return (x <= 0) & _whole(x)


_UNROLLED: Final = 4
"""Terms that are added before the next test for the end of a series."""


def _sum(
    top: Sequence[Any],
    bottom: Sequence[Any],
    x: Any,
    active: Any,
    limit: int,
    start: Any = None,
    tail: Sequence[Any] | None = None,
) -> Any:
    """The hypergeometric series times its first term ``start`` (1), where ``active`` is true.

    Where ``tail`` is true for a parameter of ``top``, a series that terminates because of it is
    summed further, because its derivative with respect to this parameter has more terms.
    """
    tiny = float(dtypes.finfo(typeof(x).dtype).eps) / 8

    def going(state: Any) -> Any:
        k, running = state[0], state[-1]
        return (k < limit) & lax.reduce_or(running, tuple(range(running.ndim)))

    def step(state: Any) -> Any:
        k, term, total, *bounds, _ = state
        for _ in range(_UNROLLED):
            # One division; near the zeros of 1F1 two lose fewer digits.
            over, under = (x, k + 1) if len(top) > 1 else (x / (k + 1), lax.full_like(x, 1.0))
            beyond = over
            for v in top:
                over = over * (v + k)
            for v, further in zip(top, tail or ()):
                beyond = beyond * choose((v + k == 0) & further, 1.0, v + k)
            for v in bottom:
                under = under * choose(v + k == 0, 1.0, v + k)
            ratio = over / under
            term = term * choose(active, ratio, 0.0)
            total, k = total + term, k + 1
            if tail:
                ratio = lax.stop_gradient(beyond / under)
                bounds = [bounds[0] * choose(active, ratio, 0.0)]
        # Terms may grow first; they decrease monotonically once their ratio is below 1.
        last, least = (bounds[0], 1.0) if tail else (term, 0.0)
        size = lax.max(lax.abs(total), lax.full_like(total, least))
        small = (lax.abs(last) <= tiny * size) & (lax.abs(ratio) < 1)
        return k, term, total, *bounds, ~small & (last == last) & active

    start = lax.full_like(x, 1.0) if start is None else start
    bounds = [lax.stop_gradient(start)] if tail else []
    first = (lax.full((), 0, typeof(x).dtype), start, start, *bounds, active)
    return lax.while_loop(going, step, first)[2]


def _by_parameters(
    fun: Callable[..., Any],
    by_parameter: Sequence[Callable[..., Any]],
    derivative: Callable[..., Any],
) -> Callable[..., Any]:
    """A function of parameters and a variable, with its derivative with respect to the variable.

    The functions ``by_parameter`` are differentiated with respect to the parameters.
    """
    function: Any = custom_jvp(fun)

    def rule(primals: Any, tangents: Any) -> Any:
        y = function(*primals)
        total = lax.full_like(y, 0.0)
        *by_parameters, t = tangents
        if not isinstance(t, SymbolicZero):
            total = t * derivative(*primals)
        for i, t in enumerate(by_parameters):
            if isinstance(t, SymbolicZero):
                continue
            units = [lax.full_like(p, 1.0 if i == j else 0.0) for j, p in enumerate(primals)]
            total = total + t * jvp(by_parameter[i], primals, tuple(units))[1]
        return y, total

    function.defjvp(rule, symbolic_zeros=True)
    return function


def _stacked(*xs: Any) -> Any:
    return lax.concatenate([lax.expand_dims(x, (0,)) for x in xs], 0)


def _gamma_ratios(*ratios: tuple[Sequence[Any], Sequence[Any]], slopes: bool = False) -> list[Any]:
    """Quotients of products of gammas; 0 where a denominator is infinite, with ``slopes`` with the
    derivative there."""
    poles = [[_ends(v) for v in under] for _, under in ratios]
    arguments: list[Any] = []
    for (over, under), infinite in zip(ratios, poles, strict=True):
        safe = (choose(p, 1.0, v) for p, v in zip(infinite, under, strict=True))
        arguments += [*over, *safe]
    # One operation for all of them, because its expansion is long
    joined = _stacked(*arguments)
    # The barrier, because XLA would compute them again in each of their uses
    both = lax.optimization_barrier((lax.lgamma(joined), plain_sign(joined)))
    values = iter(zip(*both, strict=True))
    outs = []
    for (over, under), infinite in zip(ratios, poles, strict=True):
        sign: Any = 1.0
        total: Any = 0.0
        for i in range(len(over) + len(under)):
            log, one = next(values)
            sign, total = sign * one, total + log if i < len(over) else total - log
        zero: Any = False
        for pole in infinite:
            zero = pole | zero
        value = sign * lax.exp(total)
        outs.append(choose(zero, 0.0, value))
        if slopes:
            outs[-1] = outs[-1] + _reciprocal_at_pole(under, infinite) * value
    return outs


def _reciprocal_at_pole(xs: Sequence[Any], poles: Sequence[Any]) -> Any:
    """0, with the derivative of the reciprocal of the only gamma that is infinite."""
    total: Any = lax.full_like(xs[0], 0.0)
    for i, (x, pole) in enumerate(zip(xs, poles, strict=True)):
        for j, other in enumerate(poles):
            pole = pole & ~other if i != j else pole
        n = choose(pole, -x, 0.0)
        odd = lax.rem(n, lax.full_like(n, 2.0)) == 1
        slope = choose(odd, lax.full_like(n, -1.0), 1.0) * lax.exp(lax.lgamma(n + 1))
        total = total + choose(pole, lax.stop_gradient(slope), 0.0) * (x - lax.stop_gradient(x))
    return total


# 1F1


def _kummer(a: Any, b: Any, x: Any, *, by: str = "") -> Any:
    """``1F1``; ``by`` names a parameter with respect to which it is differentiated."""
    finite = _ends(a)
    transformed = (x < 0) if by == "a" else (x < 0) & ~finite  # exp(x) 1F1(b - a, b, -x)
    top, z = choose(transformed, b - a, a), choose(transformed, -x, x)
    size = lax.abs(top) + lax.abs(b) + 1
    far = (z > (100 if is_double(x) else 50)) & (z > 2 * size * size) & ~_ends(top)
    # Half of the factor before the sum and half after it, to avoid overflow and underflow
    half = lax.exp(choose(transformed & ~far, 0.5 * x, 0.0))
    tail = [True] if by == "a" else [transformed] if by else None
    near = half * _sum([top], [b], choose(far, 1.0, z), ~far, 2000, half, tail)
    # exp(z) z^(a-b) gamma(b) / gamma(a) times an asymptotic series
    big = choose(far, z, 1000.0)
    series = _sum([b - top, 1 - top], [], 1 / big, far, 12)
    log = (top - b) * lax.log(big) + choose(transformed, 0.0, big)
    beyond = _gamma_ratios(([b], [top]))[0] * lax.exp(log) * series
    out = choose(far, beyond, near)
    pole = _ends(b) & ~(finite & (a > b)) & ~((a == b) & finite)
    known = (x == 0) if by == "a" else (a == 0) | (x == 0)
    out = choose(pole & (a != 0), np.inf, choose(known, lax.full_like(x, 1.0), out))
    return choose((a != a) | (b != b) | (x != x), np.nan, out)


_one_one = _by_parameters(
    in_blocks(in_double(lambda a, b, x: _kummer(a, b, x))),
    [
        in_blocks(in_double(lambda a, b, x: _kummer(a, b, x, by="a"))),
        in_blocks(in_double(lambda a, b, x: _kummer(a, b, x, by="b"))),
    ],
    lambda a, b, x: choose(a == 0, 0.0, a / b * _one_one(a + 1, b + 1, x)),
)


@elementwise
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function, for real numbers.

    It is accurate for ``a`` and ``b`` of moderate size; large parameters of opposite signs cause
    cancellation in the sum. It is infinite if ``b`` is 0 or a negative integer.

    Args:
      a, b, x: real numbers whose shapes broadcast; integers are converted to the default float
        type.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if an argument is complex, or the shapes do not broadcast.

    The derivative with respect to ``x`` is ``a / b * hyp1f1(a + 1, b + 1, x)``.

    >>> round(float(hyp1f1(1.0, 2.0, 1.0)), 4)
    1.7183
    """
    operands = [strong(v) for v in matched("hyp1f1", a, b, x)]
    return like(_one_one(*map(at_least_single, operands)), operands[0])


# 2F1


def _near_one(a: Any, b: Any, c: Any, rest: Any, active: Any, slopes: bool) -> Any:
    """``2F1(a, b, c, 1 - rest)`` for small ``rest``, where ``active`` is true: 15.3.6 of
    Abramowitz and Stegun, whose two terms cancel if ``c - a - b`` is close to an integer."""
    gap = c - a - b
    nearest = lax.floor(gap + 0.5)
    rounding = 8 * float(dtypes.finfo(typeof(gap).dtype).eps)
    whole = lax.abs(gap - nearest) <= rounding * (lax.abs(a) + lax.abs(b) + lax.abs(c))
    least = lax.min(a, b) + lax.max(nearest, lax.full_like(gap, 0.0))
    close = (lax.abs(gap - nearest) < 0.2) & (least > 0.5)
    paired = whole | close
    # Euler's transformation maps a negative integer to a positive one.
    transformed = paired & (nearest < 0)
    factor = choose(transformed, lax.pow(rest, gap), lax.full_like(rest, 1.0))
    a, b = choose(transformed, c - a, a), choose(transformed, c - b, b)
    gap = choose(transformed, -gap, gap)
    other = active & ~paired
    s = choose(other, gap, 0.5)
    one, two = _gamma_ratios(([c, s], [c - a, c - b]), ([c, -s], [a, b]), slopes=slopes)
    pairs = (a, c - a), (b, c - b), (1 - s, 1 + s), (rest, rest), (other, other)
    p, q, r, z, either = (_stacked(*pair) for pair in pairs)
    first, second = _sum([p, q], [r], z, either, 500)
    general = one * first + lax.pow(rest, s) * (two * second)
    integral = active & paired
    m = choose(integral, lax.abs(nearest), 0.0)
    zero = 1e-25  # stands for 0
    e = choose(integral & close, gap - m, zero)
    e = choose(lax.abs(e) < zero, zero, e)
    (logarithmic,) = if_any(integral, 1, _logarithmic, rest, a, b, m, e)
    return factor * choose(paired, logarithmic, general)


_STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _log_gamma_slope(x: Any, e: Any) -> Any:
    """``(lgamma(x + e) - lgamma(x)) / e`` for ``x`` from 0.3 on and ``|e| < 0.2``, by differences
    of the terms of Stirling's formula."""
    few = x < 10
    small, y = choose(few, x, 1.0), choose(few, x + 10, x)
    grown: Any = 0.0
    for k in range(10):
        grown = grown + (1 + e * grown) / (small + k)
    lower = choose(few, lax.log1p(e * grown) / e, 0.0)
    u, v = 1 / y, 1 / (y + e)
    # (v^n - u^n) / (v - u) for odd n
    quotient, power, series = lax.full_like(y, 1.0), u, lax.full_like(y, 0.0)
    for c in _STIRLING:
        series = series + c * quotient
        for _ in range(2):
            quotient, power = quotient * v + power, power * u
    upper = (y + (e - 0.5)) * (lax.log1p(e * u) / e) - 1 + lax.log(y) - u * v * series
    return upper - lower


def _logarithmic(rest: Any, a: Any, b: Any, m: Any, e: Any) -> tuple[Any]:
    """The case ``c = a + b + m + e`` with an integer ``m >= 0`` and a small ``e``, not 0.

    Terms of both series of 15.3.6 are paired, and their differences are divided by ``e``: N. Michel
    and M. Stoitsov, "Fast computation of the Gauss hypergeometric function with all its parameters
    complex", 2008. The limit for ``e = 0`` is 15.3.10 and 15.3.11 of Abramowitz and Stegun.
    """
    steps = 60 if is_double(rest) else 30
    low, right = a + m, b + m

    def step(i: Any, state: Any) -> Any:
        few, many, head, tail, weight = state
        k = lax.convert_element_type(i, typeof(rest).dtype)
        # (a)_k (b)_k / (k! (1-m-e)_k) rest^k for k < m
        head = head + choose(k < m, few, 0.0)
        bottom = 1 - m - e + k
        usual = choose(k < m - 1, bottom, 1.0)
        few = few * (a + k) * (b + k) / ((k + 1) * usual) * rest
        tail = tail + many * weight
        one, two, three, four = low + k, right + k, k + 1, k + m + 1
        many = many * one * two / ((three - e) * four) * rest
        both = 1 / one + 1 / two + e / (one * two)
        change = (both - (1 / three + 1 / four)) - e * both / three
        change = change / (1 + e / four)
        weight = weight + change * (1 + e * weight)
        return few, many, head, tail, weight

    one, zero = lax.full_like(rest, 1.0), lax.full_like(rest, 0.0)
    wide = _log_gamma_or_digamma(low, e), _log_gamma_or_digamma(right, e)
    d = wide[0] + wide[1] - _log_gamma_slope(m + 1, e) - _log_gamma_slope(one, -e)
    weight = lax.expm1(e * (lax.log(rest) + d)) / e
    start = (one, one, zero, zero, weight)
    _, _, head, tail, _ = lax.fori_loop(0, steps, step, start)
    positive = choose(m > 0, m + e, 1.0)
    c = a + b + m + e
    ratio, scale = _gamma_ratios(
        ([positive, c], [low + e, right + e]),
        ([c, low, right, 1 + e], [a, b, low + e, right + e, m + 1]),
    )
    odd = lax.rem(m, lax.full_like(m, 2.0)) == 1
    sign = choose(odd, lax.full_like(m, -1.0), 1.0)
    return (choose(m > 0, ratio * head, 0.0) - sign * (scale * lax.pow(rest, m)) * tail,)


def _log_gamma_or_digamma(x: Any, e: Any) -> Any:
    """:func:`_log_gamma_slope`; its limit for other ``x``, where ``e`` stands for 0."""
    usual = x > 0.3
    slope = _log_gamma_slope(choose(usual, x, 1.0), e)
    return choose(usual, slope, lax.digamma(choose(usual, 1.0, x)))


def _up_to_one(a: Any, b: Any, c: Any, z: Any, rest: Any, high: Any, *, slopes: bool) -> tuple[Any]:
    """``2F1(a, b, c, z)`` for ``z`` in (0.9, 1], where ``high`` is true, with ``rest = 1 - z``."""
    active = high & (z < 1)
    near = _near_one(a, b, c, choose(active, rest, 0.05), active, slopes)
    gap = c - a - b
    finite = gap > 0
    ratio = [c, choose(finite, gap, 1.0)], [c - a, c - b]
    (value,) = _gamma_ratios(ratio, slopes=slopes)
    return (choose(active, near, choose(finite, value, np.inf)),)


def _gauss(a: Any, b: Any, c: Any, x: Any, *, by: str = "") -> Any:
    """``2F1``; ``by`` names a parameter (``a`` or ``c``) with respect to which it is
    differentiated."""
    finite = _ends(b) if by == "a" else _ends(a) | _ends(b)
    one = lax.full_like(x, 1.0)
    # Pfaff's transformation maps negative numbers to [0, 1).
    transformed = (x < 0) & ~finite
    low = choose(transformed, x, 0.0)
    factor = choose(transformed, lax.pow(1 - low, -a), one)
    second = choose(transformed, c - b, b)
    z = choose(transformed, low / (low - 1), x)
    rest = choose(transformed, 1 / (1 - low), 1 - x)
    ends = finite | _ends(a) | _ends(second)
    summed = (z <= 0.9) | ends
    high = ~ends & (z > 0.9) & (z <= 1)
    if by:  # terms of the derivative decrease as z^n
        summed, high = summed & (finite | (z < 1)), high | (ends & ~finite & (z == 1))
    tail = [True, False] if by == "a" else [False, transformed] if by else None
    series = _sum(
        [a, second], [c], choose(summed, z, 0.5), summed, 60_000 if by else 1000, tail=tail
    )
    near_one = partial(_up_to_one, slopes=bool(by))
    (beyond,) = if_any(high, 1, near_one, a, second, c, z, rest, high)
    outside = ~(finite if by else ends) & (z > 1)
    out = factor * choose(outside, np.nan if by else np.inf, choose(high, beyond, series))
    pole = _ends(c) & ~((_ends(a) & (a >= c)) | (_ends(b) & (b >= c)))
    known = (x == 0) if by == "a" else (x == 0) | (a == 0) | (b == 0)
    out = choose(pole, np.inf, choose(known, one, out))
    return choose((a != a) | (b != b) | (c != c) | (x != x), np.nan, out)


def _gauss_work(a: Any, b: Any, c: Any, x: Any) -> Any:
    """A level that increases with the number of terms of the series for ``x``."""
    size = choose(x < 0, x / (x - 1), x)
    # The power of a term is x^n, so n is inversely proportional to -log(x).
    few = choose(size < 0.9, 1 + 5 / -lax.log(choose((size > 1e-9) & (size < 0.9), size, 0.5)), 0.0)
    return level(choose(size < 0.9, few, choose(size < 1, 60.0, lax.full_like(x, 61.0))))


_two_one = _by_parameters(
    in_blocks(in_double(lambda a, b, c, x: _gauss(a, b, c, x)), _gauss_work),
    [
        in_blocks(in_double(lambda a, b, c, x: _gauss(a, b, c, x, by="a")), _gauss_work),
        in_blocks(in_double(lambda a, b, c, x: _gauss(b, a, c, x, by="a")), _gauss_work),
        in_blocks(in_double(lambda a, b, c, x: _gauss(a, b, c, x, by="c")), _gauss_work),
    ],
    lambda a, b, c, x: choose(
        (a == 0) | (b == 0), 0.0, a * b / c * _two_one(a + 1, b + 1, c + 1, x)
    ),
)


@elementwise
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss hypergeometric function, for real numbers.

    It is infinite for ``x > 1`` unless the series terminates. It is accurate for
    parameters of moderate size; precision is lost if ``c - a - b`` is close to an integer and
    ``x`` close to 1.

    Args:
      a, b, c, x: real numbers whose shapes broadcast; integers are converted to the default float
        type.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if an argument is complex, or the shapes do not broadcast.

    The derivative with respect to ``x`` is ``a * b / c * hyp2f1(a + 1, b + 1, c + 1, x)``.

    >>> round(float(hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)
    1.3863
    """
    operands = [strong(v) for v in matched("hyp2f1", a, b, c, x)]
    return like(_two_one(*map(at_least_single, operands)), operands[0])
