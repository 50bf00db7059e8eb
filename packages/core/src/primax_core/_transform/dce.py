"""Dead-code elimination, also in sub-jaxprs."""

from __future__ import annotations

from .._base.config import state
from .._ir import rules as rule_kinds
from .._ir.check import check_jaxpr
from .._ir.effects import must_stay
from .._ir.jaxpr import Jaxpr, Var
from .derived import derive_from_jaxpr


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: tuple[bool, ...], keep_inputs: bool | tuple[bool, ...] = False
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr with only the used results, and a mask of the inputs that it still reads.

    Args:
      keep_inputs: inputs that are kept even if they are not read.
    """

    def make():
        n = len(jaxpr.invars)
        keep = (keep_inputs,) * n if isinstance(keep_inputs, bool) else keep_inputs
        outvars = [v for v, u in zip(jaxpr.outvars, used_outputs, strict=True) if u]
        needed = {v for v in outvars if type(v) is Var}
        eqns = []
        for eqn in reversed(jaxpr.eqns):
            used = [v in needed for v in eqn.outvars]
            rule = eqn.primitive.rules.get(rule_kinds.dce)
            if rule is not None and not all(used):
                from .rule_results import remaining_equation  # loaded with the first rule

                new = remaining_equation(eqn, rule, rule(used, eqn), used)
            elif any(used) or must_stay(eqn.effects):
                new = eqn
            else:
                new = None
            if new is not None:
                eqns.append(new)
                needed.update(v for v in new.invars if type(v) is Var)
        eqns.reverse()
        used_inputs = tuple(k or v in needed for v, k in zip(jaxpr.invars, keep))
        pairs = [(v, c) for v, c in zip(jaxpr.constvars, jaxpr.consts) if v in needed]
        new_jaxpr = jaxpr.replace(
            constvars=[v for v, _ in pairs],
            consts=[c for _, c in pairs],
            invars=[v for v, u in zip(jaxpr.invars, used_inputs) if u],
            outvars=outvars,
            eqns=eqns,
        )
        if state.enable_checks:
            check_jaxpr(new_jaxpr)
        return new_jaxpr, used_inputs

    return derive_from_jaxpr(jaxpr, "dce", (used_outputs, keep_inputs), make)
