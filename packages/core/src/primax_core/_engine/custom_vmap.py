"""``custom_vmap_call``: a function with a custom batching rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .._base.config import state
from .._ir.dtypes import float0
from .._ir.primitive import Primitive, lower, trace_rule
from .._ir.printer import hide_defaults
from .._lower.lazy import lowering
from .._trace.core import Trace, Tracer, check_live, run_eagerly, set_trace, typeof
from .._trace.staging import JaxprWriter, close_over, eval_jaxpr, stage
from .._transform.batching import BatchTrace, move_axis
from .._transform.call_rules import add_opaque_call_rules
from .._transform.jvp import JVPTrace, JVPTracer, jvp_of
from .._transform.linearize import LinearizeTrace, TangentTrace
from .._transform.zeros import Zero, instantiate

custom_vmap_call_p: Final = Primitive(
    "custom_vmap_call", multiple_results=True, cache_on=lambda params: params["call"].cache
)
hide_defaults("custom_vmap_call", num_consts=0)


class CustomVmap:
    """A flat function and its flat batching rule.

    Attributes:
      fun: ``(*args) -> list of results``.
      rule: ``(size, batched, *args) -> (results, batched results)``, lists. The mapped axis of a
        batch is axis 0.
      jaxpr: the jaxpr of ``fun`` if it is already traced; its first arguments are ``num_consts``
        constants.
    """

    __slots__ = ("fun", "rule", "name", "jaxpr", "num_consts")

    def __init__(self, fun, rule, name, jaxpr=None, num_consts=0):
        self.fun = fun
        self.rule = rule
        self.name = name
        self.jaxpr = jaxpr
        self.num_consts = num_consts

    def call(self, args: Sequence) -> list:
        """Call under the current trace."""
        trace = state.trace
        if trace is None:
            for a in args:
                if isinstance(a, Tracer):
                    check_live(a)
                    return self.under(a._trace, args)
            return self.fun(*args)
        return self.under(trace, args)

    def under(self, trace: Trace, args: Sequence) -> list:
        """Call under a trace."""
        for cls, handler in _HANDLERS.items():
            if isinstance(trace, cls):
                return handler(trace, args, self)
        with set_trace(trace):
            return self.fun(*args)


def _batched(trace: BatchTrace, args: Sequence, custom: CustomVmap) -> list:
    pairs = [trace.split(a) for a in args]
    values, dims = [v for v, _ in pairs], [d for _, d in pairs]
    with set_trace(trace.parent):
        if all(d is None for d in dims[custom.num_consts :]):
            if all(d is None for d in dims):
                return custom.call(values)
            # Only closed-over values are mapped. The rule closes over its own.
            dims = [None if i >= custom.num_consts else d for i, d in enumerate(dims)]
        size = trace.axis.size
        batches = [v if d is None else move_axis(v, d, 0, size) for v, d in zip(values, dims)][
            custom.num_consts :
        ]
        batched = [d is not None for d in dims[custom.num_consts :]]
        outs, out_batched = custom.rule(size, batched, *batches)
    return trace.wrap(outs, [0 if b else None for b in out_batched])


def _forward(trace: JVPTrace, args: Sequence, custom: CustomVmap) -> list:
    pairs = [trace.split(a) for a in args]
    primals = [p for p, _ in pairs]
    with set_trace(trace.parent):
        if all(t is None for _, t in pairs):
            return custom.call(primals)
        nonzero = [(i, t) for i, (_, t) in enumerate(pairs) if t is not None]
        outs = _with_tangents(custom, [i for i, _ in nonzero], len(primals)).call(
            [*primals, *(t for _, t in nonzero)]
        )
    n = _count_primals(outs)
    dots = iter(outs[n:])
    return [JVPTracer(trace, o, next(dots)) if _has_tangent(o) else o for o in outs[:n]]


def _with_tangents(custom: CustomVmap, which: Sequence[int], n: int) -> CustomVmap:
    """The derivative of a custom function: a custom function whose rule is the derivative of the
    rule.

    It is ``(*args, *tangents) -> (*outs, *tangents)``; ``which`` are the arguments with tangents.
    """
    n_consts = custom.num_consts

    def spread(tangents: Sequence) -> list:
        spread_tangents: list[Any] = [None] * n
        for i, t in zip(which, tangents):
            spread_tangents[i] = t
        return spread_tangents

    def fun(*args):
        return _both(*jvp_of(custom.fun, args[:n], spread(args[n:])))

    def rule(size, batched, *args):
        m = n - n_consts
        primals, tangents = list(args[:m]), spread(args[m:])[n_consts:]
        marks, tangent_marks = list(batched[:m]), spread(batched[m:])[n_consts:]
        for i, t in enumerate(tangents):
            if t is not None and marks[i] != tangent_marks[i]:
                # A primal and its tangent are both mapped or both unmapped.
                if tangent_marks[i]:
                    primals[i], marks[i] = move_axis(primals[i], None, 0, size), True
                else:
                    tangents[i] = move_axis(t, None, 0, size)
        out_marks: list = []

        def batch_form(*values):
            outs, out_marks[:] = custom.rule(size, marks, *values)
            return outs

        outs, dots = jvp_of(batch_form, primals, tangents)
        tangent_marks = [m for m, o in zip(out_marks, outs) if _has_tangent(o)]
        return _both(outs, dots), [*out_marks, *tangent_marks]

    return CustomVmap(fun, rule, custom.name, None, n_consts)


def _both(outs: Sequence, tangents: Sequence) -> list:
    """The results, followed by the tangents of the results that have a tangent space."""
    pairs = [(o, t) for o, t in zip(outs, tangents) if _has_tangent(o)]
    return [*outs, *(instantiate(Zero.like(o)) if t is None else t for o, t in pairs)]


def _has_tangent(x: Any) -> bool:
    return typeof(x).tangent_aval().dtype != float0


def _count_primals(both: Sequence) -> int:
    """Number of results in the output of ``_both``."""
    n, tangents = 0, 0
    while n + tangents < len(both):
        tangents += _has_tangent(both[n])
        n += 1
    return n


def _linearized(trace: LinearizeTrace, args: Sequence, custom: CustomVmap) -> list:
    pairs = [trace.split(a) for a in args]
    if all(t is None for _, t in pairs):
        with set_trace(trace.parent):
            return custom.call([p for p, _ in pairs])
    raise ValueError(
        f"Reverse-mode differentiation does not work for the custom_vmap function {custom.name}: "
        "its rule defines its batching, but not the batching of its transpose. Use forward mode "
        "(jvp, jacfwd), or give it a derivative by wrapping it in custom_vjp."
    )


def _staged(trace: JaxprWriter, args: Sequence, custom: CustomVmap) -> list:
    if isinstance(trace, TangentTrace) and not trace.owns_any(args):
        with set_trace(trace.parent):
            return custom.call(args)
    jaxpr, consts, num_consts = custom.jaxpr, [], custom.num_consts
    if jaxpr is None:
        jaxpr = stage(lambda *a: custom.fun(*a), [typeof(a) for a in args], parent=trace)
        jaxpr, consts = close_over(jaxpr)
        num_consts += len(consts)
    params = {"call": jaxpr, "rule": custom.rule, "name": custom.name, "num_consts": num_consts}
    return trace.emit(custom_vmap_call_p, [*consts, *args], params)


_HANDLERS: dict[type, Callable] = {
    JVPTrace: _forward,
    LinearizeTrace: _linearized,
    BatchTrace: _batched,
    JaxprWriter: _staged,
}


@custom_vmap_call_p.rule(trace_rule)
def _trace_rule(trace, args, *, call, rule, name, num_consts):
    if trace is None:
        return run_eagerly(call, list(args))
    custom = CustomVmap(lambda *a: eval_jaxpr(call, a), rule, name, call, num_consts)
    return custom.under(trace, args)


add_opaque_call_rules(custom_vmap_call_p, "call")


@custom_vmap_call_p.rule(lower)
def _lower(ctx, *values, call, **_):
    return lowering.lower_body(ctx, call, values)
