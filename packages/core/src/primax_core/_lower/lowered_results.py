"""Checks of what lowering rules return, before XLA sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.config import state
from .._base.source import is_internal
from .._ir import rules as rule_kinds
from .._ir.primitive import Primitive
from .._ir.rule_results import code_of, invalid_result
from .context import ir, type_of


def checked(prim: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    """A lowering rule whose result is checked, unless it is the library's own.

    The own rules are checked with ``enable_checks`` only, because they run once for each equation.
    """
    code = code_of(rule)
    if code is not None and is_internal(code) and not state.enable_checks:
        return rule

    def lowered(ctx, *values, **params):
        avals = ctx.out_avals
        out = rule(ctx, *values, **params)
        _check(prim, rule, out, avals)
        return out

    return lowered


def _check(prim: Primitive, rule: Callable[..., Any], out: Any, avals: Sequence[Any]) -> None:
    kind = rule_kinds.lower
    if prim.multiple_results:
        if not isinstance(out, (list, tuple, ir.OpResultList)):
            invalid_result(prim, kind, rule, f"returned {_described(out)}")
        values = list(out)
        if len(values) != len(avals):
            invalid_result(
                prim, kind, rule, f"returned {len(values)} results, but there are {len(avals)}"
            )
    else:
        values = [out]
    for value, aval in zip(values, avals):
        if not isinstance(value, ir.Value):
            invalid_result(prim, kind, rule, f"returned {_described(value)}")
        expected = type_of(aval)
        if value.type != expected and _static(value.type) and _static(expected):
            invalid_result(
                prim, kind, rule,
                f"returned a value of type {value.type} where the abstract rule gives {expected}",
            )  # fmt: skip


def _described(x: Any) -> str:
    if isinstance(x, ir.OpView):
        return f"the operation {x.operation.name} in place of its result (`.result`)"
    return "None" if x is None else f"{x!r}, of type {type(x).__name__}"


def _static(kind: ir.Type) -> bool:
    return isinstance(kind, ir.RankedTensorType) and kind.has_static_shape
