"""Partial evaluation in the reference's convention: programs are split by what is known of them.

An operation is done now if all of its operands are known, and written down otherwise; operations
that hold programs (calls, loops) are done or written down as a whole.
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

from .programs import core_debug_info, with_consts
from .wrapped import WrappedFun


class PartialVal(tuple[Any, Any]):
    """What is known of a value: ``(None, value)``, or ``(type, None)`` where it is unknown."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A known value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """A value of which the type is known."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value if it is known, else ``None``."""
        return self[1] if self[0] is None else None

    def get_aval(self) -> Any:
        """The type."""
        return typeof(self[1]) if self[0] is None else self[0]


class PartialTrace(StagingTrace):
    """Writes down operations on unknown values; the others are done by the trace outside."""

    __slots__ = ()

    tracer_name = "JaxprTracer"

    def owns(self, x: Any) -> bool:
        """Whether a value is unknown."""
        return isinstance(x, Tracer) and x._trace is self

    def process(self, prim: Primitive, args: Any, params: dict[str, Any]) -> Any:
        """Write down an operation, or have it done."""
        if any(self.owns(a) for a in args):
            return super().process(prim, args, params)
        with set_trace(self.parent):
            return prim.bind(*args, **params)

    def call(self, jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None) -> list[Any]:
        """Interpret the operations of a program one by one."""
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
    """The class of tracers for unknown values of a partial evaluation."""


def _flags(flags: bool | Sequence[bool], n: int) -> list[bool]:
    return [flags] * n if isinstance(flags, bool) else list(flags)


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], tuple[Any, ...]]:
    """Run a flat function on partly known arguments.

    Args:
      fun: from values to a list of values.
      pvals: one for each argument.
      instantiate: results that count as unknown though they are known, or whether all do.

    Returns:
      The program ``(*consts, *unknown arguments) -> unknown results``, what is known of each
      result, and the constants.
    """
    trace = PartialTrace(current_trace(), core_debug_info_of(fun))
    given = [p.get_known() if p.is_known() else trace.new_input(p.get_aval()) for p in pvals]
    try:
        with set_trace(trace):
            outs = list(fun.call_wrapped(*given))
            unknown = [trace.owns(o) or i for o, i in zip(outs, _flags(instantiate, len(outs)))]
            program = trace.finish([o for o, u in zip(outs, unknown) if u])
    finally:
        trace.live = False
    found = [
        PartialVal.unknown(typeof(o)) if u else PartialVal.known(extend.as_result(o))
        for o, u in zip(outs, unknown)
    ]
    return with_consts(program, []), found, tuple(program.consts)


def core_debug_info_of(fun: WrappedFun) -> Any:
    """What a program made from ``fun`` says of where it comes from."""
    if fun.debug_info is not None:
        return core_debug_info(fun.debug_info)
    return extend.DebugInfo("a program", fun.__name__)


def trace_to_jaxpr_dynamic(
    fun: WrappedFun,
    in_avals: Sequence[Any],
    *,
    keep_inputs: Sequence[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[Any], list[Any]]:
    """The program of a flat function.

    Args:
      fun: from values to a list of values.
      in_avals: types of the arguments.
      keep_inputs: arguments that the program has; the others must not be used.
      lower: has no influence: there are no operations on types of a higher level.
      auto_dce: leave out operations whose results are not used.

    Returns:
      The program ``(*consts, *arguments) -> results``, types of the results, and the constants.
    """
    trace = StagingTrace(current_trace(), core_debug_info_of(fun))
    tracers = [trace.new_input(a) for a in in_avals]
    try:
        with set_trace(trace):
            program = trace.finish(list(fun.call_wrapped(*tracers)))
    finally:
        trace.live = False
    consts = list(program.consts)
    program = with_consts(program, [])
    if auto_dce:
        everything = (True,) * len(program.outvars)
        program, _ = extend.dce_jaxpr(program, everything, True)
    if keep_inputs is not None:
        kept = [True] * len(consts) + list(keep_inputs)
        program = program.replace(invars=[v for v, k in zip(program.invars, kept) if k])
        extend.check_jaxpr(program)
    return program, list(program.out_avals), consts


def partial_eval_jaxpr_nounits(
    jaxpr: Jaxpr, unknowns: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[Jaxpr, Jaxpr, list[bool], list[Any]]:
    """Split a program in one of known values and one of unknown ones.

    Args:
      unknowns: for each argument whether it is unknown.
      instantiate: results that count as unknown though they are known, or whether all do.

    Returns:
      The program ``(*known arguments) -> (*known results, *residuals)``, the program ``(*residuals,
      *unknown arguments) -> unknown results``, for each result whether it is unknown, and types of
      the residuals.
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
