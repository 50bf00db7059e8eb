"""Overrides of rules that can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .primitive import Primitive
from .rules import RuleKind, location_of


class RuleOverride:
    """An override of a rule that can be taken back; see `Primitive.override`.

    Attributes:
      prim, kind, rule: the primitive, the rule kind, and the rule in force while it lasts.
    """

    __slots__ = ("prim", "kind", "rule", "_active")

    def __init__(self, prim: Primitive, kind: RuleKind[Any], rule: Callable[..., Any]):
        self.prim: Primitive = prim
        self.kind: RuleKind[Any] = kind
        self.rule: Callable[..., Any] = rule
        stack = prim._replaced.setdefault(kind, [])
        stack.append(prim.rules.get(kind))
        prim.rules[kind] = rule
        self._active = True
        prim._changed(kind, True)

    def undo(self) -> None:
        """Take the override back. Later overrides of the rule stay."""
        if not self._active:
            return
        self._active = False
        prim, kind = self.prim, self.kind
        stack = prim._replaced[kind]
        if prim.rules.get(kind) is self.rule:
            before = stack.pop()
            if before is None:
                del prim.rules[kind]
            else:
                prim.rules[kind] = before
        else:
            stack.remove(self.rule)
        prim._changed(kind, True)

    def __enter__(self) -> RuleOverride:
        return self

    def __exit__(self, *exc: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        state = "" if self._active else ", undone"
        return f"RuleOverride({self.prim.name}, {self.kind.name}, {location_of(self.rule)}{state})"
