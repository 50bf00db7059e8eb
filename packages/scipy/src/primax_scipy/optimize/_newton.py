"""Newton's method with conjugate gradients: line search and trust region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import grad, jvp, lax, value_and_grad
from primax_core.extend import dtypes, typeof

from ._line_search import line_search
from ._results import OptimizeResults


def _inner(x: Any, y: Any) -> Any:
    return pnp.dot(x, y, precision=lax.Precision.HIGHEST)


class _Inner(NamedTuple):
    p: Any
    r: Any
    d: Any
    done: Any
    k: Any


def _conjugate_gradients(
    product: Callable[[Any], Any], gradient: Any, radius: Any, limit: int
) -> Any:
    """An approximate minimizer of the quadratic model, within a radius, which may be None.

    Steihaug's method, algorithms 7.1 and 7.2 of Nocedal and Wright, *Numerical Optimization*
    (2006).
    """
    size = pnp.linalg.norm(gradient)
    tolerance = pnp.minimum(0.5, lax.sqrt(size)) * size

    def going(s: _Inner) -> Any:
        return ~s.done & (s.k < limit)

    def step(s: _Inner) -> _Inner:
        hd = product(s.d)
        curvature = _inner(s.d, hd)
        rr = _inner(s.r, s.r)
        negative = curvature <= 0
        alpha = rr / pnp.where(negative, 1, curvature)
        p = s.p + alpha * s.d
        if radius is None:
            stop = negative
            # A direction of negative curvature is used in the first step only.
            boundary = pnp.where(s.k == 0, s.d, s.p)
        else:
            stop = negative | (pnp.linalg.norm(p) >= radius)
            boundary = s.p + _to_boundary(s.p, s.d, radius) * s.d
        r = s.r + alpha * hd
        converged = pnp.linalg.norm(r) < tolerance
        beta = _inner(r, r) / pnp.where(rr > 0, rr, 1)
        return _Inner(
            pnp.where(stop, boundary, p), r, beta * s.d - r, stop | converged | (rr == 0), s.k + 1
        )

    zero = pnp.zeros_like(gradient)
    return lax.while_loop(going, step, _Inner(zero, gradient, -gradient, pnp.full((), False), 0)).p


def _to_boundary(p: Any, d: Any, radius: Any) -> Any:
    """The positive ``t`` with ``|p + t d| = radius``."""
    a, b, c = _inner(d, d), _inner(p, d), _inner(p, p) - radius * radius
    root = lax.sqrt(pnp.maximum(b * b - a * c, 0))
    bottom = b + pnp.where(b >= 0, root, -root)
    safe = pnp.where(bottom == 0, 1, bottom)
    return pnp.where(b > 0, -c / safe, (root - b) / pnp.where(a > 0, a, 1))


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    radius: Any
    failed: Any
    evaluations: Any
    steps: Any


def _result(last: _State, success: Any) -> OptimizeResults:
    reason = pnp.where(pnp.isfinite(last.value), pnp.where(last.failed, 3, 1), 4)
    return OptimizeResults(
        last.x, success, pnp.where(success, 0, reason), last.value, last.gradient, None,
        last.evaluations, last.evaluations, last.steps,
    )  # fmt: skip


def _start(evaluate: Callable[[Any], Any], x0: Any, radius: Any) -> _State:
    value, gradient = evaluate(x0)
    failed = ~pnp.isfinite(value)
    return _State(x0, value, gradient, radius, failed, 1, 0)


def newton_cg(
    fun: Callable[[Any], Any], x0: Any, maxiter: Any = None, gtol: Any = 1e-5, norm: Any = np.inf,
    line_search_maxiter: int = 20,
) -> OptimizeResults:  # fmt: skip
    """Truncated Newton method with a line search, algorithm 7.1 of Nocedal and Wright."""
    n = typeof(x0).size
    limit = 200 * n if maxiter is None else maxiter
    evaluate = value_and_grad(fun)

    def small(state: _State) -> Any:
        return pnp.linalg.norm(state.gradient, norm) < gtol

    def going(state: _State) -> Any:
        return ~state.failed & ~small(state) & (state.steps < limit)

    def step(state: _State) -> _State:
        x, value, gradient, radius, _, count, steps = state
        product = lambda v: jvp(grad(fun), (x,), (v,))[1]
        p = _conjugate_gradients(product, gradient, None, 20 * n)
        p = pnp.where(_inner(p, gradient) < 0, p, -gradient)
        first = pnp.ones((), typeof(x).dtype)
        search = line_search(evaluate, x, p, value, gradient, first, line_search_maxiter)
        point = search.point
        return _State(
            x + point.step * p, point.value, point.gradient, radius, ~search.decreased,
            count + search.tries, steps + 1,
        )  # fmt: skip

    last = lax.while_loop(going, step, _start(evaluate, x0, pnp.ones((), typeof(x0).dtype)))
    return _result(last, small(last))


def trust_ncg(
    fun: Callable[[Any], Any], x0: Any, maxiter: Any = None, gtol: Any = 1e-5, norm: Any = np.inf,
    initial_trust_radius: Any = 1.0, max_trust_radius: Any = 1000.0, eta: Any = 0.15,
) -> OptimizeResults:  # fmt: skip
    """Trust region method, algorithm 4.1 of Nocedal and Wright, with Steihaug's inner iteration."""
    n, dtype = typeof(x0).size, typeof(x0).dtype
    limit = 200 * n if maxiter is None else maxiter
    evaluate = value_and_grad(fun)
    eps = dtypes.finfo(dtype).eps

    def small(state: _State) -> Any:
        return pnp.linalg.norm(state.gradient, norm) < gtol

    def going(state: _State) -> Any:
        return ~state.failed & ~small(state) & (state.steps < limit)

    def step(state: _State) -> _State:
        x, value, gradient, radius, _, count, steps = state
        product = lambda v: jvp(grad(fun), (x,), (v,))[1]
        p = _conjugate_gradients(product, gradient, radius, 20 * n)
        predicted = -(_inner(gradient, p) + 0.5 * _inner(p, product(p)))
        f, g = evaluate(x + p)
        noise = 4 * eps * pnp.abs(value)
        better = pnp.linalg.norm(g) < pnp.linalg.norm(gradient)
        # Where values differ by rounding only, a smaller gradient counts as agreement.
        close = (predicted <= noise) & (pnp.abs(f - value) <= noise) & better
        ratio = (value - f) / pnp.where(predicted > 0, predicted, 1)
        ratio = pnp.where(close, 1, pnp.where((predicted > 0) & pnp.isfinite(f), ratio, -1))
        size = pnp.linalg.norm(p)
        wide = pnp.where((ratio > 0.75) & (size >= 0.99 * radius), 2 * radius, radius)
        radius = pnp.where(ratio < 0.25, 0.25 * size, pnp.minimum(wide, max_trust_radius))
        accepted = ratio > eta
        x, f, g = (pnp.where(accepted, a, b) for a, b in zip(
            (x + p, f, g), (x, value, gradient)))  # fmt: skip
        failed = radius <= eps * pnp.maximum(pnp.linalg.norm(x), 1e-30)
        return _State(x, f, g, radius, failed, count + 1, steps + 1)

    radius = pnp.asarray(initial_trust_radius, dtype=dtype)
    last = lax.while_loop(going, step, _start(evaluate, x0, radius))
    return _result(last, small(last))
