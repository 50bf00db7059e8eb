"""Log-gamma, its derivatives, and Hurwitz's zeta function."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.samples import Sample, bf16, f32, samples
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from . import comparison
from .arithmetic import add, mul, neg
from .barrier import optimization_barrier
from .computed_in_float64 import (
    Real,
    Truth,
    computed_in_float64,
    exp,
    floor,
    horner,
    log,
    log_for_power,
    pow,
    rarely,
    where,
)
from .control.while_loop import while_loop
from .conversion import convert
from .elementwise import (
    elementwise_samples,
    fast_path,
    full_like,
    full_of,
    scalar_like,
    to_shape,
)
from .reducing import reduce_min
from .rounding import round as nearest
from .selection import select
from .stirling import SHIFT, log_gamma_over, stirling

# Coefficients of sin(πr) / r and of cos(πr) in powers of r².
_SINE: Final = [(-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11)]
_COSINE: Final = [(-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k) for k in range(11)]
_HALF_LOG: Final = (math.log(2 * math.pi) - 1) / 2
_BERNOULLI: Final = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip
# Number of terms of zeta functions before the Euler-Maclaurin formula, and of that formula.
_TERMS: Final = {True: (8, 12), False: (4, 7)}


def _from_integer(x: Real) -> Real:
    """Signed distance of elements from the nearest integers."""
    return x - Real(nearest(x.x))


# The logarithm


def _log_gamma(precise: bool, x: Real) -> Real:
    """Stirling's series; near the zeros at 1 and 2, a Chebyshev series."""
    left = x < 0.5
    y = where(left, 1 - x, x)
    # From [1/2, 3] to [1, 2], by a factor or a divisor whose logarithm is small near the zeros.
    near = where(y < 1, y, where(y > 2, y - 2, y - 1)).max(0).min(1)
    middle = near * log_gamma_over(precise, near)
    shift = SHIFT[precise]
    few = y < shift
    big = where(few, y + shift, y)
    far = (big - 0.5) * (log(big) - 1) + (stirling(precise, big) + _HALF_LOG)
    product: Any = 1.0
    for i in range(shift):
        product = (y + i) * product
    value = where(y < 3, middle, far)
    divided = (y < 1) | (y >= 3)
    part = where(y < 3, where(y < 1, y, where(y > 2, y - 1, 1)), where(few, product, 1))
    r = _from_integer(x)
    mirror = math.pi / (abs(r) * horner(r * r, _SINE))
    part_log = log(where(left, mirror * where(divided, part, 1 / part), part))
    plain = where(divided, value - part_log, value + part_log)
    value = where(left, part_log - value, plain)
    return where(abs(x).equals(math.inf), math.inf, value)


lgamma_p: Final = computed_in_float64("lgamma", _log_gamma, 1, lambda x: digamma(x), short=True)


@fast_path(lgamma_p)
def lgamma(x: ArrayLike) -> Array:
    """Logarithm of the absolute value of the gamma function, of each element.

    It is infinite at the poles 0, -1, -2, ...

    Args:
      x: an array or a number of floating dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype, or is not an array or a number.

    The derivative is :func:`digamma`. Under ``vmap`` the batch is one operand.

    >>> x = np.array([1.0, 4.0, 0.5, 0.0], np.float32)
    >>> print(np.asarray(lgamma(x)).round(4))
    [0.     1.7918 0.5724    inf]
    """
    return lgamma_p.bind(x)


# Its first derivative


def _digamma(precise: bool, x: Real) -> Real:
    y = where(x < 0.5, 1 - x, x)
    shift = SHIFT[precise]
    few = y < shift
    big = where(few, y + shift, y)
    # Σ 1 / (y + i) as the logarithmic derivative of a product
    product, derivative = y, y * 0 + 1
    for i in range(1, shift):
        product, derivative = product * (y + i), derivative * (y + i) + product
    inverse = 1 / big
    terms = [-b / (2 * k) for k, b in enumerate(_BERNOULLI[: 7 if precise else 5], 1)]
    square = inverse * inverse
    value = log(big) - 0.5 * inverse + square * horner(square, terms)
    value = where(few, value - derivative / where(few, product, 1), value)
    r = _from_integer(x)
    square = r * r
    terms = 11 if precise else 9
    cotangent = horner(square, _COSINE[:terms]) / (r * horner(square, _SINE[:terms]))
    value = where(x < 0.5, value - math.pi * cotangent, value)
    value = where((x < 0) & r.equals(0) | x.equals(-math.inf), math.nan, value)
    return where(x.equals(0), -math.inf, value)


digamma_p: Final = computed_in_float64(
    "digamma", _digamma, 1, lambda x: polygamma_p.bind(full_like(x, 1), x), short=True
)


@fast_path(digamma_p)
def digamma(x: ArrayLike) -> Array:
    """Derivative of :func:`lgamma`, of each element.

    It is NaN at the negative poles and ``-inf`` at 0.

    Args:
      x: an array or a number of floating dtype. Integers are not converted.

    Returns:
      An array of the shape and dtype of ``x``, weakly typed if ``x`` is.

    Raises:
      TypeError: if ``x`` does not have a floating dtype, or is not an array or a number.

    The derivative is ``polygamma(1, x)``. Under ``vmap`` the batch is one operand.

    >>> x = np.array([1.0, 2.0, 0.0, -1.0], np.float32)
    >>> print(np.asarray(digamma(x)).round(4))
    [-0.5772  0.4228    -inf     nan]
    """
    return digamma_p.bind(x)


# Zeta


def _power(x: Real, y: Real) -> Real:
    """``x ** y``, faster than ``pow`` and precise enough for narrow floats."""
    return exp(log_for_power(x) * y)


def _zeta_positive(precise: bool, s: Real, q: Real) -> Real:
    """Zeta function for ``s > 1`` and ``q > 0``, with the Euler-Maclaurin formula."""
    first, terms = _TERMS[precise]
    raised = pow if precise else _power
    total: Any = 0.0
    for k in range(first):
        total = raised(q + k, -s) + total
    end = q + first
    inverse = 1 / end
    square = inverse * inverse
    series: Any = 0.0
    for j in range(terms, 0, -1):
        factor = (s + (2 * j - 1)) * (s + 2 * j) * square
        series = factor * series + _BERNOULLI[j - 1] / math.factorial(2 * j)
    return total + raised(end, -s) * (end / (s - 1) + 0.5 + s * inverse * series)


def _is_integer(x: Real) -> Truth:
    return x.equals(floor(x))


def _zeta_round(precise: bool, i: Real, s: Real, q: Real, total: Real) -> Real:
    """Zeta function, or for ``q < 0`` and integers ``s`` one of three terms, added to the others.

    The series over all integers is periodic in ``q``, so the terms are the zeta functions of the
    fraction of ``q``, of the fraction of ``-q`` and of ``1 - q``, with signs.
    """
    first = i.equals(0)
    left = (q < 0) & ~_is_integer(q) & _is_integer(s)
    start = where(first, q - floor(q), where(i.equals(1), -q - floor(-q), 1 - q))
    value = _zeta_positive(precise, where(s > 1, s, 2), where(q < 0, start, q))
    sign = where(_is_integer(s * 0.5), 1, -1, s) * (3 - 2 * i)
    value = where(left & ~first, total + sign * value, value)
    value = where((s > 1) & (left | (q > 0)), value, math.nan)
    value = where((s > 1) & q.equals(math.inf), 0, value)
    pole = (q <= 0) & _is_integer(q) & _is_integer(s * 0.5) & (s > 1)
    return where(pole | s.equals(1), math.inf, value)


def _zeta(precise: bool, s: Real, q: Real) -> Real:
    """Three rounds if an element of ``q`` is negative or NaN, otherwise one."""
    work, shape = typeof(q.x).dtype, typeof(q.x).shape
    operands = [convert(v.x, dtypes.f64 if precise else dtypes.f32) for v in (s, q)]
    lowest = reduce_min(operands[1], tuple(range(len(shape))))

    def more(state):
        few = comparison.ge(lowest, scalar_like(lowest, 0))
        i = state[0]
        return comparison.lt(i, select(few, scalar_like(i, 1), scalar_like(i, 3)))

    def turn(state):
        # Behind a barrier with the index, nothing is invariant. XLA would compute each invariant
        # in a loop of its own, whose compilation takes time.
        i, *arrays = optimization_barrier((state[0], *operands))
        s, q = (Real(convert(x, work)) for x in arrays)
        index = Real(to_shape(convert(i, work), shape))
        value = _zeta_round(precise, index, s, q, Real(state[1]))
        return add(i, scalar_like(i, 1)), value.x

    # The first round ignores the total before it. As ``q`` it is divided among devices like that.
    start = (full_of(ShapedArray((), dtypes.i32), 0), q.x)
    return Real(while_loop(more, turn, start)[1])


def _by_q(s: Any, q: Any) -> Any:
    return mul(neg(s), zeta(add(s, scalar_like(s, 1)), q))


zeta_p: Final = computed_in_float64("zeta", _zeta, 2, None, _by_q, short=True)


@fast_path(zeta_p)
def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz's zeta function, the sum of ``(q + k)^-x`` over ``k >= 0``.

    With ``q = 1`` it is Riemann's zeta function.

    Args:
      x: floats. The result is infinite for ``x = 1`` and NaN for ``x < 1``.
      q: floats of the dtype of ``x``, with a shape as for :func:`add`. For negative ``q`` the
        result is NaN unless ``x`` is an integer.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are not floating, or the shapes are incompatible.

    The derivative with respect to ``q`` is ``-x zeta(x + 1, q)``. Under ``vmap`` the batch is one
    operand.

    >>> round(float(zeta(2.0, 1.0)), 5)  # π²/6
    1.64493
    >>> round(float(zeta(4.0, 2.0)), 5)
    0.08232
    """
    return zeta_p.bind(x, q)


# Higher derivatives


def _polygamma(precise: bool, m: Real, x: Real) -> Real:
    zero = m.equals(0)
    order = where(zero | (m < 0), 1, m)
    shifted = order + SHIFT[precise]
    product: Any = 1.0
    for i in range(1, SHIFT[precise] + 1):
        product = (order + i) * product
    # Γ(shifted + 1) by Stirling's formula. Powers of integers lose fewer digits than a logarithm.
    power = (pow if precise else _power)(shifted, (shifted + 0.5) * 0.5)
    scale = exp(stirling(precise, shifted)) * math.sqrt(2 * math.pi) / product
    value = power * exp(-shifted) * scale * _zeta(precise, order + 1, x) * power
    value = where(_is_integer(order * 0.5), -value, value)
    value = where(zero, rarely(zero, lambda m, x: _digamma(precise, x), m, x), value)
    return where((m < 0) | ~_is_integer(m), math.nan, value)


def _no_derivative(m: Any, x: Any) -> Any:
    raise ValueError("polygamma gradient with respect to m is not supported")


polygamma_p: Final = computed_in_float64(
    "polygamma",
    _polygamma,
    2,
    _no_derivative,
    lambda m, x: polygamma(add(m, scalar_like(m, 1)), x),
)


@fast_path(polygamma_p)
def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The ``m``-th derivative of :func:`digamma`, of each element.

    Args:
      m: the order of the derivative: floats with nonnegative integer values; NaN for other
        values.
      x: floats of the dtype of ``m``, with a shape as for :func:`add`.

    Returns:
      An array of the joint shape and of the operands' dtype.

    Raises:
      TypeError: if the dtypes differ or are not floating, or the shapes are incompatible.
      ValueError: if it is differentiated with respect to ``m``.

    The derivative with respect to ``x`` is ``polygamma(m + 1, x)``. Under ``vmap`` the batch is
    one operand.

    >>> round(float(polygamma(1.0, 1.0)), 5)  # π²/6
    1.64493
    >>> round(float(polygamma(2.0, 1.0)), 5)
    -2.40411
    """
    return polygamma_p.bind(m, x)


elementwise_samples(lgamma_p, "f", low=0.3, high=6.0)
elementwise_samples(digamma_p, "f", low=0.3, high=6.0)


@zeta_p.rule(samples)
def _zeta_samples():
    yield Sample(f32(3, low=1.5, high=5), f32(3, low=0.5, high=5))
    yield Sample(f32(low=1.5, high=5), f32(2, 2, low=0.5, high=5))
    yield Sample(bf16(2, low=1.5, high=5), bf16(2, low=0.5, high=5))


@polygamma_p.rule(samples)
def _polygamma_samples():
    yield Sample(np.array([0, 1, 3], np.float32), f32(3, low=0.5, high=5))
    yield Sample(np.float32(2), f32(2, 2, low=0.5, high=5))
