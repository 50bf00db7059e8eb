"""Common subexpression elimination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primax_core.extend import Jaxpr, Literal, Var, dce_jaxpr


def simplified(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr without repeated equations and without dead code.

    Its arguments are unchanged. Equations with effects are not merged.
    """
    env: dict[Any, Any] = {}
    known: dict[Any, Sequence[Var]] = {}
    eqns = []
    for eqn in jaxpr.eqns:
        invars = [v if type(v) is Literal else env.get(v, v) for v in eqn.invars]
        if eqn.effects:
            eqns.append(eqn.replace(invars=invars))
            continue
        key = (eqn.primitive, *map(_name, invars), *eqn.params.items())
        try:
            computed = known.setdefault(key, eqn.outvars)
        except TypeError:  # parameters that cannot be hashed equal none
            computed = eqn.outvars
        if computed is eqn.outvars:
            eqns.append(eqn.replace(invars=invars))
        else:
            env.update(zip(eqn.outvars, computed))
    outvars = [v if type(v) is Literal else env.get(v, v) for v in jaxpr.outvars]
    merged = jaxpr.replace(eqns=eqns, outvars=outvars)
    return dce_jaxpr(merged, (True,) * len(outvars), True)[0]


def _name(v: Any) -> Any:
    return (v.aval, v.scalar.tobytes()) if type(v) is Literal else v
