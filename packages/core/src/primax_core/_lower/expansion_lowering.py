"""Lowering of primitives with an expansion and without a lowering rule."""

from __future__ import annotations

from .._ir.rules import lower
from .._transform.expansion import by_expansion, expanded, results_of
from .lazy import lowering


@lower.falls_back
@by_expansion
def _lower_fallback(prim, ctx, *values, **params):
    eqn = ctx.eqn
    # The placements of operands may decide what an expansion consists of.
    own = eqn is not None and eqn.primitive is prim
    jaxpr = expanded(prim, [v.aval for v in eqn.invars] if own else ctx.in_avals, params)
    return results_of(prim, lowering.lower_body(ctx, jaxpr, values))
