"""Orthogonal polynomials of integral degree, by their three-term recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, elementwise

from .._elementary import choose
from ._operands import called, differentiable, in_blocks

MOST_DEGREES: Final = 1e6
"""Functions of larger degrees are NaN: the time grows with the degree."""


def _recurrence(n: Any, first: Any, step: Callable[[Any, Any, Any], Any]) -> Any:
    """``P_n`` from ``P_0 = 1``, ``P_1 = first`` and ``P_k = step(k, P_(k-1), P_(k-2))``; 0 for
    negative ``n``, NaN for large ones."""
    n = choose(n <= MOST_DEGREES, n, np.nan)
    one = lax.full_like(first, 1.0)
    last = lax.reduce_max(choose(n == n, n, 0.0), tuple(range(typeof(n).ndim)))

    def going(state: Any) -> Any:
        return state[0] <= last

    def body(state: Any) -> Any:
        k, low, high = state
        new = step(k, high, low)
        more = k <= n
        return k + 1, choose(more, high, low), choose(more, new, high)

    start = (lax.full_like(last, 2.0), one, first)
    out = lax.while_loop(going, body, start)[2]
    return choose(n < 0, 0.0, choose(n == 0, one, choose(n == n, out, np.nan)))


def _jacobi_sum(n: Any, a: Any, b: Any, x: Any) -> Any:
    total = a + b

    def step(k: Any, high: Any, low: Any) -> Any:
        m = 2 * k + total
        left = (m - 1) * (m * (m - 2) * x + a * a - b * b) * high
        right = 2 * (k + a - 1) * (k + b - 1) * m * low
        return (left - right) / (2 * k * (k + total) * (m - 2))

    return _recurrence(n, (a + 1) + 0.5 * (total + 2) * (x - 1), step)


def _gegenbauer_sum(n: Any, a: Any, x: Any) -> Any:
    step = lambda k, high, low: (2 * (k + a - 1) * x * high - (k + 2 * a - 2) * low) / k
    return _recurrence(n, 2 * a * x, step)


def _laguerre_sum(n: Any, a: Any, x: Any) -> Any:
    step = lambda k, high, low: ((2 * k - 1 + a - x) * high - (k - 1 + a) * low) / k
    return _recurrence(n, 1 + a - x, step)


def _legendre_sum(n: Any, x: Any) -> Any:
    # The difference of two successive ones loses fewer digits near x = 1.
    step = lambda k, high, low: x * high + (k - 1) / k * (x * high - low)
    return _recurrence(n, x, step)


def _first_chebyshev_sum(n: Any, x: Any) -> Any:
    return _recurrence(n, x, lambda k, high, low: 2 * x * high - low)


def _second_chebyshev_sum(n: Any, x: Any) -> Any:
    return _recurrence(n, 2 * x, lambda k, high, low: 2 * x * high - low)


def _hermite_sum(n: Any, x: Any) -> Any:
    return _recurrence(n, 2 * x, lambda k, high, low: 2 * (x * high - (k - 1) * low))


def _monic_hermite_sum(n: Any, x: Any) -> Any:
    return _recurrence(n, x, lambda k, high, low: x * high - (k - 1) * low)


def _no_slope(n: Any, *rest: Any) -> Any:
    """Integral degrees have no derivative."""
    return lax.full_like(n, 0.0)


_jacobi = differentiable(
    _no_slope, None, None,
    lambda n, a, b, x, _: 0.5 * (n + a + b + 1) * _jacobi(n - 1, a + 1, b + 1, x),
)(in_blocks(_jacobi_sum))  # fmt: skip
_gegenbauer = differentiable(
    _no_slope, None, lambda n, a, x, _: 2 * a * _gegenbauer(n - 1, a + 1, x)
)(in_blocks(_gegenbauer_sum))
_laguerre = differentiable(
    _no_slope, None, lambda n, a, x, _: -_laguerre(n - 1, a + 1, x)
)(in_blocks(_laguerre_sum))  # fmt: skip
_legendre = differentiable(
    _no_slope, lambda n, x, _: _gegenbauer(n - 1, lax.full_like(x, 1.5), x)
)(in_blocks(_legendre_sum))  # fmt: skip
_first_chebyshev = differentiable(
    _no_slope, lambda n, x, _: n * _second_chebyshev(n - 1, x)
)(in_blocks(_first_chebyshev_sum))  # fmt: skip
_second_chebyshev = differentiable(
    _no_slope, lambda n, x, _: 2 * _gegenbauer(n - 1, lax.full_like(x, 2.0), x)
)(in_blocks(_second_chebyshev_sum))
_hermite = differentiable(_no_slope, lambda n, x, _: 2 * n * _hermite(n - 1, x))(
    in_blocks(_hermite_sum)
)
_monic_hermite = differentiable(_no_slope, lambda n, x, _: n * _monic_hermite(n - 1, x))(
    in_blocks(_monic_hermite_sum)
)


def _whole_degrees(name: str, n: Any) -> None:
    check_arrays(name, n)
    if typeof(n).dtype.kind not in "iu":
        raise TypeError(f"{name}: degrees must be integers, got {typeof(n).dtype.name}")


@elementwise
def _evaluated_legendre(n: Any, x: Any) -> Array:
    # P_(-n-1) = P_n
    fun = lambda n, x: _legendre(choose(n < 0, -n - 1, n), x)
    return called("eval_legendre", fun, n, x)


def eval_legendre(n: ArrayLike, x: ArrayLike) -> Array:
    """Legendre polynomials.

    Args:
      n: degrees, integers; the polynomial of ``-n - 1`` is that of ``n``.
        Above 1e6 it is NaN.
      x: real numbers.

    It is differentiable to any order with respect to ``x``.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if ``x`` is complex.

    >>> round(float(eval_legendre(2, 0.5)), 4)
    -0.125
    """
    _whole_degrees("eval_legendre", n)
    return _evaluated_legendre(n, x)


@elementwise
def _evaluated_chebyt(n: Any, x: Any) -> Array:
    return called("eval_chebyt", lambda n, x: _first_chebyshev(lax.abs(n), x), n, x)


def eval_chebyt(n: ArrayLike, x: ArrayLike) -> Array:
    """Chebyshev polynomials of the first kind.

    Args:
      n: degrees, integers; the polynomial of ``-n`` is that of ``n``.
        Above 1e6 it is NaN.
      x: real numbers.

    It is differentiable to any order with respect to ``x``.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if ``x`` is complex.

    >>> eval_chebyt(3, 0.5).tolist()
    -1.0
    """
    _whole_degrees("eval_chebyt", n)
    return _evaluated_chebyt(n, x)


@elementwise
def _evaluated_chebyu(n: Any, x: Any) -> Array:
    def fun(n: Any, x: Any) -> Any:
        # U_(-n-2) = -U_n
        left = n < 0
        value = _second_chebyshev(choose(left, -n - 2, n), x)
        return choose(left, -value, value)

    return called("eval_chebyu", fun, n, x)


def eval_chebyu(n: ArrayLike, x: ArrayLike) -> Array:
    """Chebyshev polynomials of the second kind.

    Args:
      n: degrees, integers; the polynomial of ``-n - 2`` is that of ``n`` with the other sign.
        Above 1e6 it is NaN.
      x: real numbers.

    It is differentiable to any order with respect to ``x``.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if ``x`` is complex.

    >>> eval_chebyu(2, 0.5).tolist()
    0.0
    """
    _whole_degrees("eval_chebyu", n)
    return _evaluated_chebyu(n, x)


def _nan_for_negative(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda n, x: choose(n < 0, np.nan, fun(n, x))


@elementwise
def _evaluated_hermite(n: Any, x: Any) -> Array:
    return called("eval_hermite", _nan_for_negative(_hermite), n, x)


def eval_hermite(n: ArrayLike, x: ArrayLike) -> Array:
    """Hermite polynomials of the physicists, orthogonal with the weight ``exp(-x²)``.

    Args:
      n: degrees, integers; negative ones and those above 1e6 give NaN.
      x: real numbers.

    It is differentiable to any order with respect to ``x``.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if ``x`` is complex.

    >>> eval_hermite(2, 1.0).tolist()
    2.0
    """
    _whole_degrees("eval_hermite", n)
    return _evaluated_hermite(n, x)


@elementwise
def _evaluated_hermitenorm(n: Any, x: Any) -> Array:
    return called("eval_hermitenorm", _nan_for_negative(_monic_hermite), n, x)


def eval_hermitenorm(n: ArrayLike, x: ArrayLike) -> Array:
    """Hermite polynomials of the probabilists, orthogonal with the weight ``exp(-x² / 2)``.

    Args:
      n: degrees, integers; negative ones and those above 1e6 give NaN.
      x: real numbers.

    It is differentiable to any order with respect to ``x``.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if ``x`` is complex.

    >>> eval_hermitenorm(2, 3.0).tolist()
    8.0
    """
    _whole_degrees("eval_hermitenorm", n)
    return _evaluated_hermitenorm(n, x)


@elementwise
def _evaluated_laguerre(n: Any, x: Any) -> Array:
    fun = lambda n, x: _laguerre(n, lax.full_like(x, 0.0), x)
    return called("eval_laguerre", fun, n, x)


def eval_laguerre(n: ArrayLike, x: ArrayLike) -> Array:
    """Laguerre polynomials, orthogonal with the weight ``exp(-x)``.

    Args:
      n: degrees, integers; negative ones give 0, those above 1e6 NaN.
      x: real numbers.

    It is differentiable to any order with respect to ``x``.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if ``x`` is complex.

    >>> eval_laguerre(2, 2.0).tolist()
    -1.0
    """
    _whole_degrees("eval_laguerre", n)
    return _evaluated_laguerre(n, x)


@elementwise
def _evaluated_genlaguerre(n: Any, alpha: Any, x: Any) -> Array:
    return called("eval_genlaguerre", _laguerre, n, alpha, x)


def eval_genlaguerre(n: ArrayLike, alpha: ArrayLike, x: ArrayLike) -> Array:
    """Generalized Laguerre polynomials, orthogonal with the weight ``x^alpha exp(-x)``.

    Args:
      n: degrees, integers; negative ones give 0, those above 1e6 NaN.
      alpha, x: real numbers.

    Derivatives of any order with respect to ``x``; with respect to ``alpha`` one in reverse mode
    and more in forward mode.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if another argument is complex.

    >>> eval_genlaguerre(1, 0.5, 1.0).tolist()
    0.5
    """
    _whole_degrees("eval_genlaguerre", n)
    return _evaluated_genlaguerre(n, alpha, x)


@elementwise
def _evaluated_gegenbauer(n: Any, alpha: Any, x: Any) -> Array:
    return called("eval_gegenbauer", _gegenbauer, n, alpha, x)


def eval_gegenbauer(n: ArrayLike, alpha: ArrayLike, x: ArrayLike) -> Array:
    """Gegenbauer polynomials, orthogonal with the weight ``(1 - x²)^(alpha - 1/2)``.

    Args:
      n: degrees, integers; negative ones give 0, those above 1e6 NaN.
      alpha, x: real numbers.

    Derivatives are as for :func:`eval_genlaguerre`.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if another argument is complex.

    >>> eval_gegenbauer(1, 1.5, 0.5).tolist()
    1.5
    """
    _whole_degrees("eval_gegenbauer", n)
    return _evaluated_gegenbauer(n, alpha, x)


@elementwise
def _evaluated_jacobi(n: Any, alpha: Any, beta: Any, x: Any) -> Array:
    return called("eval_jacobi", _jacobi, n, alpha, beta, x)


def eval_jacobi(n: ArrayLike, alpha: ArrayLike, beta: ArrayLike, x: ArrayLike) -> Array:
    """Jacobi polynomials, orthogonal with the weight ``(1 - x)^alpha (1 + x)^beta``.

    Args:
      n: degrees, integers; negative ones give 0, those above 1e6 NaN.
      alpha, beta, x: real numbers.

    Derivatives are as for :func:`eval_genlaguerre`.

    Raises:
      TypeError: if ``n`` does not have integers.
      ValueError: if another argument is complex.

    >>> eval_jacobi(1, 0.5, 0.5, 1.0).tolist()
    1.5
    """
    _whole_degrees("eval_jacobi", n)
    return _evaluated_jacobi(n, alpha, beta, x)
