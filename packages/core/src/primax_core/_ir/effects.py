"""Effects: what a program does besides computing its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

no_effects: frozenset = frozenset()


class Effect:
    """Base of all effects; equal effects hash alike.

    Attributes:
      keeps: an equation with this effect must not be removed even if nobody reads its results.
      ordered: equations with this effect run in program order.
    """

    keeps = True
    ordered = False
    local = False  # nobody outside notices; it says that something has to be done before lowering
    input_index: int | None = None  # of the operand that the effect is about, if it is about one

    def seen_from(self, invars, binders) -> Effect:
        """The effect of an equation as the effect of the program that the equation stands in, whose
        arguments have the positions ``binders``."""
        return self

    def at(self, index: int) -> Any:
        """The same effect on another operand."""
        return self


class NamedAxisEffect(Effect):
    """The program uses a named axis (a collective over it, or its index)."""

    keeps = False
    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return type(other) is NamedAxisEffect and other.name == self.name

    def __hash__(self):
        return hash((NamedAxisEffect, self.name))

    def __repr__(self):
        return f"NamedAxis({self.name})"


class NamedEffect(Effect):
    """An effect that is known by its name alone; one object of each class is enough."""

    name = "Effect"

    def __eq__(self, other):
        return type(other) is type(self)

    def __hash__(self):
        return hash(type(self))

    def __repr__(self):
        return self.name

    __str__ = __repr__


def are_ordered(effects: frozenset) -> bool:
    """Whether some of the effects happen in program order."""
    return bool(effects) and any(e.ordered for e in effects)


def on_references(effects: frozenset) -> bool:
    """Whether some of the effects are about references that are operands."""
    return bool(effects) and any(e.input_index is not None for e in effects)


def shifted(effects: frozenset, place: Callable[[int], int]) -> frozenset:
    """Effects of a held program as those of the equation that holds it.

    Args:
      place: from an argument of the program to the operand of the equation.
    """
    if not on_references(effects):
        return effects
    return frozenset(e if e.input_index is None else e.at(place(e.input_index)) for e in effects)


def must_stay(effects: frozenset) -> bool:
    """Whether an equation with these effects survives dead-code elimination."""
    return bool(effects) and any(e.keeps for e in effects)
