"""Partial evaluation in the reference's convention: jaxprs are split into known and unknown parts.

An operation with known operands is evaluated; any other operation is recorded. Call primitives
(calls, loops) are evaluated or recorded as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primax_core import extend
from primax_core.extend import (
    Eqn,
    Jaxpr,
    JitTracer,
    Literal,
    Primitive,
    StagingTrace,
    Tracer,
    Var,
    current_trace,
    set_trace,
    typeof,
)

from .jaxprs import core_debug_info, with_consts
from .wrapped import WrappedFun


class PartialVal(tuple[Any, Any]):
    """Partially known value: ``(None, value)`` if known, or ``(type, None)`` if unknown."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """Wrap a known value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """Create an unknown value of a known type."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Return True if the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """Return the value if it is known, otherwise ``None``."""
        return self[1] if self[0] is None else None

    def get_aval(self) -> Any:
        """Return the type."""
        return typeof(self[1]) if self[0] is None else self[0]


class PartialTrace(StagingTrace):
    """Trace that records operations on unknown values; the parent trace evaluates the others."""

    __slots__ = ()

    tracer_name = "JaxprTracer"

    def owns(self, x: Any) -> bool:
        """Return True if the value is unknown."""
        return isinstance(x, Tracer) and x._trace is self

    def process(self, prim: Primitive, args: Any, params: dict[str, Any]) -> Any:
        """Record or evaluate an operation."""
        if any(self.owns(a) for a in args):
            return super().process(prim, args, params)
        with set_trace(self.parent):
            return prim.bind(*args, **params)

    def call(self, jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None) -> list[Any]:
        """Interpret the equations of a jaxpr one by one."""
        with set_trace(self):
            return extend.eval_jaxpr(jaxpr, args)

    def call_custom(self, custom: Any, args: Sequence[Any]) -> list[Any]:
        """Interpret the function of a custom rule."""
        with set_trace(self):
            return list(custom.fun(*args))


class _AnyUnknown(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, JitTracer) and isinstance(instance._trace, PartialTrace)


class JaxprTracer(metaclass=_AnyUnknown):
    """The class of the tracers of unknown values in a partial evaluation."""


def _flags(flags: bool | Sequence[bool], n: int) -> list[bool]:
    return [flags] * n if isinstance(flags, bool) else list(flags)


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], tuple[Any, ...]]:
    """Run a flat function on partially known arguments.

    Args:
      fun: a function from values to a list of values.
      pvals: one for each argument.
      instantiate: known results to treat as unknown: a list of flags, or one flag for all.

    Returns:
      The jaxpr ``(*consts, *unknown arguments) -> unknown results``, the partial value of each
      result, and the constants.
    """
    trace = PartialTrace(current_trace(), core_debug_info_of(fun))
    inputs = [p.get_known() if p.is_known() else trace.new_input(p.get_aval()) for p in pvals]
    try:
        with set_trace(trace):
            outs = list(fun.call_wrapped(*inputs))
            unknown = [trace.owns(o) or i for o, i in zip(outs, _flags(instantiate, len(outs)))]
            jaxpr = trace.finish([o for o, u in zip(outs, unknown) if u])
    finally:
        trace.live = False
    out_pvals = [
        PartialVal.unknown(typeof(o)) if u else PartialVal.known(extend.as_result(o))
        for o, u in zip(outs, unknown)
    ]
    return with_consts(jaxpr, []), out_pvals, tuple(jaxpr.consts)


def core_debug_info_of(fun: WrappedFun) -> Any:
    """Debug info of a jaxpr that was traced from ``fun``."""
    if fun.debug_info is not None:
        return core_debug_info(fun.debug_info)
    return extend.DebugInfo("a jaxpr", fun.__name__)


def trace_to_jaxpr_dynamic(
    fun: WrappedFun,
    in_avals: Sequence[Any],
    *,
    keep_inputs: Sequence[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Trace a flat function to a jaxpr.

    Args:
      fun: a function from values to a list of values.
      in_avals: types of the arguments.
      keep_inputs: flags of the arguments that the jaxpr keeps; the others must be unused.
      lower: ignored, because there are no operations on higher-level types.
      auto_dce: remove operations with unused results.

    Returns:
      The jaxpr ``(*consts, *arguments) -> results``, types of the results, and the constants.
    """
    trace = StagingTrace(current_trace(), core_debug_info_of(fun))
    tracers = [trace.new_input(a) for a in in_avals]
    try:
        with set_trace(trace):
            jaxpr = trace.finish(list(fun.call_wrapped(*tracers)))
    finally:
        trace.live = False
    consts = list(jaxpr.consts)
    jaxpr = with_consts(jaxpr, [])
    if auto_dce:
        everything = (True,) * len(jaxpr.outvars)
        jaxpr, _ = extend.dce_jaxpr(jaxpr, everything, True)
    if keep_inputs is not None:
        keep = [True] * len(consts) + list(keep_inputs)
        jaxpr = jaxpr.replace(invars=[v for v, k in zip(jaxpr.invars, keep) if k])
        extend.check_jaxpr(jaxpr)
    return jaxpr, list(jaxpr.out_avals), consts


def partial_eval_jaxpr_nounits(
    jaxpr: Jaxpr, unknowns: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[Jaxpr, Jaxpr, list[bool], list[Any]]:
    """Split a jaxpr into a jaxpr of known values and one of unknown values.

    Args:
      unknowns: whether each argument is unknown.
      instantiate: known results to treat as unknown: a list of flags, or one flag for all.

    Returns:
      The jaxpr ``(*known arguments) -> (*known results, *residuals)``, the jaxpr ``(*residuals,
      *unknown arguments) -> unknown results``, whether each result is unknown, and types of the
      residuals.
    """
    unknown_vars = {v for v, u in zip(jaxpr.invars, unknowns, strict=True) if u}
    now: list[Eqn] = []
    later: list[Eqn] = []
    for eqn in jaxpr.eqns:
        if any(type(v) is not Literal and v in unknown_vars for v in eqn.invars):
            unknown_vars.update(eqn.outvars)
            later.append(eqn)
        else:
            now.append(eqn)
    out_unknowns = [
        (type(v) is not Literal and v in unknown_vars) or i
        for v, i in zip(jaxpr.outvars, _flags(instantiate, len(jaxpr.outvars)))
    ]
    made_later = {v for eqn in later for v in eqn.outvars}
    known_outs = [v for v, u in zip(jaxpr.outvars, out_unknowns) if not u]
    unknown_outs = [v for v, u in zip(jaxpr.outvars, out_unknowns) if u]
    unknown_ins = [v for v, u in zip(jaxpr.invars, unknowns) if u]
    read = [*unknown_outs, *(v for eqn in later for v in eqn.invars)]
    constants = set(jaxpr.constvars)
    residuals: list[Var] = []
    for v in read:
        if isinstance(v, Var) and v not in made_later and v not in unknown_vars:
            if v not in constants and v not in residuals:
                residuals.append(v)
    known_ins = [v for v, u in zip(jaxpr.invars, unknowns) if not u]
    known = jaxpr.replace(invars=known_ins, outvars=[*known_outs, *residuals], eqns=now)
    unknown = jaxpr.replace(invars=[*residuals, *unknown_ins], outvars=unknown_outs, eqns=later)
    return known, unknown, out_unknowns, [v.aval for v in residuals]
