"""Integration of ordinary differential equations at given times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import closure_convert, lax, tree, vmap
from primax_core.extend import is_operand, typeof
from primax_core.typing import ArrayLike, PyTree
from primax_numpy.declaring import as_inexact, is_complex

from ...integrate._adjoint import flattened, with_adjoint
from ...integrate._runge_kutta import RK45
from ...integrate._steps import Problem, at_times


def odeint(
    func: Callable[..., Any], y0: PyTree, t: ArrayLike, *args: Any, rtol: ArrayLike = 1.4e-8,
    atol: ArrayLike = 1.4e-8, mxstep: ArrayLike = np.inf, hmax: ArrayLike = np.inf,
) -> Any:  # fmt: skip
    """Solution of ``dy/dt = func(y, t, *args)`` at given times, by the method of Dormand and
    Prince with adaptive steps.

    Args:
      func: a function from the state, the time and ``args`` to the derivative of the state, a tree
        like ``y0``.
      y0: the state at the first time: a tree of floats or complex numbers.
      t: the times ``float[m]``, strictly increasing or decreasing.
      args: further arguments, trees of arrays.
      rtol, atol: the relative and absolute tolerance of the error in one step.
      mxstep: the maximum number of attempted steps between two times.
      hmax: the largest step.

    Returns:
      The states at all times: a tree like ``y0``, with a new first axis of length ``m``. States
      that are not reached, because of ``mxstep`` or a singularity, are NaN.

    Derivatives in reverse mode with respect to ``y0``, ``t``, ``args`` and arrays that ``func``
    closes over integrate the adjoint equation backwards. There is no forward mode.

    The time and the tolerances have the precision of the state; narrow floats are integrated in
    ``float32``. Sources: Dormand and Prince, J. Comput. Appl. Math. 6 (1980); Shampine, Math.
    Comp. 46 (1986), for the states between steps.

    Raises:
      TypeError: if ``func`` is not a function, or its result is not like ``y0``.
      ValueError: if ``t`` is not a vector of at least one time.

    >>> y = odeint(lambda y, t: -y, np.float32(1), np.float32([0, 1, 2]), rtol=1e-5, atol=1e-5)
    >>> [round(float(v), 3) for v in y]
    [1.0, 0.368, 0.135]
    """
    if not callable(func):
        raise TypeError(f"odeint: func must be a function, got {type(func).__name__}")
    for leaf in tree.leaves(y0):
        if not is_operand(leaf):
            raise TypeError(f"odeint: y0 must be a tree of arrays, got a {type(leaf).__name__}")
    if not is_operand(t) or typeof(t).ndim != 1 or not typeof(t).size:
        shape = typeof(t).shape if is_operand(t) else type(t).__name__
        raise ValueError(f"odeint: t must be a vector of one or more times, got {shape}")
    y0 = tree.map(lambda x: as_inexact(pnp.asarray(x)), y0)
    if not tree.leaves(y0):
        return y0
    state, restored = flattened(y0)
    real = lax.real(state).dtype if is_complex(state) else typeof(state).dtype
    times = lax.convert_element_type(t, real)
    limits = [lax.convert_element_type(v, real) for v in (rtol, atol, hmax)]
    limit = None if isinstance(mxstep, float) and mxstep == np.inf else mxstep

    def of_vector(time: Any, vector: Any) -> Any:
        return _derivative(func, restored(vector), time, args, vector)

    fun, values = closure_convert(of_vector, times[0], state)
    unset = pnp.ones((), real)
    problem = Problem(of_vector, RK45, *limits, unset)

    def forward(start: Any, first: Any, rest: Any, values: Any) -> Any:
        direction = pnp.where(rest[-1] >= first, 1, -1).astype(real)
        whole = problem._replace(fun=lambda t, y: fun(t, y, *values), direction=direction)
        return at_times(whole, first, start, rest, limit)[0], ()

    states = state[None]
    if typeof(times).size > 1:
        solve = with_adjoint(forward, fun, problem, limit)
        moved, _ = solve(state, times[0], times[1:], values)
        states = lax.concatenate([states, moved], 0)
    return vmap(restored)(states)


def _derivative(func: Callable[..., Any], y: Any, time: Any, args: Any, vector: Any) -> Any:
    """The derivative as a vector.

    Raises:
      TypeError: if the derivative is not a tree like the state.
    """
    out = func(y, time, *args)
    expected, actual = tree.structure(y), tree.structure(out)
    if expected != actual:
        raise TypeError(
            f"odeint: func must return a tree like y0, {expected}; it returned {actual}"
        )
    shapes = [[typeof(x).shape for x in tree.leaves(z)] for z in (y, out)]
    if shapes[0] != shapes[1]:
        raise TypeError(
            f"odeint: func must return arrays of the shapes of y0, {shapes[0]}; it returned "
            f"{shapes[1]}"
        )
    return lax.convert_element_type(flattened(out)[0], typeof(vector).dtype)
