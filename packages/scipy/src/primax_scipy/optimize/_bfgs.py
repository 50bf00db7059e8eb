"""Minimization by the method of Broyden, Fletcher, Goldfarb and Shanno."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax, value_and_grad
from primax_core.extend import typeof

from ._line_search import line_search
from ._results import OptimizeResults


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    inverse: Any
    failed: Any
    evaluations: Any
    steps: Any


def bfgs(
    fun: Callable[[Any], Any], x0: Any, maxiter: Any = None, norm: Any = np.inf, gtol: Any = 1e-5,
    line_search_maxiter: int = 10,
) -> OptimizeResults:  # fmt: skip
    """Algorithm 6.1 of Nocedal and Wright, *Numerical Optimization* (2006)."""
    n = typeof(x0).size
    limit = 200 * n if maxiter is None else maxiter
    evaluate = value_and_grad(fun)

    def small(gradient: Any) -> Any:
        return pnp.linalg.norm(gradient, norm) < gtol

    def going(state: _State) -> Any:
        return ~state.failed & ~small(state.gradient) & (state.steps < limit)

    def step(state: _State) -> _State:
        x, value, gradient, inverse, _, count, steps = state
        direction = -_times(inverse, gradient)
        # The curvature is unknown in the first step.
        size = pnp.where(steps == 0, pnp.linalg.norm(gradient), 1)
        first = 1 / pnp.maximum(size, 1)
        search = line_search(evaluate, x, direction, value, gradient, first, line_search_maxiter)
        move = search.point.step * direction
        return _State(
            x + move, search.point.value, search.point.gradient,
            _updated(inverse, move, search.point.gradient - gradient),
            ~search.decreased, count + search.tries, steps + 1,
        )  # fmt: skip

    value, gradient = evaluate(x0)
    first = _State(x0, value, gradient, pnp.eye(n, dtype=typeof(x0).dtype), False, 1, 0)
    last = lax.while_loop(going, step, first)
    success = small(last.gradient)
    status = pnp.where(success, 0, pnp.where(last.failed, 3, 1))
    return OptimizeResults(
        last.x, success, status, last.value, last.gradient, last.inverse,
        last.evaluations, last.evaluations, last.steps,
    )  # fmt: skip


def _times(x: Any, y: Any) -> Any:
    return pnp.matmul(x, y, precision=lax.Precision.HIGHEST)


def _updated(inverse: Any, move: Any, change: Any) -> Any:
    """The BFGS update of the inverse Hessian; unchanged if the curvature condition fails."""
    curvature = _times(move, change)
    useful = curvature > 0
    rho = 1 / pnp.where(useful, curvature, 1)
    one = pnp.eye(len(move), dtype=typeof(move).dtype)
    left = one - rho * pnp.outer(move, change)
    new = _times(left, _times(inverse, left.T)) + rho * pnp.outer(move, move)
    return pnp.where(useful, new, inverse)
