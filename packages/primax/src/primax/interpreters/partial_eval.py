"""Partial evaluation and dead code elimination: ``jax.interpreters.partial_eval``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from primax_core import extend as _extend
from primax_core.extend import Eqn as _Eqn, Jaxpr as _Jaxpr, JitTracer as DynamicJaxprTracer

from .._adapters.ignored import IgnoredTable as _IgnoredTable
from .._adapters.jaxprs import with_consts as _with_consts
from .._adapters.partial import (
    JaxprTracer as JaxprTracer,
    PartialVal as PartialVal,
    partial_eval_jaxpr_nounits as partial_eval_jaxpr_nounits,
    trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic,
    trace_to_jaxpr_nounits as trace_to_jaxpr_nounits,
)
from .._adapters.tables import RuleTable as _RuleTable
from .._adapters.wrapped import wrap_init as _wrap_init

__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "Val", "abstract_eval_fun", "close_jaxpr",
    "convert_constvars_jaxpr", "custom_partial_eval_rules", "dce_jaxpr", "dce_jaxpr_call_rule",
    "dce_jaxpr_closed_call_rule", "dce_jaxpr_consts", "dce_rules", "lower_jaxpr",
    "move_binders_to_back", "partial_eval_jaxpr_custom_rules", "partial_eval_jaxpr_nounits",
    "prune_closed_jaxpr_outputs", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]  # fmt: skip

Val: TypeAlias = Any


def _inward(rule: Callable[..., Any]) -> Callable[..., Any]:
    def dce(used_outputs: Sequence[bool], eqn: _Eqn) -> Any:
        return rule(list(used_outputs), [True] * len(eqn.invars), eqn)

    return dce


def _outward(rule: Callable[..., Any]) -> Callable[..., Any]:
    def dce(used_outputs: Sequence[bool], live_ins: Sequence[bool], eqn: _Eqn) -> Any:
        used, new = rule(tuple(used_outputs), eqn)
        return list(used), new

    return dce


dce_rules: Final = _RuleTable(_extend.dce, _inward, _outward)
"""Rules ``(used_outputs, live_ins, eqn) -> (used_inputs, eqn or None)`` by primitive."""

custom_partial_eval_rules: Final = _IgnoredTable(
    "custom_partial_eval_rules", "partial evaluation evaluates or records each operation as a whole"
)
partial_eval_jaxpr_custom_rules: Final = _IgnoredTable(
    "partial_eval_jaxpr_custom_rules",
    "checkpoint policies save or recompute each operation as a whole; a call primitive can be "
    "split by a rule of the kind primax.extend.partial_eval",
)


def abstract_eval_fun(
    fun: Callable[..., Any], *avals: Any, debug_info: Any, **params: Any
) -> list[Any]:
    """Return the types of the results of a function from arrays to a list of arrays.

    Args:
      avals: types of the arguments.
      debug_info: debug info of the function.
      params: keyword arguments of the function.
    """
    wrapped = _wrap_init(fun, params, debug_info=debug_info)
    return trace_to_jaxpr_dynamic(wrapped, avals)[1]


def close_jaxpr(jaxpr: _Jaxpr) -> _Jaxpr:
    """Return the jaxpr: with values for all constants it is closed already."""
    return jaxpr


def convert_constvars_jaxpr(jaxpr: _Jaxpr) -> _Jaxpr:
    """Convert the constants to leading arguments."""
    return _with_consts(jaxpr, [])


def dce_jaxpr(
    jaxpr: _Jaxpr,
    used_outputs: Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
    live_inputs: bool | Sequence[bool] = True,
) -> tuple[_Jaxpr, list[bool]]:
    """Remove the operations that the used results do not need.

    Args:
      used_outputs: which results remain.
      instantiate: unused arguments that remain: a list of flags, or one flag for all.
      live_inputs: which references are read afterwards; writes to other references remain, too.

    Returns:
      The jaxpr, and whether each argument remains.
    """
    keep = instantiate if isinstance(instantiate, bool) else tuple(map(bool, instantiate))
    live, used = _extend.dce_jaxpr(jaxpr, tuple(map(bool, used_outputs)), keep)
    return live, list(used)


def dce_jaxpr_consts(
    jaxpr: _Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[_Jaxpr, list[bool], list[bool]]:
    """As :func:`dce_jaxpr`; the second of three results is whether each constant is used."""
    live, used = dce_jaxpr(jaxpr, used_outputs, instantiate)
    constvars = set(live.constvars)
    return live, [v in constvars for v in jaxpr.constvars], used


def dce_jaxpr_call_rule(
    used_outputs: Sequence[bool], live_ins: Sequence[bool], eqn: _Eqn
) -> tuple[list[bool], _Eqn | None]:
    """Rule for ``dce_rules`` for operations that call the jaxpr ``call_jaxpr``."""
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    jaxpr, used = dce_jaxpr(eqn.params["call_jaxpr"], used_outputs)
    if not any(used) and not any(used_outputs) and not jaxpr.effects:
        return used, None
    return used, eqn.replace(
        invars=[v for v, u in zip(eqn.invars, used) if u],
        outvars=[v for v, u in zip(eqn.outvars, used_outputs) if u],
        params={**eqn.params, "call_jaxpr": jaxpr},
        effects=jaxpr.effects,
    )


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule


def lower_jaxpr(hi_jaxpr: _Jaxpr, lo_avals: Sequence[Any]) -> _Jaxpr:
    """Return the jaxpr unchanged: there are no higher-level types.

    Raises:
      TypeError: if the types are not those of its arguments.
    """
    if list(lo_avals) != list(hi_jaxpr.in_avals):
        raise TypeError(f"the jaxpr takes {hi_jaxpr.in_avals}, not {list(lo_avals)}")
    return hi_jaxpr


def move_binders_to_back(closed_jaxpr: _Jaxpr, to_move: Sequence[bool]) -> _Jaxpr:
    """Move some arguments behind the others."""
    pairs = list(zip(closed_jaxpr.invars, to_move, strict=True))
    return closed_jaxpr.replace(invars=[v for v, m in pairs if not m] + [v for v, m in pairs if m])


def prune_closed_jaxpr_outputs(jaxpr: _Jaxpr, used_outputs: Sequence[bool]) -> _Jaxpr:
    """Keep only some results; all operations remain."""
    outvars = [v for v, u in zip(jaxpr.outvars, used_outputs, strict=True) if u]
    return jaxpr.replace(outvars=outvars)
