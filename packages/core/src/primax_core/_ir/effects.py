"""Effects: the side effects of jaxprs and equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

no_effects: frozenset[Any] = frozenset()


class Effect:
    """Base of all effects; equal effects hash alike.

    Attributes:
      keeps: an equation with this effect must not be removed even if its results are unused.
      ordered: equations with this effect run in program order.
      local: the effect is not visible outside the jaxpr, which must be discharged before lowering.
      exact: it must happen as often as the jaxpr says: not for the masked examples of a batch, and
        not again in a recomputation.
      shows: it only shows values, so the jaxpr may run again for debugging.
      input_index: the operand of the effect, or ``None``.
      only_where: from a jaxpr with this effect to one with an additional boolean first argument,
        which has the effect only if it is true; ``None`` for effects that cannot be masked.
    """

    keeps: bool = True
    ordered: bool = False
    local: bool = False
    exact: bool = False
    shows: bool = False
    input_index: int | None = None
    only_where: Callable[[Any], Any] | None = None

    def seen_from(self, invars: Sequence[Any], binders: dict[Any, int]) -> Effect:
        """The effect of an equation as an effect of the enclosing jaxpr.

        ``binders`` maps the arguments of the jaxpr to their positions.
        """
        return self

    def at(self, index: int) -> Any:
        """The same effect on another operand."""
        return self


class NamedAxisEffect(Effect):
    """The jaxpr uses a named axis (a collective over it, or its index)."""

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
    """An effect identified by its class; one instance of each class is enough."""

    name: str = "Effect"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def are_ordered(effects: frozenset[Any]) -> bool:
    """Return True if an effect must happen in program order."""
    return bool(effects) and any(e.ordered for e in effects)


def on_references(effects: frozenset[Any]) -> bool:
    """Return True if an effect is on a reference operand."""
    return bool(effects) and any(e.input_index is not None for e in effects)


def shifted(effects: frozenset[Any], operand_of: Callable[[int], int]) -> frozenset[Any]:
    """Effects of a sub-jaxpr as effects of its equation.

    Args:
      operand_of: from an argument of the jaxpr to the operand of the equation.
    """
    if not on_references(effects):
        return effects
    return frozenset(
        e if e.input_index is None else e.at(operand_of(e.input_index)) for e in effects
    )


def are_exact(effects: frozenset[Any]) -> bool:
    """Return True if an effect must happen as often as the jaxpr says."""
    return bool(effects) and any(e.exact for e in effects)


def check_not_masked(effects: frozenset[Any], what: str) -> None:
    """Raise an error if a jaxpr must not run for masked examples.

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
    """Return True if an equation with these effects survives dead-code elimination."""
    return bool(effects) and any(e.keeps for e in effects)
