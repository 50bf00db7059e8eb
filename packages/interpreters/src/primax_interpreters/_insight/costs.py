"""Cost of a jaxpr by source line and by primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primax_core.extend import Eqn, Jaxpr, invalid_result, jaxprs_in, live_eqns, total_bytes

from .cost_rules import Cost, cost
from .places import UNKNOWN, Line, Places


class Sum:
    """A sum of costs.

    Attributes:
      flops, special, bytes: see :class:`Cost`; what is unknown is not added.
      equations: how many equations, each counted once.
      estimated: whether some of it is an estimate.
      repeated: whether some of it happens an unknown number of times, and was counted once.
      unknown: whether the flops of some operation are unknown.
    """

    __slots__ = ("flops", "special", "bytes", "equations", "estimated", "repeated", "unknown")

    def __init__(self) -> None:
        self.flops: float = 0
        self.special: float = 0
        self.bytes: int = 0
        self.equations: int = 0
        self.estimated: bool = False
        self.repeated: bool = False
        self.unknown: bool = False

    def add(self, other: Sum, times: int = 1) -> None:
        """Add costs that occur a number of times."""
        self.flops += times * other.flops
        self.special += times * other.special
        self.bytes += times * other.bytes
        self.equations += other.equations
        self.estimated |= other.estimated
        self.repeated |= other.repeated
        self.unknown |= other.unknown

    def add_cost(self, own: Cost, eqn: Eqn) -> None:
        """Add one equation, without its sub-jaxprs."""
        avals = [v.aval for v in (*eqn.invars, *eqn.outvars)]
        self.flops += own.flops or 0
        self.unknown |= own.flops is None
        self.special += own.special
        self.bytes += total_bytes(avals) if own.bytes is None else own.bytes
        self.equations += 1
        self.estimated |= own.estimated


class Tally:
    """The costs of a jaxpr.

    Attributes:
      total: all of it.
      lines: by line of source.
      primitives: by name.
      depth: nesting depth of sub-jaxprs.
    """

    def __init__(self) -> None:
        self.total: Sum = Sum()
        self.lines: dict[Line, Sum] = {}
        self.primitives: dict[str, Sum] = {}
        self.depth: int = 1

    def add(self, other: Tally, times: int | None) -> None:
        """Add a sub-jaxpr that runs a number of times, ``None`` if unknown."""
        n = 1 if times is None else times
        for mine, theirs in (
            ({"": self.total}, {"": other.total}),
            (self.lines, other.lines),
            (self.primitives, other.primitives),
        ):
            for name, part in theirs.items():
                into = mine.setdefault(name, Sum())  # type: ignore[attr-defined]
                into.add(part, n)
                into.repeated |= times is None
        self.depth = max(self.depth, other.depth + 1)


def tally(jaxpr: Jaxpr, places: Places) -> Tally:
    """The costs of a jaxpr and its sub-jaxprs."""
    return _Counter(places).program(jaxpr, UNKNOWN)


class _Counter:
    def __init__(self, places: Places):
        self.places = places
        self.known: dict[tuple[Jaxpr, Line], Tally] = {}
        self.rules: dict[Any, Callable[..., Cost]] = {}

    def program(self, jaxpr: Jaxpr, called_at: Line) -> Tally:
        costs = self.known.get((jaxpr, called_at))
        if costs is not None:
            return costs
        costs = self.known[jaxpr, called_at] = Tally()
        for eqn in live_eqns(jaxpr):
            self.equation(eqn, costs, called_at)
        return costs

    def equation(self, eqn: Eqn, into: Tally, called_at: Line) -> None:
        line = self.places.line(eqn.source_info, called_at)
        rule = self.rules.get(eqn.primitive)
        if rule is None:
            rule = self.rules[eqn.primitive] = eqn.primitive.require(cost, "explain")
        ins = [v.aval for v in eqn.invars]
        answer = rule(ins, [v.aval for v in eqn.outvars], **eqn.params)
        if not isinstance(answer, Cost):
            invalid_result(eqn.primitive, cost, rule, f"returned {answer!r}")
        own = Sum()
        own.add_cost(answer, eqn)
        name = eqn.primitive.name
        for part in (
            into.total,
            into.lines.setdefault(line, Sum()),
            into.primitives.setdefault(name, Sum()),
        ):
            part.add(own)
        for run in answer.runs:
            into.add(self.program(run.program, line), run.times)
        if answer.one_of:
            branches = [self.program(b, line) for b in answer.one_of]
            largest = max(branches, key=lambda t: (t.total.flops, t.total.bytes))
            into.add(largest, 1)
            if len(branches) > 1:
                into.total.estimated = True


def equations(jaxpr: Jaxpr) -> int:
    """Number of equations of a jaxpr, with those of its sub-jaxprs."""
    return sum(1 + sum(map(equations, jaxprs_in(e.params))) for e in jaxpr.eqns)
