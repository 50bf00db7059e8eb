"""``custom_vjp_call``: a function with custom reverse-mode rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .._base import source
from .._base.config import state
from .._ir.effects import no_effects
from .._ir.jaxpr import Eqn, Jaxpr, Var
from .._ir.primitive import (
    Primitive,
    abstract,
    batch,
    effects,
    jvp,
    lower,
    trace_rule,
    transpose_direct,
)
from .._ir.printer import hide_defaults
from .._ir.samples import samples
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
from .._transform.batching import BatchTrace, batch_of, batch_with_aux, move_axis, sum_axis
from .._transform.call_rules import add_opaque_call_rules
from .._transform.jvp import JVPTrace, JVPTracer
from .._transform.linearize import GradTracer, LinearizeTrace, TangentTrace
from .._transform.zeros import Zero, instantiate
from .custom_jvp import SymbolicZero, rule_applies, suspended
from .results import as_result

custom_vjp_call_p: Final = Primitive(
    "custom_vjp_call", multiple_results=True, cache_on=lambda params: params["call_jaxpr"].cache
)
custom_lin_p: Final = Primitive("custom_lin", multiple_results=True)


hide_defaults("custom_vjp_call", num_consts=0)


class PerturbedValue:
    """An argument, as passed to a forward rule with ``symbolic_zeros=True``."""

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool):
        self.value: Any = value
        self.perturbed: bool = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


class CustomVJP:
    """A flat function and its flat rules.

    Attributes:
      fun: ``(*args) -> list of results``.
      fwd: ``(*args) -> (results, residuals)``, lists; receives ``PerturbedValue`` with symbolic
        zeros.
      bwd: ``(residuals, cotangents) -> list of cotangents``, ``None`` for zeros. The cotangents are
        arrays, or ``SymbolicZero`` with symbolic zeros.
      jaxpr: the jaxpr of ``fun`` if it is already traced; its first arguments are ``num_consts``
        constants.
    """

    __slots__ = ("fun", "fwd", "bwd", "name", "symbolic_zeros", "jaxpr", "num_consts")

    def __init__(
        self,
        fun: Callable[..., Any],
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        name: str,
        symbolic_zeros: bool = False,
        jaxpr: Jaxpr | None = None,
        num_consts: int = 0,
    ):
        self.fun: Callable[..., Any] = fun
        self.fwd: Callable[..., Any] = fwd
        self.bwd: Callable[..., Any] = bwd
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
                    return self.under(a._trace, args)
            return self.fun(*args)
        return self.under(trace, args)

    def under(self, trace: Trace, args: Sequence[Any]) -> list[Any]:
        """Call under a trace."""
        if references.ops.loaded and references.ops.has_cells(trace, args):
            return references.ops.lend(trace, args, lambda lent: self.under(trace, lent))
        for cls, handler in _HANDLERS.items():
            if isinstance(trace, cls):
                return handler(trace, args, self)
        return trace.call_custom(self, args)

    def run_fwd(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        """Results and residuals, computed under the current trace."""
        n = self.num_consts
        args = [as_result(p) for p in primals[n:]]
        if self.symbolic_zeros:
            args = [PerturbedValue(p, m) for p, m in zip(args, perturbed[n:])]
        with source.in_users_code():
            return self.fwd(*args)


def _linear_call(custom: CustomVJP, outs, residuals, primals, which: Sequence[int]):
    """Parameters of the equation for the linear part."""
    return {
        "bwd": custom.bwd,
        "num_res": len(residuals),
        "out_avals": tuple(typeof(o).tangent_aval() for o in outs),
        "in_avals": tuple(typeof(p).tangent_aval() for p in primals[custom.num_consts :]),
        "which": tuple(i - custom.num_consts for i in which),
        "symbolic_zeros": custom.symbolic_zeros,
        "name": custom.name,
    }


def _linearized(trace: LinearizeTrace, args: Sequence, custom: CustomVJP) -> list:
    pairs = [trace.split(a) for a in args]
    primals, tangents = [p for p, _ in pairs], [t for _, t in pairs]
    n = custom.num_consts
    which = [i for i, t in enumerate(tangents) if t is not None and i >= n]
    if not rule_applies(trace, custom, tangents):
        return custom.fun(*args)
    with set_trace(trace.parent):
        if not which:
            return custom.call(primals)
        with suspended(trace):
            outs, residuals = custom.run_fwd(primals, [t is not None for t in tangents])
    params = _linear_call(custom, outs, residuals, primals, which)
    res_vars = [Var(typeof(r)) for r in residuals]
    in_vars = [Var(tangents[i].aval) for i in which]
    out_vars = [Var(a) for a in params["out_avals"]]
    eqn = Eqn(custom_lin_p, [*res_vars, *in_vars], out_vars, params)
    jaxpr = Jaxpr([], [], [*res_vars, *in_vars], out_vars, [eqn])

    def back(res, cts):
        return run_bwd(cts, res, **params)

    node = trace.record(jaxpr, list(residuals), [tangents[i] for i in which], back)
    return [
        GradTracer(trace, o, t) if _has_tangent(t.aval) else o for o, t in zip(outs, node.outputs)
    ]


def _has_tangent(aval) -> bool:
    return aval.dtype.kind != "V"


def run_bwd(cts: Sequence, residuals, *, bwd, out_avals, in_avals, which, symbolic_zeros, **_):
    """Call a backward rule; return cotangents of the arguments in ``which``, ``None`` for zeros."""
    if symbolic_zeros:
        if all(c is None for c in cts):
            return [None] * len(which)
        dense = [SymbolicZero(a) if c is None else as_result(c) for c, a in zip(cts, out_avals)]
    else:
        dense = [
            as_result(instantiate(Zero(a)) if c is None else c) for c, a in zip(cts, out_avals)
        ]
    with source.in_users_code():
        results = bwd(list(residuals), dense)
    return [None if type(results[i]) in (Zero, SymbolicZero) else results[i] for i in which]


def _forward(trace: JVPTrace, args: Sequence, custom: CustomVJP) -> list:
    pairs = [trace.split(a) for a in args]
    primals, tangents = [p for p, _ in pairs], [t for _, t in pairs]
    n = custom.num_consts
    which = [i for i, t in enumerate(tangents) if t is not None and i >= n]
    if not rule_applies(trace, custom, tangents):
        return custom.fun(*args)
    with set_trace(trace.parent):
        if not which:
            return custom.call(primals)
        with suspended(trace):
            outs, residuals = custom.run_fwd(primals, [t is not None for t in tangents])
        params = _linear_call(custom, outs, residuals, primals, which)
        dots = custom_lin_p.bind(*residuals, *(tangents[i] for i in which), **params)
    return [JVPTracer(trace, o, t) if _has_tangent(typeof(t)) else o for o, t in zip(outs, dots)]


def _batched(trace: BatchTrace, args: Sequence, custom: CustomVJP) -> list:
    pairs = [trace.split(a) for a in args]
    values, dims = [v for v, _ in pairs], [d for _, d in pairs]
    axis, n = trace.axis, custom.num_consts
    out_dims: list = []
    res_dims: list = []

    def fun(*vs):
        outs, ds = batch_of(custom.fun, vs, dims, axis, resumes=trace)
        out_dims[:] = ds
        return outs

    def fwd(*vs):
        marks = [v.perturbed if type(v) is PerturbedValue else None for v in vs]
        plain = [v.value if type(v) is PerturbedValue else v for v in vs]

        def run(*xs):
            if custom.symbolic_zeros:
                xs = [PerturbedValue(x, m) for x, m in zip(xs, marks)]
            outs, residuals = custom.fwd(*xs)
            return [*outs, *residuals], len(outs)

        results, ds, k = batch_with_aux(run, plain, dims[n:], axis, resumes=trace)
        out_dims[:], res_dims[:] = ds[:k], ds[k:]
        return results[:k], results[k:]

    def bwd(residuals, cts):
        zero = [type(c) is SymbolicZero for c in cts]
        ct_dims = [d for d, z in zip(out_dims, zero) if not z]
        nonzero = [c for c, z in zip(cts, zero) if not z]

        def run(*xs):
            res, rest = xs[: len(residuals)], iter(xs[len(residuals) :])
            full = [
                SymbolicZero(_unbatched(c.aval, d)) if z else next(rest)
                for c, d, z in zip(cts, out_dims, zero)
            ]
            arg_cts = custom.bwd(list(res), full)
            missing = [type(c) is Zero or type(c) is SymbolicZero for c in arg_cts]
            return [c for c, m in zip(arg_cts, missing) if not m], missing

        nonzero_cts, ds, missing = batch_with_aux(
            run, [*residuals, *nonzero], [*res_dims, *ct_dims], axis, resumes=trace
        )
        pairs = iter(zip(nonzero_cts, ds))
        results = []
        for m, d, v in zip(missing, dims[n:], values[n:]):
            if m:
                results.append(Zero(typeof(v).tangent_aval()))
                continue
            ct, ct_dim = next(pairs)
            if d is None:
                results.append(ct if ct_dim is None else sum_axis(ct, ct_dim))
            else:
                results.append(move_axis(ct, ct_dim, d, axis.size))
        return results

    inner = CustomVJP(fun, fwd, bwd, custom.name, custom.symbolic_zeros, None, n)
    with set_trace(trace.parent):
        outs = inner.call(values)
    return trace.wrap(outs, out_dims)


def _unbatched(aval, d):
    return aval if d is None else aval.update(shape=aval.shape[:d] + aval.shape[d + 1 :])


def _staged(trace: JaxprWriter, args: Sequence, custom: CustomVJP) -> list:
    if isinstance(trace, TangentTrace) and not trace.owns_any(args):
        with set_trace(trace.parent):
            return custom.call(args)
    jaxpr, consts, num_consts = custom.jaxpr, [], custom.num_consts
    if jaxpr is None:
        jaxpr = stage(lambda *a: custom.fun(*a), [typeof(a) for a in args], parent=trace)
        jaxpr, consts = close_over(jaxpr)
        num_consts += len(consts)
    params = {
        "name": custom.name, "call_jaxpr": jaxpr, "fwd": custom.fwd, "bwd": custom.bwd,
        "symbolic_zeros": custom.symbolic_zeros, "num_consts": num_consts,
    }  # fmt: skip
    return trace.emit(custom_vjp_call_p, [*consts, *args], params)


_HANDLERS: dict[type, Callable] = {
    JVPTrace: _forward,
    LinearizeTrace: _linearized,
    BatchTrace: _batched,
    JaxprWriter: _staged,
}


@custom_vjp_call_p.rule(trace_rule)
def _custom_vjp_call_trace_rule(
    trace, args, *, name, call_jaxpr, fwd, bwd, symbolic_zeros, num_consts
):
    if trace is None:
        return run_eagerly(call_jaxpr, list(args))
    custom = CustomVJP(
        lambda *a: eval_jaxpr(call_jaxpr, a), fwd, bwd, name, symbolic_zeros, call_jaxpr, num_consts
    )
    return custom.under(trace, args)


add_opaque_call_rules(custom_vjp_call_p, "call_jaxpr")


@custom_vjp_call_p.rule(lower)
def _custom_vjp_call_lower(ctx, *values, call_jaxpr, **_):
    return lowering.lower_body(ctx, call_jaxpr, values)


# The linear part: it can be transposed and batched, but not evaluated.

_FORWARD_MODE = (
    "can't apply forward-mode autodiff (jvp) to a custom_vjp function. Use reverse mode (grad, "
    "vjp, jacrev), or define the function with custom_jvp."
)


@custom_lin_p.rule(abstract)
def _custom_lin_abstract(*avals, out_avals, **_):
    return list(out_avals)


@custom_lin_p.rule(effects)
def _custom_lin_effects(*avals, **_):
    return no_effects  # only the backward rule may change references


@custom_lin_p.rule(lower)
def _custom_lin_lower(ctx, *values, name, **_):
    raise TypeError(f"{_FORWARD_MODE} The function is {name}.")


@custom_lin_p.rule(transpose_direct)
def _custom_lin_transpose_direct(cts, values, linear, avals, *, num_res, **params):
    cotangents = run_bwd(cts, values[:num_res], **params)
    return [None] * num_res + list(cotangents)


@custom_lin_p.rule(jvp)
def _custom_lin_jvp(primals, tangents, *, name, **_):
    raise TypeError(f"{_FORWARD_MODE} The function is {name}.")


@custom_lin_p.rule(batch)
def _custom_lin_batch(
    axis, args, dims, *, num_res, bwd, out_avals, in_avals, which, symbolic_zeros, name
):
    # Reached when a linearized function is mapped: its backward rule is mapped too.
    res_dims, in_dims = list(dims[:num_res]), list(dims[num_res:])
    size = axis.size
    tangents = [move_axis(t, d, 0, size) for t, d in zip(args[num_res:], in_dims)]

    def batched_bwd(residuals, cts):
        zero = [type(c) is SymbolicZero for c in cts]

        def run(*xs):
            res, rest = xs[:num_res], iter(xs[num_res:])
            full = [SymbolicZero(a) if z else next(rest) for a, z in zip(out_avals, zero)]
            arg_cts = bwd(list(res), full)
            missing = [type(c) is Zero or type(c) is SymbolicZero for c in arg_cts]
            return [c for c, m in zip(arg_cts, missing) if not m], missing

        nonzero = [c for c, z in zip(cts, zero) if not z]
        nonzero_cts, ds, missing = batch_with_aux(
            run, [*residuals, *nonzero], [*res_dims, *[0] * len(nonzero)], axis
        )
        pairs = iter(zip(nonzero_cts, ds))
        return [
            Zero(_batch0(a, size)) if m else move_axis(*next(pairs), 0, size)
            for m, a in zip(missing, in_avals)
        ]

    outs = custom_lin_p.bind(
        *args[:num_res], *tangents, num_res=num_res, bwd=batched_bwd,
        out_avals=tuple(_batch0(a, size) for a in out_avals),
        in_avals=tuple(_batch0(a, size) for a in in_avals), which=which,
        symbolic_zeros=symbolic_zeros, name=name,
    )  # fmt: skip
    return outs, [0] * len(outs)


def _batch0(aval, size: int):
    return aval.update(shape=(size, *aval.shape))


custom_lin_p.unsupported(samples, "it appears in linear jaxprs only, and cannot be evaluated")
