"""Rule tables in the reference's convention: mappings from primitives to functions.

``table[prim] = rule`` registers a rule and replaces the previous one. Reading returns the function
that was written, or the primitive's core rule wrapped as such a function, whether it is the
primitive's own, derived from its expansion, or the rule kind's fallback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Final, TypeAlias

import primax_core.extend as core
from primax_core.extend import Linear, Literal, Primitive, RuleKind, Zero, as_operand

Rule: TypeAlias = Callable[..., Any]


class Adapted:
    """Core rule that calls a rule written for the reference.

    Attributes:
      table: the table in which the rule was stored.
      rule: the function that was stored.
    """

    __slots__ = ("call", "rule", "table")

    def __init__(self, table: RuleTable, rule: Rule, call: Rule) -> None:
        self.table = table
        self.rule = rule
        self.call = call

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.call(*args, **params)

    def __repr__(self) -> str:
        return f"Adapted({self.rule!r})"


class RuleTable(MutableMapping[Primitive, Rule]):
    """The rules of one kind, for all primitives that have one.

    Args:
      kind: the core's rule kind.
      inward: converts a rule from the reference's convention to the core's.
      outward: converts a rule from the core's convention to the reference's.
      registered: called with the primitive after each write.
    """

    def __init__(
        self,
        kind: RuleKind[Any],
        inward: Callable[[Rule], Rule] = lambda rule: rule,
        outward: Callable[[Rule], Rule] = lambda rule: rule,
        registered: Callable[[Primitive, Rule], None] | None = None,
    ) -> None:
        self.kind = kind
        self._inward = inward
        self._outward = outward
        self._registered = registered

    def __getitem__(self, prim: Primitive) -> Rule:
        rule = prim.find(self.kind) if isinstance(prim, Primitive) else None
        if rule is None:
            raise KeyError(prim)
        if type(rule) is Adapted and rule.table is self:
            return rule.rule
        return self._outward(rule)

    def __setitem__(self, prim: Primitive, rule: Rule) -> None:
        if not callable(rule):
            raise TypeError(f"a rule must be callable, got {rule!r}")
        prim.rule(self.kind, override=True)(Adapted(self, rule, self._inward(rule)))
        if self._registered is not None:
            self._registered(prim, rule)

    def __delitem__(self, prim: Primitive) -> None:
        if prim not in self:
            raise KeyError(prim)
        prim.unsupported(self.kind, "its rule was removed from the table", override=True)

    def __contains__(self, prim: object) -> bool:
        return isinstance(prim, Primitive) and prim.find(self.kind) is not None

    def __iter__(self) -> Iterator[Primitive]:
        return iter([p for p in core.known_primitives() if p in self])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self) -> dict[Primitive, Rule]:
        """Return a dict of the current rules."""
        return dict(self)

    def __repr__(self) -> str:
        return f"<table of the {self.kind.name} rules of {len(self)} primitives>"


def _differentiates(prim: Primitive, rule: Rule) -> None:
    """Discard the core's linearization after a new derivative rule."""
    if core.linearize in prim.rules:
        prim.unsupported(core.linearize, "its jvp rule was replaced", override=True)


def _transposes(prim: Primitive, rule: Rule) -> None:
    """Register a new transpose rule for direct transposition on concrete values, too."""
    from .primitives import Primitive as Made

    if not issubclass(type(prim), Made) and core.transpose_direct not in prim.rules:
        return

    def backward(cts: Any, values: Any, linear: Any, avals: Any, **params: Any) -> list[Any]:
        operands = [
            Linear(a) if is_lin else as_operand(v) if type(v) is Literal else v
            for v, a, is_lin in zip(values, avals, linear)
        ]
        if any(c is None for c in cts):
            types = prim.require(core.abstract, "transposition")(*avals, **params)
            types = types if prim.multiple_results else [types]
            cts = [Zero(a.tangent_aval()) if c is None else c for c, a in zip(cts, types)]
        cotangents = rule(list(cts) if prim.multiple_results else cts[0], *operands, **params)
        return [
            None if c is None or type(c) is Zero or not is_lin else c
            for c, is_lin in zip(cotangents, linear, strict=True)
        ]

    prim.rule(core.transpose_direct, override=True)(backward)


primitive_jvps: Final = RuleTable(core.jvp, registered=_differentiates)
"""``rule(primals, tangents, **params) -> (out, tangent)``; tangents may be ``Zero``."""

primitive_transposes: Final = RuleTable(core.transpose, registered=_transposes)
"""``rule(ct, *args, **params) -> cotangents``; linear operands are ``UndefinedPrimal``, and a
cotangent may be ``Zero``.
"""
