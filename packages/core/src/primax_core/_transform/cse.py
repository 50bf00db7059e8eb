"""Common subexpression elimination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._ir.jaxpr import Jaxpr, Literal, Var
from .dce import dce_jaxpr


def simplified(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr without duplicate equations and without unused results.

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
            outvars_of_first = known.setdefault(key, eqn.outvars)
        except TypeError:  # equations with unhashable parameters are not compared
            outvars_of_first = eqn.outvars
        if outvars_of_first is eqn.outvars:
            eqns.append(eqn.replace(invars=invars))
        else:
            env.update(zip(eqn.outvars, outvars_of_first))
    outvars = [v if type(v) is Literal else env.get(v, v) for v in jaxpr.outvars]
    merged = jaxpr.replace(eqns=eqns, outvars=outvars)
    return dce_jaxpr(merged, (True,) * len(outvars), True)[0]


def _name(v: Any) -> Any:
    return (v.aval, v.val.tobytes()) if type(v) is Literal else v
