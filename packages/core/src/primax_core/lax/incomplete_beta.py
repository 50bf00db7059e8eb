"""The regularized incomplete beta function.

It is computed with the continued fraction of A. DiDonato and A. Morris, "Algorithm 708: significant
digit computation of the incomplete beta function ratios" (1992), equation 9, evaluated backward
with a number of terms that depends on the arguments; for small ``b`` and ``1 - x`` with the power
series of the complement; for very large ``a`` and ``b`` with the first terms of Temme's uniform
expansion (N. Temme, "Asymptotic inversion of the incomplete beta function", 1992).
"""

from __future__ import annotations

import math
from functools import reduce
from operator import mul
from typing import Any, Final, NamedTuple

from .._ir import dtypes
from .._ir.samples import Sample, bf16, f32, samples
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from . import arithmetic, exponential
from .comparison import gt
from .computed_in_float64 import (
    Real,
    Truth,
    computed_in_float64,
    derivative_of,
    exp,
    expm1,
    log,
    log1p,
    rarely,
    sqrt,
    where,
)
from .control.while_loop import while_loop
from .conversion import convert
from .elementwise import fast_path, full_like, scalar_like
from .gamma import digamma
from .reducing import reduce_max
from .special import erfc
from .stirling import SHIFT, log_gamma_over, near_deviance, stirling, stirling_quotient

_STEPS: Final = 4  # terms of the fraction in one iteration of its loop
_ENORMOUS: Final = 1e9


class _Terms(NamedTuple):
    """Numbers of terms, and the range of the complement's series."""

    first: float  # terms of the fraction for small parameters
    more: float  # additional terms, times the cube root of large parameters
    series: int
    small: float  # the largest `a (1 - x)` for the series
    tiny: float  # the largest `b` for it; above, a difference from 1 is precise in float64


_TERMS: Final = {True: _Terms(5, 6.1, 28, 3.0, 1.0), False: _Terms(2, 4.3, 22, 4.0, 0.01)}


def _rising(p: Real, n: int) -> Real:
    """``p (p + 1) ... (p + n - 1)``, the first factor times the last one, and so on."""
    ends = p * (p + (n - 1))
    pairs = [ends + i * (n - 1 - i) for i in range(n // 2)]
    return reduce(mul, pairs + [p + n // 2] * (n % 2))


def _power(precise: bool, a: Real, b: Real, x: Real, y: Real) -> Real:
    """``x^a y^b / (a B(a, b))``, where ``y = 1 - x``."""
    shift = SHIFT[precise]
    few_a, few_b = a < shift, b < shift
    big_a, big_b = where(few_a, a + shift, a), where(few_b, b + shift, b)
    total = big_a + big_b
    distance = x * big_b - y * big_a
    # XLA would compute each quotient with several uses in its own loop.
    share = 1 / total

    def side(few, p, big, deviation, part):
        inverse = 1 / big
        u = deviation * inverse
        near, steps = abs(u) < 0.4, where(few, shift, 0, p)
        power = where(near, -steps, p) * log(where(near, part, part * (total * inverse)))
        far = big * u + steps * log(big * share)
        return power - where(near, big * u * u * near_deviance(precise, u), far)

    sides = side(few_a, a, big_a, distance, x) + side(few_b, b, big_b, -distance, y)
    series = stirling(precise, total) - stirling(precise, big_a) - stirling(precise, big_b)
    joint = a + b
    above = where(few_a, _rising(a + 1, shift), 1) * where(few_b, _rising(b, shift), 1)
    below = where(few_a | few_b, _rising(joint, shift), 1)
    below = where(few_a & few_b, _rising(joint + shift, shift), 1) * below
    root = sqrt(big_b / (big_a * total) * (1 / (2 * math.pi)))
    return exp(sides + series) * root * above / below


def _count(precise: bool, p: Real, q: Real) -> Any:
    """Number of steps of the loop of the continued fraction, an integer scalar."""
    terms = _TERMS[precise]
    size = p.min(q.max(1) * 42).min(_ENORMOUS)
    steps = exp(log(size.max(1)) * (1 / 3)) * terms.more + (terms.first + _STEPS)
    most = reduce_max(steps.x, tuple(range(typeof(p.x).ndim)))
    return convert((Real(most) / _STEPS).x, dtypes.i32)


def _fraction(turns: Any, p: Real, q: Real, z: Real, w: Real) -> Real:
    """``I_z(p, q)`` over ``z^p w^q / (p B(p, q))``, where ``w = 1 - z``."""
    bias = p * w - q * z + 1

    def part(n: Any, inverse: Real, next_inverse: Real) -> Real:
        return n + n * (q - n) * z * inverse + (p + n) * (bias + n * (w + 1)) * next_inverse

    def turn(state):
        i, x = state
        f, last = Real(x), Real(convert(i, typeof(x).dtype)) * _STEPS
        inverse = 1 / (p + last * 2 + 1)
        for k in range(_STEPS):
            m = last - k  # index of the numerator after the next one, which has index m + 1
            numerator = (p + m) * (p + q + m) * (m + 1) * (q - m - 1) * (z * inverse).power(2)
            lower = 1 / (p + m * 2 - 1)
            f = part(m, lower, inverse) + numerator / f
            inverse = lower
        return arithmetic.sub(i, scalar_like(i, 1)), f.x

    start = (turns, full_like(p.x, math.inf))
    _, f = while_loop(lambda s: gt(s[0], scalar_like(s[0], 0)), turn, start)
    # The first part has a factor p, which is missing in the result.
    inverse = 1 / (p + 1)
    return 1 / (bias * inverse + (p + q) * (q - 1) * (z * inverse).power(2) / Real(f))


def _complement(precise: bool, a: Real, b: Real, y: Real) -> Real:
    """``1 - I_y(b, a)`` for small ``b`` and ``y``, from a series whose first term is near 1."""
    shift = SHIFT[precise]
    few = a < shift
    big = where(few, a + shift, a)
    grown: Any = 0.0
    for i in range(shift):
        e = b * (1 / (a + i))
        grown = e + grown + e * grown
    # log(Γ(a + b) / Γ(a)) / b
    ratio = (big - 0.5) * (log1p(b / big) / b) + log(big + b) - 1 + stirling_quotient(big, b)
    ratio = where(few, ratio - log1p(grown) / b, ratio)
    power = b * (log(y) + ratio - log_gamma_over(precise, b))
    factor: Any = 1.0
    rest: Any = 0.0
    for n in range(1, _TERMS[precise].series + 1):
        factor = (n - a) * (y * (1 / n)) * factor
        rest = factor / (b + n) + rest
    return -expm1(power) - exp(power) * b * rest


def _uniform(a: Real, b: Real, x: Real) -> Real:
    """Temme's expansion to the first order of its correction."""
    total = a + b
    distance = x * b - (1 - x) * a
    energy: Any = 0.0
    for p, deviation in ((a, distance), (b, -distance)):
        u = (deviation / p).max(-0.4).min(0.4)  # beyond, the tail is 0
        energy = p * u * u * near_deviance(True, u) + energy
    sign = where(distance < 0, -1.0, 1.0, x)
    eta = sign * sqrt(energy * 2 / total)
    width = sqrt(a / total * (b / total))
    f = eta * width / (x - a / total)
    near = (a - b) / total / width / 3
    correction = where(abs(eta) < 1e-5, near, (1 - f) / eta)
    tail = Real(erfc(sqrt(energy).x)) * 0.5
    tail = tail + sign * correction * exp(-energy) / sqrt(total * (2 * math.pi))
    return where(sign < 0, tail, 1 - tail)


def _has_series(terms: _Terms, a: Real, b: Real, y: Real) -> Truth:
    return (b < terms.tiny) & (y < 0.25) & (a * y < terms.small)


def _value(precise: bool, a: Real, b: Real, x: Real) -> Real:
    outside = ~((a >= 0) & (b >= 0) & (x >= 0) & (x <= 1))
    zero_a, zero_b = a.equals(0) | b.equals(math.inf), b.equals(0) | a.equals(math.inf)
    odd = outside | zero_a | zero_b
    p, q, z = where(odd, 1, a), where(odd, 1, b), where(odd, 0.5, x)
    value = _inside(precise, p, q, z)
    # The distribution is concentrated at one end.
    value = where(zero_a, where(x.equals(0), 0.0, 1.0, x), value)
    value = where(zero_b, where(x.equals(1), 1.0, 0.0, x), value)
    return where(outside | (zero_a & zero_b), math.nan, value)


def _inside(precise: bool, a: Real, b: Real, x: Real) -> Real:
    terms, y = _TERMS[precise], 1 - x

    def by_series(value, a, b, y):
        return where(_has_series(terms, a, b, y), _complement(precise, a, b.min(1), y), value)

    def uniform(value, a, b, x):
        return where(a.min(b) > _ENORMOUS, _uniform(a, b, x), value)

    mean = (a + 1) / (a + b + 2)
    mean = where(a < 1, mean.max((terms.small / b).min(0.75)), mean)
    flip = (b >= terms.tiny) & (x > mean)
    p, q, z, w = (where(flip, v, u) for u, v in ((a, b), (b, a), (x, y), (y, x)))
    turns = _count(precise, p, q)
    common = _power(precise, a, b, x, y)
    part = common * where(flip, a / b, 1) * _fraction(turns, p, q, z, w)
    value = where(flip, 1 - part, part)
    value = rarely(_has_series(terms, a, b, y), by_series, value, a, b, y)
    # Without another reduction.
    enormous = Real(turns) > int(_ENORMOUS ** (1 / 3) * terms.more / _STEPS)
    return rarely(enormous, uniform, value, a, b, x)


def _density(precise: bool, a: Real, b: Real, x: Real) -> Real:
    y = 1 - x
    inside = _power(precise, a, b, x, y) * a / x / y
    at_zero = where(a < 1, math.inf, where(a.equals(1), b, 0))
    at_one = where(b < 1, math.inf, where(b.equals(1), a, 0))
    value = where(x.equals(0), at_zero, where(x.equals(1), at_one, inside))
    return where((a > 0) & (b > 0) & (x >= 0) & (x <= 1), value, math.nan)


def _score(a: Any, b: Any, part: Any) -> Any:
    """Derivative of the log-density with respect to ``a``, where ``part`` is ``x``."""
    both = digamma(arithmetic.add(a, b))
    return arithmetic.add(exponential.log(part), arithmetic.sub(both, digamma(a)))


def _decline(a: Any, b: Any, x: Any) -> Any:
    """Derivative of the log-density with respect to ``x``."""
    one = scalar_like(x, 1)
    left = arithmetic.div(arithmetic.sub(a, one), x)
    return arithmetic.sub(left, arithmetic.div(arithmetic.sub(b, one), arithmetic.sub(one, x)))


def _density_times(factor: Any) -> Any:
    return lambda a, b, x: arithmetic.mul(density_p.bind(a, b, x), factor(a, b, x))


_by_a: Final = _density_times(_score)
_by_b: Final = _density_times(lambda a, b, x: _score(b, a, arithmetic.sub(scalar_like(x, 1), x)))
density_p: Final = computed_in_float64(
    "beta_density", _density, 3, _by_a, _by_b, _density_times(_decline)
)
betainc_grad_a_p: Final = computed_in_float64(
    "betainc_grad_a", derivative_of(_value, 0), 3, None, None, _by_a, orders=0
)
betainc_grad_b_p: Final = computed_in_float64(
    "betainc_grad_b", derivative_of(_value, 1), 3, None, None, _by_b, orders=0
)
regularized_incomplete_beta_p: Final = computed_in_float64(
    "regularized_incomplete_beta",
    _value,
    3,
    betainc_grad_a_p.bind,
    betainc_grad_b_p.bind,
    density_p.bind,
)


@fast_path(regularized_incomplete_beta_p)
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function.

    ``∫ t^(a-1) (1 - t)^(b-1)`` from 0 to ``x``, divided by the integral from 0 to 1: the
    probability that a beta variable with parameters ``a`` and ``b`` is at most ``x``.

    Args:
      a: nonnegative floats, the first parameter.
      b: nonnegative floats of the dtype of ``a``, the second parameter.
      x: floats in [0, 1]. Shapes are as for :func:`add`. The result is NaN for other values.

    Returns:
      An array of the joint shape and of the operands' dtype, with values in [0, 1].

    Raises:
      TypeError: if the dtypes differ or are not floating, or the shapes are incompatible.

    It is differentiable with respect to all three operands. Under ``vmap`` the batch is one
    operand.

    >>> import numpy as np
    >>> round(float(betainc(2.0, 1.0, 0.5)), 6)
    0.25
    >>> x = np.array([0.0, 0.5, 1.0], np.float32)
    >>> print(np.asarray(betainc(2.0, 3.0, x)).round(4))
    [0.     0.6875 1.    ]
    """
    return regularized_incomplete_beta_p.bind(a, b, x)


def _samples():
    shapes, part = {"low": 0.4, "high": 5}, {"low": 0.1, "high": 0.9}
    yield Sample(f32(3, **shapes), f32(3, **shapes), f32(3, **part))
    yield Sample(bf16(low=20, high=40), bf16(2, low=20, high=40), bf16(**part))


for _prim in (regularized_incomplete_beta_p, density_p, betainc_grad_a_p, betainc_grad_b_p):
    _prim.rule(samples)(_samples)
