"""``custom_vjp_call``: a function with custom reverse-mode rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .._base import pytree, source
from .._ir import dtypes
from .._ir.effects import no_effects
from .._ir.jaxpr import Eqn, Jaxpr, Var
from .._ir.primitive import (
    Primitive,
    abstract,
    batch,
    effects,
    jvp,
    lower,
    transpose_direct,
)
from .._ir.samples import samples
from .._lower.lazy import lowering
from .._trace.core import Trace, bind_on, placed_like, set_trace, typeof
from .._transform.batching import BatchTrace, batch_of, batch_with_aux, move_axis, sum_axis
from .._transform.jvp import JVPTrace, JVPTracer
from .._transform.linearize import GradTracer, LinearizeTrace
from .._transform.transpose import always_transposed
from .._transform.zeros import Zero, instantiate
from .custom_jvp import SymbolicZero, rule_applies, suspended
from .custom_rules import (
    CustomFunction,
    check_outputs,
    configure,
    differentiating,
    selected,
    split_args,
)
from .results import as_python, as_result

custom_vjp_call_p: Final = Primitive(
    "custom_vjp_call", multiple_results=True, cache_on=lambda params: params["call_jaxpr"].cache
)
custom_lin_p: Final = Primitive("custom_lin", multiple_results=True, applies_jaxprs=True)
always_transposed.add(custom_lin_p)


class PerturbedValue:
    """An argument, as passed to a forward rule with ``symbolic_zeros=True``."""

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool):
        self.value: Any = value
        self.perturbed: bool = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


class CustomVJP(CustomFunction):
    """A flat function with its flat reverse-mode rules.

    Attributes:
      fwd: ``(*args) -> (results, residuals)``, lists; receives ``PerturbedValue`` with symbolic
        zeros.
      bwd: ``(residuals, cotangents) -> list of cotangents``, ``None`` for zeros. The cotangents are
        arrays, or ``SymbolicZero`` with symbolic zeros.
    """

    __slots__ = ("fwd", "bwd", "symbolic_zeros")

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
        super().__init__(fun, name, jaxpr, num_consts)
        self.fwd: Callable[..., Any] = fwd
        self.bwd: Callable[..., Any] = bwd
        self.symbolic_zeros: bool = symbolic_zeros


def _run_fwd(trace: Trace, custom: CustomVJP, primals: list, tangents: list):
    """Results and residuals of the forward rule, and the tangents and parameters of ``custom_lin``.

    They are computed under the parent of the trace.
    """
    n = custom.num_consts
    which = [i for i, t in enumerate(tangents) if t is not None]
    with set_trace(trace.parent), suspended(trace):
        args = [as_result(p) for p in primals[n:]]
        if custom.symbolic_zeros:
            args = [PerturbedValue(p, t is not None) for p, t in zip(args, tangents[n:])]
        with source.in_users_code():
            outs, residuals = custom.fwd(*args)
    outs = check_outputs(custom, outs, "forward rule")
    params = {
        "bwd": custom.bwd,
        "num_res": len(residuals),
        "out_avals": tuple(typeof(o).tangent_aval() for o in outs),
        "in_avals": tuple(typeof(p).tangent_aval() for p in primals[n:]),
        "which": tuple(i - n for i in which),
        "symbolic_zeros": custom.symbolic_zeros,
        "name": custom.name,
    }
    return outs, residuals, [tangents[i] for i in which], params


@differentiating
def _linearized(
    trace: LinearizeTrace, args: Sequence, custom: CustomVJP, primals: list, tangents: list
) -> list:
    if not rule_applies(trace, custom, tangents):
        return custom.fun(*args)
    outs, residuals, ins, params = _run_fwd(trace, custom, primals, tangents)
    in_vars = [Var(x) for x in (*map(typeof, residuals), *(t.aval for t in ins))]
    out_vars = [Var(a) for a in params["out_avals"]]
    eqn = Eqn(custom_lin_p, in_vars, out_vars, params)
    jaxpr = Jaxpr([], [], in_vars, out_vars, [eqn])

    def back(res, cts):
        return run_bwd(cts, res, **params)

    node = trace.record(jaxpr, list(residuals), ins, back)
    return [
        GradTracer(trace, o, t) if _has_tangent(t.aval) else o for o, t in zip(outs, node.outputs)
    ]


def _has_tangent(aval) -> bool:
    return aval.dtype != dtypes.float0


def run_bwd(cts: Sequence, residuals, *, bwd, out_avals, in_avals, which, symbolic_zeros, **_):
    """Call a backward rule; return cotangents of the arguments in ``which``, ``None`` for zeros."""
    if symbolic_zeros:
        dense = [SymbolicZero(a) if c is None else as_result(c) for c, a in zip(cts, out_avals)]
    else:
        dense = [
            as_result(instantiate(Zero(a)) if c is None else c) for c, a in zip(cts, out_avals)
        ]
    with source.in_users_code():
        results = bwd([as_python(r) for r in residuals], dense)
    if type(results) is not list:
        results.record()  # LoggedCotangents
    return [
        None if type(results[i]) in (Zero, SymbolicZero) else placed_like(results[i], in_avals[i])
        for i in which
    ]


@differentiating
def _forward(
    trace: JVPTrace, args: Sequence, custom: CustomVJP, primals: list, tangents: list
) -> list:
    if not rule_applies(trace, custom, tangents):
        return custom.fun(*args)
    outs, residuals, ins, params = _run_fwd(trace, custom, primals, tangents)
    dots = bind_on(trace.parent, custom_lin_p, [*residuals, *ins], params)
    return [JVPTracer(trace, o, t) if _has_tangent(typeof(t)) else o for o, t in zip(outs, dots)]


def _batched(trace: BatchTrace, args: Sequence, custom: CustomVJP) -> list:
    values, dims = split_args(trace, args)
    axis, n = trace.axis, custom.num_consts
    # Of the last call of `fun` or `fwd`, which return values only.
    out_dims: list = []
    res_dims: list = []

    def fun(*vs):
        outs, out_dims[:] = batch_of(custom.fun, vs, dims, axis, resumes=trace)
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
        pairs = _batched_bwd(custom.bwd, axis, residuals, res_dims, cts, out_dims, trace)
        results = []
        for pair, d, v in zip(pairs, dims[n:], values[n:]):
            if pair is None:
                results.append(Zero(typeof(v).tangent_aval()))
            elif d is not None:
                results.append(move_axis(*pair, d, axis.size))
            else:
                ct, ct_dim = pair
                results.append(ct if ct_dim is None else sum_axis(ct, ct_dim))
        return pairs.replaced(results) if type(pairs) is not list else results

    _copy_mark(bwd, custom.bwd)
    inner = CustomVJP(fun, fwd, bwd, custom.name, custom.symbolic_zeros, None, n)
    with set_trace(trace.parent):
        outs = inner.call(values)
    return trace.wrap(outs, out_dims)


def _batched_bwd(
    bwd, axis, residuals, res_dims, cts, ct_dims, resumes=None
) -> list[tuple[Any, int | None] | None]:
    """Call a backward rule on batches.

    Returns:
      For each argument its cotangent and the mapped axis, or ``None`` for a zero.
    """
    k = len(residuals)
    zeros = [
        SymbolicZero(_unbatched(c.aval, d)) if type(c) is SymbolicZero else None
        for c, d in zip(cts, ct_dims)
    ]

    def run(*xs):
        rest = iter(xs[k:])
        arg_cts = bwd(list(xs[:k]), [next(rest) if z is None else z for z in zeros])
        missing = [type(c) is Zero or type(c) is SymbolicZero for c in arg_cts]
        nonzero = [c for c, m in zip(arg_cts, missing) if not m]
        if type(arg_cts) is list:
            return nonzero, (missing, None)
        leaves, tree = pytree.tree_flatten(arg_cts.logs)
        return [*nonzero, *leaves], (missing, (type(arg_cts), tree))

    nonzero = [(c, d) for c, d, z in zip(cts, ct_dims, zeros) if z is None]
    operands, dims = [*residuals, *(c for c, _ in nonzero)], [*res_dims, *(d for _, d in nonzero)]
    results, result_dims, (missing, logged) = batch_with_aux(
        run, operands, dims, axis, resumes=resumes
    )
    pairs = iter(zip(results, result_dims))
    arg_cts = [None if m else next(pairs) for m in missing]
    if logged is None:
        return arg_cts
    cls, tree = logged
    leaves = [x if d is None else move_axis(x, d, 0, axis.size) for x, d in pairs]
    return cls(arg_cts, pytree.tree_unflatten(tree, leaves))


def _copy_mark(bwd, inner) -> None:
    """Mark a backward rule that calls another one with logs."""
    if hasattr(inner, "logs"):
        bwd.logs = True


def _unbatched(aval, d):
    return aval if d is None else aval.without_axis(d)


@custom_vjp_call_p.rule(lower)
def _lower(ctx, *values, call_jaxpr, **_):
    return lowering.lower_body(ctx, call_jaxpr, values)


def _restricted(params: dict[str, Any], used: tuple[bool, ...]) -> dict[str, Any]:
    fwd, bwd = params["fwd"], params["bwd"]
    avals = [a.tangent_aval() for a in params["call_jaxpr"].out_avals]

    def zero(aval):
        return (
            SymbolicZero(aval) if params["symbolic_zeros"] else as_result(instantiate(Zero(aval)))
        )

    def used_results(*args):
        outs, residuals = fwd(*args)
        return selected(outs, used), residuals

    def with_zeros(residuals, cts):
        rest = iter(cts)
        return bwd(residuals, [next(rest) if u else zero(a) for u, a in zip(used, avals)])

    _copy_mark(with_zeros, bwd)
    return {**params, "fwd": used_results, "bwd": with_zeros}


configure(
    CustomVJP,
    custom_vjp_call_p,
    {
        "name": "name", "call_jaxpr": "jaxpr", "fwd": "fwd", "bwd": "bwd",
        "symbolic_zeros": "symbolic_zeros", "num_consts": "num_consts",
    },
    {JVPTrace: _forward, LinearizeTrace: _linearized, BatchTrace: _batched},
    _restricted,
)  # fmt: skip


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
def _custom_lin_jvp(primals, tangents, **params):
    k = params["num_res"]
    if any(type(t) is not Zero for t in tangents[:k]):
        raise TypeError(f"{_FORWARD_MODE} The function is {params['name']}.")
    # It is linear, so its derivative needs no value, which is evaluated only if it is a result.
    outs = custom_lin_p.bind(*primals, **params)
    dots = custom_lin_p.bind(*primals[:k], *map(instantiate, tangents[k:]), **params)
    return outs, dots


@custom_lin_p.rule(batch)
def _custom_lin_batch(
    axis, args, dims, *, num_res, bwd, out_avals, in_avals, which, symbolic_zeros, name
):
    # Reached when a linearized function is mapped: its backward rule is mapped too.
    res_dims, in_dims = list(dims[:num_res]), list(dims[num_res:])
    size = axis.size
    tangents = [move_axis(t, d, 0, size) for t, d in zip(args[num_res:], in_dims)]

    def batched_bwd(residuals, cts):
        pairs = _batched_bwd(bwd, axis, residuals, res_dims, cts, [0] * len(cts))
        batches = [
            Zero(_batch0(a, size)) if pair is None else move_axis(*pair, 0, size)
            for pair, a in zip(pairs, in_avals)
        ]
        return batches if type(pairs) is list else pairs.replaced(batches)

    _copy_mark(batched_bwd, bwd)
    outs = custom_lin_p.bind(
        *args[:num_res], *tangents, num_res=num_res, bwd=batched_bwd,
        out_avals=tuple(_batch0(a, size) for a in out_avals),
        in_avals=tuple(_batch0(a, size) for a in in_avals), which=which,
        symbolic_zeros=symbolic_zeros, name=name,
    )  # fmt: skip
    return outs, [0] * len(outs)


def _batch0(aval, size: int):
    return aval.with_axis(0, size)


custom_lin_p.unsupported(samples, "it appears in linear jaxprs only, and cannot be evaluated")
