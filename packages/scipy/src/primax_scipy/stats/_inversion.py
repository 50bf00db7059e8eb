"""Quantiles of continuous distributions by Newton steps in a bracket."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import custom_jvp, jvp, lax
from primax_core.extend import typeof

from .._elementary import choose, is_double
from ..special._operands import in_blocks
from ._series_inversion import Curve, inverse

Kernel = Callable[..., Any]


def quantile(
    cdf: Kernel, sf: Kernel, logpdf: Kernel, support: Kernel, symmetric: bool, upper: bool,
    guess: Kernel | None = None, curve: Callable[..., Curve] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function of probabilities in (0, 1) and parameters: the quantile in standard form.

    Newton's method solves for the logarithm of the smaller tail, with the support mapped to the
    real line: by ``sinh``, the exponential function, or the logistic function. Tails are nearly
    linear there. Steps that leave the bracket are replaced by bisection. The iteration ends with a
    step of about half the digits, because the next one would be its square. Blocks of elements
    iterate separately. The derivative is that of the implicit function.

    Args:
      support: the ends of the support of the parameters; each finite or infinite for all of them.
      symmetric: True if the upper tail mirrors the lower one.
      upper: True for the inverse of the survival function.
      guess: a first value on the real line, as in `_first_quantiles`; 0 by default.
      curve: the distribution on the real line, for the faster method of `_series_inversion`.
    """

    @in_blocks
    def by_newton(q: Any, *shapes: Any) -> Any:
        lower = (q <= 0.5) != upper
        p = choose(q <= 0.5, q, 1 - q)
        first = lax.full_like(q, 0) if guess is None else guess(p, lower, *shapes)
        return _solve(cdf, sf, logpdf, support(*shapes), symmetric, lower, p, first, shapes)

    solution = by_newton if curve is None or guess is None else inverse(curve, guess, upper)

    return implicit(solution, sf if upper else cdf, logpdf, upper)


def implicit(solution: Kernel, tail: Kernel, logpdf: Kernel, upper: bool = False) -> Kernel:
    """A quantile function with the derivative of the implicit function.

    Args:
      solution: the function of probabilities and parameters, without derivatives.
      tail: the CDF, or for the inverse of the survival function this function.
      upper: True for the inverse of the survival function.
    """

    @custom_jvp
    def solve(q: Any, *shapes: Any) -> Any:
        return solution(q, *shapes)

    @solve.defjvp
    def _solve_jvp(primals, tangents):
        (q, *shapes), (t, *rest) = primals, tangents
        z = solve(q, *shapes)
        if shapes:
            _, change = jvp(lambda *s: tail(z, *s), tuple(shapes), tuple(rest))
            t = t - change
        density = lax.exp(logpdf(z, *shapes))
        return z, (-t if upper else t) / density

    return solve


def _solve(
    cdf: Kernel,
    sf: Kernel,
    logpdf: Kernel,
    ends: tuple[Any, Any],
    symmetric: bool,
    lower: Any,
    p: Any,
    first: Any,
    shapes: Any,
) -> Any:
    place, low, high = _real_line(ends, p)
    inside = (first > low) & (first < high)
    first = choose(inside, first, 0.0)
    eps = float(np.finfo(typeof(p).dtype).eps)
    tolerance, last_step = 4 * eps, math.sqrt(eps) / 8

    def residual(t: Any) -> tuple[Any, Any, Any]:
        z, change = place(t)
        # Of a symmetric distribution the upper tail is the lower tail of the mirrored argument.
        if symmetric:
            tail = cdf(choose(lower, z, -z), *shapes)
        else:
            tail = choose(lower, cdf(z, *shapes), sf(z, *shapes))
        # The difference of the logarithms, which increases with t
        difference = lax.log(tail / p)
        difference = choose(lower, difference, -difference)
        return z, difference, lax.exp(logpdf(z, *shapes)) / tail * change

    def step(state: Any) -> Any:
        i, t, low, high, _, _ = state
        z, difference, derivative = residual(t)
        # The last step is taken in the original variable, which has more digits.
        correction = difference / derivative * place(t)[1]
        small = lax.abs(correction) < 1e-3 * lax.abs(z)
        z = z - choose(small, correction, 0.0)
        low, high = choose(difference < 0, t, low), choose(difference > 0, t, high)
        following = t - difference / derivative
        # A step below the spacing of numbers leaves t, an end of the bracket, as it is.
        inner = (following >= low) & (following <= high)
        following = choose(inner, following, 0.5 * (low + high))
        size = choose(lax.abs(t) > 1, lax.abs(t), 1.0)
        going = (lax.abs(following - t) > last_step * size) & (high - low > tolerance * size)
        return i + 1, following, low, high, going, z

    def unfinished(state: Any) -> Any:
        return (state[0] < 120) & lax.reduce_or(state[4], tuple(range(typeof(p).ndim)))

    start = (0, first, low, high, lax.full_like(p, True, np.bool_), first)
    return lax.while_loop(unfinished, step, start)[5]


def _real_line(ends: tuple[Any, Any], q: Any) -> tuple[Callable[..., Any], Any, Any]:
    """A map of the real line to the support, with its derivative, and a bracket."""
    low, high = ends
    extent = 705.0 if is_double(q) else 86.0
    bracket = lax.full_like(q, -extent), lax.full_like(q, extent)

    def of_line(t: Any) -> tuple[Any, Any]:
        e = lax.exp(lax.abs(t))
        half = 0.5 * (e + 1 / e)
        near = lax.abs(t) < 1
        small = choose(near, t, 0.0)
        return choose(near, lax.sinh(small), lax.sign(t) * 0.5 * (e - 1 / e)), half

    def of_right(t: Any) -> tuple[Any, Any]:
        e = lax.exp(t)
        return low + e, e

    def of_left(t: Any) -> tuple[Any, Any]:
        e = lax.exp(-t)
        return high - e, e

    def of_interval(t: Any) -> tuple[Any, Any]:
        width = high - low
        p = lax.logistic(t)
        return choose(t < 0, low + width * p, high - width * lax.logistic(-t)), (
            width * p * lax.logistic(-t)
        )

    if _infinite(low):
        chosen = of_line if _infinite(high) else of_left
    else:
        chosen = of_right if _infinite(high) else of_interval
    return chosen, *bracket


def _infinite(end: Any) -> bool:
    return isinstance(end, float) and np.isinf(end)
