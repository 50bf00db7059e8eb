"""Common rules of call primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._ir.check import check_types
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive, abstract, check, dce, effects, expand
from .._ir.rules import run_jaxprs
from .._trace.staging import eval_jaxpr
from .dce import dce_jaxpr


def add_call_rules(prim: Primitive, held: str) -> None:
    """Add the abstract, check, effects and expand rules of a call, taken from the sub-jaxpr.

    Args:
      held: the name of the parameter with the sub-jaxpr.
    """

    def program(params: dict[str, Any]) -> Jaxpr:
        jaxpr: Jaxpr = params[held]
        return jaxpr

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


def add_custom_call_rules(
    prim: Primitive, held: str, restricted: Callable[..., dict[str, Any]] | None
) -> None:
    """Add :func:`add_call_rules` and the dead-code rule of functions with custom rules.

    Args:
      restricted: ``(params, used outputs) -> params`` with rules for the used results only, and
        without the sub-jaxpr. Without it a call keeps all results.
    """
    add_call_rules(prim, held)

    @prim.rule(dce)
    def _dce(used, eqn):
        if not any(used) and not eqn.effects:
            return [False] * len(eqn.invars), None
        if restricted is not None and not eqn.effects:
            mask = tuple(map(bool, used))
            jaxpr, _ = dce_jaxpr(eqn.params[held], mask, True)  # rules need all arguments
            params = {**restricted(eqn.params, mask), held: jaxpr}
            outvars = [v for v, u in zip(eqn.outvars, mask) if u]
            eqn = eqn.replace(outvars=outvars, params=params)
        return [True] * len(eqn.invars), eqn
