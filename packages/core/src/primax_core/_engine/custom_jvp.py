"""``custom_jvp_call``: a function with a custom forward-mode rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from .._base import errors, source
from .._ir.avals import ShapedArray
from .._ir.dtypes import float0
from .._ir.jaxpr import Jaxpr
from .._ir.primitive import Primitive, lower
from .._lower.lazy import lowering
from .._trace.core import Trace, Tracer, placed_like, set_trace, typeof
from .._trace.staging import close_over, stage_with_aux
from .._transform.batching import BatchTrace, batch_of, batch_with_aux, move_axis
from .._transform.jvp import JVPTrace, JVPTracer
from .._transform.linearize import GradTracer, LinearizeTrace, TangentTrace, prune
from .._transform.transpose import transposed_once
from .._transform.zeros import Zero, instantiate
from .custom_rules import (
    CustomFunction,
    check_outputs,
    configure,
    differentiating,
    selected,
    split_args,
)
from .results import as_result

custom_jvp_call_p: Final = Primitive(
    "custom_jvp_call", multiple_results=True, cache_on=lambda params: params["call_jaxpr"].cache
)


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


class CustomJVP(CustomFunction):
    """A flat function with its flat forward-mode rule.

    Attributes:
      rule: ``(primals, tangents) -> (results, tangents)``, lists; ``tangents`` are arrays, or
        ``SymbolicZero`` where they are zero and ``symbolic_zeros`` is set.
    """

    __slots__ = ("rule", "symbolic_zeros")

    def __init__(
        self,
        fun: Callable[..., Any],
        rule: Callable[..., Any],
        name: str,
        symbolic_zeros: bool = False,
        jaxpr: Jaxpr | None = None,
        num_consts: int = 0,
    ):
        super().__init__(fun, name, jaxpr, num_consts)
        self.rule: Callable[..., Any] = rule
        self.symbolic_zeros: bool = symbolic_zeros


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
    outs = check_outputs(custom, outs, "jvp rule")
    return outs, [
        Zero(t.aval) if type(t) is SymbolicZero
        else placed_like(t, typeof(o)) if _has_tangent(t)
        else t
        for o, t in zip(outs, dots)
    ]  # fmt: skip


def rule_applies(trace: Trace, custom: Any, tangents: Sequence[Any]) -> bool:
    """Return True if a call is differentiated by its rule, which covers the arguments only.

    Args:
      trace: the trace that differentiates.
      custom: the call of the function with the rule.
      tangents: tangents of the closed-over values and of the arguments; ``None`` for zeros.

    Returns:
      A bool; False if only closed-over values are differentiated.

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


@differentiating
def _forward(
    trace: JVPTrace, args: Sequence, custom: CustomJVP, primals: list, tangents: list
) -> list:
    if not rule_applies(trace, custom, tangents):
        return custom.fun(*args)
    with set_trace(trace.parent), suspended(trace):
        outs, dots = _apply_rule(custom, primals, tangents)
    return [JVPTracer(trace, o, t) if _has_tangent(t) else o for o, t in zip(outs, dots)]


def _has_tangent(t: Any) -> bool:
    return type(t) is not Zero and typeof(t).dtype != float0


@differentiating
def _linearized(
    trace: LinearizeTrace, args: Sequence, custom: CustomJVP, primals: list, ins: list
) -> list:
    if not rule_applies(trace, custom, ins):
        return custom.fun(*args)
    writer = TangentTrace(trace.parent)
    tangents = [
        None if t is None else writer.new_input(typeof(p).tangent_aval())
        for p, t in zip(primals, ins)
    ]
    try:
        with set_trace(writer), suspended(trace):
            outs, dots = _apply_rule(custom, primals, tangents)
            mask = [_has_tangent(t) for t in dots]
            fused = any(isinstance(o, Tracer) and o._trace is writer for o in outs)
            linear = None if fused else writer.finish([t for t, m in zip(dots, mask) if m])
    finally:
        writer.live = False
    if linear is None:  # one operation, a loop for instance, computes results and tangents
        from .._transform.fused_jvp import linearize_fused

        def rule(primals, tangents):
            outs, dots = _apply_rule(custom, primals, tangents)
            return outs, [t if _has_tangent(t) else Zero.like(o) for o, t in zip(outs, dots)]

        nonzero = [t is not None for t in ins]
        with set_trace(trace.parent), suspended(trace):
            outs, linear, mask = linearize_fused(rule, primals, nonzero, custom)
    if not any(mask):
        return outs
    linear, residuals = close_over(prune(linear))
    used = [t for t in ins if t is not None]
    node = trace.record(linear, residuals, used, partial(transposed_once, linear))
    tangents_out = iter(node.outputs)
    return [GradTracer(trace, o, next(tangents_out)) if m else o for o, m in zip(outs, mask)]


def _batched(trace: BatchTrace, args: Sequence, custom: CustomJVP) -> list:
    values, dims = split_args(trace, args)
    axis = trace.axis
    out_dims: list = []  # of the last call of `fun` or `rule`, which return values only

    def fun(*vs):
        outs, out_dims[:] = batch_of(custom.fun, vs, dims, axis, resumes=trace)
        return outs

    def rule(primals, tangents):
        k, ds = len(primals), dims[custom.num_consts :]
        zero_in = [type(t) is SymbolicZero for t in tangents]
        nonzero = [(t, d) for t, d, z in zip(tangents, ds, zero_in) if not z]

        def both(*flat):
            rest = iter(flat[k:])
            ts = [
                SymbolicZero(typeof(p).tangent_aval()) if z else next(rest)
                for p, z in zip(flat, zero_in)
            ]
            outs, dots = custom.rule(list(flat[:k]), ts)
            zero = [type(t) in (SymbolicZero, Zero) for t in dots]
            return [*outs, *(t for t, z in zip(dots, zero) if not z)], (len(outs), zero)

        flat, flat_dims = [*primals, *(t for t, _ in nonzero)], [*ds, *(d for _, d in nonzero)]
        batches, ds_out, (m, zero) = batch_with_aux(both, flat, flat_dims, axis, resumes=trace)
        rest = iter(zip(batches[m:], ds_out[m:]))
        results, dots, out_dims[:] = [], [], []
        for o, d, is_zero in zip(batches, ds_out, zero):
            if is_zero:
                t = SymbolicZero(typeof(o).tangent_aval())
            else:
                # A result and its tangent must have the same mapped axis.
                t, t_dim = next(rest)
                if d is None and t_dim is not None:
                    o, d = move_axis(o, None, t_dim, axis.size), t_dim
                elif d is not None:
                    t = move_axis(t, t_dim, d, axis.size)
            results.append(o)
            dots.append(t)
            out_dims.append(d)
        return results, dots

    inner = CustomJVP(fun, rule, custom.name, custom.symbolic_zeros, None, custom.num_consts)
    with set_trace(trace.parent):
        outs = inner.call(values)
    return trace.wrap(outs, out_dims)


def derivative_jaxpr(
    custom: CustomJVP, primals: Sequence[Any], mask: Sequence[bool], trace: Trace
) -> tuple[Jaxpr, Sequence[Any], tuple[bool, ...]]:
    """The jaxpr ``(*consts, *primals, *tangents) -> (*outs, *out tangents)`` of a custom rule.

    Returns:
      The jaxpr, its constants, and the mask of results with tangents.

    Args:
      mask: the arguments with tangents; the others are zero.
      trace: the calling trace; the rule must not use its values.
      custom: the call of the function with the rule.
      primals: the arguments.
    """
    k = len(primals)

    def run(*args):
        nonzero = iter(args[k:])
        outs, dots = _apply_rule(custom, args[:k], [next(nonzero) if m else None for m in mask])
        out_mask = tuple(_has_tangent(t) for t in dots)
        return [*outs, *(t for t, m in zip(dots, out_mask) if m)], out_mask

    avals = [typeof(p) for p in primals]
    dot_avals = [a.tangent_aval() for a, m in zip(avals, mask) if m]
    with suspended(trace):
        jaxpr, out_mask = stage_with_aux(run, [*avals, *dot_avals], parent=trace.parent)
    return *close_over(jaxpr), out_mask


@custom_jvp_call_p.rule(lower)
def _lower(ctx, *values, call_jaxpr, **_):
    return lowering.lower_body(ctx, call_jaxpr, values)


def _restricted(params: dict[str, Any], used: tuple[bool, ...]) -> dict[str, Any]:
    rule = params["jvp"]

    def used_results(primals, tangents):
        outs, dots = rule(primals, tangents)
        return selected(outs, used), selected(dots, used)

    return {**params, "jvp": used_results}


configure(
    CustomJVP,
    custom_jvp_call_p,
    {
        "name": "name", "call_jaxpr": "jaxpr", "jvp": "rule", "symbolic_zeros": "symbolic_zeros",
        "num_consts": "num_consts",
    },
    {JVPTrace: _forward, LinearizeTrace: _linearized, BatchTrace: _batched},
    _restricted,
)  # fmt: skip
