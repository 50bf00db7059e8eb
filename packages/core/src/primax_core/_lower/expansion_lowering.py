"""Lowering of primitives that have an expansion and no lowering rule of their own."""

from __future__ import annotations

from .._ir.rules import lower
from .._transform.expansion import by_expansion, expanded, results_of
from .lazy import lowering


@lower.falls_back
@by_expansion
def _lower_fallback(prim, ctx, *values, **params):
    program = expanded(prim, ctx.in_avals, params)
    return results_of(prim, lowering.lower_body(ctx, program, values))
