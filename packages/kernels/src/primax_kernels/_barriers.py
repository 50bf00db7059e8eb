"""Barriers in the jaxpr of one core: all cores run up to each, then all go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Eqn,
    Jaxpr,
    Literal,
    Primitive,
    Var,
    abstract,
    eval_jaxpr,
    jaxprs_in,
    walk,
)

core_barrier_p: Final[Primitive] = Primitive("core_barrier", multiple_results=True)
"""A barrier in the jaxpr of one core; `run_phases` removes it."""
core_barrier_p.rule(abstract)(lambda *, axis_name: [])


def run_phases(jaxpr: Jaxpr, arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The results of the jaxpr of one core for all cores.

    Loops with barriers run for all cores together.

    Args:
      jaxpr: the jaxpr, with barriers.
      arguments: its arguments for each core.

    Raises:
      ValueError: for a barrier in a condition, or in a ``scan`` over arrays.
    """
    binders = [*jaxpr.constvars, *jaxpr.invars]
    values = [dict(zip(binders, [*jaxpr.consts, *args])) for args in arguments]
    for phase in _phases_of(jaxpr):
        if len(phase.eqns) == 1 and _has_barrier(phase.eqns[0]):
            (eqn,) = phase.eqns
            operands = [[_value(v, known) for v in eqn.invars] for known in values]
            for known, results in zip(values, _together(eqn, operands)):
                known.update(zip(eqn.outvars, results))
            continue
        for known in values:
            results = eval_jaxpr(phase, [known[v] for v in phase.invars])
            known.update(zip(phase.outvars, results))
    return [[_value(v, known) for v in jaxpr.outvars] for known in values]


def _phases_of(jaxpr: Jaxpr) -> list[Jaxpr]:
    """The parts of a jaxpr between barriers; an equation with a barrier in it is a part.

    The arguments of a part are the values from before that it uses, and its results those that
    later parts use.
    """
    parts: list[list[Any]] = [[]]
    for eqn in jaxpr.eqns:
        if eqn.primitive is core_barrier_p:
            parts.append([])
        elif _has_barrier(eqn):
            parts += [[eqn], []]
        else:
            parts[-1].append(eqn)
    phases: list[Jaxpr] = []
    needed: set[Var] = {v for v in jaxpr.outvars if isinstance(v, Var)}
    for eqns in reversed(parts):
        results = [v for eqn in eqns for v in eqn.outvars if v in needed]
        defined = {v for eqn in eqns for v in eqn.outvars}
        used = {v: None for eqn in eqns for v in eqn.invars if isinstance(v, Var)}
        arguments = [v for v in used if v not in defined]
        needed = (needed - defined) | set(arguments)
        phases.insert(0, Jaxpr([], [], arguments, results, eqns))
    return phases


def _has_barrier(eqn: Eqn) -> bool:
    return any(
        inner.primitive is core_barrier_p for body in jaxprs_in(eqn.params) for inner in walk(body)
    )


def _value(v: Any, known: Mapping[Any, Any]) -> Any:
    """The value of a literal, or of a variable."""
    if isinstance(v, Literal):
        return np.asarray(v.scalar, v.aval.dtype)[()]
    return known[v]


def _together(eqn: Eqn, operands: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The results of an equation with a barrier in it, for each core."""
    name, params = eqn.primitive.name, eqn.params
    if name == "jit":
        return run_phases(params["jaxpr"], operands)
    if name == "scan" and len(eqn.invars) == params["num_consts"] + params["num_carry"]:
        if len(eqn.outvars) == params["num_carry"]:
            n, body = params["num_consts"], params["jaxpr"]
            consts, carries = [xs[:n] for xs in operands], _carries(body, n, operands)
            return lax.fori_loop(
                np.int32(0), np.int32(params["length"]),
                lambda _, own: run_phases(body, [[*c, *x] for c, x in zip(consts, own)]), carries,
            )  # fmt: skip
    if name == "while" and not any(map(_is_barrier, walk(params["cond_jaxpr"]))):
        n, m, body = params["cond_nconsts"], params["body_nconsts"], params["body_jaxpr"]
        first, consts = operands[0][:n], [xs[n : n + m] for xs in operands]
        carries = _carries(body, m, [xs[n:] for xs in operands])
        return lax.while_loop(
            lambda own: eval_jaxpr(params["cond_jaxpr"], [*first, *own[0]])[0],
            lambda own: run_phases(body, [[*c, *x] for c, x in zip(consts, own)]), carries,
        )  # fmt: skip
    raise ValueError(
        f"core_barrier is inside of {name}, where cores may differ: move it out of the condition, "
        "or write the loop with lax.fori_loop, whose steps all cores share"
    )


def _carries(body: Jaxpr, n: int, operands: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The first values that a loop replaces, of the body's dtypes, for each core."""
    types = [v.aval.dtype for v in body.invars[n:]]
    return [[lax.convert_element_type(x, d) for x, d in zip(xs[n:], types)] for xs in operands]


def _is_barrier(eqn: Eqn) -> bool:
    return eqn.primitive is core_barrier_p
