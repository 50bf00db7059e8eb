"""Rules that run at each application of a primitive, on the actual values.

Usually a rule runs once for each signature, on tracers, and the resulting jaxpr is cached (see
``derived``). This requires rules that depend on types only, and pays off if parameters recur.
:func:`bind_directly` binds a primitive whose rules follow another convention and run at each
application.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._base.config import state
from .._ir import rules as rule_kinds
from .._ir.dtypes import float0
from .._ir.primitive import Primitive
from .._ir.rule_results import check_pair
from .._trace.axes import extend_axis_env
from .._trace.core import RefTypeError, Trace, bind_on, close_over, placed_like, set_trace, typeof
from .batching import BatchTrace
from .jvp import JVPTrace
from .linearize import GradTracer, LinearizeTrace, linearize_rule, prune
from .transpose import transposed_once
from .zeros import Zero


def bind_directly(prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Apply a primitive like ``bind``, but run its differentiation and batching rules each time.

    Derived jaxprs are computed once for each signature; rules called by this function run on the
    values of the parent trace, and may read concrete values if there are any. Staging traces and
    other interpreters behave as usual.

    Args:
      prim: the primitive.
      args: the operands.
      params: the parameters. They need not be hashable if the primitive was created with
        ``any_params=True``.

    Returns:
      The result, or a list of results.

    Raises:
      MissingRule: if the primitive has no rule for a transformation.

    A primitive calls this function from its own ``bind``.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> from primax_core.extend.traces import bind_directly
    >>> float(bind_directly(lax.add_p, (np.float32(1), np.float32(2)), {}))
    3.0
    """
    trace = state.trace
    bind_rule = None if trace is None else _BIND_RULES.get(type(trace))
    if bind_rule is None:
        return Primitive.bind(prim, *args, **params)
    try:
        outs = bind_rule(trace, prim, args, params)
    except RefTypeError:
        return Primitive.bind(prim, *args, **params)
    return outs if prim.multiple_results else outs[0]


def _listed(prim: Primitive, out: Any) -> list[Any]:
    return list(out) if prim.multiple_results else [out]


def _forward(trace: JVPTrace, prim: Primitive, args: Sequence, params: dict) -> list:
    primals, nonzero, mask = trace.split_args(args)
    if not nonzero:
        return bind_on(trace.parent, prim, primals, params)
    rule = prim.require(rule_kinds.jvp, "forward-mode differentiation")
    tangents = _spread(primals, nonzero, mask)
    with set_trace(trace.parent):
        outs, dots = _flat(prim, rule, rule(primals, tangents, **params))
    out_mask = [type(t) is not Zero for t in dots]
    return trace.wrap([*outs, *(t for t in dots if type(t) is not Zero)], out_mask)


def _flat(prim: Primitive, rule: Callable[..., Any], result: Any) -> tuple[list, list]:
    out, dots = check_pair(prim, rule_kinds.jvp, rule, result)
    outs, tangents = _listed(prim, out), _without_float0(_listed(prim, dots))
    return outs, [
        t if type(t) is Zero else placed_like(t, typeof(o)) for o, t in zip(outs, tangents)
    ]


def _without_float0(tangents: list) -> list:
    """Tangents with symbolic zeros for the float0 arrays that rules may return."""
    avals = [t.aval if type(t) is Zero else typeof(t) for t in tangents]
    return [Zero(a) if a.dtype == float0 else t for t, a in zip(tangents, avals)]


def _spread(primals: Sequence, nonzero: Sequence, mask: Sequence[bool]) -> list:
    rest = iter(nonzero)
    return [next(rest) if m else Zero.like(p) for p, m in zip(primals, mask)]


def _linearized(trace: LinearizeTrace, prim: Primitive, args: Sequence, params: dict) -> list:
    primals, nonzero, mask = trace.split_args(args)
    if not nonzero:
        return bind_on(trace.parent, prim, primals, params)
    rule = prim.require(rule_kinds.jvp, "differentiation")
    with set_trace(trace.parent):
        outs, linear, out_mask = linearize_rule(
            lambda ps, ts: _flat(prim, rule, rule(ps, ts, **params)), primals, mask, prim
        )
    if not any(out_mask):
        return list(outs)
    linear, residuals = close_over(prune(linear))
    node = trace.record(linear, residuals, nonzero, partial(transposed_once, linear))
    tangents = iter(node.outputs)
    return [GradTracer(trace, o, next(tangents)) if m else o for o, m in zip(outs, out_mask)]


def _batched(trace: BatchTrace, prim: Primitive, args: Sequence, params: dict) -> list:
    pairs = [trace.split(a) for a in args]
    values, dims = [v for v, _ in pairs], [d for _, d in pairs]
    if all(d is None for d in dims) and not trace.names_axis(prim, params):
        return bind_on(trace.parent, prim, values, params)
    rule = prim.require(rule_kinds.batch, "vmap")
    axis = trace.axis
    with set_trace(trace.parent), extend_axis_env(axis.name, axis.size):
        result = rule(axis, values, dims, **params)
    out, out_dims = check_pair(prim, rule_kinds.batch, rule, result)
    outs = _listed(prim, out)
    if not prim.multiple_results or out_dims is None or isinstance(out_dims, int):
        out_dims = [out_dims] * len(outs)
    return trace.wrap(outs, out_dims)


_BIND_RULES: dict[type[Trace], Callable[..., list]] = {
    JVPTrace: _forward,
    LinearizeTrace: _linearized,
    BatchTrace: _batched,
}
