"""Computation of the dimension variables from the sizes of arguments, with checks.

A :class:`Plan` is executed twice: on numbers when an exported function is called, and in the
StableHLO module itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ..symbolic_dims import Dimension
from .expression import DimExpr, check_scope, of_terms
from .factors import ONE, Factor, quotient


class ArgumentAxis(NamedTuple):
    """One dimension of one argument."""

    argument: int
    axis: int


class Solve(NamedTuple):
    """``variable = (size - rest) // factor`` with the size of an argument axis."""

    variable: str
    source: ArgumentAxis
    rest: Any
    factor: Any


class Remainder(NamedTuple):
    """``(size - rest) % factor``."""

    source: ArgumentAxis
    rest: Any
    factor: Any


class Check(NamedTuple):
    """``left >= right`` or ``left == right``, and the error message.

    Sides are dimensions, argument axes or remainders. ``{0}`` in the text is the value of
    ``shown[0]``.
    """

    symbol: str
    left: Any
    right: Any
    text: str
    shown: tuple[Any, ...]


class Plan(NamedTuple):
    """Steps, in order."""

    steps: tuple[Solve | Check, ...]
    variables: tuple[str, ...]

    def values(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """The variables for arguments of these shapes.

        Raises:
          ValueError: if the shapes do not agree with the symbolic ones.
        """
        variables: dict[str, int] = {}

        def value(x: Any) -> int:
            if type(x) is ArgumentAxis:
                return shapes[x.argument][x.axis]
            if type(x) is Remainder:
                return (value(x.source) - value(x.rest)) % value(x.factor)
            return x.evaluate(variables) if isinstance(x, DimExpr) else x

        for step in self.steps:
            if isinstance(step, Solve):
                rest = value(step.source) - value(step.rest)
                variables[step.variable] = rest // value(step.factor)
            else:
                left, right = value(step.left), value(step.right)
                if not (left >= right if step.symbol == ">=" else left == right):
                    raise ValueError(step.text.format(*map(value, step.shown)))
        return variables


class UnsolvableError(ValueError):
    """The shapes of the arguments do not determine all dimension variables."""


_MISMATCH: Final = "Input shapes do not match the polymorphic shapes specification."


def plan_of(shapes: Sequence[Sequence[Any]], names: Sequence[str] | None = None) -> Plan:
    """Plan for the computation and the checks of the variables in argument shapes.

    Args:
      names: names of the arguments in messages.

    Raises:
      UnsolvableError: if a variable cannot be computed. Each must occur in a sum whose other terms
        are known, in a product with known factors only.
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
            (ArgumentAxis(i, j), d)
            for i, shape in enumerate(shapes)
            for j, d in enumerate(shape)
            if isinstance(d, DimExpr)
        ]
        self.known: dict[str, tuple[DimExpr, ArgumentAxis]] = {}
        self.steps: list[Solve | Check] = []

    def plan(self) -> Plan:
        scope = self.open[0][1].scope if self.open else None
        for _, d in self.open:
            check_scope(d, scope)
        while self.open:
            # The simplest first: a size that is a variable needs no division.
            solvable = [(p, d, s) for p, d in self.open if (s := self.solution(d)) is not None]
            if not solvable:
                break
            source, d, (name, rest, factor) = min(
                solvable, key=lambda t: (len(t[1].terms), str(t[2][2]) != "1", t[0])
            )
            self.open = [(p, e) for p, e in self.open if p != source]
            if name is None:
                self.agree(source, d)
            else:
                self.solve(source, d, name, rest, factor)
        if self.open:
            self.fail()
        if scope is not None:
            self.constraints(scope)
        return Plan(tuple(self.steps), tuple(self.known))

    def solution(self, d: DimExpr) -> tuple[str | None, Any, Any] | None:
        """The variable that a dimension determines, the rest and the factor.

        The variable is ``None`` if all variables are known, and the result is ``None`` if the
        dimension does not determine one.
        """
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

    def solve(self, source: ArgumentAxis, d: DimExpr, name: str, rest: Any, factor: Any) -> None:
        if not (type(factor) is int and factor == 1):
            over = Remainder(source, rest, factor)
            text = f"{_MISMATCH} Dividing to find '{name}' leaves a remainder of {{0}}: '{d}' is "
            text += f"{self.source_text(source)}, of size {{1}}."
            self.check("==", over, 0, text, (over, source))
        self.steps.append(Solve(name, source, rest, factor))
        self.known[name] = d, source
        variable = d.scope.variable(name)
        text = f"{_MISMATCH} Expected value >= 1 for dimension variable '{name}', found {{0}}."
        self.check(">=", variable, 1, text, (variable,))

    def agree(self, source: ArgumentAxis, d: DimExpr) -> None:
        text = (
            f"{_MISMATCH} The size of {self.source_text(source)} is {{0}}, but its specification "
            f"'{d}' gives {{1}}."
        )
        self.check("==", source, d, text, (source, d))

    def constraints(self, scope: Any) -> None:
        for difference, symbol, text in scope.stated:
            if type(difference) is int or difference.variables() - self.known.keys():
                continue
            message = (
                f"Input shapes do not match the symbolic shape constraint {text}. Expected "
                f"'{difference}' {'to be 0' if symbol == '==' else '>= 0'}, found {{0}}."
            )
            self.check(symbol, difference, 0, message, (difference,))

    def check(self, symbol: str, left: Any, right: Any, text: str, shown: tuple) -> None:
        described, values = [], list(shown)
        for name, (d, source) in self.known.items():
            n = len(values)
            described.append(
                f"'{name}' = {{{n}}} from specification '{d}' for dimension "
                f"{self.source_text(source)} (= {{{n + 1}}})"
            )
            values += [d.scope.variable(name), source]
        solved = "; ".join(described) or "none"
        text = (
            f"{text} Using the following polymorphic shapes specifications: {_quoted(self.specs)}. "
            f"Obtained dimension variables: {solved}."
        )
        self.steps.append(Check(symbol, left, right, text, tuple(values)))

    def source_text(self, source: ArgumentAxis) -> str:
        return _quoted(f"{self.names[source.argument]}.shape[{source.axis}]")

    def fail(self) -> None:
        names: set[str] = set()
        for _, d in self.open:
            names |= d.variables()
        left = ", ".join(f"'{d}' for dimension {self.source_text(p)}" for p, d in self.open)
        raise UnsolvableError(
            f"Cannot solve for values of dimension variables {sorted(names - self.known.keys())}: "
            "each must be determined by the size of an argument's dimension in which all else is "
            f"known and in which it is not multiplied by itself. Not used: {left}. Using the "
            f"following polymorphic shapes specifications: {self.specs}. Add an argument whose "
            "shape has the variable, or use simpler expressions."
        )


def _quoted(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
