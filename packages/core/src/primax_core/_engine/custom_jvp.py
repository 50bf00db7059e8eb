"""``custom_jvp_call``: a function with a custom forward-mode rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from .._base import errors, source
from .._base.config import state
from .._ir.avals import ShapedArray
from .._ir.dtypes import float0
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive, lower, trace_rule
from .._ir.printer import hide_defaults
from .._lower.lazy import lowering
from .._trace.core import (
    Trace,
    Tracer,
    check_live,
    run_eagerly,
    set_trace,
    typeof,
)
from .._trace.reference_ops import references
from .._trace.staging import JaxprWriter, close_over, eval_jaxpr, stage
from .._transform.batching import BatchTrace, batch_of, batch_with_aux, move_axis
from .._transform.call_rules import add_opaque_call_rules
from .._transform.jvp import JVPTrace, JVPTracer
from .._transform.linearize import GradTracer, LinearizeTrace, TangentTrace, prune
from .._transform.transpose import transposed_once
from .._transform.zeros import Zero, instantiate
from .results import as_result

custom_jvp_call_p: Final = Primitive(
    "custom_jvp_call", multiple_results=True, cache_on=lambda params: params["call_jaxpr"].cache
)


hide_defaults("custom_jvp_call", num_consts=0)


class SymbolicZero:
    """A zero tangent, as passed to custom rules with ``symbolic_zeros=True``."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


class CustomJVP:
    """A flat function with its flat rule.

    Attributes:
      fun: ``(*args) -> list of results``.
      rule: ``(primals, tangents) -> (results, tangents)``, lists; ``tangents`` are arrays, or
        ``SymbolicZero`` where they are zero and ``symbolic_zeros`` is set.
      jaxpr: the jaxpr of ``fun`` if it is already traced; its first arguments are ``num_consts``
        constants.
    """

    __slots__ = ("fun", "rule", "name", "symbolic_zeros", "jaxpr", "num_consts")

    def __init__(
        self,
        fun: Callable[..., Any],
        rule: Callable[..., Any],
        name: str,
        symbolic_zeros: bool = False,
        jaxpr: Jaxpr | None = None,
        num_consts: int = 0,
    ):
        self.fun: Callable[..., Any] = fun
        self.rule: Callable[..., Any] = rule
        self.name: str = name
        self.symbolic_zeros: bool = symbolic_zeros
        self.jaxpr: Jaxpr | None = jaxpr
        self.num_consts: int = num_consts

    def call(self, args: Sequence[Any]) -> list[Any]:
        """Call under the current trace."""
        trace = state.trace
        if trace is None:
            for a in args:
                if isinstance(a, Tracer):
                    check_live(a)
                    return self._under(a._trace, args)
            return self.fun(*args)
        return self._under(trace, args)

    def _under(self, trace: Trace, args: Sequence) -> list:
        if references.ops.loaded and references.ops.has_cells(trace, args):
            return references.ops.lend(trace, args, lambda lent: self._under(trace, lent))
        for cls, handler in _HANDLERS.items():
            if isinstance(trace, cls):
                return handler(trace, args, self)
        return trace.call_custom(self, args)


def _apply_rule(custom: CustomJVP, primals: Sequence, tangents: Sequence):
    """Call the rule; zero tangents are ``None`` or ``Zero`` in ``tangents``."""
    n = custom.num_consts
    dense = []
    for p, t in zip(primals[n:], tangents[n:]):
        if t is None or type(t) is Zero:
            aval = typeof(p).tangent_aval()
            dense.append(
                SymbolicZero(aval) if custom.symbolic_zeros else as_result(instantiate(Zero(aval)))
            )
        else:
            dense.append(as_result(t))
    with source.in_users_code():
        outs, dots = custom.rule([as_result(p) for p in primals[n:]], dense)
    return outs, [Zero(t.aval) if type(t) is SymbolicZero else t for t in dots]


def rule_applies(trace: Trace, custom: Any, tangents: Sequence[Any]) -> bool:
    """Return True if a call is differentiated by its rule, which covers the arguments only.

    Raises:
      UnexpectedTracerError: if a closed-over value is differentiated together with the arguments.
    """
    n = custom.num_consts
    if all(t is None for t in tangents[:n]):
        return True
    if all(t is None for t in tangents[n:]):
        return False
    raise errors.UnexpectedTracerError(_closes_over(custom.name))


class suspended:
    """Context manager in which a custom rule must not use values of the trace that calls it."""

    __slots__ = ("trace",)

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self):
        self.trace.live = False

    def __exit__(self, kind, error, where):
        self.trace.live = True
        if kind is errors.UnexpectedTracerError:
            error.add_note(_closes_over("a function with a custom rule"))


def _closes_over(name: str) -> str:
    return (
        f"{name} was differentiated with respect to its arguments while it closes over another "
        "value that is differentiated. A custom rule covers only the arguments: pass that value as "
        "an argument."
    )


def _forward(trace: JVPTrace, args: Sequence, custom: CustomJVP) -> list:
    pairs = [trace.split(a) for a in args]
    primals = [p for p, _ in pairs]
    tangents = [t for _, t in pairs]
    if not rule_applies(trace, custom, tangents):
        return custom.fun(*args)
    with set_trace(trace.parent):
        if all(t is None for t in tangents):
            return custom.call(primals)
        with suspended(trace):
            outs, dots = _apply_rule(custom, primals, tangents)
    return [
        o if type(t) is Zero or _no_tangent(t) else JVPTracer(trace, o, t)
        for o, t in zip(outs, dots)
    ]


def _no_tangent(t: Any) -> bool:
    return typeof(t).dtype == float0


def _linearized(trace: LinearizeTrace, args: Sequence, custom: CustomJVP) -> list:
    pairs = [trace.split(a) for a in args]
    primals = [p for p, _ in pairs]
    ins = [t for _, t in pairs]
    if not rule_applies(trace, custom, ins):
        return custom.fun(*args)
    if all(t is None for t in ins):
        with set_trace(trace.parent):
            return custom.call(primals)
    writer = TangentTrace(trace.parent)
    used, tangents = [], []
    for i, (p, t) in enumerate(zip(primals, ins)):
        if t is None or i < custom.num_consts:
            tangents.append(None)
        else:
            used.append(t)
            tangents.append(writer.new_input(typeof(p).tangent_aval()))
    try:
        with set_trace(writer), suspended(trace):
            outs, dots = _apply_rule(custom, primals, tangents)
            mask = [type(t) is not Zero and not _no_tangent(t) for t in dots]
            linear = writer.finish([t for t, m in zip(dots, mask) if m])
    finally:
        writer.live = False
    if not any(mask):
        return outs
    linear, residuals = close_over(prune(linear))
    node = trace.record(linear, residuals, used, partial(transposed_once, linear))
    tangents_out = iter(node.outputs)
    return [GradTracer(trace, o, next(tangents_out)) if m else o for o, m in zip(outs, mask)]


def _batched(trace: BatchTrace, args: Sequence, custom: CustomJVP) -> list:
    pairs = [trace.split(a) for a in args]
    values, dims = [v for v, _ in pairs], [d for _, d in pairs]
    axis = trace.axis
    out_dims: list = []

    def fun(*vs):
        outs, ds = batch_of(custom.fun, vs, dims, axis, resumes=trace)
        out_dims[:] = ds
        return outs

    def rule(primals, tangents):
        n = custom.num_consts
        ds = dims[n:]
        k = len(primals)
        tangent_dims = []
        arrays = []
        for t, d in zip(tangents, ds):
            arrays.append(t)
            tangent_dims.append(None if type(t) is SymbolicZero else d)

        def both(*flat):
            ts = [
                SymbolicZero(p.aval.tangent_aval()) if type(a) is SymbolicZero else f
                for p, a, f in zip(flat[:k], arrays, flat[k:])
            ]
            outs, dots = custom.rule(list(flat[:k]), ts)
            zero = [type(t) is SymbolicZero for t in dots]
            return [*outs, *(t for t, z in zip(dots, zero) if not z)], (len(outs), zero)

        nonzero = [None if type(a) is SymbolicZero else a for a in arrays]
        fill = [p if g is None else g for p, g in zip(primals, nonzero)]
        outs_and_dots, ds_out, (m, zero) = batch_with_aux(
            both, [*primals, *fill], [*ds, *tangent_dims], axis, resumes=trace
        )
        outs, rest = outs_and_dots[:m], iter(zip(outs_and_dots[m:], ds_out[m:]))
        # A result and its tangent must have the same mapped axis.
        results, dots = [], []
        for o, d, is_zero in zip(outs, ds_out[:m], zero):
            if is_zero:
                results.append((o, d))
                dots.append(SymbolicZero(typeof(o).tangent_aval()))
                continue
            t, td = next(rest)
            if d is None and td is None:
                results.append((o, None))
                dots.append(t)
                continue
            target = d if d is not None else td
            results.append((move_axis(o, d, target, axis.size), target))
            dots.append(move_axis(t, td, target, axis.size))
        out_dims[:] = [d for _, d in results]
        return [o for o, _ in results], dots

    inner = CustomJVP(fun, rule, custom.name, custom.symbolic_zeros, None, custom.num_consts)
    with set_trace(trace.parent):
        outs = inner.call(values)
    return trace.wrap(outs, out_dims)


def _staged(trace: JaxprWriter, args: Sequence, custom: CustomJVP) -> list:
    if isinstance(trace, TangentTrace) and not trace.owns_any(args):
        with set_trace(trace.parent):
            return custom.call(args)
    jaxpr, consts, num_consts = custom.jaxpr, [], custom.num_consts
    if jaxpr is None:
        jaxpr = stage(lambda *a: custom.fun(*a), [typeof(a) for a in args], parent=trace)
        jaxpr, consts = close_over(jaxpr)
        num_consts += len(consts)
    params = {
        "name": custom.name, "call_jaxpr": jaxpr, "jvp": custom.rule,
        "symbolic_zeros": custom.symbolic_zeros, "num_consts": num_consts,
    }  # fmt: skip
    return trace.emit(custom_jvp_call_p, [*consts, *args], params)


_HANDLERS: dict[type, Callable] = {
    JVPTrace: _forward,
    LinearizeTrace: _linearized,
    BatchTrace: _batched,
    JaxprWriter: _staged,
}


def derivative_jaxpr(
    custom: CustomJVP, primals: Sequence[Any], mask: Sequence[bool], trace: Trace
) -> tuple[Jaxpr, Sequence[Any], tuple[bool, ...]]:
    """The jaxpr ``(*consts, *primals, *tangents) -> (*outs, *out tangents)`` of a custom rule.

    Returns:
      The jaxpr, its constants, and the mask of results with tangents.

    Args:
      mask: the arguments with tangents; the others are zero.
      trace: the calling trace; the rule must not use its values.
    """
    k, out_mask = len(primals), []

    def run(*args):
        nonzero = iter(args[k:])
        outs, dots = _apply_rule(custom, args[:k], [next(nonzero) if m else None for m in mask])
        out_mask.extend(type(t) is not Zero and not _no_tangent(t) for t in dots)
        return [*outs, *(t for t, m in zip(dots, out_mask) if m)]

    avals = [typeof(p) for p in primals]
    dot_avals = [a.tangent_aval() for a, m in zip(avals, mask) if m]
    with suspended(trace):
        jaxpr = stage(run, [*avals, *dot_avals], parent=trace.parent)
    moved, consts = close_over(jaxpr)
    return moved, consts, tuple(out_mask)


@custom_jvp_call_p.rule(trace_rule)
def _trace_rule(trace, args, *, name, call_jaxpr, jvp, symbolic_zeros, num_consts):
    custom = CustomJVP(
        lambda *a: eval_jaxpr(call_jaxpr, a), jvp, name, symbolic_zeros, call_jaxpr, num_consts
    )
    if trace is None:
        return run_eagerly(call_jaxpr, list(args))
    return custom._under(trace, args)


add_opaque_call_rules(custom_jvp_call_p, "call_jaxpr")


@custom_jvp_call_p.rule(lower)
def _lower(ctx, *values, call_jaxpr, **_):
    return lowering.lower_body(ctx, call_jaxpr, values)
