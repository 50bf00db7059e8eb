"""Numerical differentiation formulas of orders 1 to 5, for stiff systems."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import jacfwd, lax
from primax_core.extend import dtypes, typeof

from ._runge_kutta import Function, Method, root_mean_square

_ORDER: Final = 5
_NEWTON_STEPS: Final = 4
# L. F. Shampine and M. W. Reichelt, "The MATLAB ODE Suite", SIAM J. Sci. Comput. 18 (1997), table 1
_KAPPA: Final = np.array([0, -0.1850, -1 / 9, -0.0823, -0.0415, 0])
_GAMMA: Final = np.array([0, *np.cumsum(1 / np.arange(1, _ORDER + 1))])
_ALPHA: Final = np.array([1, *((1 - _KAPPA) * _GAMMA)[1:]])
_ERROR: Final = np.array([*(_KAPPA * _GAMMA + 1 / np.arange(1, _ORDER + 2)), 1.0])


class Memory(NamedTuple):
    """The past of an integration.

    Attributes:
      differences: backward differences ``[8, n]`` of the states at equal distances.
      width: their distance, with its sign.
      order: the order of the next step.
      equal: the number of steps of this distance and order.
    """

    differences: Any
    width: Any
    order: Any
    equal: Any


def _interpolant() -> np.ndarray:
    """The matrix from differences to the coefficients of an interpolant in nested form."""
    s = np.arange(1, _ORDER + 1) / _ORDER
    nested = np.stack([s, s * (1 - s), s**2 * (1 - s), (s - s**2) ** 2, s * (s - s**2) ** 2], 1)

    def newton(x: Any) -> np.ndarray:
        columns = [np.ones_like(x)]
        for m in range(_ORDER):
            columns.append(columns[-1] * (x + m) / (m + 1))
        return np.stack(columns, 1)

    return np.linalg.solve(nested, newton(s - 1) - newton(np.array([-1.0])))


_DENSE: Final = _interpolant()


def _ratios(factor: Any) -> Any:
    """The matrix ``R`` of Shampine and Reichelt for a change of the distance."""
    i = np.arange(_ORDER + 1)
    rows = [pnp.ones_like(factor * i)]
    for row in range(1, _ORDER + 1):
        rows.append(rows[-1] * (row - 1 - factor * i) / row)
    return pnp.stack(rows)


def _combined(matrix: Any, rows: Any) -> Any:
    return pnp.matmul(
        pnp.asarray(matrix, dtype=typeof(rows).dtype), rows, precision=lax.Precision.HIGHEST
    )


def _rescaled(differences: Any, order: Any, factor: Any) -> Any:
    """The differences at distances multiplied by a factor."""
    factor = factor.astype(typeof(differences).dtype)
    change = _combined(_ratios(factor), _ratios(pnp.ones_like(factor)))
    i = np.arange(_ORDER + 1)
    inside = (i[:, None] <= order) & (i[None] <= order)
    change = pnp.where(inside, change, np.eye(_ORDER + 1).astype(typeof(change).dtype))
    first = _combined(change.T, differences[: _ORDER + 1])
    return pnp.concatenate([first, differences[_ORDER + 1 :]])


def _start(problem: Any, y: Any, f: Any, h: Any) -> Memory:
    width = h * problem.direction
    rows = pnp.zeros((_ORDER + 3, *typeof(y).shape), typeof(y).dtype)
    rows = rows.at[0].set(y).at[1].set(width.astype(typeof(y).dtype) * f)
    return Memory(rows, width, pnp.full((), 1, np.int32), pnp.full((), 0, np.int32))


def _newton(fun: Function, t: Any, guess: Any, psi: Any, c: Any, scale: Any, tolerance: Any) -> Any:
    """The change of the predicted state by simplified Newton steps, convergence, and their
    number."""
    n, dtype = typeof(guess).size, typeof(guess).dtype
    jacobian = lax.stop_gradient(jacfwd(lambda x: fun(t, x))(guess))
    lu, _, order = lax.linalg.lu(pnp.eye(n, dtype=dtype) - c * jacobian)

    def going(state: Any) -> Any:
        _, _, k, converged, diverged = state
        return ~converged & ~diverged & (k < _NEWTON_STEPS)

    def step(state: Any) -> Any:
        d, before, k, _, _ = state
        f = lax.stop_gradient(fun(t, guess + d))
        right = (c * f - psi - d)[order][:, None]
        right = lax.linalg.triangular_solve(
            lu, right, left_side=True, lower=True, unit_diagonal=True
        )
        change = lax.linalg.triangular_solve(lu, right, left_side=True)[:, 0]
        size = root_mean_square(change / scale)
        rate = pnp.where(k > 0, size / pnp.where(before > 0, before, 1), 0)
        ahead = rate / pnp.where(rate < 1, 1 - rate, 1) * size
        done = (size == 0) | ((k > 0) & (rate < 1) & (ahead < tolerance))
        left = (_NEWTON_STEPS - 1 - k).astype(typeof(rate).dtype)
        hopeless = (rate >= 1) | (ahead * rate**left > tolerance) & (k > 0)
        return d + change, size, k + 1, done, (hopeless & ~done) | ~pnp.isfinite(size)

    begin = (
        pnp.zeros_like(guess), pnp.zeros_like(tolerance), pnp.full((), 0, np.int32),
        pnp.full((), False), pnp.full((), False),
    )  # fmt: skip
    d, _, k, converged, _ = lax.while_loop(going, step, begin)
    return d, converged, k


def _corrected(fun: Function, t: Any, guess: Any, psi: Any, c: Any, d: Any) -> Any:
    """The change with derivatives by the implicit function theorem."""

    def solve(linear: Any, right: Any) -> Any:
        return pnp.linalg.solve(jacfwd(linear)(pnp.zeros_like(right)), right)

    def residual(d: Any) -> Any:
        return d - (c * fun(t, guess + d) - psi)

    return lax.custom_root(residual, d, lambda _, start: start, solve)


def _next_order(rows: Any, order: Any, error: Any, scale: Any) -> tuple[Any, Any]:
    """The order whose step may be longest, and the factor of the step."""
    constants = pnp.asarray(_ERROR, dtype=typeof(error).dtype)

    def factor_of(k: Any, error: Any) -> Any:
        power = -1 / (k + 1).astype(typeof(error).dtype)
        return pnp.where(error > 0, pnp.where(error > 0, error, 1) ** power, pnp.inf)

    def of_order(k: Any) -> Any:
        error = constants[k] * root_mean_square(rows[k + 1] / scale)
        return factor_of(k, error)

    factors = pnp.stack([
        pnp.where(order > 1, of_order(pnp.maximum(order - 1, 0)), 0.0), factor_of(order, error),
        pnp.where(order < _ORDER, of_order(order + 1), 0.0),
    ])  # fmt: skip
    best = pnp.argmax(factors)
    return order + best.astype(np.int32) - 1, factors[best]


def _attempt(problem: Any, state: Any, end: Any) -> Any:
    """Try one step, not beyond ``end``; the driver's function for this method."""
    memory, dtype = state.memory, typeof(state.y).dtype
    order = memory.order
    remaining = (end - state.t) * problem.direction
    h = pnp.minimum(pnp.minimum(state.h, problem.max_step), lax.stop_gradient(remaining))
    last = h >= remaining
    width = pnp.where(last, end - state.t, h * problem.direction)
    t = pnp.where(last, end, state.t + h * problem.direction)
    factor = width / memory.width
    rows = _rescaled(memory.differences, order, factor)
    equal = pnp.where(factor == 1, memory.equal, 0)
    places = np.arange(_ORDER + 3)
    used = (places <= order)[:, None]
    guess = pnp.sum(pnp.where(used, rows, 0), 0)
    weights = np.pad(_GAMMA, (0, 2)).astype(dtype)[:, None]
    alpha = pnp.asarray(_ALPHA, dtype=dtype)[order]
    psi = pnp.sum(pnp.where(used, weights * rows, 0), 0) / alpha
    c = width.astype(dtype) / alpha
    eps = float(dtypes.finfo(dtype).eps)
    tolerance = pnp.maximum(10 * eps / problem.rtol, pnp.minimum(0.03, pnp.sqrt(problem.rtol)))
    fixed = [lax.stop_gradient(v) for v in (t, guess, psi, c, problem.scale(guess, guess))]
    d, converged, k = _newton(problem.fun, *fixed, tolerance.astype(dtype))
    d = _corrected(problem.fun, t, guess, psi, c, lax.stop_gradient(d))
    y = guess + d
    scale = problem.scale(state.y, y)
    exact_d = lax.stop_gradient(d)
    error = pnp.asarray(_ERROR, dtype=dtype)[order] * root_mean_square(exact_d / scale)
    good = converged & (error <= 1)
    # Differences of the new state
    rows = rows.at[order + 2].set(d - rows[order + 1]).at[order + 1].set(d)
    for i in reversed(range(_ORDER + 1)):
        rows = rows.at[i].set(pnp.where(i <= order, rows[i] + rows[i + 1], rows[i]))
    equal = equal + 1
    ready = equal > order
    safety = 0.9 * (2 * _NEWTON_STEPS + 1) / (2 * _NEWTON_STEPS + k).astype(dtype)
    new_order, gain = _next_order(lax.stop_gradient(rows), order, error, scale)
    grown = pnp.where(ready, pnp.minimum(10, safety * gain), 1.0)
    usable = pnp.isfinite(error) & (error > 0)
    power = -1 / (order + 1).astype(dtype)
    shrunk = pnp.maximum(0.2, safety * pnp.where(usable, error, 1) ** power)
    shrunk = pnp.where(converged & usable, pnp.minimum(shrunk, 0.9), 0.5)
    following = h * pnp.where(good, grown, shrunk).astype(typeof(h).dtype)
    dense = _combined(_DENSE, pnp.where(used, rows, 0)[: _ORDER + 1])
    after = Memory(
        rows, width, pnp.where(ready, new_order, order), pnp.where(ready, 0, equal).astype(np.int32)
    )
    limit = 4 * float(dtypes.finfo(typeof(t).dtype).eps) * pnp.abs(state.t)
    choose = lambda new, old: pnp.where(good, new, old)
    work = zip(state.work, (k, 1, 1), strict=True)
    return state._replace(
        t=choose(t, state.t), y=choose(y, state.y), f=choose((psi + d) / c, state.f),
        h=lax.stop_gradient(following), before=choose(state.t, state.before),
        start=choose(state.y, state.start), dense=choose(dense, state.dense), accepted=good,
        failed=~good & (following <= limit), steps=state.steps + good.astype(np.int32),
        work=tuple(a + pnp.asarray(b).astype(np.int32) for a, b in work),
        memory=Memory(*map(choose, after, memory)),
    )  # fmt: skip


BDF: Final = Method(2, _ORDER, None, _start, _attempt)
"""Numerical differentiation formulas with nearly constant steps."""
