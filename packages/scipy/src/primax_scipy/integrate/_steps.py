"""Adaptive integration from one time to another, in either direction."""

from __future__ import annotations

from typing import Any, NamedTuple

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import dtypes, typeof

from ._runge_kutta import Function, Method, interpolated, root_mean_square


class Problem(NamedTuple):
    """An initial value problem and its tolerances.

    Attributes:
      fun: ``fun(t, y)``, the derivative of a vector.
      method: the method of its steps.
      rtol, atol: the tolerances.
      max_step: the largest step.
      direction: 1 or -1, an array of the dtype of the time.
    """

    fun: Function
    method: Method
    rtol: Any
    atol: Any
    max_step: Any
    direction: Any

    def scale(self, x: Any, y: Any) -> Any:
        """The tolerance of the error of each element."""
        size = pnp.maximum(pnp.abs(x), pnp.abs(y))
        return lax.convert_element_type(
            lax.stop_gradient(self.atol + self.rtol * size), typeof(x).dtype
        )


class State(NamedTuple):
    """The state after an attempted step.

    Attributes:
      t, y, f: the time, the state and its derivative.
      h: the size of the next step, positive.
      before, start, dense: the time and state at the start of the last accepted step, and the
        coefficients of its interpolant.
      accepted, failed: whether the last step was accepted; whether the step size became too small.
      steps, work: the number of accepted steps; the evaluations, Jacobians and factorizations.
      memory: what a multistep method remembers, otherwise empty.
    """

    t: Any
    y: Any
    f: Any
    h: Any
    before: Any
    start: Any
    dense: Any
    accepted: Any
    failed: Any
    steps: Any
    work: Any
    memory: Any = ()


def begin(problem: Problem, t: Any, y: Any, end: Any, first_step: Any = None) -> State:
    """The state before the first step."""
    f = problem.fun(t, y)
    if first_step is None:
        h, count = _first_step(problem, t, y, f, end), 2
    else:
        h, count = pnp.asarray(first_step, dtype=typeof(t).dtype), 1
    dense = pnp.zeros((problem.method.terms, *typeof(y).shape), typeof(y).dtype)
    work = tuple(pnp.full((), n, "int32") for n in (count, 0, 0))
    h = lax.stop_gradient(h)
    start = problem.method.start
    return State(
        t, y, f, h, t, y, dense, pnp.full((), True), pnp.full((), False),
        pnp.full((), 0, "int32"), work, () if start is None else start(problem, y, f, h),
    )  # fmt: skip


def _first_step(problem: Problem, t: Any, y: Any, f: Any, end: Any) -> Any:
    """The starting step of Hairer, Nørsett and Wanner (1993), section II.4."""
    t, y, f = (lax.stop_gradient(v) for v in (t, y, f))
    scale = problem.scale(y, y)
    d0, d1 = root_mean_square(y / scale), root_mean_square(f / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = pnp.where(small, 1e-6, 0.01 * d0 / pnp.where(small, 1, d1))
    h0 = pnp.minimum(h0, pnp.abs(end - t))
    signed = h0 * problem.direction
    g = problem.fun(t + signed, y + lax.convert_element_type(signed, typeof(y).dtype) * f)
    positive = h0 > 0
    d2 = root_mean_square((g - f) / scale) / pnp.where(positive, h0, 1)
    largest = pnp.maximum(d1, d2)
    flat = largest <= 1e-15
    h1 = pnp.where(
        flat, pnp.maximum(1e-6, h0 * 1e-3),
        (0.01 / pnp.where(flat, 1, largest)) ** (1 / problem.method.order),
    )  # fmt: skip
    h = pnp.minimum(100 * h0, h1)
    return pnp.where(pnp.isfinite(h), h, h0)


def attempt(problem: Problem, state: State, end: Any) -> State:
    """Try one step, not beyond ``end``."""
    if problem.method.attempt is not None:
        after: State = problem.method.attempt(problem, state, end)
        return after
    assert problem.method.step is not None
    remaining = (end - state.t) * problem.direction
    h = pnp.minimum(pnp.minimum(state.h, problem.max_step), lax.stop_gradient(remaining))
    last = h >= remaining
    t = pnp.where(last, end, state.t + h * problem.direction)
    trial = problem.method.step(problem.fun, state.t, state.y, state.f, t - state.t, problem.scale)
    error = lax.stop_gradient(trial.error)
    good = (error <= 1) & pnp.isfinite(root_mean_square(lax.stop_gradient(trial.f)))
    usable = (error > 0) & pnp.isfinite(error)
    power = 0.9 * pnp.where(usable, error, 1) ** (-1 / problem.method.order)
    factor = pnp.where(error == 0, 10, pnp.where(usable, pnp.clip(power, 0.2, 10), 0.2))
    factor = pnp.where(state.accepted & good, factor, pnp.minimum(factor, 1))
    # A nonfinite derivative has no useful estimate.
    factor = pnp.where(~good & (factor > 0.5), 0.2, factor)
    following = h * factor
    eps = dtypes.finfo(typeof(state.t).dtype).eps
    failed = ~good & (following <= 4 * eps * pnp.abs(state.t))

    def chosen(new: Any, old: Any) -> Any:
        return pnp.where(good, new, old)

    work = (trial.evaluations, trial.jacobians, trial.factorizations)
    return State(
        chosen(t, state.t), chosen(trial.y, state.y), chosen(trial.f, state.f), following,
        chosen(state.t, state.before), chosen(state.y, state.start),
        chosen(trial.dense, state.dense), good, failed,
        state.steps + lax.convert_element_type(good, "int32"),
        tuple(a + lax.convert_element_type(b, "int32") for a, b in zip(state.work, work)),
    )  # fmt: skip


def value_at(state: State, t: Any) -> Any:
    """The state at a time within the last accepted step."""
    width = state.t - state.before
    fraction = (t - state.before) / pnp.where(width == 0, 1, width)
    s = lax.convert_element_type(fraction, typeof(state.y).dtype)
    inside = interpolated(state.start, state.dense, s)
    return pnp.where(t == state.t, state.y, inside)


def at_times(problem: Problem, t0: Any, y0: Any, times: Any, limit: Any) -> tuple[Any, State]:
    """The states ``[m, n]`` at monotonic times, and the last state.

    Args:
      problem: the problem.
      t0, y0: the initial time and state.
      times: the times ``[m]``, in the direction of the problem.
      limit: the maximum number of attempted steps for each time, or None. States that are not
        reached are NaN.
    """
    end = times[-1]

    def advance(state: State, t: Any) -> tuple[State, Any]:
        def going(carry: Any) -> Any:
            state, k = carry
            more = ((t - state.t) * problem.direction > 0) & ~state.failed
            return more if limit is None else more & (k < limit)

        def step(carry: Any) -> Any:
            state, k = carry
            return attempt(problem, state, end), k + 1

        state, _ = lax.while_loop(going, step, (state, pnp.full((), 0, "int32")))
        reached = (t - state.t) * problem.direction <= 0
        return state, pnp.where(reached, value_at(state, t), pnp.nan)

    last, values = lax.scan(advance, begin(problem, t0, y0, end), times)
    return values, last
