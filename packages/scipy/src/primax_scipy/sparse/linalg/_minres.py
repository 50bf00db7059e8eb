"""Minimal residuals for Hermitian systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import primax_numpy as pnp
from primax_core import lax, tree
from primax_core.typing import ArrayLike, PyTree
from primax_numpy.declaring import is_complex

from ._operators import OperatorLike
from ._solvers import _Method, _solve
from ._vectors import Operator, minus, plus, product, square, times


def _real(x: Any) -> Any:
    return lax.real(x) if is_complex(x) else x


def _minres(limit: Any, maxiter: Any) -> _Method:
    """The Lanczos iteration with plane rotations of Paige and Saunders."""

    def method(matvec: Operator, b: Any, x0: Any, precondition: Operator) -> Any:
        first = minus(b, matvec(x0))
        start = precondition(first)
        beta1 = lax.sqrt(pnp.maximum(_real(product(first, start)), 0))
        size = square(first)
        # The recurrence has the residual in the norm of the preconditioner.
        bound = limit * (beta1 * beta1) / pnp.where(size > 0, size, 1)

        def going(s: Any) -> Any:
            return (s[-3] ** 2 > bound) & (s[-2] > 0) & (s[-1] < maxiter)

        def step(s: Any) -> Any:
            x, y, r1, r2, w1, w2, old, eps, bar, c, sine, phi, beta, k = s
            v = times(1 / beta, y)
            y = matvec(v)
            y = minus(y, times(pnp.where(k > 0, beta / old, 0), r1))
            alpha = _real(product(v, y))
            y = minus(y, times(alpha / beta, r2))
            r1, r2, y, old = r2, y, precondition(y), beta
            beta = lax.sqrt(pnp.maximum(_real(product(r2, y)), 0))
            delta, gbar = c * bar + sine * alpha, sine * bar - c * alpha
            before, eps, bar = eps, sine * beta, -c * beta
            gamma = lax.sqrt(gbar * gbar + beta * beta)
            gamma = pnp.where(gamma > 0, gamma, 1)
            c, sine = gbar / gamma, beta / gamma
            w = times(1 / gamma, minus(minus(v, times(before, w1)), times(delta, w2)))
            x = plus(x, times(c * phi, w))
            return x, y, r1, r2, w2, w, old, eps, bar, c, sine, sine * phi, beta, k + 1

        zero, nothing = pnp.zeros_like(beta1), tree.map(pnp.zeros_like, b)
        one = pnp.ones_like(beta1)
        state = (
            x0, start, first, first, nothing, nothing, one, zero, zero, -one, zero, beta1, beta1, 0,
        )  # fmt: skip
        return lax.while_loop(going, step, state)[0]

    return method


def minres(
    A: OperatorLike | Callable[[Any], Any], b: PyTree, x0: PyTree = None, *, tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0, maxiter: ArrayLike | None = None,
    M: OperatorLike | Callable[[Any], Any] | None = None,
) -> tuple[Any, None]:  # fmt: skip
    """Solution ``x`` of ``A @ x = b`` by minimal residuals, for Hermitian, possibly indefinite
    ``A``.

    Arguments, results and errors are those of :func:`cg`; ``M`` must be Hermitian positive
    definite, and with it the tolerance applies to the norm that ``M`` defines. The algorithm is
    that of Paige and Saunders (SIAM J. Numer. Anal. 12, 1975).

    >>> import numpy as np
    >>> x, _ = minres(np.float32([[1, 2], [2, -1]]), np.float32([5, 0]))
    >>> [round(float(v), 3) for v in x]
    [1.0, 2.0]
    """
    return _solve(_minres, A, b, x0, tol, atol, maxiter, M, True), None
