"""``custom_vmap_call``: a function with a custom batching rule."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from .._ir.dtypes import float0
from .._ir.primitive import Primitive, lower
from .._lower.lazy import lowering
from .._trace.core import Trace, set_trace, typeof
from .._transform.batching import BatchTrace, move_axis
from .._transform.jvp import JVPTrace, JVPTracer, jvp_of, jvp_with_aux
from .._transform.linearize import LinearizeTrace
from .._transform.zeros import Zero, instantiate
from .custom_rules import CustomFunction, configure, differentiating, split_args
from .results import as_python

custom_vmap_call_p: Final = Primitive(
    "custom_vmap_call", multiple_results=True, cache_on=lambda params: params["call"].cache
)


class CustomVmap(CustomFunction):
    """A flat function with its flat batching rule.

    Attributes:
      rule: ``(size, batched, *args) -> (results, batched results)``, lists. The mapped axis of a
        batch is axis 0.
    """

    __slots__ = ("rule",)

    def __init__(self, fun, rule, name, jaxpr=None, num_consts=0):
        super().__init__(fun, name, jaxpr, num_consts)
        self.rule = rule


def _batched(trace: BatchTrace, args: Sequence, custom: CustomVmap) -> list:
    values, dims = split_args(trace, args)
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
        outs, out_batched = custom.rule(size, batched, *map(as_python, batches))
    return trace.wrap(outs, [0 if b else None for b in out_batched])


@differentiating
def _forward(
    trace: JVPTrace, args: Sequence, custom: CustomVmap, primals: list, tangents: list
) -> list:
    which = [i for i, t in enumerate(tangents) if t is not None]
    with set_trace(trace.parent):
        derivative = _with_tangents(custom, which, len(primals))
        outs = derivative.call([*primals, *(tangents[i] for i in which)])
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
        outs, dots, out_marks = jvp_with_aux(partial(custom.rule, size, marks), primals, tangents)
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


@differentiating
def _linearized(
    trace: LinearizeTrace, args: Sequence, custom: CustomVmap, primals: list, tangents: list
) -> list:
    raise ValueError(
        f"Reverse-mode differentiation does not work for the custom_vmap function {custom.name}: "
        "its rule defines its batching, but not the batching of its transpose. Use forward mode "
        "(jvp, jacfwd), or give it a derivative by wrapping it in custom_vjp."
    )


@custom_vmap_call_p.rule(lower)
def _lower(ctx, *values, call, **_):
    return lowering.lower_body(ctx, call, values)


configure(
    CustomVmap,
    custom_vmap_call_p,
    {"call": "jaxpr", "rule": "rule", "name": "name", "num_consts": "num_consts"},
    {
        JVPTrace: _forward,
        LinearizeTrace: _linearized,
        BatchTrace: _batched,
        # `call_custom` of a subclass expects custom derivatives.
        Trace: lambda trace, args, custom: Trace.call_custom(trace, custom, args),
    },
)
