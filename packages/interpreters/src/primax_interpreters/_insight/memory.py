"""Estimate of the peak memory of a jaxpr before fusion."""

from __future__ import annotations

from typing import Any, NamedTuple

from primax_core.extend import Jaxpr, Var, jaxprs_in, live_eqns, nbytes

from .places import UNKNOWN, Line, Places

# Their results are their operands under another name.
_ALIASES = frozenset(("reshape", "squeeze", "stop_gradient", "name", "optimization_barrier"))


class Held(NamedTuple):
    """Values that are alive when the most memory is needed."""

    line: Line
    bytes: int
    values: int
    largest: str


class Peak(NamedTuple):
    """The point of a jaxpr that needs the most memory.

    Attributes:
      bytes: how much.
      line: where.
      held: what is alive then, by the line that made it.
    """

    bytes: int
    line: Line
    held: tuple[Held, ...]


def peak_of(jaxpr: Jaxpr, places: Places) -> Peak:
    """The estimate: arguments and results live throughout, other values until their last use."""
    most, at, alive = _search(jaxpr, places, {}, UNKNOWN)
    rows: dict[Line, list] = {}
    for aval, line in alive:
        rows.setdefault(line, []).append(aval)
    held = [
        Held(
            line,
            sum(map(nbytes, avals)),
            len(avals),
            max(avals, key=nbytes).str_short(),
        )
        for line, avals in rows.items()
    ]
    return Peak(most, at, tuple(sorted(held, key=lambda h: -h.bytes)))


def _search(jaxpr: Jaxpr, places: Places, known: dict[Jaxpr, Any], called_at: Line) -> Any:
    """Bytes at the peak, the line of it, and ``(type, line)`` of each value that is alive then."""
    eqns = live_eqns(jaxpr)
    last: dict[Var, int] = {}
    for i, eqn in enumerate(eqns):
        for v in eqn.invars:
            if type(v) is Var:
                last[v] = i
    pinned = {*jaxpr.invars, *jaxpr.constvars, *(v for v in jaxpr.outvars if type(v) is Var)}
    alive: dict[Var, Line] = dict.fromkeys((*jaxpr.constvars, *jaxpr.invars), UNKNOWN)
    now = sum(nbytes(v.aval) for v in alive)
    most, at, snapshot = now, called_at, [(v.aval, line) for v, line in alive.items()]
    for i, eqn in enumerate(eqns):
        line = places.line(eqn.source_info, called_at)
        inner, rows = 0, []
        for held in jaxprs_in(eqn.params):
            if held not in known:
                known[held] = _search(held, places, known, line)
            bytes_, _, values = known[held]
            if bytes_ - _taken(held) > inner:
                inner = bytes_ - _taken(held)
                rows = [(a, ln) for a, ln in values if ln is not UNKNOWN]
        if eqn.primitive.name not in _ALIASES:
            for v in eqn.outvars:
                alive[v] = line
                now += nbytes(v.aval)
        if now + inner > most:
            most, at = now + inner, line
            snapshot = [(v.aval, ln) for v, ln in alive.items()] + rows
        for v in {*eqn.invars, *eqn.outvars}:
            if type(v) is Var and v in alive and v not in pinned and last.get(v, i) <= i:
                now -= nbytes(v.aval)
                del alive[v]
    return most, at, snapshot


def _taken(jaxpr: Jaxpr) -> int:
    """Bytes of the arguments and results of a jaxpr, which its caller counts."""
    values = (*jaxpr.invars, *(v for v in jaxpr.outvars if type(v) is Var))
    return sum(nbytes(v.aval) for v in {*values})
