"""``custom_vmap_call``: a function whose batched form its author wrote."""

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
    """A flat function with its flat batching rule.

    Attributes:
      fun: ``(*args) -> list of results``.
      rule: ``(size, batched, *args) -> (results, batched results)``, lists; batches have the mapped
        axis first.
      jaxpr: the program of ``fun`` if it was traced already; it takes ``num_consts`` first.
    """

    __slots__ = ("fun", "rule", "name", "jaxpr", "num_consts")

    def __init__(self, fun, rule, name, jaxpr=None, num_consts=0):
        self.fun = fun
        self.rule = rule
        self.name = name
        self.jaxpr = jaxpr
        self.num_consts = num_consts

    def call(self, args: Sequence) -> list:
        """Apply under the current trace."""
        trace = state.trace
        if trace is None:
            for a in args:
                if isinstance(a, Tracer):
                    check_live(a)
                    return self.under(a._trace, args)
            return self.fun(*args)
        return self.under(trace, args)

    def under(self, trace: Trace, args: Sequence) -> list:
        """Apply under a given trace."""
        for cls, how in _HOW.items():
            if isinstance(trace, cls):
                return how(trace, args, self)
        with set_trace(trace):
            return self.fun(*args)


def _batched(trace: BatchTrace, args: Sequence, custom: CustomVmap) -> list:
    parts = [trace.split(a) for a in args]
    values, dims = [v for v, _ in parts], [d for _, d in parts]
    with set_trace(trace.parent):
        if all(d is None for d in dims[custom.num_consts :]):
            if all(d is None for d in dims):
                return custom.call(values)
            # Only values that the function closes over are mapped, and the rule has its own.
            dims = [None if i >= custom.num_consts else d for i, d in enumerate(dims)]
        size = trace.axis.size
        given = [v if d is None else move_axis(v, d, 0, size) for v, d in zip(values, dims)][
            custom.num_consts :
        ]
        batched = [d is not None for d in dims[custom.num_consts :]]
        outs, out_batched = custom.rule(size, batched, *given)
    return trace.wrap(outs, [0 if b else None for b in out_batched])


def _forward(trace: JVPTrace, args: Sequence, custom: CustomVmap) -> list:
    parts = [trace.split(a) for a in args]
    primals = [p for p, _ in parts]
    with set_trace(trace.parent):
        if all(t is None for _, t in parts):
            return custom.call(primals)
        given = [(i, t) for i, (_, t) in enumerate(parts) if t is not None]
        outs = _with_tangents(custom, [i for i, _ in given], len(primals)).call(
            [*primals, *(t for _, t in given)]
        )
    n = _count_primals(outs)
    dots = iter(outs[n:])
    return [JVPTracer(trace, o, next(dots)) if _has_tangent(o) else o for o in outs[:n]]


def _with_tangents(custom: CustomVmap, which: Sequence[int], n: int) -> CustomVmap:
    """The derivative of a custom function, itself one; its rule is the derivative of the rule.

    It is ``(*args, *tangents) -> (*outs, *tangents)``; ``which`` says what arguments have tangents.
    """
    n_consts = custom.num_consts

    def spread(tangents: Sequence) -> list:
        found: list[Any] = [None] * n
        for i, t in zip(which, tangents):
            found[i] = t
        return found

    def fun(*args):
        return _both(*jvp_of(custom.fun, args[:n], spread(args[n:])))

    def rule(size, batched, *args):
        m = n - n_consts
        primals, tangents = list(args[:m]), spread(args[m:])[n_consts:]
        marks, tangent_marks = list(batched[:m]), spread(batched[m:])[n_consts:]
        for i, t in enumerate(tangents):
            if t is not None and marks[i] != tangent_marks[i]:
                # A value and its tangent are mapped together or not at all.
                if tangent_marks[i]:
                    primals[i], marks[i] = move_axis(primals[i], None, 0, size), True
                else:
                    tangents[i] = move_axis(t, None, 0, size)
        found: list = []

        def batch_form(*values):
            outs, out_marks = custom.rule(size, marks, *values)
            found[:] = out_marks
            return outs

        outs, dots = jvp_of(batch_form, primals, tangents)
        return _both(outs, dots), [*found, *(m for m, o in zip(found, outs) if _has_tangent(o))]

    return CustomVmap(fun, rule, custom.name, None, n_consts)


def _both(outs: Sequence, tangents: Sequence) -> list:
    """Results, and after them the tangents of those that have any."""
    pairs = [(o, t) for o, t in zip(outs, tangents) if _has_tangent(o)]
    return [*outs, *(instantiate(Zero.like(o)) if t is None else t for o, t in pairs)]


def _has_tangent(x: Any) -> bool:
    return typeof(x).tangent_aval().dtype != float0


def _count_primals(both: Sequence) -> int:
    """How many of what ``_both`` gave are results."""
    n, tangents = 0, 0
    while n + tangents < len(both):
        tangents += _has_tangent(both[n])
        n += 1
    return n


def _linearized(trace: LinearizeTrace, args: Sequence, custom: CustomVmap) -> list:
    parts = [trace.split(a) for a in args]
    if all(t is None for _, t in parts):
        with set_trace(trace.parent):
            return custom.call([p for p, _ in parts])
    raise ValueError(
        f"Reverse-mode differentiation does not work for the custom_vmap function {custom.name}: "
        "its rule says how to map it, not how to map its transpose. Use forward mode (jvp, "
        "jacfwd), or give it a derivative by wrapping it in custom_vjp."
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


_HOW: dict[type, Callable] = {
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
