"""Initial value problems of ordinary differential equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import closure_convert, lax, tree
from primax_core.extend import dtypes, is_operand, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, is_complex

from ..optimize._results import message_of
from ._adjoint import with_adjoint
from ._bdf import BDF
from ._events import record, zeros_of
from ._radau import RADAU
from ._runge_kutta import DOP853, RK23, RK45
from ._steps import Problem, at_times

_METHODS: Final = {"RK23": RK23, "RK45": RK45, "DOP853": DOP853, "Radau": RADAU, "BDF": BDF}
_MESSAGES: Final = {
    0: "The solver successfully reached the end of the integration interval.",
    1: "A termination event occurred.",
    -1: "Required step size is less than spacing between numbers.",
    -2: "Maximum number of steps has been exceeded: increase max_steps.",
}


class OdeResult(NamedTuple):
    """The solution of an initial value problem.

    Attributes:
      t: the times ``[m]``.
      y: the states ``[n, m]``.
      sol: the continuous solution, a function of times, or None.
      t_events: for each event, its times ``[max_events]``; NaN after the last. None without events.
      y_events: for each event, the states ``[max_events, n]``. None without events.
      nfev, njev, nlu: the number of evaluations, Jacobians and factorizations.
      status: 0; 1 after a terminal event; -1 if the step became too small; -2 if there were more
        than ``max_steps`` steps.
      success: true if the status is 0 or 1.
      steps: the number of accepted steps; without ``t_eval``, the first ``steps + 1`` columns are
        valid.
    """

    t: Any
    y: Any
    sol: Any
    t_events: Any
    y_events: Any
    nfev: Any
    njev: Any
    nlu: Any
    status: Any
    success: Any
    steps: Any

    @property
    def message(self) -> str:
        """The status in words."""
        return message_of(self.status, _MESSAGES)


class _Settings(NamedTuple):
    size: int
    first_step: Any
    events: tuple[Any, ...]
    max_events: int
    gradient: str
    recorded: bool
    own_times: bool


def solve_ivp(
    fun: Callable[..., Any], t_span: ArrayLike | Sequence[ArrayLike], y0: ArrayLike,
    method: str = "RK45", t_eval: ArrayLike | None = None, dense_output: bool = False,
    events: Callable[..., Any] | Sequence[Callable[..., Any]] | None = None,
    vectorized: bool = False, args: tuple[Any, ...] | None = None, *, rtol: ArrayLike = 1e-3,
    atol: ArrayLike = 1e-6, max_step: ArrayLike = np.inf, first_step: ArrayLike | None = None,
    max_steps: int = 500, max_events: int = 16, gradient: str = "adjoint",
) -> OdeResult:  # fmt: skip
    """Solution of ``dy/dt = fun(t, y, *args)`` with adaptive steps.

    Args:
      fun: the derivative, a vector like the state.
      t_span: the first and last time; integration goes in either direction.
      y0: the initial state, ``float[n]`` or ``complex[n]``.
      method: ``"RK45"``, ``"RK23"``, ``"DOP853"``; ``"Radau"`` or ``"BDF"`` for stiff
        equations.
      t_eval: the times of the result, monotonic from the first to the last time. Without them the
        result has the ``max_steps + 1`` ends of steps, of which unused ones repeat the last.
      dense_output: return the continuous solution as ``sol``.
      events: a function ``event(t, y, *args)`` or a sequence of such, whose zeros are located.
        With the attribute ``terminal`` the integration ends at the first; the attribute
        ``direction`` (1 or -1) selects zeros with a rising or falling value.
      vectorized: must be false; ``fun`` is mapped by ``vmap`` where that is needed.
      args: further arguments of ``fun`` and events, as a tuple.
      rtol, atol: relative and absolute tolerances of the error in one step; ``atol`` may be
        ``[n]``.
      max_step, first_step: the largest step and the first one.
      max_steps: the number of steps that are stored, without ``t_eval`` and for ``dense_output``,
        ``events`` and ``gradient="steps"``, where rejected steps count, too. Otherwise there is
        no limit.
      max_events: the number of zeros that are stored for each event.
      gradient: ``"adjoint"`` solves the adjoint equation for reverse mode; ``"steps"``
        differentiates the steps, in both modes, also ``sol`` and the events.

    Returns:
      An :class:`OdeResult`. States at times that were not reached are NaN.

    Sources: Bogacki and Shampine (1989), Dormand and Prince (1980), and Hairer, Nørsett and Wanner
    (1993, 1996) for the methods of order 8 and Radau. ``"BDF"`` has the formulas of Shampine and
    Reichelt (SIAM J. Sci. Comput. 18, 1997), of orders 1 to 5, with a Jacobian in each step.

    Raises:
      ValueError: if the method or ``gradient`` is unknown, shapes do not match, or ``vectorized``
        is true.
      TypeError: if ``fun`` is not a function, or the state is complex with ``"Radau"`` or
        ``"BDF"``.

    >>> out = solve_ivp(lambda t, y: -y, (0, 2), np.ones(1, np.float32), t_eval=np.float32([1, 2]))
    >>> [round(float(v), 2) for v in out.y[0]], bool(out.success)
    ([0.37, 0.14], True)
    """
    if not callable(fun):
        raise TypeError(f"solve_ivp: fun must be a function, got {type(fun).__name__}")
    if vectorized:
        raise ValueError("solve_ivp: vectorized=True is not supported: fun takes one state [n]")
    if method not in _METHODS:
        raise ValueError(f"solve_ivp: unknown method {method!r}: use one of {list(_METHODS)}")
    if gradient not in ("adjoint", "steps"):
        raise ValueError(f"solve_ivp: gradient must be 'adjoint' or 'steps', got {gradient!r}")
    if not is_operand(y0) or typeof(y0).ndim != 1 or not typeof(y0).size:
        shape = typeof(y0).shape if is_operand(y0) else type(y0).__name__
        raise ValueError(f"solve_ivp: y0 must be a vector, got {shape}")
    extra = () if args is None else args
    if not isinstance(extra, tuple):
        raise TypeError(f"solve_ivp: args must be a tuple, got {type(args).__name__}")
    y0 = as_inexact(pnp.asarray(y0))
    y0 = lax.convert_element_type(y0, dtypes.f32) if y0.dtype.itemsize < 4 else y0
    if is_complex(y0) and method in ("Radau", "BDF"):
        raise TypeError(
            f"solve_ivp: {method} takes real states: stack the real and the imaginary parts"
        )
    real = lax.real(y0).dtype if is_complex(y0) else typeof(y0).dtype
    t0, end = (lax.convert_element_type(t, real) for t in t_span)
    own_times = t_eval is None
    times = end[None] if t_eval is None else lax.convert_element_type(t_eval, real)
    if typeof(times).ndim != 1 or not typeof(times).size:
        raise ValueError(f"solve_ivp: t_eval must be a vector, got shape {typeof(times).shape}")
    functions = events if events is None or isinstance(events, (list, tuple)) else (events,)
    recorded = own_times or dense_output or events is not None or gradient == "steps"
    settings = _Settings(
        max_steps, first_step, tuple(functions or ()), max_events, gradient, recorded, own_times
    )
    limits = [lax.stop_gradient(lax.convert_element_type(v, real)) for v in (rtol, atol, max_step)]
    problem = Problem(fun, _METHODS[method], *limits, pnp.where(end >= t0, 1, -1).astype(real))
    out = _solved(problem, t0, y0, end, times, extra, settings)
    return out._replace(
        sol=out.sol if dense_output else None,
        t_events=out.t_events if events is not None else None,
        y_events=out.y_events if events is not None else None,
    )


def _solved(
    problem: Problem, t0: Any, y0: Any, end: Any, times: Any, args: tuple[Any, ...],
    settings: _Settings,
) -> OdeResult:  # fmt: skip
    fun = problem.fun

    def derivative(t: Any, y: Any) -> Any:
        out = pnp.asarray(fun(t, y, *args))
        if typeof(out).shape != typeof(y).shape:
            raise ValueError(
                f"solve_ivp: fun must return the shape of the state, {typeof(y).shape}; it "
                f"returned {typeof(out).shape}"
            )
        return lax.convert_element_type(out, typeof(y).dtype)

    event_args = args if settings.gradient == "steps" else tree.map(lax.stop_gradient, args)

    def forward(y0: Any, t0: Any, times: Any, values: Any) -> Any:
        whole = problem._replace(fun=lambda t, y: converted(t, y, *values))
        if not settings.recorded:
            states, last = at_times(whole, t0, y0, times, None)
            status = pnp.where(last.failed, -1, 0)
            return states, (times, None, (), (), last.work, status, last.steps)
        last = times[-1] if settings.own_times else lax.stop_gradient(end)
        return _recorded(whole, t0, y0, times, last, event_args, settings)

    if settings.gradient == "steps":
        converted = lambda t, y, *_: derivative(t, y)
        states, rest = forward(y0, t0, times, ())
    else:
        converted, values = closure_convert(derivative, t0, y0)
        solve = with_adjoint(forward, converted, problem, None, settings.own_times)
        states, rest = solve(y0, t0, times, values)
    t, sol, t_events, y_events, work, status, steps = rest
    return OdeResult(
        t, states.T, sol, t_events, y_events, *work, status, status >= 0, steps
    )  # fmt: skip


def _recorded(
    problem: Problem, t0: Any, y0: Any, times: Any, end: Any, args: tuple[Any, ...],
    settings: _Settings,
) -> Any:  # fmt: skip
    """The states, and the other parts of the result, from recorded steps."""
    events = [
        (lambda t, y, e=e: e(t, y, *args), float(getattr(e, "direction", 0)))
        for e in settings.events
    ]
    stops = [bool(getattr(e, "terminal", False)) for e in settings.events]
    terminal = [e for e, stop in zip(events, stops) if stop]
    sol, state, stopped = record(
        problem, t0, y0, end, settings.first_step, settings.size, terminal,
        settings.gradient == "steps",
    )  # fmt: skip
    zeros = [zeros_of(*e, sol, state.steps, settings.max_events) for e in events]
    last, final = state.t, state.y
    direction = problem.direction
    for (t, y, count), stop in zip(zeros, stops):
        if stop:
            # A terminal event has one zero, unless another one ends the integration earlier.
            i = pnp.maximum(count - 1, 0)
            earlier = (count > 0) & ((last - t[i]) * direction > 0)
            last, final = pnp.where(earlier, t[i], last), pnp.where(earlier, y[i], final)
    before_end = [((last - t) * direction >= 0)[:, None] for t, _, _ in zeros]
    t_events = tuple(pnp.where(k[:, 0], t, pnp.nan) for (t, _, _), k in zip(zeros, before_end))
    y_events = tuple(pnp.where(k, y, pnp.nan) for (_, y, _), k in zip(zeros, before_end))
    missed = ((end - state.t) * direction > 0) & ~stopped
    status = pnp.where(stopped, 1, pnp.where(missed, pnp.where(state.failed, -1, -2), 0))
    if settings.own_times:
        t = pnp.concatenate([t0[None], sol.ends])
        cut = pnp.arange(settings.size + 1) >= state.steps
        t = pnp.where(cut, last, t)
        after = pnp.concatenate([sol.states[1:], final[None]])
        states = pnp.where(cut[:, None], final, pnp.concatenate([y0[None], after]))
    else:
        t = times
        inside = (last - times) * direction >= 0
        states = pnp.where(inside[:, None], sol(times).T, pnp.nan)
        states = pnp.where((times == last)[:, None], final, states)
    return states, (t, sol, t_events, y_events, state.work, status, state.steps)
