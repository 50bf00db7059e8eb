"""Polar decompositions by dynamically weighted Halley iterations (QDWH).

Y. Nakatsukasa, Z. Bai and F. Gygi, "Optimizing Halley's iteration for computing the matrix polar
decomposition", SIAM J. Matrix Anal. Appl. 31, 2010. Equation numbers are those of that paper.
"""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import numpy as np

from ..._engine.jit_cache import library_function
from ..._trace.array import Array
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..arithmetic import add, mul, sub
from ..bitwise import bitwise_and, bitwise_not
from ..broadcasting import broadcasted_iota
from ..comparison import eq, gt, lt
from ..control.while_loop import while_loop
from ..conversion import convert
from ..elementwise import full_like, to_shape
from ..exponential import rsqrt, sqrt
from ..joining import concatenate
from ..magnitude import abs
from ..reducing import reduce_max, reduce_sum
from ..selection import select
from .cholesky import cholesky_p
from .matrices import adjoint, check_operands, conjugate, eye_like, matmul, real_part, rows, tril
from .qr import qr
from .triangular import triangular_solve

_BY_QR_ABOVE = 100.0
"""Largest weight ``c`` for which the cheaper iteration, with a Cholesky factor, is accurate."""


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[Any, Any] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Polar decomposition: ``x = u @ h`` with orthonormal columns of ``u`` and Hermitian ``h``.

    Args:
      x: ``inexact[m, n]`` of at least 32 bits, with ``m >= n``.
      is_hermitian: True if ``x`` is Hermitian; ``u`` is then Hermitian too.
      max_iterations: 10 by default.
      eps: the accuracy, and a lower bound of the ratio of the singular values; by default the
        distance from 1 to the next float.
      dynamic_shape: sizes of the upper left part of ``x`` to use, which may be traced; the other
        elements count as zero, and are zero in the results.

    Returns:
      ``(u[m, n], h[n, n], number of iterations, converged)``. ``h`` is positive semidefinite;
      ``converged`` is a boolean.

    Raises:
      TypeError: for other dtypes.
      ValueError: if ``x`` is not a matrix with at least as many rows as columns, or ``eps`` is not
        positive.

    Forward-mode differentiation is supported, reverse mode is not.

    >>> u, h, n, converged = qdwh(np.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> (abs(u - np.array([[0.0, 1.0], [1.0, 0.0]])) < 1e-6).tolist(), bool(converged)
    ([[True, True], [True, True]], True)
    """
    aval = typeof(x)
    if aval.ndim != 2:
        raise ValueError(f"qdwh takes one matrix, got shape {aval.shape}; see vmap")
    check_operands("qdwh", (aval,), (2,))
    if aval.shape[0] < aval.shape[1]:
        raise ValueError("The input matrix of shape M x N must have M >= N.")
    if eps is None:
        eps = float(np.finfo(aval.dtype).eps)
    if not eps > 0:
        raise ValueError(f"eps must be positive, got {eps}")
    limit = 10 if max_iterations is None else operator.index(max_iterations)
    sizes = () if dynamic_shape is None else tuple(dynamic_shape)
    return _qdwh(x, *sizes, is_hermitian=bool(is_hermitian), limit=limit, eps=float(eps))


def weights(smallest: float, tolerance: float, limit: int) -> list[tuple[float, float, float]]:
    """The weights ``a, b, c`` of each iteration (3.7), until singular values are 1.

    Args:
      smallest: a lower bound of the smallest singular value, if the largest is 1.
    """
    triples = []
    at = smallest
    while at + tolerance < 1 and len(triples) < limit:
        square = at * at
        d = (4 * (1 - square) / square**2) ** (1 / 3)
        root = math.sqrt(1 + d)
        a = root + math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * root)) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        triples.append((a, b, c))
        at = at * (a + b * square) / (1 + c * square)
    return triples


@partial(library_function, static_argnames=("is_hermitian", "limit", "eps"), name="qdwh")
def _qdwh(x, *sizes, is_hermitian, limit, eps):
    if sizes:
        x = _cut(x, sizes)
    tolerance = (5 * eps) ** (1 / 3)

    def symmetric(u):
        return _times(add(u, adjoint(u)), 0.5) if is_hermitian else u

    def by_cholesky(u, a, b, c):
        new = symmetric(_by_cholesky(u, a, b, c))
        change = _frobenius(sub(new, u))
        return new, gt(change, full_like(change, tolerance))

    u, moving = _scaled(x), np.True_
    steps = weights(eps, 5 * eps, limit)
    for a, b, c in steps:
        if c > _BY_QR_ABOVE:
            u = symmetric(_by_qr(u, a, b, c))
        else:
            u, moving = by_cholesky(u, a, b, c)

    def step(carry):
        k, u, _ = carry
        return (add(k, 1), *by_cholesky(u, 3.0, 1.0, 3.0))

    k, u, moving = while_loop(
        lambda carry: bitwise_and(carry[2], lt(carry[0], limit)), step, (len(steps), u, moving)
    )
    # One Newton-Schulz step removes rounding errors.
    u = sub(_times(u, 1.5), _times(matmul(u, matmul(adjoint(u), u)), 0.5))
    h = matmul(adjoint(u), x)
    return u, _times(add(h, adjoint(h)), 0.5), k, bitwise_not(moving)


def _times(x: Any, factor: float) -> Any:
    return mul(x, full_like(x, factor))


def _cut(x: Any, sizes: tuple) -> Any:
    """The matrix with zeros outside its upper left part."""
    shape = typeof(x).shape
    row, column = (
        lt(broadcasted_iota(np.int32, shape, i), to_shape(convert(s, np.dtype(np.int32)), shape))
        for i, s in enumerate(sizes)
    )
    return select(bitwise_and(row, column), x, full_like(x, 0))


def _scaled(x: Any) -> Any:
    """The matrix, scaled to singular values of at most 1."""
    if not typeof(x).size:
        return x
    size = abs(x)
    one, infinity = (reduce_max(reduce_sum(size, (i,)), (0,)) for i in (0, 1))
    factor = mul(rsqrt(one), rsqrt(infinity))
    factor = select(eq(one, full_like(one, 0)), full_like(factor, 1), factor)
    return mul(x, convert(factor, typeof(x).dtype))


def _frobenius(x: Any) -> Any:
    return sqrt(reduce_sum(real_part(mul(x, conjugate(x))), (0, 1)))


def _by_qr(u: Any, a: float, b: float, c: float) -> Any:
    """One iteration by a QR decomposition (5.11)."""
    m = typeof(u).shape[0]
    below = eye_like(rows(u, 0, typeof(u).shape[1]))
    q, _ = qr(concatenate([_times(u, math.sqrt(c)), below], 0), full_matrices=False)
    q1, q2 = rows(q, 0, m), rows(q, m, typeof(q).shape[0])
    step = _times(matmul(q1, adjoint(q2)), (a - b / c) / math.sqrt(c))
    return add(_times(u, b / c), step)


def _by_cholesky(u: Any, a: float, b: float, c: float) -> Any:
    """One iteration by a Cholesky decomposition (5.12)."""
    z = _times(matmul(adjoint(u), u), c)
    factor = tril(cholesky_p.bind(add(z, eye_like(z))))
    x = triangular_solve(factor, adjoint(u), left_side=True, lower=True)
    x = triangular_solve(factor, x, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
    return add(_times(u, b / c), _times(adjoint(x), a - b / c))
