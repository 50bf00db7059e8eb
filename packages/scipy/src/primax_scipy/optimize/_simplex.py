"""Minimization by the method of Nelder and Mead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import primax_numpy as pnp
from primax_core import lax, vmap
from primax_core.extend import typeof

from ._results import OptimizeResults


class _State(NamedTuple):
    points: Any
    values: Any
    evaluations: Any
    steps: Any


def nelder_mead(
    fun: Callable[[Any], Any], x0: Any, bounds: Any = None, maxiter: Any = None,
    maxfun: Any = None, xatol: Any = 1e-4, fatol: Any = 1e-4, adaptive: bool = False,
) -> OptimizeResults:  # fmt: skip
    """Nelder and Mead, Comput. J. 7 (1965); adaptive parameters of Gao and Han (2012)."""
    n = typeof(x0).size
    limit = 200 * n if maxiter is None else maxiter
    most = 200 * n if maxfun is None and maxiter is None else maxfun
    expand, contract, shrink = (
        (1 + 2 / n, 0.75 - 1 / (2 * n), 1 - 1 / n) if adaptive else (2.0, 0.5, 0.5)
    )

    def inside(x: Any) -> Any:
        if bounds is None:
            return x
        return pnp.clip(x, *[pnp.broadcast_to(v, typeof(x).shape) for v in bounds])

    def evaluate(x: Any) -> Any:
        value = fun(x)
        return pnp.where(pnp.isnan(value), pnp.inf, value)

    def ordered(points: Any, values: Any) -> tuple[Any, Any]:
        order = pnp.argsort(values)
        return points[order], values[order]

    def small(state: _State) -> Any:
        width = pnp.max(pnp.abs(state.points - state.points[:1]))
        gap = pnp.max(pnp.abs(state.values - state.values[:1]))
        return (width <= xatol) & (gap <= fatol)

    def going(state: _State) -> Any:
        more = state.steps < limit
        more = more if most is None else more & (state.evaluations < most)
        return ~small(state) & more

    def step(state: _State) -> _State:
        points, values, count, steps = state
        center = pnp.mean(points[:-1], 0)
        worst = points[-1]
        reflected = inside(2 * center - worst)
        value = evaluate(reflected)
        best, second = value < values[0], value < values[-2]
        outside = value < values[-1]
        # One further point: expansion, outside contraction or inside contraction
        other = pnp.where(
            best, center + expand * (center - worst),
            center + pnp.where(outside, contract, -contract) * (center - worst),
        )  # fmt: skip
        other = inside(other)
        plain = second & ~best
        other_value = lax.cond(plain, lambda x: pnp.zeros_like(value), evaluate, other)
        limit_value = pnp.where(best | outside, value, values[-1])
        equal = ~best & outside & (other_value <= limit_value)
        further = ~plain & ((other_value < limit_value) | equal)
        accepted = second | further
        new = pnp.where(further, other, reflected)
        new_value = pnp.where(further, other_value, value)

        def replaced(_: Any) -> tuple[Any, Any]:
            return points.at[-1].set(new), values.at[-1].set(new_value)

        def shrunk(_: Any) -> tuple[Any, Any]:
            smaller = inside(points[:1] + shrink * (points - points[:1]))
            rest = vmap(evaluate)(smaller[1:])
            return smaller, pnp.concatenate([values[:1], rest])

        points, values = ordered(*lax.cond(accepted, replaced, shrunk, 0))
        more = pnp.where(plain, 1, pnp.where(accepted, 2, 2 + n))
        return _State(points, values, count + more, steps + 1)

    start = inside(x0)
    moved = pnp.where(start == 0, 0.00025, start * 1.05)
    if bounds is not None:
        # A step out of the box is reflected.
        moved = pnp.where(moved > bounds[1], 2 * bounds[1] - moved, moved)
    eye = pnp.eye(n, dtype=bool)
    corners = pnp.where(eye, inside(moved)[None], start[None])
    points = pnp.concatenate([start[None], corners])
    first = _State(*ordered(points, vmap(evaluate)(points)), n + 1, 0)
    last = lax.while_loop(going, step, first)
    success = small(last) & pnp.isfinite(last.values[0])
    reason = pnp.where(last.steps >= limit, 1, 2)
    reason = pnp.where(pnp.isfinite(last.values[0]), reason, 4)
    return OptimizeResults(
        last.points[0], success, pnp.where(success, 0, reason), last.values[0], None, None,
        last.evaluations, pnp.full((), 0, "int32"), last.steps,
    )  # fmt: skip
