"""Extensible sets of effect types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from primax_core.extend import Effect


class EffectTypeSet:
    """Set of effect classes, subclasses included, for which a feature is allowed.

    The library's own effects are always members. If one is not allowed, the rules of its primitive
    raise the error.
    """

    def __init__(self) -> None:
        self._types: set[type[Effect]] = set()

    def add_type(self, effect_type: type[Effect]) -> None:
        """Add a class of effects."""
        self._types.add(effect_type)

    def contains(self, effect: Effect) -> bool:
        """Return True if the class of an effect is a member."""
        of = type(effect)
        return of.__module__.startswith("primax_core.") or issubclass(of, tuple(self._types))

    def filter_in(self, effects: Iterable[Any]) -> list[Any]:
        """Return the effects that are members."""
        return [e for e in effects if self.contains(e)]

    def filter_not_in(self, effects: Iterable[Any]) -> list[Any]:
        """Return the effects that are not members."""
        return [e for e in effects if not self.contains(e)]

    def __repr__(self) -> str:
        return f"EffectTypeSet({sorted(t.__name__ for t in self._types)})"


lowerable_effects: Final = EffectTypeSet()
"""Effects that lowering rules in the reference's convention support."""
