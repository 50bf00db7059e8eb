"""Nodes and weights of Gaussian quadrature.

Nodes are the eigenvalues of a tridiagonal matrix (Golub and Welsch, Math. Comp. 23, 1969), improved
by Newton's method; weights are reciprocal sums of squares of orthonormal polynomials. All are
computed in double precision when a function is traced.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core.extend import Array, Tracer
from primax_core.typing import ArrayLike


def _polynomials(x: Any, diagonal: Any, squares: Any) -> tuple[Any, Any, Any]:
    """The orthonormal polynomial of degree ``n`` over its derivative, the sum of squares of those
    below, and the logarithm of a common factor of that sum."""
    n = len(diagonal)
    low, slope_low = np.zeros_like(x), np.zeros_like(x)
    high, slope = np.ones_like(x), np.zeros_like(x)
    total, log = np.zeros_like(x), np.zeros_like(x)
    roots = np.sqrt(np.append(squares, 1.0))
    for k in range(n):
        total = total + high * high
        back = roots[k - 1] if k else 0.0
        new = ((x - diagonal[k]) * high - back * low) / roots[k]
        new_slope = (high + (x - diagonal[k]) * slope - back * slope_low) / roots[k]
        low, slope_low, high, slope = high, slope, new, new_slope
        size = np.maximum(np.abs(high), np.maximum(np.abs(low), 1.0))
        large = size > 1e100
        scale = np.where(large, 1 / size, 1.0)
        low, slope_low, high, slope = (v * scale for v in (low, slope_low, high, slope))
        total, log = total * scale * scale, log - 2 * np.log(scale)
    return high / np.where(slope == 0, 1.0, slope), total, log


def gauss_rule(diagonal: Any, squares: Any, mass: float, symmetric: bool) -> tuple[Any, Any]:
    """Nodes and weights from the coefficients of the recurrence.

    Args:
      diagonal, squares: diagonal and squared subdiagonal of the tridiagonal matrix.
      mass: the integral of the weight function.
      symmetric: whether nodes are symmetric about 0.
    """
    n = len(diagonal)
    matrix = np.diag(diagonal) + np.diag(np.sqrt(squares), -1)
    x = np.linalg.eigvalsh(matrix)
    for _ in range(2):
        step = _polynomials(x, diagonal, squares)[0]
        x = x - np.where(np.isfinite(step), step, 0.0)
    if symmetric:
        x = 0.5 * (x - x[::-1])
        if n % 2:
            x[n // 2] = 0.0
    _, total, log = _polynomials(x, diagonal, squares)
    weights = np.exp(-log) / total
    if symmetric:
        weights = 0.5 * (weights + weights[::-1])
    return x, weights * (mass / math.fsum(weights))


def _result(rule: tuple[Any, Any], mass: float, mu: Any) -> Any:
    x, w = (pnp.asarray(v, dtype=float) for v in rule)
    return (x, w, pnp.asarray(mass, dtype=float)) if operator.truth(mu) else (x, w)


def _degree(name: str, n: Any) -> int:
    if isinstance(n, Tracer):
        raise TypeError(f"{name}: n must be a Python integer, because it determines the shape")
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"{name}: n must be positive, got {n}")
    return n


def _parameter(name: str, which: str, value: Any, low: float) -> float:
    if isinstance(value, Tracer):
        raise TypeError(f"{name}: {which} must be a number that is not traced")
    value = float(value)
    if not value > low:
        raise ValueError(f"{name}: {which} must be greater than {low:g}, got {value}")
    return value


def _jacobi_coefficients(n: int, a: float, b: float) -> tuple[Any, Any, float]:
    k = np.arange(n, dtype=np.float64)
    total = a + b
    bottom = (2 * k + total) * (2 * k + total + 2)
    diagonal = np.where(bottom == 0, 0.0, (b * b - a * a) / np.where(bottom == 0, 1.0, bottom))
    diagonal[0] = (b - a) / (total + 2)
    k = k[1:]
    m = 2 * k + total
    # For k = 1 the factors k + total and m - 1 are equal.
    quotient = np.where(k == 1, 1.0, (k + total) / np.where(k == 1, 1.0, m - 1))
    squares = 4 * k * (k + a) * (k + b) * quotient / (m * m * (m + 1))
    log = math.lgamma(a + 1) + math.lgamma(b + 1) - math.lgamma(total + 2)
    return diagonal, squares, 2 ** (total + 1) * math.exp(log)


def roots_legendre(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights of Gauss-Legendre quadrature on [-1, 1].

    Args:
      n: the number of nodes, a positive Python integer.
      mu: also return the sum of the weights.

    Returns:
      Nodes ``[n]`` in ascending order, weights ``[n]``, and the sum with ``mu``.

    Raises:
      TypeError: if ``n`` is traced.
      ValueError: if ``n`` is not positive.

    >>> x, w = roots_legendre(2)
    >>> [round(float(v), 5) for v in x], [round(float(v), 5) for v in w]
    ([-0.57735, 0.57735], [1.0, 1.0])
    """
    n = _degree("roots_legendre", n)
    diagonal, squares, _ = _jacobi_coefficients(n, 0.0, 0.0)
    return _result(gauss_rule(diagonal, squares, 2.0, True), 2.0, mu)


def roots_jacobi(n: int, alpha: ArrayLike, beta: ArrayLike, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights of Gauss-Jacobi quadrature, with the weight
    ``(1 - x)^alpha (1 + x)^beta`` on [-1, 1].

    Args:
      n: the number of nodes, a positive Python integer.
      alpha, beta: numbers greater than -1 that are not traced.
      mu: also return the sum of the weights.

    Returns:
      Nodes, weights, and the sum with ``mu``; see :func:`roots_legendre`.

    Raises:
      TypeError: if ``n`` or a parameter is traced.
      ValueError: if ``n`` is not positive, or a parameter not greater than -1.

    >>> [round(float(v), 4) for v in roots_jacobi(2, 1.0, 0.0)[0]]
    [-0.6899, 0.2899]
    """
    n = _degree("roots_jacobi", n)
    a = _parameter("roots_jacobi", "alpha", alpha, -1.0)
    b = _parameter("roots_jacobi", "beta", beta, -1.0)
    diagonal, squares, mass = _jacobi_coefficients(n, a, b)
    return _result(gauss_rule(diagonal, squares, mass, a == b), mass, mu)


def roots_gegenbauer(n: int, alpha: ArrayLike, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights of Gauss-Gegenbauer quadrature, with the weight
    ``(1 - x²)^(alpha - 1/2)`` on [-1, 1].

    Args:
      n: the number of nodes, a positive Python integer.
      alpha: a number greater than -1/2 that is not traced.
      mu: also return the sum of the weights.

    Returns:
      Nodes, weights, and the sum with ``mu``; see :func:`roots_legendre`.

    Raises:
      TypeError: if ``n`` or ``alpha`` is traced.
      ValueError: if ``n`` is not positive, or ``alpha`` not greater than -1/2.

    >>> [round(float(v), 4) for v in roots_gegenbauer(2, 1.0)[0]]
    [-0.5, 0.5]
    """
    n = _degree("roots_gegenbauer", n)
    a = _parameter("roots_gegenbauer", "alpha", alpha, -0.5) - 0.5
    diagonal, squares, mass = _jacobi_coefficients(n, a, a)
    return _result(gauss_rule(diagonal, squares, mass, True), mass, mu)


def roots_chebyt(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights of Gauss-Chebyshev quadrature, with the weight ``1 / sqrt(1 - x²)``.

    Arguments and results are those of :func:`roots_legendre`.

    Args:
      n: the number of nodes, a positive Python integer.
      mu: also return the sum of the weights.

    Returns:
      Nodes ``[n]`` in ascending order, weights ``[n]``, and the sum with ``mu``.

    Raises:
      TypeError: if ``n`` is traced, or not an integer.
      ValueError: if ``n`` is not positive.

    >>> [round(float(v), 4) for v in roots_chebyt(2)[0]]
    [-0.7071, 0.7071]
    """
    n = _degree("roots_chebyt", n)
    x = np.sin(np.pi * np.arange(1 - n, n, 2) / (2 * n))
    return _result((x, np.full(n, np.pi / n)), math.pi, mu)


def roots_chebyu(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights of Gauss-Chebyshev quadrature, with the weight ``sqrt(1 - x²)``.

    Arguments and results are those of :func:`roots_legendre`.

    Args:
      n: the number of nodes, a positive Python integer.
      mu: also return the sum of the weights.

    Returns:
      Nodes ``[n]`` in ascending order, weights ``[n]``, and the sum with ``mu``.

    Raises:
      TypeError: if ``n`` is traced, or not an integer.
      ValueError: if ``n`` is not positive.

    >>> [round(float(v), 4) for v in roots_chebyu(2)[0]]
    [-0.5, 0.5]
    """
    n = _degree("roots_chebyu", n)
    angle = np.pi * np.arange(1 - n, n, 2) / (2 * (n + 1))
    rule = np.sin(angle), np.pi / (n + 1) * np.cos(angle) ** 2
    return _result(rule, 0.5 * math.pi, mu)


def roots_laguerre(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights of Gauss-Laguerre quadrature, with the weight ``exp(-x)`` from 0 on.

    Arguments and results are those of :func:`roots_legendre`.

    Args:
      n: the number of nodes, a positive Python integer.
      mu: also return the sum of the weights.

    Returns:
      Nodes ``[n]`` in ascending order, weights ``[n]``, and the sum with ``mu``.

    Raises:
      TypeError: if ``n`` is traced, or not an integer.
      ValueError: if ``n`` is not positive.

    >>> [round(float(v), 4) for v in roots_laguerre(2)[0]]
    [0.5858, 3.4142]
    """
    return roots_genlaguerre(n, 0.0, mu)


def roots_genlaguerre(n: int, alpha: ArrayLike, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights of Gauss-Laguerre quadrature, with the weight ``x^alpha exp(-x)``.

    Args:
      n: the number of nodes, a positive Python integer.
      alpha: a number greater than -1 that is not traced.
      mu: also return the sum of the weights.

    Returns:
      Nodes, weights, and the sum with ``mu``; see :func:`roots_legendre`.

    Raises:
      TypeError: if ``n`` or ``alpha`` is traced.
      ValueError: if ``n`` is not positive, or ``alpha`` not greater than -1.

    >>> [round(float(v), 4) for v in roots_genlaguerre(1, 0.5)[0]]
    [1.5]
    """
    n = _degree("roots_genlaguerre", n)
    a = _parameter("roots_genlaguerre", "alpha", alpha, -1.0)
    k = np.arange(n, dtype=np.float64)
    mass = math.gamma(a + 1)
    rule = gauss_rule(2 * k + 1 + a, k[1:] * (k[1:] + a), mass, False)
    return _result(rule, mass, mu)


def roots_hermite(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights of Gauss-Hermite quadrature, with the weight ``exp(-x²)``.

    Arguments and results are those of :func:`roots_legendre`.

    Args:
      n: the number of nodes, a positive Python integer.
      mu: also return the sum of the weights.

    Returns:
      Nodes ``[n]`` in ascending order, weights ``[n]``, and the sum with ``mu``.

    Raises:
      TypeError: if ``n`` is traced, or not an integer.
      ValueError: if ``n`` is not positive.

    >>> [round(float(v), 4) for v in roots_hermite(2)[0]]
    [-0.7071, 0.7071]
    """
    n = _degree("roots_hermite", n)
    mass = math.sqrt(math.pi)
    rule = gauss_rule(np.zeros(n), 0.5 * np.arange(1.0, n), mass, True)
    return _result(rule, mass, mu)


def roots_hermitenorm(n: int, mu: bool = False) -> tuple[Array, ...]:
    """Nodes and weights of Gauss-Hermite quadrature, with the weight ``exp(-x² / 2)``.

    Arguments and results are those of :func:`roots_legendre`.

    Args:
      n: the number of nodes, a positive Python integer.
      mu: also return the sum of the weights.

    Returns:
      Nodes ``[n]`` in ascending order, weights ``[n]``, and the sum with ``mu``.

    Raises:
      TypeError: if ``n`` is traced, or not an integer.
      ValueError: if ``n`` is not positive.

    >>> [round(float(v), 4) for v in roots_hermitenorm(2)[0]]
    [-1.0, 1.0]
    """
    n = _degree("roots_hermitenorm", n)
    mass = math.sqrt(2 * math.pi)
    rule = gauss_rule(np.zeros(n), np.arange(1.0, n), mass, True)
    return _result(rule, mass, mu)
