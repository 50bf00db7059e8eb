"""Steps of embedded Runge-Kutta methods, and their interpolation.

All methods have interpolants of the form ``y + s * (F0 + (1 - s) * (F1 + s * (F2 + ...)))`` with
``s`` from 0 to 1 in the step (Hairer, Nørsett and Wanner, *Solving Ordinary Differential Equations
I*, 1993, sections II.5 and II.6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import typeof

from . import _dop853

Function = Callable[[Any, Any], Any]


class Trial(NamedTuple):
    """The result of one step, before it is accepted.

    Attributes:
      y, f: the state and its derivative at the end.
      error: the norm of the error estimate relative to the tolerance.
      dense: the coefficients ``[k, n]`` of the interpolant.
      evaluations, jacobians, factorizations: the work.
    """

    y: Any
    f: Any
    error: Any
    dense: Any
    evaluations: Any
    jacobians: Any
    factorizations: Any


class Method(NamedTuple):
    """A method for one step.

    Attributes:
      order: the order of the error estimate plus one, which controls the step size.
      terms: the number of coefficients of the interpolant.
      step: ``step(fun, t, y, f, h, scale)``, with ``scale(y0, y1)`` the tolerance of each element.
      start: ``start(problem, y, f, h)``, what a multistep method remembers before the first step.
      attempt: ``attempt(problem, state, end)``, the next state of a multistep method, which
        controls its steps.
    """

    order: int
    terms: int
    step: Callable[..., Trial] | None
    start: Callable[..., Any] | None = None
    attempt: Callable[..., Any] | None = None


def root_mean_square(x: Any) -> Any:
    """The norm of an error, real."""
    return lax.sqrt(pnp.mean(pnp.square(pnp.abs(x)))) if typeof(x).size else pnp.abs(x).sum()


def interpolated(y: Any, dense: Any, s: Any) -> Any:
    """The interpolant at the fraction ``s`` of a step from ``y``."""
    out = pnp.zeros_like(y)
    for i in reversed(range(len(dense))):
        out = (out + dense[i]) * (s if i % 2 == 0 else 1 - s)
    return y + out


def _matrix(rows: Any, width: int) -> np.ndarray:
    out = np.zeros((len(rows), width))
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def _stages(fun: Function, t: Any, y: Any, f: Any, h: Any, a: Any, c: Any) -> Any:
    """The derivatives of all stages ``[s, n]``; the function is traced once."""
    dtype, s = typeof(y).dtype, len(c)
    real = typeof(t).dtype
    rows, nodes = pnp.asarray(a, dtype=dtype), pnp.asarray(c, dtype=real)
    first = pnp.zeros((s, *typeof(y).shape), dtype).at[0].set(f)
    step = lax.convert_element_type(h, dtype)

    def stage(i: Any, k: Any) -> Any:
        point = y + step * pnp.matmul(rows[i], k, precision=lax.Precision.HIGHEST)
        return k.at[i].set(fun(t + nodes[i] * h, point))

    return lax.fori_loop(1, s, stage, first)


def _weighted(weights: Any, k: Any) -> Any:
    return pnp.matmul(
        pnp.asarray(weights, dtype=typeof(k).dtype), k, precision=lax.Precision.HIGHEST
    )


def _embedded(order: int, a: Any, c: Any, errors: Any, output: Any) -> Method:
    """A method whose last stage is the end of the step."""
    matrix, width = _matrix(a, len(c)), len(c)
    estimate, outputs = _matrix([errors], width)[0], _matrix(output, width)

    def step(fun: Function, t: Any, y: Any, f: Any, h: Any, scale: Any) -> Trial:
        k = _stages(fun, t, y, f, h, matrix, c)
        step = lax.convert_element_type(h, typeof(y).dtype)
        change = step * _weighted(matrix[-1], k)
        new, last = y + change, k[-1]
        error = root_mean_square(step * _weighted(estimate, k) / scale(y, new))
        rows = [change, step * f - change, 2 * change - step * (f + last)]
        rows += [step * _weighted(row, k) for row in outputs]
        return Trial(new, last, error, pnp.stack(rows), width - 1, 0, 0)

    return Method(order, 3 + len(outputs), step)


def _dop853_step(fun: Function, t: Any, y: Any, f: Any, h: Any, scale: Any) -> Trial:
    """A step of order 8; the error estimate combines those of orders 5 and 3."""
    nodes, weights = _dop853.C_AND_B
    k = _stages(fun, t, y, f, h, _matrix(_dop853.A, 16), nodes)
    step = lax.convert_element_type(h, typeof(y).dtype)
    change = step * _weighted(_matrix([weights], 16)[0], k)
    new, last = y + change, k[12]
    third, fifth = (
        root_mean_square(step * _weighted(e, k) / scale(y, new))
        for e in _matrix(_dop853.ERRORS, 16)
    )
    bottom = fifth * fifth + 0.01 * third * third
    error = pnp.where(bottom > 0, fifth**2 / lax.sqrt(pnp.where(bottom > 0, bottom, 1)), 0)
    error = pnp.where(pnp.isfinite(bottom), error, bottom)
    rows = [change, step * f - change, 2 * change - step * (f + last)]
    rows += [step * _weighted(row, k) for row in _matrix(_dop853.OUTPUT, 16)]
    return Trial(new, last, error, pnp.stack(rows), 15, 0, 0)


RK23: Final = _embedded(
    3,
    [[], [1 / 2], [0, 3 / 4], [2 / 9, 1 / 3, 4 / 9]],
    [0, 1 / 2, 3 / 4, 1],
    [5 / 72, -1 / 12, -1 / 9, 1 / 8],
    [],
)  # fmt: skip
"""The pair of Bogacki and Shampine, Appl. Math. Lett. 2 (1989)."""

RK45: Final = _embedded(
    5,
    [
        [],
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ],
    [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1],
    [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40],
    [[
        -12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072,
        701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
    ]],
)  # fmt: skip
"""The pair of Dormand and Prince, J. Comput. Appl. Math. 6 (1980), with Shampine's interpolant."""

DOP853: Final = Method(8, 7, _dop853_step)
"""The method of order 8 of Hairer, Nørsett and Wanner (1993), section II.10."""
