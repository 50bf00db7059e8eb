"""``remat_opt``: a forward rule that is replaced by its function if its residuals are unused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from .._base.config import state
from .._ir.check import check_types
from .._ir.jaxpr import Eqn, Jaxpr
from .._ir.primitive import Primitive, abstract, batch, check, dce, effects, jvp, lower
from .._ir.samples import Sample, f32, samples
from .._lower.lazy import lowering
from .._trace.core import call_on, close_over, typeof
from .._trace.staging import stage, stage_with_aux
from .._transform.batching import batch_jaxpr
from .._transform.jvp import jvp_jaxpr
from .._transform.zeros import Zero
from .call import jit_p

remat_opt_p: Final = Primitive(
    "remat_opt", multiple_results=True, cache_on=lambda params: params["fwd_jaxpr"].cache
)


def optimized(fun: Callable, fwd: Callable, args: Sequence) -> tuple[list, list]:
    """Results and residuals of a forward rule; under a trace, one equation.

    Args:
      fun: ``(*args) -> results``.
      fwd: ``(*args) -> (results, residuals)``.
    """
    if state.trace is None:
        return fwd(*args)
    avals = [typeof(a) for a in args]

    def flat(*xs):
        outs, residuals = fwd(*xs)
        return [*residuals, *outs], len(residuals)

    traced, num_res = stage_with_aux(flat, avals, parent=state.trace)
    forward, own = close_over(traced)
    plain, other = close_over(stage(fun, avals, parent=state.trace))
    results = remat_opt_p.bind(
        *own, *other, *args, fwd_jaxpr=_with_all_consts(forward, len(own), plain, len(other), True),
        fun_jaxpr=_with_all_consts(plain, len(other), forward, len(own), False), num_res=num_res,
    )  # fmt: skip
    return results[num_res:], results[:num_res]


def _with_all_consts(jaxpr: Jaxpr, n: int, other: Jaxpr, m: int, first: bool) -> Jaxpr:
    """The jaxpr with leading arguments for the constants of both jaxprs, the forward rule's
    first.
    """
    consts, rest = jaxpr.in_avals[:n], jaxpr.in_avals[n:]
    other_consts = other.in_avals[:m]
    offset = 0 if first else m

    def run(*args):
        return call_on(state.trace, jaxpr, [*args[offset : offset + n], *args[n + m :]])

    return stage(
        run,
        [*consts, *other_consts, *rest] if first else [*other_consts, *consts, *rest],
        jaxpr.debug_info,
    )


@remat_opt_p.rule(abstract)
def _abstract(*avals, fwd_jaxpr, **_):
    return fwd_jaxpr.out_avals


@remat_opt_p.rule(check)
def _check(*avals, fwd_jaxpr, fun_jaxpr, num_res):
    check_types("arguments", avals, fwd_jaxpr.in_avals)
    check_types("arguments", avals, fun_jaxpr.in_avals)
    check_types("results", fwd_jaxpr.out_avals[num_res:], fun_jaxpr.out_avals)


@remat_opt_p.rule(effects)
def _effects(*avals, fwd_jaxpr, **_):
    return fwd_jaxpr.effects


@remat_opt_p.rule(lower)
def _lower(ctx, *values, fwd_jaxpr, **_):
    return lowering.lower_body(ctx, fwd_jaxpr, values)


@remat_opt_p.rule(jvp)
def _jvp(primals, tangents, *, fwd_jaxpr, **_):
    mask = tuple(type(t) is not Zero for t in tangents)
    forward, out_mask = jvp_jaxpr(fwd_jaxpr, mask)
    nonzero = [t for t in tangents if type(t) is not Zero]
    results = call_on(state.trace, forward, [*primals, *nonzero])
    outs, dots = results[: len(out_mask)], iter(results[len(out_mask) :])
    return outs, [next(dots) if m else Zero.like(o) for o, m in zip(outs, out_mask)]


@remat_opt_p.rule(batch)
def _batch(axis, args, dims, *, fwd_jaxpr, fun_jaxpr, num_res):
    _, natural = batch_jaxpr(fwd_jaxpr, tuple(dims), axis)
    _, plain = batch_jaxpr(fun_jaxpr, tuple(dims), axis)
    mapped = [a is not None or b is not None for a, b in zip(natural[num_res:], plain)]
    outs = tuple(0 if m else None for m in mapped)
    out_dims = (*natural[:num_res], *outs)
    results = remat_opt_p.bind(
        *args, fwd_jaxpr=batch_jaxpr(fwd_jaxpr, tuple(dims), axis, out_dims)[0],
        fun_jaxpr=batch_jaxpr(fun_jaxpr, tuple(dims), axis, outs)[0], num_res=num_res,
    )  # fmt: skip
    return results, list(out_dims)


@remat_opt_p.rule(dce)
def _dce(used, eqn):
    n = eqn.params["num_res"]
    if not any(used) and not eqn.effects:
        return [False] * len(eqn.invars), None
    if any(used[:n]):
        return [True] * len(eqn.invars), eqn
    fun = eqn.params["fun_jaxpr"]
    call = Eqn(
        jit_p, eqn.invars, eqn.outvars[n:], {"jaxpr": fun, "name": "fun", "inline": True},
        fun.effects, eqn.source, eqn.ctx,
    )  # fmt: skip
    return jit_p.rules[dce](used[n:], call)


@remat_opt_p.rule(samples)
def _samples():
    def call(x):
        def squared(x):
            return [x * x]

        outs, residuals = optimized(squared, lambda x: (squared(x), [x]), [x])
        return [*outs, *residuals]

    yield Sample(f32(3)).set(call=call)
