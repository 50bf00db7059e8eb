"""Continuous adjoint of an initial value problem.

The cotangent of the state satisfies a linear equation backwards in time, together with which the
state is computed again (Chen et al., *Neural Ordinary Differential Equations*, 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import custom_vjp, lax, tree, vjp
from primax_core.custom_derivatives import SymbolicZero
from primax_core.extend import dtypes, typeof
from primax_numpy.declaring import is_complex

from ._steps import Problem, at_times


def flattened(x: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The leaves of a tree in one vector of floats, computed in ``float32`` at least, and the
    inverse function, which restores their dtypes."""
    leaves, structure = tree.flatten(x)
    avals = [typeof(leaf) for leaf in leaves]
    dtype = dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in avals]))[0]
    dtype = dtypes.f32 if dtype.itemsize < 4 else dtype
    parts = [
        lax.reshape(lax.convert_element_type(leaf, dtype), (a.size,))
        for leaf, a in zip(leaves, avals)
    ]

    def restored(vector: Any) -> Any:
        out, first = [], 0
        for a in avals:
            part = lax.slice(vector, (first,), (first + a.size,))
            first += a.size
            if is_complex(part) and not dtypes.issubdtype(a.dtype, np.complexfloating):
                part = lax.real(part)
            out.append(lax.convert_element_type(lax.reshape(part, a.shape), a.dtype))
        return tree.unflatten(structure, out)

    return lax.concatenate(parts, 0), restored


def with_adjoint(
    forward: Callable[..., Any], fun: Callable[..., Any], problem: Problem, limit: Any,
    own_times: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function with the adjoint as its derivative in reverse mode.

    Args:
      forward: ``forward(y0, t0, times, values)`` returns the states ``[m, n]`` at the times, and
        auxiliary results.
      fun: ``fun(t, y, *values)``, the derivative of the state.
      problem: the method and tolerances; its function and direction are not used.
      limit: the maximum number of attempted steps between two times, or None.
      own_times: the first auxiliary result contains the times of the states; the argument
        ``times`` is the last one.

    Raises:
      ValueError: in reverse mode, if an auxiliary result is differentiated.
    """

    @custom_vjp
    def solved(y0: Any, t0: Any, times: Any, values: Any) -> Any:
        return forward(y0, t0, times, values)

    def _forward(y0: Any, t0: Any, times: Any, values: Any) -> Any:
        # Values that are not differentiated have no cotangent to integrate.
        active = [v.value if v.perturbed else None for v in values]
        fixed = [None if v.perturbed else v.value for v in values]
        y0, t0, times = y0.value, t0.value, times.value
        out = forward(y0, t0, times, [v.value for v in values])
        return out, (y0, t0, out[1][0] if own_times else times, out[0], active, fixed)

    def _backward(residuals: Any, cotangents: Any) -> Any:
        y0, t0, times, states, active, fixed = residuals
        ct, rest = cotangents
        is_zero = lambda x: isinstance(x, SymbolicZero)
        if not all(map(is_zero, tree.leaves(rest, is_leaf=is_zero))):
            raise ValueError(
                "solve_ivp: the adjoint differentiates the states y alone: use gradient='steps' "
                "for derivatives of sol, t and events"
            )
        if isinstance(ct, SymbolicZero):
            ct = pnp.zeros_like(states)
        y_bar, t0_bar, times_bar, rest = _swept(
            fun, problem, limit, (y0, t0, times, states, ct), active, fixed
        )
        if own_times:
            at_start = pnp.sum(pnp.where(times == t0, times_bar, 0))
            at_end = pnp.sum(pnp.where((times == times[-1]) & (times != t0), times_bar, 0))
            t0_bar, times_bar = t0_bar + at_start, at_end[None]
        bars = iter(rest)
        # None is a zero cotangent.
        return y_bar, t0_bar, times_bar, [None if a is None else next(bars) for a in active]

    solved.defvjp(_forward, _backward, symbolic_zeros=True)
    return solved


def _swept(
    fun: Callable[..., Any], problem: Problem, limit: Any, solution: Any, active: Any, fixed: Any
) -> Any:
    """The cotangents of the initial state, the initial time, the times and active values."""
    y0, t0, times, states, ct = solution
    chosen = [a for a in active if a is not None]

    def of_active(t: Any, y: Any, *values: Any) -> Any:
        moving = iter(values)
        return fun(t, y, *[next(moving) if a is not None else f for a, f in zip(active, fixed)])

    zeros = [pnp.zeros_like(a) for a in chosen]
    _, restored = flattened((y0, y0, zeros))

    def augmented(t: Any, state: Any) -> Any:
        y, y_bar, _ = restored(state)
        f, back = vjp(lambda y, *values: of_active(t, y, *values), y, *chosen)
        bars = back(-y_bar)
        return flattened((f, bars[0], list(bars[1:])))[0]

    direction = pnp.where(times[-1] >= t0, -1, 1).astype(typeof(t0).dtype)
    backwards = problem._replace(fun=augmented, direction=direction)
    starts = pnp.concatenate([t0[None], times[:-1]])

    def interval(carry: Any, row: Any) -> Any:
        y_bar, bars = carry
        start, end, y, g = row
        end_bar = _paired(g, of_active(end, y, *chosen), end)
        y_bar = y_bar + g
        first = flattened((y, y_bar, bars))[0]
        moved = at_times(backwards, end, first, start[None], limit)[0][0]
        _, y_bar, bars = restored(pnp.where(start == end, first, moved))
        return (y_bar, bars), end_bar

    (y_bar, bars), times_bar = lax.scan(
        interval, (pnp.zeros_like(y0), zeros), (starts, times, states, ct), reverse=True
    )
    return y_bar, -_paired(y_bar, of_active(t0, y0, *chosen), t0), times_bar, bars


def _paired(bar: Any, f: Any, t: Any) -> Any:
    """The cotangent of a time: the product of the cotangent and the derivative of the state."""
    out = pnp.sum(bar * f)
    return lax.convert_element_type(lax.real(out) if is_complex(out) else out, typeof(t).dtype)
