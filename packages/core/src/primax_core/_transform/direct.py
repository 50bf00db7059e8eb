"""Rules run anew for each application of a primitive, on the values that there are.

Usually a rule is run once for each signature, on tracers, and what it writes down is remembered
(``pieces``). That asks for rules that look at nothing but types, and pays where parameters recur.
A primitive whose rules were written for another convention, where each application runs them, is
bound with :func:`bind_directly`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._base.config import state
from .._ir import rules as rule_kinds
from .._ir.dtypes import float0
from .._ir.primitive import Primitive
from .._trace.axes import extend_axis_env
from .._trace.core import RefTypeError, Trace, bind_on, close_over, set_trace, typeof
from .batching import BatchTrace
from .jvp import JVPTrace
from .linearize import GradTracer, LinearizeTrace, linearize_rule, prune
from .transpose import transposed_once
from .zeros import Zero


def bind_directly(prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Apply a primitive as ``bind`` does, but run the rules of differentiation and batching anew,
    on the values of the trace outside.

    Rules may look at concrete values where there are some. Traces that write programs down, and
    those of other interpreters, do what they always do. A primitive calls this from its own
    ``bind``; its parameters need not be hashable if it was made with ``any_params=True``.
    """
    trace = state.trace
    how = None if trace is None else _HOW.get(type(trace))
    if how is None:
        return Primitive.bind(prim, *args, **params)
    try:
        outs = how(trace, prim, args, params)
    except RefTypeError:
        return Primitive.bind(prim, *args, **params)
    return outs if prim.multiple_results else outs[0]


def _listed(prim: Primitive, out: Any) -> list[Any]:
    return list(out) if prim.multiple_results else [out]


def _forward(trace: JVPTrace, prim: Primitive, args: Sequence, params: dict) -> list:
    primals, given, mask = trace.split_args(args)
    if not given:
        return bind_on(trace.parent, prim, primals, params)
    rule = prim.require(rule_kinds.jvp, "forward-mode differentiation")
    tangents = _spread(primals, given, mask)
    with set_trace(trace.parent):
        outs, dots = _flat(prim, rule(primals, tangents, **params))
    out_mask = [type(t) is not Zero for t in dots]
    return trace.wrap([*outs, *(t for t in dots if type(t) is not Zero)], out_mask)


def _flat(prim: Primitive, found: tuple[Any, Any]) -> tuple[list, list]:
    out, dots = found
    return _listed(prim, out), _without_float0(_listed(prim, dots))


def _without_float0(tangents: list) -> list:
    """Rules may give arrays where there is no tangent space."""
    avals = [t.aval if type(t) is Zero else typeof(t) for t in tangents]
    return [Zero(a) if a.dtype == float0 else t for t, a in zip(tangents, avals)]


def _spread(primals: Sequence, given: Sequence, mask: Sequence[bool]) -> list:
    rest = iter(given)
    return [next(rest) if m else Zero.like(p) for p, m in zip(primals, mask)]


def _linearized(trace: LinearizeTrace, prim: Primitive, args: Sequence, params: dict) -> list:
    primals, given, mask = trace.split_args(args)
    if not given:
        return bind_on(trace.parent, prim, primals, params)
    rule = prim.require(rule_kinds.jvp, "differentiation")
    with set_trace(trace.parent):
        outs, linear, out_mask = linearize_rule(
            lambda ps, ts: _flat(prim, rule(ps, ts, **params)), primals, mask, True
        )
    if not any(out_mask):
        return list(outs)
    linear, residuals = close_over(prune(linear))
    node = trace.record(linear, residuals, given, partial(transposed_once, linear))
    made = iter(node.outputs)
    return [GradTracer(trace, o, next(made)) if m else o for o, m in zip(outs, out_mask)]


def _batched(trace: BatchTrace, prim: Primitive, args: Sequence, params: dict) -> list:
    parts = [trace.split(a) for a in args]
    values, dims = [v for v, _ in parts], [d for _, d in parts]
    if all(d is None for d in dims) and not trace.names_axis(prim, params):
        return bind_on(trace.parent, prim, values, params)
    rule = prim.require(rule_kinds.batch, "vmap")
    axis = trace.axis
    with set_trace(trace.parent), extend_axis_env(axis.name, axis.size):
        out, out_dims = rule(axis, values, dims, **params)
    outs = _listed(prim, out)
    if not prim.multiple_results or out_dims is None or isinstance(out_dims, int):
        out_dims = [out_dims] * len(outs)
    return trace.wrap(outs, out_dims)


_HOW: dict[type[Trace], Callable[..., list]] = {
    JVPTrace: _forward,
    LinearizeTrace: _linearized,
    BatchTrace: _batched,
}
