"""Linearization of jvp rules in which one operation computes results and tangents."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol

from .._base.config import state
from .._ir.jaxpr import Jaxpr
from .._trace.core import call_on, typeof
from .._trace.staging import stage, stage_with_aux
from .dce import dce_jaxpr
from .linearize import JvpRule, linearize_jaxpr
from .zeros import Zero, zeros


class Named(Protocol):
    """A primitive, or a function with a custom rule."""

    name: str


class _Active(threading.local):
    """The primitives and functions whose rules are being linearized, from the outermost one."""

    owners: tuple[Named, ...] = ()


_active: Final = _Active()
# A primitive may occur in the operation of its own rule. If it is that operation, no level is last.
_LEVELS: Final = 4


def linearize_fused(
    rule: JvpRule, primals: Sequence[Any], mask: Sequence[bool], owner: Named
) -> tuple[Sequence[Any], Jaxpr, list[bool]]:
    """``linearize_rule`` for a rule that computes results together with tangents.

    The rule is linear in the tangents, so its derivative by them, anywhere, is the linear part.

    Raises:
      TypeError: the rule computes both by its own primitive, whose derivative needs the rule again.
    """
    outer = _active.owners
    if outer.count(owner) >= _LEVELS:
        raise TypeError(
            f"the jvp rule of {owner.name} computes results together with tangents by {owner.name} "
            "itself, so reverse mode needs the rule again and again. Compute the results and the "
            "tangents by two operations, or add a linearize rule."
        )
    _active.owners = (*outer, owner)
    try:
        return _linearized(rule, primals, mask)
    finally:
        _active.owners = outer


def _linearized(
    rule: JvpRule, primals: Sequence[Any], mask: Sequence[bool]
) -> tuple[Sequence[Any], Jaxpr, list[bool]]:
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
    # Tangents at zero need not be computed; those of `custom_vjp` cannot be.
    saved = {i for origin, i in fused.residuals if origin == "out"}
    needed = [
        i < n_outs or i >= fused.n_outs or i in saved for i in range(len(fused.forward.outvars))
    ]
    forward, used = dce_jaxpr(fused.forward, tuple(needed))
    values = iter(call_on(state.trace, forward, [x for x, u in zip(at_zero, used) if u]))
    results = [next(values) if m else None for m in needed]
    outs, residuals = results[:n_outs], fused.residual_values(at_zero, results)
    if fused.linear is None:
        return outs, stage(lambda *_: [], tangent_avals), out_mask
    linear, k = fused.linear, len(residuals)
    dots_of_outs = sum(fused.out_mask[:n_outs])
    linear = linear.replace(
        constvars=linear.invars[:k],
        consts=residuals,
        invars=linear.invars[k:],
        outvars=linear.outvars[dots_of_outs:],
    )
    return outs, linear, out_mask
