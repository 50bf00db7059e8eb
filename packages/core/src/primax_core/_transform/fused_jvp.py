"""Linearization of jvp rules in which one operation computes results and tangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base.config import state
from .._ir.jaxpr import Jaxpr
from .._trace.core import call_on, typeof
from .._trace.staging import stage_with_aux
from .linearize import JvpRule, linearize_jaxpr
from .zeros import Zero, zeros


def linearize_fused(
    rule: JvpRule, primals: Sequence[Any], mask: Sequence[bool]
) -> tuple[Sequence[Any], Jaxpr, list[bool]]:
    """``linearize_rule`` for a rule that computes results together with tangents.

    The rule is linear in the tangents, so its derivative by them, anywhere, is the linear part.
    """
    avals = [typeof(p) for p in primals]
    tangent_avals = [a.tangent_aval() for a, m in zip(avals, mask) if m]
    n = len(primals)

    def run(*args):
        nonzero = iter(args[n:])
        tangents = [next(nonzero) if m else Zero(a.tangent_aval()) for a, m in zip(avals, mask)]
        outs, dots = rule(list(args[:n]), tangents)
        out_mask = [type(t) is not Zero for t in dots]
        return [*outs, *(t for t in dots if type(t) is not Zero)], (len(outs), out_mask)

    jaxpr, (n_outs, out_mask) = stage_with_aux(run, [*avals, *tangent_avals], parent=state.trace)
    fused = linearize_jaxpr(
        jaxpr,
        (False,) * n + (True,) * len(tangent_avals),
        (False,) * n_outs + (True,) * sum(out_mask),
    )
    at_zero = [*primals, *(zeros(a) for a in tangent_avals)]
    results = call_on(state.trace, fused.forward, at_zero)
    outs, residuals = results[:n_outs], fused.residual_values(at_zero, results)
    assert fused.linear is not None
    linear, k = fused.linear, len(residuals)
    dots_of_outs = sum(fused.out_mask[:n_outs])
    linear = linear.replace(
        constvars=linear.invars[:k],
        consts=residuals,
        invars=linear.invars[k:],
        outvars=linear.outvars[dots_of_outs:],
    )
    return outs, linear, out_mask
