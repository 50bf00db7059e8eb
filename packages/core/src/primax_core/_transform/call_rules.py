"""Rules that primitives have in common which hold a program and call it."""

from __future__ import annotations

from typing import Any

from .._ir.check import check_types
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive, abstract, check, dce, effects, expand
from .._ir.rules import run_jaxprs
from .._trace.staging import eval_jaxpr


def add_call_rules(prim: Primitive, held: str) -> None:
    """Type, check, effects and expansion of a call: those of the program.

    Args:
      held: the parameter that holds the program.
    """

    def program(params: dict[str, Any]) -> Jaxpr:
        found: Jaxpr = params[held]
        return found

    @prim.rule(abstract)
    def _abstract(*avals, **params):
        return program(params).out_avals

    @prim.rule(expand)
    def _expand(*args, **params):
        return eval_jaxpr(program(params), args)

    @prim.rule(check)
    def _check(*avals, **params):
        check_types("arguments", avals, program(params).in_avals)

    @prim.rule(effects)
    def _effects(*avals, **params):
        return program(params).effects

    @prim.rule(run_jaxprs)
    def _run_jaxprs(run, args, **params):
        return run(program(params), args)


def add_opaque_call_rules(prim: Primitive, held: str) -> None:
    """Add :func:`add_call_rules` and the dead-code rule of functions with custom rules."""
    add_call_rules(prim, held)

    @prim.rule(dce)
    def _dce(used, eqn):
        # The custom rule needs all arguments and gives all results: the call stays whole or goes.
        if any(used) or eqn.effects:
            return [True] * len(eqn.invars), eqn
        return [False] * len(eqn.invars), None
