"""Sets of kinds of effects, which third parties add theirs to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from primax_core.extend import Effect


class EffectTypeSet:
    """Which classes of effects something is allowed for, subclasses included.

    Those of the library are always members: where one is not allowed, its own rules say so.
    """

    def __init__(self) -> None:
        self._types: set[type[Effect]] = set()

    def add_type(self, effect_type: type[Effect]) -> None:
        """Make a class of effects a member."""
        self._types.add(effect_type)

    def contains(self, effect: Effect) -> bool:
        """Whether an effect's class is a member."""
        of = type(effect)
        return of.__module__.startswith("primax_core.") or issubclass(of, tuple(self._types))

    def filter_in(self, effects: Iterable[Any]) -> list[Any]:
        """The effects that are members."""
        return [e for e in effects if self.contains(e)]

    def filter_not_in(self, effects: Iterable[Any]) -> list[Any]:
        """The effects that are not."""
        return [e for e in effects if not self.contains(e)]

    def __repr__(self) -> str:
        return f"EffectTypeSet({sorted(t.__name__ for t in self._types)})"


lowerable_effects: Final = EffectTypeSet()
"""Effects that lowering rules in the reference's convention can express."""
