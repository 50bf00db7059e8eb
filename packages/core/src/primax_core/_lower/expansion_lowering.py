"""Lowering of primitives with an expansion and without a lowering rule."""

from __future__ import annotations

from .._ir.rules import lower
from .._transform.expansion import by_expansion, expanded, results_of
from .lazy import lowering


@lower.falls_back
@by_expansion
def _lower_fallback(prim, ctx, *values, **params):
    jaxpr = expanded(prim, ctx.in_avals, params)
    return results_of(prim, lowering.lower_body(ctx, jaxpr, values))
