"""The values of dimension variables from the sizes of arguments, and what must hold of them.

A :class:`Plan` is carried out twice: on numbers when a program is called, and in the StableHLO
module itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ..symbolic_dims import Dimension
from .expression import DimExpr, check_scope, of_terms
from .factors import ONE, Factor, quotient


class Place(NamedTuple):
    """One dimension of one argument."""

    argument: int
    axis: int


class Solve(NamedTuple):
    """``variable = (size - rest) // factor``, where the size is that of a place."""

    variable: str
    place: Place
    rest: Any
    factor: Any


class Remainder(NamedTuple):
    """``(size - rest) % factor``."""

    place: Place
    rest: Any
    factor: Any


class Check(NamedTuple):
    """``left >= right`` or ``left == right``, and what to say if not.

    Sides are dimensions, places or remainders; ``{0}`` in the text stands for ``shown[0]``.
    """

    symbol: str
    left: Any
    right: Any
    text: str
    shown: tuple[Any, ...]


class Plan(NamedTuple):
    """Steps in their order."""

    steps: tuple[Solve | Check, ...]
    variables: tuple[str, ...]

    def values(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """The variables for arguments of these shapes.

        Raises:
          ValueError: if the shapes do not agree with the symbolic ones.
        """
        found: dict[str, int] = {}

        def value(x: Any) -> int:
            if type(x) is Place:
                return shapes[x.argument][x.axis]
            if type(x) is Remainder:
                return (value(x.place) - value(x.rest)) % value(x.factor)
            return x.evaluate(found) if isinstance(x, DimExpr) else x

        for step in self.steps:
            if isinstance(step, Solve):
                rest = value(step.place) - value(step.rest)
                found[step.variable] = rest // value(step.factor)
            else:
                left, right = value(step.left), value(step.right)
                if not (left >= right if step.symbol == ">=" else left == right):
                    raise ValueError(step.text.format(*map(value, step.shown)))
        return found


class UnsolvableError(ValueError):
    """The shapes of the arguments do not tell the values of all dimension variables."""


_MISMATCH: Final = "Input shapes do not match the polymorphic shapes specification."


def plan_of(shapes: Sequence[Sequence[Any]], names: Sequence[str] | None = None) -> Plan:
    """How the variables in the shapes of arguments are found and checked.

    Args:
      names: what messages call the arguments.

    Raises:
      UnsolvableError: if some variable cannot be computed: each must stand by itself, times
        something known, in a sum of which all else is known.
    """
    if names is None:
        names = [f"args[{i}]" for i in range(len(shapes))]
    specs = ", ".join(
        f"{n}.shape = {_shape_text(s)}"
        for n, s in zip(names, shapes)
        if any(isinstance(d, Dimension) for d in s)
    )
    return _Planner(shapes, names, specs).plan()


def _shape_text(shape: Sequence[Any]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


class _Planner:
    def __init__(self, shapes: Sequence[Sequence[Any]], names: Sequence[str], specs: str):
        self.names, self.specs = names, specs
        self.open = [
            (Place(i, j), d)
            for i, shape in enumerate(shapes)
            for j, d in enumerate(shape)
            if isinstance(d, DimExpr)
        ]
        self.known: dict[str, tuple[DimExpr, Place]] = {}
        self.steps: list[Solve | Check] = []

    def plan(self) -> Plan:
        scope = self.open[0][1].scope if self.open else None
        for _, d in self.open:
            check_scope(d, scope)
        while self.open:
            # The plainest first: a size that is a variable needs no division.
            solvable = [(p, d, s) for p, d in self.open if (s := self.solution(d)) is not None]
            if not solvable:
                break
            place, d, (name, rest, factor) = min(
                solvable, key=lambda t: (len(t[1].terms), str(t[2][2]) != "1", t[0])
            )
            self.open = [(p, e) for p, e in self.open if p != place]
            if name is None:
                self.agree(place, d)
            else:
                self.solve(place, d, name, rest, factor)
        if self.open:
            self.fail()
        if scope is not None:
            self.constraints(scope)
        return Plan(tuple(self.steps), tuple(self.known))

    def solution(self, d: DimExpr) -> tuple[str | None, Any, Any] | None:
        """The variable that a dimension tells, the rest and the factor; no variable if all are
        known already."""
        unknown = d.variables() - self.known.keys()
        if not unknown:
            return None, 0, 1
        if len(unknown) > 1:
            return None
        (name,) = unknown
        variable = ((Factor("", name), 1),)
        rest: dict[Any, int] = {}
        factor: Any = 0
        for m, c in d.terms:
            part = quotient(m, variable)
            term = of_terms(d.scope, {m: c})
            if part is None or part == ONE:
                if part is not None:
                    factor = factor + c
                elif name in getattr(term, "variables", set)():
                    return None
                else:
                    rest[m] = c
                continue
            other = of_terms(d.scope, {part: c})
            if name in other.variables():
                return None
            factor = factor + other
        return name, of_terms(d.scope, rest), factor

    def solve(self, place: Place, d: DimExpr, name: str, rest: Any, factor: Any) -> None:
        if not (type(factor) is int and factor == 1):
            over = Remainder(place, rest, factor)
            text = f"{_MISMATCH} Dividing to find '{name}' leaves a remainder of {{0}}: '{d}' is "
            text += f"{self.place_text(place)}, of size {{1}}."
            self.check("==", over, 0, text, (over, place))
        self.steps.append(Solve(name, place, rest, factor))
        self.known[name] = d, place
        variable = d.scope.variable(name)
        text = f"{_MISMATCH} Expected value >= 1 for dimension variable '{name}', found {{0}}."
        self.check(">=", variable, 1, text, (variable,))

    def agree(self, place: Place, d: DimExpr) -> None:
        text = (
            f"{_MISMATCH} The size of {self.place_text(place)} is {{0}}, but its specification "
            f"'{d}' gives {{1}}."
        )
        self.check("==", place, d, text, (place, d))

    def constraints(self, scope: Any) -> None:
        for difference, symbol, text in scope.stated:
            if type(difference) is int or difference.variables() - self.known.keys():
                continue
            said = (
                f"Input shapes do not match the symbolic shape constraint {text}. Expected "
                f"'{difference}' {'to be 0' if symbol == '==' else '>= 0'}, found {{0}}."
            )
            self.check(symbol, difference, 0, said, (difference,))

    def check(self, symbol: str, left: Any, right: Any, text: str, shown: tuple) -> None:
        told, values = [], list(shown)
        for name, (d, place) in self.known.items():
            n = len(values)
            told.append(
                f"'{name}' = {{{n}}} from specification '{d}' for dimension "
                f"{self.place_text(place)} (= {{{n + 1}}})"
            )
            values += [d.scope.variable(name), place]
        found = "; ".join(told) or "none"
        text = (
            f"{text} Using the following polymorphic shapes specifications: {_quoted(self.specs)}. "
            f"Obtained dimension variables: {found}."
        )
        self.steps.append(Check(symbol, left, right, text, tuple(values)))

    def place_text(self, place: Place) -> str:
        return _quoted(f"{self.names[place.argument]}.shape[{place.axis}]")

    def fail(self) -> None:
        names: set[str] = set()
        for _, d in self.open:
            names |= d.variables()
        left = ", ".join(f"'{d}' for dimension {self.place_text(p)}" for p, d in self.open)
        raise UnsolvableError(
            f"Cannot solve for values of dimension variables {sorted(names - self.known.keys())}: "
            "each must be told by the size of some argument's dimension in which all else is known "
            f"and in which it is not multiplied with itself. Not used: {left}. Using the following "
            f"polymorphic shapes specifications: {self.specs}. Add an argument whose shape has "
            "the variable, or use simpler expressions."
        )


def _quoted(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
