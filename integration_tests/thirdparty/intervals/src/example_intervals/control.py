"""Rules for control flow.

Calls (``jit``, custom derivatives, ``checkpoint``) need none: the interpreter's fallback uses their
expansions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from primax_core import lax
from primax_core.extend import Jaxpr, typeof

from .intervals import Interval, evaluate, everything, hull, interval

MAX_STEPS = 10_000
"""Maximum number of loop steps; afterwards the results may be any number."""


def _pairs(values: Sequence[Interval]) -> list[tuple]:
    """Convert to plain tuples of strongly typed arrays, which loops can carry."""
    return [tuple(lax.convert_element_type(v, x.aval.dtype) for v in x) for x in values]


def _intervals(pairs) -> list[Interval]:
    return [Interval(*p) for p in pairs]


@lax.cond_p.rule(interval)
def _interval(index, *values, branches: Sequence[Jaxpr]):
    """Hull of the branches that may be selected."""
    if index.aval.dtype == np.bool_:
        index = Interval(*(lax.convert_element_type(i, np.int32) for i in index))
    last = np.int32(len(branches) - 1)
    index = Interval(*(lax.clamp(np.int32(0), i, last) for i in index))
    outs = [evaluate(b, values) for b in branches]
    select = lax.select_n_p.require(interval)
    results = []
    for cases in zip(*outs):
        shape = cases[0].aval.shape
        which = Interval(*(lax.broadcast(i, shape) for i in index))
        results.append(select(which, *cases))
    return results


@lax.scan_p.rule(interval)
def _scan_interval(*values, jaxpr, length, reverse, unroll, num_consts, num_carry):
    consts, rest = values[:num_consts], values[num_consts:]
    carry, xs = rest[:num_carry], rest[num_carry:]

    def body(carry, xs):
        outs = evaluate(jaxpr, [*consts, *_intervals(carry), *_intervals(xs)])
        return _pairs(outs[:num_carry]), _pairs(outs[num_carry:])

    carry, ys = lax.scan(body, _pairs(carry), _pairs(xs), length, reverse, unroll)
    return [*_intervals(carry), *_intervals(ys)]


@lax.while_p.rule(interval)
def _while_interval(*values, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    """Hull of all states in which the loop may stop."""
    cond_consts, values = values[:cond_nconsts], values[cond_nconsts:]
    body_consts, init = values[:body_nconsts], values[body_nconsts:]

    def test(state: Sequence[Interval]) -> Interval:
        (condition,) = evaluate(cond_jaxpr, [*cond_consts, *state])
        axes = tuple(range(typeof(condition.low).ndim))
        return Interval(*(lax.reduce_or(v, axes) for v in condition))

    def going(loop):
        step, state, _, _ = loop
        return lax.bitwise_and(step < MAX_STEPS, test(_intervals(state)).high)

    def advance(loop):
        step, state, stopped, has_stopped = loop
        now = _intervals(state)
        new = evaluate(body_jaxpr, [*body_consts, *now])
        # If the loop may stop here for the first time, this state is the first result.
        may_stop = lax.bitwise_not(test(now).low)
        stopped = _joined(stopped, now, may_stop, has_stopped)
        return step + 1, _pairs(new), stopped, lax.bitwise_or(has_stopped, may_stop)

    start = _pairs(init)
    _, state, stopped, has_stopped = lax.while_loop(
        going, advance, (np.int32(0), start, start, np.bool_(False))
    )
    final = _joined(stopped, _intervals(state), True, has_stopped)
    ended = lax.bitwise_not(test(_intervals(state)).high)
    return [
        Interval(*(lax.select_n(ended, a, b) for a, b in zip(everything(x.aval), x)))
        for x in _intervals(final)
    ]


def _joined(stopped, now: Sequence[Interval], may_stop, has_stopped) -> list[tuple]:
    joined = []
    for old, new in zip(_intervals(stopped), now):
        both = hull(old, new)
        selected = [lax.select_n(has_stopped, n, b) for n, b in zip(new, both)]
        joined.append(Interval(*(lax.select_n(may_stop, o, w) for o, w in zip(old, selected))))
    return _pairs(joined)
