"""Entropies, logarithmic products, the logistic function and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, elementwise, is_complex
from primax_numpy.exponentials import logistic

from .._elementary import choose, is_double
from .._functions import promoted_floats
from ._operands import differentiable, matched, same_shape


def _zeros(x: Any) -> Any:
    return lax.full_like(x, 0)


@custom_jvp
def _x_log_y(x: Any, y: Any) -> Any:
    none = (x == 0) & (y == y)
    return choose(none, _zeros(x), x * lax.log(choose(none, lax.full_like(y, 1), y)))


@_x_log_y.defjvp
def _x_log_y_jvp(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    none = (x == 0) & (y == y)
    by_y = choose(none, _zeros(x), x / choose(none, lax.full_like(y, 1), y))
    return _x_log_y(x, y), tx * lax.log(y) + ty * by_y


@elementwise
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """``x log(y)``; 0 if ``x`` is 0 and ``y`` is not NaN, with the derivative 0 with respect to
    ``y``.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type.
      y: the argument of the logarithm, as ``x``; the shapes broadcast.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the shapes do not broadcast.

    The derivatives are ``log(y)`` and ``x / y``.

    >>> float(xlogy(0.0, 0.0))
    0.0
    >>> round(float(xlogy(2.0, 3.0)), 4)
    2.1972
    """
    return _x_log_y(*same_shape(*promoted_floats("xlogy", x, y)))


@custom_jvp
def _x_log1p_y(x: Any, y: Any) -> Any:
    none = (x == 0) & (y == y)
    return choose(none, _zeros(x), x * lax.log1p(choose(none, _zeros(y), y)))


@_x_log1p_y.defjvp
def _x_log1p_y_jvp(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    none = (x == 0) & (y == y)
    by_y = choose(none, _zeros(x), x / (1 + choose(none, _zeros(y), y)))
    return _x_log1p_y(x, y), tx * lax.log1p(y) + ty * by_y


@elementwise
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Product ``x log(1 + y)``, accurate for small ``y``; 0 if ``x`` is 0 and ``y`` is not NaN,
    with the derivative 0 with respect to ``y``.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type.
      y: the argument of the logarithm less 1, as ``x``; the shapes broadcast.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the shapes do not broadcast.

    The derivatives are ``log1p(y)`` and ``x / (1 + y)``.

    >>> float(xlog1py(0.0, -1.0)), round(float(xlog1py(2.0, 0.5)), 4)
    (0.0, 0.8109)
    """
    return _x_log1p_y(*same_shape(*promoted_floats("xlog1py", x, y)))


@custom_jvp
def _entropy(x: Any) -> Any:
    return choose(x < 0, -np.inf, -_x_log_y(x, x))


@_entropy.defjvp
def _entropy_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _entropy(x), t * (-1 - lax.log(x))


@elementwise
def entr(x: ArrayLike) -> Array:
    """``-x log(x)``; 0 at 0 and ``-inf`` for negative numbers.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``-log(x) - 1``. The sum over the probabilities of a distribution is its
    entropy in nats.

    >>> [round(float(v), 4) for v in entr(np.float32([0.5, 0.25, -1.0]))]
    [0.3466, 0.3466, -inf]
    """
    (x,) = matched("entr", x)
    return _entropy(x)


def _minus_log1p(x: Any) -> Any:
    """``x - log(1 + x)`` for ``abs(x) < 1/2``, without cancellation.

    With ``r = x / (2 + x)``, the logarithm is ``2 artanh(r)``, and ``x - 2 r`` is ``x r``.
    """
    r = x / (2 + x)
    square = r * r
    series: Any = lax.full_like(x, 0.0)
    for k in reversed(range(17 if is_double(x) else 9)):
        series = series * square + 2 / (2 * k + 3)
    return r * (x - square * series)


def _log_ratio(p: Any, q: Any) -> Any:
    """``log(p / q)`` of positive numbers, accurate for quotients near 1."""
    gap = (p - q) / q
    near = lax.abs(gap) < 0.5
    return choose(near, lax.log1p(choose(near, gap, 0.0)), lax.log(p / q))


def _positive(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """A condition that both are positive, and the numbers where it holds, 1 elsewhere."""
    both = (p > 0) & (q > 0)
    return both, choose(both, p, 1.0), choose(both, q, 1.0)


def _with_derivatives(more: bool) -> Any:
    """Relative entropy, or with ``more`` the Kullback-Leibler divergence, and the derivatives."""

    @custom_jvp
    def divergence(p: Any, q: Any) -> Any:
        both, p1, q1 = _positive(p, q)
        main = p1 * _log_ratio(p1, q1)
        if more:
            gap = (q1 - p1) / p1
            near = lax.abs(gap) < 0.5
            main = choose(near, p1 * _minus_log1p(choose(near, gap, 0.0)), main - p1 + q1)
        at_zero = q if more else _zeros(q)
        out = choose(both, main, choose((p == 0) & (q >= 0), at_zero, np.inf))
        return choose((p != p) | (q != q), np.nan, out)

    @divergence.defjvp
    def _divergence_jvp(primals, tangents):
        (p, q), (tp, tq) = primals, tangents
        both, p1, q1 = _positive(p, q)
        log, ratio = _log_ratio(p1, q1), p1 / q1
        by_p, by_q = (log, 1 - ratio) if more else (log + 1, -ratio)
        at_zero = choose((p == 0) & (q >= 0), lax.full_like(q, 1.0 if more else 0.0), 0.0)
        bad = choose((p != p) | (q != q), lax.full_like(q, np.nan), 0.0)
        by_p, by_q = choose(both, by_p, bad), choose(both, by_q, at_zero + bad)
        return divergence(p, q), by_p * tp + by_q * tq

    return divergence


_relative_entropy, _kullback_leibler = _with_derivatives(False), _with_derivatives(True)


def _divergence(name: str, p: Any, q: Any, more: bool) -> Any:
    return (_kullback_leibler if more else _relative_entropy)(*matched(name, p, q))


@elementwise
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """``p log(p / q)``; 0 if ``p`` is 0, infinite if an argument is negative or only ``q`` is 0.

    Derivatives are 0 if the result is 0 by this definition, or infinite.

    Args:
      p, q: real numbers whose shapes broadcast; integers are converted to the default float type.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if an argument is complex, or the shapes do not broadcast.

    The sum over two distributions is their relative entropy (Kullback-Leibler divergence) in nats.
    The derivatives are otherwise ``log(p / q) + 1`` and ``-p / q``.

    >>> [round(float(rel_entr(p, q)), 4) for p, q in ((0.5, 0.25), (0.0, 0.5), (0.5, 0.0))]
    [0.3466, 0.0, inf]
    """
    return _divergence("rel_entr", p, q, False)


@elementwise
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """``p log(p / q) - p + q``; ``q`` if ``p`` is 0, infinite if an argument is negative or only
    ``q`` is 0.

    Args:
      p, q: real numbers whose shapes broadcast; integers are converted to the default float type.

    Returns:
      An array of the common shape and the promoted dtype. It is not negative, and 0 only for equal
      arguments.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if an argument is complex, or the shapes do not broadcast.

    The derivatives are ``log(p / q)`` and ``1 - p / q``.

    >>> [round(float(kl_div(p, q)), 4) for p, q in ((0.5, 0.25), (0.0, 0.5), (0.5, 0.0))]
    [0.0966, 0.5, inf]
    """
    return _divergence("kl_div", p, q, True)


# The logistic function


@custom_jvp
def _log_odds(x: Any) -> Any:
    if is_complex(x):
        return lax.log(x / (1 - x))
    # One formula is accurate outside of [1/4, 3/4], the other inside.
    middle = (x > 0.25) & (x < 0.75)
    y = choose(middle, x, 0.5)
    return choose(middle, lax.log1p((2 * y - 1) / (1 - y)), lax.log(x) - lax.log1p(-x))


@_log_odds.defjvp
def _log_odds_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _log_odds(x), t / (x * (1 - x))


@elementwise
def logit(x: ArrayLike) -> Array:
    """Logarithm of the odds, ``log(x / (1 - x))``, the inverse of :func:`expit`.

    Args:
      x: probabilities, real or complex numbers, an array or a number; integers are converted to the
        default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. Real numbers outside [0, 1] give
      NaN.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.

    The derivative is ``1 / (x * (1 - x))``, infinite at 0 and 1.

    >>> [round(float(v), 4) for v in logit(np.float32([0.0, 0.25, 0.5, 1.0, 2.0]))]
    [-inf, -1.0986, 0.0, inf, nan]
    """
    return _log_odds(as_inexact(x))


@elementwise
def expit(x: ArrayLike) -> Array:
    """Logistic function, ``1 / (1 + exp(-x))``.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. Real results are in [0, 1].

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.

    The inverse is :func:`logit`. The derivative is ``expit(x) * expit(-x)``.

    >>> float(expit(0.0))
    0.5
    >>> [round(float(v), 4) for v in expit(np.float32([-2.0, 2.0, 100.0]))]
    [0.1192, 0.8808, 1.0]
    """
    x = as_inexact(x)
    return lax.logistic(x) if is_complex(x) else logistic(x)


# Box-Cox transformation


def _power_less_1(log: Any, power: Any) -> Any:
    """``(exp(power log) - 1) / power``; the logarithm for a power of 0."""
    tiny = lax.abs(power) < 1e-30
    safe = choose(tiny, lax.full_like(power, 1), power)
    # For a tiny power, two terms of the series also give the derivative with respect to it.
    infinite = lax.abs(log) == np.inf
    inner = choose(infinite, _zeros(log), log)
    near = choose(infinite, log, inner * (1 + 0.5 * (power * inner)))
    return choose(tiny, near, lax.expm1(safe * log) / safe)


@differentiable(
    lambda x, power, _: choose(power == 1, 1.0, choose(power > 1, 0.0, lax.full_like(x, np.inf))),
    lambda x, power, _: 1 / (power * power),
)
def _box_cox_of_0(x: Any, power: Any) -> Any:
    """``(x^power - 1) / power`` for ``x`` 0 and a positive power."""
    return -1 / power


def _box_cox(log: Any, x: Any, power: Any, end: float) -> Any:
    """The transformation; ``log`` is a function of ``x`` that is infinite at ``end``."""
    if is_complex(x):
        return _power_less_1(log(x), power)
    at_end = (x == end) & (power > 0)
    usual = _power_less_1(log(choose(at_end, end + 1.0, x)), power)
    zero = choose(at_end, x - end, 0.0)
    return choose(at_end, _box_cox_of_0(zero, choose(at_end, power, 1.0)), usual)


@elementwise
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box-Cox transformation, ``(x^lmbda - 1) / lmbda``; the logarithm for ``lmbda`` 0.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type. Negative real ones give NaN.
      lmbda: the exponents, as ``x``; the shapes broadcast.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the shapes do not broadcast.

    The result and its derivatives are accurate for small ``lmbda``. The inverse is
    :func:`inv_boxcox`.

    >>> round(float(boxcox(4.0, 0.5)), 4), round(float(boxcox(4.0, 0.0)), 4)
    (2.0, 1.3863)
    """
    x, power = same_shape(*promoted_floats("boxcox", x, lmbda))
    return _box_cox(lax.log, x, power, 0.0)


@elementwise
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box-Cox transformation of ``1 + x``, accurate for small ``x``; see :func:`boxcox`.

    Args:
      x: real or complex numbers, an array or a number; integers are converted to the default float
        type. Real ones below -1 give NaN.
      lmbda: the exponents, as ``x``; the shapes broadcast.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the shapes do not broadcast.

    The inverse is :func:`inv_boxcox1p`. The derivative with respect to ``x`` is ``(1 + x)**(lmbda -
    1)``.

    >>> round(float(boxcox1p(3.0, 0.5)), 4), round(float(boxcox1p(3.0, 0.0)), 4)
    (2.0, 1.3863)
    """
    x, power = same_shape(*promoted_floats("boxcox1p", x, lmbda))
    return _box_cox(lax.log1p, x, power, -1.0)
