"""Line search for the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import dtypes, typeof

_DECREASE: Final = 1e-4
_FLATNESS: Final = 0.9


class Point(NamedTuple):
    """A step length and the function at this step.

    Attributes:
      step: the step length.
      value: the value of the function.
      derivative: the directional derivative.
      gradient: the gradient ``[n]``.
    """

    step: Any
    value: Any
    derivative: Any
    gradient: Any


class Search(NamedTuple):
    """The result of a line search.

    Attributes:
      point: the best point.
      decreased: true if the function decreased.
      tries: the number of function evaluations.
    """

    point: Point
    decreased: Any
    tries: Any


class _State(NamedTuple):
    low: Point
    high: Point
    bracketed: Any
    trial: Any
    done: Any
    tries: Any


def line_search(
    value_and_grad: Callable[[Any], tuple[Any, Any]], x: Any, direction: Any, value: Any,
    gradient: Any, first: Any, tries: int,
) -> Search:  # fmt: skip
    """A step along a direction that satisfies the strong Wolfe conditions.

    Algorithms 3.5 and 3.6 of Nocedal and Wright, *Numerical Optimization* (2006), in one loop: the
    step doubles until an interval brackets a solution, then cubic interpolation shrinks the
    interval. If values differ only by rounding, derivatives decide (Hager and Zhang, 2005). The
    first trial step is ``first``.
    """
    dtype = typeof(x).dtype
    start = Point(lax.full((), 0, dtype), value, _inner(gradient, direction), gradient)
    noise = dtypes.finfo(dtype).eps * pnp.abs(value) * 2

    def going(state: _State) -> Any:
        return ~state.done & (state.tries < tries)

    def step(state: _State) -> _State:
        low, high, bracketed, trial, _, count = state
        f, g = value_and_grad(x + trial * direction)
        here = Point(trial, f, _inner(g, direction), g)
        flat = pnp.abs(here.derivative) <= -_FLATNESS * start.derivative
        enough = f <= value + _DECREASE * trial * start.derivative
        enough = enough | (flat & (f <= value + noise))
        # Nonfinite values count as too large.
        bad = ~enough | ~((f < low.value) | flat)
        good = ~bad & flat
        ahead = pnp.where(bracketed, high.step - low.step, 1) * here.derivative >= 0
        reversed_ = ~bad & ahead
        high = _chosen(bad, here, _chosen(reversed_, low, high))
        low = _chosen(bad, low, here)
        bracketed = bracketed | bad | reversed_
        following = pnp.where(bracketed, _between(low, high), 2 * trial)
        return _State(low, high, bracketed, following, good, count + 1)

    before = _State(start, start, False, first, start.derivative >= 0, 0)
    last = lax.while_loop(going, step, before)
    return Search(last.low, last.low.step > 0, last.tries)


def _inner(x: Any, y: Any) -> Any:
    return pnp.dot(x, y, precision=lax.Precision.HIGHEST)


def _chosen(condition: Any, x: Point, y: Point) -> Point:
    return Point(*[pnp.where(condition, a, b) for a, b in zip(x, y)])


def _between(low: Point, high: Point) -> Any:
    """The minimizer of the cubic through two points, clamped away from the ends; otherwise the
    midpoint."""
    width = high.step - low.step
    a = (
        low.derivative
        + high.derivative
        - 3 * (high.value - low.value) / pnp.where(width == 0, 1, width)
    )
    root = a * a - low.derivative * high.derivative
    b = pnp.sign(width) * pnp.sqrt(pnp.maximum(root, 0))
    bottom = high.derivative - low.derivative + 2 * b
    part = 1 - (high.derivative + b - a) / pnp.where(bottom == 0, 1, bottom)
    known = (root > 0) & (bottom != 0) & pnp.isfinite(part)
    return low.step + width * pnp.where(known, pnp.clip(part, 0.1, 0.9), 0.5)
