"""Loops of jaxprs: values that follow from the number of the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from primax_core.extend import Jaxpr, Literal

from .elements import INT32
from .emitter import TextEmitter


def counters_of(jaxpr: Jaxpr, carry: Sequence[Any], num_consts: int) -> dict[int, int]:
    """Carried integers to which each step adds a constant, which they are mapped to.

    Args:
      jaxpr: the body of a ``scan``.
      carry: values and references of the carry; of references nothing is followed.
    """
    counters: dict[int, int] = {}
    producer = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    for i, x in enumerate(carry):
        out = jaxpr.outvars[i]
        eqn = None if isinstance(out, Literal) else producer.get(out)
        if eqn is None or eqn.primitive.name != "add" or np.dtype(x.dtype) != INT32:
            continue
        a, b = eqn.invars
        if x.shape == () and a is jaxpr.invars[num_consts + i] and type(b) is Literal:
            counters[i] = int(b.scalar)
    return counters


def carry_at(
    e: TextEmitter[Any], start: Sequence[Any], counters: Mapping[int, int]
) -> Callable[[Any, Sequence[Any]], list[Any]]:
    """A function from the number of a step, and the carried values that are no counters, to all.

    Args:
      start: the carry before the first step.
      counters: as `counters_of` gives them.
    """

    def values_at(number: Any, current: Sequence[Any]) -> list[Any]:
        remaining = iter(current)
        return [
            e.add(x, e.multiply(number, e.index(counters[i]))) if i in counters else next(remaining)
            for i, x in enumerate(start)
        ]

    return values_at
