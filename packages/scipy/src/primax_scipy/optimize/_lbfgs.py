"""Limited-memory BFGS, with and without bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax, value_and_grad
from primax_core.extend import dtypes, typeof

from ._line_search import line_search
from ._results import OptimizeResults


class _Memory(NamedTuple):
    """The last moves and changes of the gradient ``[m, n]``, newest first; the number stored."""

    moves: Any
    changes: Any
    count: Any


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    memory: _Memory
    failed: Any
    flat: Any
    evaluations: Any
    steps: Any


def _inner(x: Any, y: Any) -> Any:
    return pnp.dot(x, y, precision=lax.Precision.HIGHEST)


def _direction(memory: _Memory, gradient: Any, free: Any) -> Any:
    """Two-loop recursion, algorithm 7.4 of Nocedal and Wright, on the free variables."""
    moves = pnp.where(free, memory.moves, 0)
    changes = pnp.where(free, memory.changes, 0)
    q = pnp.where(free, gradient, 0)
    curvature = pnp.sum(moves * changes, 1)
    useful = (pnp.arange(len(moves)) < memory.count) & (curvature > 0)
    rho = pnp.where(useful, 1 / pnp.where(useful, curvature, 1), 0)

    def first(q: Any, row: Any) -> Any:
        s, y, r = row
        a = r * _inner(s, q)
        return q - a * y, a

    def second(q: Any, row: Any) -> Any:
        s, y, r, a = row
        return q + s * (a - r * _inner(y, q)), None

    q, weights = lax.scan(first, q, (moves, changes, rho))
    newest = pnp.argmax(useful)
    bottom = _inner(changes[newest], changes[newest])
    known = useful[newest] & (bottom > 0)
    q = q * pnp.where(known, curvature[newest] / pnp.where(known, bottom, 1), 1)
    q, _ = lax.scan(second, q, (moves, changes, rho, weights), reverse=True)
    return -pnp.where(free, q, 0)


def _remembered(memory: _Memory, move: Any, change: Any) -> _Memory:
    eps = dtypes.finfo(typeof(move).dtype).eps
    useful = _inner(move, change) > eps * _inner(change, change)
    moves = pnp.concatenate([move[None], memory.moves[:-1]])
    changes = pnp.concatenate([change[None], memory.changes[:-1]])
    count = pnp.minimum(memory.count + 1, len(moves))
    new = _Memory(moves, changes, count)
    return _Memory(*[pnp.where(useful, a, b) for a, b in zip(new, memory)])


class _Projected(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    step: Any
    done: Any
    tries: Any


def _projected_search(
    evaluate: Callable[[Any], Any], state: _State, direction: Any, first: Any,
    bounds: Any, tries: int,
) -> _Projected:  # fmt: skip
    """Backtracking along the projection of a ray on the box (Bertsekas, 1982)."""
    low, high = bounds
    noise = 2 * dtypes.finfo(typeof(state.x).dtype).eps * pnp.abs(state.value)

    def going(s: _Projected) -> Any:
        return ~s.done & (s.tries < tries)

    def step(s: _Projected) -> _Projected:
        x = pnp.clip(state.x + s.step * direction, low, high)
        value, gradient = evaluate(x)
        move = x - state.x
        descent = _inner(state.gradient, move)
        good = value <= state.value + 1e-4 * descent
        # Where values differ by rounding only, the derivative along the move decides.
        flat = (value <= state.value + noise) & (pnp.abs(_inner(gradient, move)) <= -0.9 * descent)
        done = (good | flat) & (descent < 0)
        chosen = [pnp.where(done, a, b) for a, b in zip(
            (x, value, gradient), (state.x, state.value, state.gradient))]  # fmt: skip
        return _Projected(*chosen, s.step * 0.5, done, s.tries + 1)

    start = _Projected(state.x, state.value, state.gradient, first, pnp.full((), False), 0)
    return lax.while_loop(going, step, start)


def lbfgs(
    fun: Callable[[Any], Any], x0: Any, bounds: Any = None, maxiter: Any = None,
    norm: Any = np.inf, gtol: Any = 1e-5, ftol: Any = 0.0, maxcor: int = 10, maxls: int = 20,
    maxfun: Any = np.inf,
) -> OptimizeResults:  # fmt: skip
    """Minimize with ``maxcor`` stored moves; bounds are a pair of vectors."""
    n, dtype = typeof(x0).size, typeof(x0).dtype
    limit = 200 * n if maxiter is None else maxiter
    evaluate = value_and_grad(fun)

    def reduced(x: Any, gradient: Any) -> Any:
        return gradient if bounds is None else x - pnp.clip(x - gradient, *bounds)

    def small(state: _State) -> Any:
        return pnp.linalg.norm(reduced(state.x, state.gradient), norm) < gtol

    def going(state: _State) -> Any:
        more = (state.steps < limit) & (state.evaluations < maxfun)
        return ~state.failed & ~state.flat & ~small(state) & more

    def step(state: _State) -> _State:
        x, value, gradient, memory, _, _, count, steps = state
        free = pnp.ones(n, bool)
        if bounds is not None:
            low, high = bounds
            free = ~((x <= low) & (gradient > 0)) & ~((x >= high) & (gradient < 0))
        direction = _direction(memory, gradient, free)
        # Steepest descent if the direction does not descend
        bad = ~(_inner(direction, gradient) < 0)
        direction = pnp.where(bad, -pnp.where(free, gradient, 0), direction)
        size = pnp.where((steps == 0) | bad, pnp.linalg.norm(gradient), 1)
        first = 1 / pnp.maximum(size, 1)
        if bounds is None:
            search = line_search(evaluate, x, direction, value, gradient, first, maxls)
            point, good, tries = search.point, search.decreased, search.tries
            new, f, g = x + point.step * direction, point.value, point.gradient
        else:
            ray = _projected_search(evaluate, state, direction, first, bounds, maxls)
            new, f, g, good, tries = ray.x, ray.value, ray.gradient, ray.done, ray.tries
        scale = pnp.maximum(pnp.maximum(pnp.abs(f), pnp.abs(value)), 1)
        flat = good & (value - f <= ftol * scale) & (ftol > 0)
        # A failed search is repeated once along the gradient.
        failed = ~good & (bad | (memory.count == 0))
        memory = _Memory(memory.moves, memory.changes, pnp.where(good, memory.count, 0))
        memory = _remembered(memory, new - x, g - gradient)
        return _State(new, f, g, memory, failed, flat, count + tries, steps + 1)

    x0 = x0 if bounds is None else pnp.clip(x0, *bounds)
    value, gradient = evaluate(x0)
    nothing = pnp.zeros((maxcor, n), dtype)
    memory = _Memory(nothing, nothing, pnp.full((), 0, "int32"))
    off = pnp.full((), False)
    last = lax.while_loop(going, step, _State(x0, value, gradient, memory, off, off, 1, 0))
    success = small(last) | last.flat
    reason = pnp.where(last.failed, 3, pnp.where(last.steps >= limit, 1, 2))
    reason = pnp.where(pnp.isfinite(last.value), reason, 4)
    return OptimizeResults(
        last.x, success, pnp.where(success, 0, reason), last.value, last.gradient, None,
        last.evaluations, last.evaluations, last.steps,
    )  # fmt: skip
