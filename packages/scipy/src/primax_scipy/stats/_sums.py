"""Sums over integers whose number of terms depends on the operands, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import custom_jvp, jvp, lax
from primax_core.extend import typeof

from .._elementary import choose
from ..special._operands import in_blocks

Term = Callable[..., Any]


def log_sum(
    term: Term, start: Any, low: Any, high: Any, *operands: Any, ratio: Term | None = None
) -> Any:
    """Logarithm of a sum of ``exp(term(j, *operands))`` over the integers ``low <= j <= high``.

    The sum begins at ``start`` and continues in both directions until terms have no influence;
    terms must decrease in each direction, at least from some distance on. All arguments are arrays
    of one shape and dtype. Derivatives with respect to the operands are sums of the same terms.

    Args:
      ratio: the quotient of the exponentials of the terms at ``j + 1`` and ``j``, a function as
        ``term``; the sum is then computed by products of quotients.
    """

    @custom_jvp
    def total(start: Any, low: Any, high: Any, *xs: Any) -> Any:
        if ratio is not None:
            base = _first_term(term, start, xs)
            return base + lax.log(_sum_of_products(ratio, start, low, high, *xs))
        base, sums = _loop(term, start, low, high, xs, False)
        return base + lax.log(sums[0])

    @total.defjvp
    def _total_jvp(primals, tangents):
        start, low, high, *xs = primals
        base, (mass, *partials) = _loop(term, start, low, high, tuple(xs), True)
        change = lax.full_like(mass, 0)
        for partial, t in zip(partials, tangents[3:], strict=True):
            change = change + partial / mass * t
        return base + lax.log(mass), change

    return total(start, low, high, *operands)


def _first_term(term: Term, start: Any, xs: Any) -> Any:
    base = term(start, *xs)
    return choose(lax.abs(base) < np.inf, base, 0.0)


def _sum_of_products(ratio: Term, start: Any, low: Any, high: Any, *xs: Any) -> Any:
    """The sum of all terms divided by the first one."""

    @in_blocks
    def total(start: Any, low: Any, high: Any, *xs: Any) -> Any:
        eps = 0.1 * float(np.finfo(typeof(start).dtype).eps)
        one = lax.full_like(start, 1.0)

        def step(state: Any) -> Any:
            i, up, down, sum_ = state
            j = start + i
            more = (j <= high) & (up > 0)
            up = choose(more, up * ratio(choose(more, j - 1, start), *xs), 0.0)
            j = start - i
            more = (j >= low) & (down > 0)
            down = choose(more, down / ratio(choose(more, j, start), *xs), 0.0)
            sum_ = sum_ + (up + down)
            small = eps * sum_
            return i + 1, choose(up > small, up, 0.0), choose(down > small, down, 0.0), sum_

        def unfinished(state: Any) -> Any:
            return lax.reduce_max(state[1] + state[2], tuple(range(typeof(start).ndim))) > 0

        some = (low <= start) & (start <= high)
        weight = choose(some, one, 0.0)
        first = lax.full_like(start, 1, shape=())
        return lax.while_loop(unfinished, step, (first, weight, weight, weight))[3]

    return total(start, low, high, *xs)


def _loop(term: Term, start: Any, low: Any, high: Any, xs: Any, derivatives: bool) -> Any:
    """The first term, and the sums of all terms divided by it and of their derivatives."""
    base = _first_term(term, start, xs)
    none = (lax.full_like(base, 0),) * (1 + len(xs) * derivatives)

    def at(j: Any, count: Any, sums: Any) -> tuple[Any, Any]:
        within = count & (j >= low) & (j <= high)
        place = choose(within, j, start)
        weight = choose(within, lax.exp(term(place, *xs) - base), 0.0)
        terms = [weight]
        for i, x in enumerate(xs) if derivatives else ():

            def along(v: Any, _i: int = i) -> Any:
                return term(place, *xs[:_i], v, *xs[_i + 1 :])

            slope = jvp(along, (x,), (lax.full_like(x, 1),))[1]
            terms.append(choose(weight > 0, weight * slope, 0.0))
        return tuple(s + t for s, t in zip(sums, terms, strict=True)), within & (
            weight > eps * sums[0]
        )

    eps = 0.1 * float(np.finfo(typeof(base).dtype).eps)
    everywhere = lax.full_like(base, True, np.bool_)
    sums, _ = at(start, everywhere, none)

    def step(state: Any) -> Any:
        i, up, down, sums = state
        sums, up = at(start + i, up, sums)
        sums, down = at(start - i, down, sums)
        return i + 1, up, down, sums

    def unfinished(state: Any) -> Any:
        return lax.reduce_or(state[1] | state[2], tuple(range(typeof(base).ndim)))

    one = lax.full_like(base, 1, shape=())
    return base, lax.while_loop(unfinished, step, (one, everywhere, everywhere, sums))[3]
