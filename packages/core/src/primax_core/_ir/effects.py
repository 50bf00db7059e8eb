"""Effects: what a program does besides computing its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

no_effects: frozenset[Any] = frozenset()


class Effect:
    """Base of all effects; equal effects hash alike.

    Attributes:
      keeps: an equation with this effect must not be removed even if nobody reads its results.
      ordered: equations with this effect run in program order.
      local: nobody outside notices; the program is not ready to be lowered.
      exact: it happens just as often as the program says: not for examples of a batch that only
        run along, nor again where values are computed a second time.
      shows: it only shows values, so the program may run again for debugging.
      input_index: the operand that the effect is about, if it is about one.
      only_where: from a program with this effect to one with a boolean before its arguments, which
        has the effect where that is true; ``None`` for effects that cannot be withheld so.
    """

    keeps: bool = True
    ordered: bool = False
    local: bool = False
    exact: bool = False
    shows: bool = False
    input_index: int | None = None
    only_where: Callable[[Any], Any] | None = None

    def seen_from(self, invars: Sequence[Any], binders: dict[Any, int]) -> Effect:
        """The effect of an equation as the effect of the program that the equation stands in, whose
        arguments have the positions ``binders``."""
        return self

    def at(self, index: int) -> Any:
        """The same effect on another operand."""
        return self


class NamedAxisEffect(Effect):
    """The program uses a named axis (a collective over it, or its index)."""

    keeps: bool = False
    __slots__ = ("name",)

    def __init__(self, name: Any):
        self.name: Any = name

    def __eq__(self, other: object) -> bool:
        return type(other) is NamedAxisEffect and other.name == self.name

    def __hash__(self) -> int:
        return hash((NamedAxisEffect, self.name))

    def __repr__(self) -> str:
        return f"NamedAxis({self.name})"


class NamedEffect(Effect):
    """An effect that is known by its name alone; one object of each class is enough."""

    name: str = "Effect"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def are_ordered(effects: frozenset[Any]) -> bool:
    """Whether some of the effects happen in program order."""
    return bool(effects) and any(e.ordered for e in effects)


def on_references(effects: frozenset[Any]) -> bool:
    """Whether some of the effects are about references that are operands."""
    return bool(effects) and any(e.input_index is not None for e in effects)


def shifted(effects: frozenset[Any], place: Callable[[int], int]) -> frozenset[Any]:
    """Effects of a held program as those of the equation that holds it.

    Args:
      place: from an argument of the program to the operand of the equation.
    """
    if not on_references(effects):
        return effects
    return frozenset(e if e.input_index is None else e.at(place(e.input_index)) for e in effects)


def are_exact(effects: frozenset[Any]) -> bool:
    """Whether some of the effects happen just as often as the program says."""
    return bool(effects) and any(e.exact for e in effects)


def check_not_masked(effects: frozenset[Any], what: str) -> None:
    """Refuse to run a program also for examples that it is not meant for.

    Raises:
      NotImplementedError: if it has exact effects.
    """
    if are_exact(effects):
        names = ", ".join(sorted(str(e) for e in effects if e.exact))
        raise NotImplementedError(
            f"{names} effect not supported in vmap of {what} that differs between the examples: it "
            "would happen for all of them. Loop over the examples with lax.map, or move the "
            "callback out."
        )


def must_stay(effects: frozenset[Any]) -> bool:
    """Whether an equation with these effects survives dead-code elimination."""
    return bool(effects) and any(e.keeps for e in effects)
