"""Effects: what a program does besides computing its results."""

from __future__ import annotations

no_effects: frozenset = frozenset()


class Effect:
    """Base of all effects; equal effects hash alike.

    Attributes:
      keeps: an equation with this effect must not be removed even if nobody reads its results.
      ordered: equations with this effect run in program order.
    """

    keeps = True
    ordered = False


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


def must_stay(effects: frozenset) -> bool:
    """Whether an equation with these effects survives dead-code elimination."""
    return bool(effects) and any(e.keeps for e in effects)
