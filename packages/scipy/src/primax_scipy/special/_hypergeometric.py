"""Hypergeometric functions of real arguments.

Series are summed until the result is stationary. The derivative with respect to the variable is the
function with shifted parameters; derivatives with respect to parameters differentiate the sums, in
reverse mode only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from primax_core import custom_jvp, jvp, lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise, strong

from .._elementary import choose, is_double
from .._functions import at_least_single, like
from ._gammas import matched, plain_sign
from ._operands import in_blocks


def _whole(x: Any) -> Any:
    return x == lax.floor(x + 0.5)


def _ends(x: Any) -> Any:
    """True if a series with such a numerator parameter terminates."""
    return (x <= 0) & _whole(x)


_UNROLLED: Final = 4
"""Terms that are added before the next test for the end of a series."""


def _sum(
    top: Sequence[Any], bottom: Sequence[Any], x: Any, active: Any, limit: int, start: Any = None
) -> Any:
    """The hypergeometric series times its first term ``start`` (1), where ``active`` is true."""
    tiny = float(dtypes.finfo(typeof(x).dtype).eps) / 8

    def going(state: Any) -> Any:
        k, _, _, running = state
        return (k < limit) & lax.reduce_or(running, tuple(range(running.ndim)))

    def step(state: Any) -> Any:
        k, term, total, _ = state
        for _ in range(_UNROLLED):
            # One division; near the zeros of 1F1 two lose fewer digits.
            over, under = (x, k + 1) if len(top) > 1 else (x / (k + 1), lax.full_like(x, 1.0))
            for v in top:
                over = over * (v + k)
            for v in bottom:
                under = under * choose(v + k == 0, 1.0, v + k)
            ratio = over / under
            term = term * choose(active, ratio, 0.0)
            total, k = total + term, k + 1
        # Terms may grow first; they decrease monotonically once their ratio is below 1.
        small = (lax.abs(term) <= tiny * lax.abs(total)) & (lax.abs(ratio) < 1)
        return k, term, total, ~small & (term == term) & active

    start = lax.full_like(x, 1.0) if start is None else start
    first = (lax.full((), 0, typeof(x).dtype), start, start, active)
    return lax.while_loop(going, step, first)[2]


def _by_parameters(fun: Callable[..., Any], derivative: Callable[..., Any]) -> Callable[..., Any]:
    """A function of parameters and a variable, with its derivative with respect to the variable."""
    function = custom_jvp(fun)

    @function.defjvp
    def _function_jvp(primals, tangents):
        y = function(*primals)
        total = tangents[-1] * derivative(*primals)
        for i, t in enumerate(tangents[:-1]):
            units = [
                lax.full_like(p, 1.0 if i == j else 0.0) for j, p in enumerate(primals)
            ]  # fmt: skip
            total = total + t * jvp(fun, primals, tuple(units))[1]
        return y, total

    return function


def _gamma_ratio(over: Sequence[Any], under: Sequence[Any]) -> Any:
    """A quotient of products of gammas; 0 if a denominator is infinite."""
    sign: Any = 1.0
    log: Any = 0.0
    for v in over:
        sign, log = sign * plain_sign(v), log + lax.lgamma(v)
    zero: Any = False
    for v in under:
        pole = _ends(v)
        safe = choose(pole, 1.0, v)
        sign, log = sign * plain_sign(safe), log - lax.lgamma(safe)
        zero = pole | zero
    return choose(zero, 0.0, sign * lax.exp(log))


# 1F1


def _kummer(a: Any, b: Any, x: Any) -> Any:
    finite = _ends(a)
    transformed = (x < 0) & ~finite  # exp(x) 1F1(b - a, b, -x)
    top, z = choose(transformed, b - a, a), choose(transformed, -x, x)
    size = lax.abs(top) + lax.abs(b) + 1
    far = (z > (100 if is_double(x) else 50)) & (z > 2 * size * size) & ~_ends(top)
    # Half of the factor before the sum and half after it, to avoid overflow and underflow
    half = lax.exp(choose(transformed & ~far, 0.5 * x, 0.0))
    near = half * _sum([top], [b], choose(far, 1.0, z), ~far, 2000, half)
    # exp(z) z^(a-b) gamma(b) / gamma(a) times an asymptotic series
    big = choose(far, z, 1000.0)
    series = _sum([b - top, 1 - top], [], 1 / big, far, 12)
    log = (top - b) * lax.log(big) + choose(transformed, 0.0, big)
    beyond = _gamma_ratio([b], [top]) * lax.exp(log) * series
    out = choose(far, beyond, near)
    pole = _ends(b) & ~(finite & (a > b)) & ~((a == b) & finite)
    out = choose(pole & (a != 0), np.inf, choose((a == 0) | (x == 0), lax.full_like(x, 1.0), out))
    return choose((a != a) | (b != b) | (x != x), np.nan, out)


_one_one = _by_parameters(in_blocks(_kummer), lambda a, b, x: a / b * _one_one(a + 1, b + 1, x))


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


def _near_one(a: Any, b: Any, c: Any, rest: Any, active: Any) -> Any:
    """``2F1(a, b, c, 1 - rest)`` for small ``rest``, where ``active`` is true: 15.3.6 of
    Abramowitz and Stegun, and 15.3.10 to 15.3.12 if ``c - a - b`` is an integer."""
    gap = c - a - b
    nearest = lax.floor(gap + 0.5)
    rounding = 8 * float(dtypes.finfo(typeof(gap).dtype).eps)
    whole = lax.abs(gap - nearest) <= rounding * (lax.abs(a) + lax.abs(b) + lax.abs(c))
    gap = choose(whole, nearest, gap)
    # Euler's transformation maps a negative integer to a positive one.
    transformed = whole & (gap < 0)
    factor = choose(transformed, lax.pow(rest, gap), lax.full_like(rest, 1.0))
    a, b = choose(transformed, c - a, a), choose(transformed, c - b, b)
    gap = choose(transformed, -gap, gap)
    other = active & ~whole
    s = choose(other, gap, 0.5)
    first = _gamma_ratio([c, s], [c - a, c - b]) * _sum([a, b], [1 - s], rest, other, 500)
    second = _gamma_ratio([c, -s], [a, b]) * _sum([c - a, c - b], [1 + s], rest, other, 500)
    general = first + lax.pow(rest, s) * second
    integral = active & whole
    m = choose(integral, gap, 0.0)
    logarithmic = lax.cond(
        lax.reduce_or(integral, tuple(range(typeof(rest).ndim))),
        _logarithmic, lambda a, b, m, rest: lax.full_like(rest, 0.0), a, b, m, rest,
    )  # fmt: skip
    return factor * choose(whole, logarithmic, general)


def _logarithmic(a: Any, b: Any, m: Any, rest: Any) -> Any:
    """The case ``c = a + b + m`` with an integer ``m >= 0``."""
    steps = 60 if is_double(rest) else 30
    log = lax.log(rest)

    def step(i: Any, state: Any) -> Any:
        few, many, head, tail, weight = state
        k = lax.convert_element_type(i, typeof(rest).dtype)
        # (a)_k (b)_k / (k! (1-m)_k) rest^k for k < m
        head = head + choose(k < m, few, 0.0)
        bottom = 1 - m + k
        few = few * (a + k) * (b + k) / ((k + 1) * choose(bottom == 0, 1.0, bottom)) * rest
        tail = tail + many * weight
        one, two, three, four = a + m + k, b + m + k, k + 1, k + m + 1
        many = many * one * two / (three * four) * rest
        # The recurrence of digamma; a and b are no integers <= 0.
        weight = weight + ((1 / one + 1 / two) - (1 / three + 1 / four))
        return few, many, head, tail, weight

    one, zero = lax.full_like(rest, 1.0), lax.full_like(rest, 0.0)
    weight = log - lax.digamma(one) - lax.digamma(m + 1) + lax.digamma(a + m) + lax.digamma(b + m)
    start = (one, one, zero, zero, weight)
    _, _, head, tail, _ = lax.fori_loop(0, steps, step, start)
    positive = choose(m > 0, m, 1.0)
    finite = _gamma_ratio([positive, a + b + m], [a + m, b + m]) * head
    odd = lax.rem(m, lax.full_like(m, 2.0)) == 1
    sign = choose(odd, lax.full_like(m, -1.0), 1.0)
    scale = _gamma_ratio([a + b + m], [a, b, m + 1]) * lax.pow(rest, m)
    return choose(m > 0, finite, 0.0) - sign * scale * tail


def _gauss(a: Any, b: Any, c: Any, x: Any) -> Any:
    finite = _ends(a) | _ends(b)
    one = lax.full_like(x, 1.0)
    # Pfaff's transformation maps negative numbers to [0, 1).
    transformed = (x < 0) & ~finite
    low = choose(transformed, x, 0.0)
    factor = choose(transformed, lax.pow(1 - low, -a), one)
    second = choose(transformed, c - b, b)
    z = choose(transformed, low / (low - 1), x)
    rest = choose(transformed, 1 / (1 - low), 1 - x)
    ends = finite | _ends(second)
    inside = ~ends & (z <= 0.9)
    high = ~ends & (z > 0.9) & (z < 1)
    series = _sum([a, second], [c], choose(inside | ends, z, 0.5), inside | ends, 1000)
    beyond = lax.cond(
        lax.reduce_or(high, tuple(range(typeof(x).ndim))),
        _near_one, lambda a, b, c, rest, active: lax.full_like(rest, 0.0),
        a, second, c, choose(high, rest, 0.05), high,
    )  # fmt: skip
    gap = c - a - second
    at_one = choose(
        gap > 0, _gamma_ratio([c, choose(gap > 0, gap, one)], [c - a, c - second]), np.inf
    )
    out = choose(high, beyond, choose(~ends & (z == 1), at_one, series))
    out = factor * choose(~ends & (z > 1), np.inf, out)
    pole = _ends(c) & ~((_ends(a) & (a >= c)) | (_ends(b) & (b >= c)))
    out = choose(pole, np.inf, choose((x == 0) | (a == 0) | (b == 0), one, out))
    return choose((a != a) | (b != b) | (c != c) | (x != x), np.nan, out)


_two_one = _by_parameters(
    in_blocks(_gauss), lambda a, b, c, x: a * b / c * _two_one(a + 1, b + 1, c + 1, x)
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
