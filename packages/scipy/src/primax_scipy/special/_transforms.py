"""Losses, inverses of the Box-Cox transformation, exponentials relative to their argument."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise

from .._elementary import bounded, choose, is_double, with_derivative
from ._error_functions import _log_lower_tail, _normal_quantile
from ._operands import called, differentiable

# Losses


def _huber_loss(delta: Any, r: Any) -> Any:
    size = lax.abs(r)
    loss = choose(size <= delta, 0.5 * (r * r), delta * (size - 0.5 * delta))
    return choose(delta < 0, np.inf, loss)


@elementwise
def huber(delta: ArrayLike, r: ArrayLike) -> Array:
    """Huber's loss: ``r² / 2`` up to ``|r| = delta``, then linear with equal derivatives.

    Args:
      delta: real numbers; negative ones give infinity.
      r: residuals, real numbers.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if an argument is complex, or the shapes do not broadcast.

    The derivative with respect to ``r`` is ``r`` clipped to the interval from ``-delta`` to
    ``delta``.

    >>> huber(1.0, 3.0).tolist()
    2.5
    """
    return called("huber", _huber_loss, delta, r)


def _pseudo_huber_loss(delta: Any, r: Any) -> Any:
    positive = delta > 0
    scale = choose(positive, delta, 1.0)
    ratio = r / scale
    root = lax.sqrt(1 + ratio * ratio)
    # r² / (1 + root) does not cancel; the other form does not overflow.
    loss = choose(lax.abs(ratio) < 1, r * (r / (1 + root)), scale * (scale * (root - 1)))
    huge = lax.abs(ratio) > (1e150 if is_double(r) else 1e18)
    loss = choose(huge, scale * lax.abs(r), loss)
    zero = choose(delta == 0, 0.0, choose(delta < 0, np.inf, delta))
    return choose(positive, loss, zero)


@elementwise
def pseudo_huber(delta: ArrayLike, r: ArrayLike) -> Array:
    """Smooth form of Huber's loss, ``delta² (sqrt(1 + (r / delta)²) - 1)``.

    Args:
      delta: real numbers; 0 gives 0 and negative ones give infinity.
      r: residuals, real numbers.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if an argument is complex, or the shapes do not broadcast.

    The derivative with respect to ``r`` is ``r / sqrt(1 + (r / delta)**2)``.

    >>> round(float(pseudo_huber(1.0, 2.0)), 4)
    1.2361
    """
    return called("pseudo_huber", _pseudo_huber_loss, delta, r)


# Functions divided by their argument


@partial(custom_jvp, nondiff_argnums=(1,))
def _relative_exp(x: Any, order: int) -> Any:
    """The derivative of some order of ``(exp(x) - 1) / x``.

    With ``f`` this function, ``x f = exp(x) - 1`` gives ``f_m = (exp(x) - m f_(m-1)) / x``, which
    loses no digits for large ``x``; near 0 the power series of ``f_m``.
    """
    near = lax.abs(x) < 1 + order
    if order == 0:
        inner = choose(x == 0, 1.0, x)
        half = lax.exp(0.5 * bounded(x, 40.0, 1500.0))  # avoids overflow before the division
        value = choose(x > 40, half * (half / inner), lax.expm1(inner) / inner)
        return choose(x == 0, 1.0, choose(x == np.inf, np.inf, value))
    low = choose(near, x, 0.0)
    terms = (22 if is_double(x) else 13) + 4 * order
    series: Any = lax.full_like(x, 0.0)
    for k in reversed(range(order, order + terms)):
        # k! / ((k - order)! (k + 1)!)
        series = series * low + 1 / ((k + 1) * math.factorial(k - order))
    far = choose(near, 2.0, x)
    value = (lax.exp(far) - order * _relative_exp(far, order - 1)) / far
    return choose(near, series, choose(x == np.inf, np.inf, value))


@_relative_exp.defjvp
def _relative_exp_jvp(order, primals, tangents):
    (x,), (t,) = primals, tangents
    return _relative_exp(x, order), t * _relative_exp(x, order + 1)


@elementwise
def exprel(x: ArrayLike) -> Array:
    """``(exp(x) - 1) / x`` without loss of digits; 1 at 0.

    Derivatives of any order are accurate near 0 too.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    >>> exprel(0.0).tolist()
    1.0
    >>> [round(float(v), 4) for v in exprel(np.float32([-1.0, 0.0, 1.0]))]
    [0.6321, 1.0, 1.7183]
    """
    return called("exprel", lambda x: _relative_exp(x, 0), x)


@partial(custom_jvp, nondiff_argnums=(1,))
def _relative_log1p(z: Any, order: int) -> Any:
    """The derivative of some order of ``log(1 + z) / z``."""
    if order == 0:
        inner = choose(z == 0, 1.0, z)
        return choose(z == 0, 1.0, lax.log1p(inner) / inner)
    near = lax.abs(z) < 0.25
    low = choose(near, z, 0.0)
    series: Any = lax.full_like(z, 0.0)
    for k in reversed(range(order, order + (30 if is_double(z) else 14) + 2 * order)):
        series = series * low + (-1) ** k * math.perm(k, order) / (k + 1)
    far = choose(near, 1.0, z)
    last = (-1) ** (order - 1) * math.factorial(order - 1) / lax.integer_pow(1 + far, order)
    return choose(near, series, (last - order * _relative_log1p(far, order - 1)) / far)


@_relative_log1p.defjvp
def _relative_log1p_jvp(order, primals, tangents):
    (z,), (t,) = primals, tangents
    return _relative_log1p(z, order), t * _relative_log1p(z, order + 1)


def _inverse_log(y: Any, power: Any) -> Any:
    """``log(1 + power y) / power``, which is ``y`` for a power of 0."""
    undefined = ((power == 0) & (lax.abs(y) == np.inf)) | ((y == 0) & (lax.abs(power) == np.inf))
    z = choose(undefined, 0.0, choose(undefined, 0.0, power) * y)
    infinite = lax.abs(z) == np.inf
    slow = lax.log1p(choose(infinite, z, 0.0)) / choose(infinite, power, 1.0)
    return choose(infinite, slow, y * _relative_log1p(choose(infinite, 0.0, z), 0))


@elementwise
def inv_boxcox(y: ArrayLike, lmbda: ArrayLike) -> Array:
    """Inverse of :func:`boxcox`: ``(1 + lmbda y)^(1 / lmbda)``; ``exp(y)`` for ``lmbda`` 0.

    NaN where ``1 + lmbda y`` is negative. Derivatives are accurate for small ``lmbda`` too.

    Args:
      y: the transformed numbers, real numbers, an array or a number; integers are converted to the
        default float type.
      lmbda: the exponents, real numbers whose shape broadcasts with that of ``y``.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if an argument is complex, or the shapes do not broadcast.

    >>> round(float(inv_boxcox(1.5, 2.0)), 4)
    2.0
    """
    return called("inv_boxcox", lambda y, c: lax.exp(_inverse_log(y, c)), y, lmbda)


@elementwise
def inv_boxcox1p(y: ArrayLike, lmbda: ArrayLike) -> Array:
    """Inverse of :func:`boxcox1p`: ``inv_boxcox(y, lmbda) - 1``, accurate for small ``y``.

    Args:
      y: the transformed numbers, real numbers, an array or a number; integers are converted to the
        default float type.
      lmbda: the exponents, real numbers whose shape broadcasts with that of ``y``.

    Returns:
      An array of the common shape and the promoted dtype.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if an argument is complex, or the shapes do not broadcast.

    >>> round(float(inv_boxcox1p(1.5, 2.0)), 4)
    1.0
    """
    return called("inv_boxcox1p", lambda y, c: lax.expm1(_inverse_log(y, c)), y, lmbda)


# Trigonometric and logistic functions


@with_derivative(lambda x, _: -lax.sin(x))
def _cosine_less_one(x: Any) -> Any:
    half = lax.sin(0.5 * x)
    return -2 * (half * half)


@elementwise
def cosm1(x: ArrayLike) -> Array:
    """``cos(x) - 1`` without loss of digits for small ``x``.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. It is between -2 and 0.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``-sin(x)``.

    >>> round(float(cosm1(1e-3)), 10)
    -5e-07
    """
    return called("cosm1", _cosine_less_one, x)


@custom_jvp
def _log_logistic(x: Any) -> Any:
    tail = lax.log1p(lax.exp(-lax.abs(x)))
    return choose(x < 0, x, 0.0) - tail


@_log_logistic.defjvp
def _log_logistic_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _log_logistic(x), t * lax.logistic(-x)


@elementwise
def log_expit(x: ArrayLike) -> Array:
    """Logarithm of the logistic function, accurate in both tails.

    Args:
      x: real numbers, an array or a number; integers are converted to the default float type.

    Returns:
      An array of the shape of ``x``, and of its dtype for floats. It is not positive.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    The derivative is ``expit(-x)``.

    >>> round(float(log_expit(-1000.0)), 4), round(float(log_expit(0.0)), 4)
    (-1000.0, -0.6931)
    """
    return called("log_expit", _log_logistic, x)


# The inverse of log_ndtr


def _log_quantile_slope(y: Any, x: Any) -> Any:
    """``1 / log_ndtr'(x)`` at ``x = ndtri_exp(y)``."""
    return lax.exp(y + 0.5 * (x * x)) * math.sqrt(2 * math.pi)


@differentiable(_log_quantile_slope)
def _quantile_of_log(y: Any) -> Any:
    """Newton's method in the lower tail, where ``log_ndtr`` is nearly a parabola; elsewhere the
    quantile function of the smaller probability."""
    limit = -2.0
    tail = (y < limit) & (y > -np.inf)
    target = choose(tail, y, limit)
    high = target < (-1e15 if is_double(y) else -1e7)  # sqrt(-2 y) is exact to rounding
    size = -2 * choose(high, limit, target) - math.log(2 * math.pi)
    z = -lax.sqrt(size - lax.log(bounded(size, 1.0, np.inf)))

    def step(_: Any, z: Any) -> Any:
        value = _log_lower_tail(z)
        # log_ndtr' = exp(-z²/2) / sqrt(2π) / ndtr
        bell = lax.exp(-0.5 * (z * z) - value) / math.sqrt(2 * math.pi)
        return z - (value - choose(high, limit, target)) / bell

    z = lax.fori_loop(0, 5 if is_double(y) else 4, step, z)
    z = choose(high, -math.sqrt(2.0) * lax.sqrt(-target), z)
    upper = y > -0.5
    p = choose(upper, -lax.expm1(choose(upper, y, -1.0)), lax.exp(choose(tail, limit, y)))
    q = _normal_quantile(p)
    out = choose(tail, z, choose(upper, -q, q))
    return choose(y == -np.inf, -np.inf, choose((y > 0) | (y != y), np.nan, out))


@elementwise
def ndtri_exp(y: ArrayLike) -> Array:
    """Quantile function of the standard normal distribution at ``exp(y)``: the inverse of
    :func:`log_ndtr`.

    It is accurate where ``exp(y)`` underflows or rounds to 1. NaN for positive numbers.

    Args:
      y: logarithms of probabilities, real numbers, an array or a number; integers are converted to
        the default float type.

    Returns:
      An array of the shape of ``y``. It is ``-inf`` at ``-inf``, and infinite at 0.

    Raises:
      TypeError: if an argument is not an array or a number. Lists are not converted.
      ValueError: if the argument is complex.

    >>> round(float(ndtri_exp(-1000.0)), 4)
    -44.6157
    """
    return called("ndtri_exp", _quantile_of_log, y)
