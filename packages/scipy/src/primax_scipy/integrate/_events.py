"""Recorded steps of an integration, and zeros of functions of the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import primax_numpy as pnp
from primax_core import jvp, lax, vmap
from primax_core.extend import typeof

from ._runge_kutta import interpolated
from ._steps import Problem, State, attempt, begin

Event = Callable[[Any, Any], Any]


class DenseSolution(NamedTuple):
    """A continuous solution: a pytree that can be called with times.

    Attributes:
      starts, ends: the times ``[s]`` at which the steps start and end; unused ones repeat the last.
      states: the states ``[s, n]`` at the starts of the steps.
      coefficients: the coefficients ``[s, k, n]`` of the interpolants.
    """

    starts: Any
    ends: Any
    states: Any
    coefficients: Any

    def __call__(self, t: Any) -> Any:
        """The states ``[n, ...]`` at times ``t``; those outside of the steps are extrapolated."""
        t = lax.convert_element_type(t, typeof(self.ends).dtype)
        forward = self.ends[-1] >= self.starts[0]
        keys = pnp.where(forward, self.ends, -self.ends)
        # Repetitions of the last step follow it.
        index = pnp.searchsorted(keys, pnp.where(forward, t, -t))
        index = pnp.clip(index, 0, len(self.ends) - 1)
        flat = pnp.ravel(index)

        def one(i: Any, time: Any) -> Any:
            return self.at_step(i, time)

        values = vmap(one)(flat, pnp.ravel(t))
        return pnp.moveaxis(values, 0, 1).reshape((-1, *typeof(t).shape))

    def at_step(self, i: Any, t: Any) -> Any:
        """The interpolant of one step at a time."""
        width = self.ends[i] - self.starts[i]
        fraction = (t - self.starts[i]) / pnp.where(width == 0, 1, width)
        s = lax.convert_element_type(fraction, typeof(self.states).dtype)
        return interpolated(self.states[i], self.coefficients[i], s)


class Record(NamedTuple):
    """The accepted steps, the last state, and whether a terminal event occurred."""

    sol: DenseSolution
    state: State
    stopped: Any


def crossed(before: Any, after: Any, direction: float) -> Any:
    """Return True where a function changes its sign in the direction."""
    up, down = (before <= 0) & (after >= 0), (before >= 0) & (after <= 0)
    moved = (before != after) & (before != 0)
    return moved & (up if direction > 0 else down if direction < 0 else up | down)


def record(
    problem: Problem, t0: Any, y0: Any, end: Any, first_step: Any, size: int,
    terminal: list[tuple[Event, float]], bounded: bool,
) -> Record:  # fmt: skip
    """Integrate to ``end``, with at most ``size`` accepted steps.

    If ``bounded``, rejected steps count, and the loop is a ``scan``, which has a reverse mode.
    """
    state = begin(problem, t0, y0, end, first_step)
    sol = DenseSolution(
        pnp.broadcast_to(t0, (size,)), pnp.broadcast_to(t0, (size,)),
        pnp.broadcast_to(y0, (size, *typeof(y0).shape)),
        pnp.zeros((size, *typeof(state.dense).shape), typeof(y0).dtype),
    )  # fmt: skip

    def going(carry: Record) -> Any:
        s = carry.state
        left = (end - s.t) * problem.direction > 0
        return left & ~s.failed & ~carry.stopped & (s.steps < size)

    def step(carry: Record) -> Record:
        sol, old, stopped = carry
        new = attempt(problem, old, end)
        i = pnp.maximum(new.steps - 1, 0)
        rows = (new.before, new.t, new.start, new.dense)
        sol = DenseSolution(*[
            a.at[i].set(pnp.where(new.accepted, row, a[i])) for a, row in zip(sol, rows)
        ])  # fmt: skip
        for event, direction in terminal:
            values = lax.stop_gradient((event(old.t, old.y), event(new.t, new.y)))
            stopped = stopped | (new.accepted & crossed(*values, direction))
        return Record(sol, new, stopped)

    first = Record(sol, state, pnp.full((), False))
    if bounded:

        def bounded_step(carry: Record, _: Any) -> Any:
            return lax.cond(going(carry), step, lambda c: c, carry), None

        last, _ = lax.scan(bounded_step, first, None, length=size)
    else:
        last = lax.while_loop(going, step, first)
    return last._replace(sol=_padded(last.sol, last.state.steps))


def _padded(sol: DenseSolution, count: Any) -> DenseSolution:
    """Unused rows replaced with the last used one."""
    index = pnp.minimum(pnp.arange(len(sol.ends)), pnp.maximum(count - 1, 0))
    return DenseSolution(*[a[index] for a in sol])


def zeros_of(
    event: Event, direction: float, sol: DenseSolution, count: Any, size: int
) -> tuple[Any, Any, Any]:
    """The first ``size`` times at which an event is zero, the states, and their number.

    The zero in a step is bisected on the interpolant. Missing times are NaN.
    """
    before = vmap(event)(sol.starts, sol.states)
    ends = vmap(lambda i: sol.at_step(i, sol.ends[i]))(pnp.arange(len(sol.ends)))
    after = vmap(event)(sol.ends, ends)
    used = pnp.arange(len(sol.ends)) < count
    steps = pnp.nonzero(
        lax.stop_gradient(crossed(before, after, direction)) & used, size=size, fill_value=-1
    )[0]

    def refined(i: Any) -> tuple[Any, Any]:
        value = lambda t: event(t, sol.at_step(i, t))
        times = [lax.stop_gradient(t) for t in (sol.starts[i], sol.ends[i])]
        sign = lax.stop_gradient(pnp.sign(after[i]))

        def halve(_: Any, pair: Any) -> Any:
            low, high = pair
            middle = 0.5 * (low + high)
            right = lax.stop_gradient(value(middle)) * sign > 0
            return pnp.where(right, low, middle), pnp.where(right, middle, high)

        _, t = lax.fori_loop(0, 60, halve, tuple(times))
        t = lax.stop_gradient(t)
        # One Newton step has the derivative of the implicit function theorem.
        slope = lax.stop_gradient(jvp(value, (t,), (pnp.ones_like(t),))[1])
        missed = value(t)
        change = (missed - lax.stop_gradient(missed)) / pnp.where(slope == 0, 1, slope)
        t = t - lax.convert_element_type(change, typeof(t).dtype)
        return t, sol.at_step(i, t)

    t, y = vmap(refined)(pnp.maximum(steps, 0))
    known = steps >= 0
    return pnp.where(known, t, pnp.nan), pnp.where(known[:, None], y, pnp.nan), known.sum()
