"""Call primitives with the sub-jaxpr in the parameter ``call_jaxpr``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primax_core import extend
from primax_core.extend import (
    Jaxpr,
    Linear,
    Primitive,
    Zero,
    instantiate,
    is_linear,
    is_zero,
    typeof,
)

from .accumulators import GradAccum, ValAccum

TransposeRule = Callable[..., Any]


def create_call_primitive(name: str, inline_jax_late: bool = True) -> Primitive:
    """Create a primitive that calls the jaxpr ``call_jaxpr`` on its operands.

    Args:
      name: the name printed in jaxprs.
      inline_jax_late: inline the jaxpr at lowering instead of emitting a function.
    """
    prim = Primitive(name, multiple_results=True, cache_on=_cache_of, home=__name__)
    register_call_primitive_rules(prim, inline_jax_late=inline_jax_late)
    return prim


def _cache_of(params: dict[str, Any]) -> dict[Any, Any]:
    cache: dict[Any, Any] = params["call_jaxpr"].cache
    return cache


def register_call_primitive_rules(
    prim: Primitive,
    name: str | None = None,
    transpose_rule: TransposeRule | None = None,
    inline_jax_late: bool = True,
) -> None:
    """Register the rules of a call of ``call_jaxpr`` on a primitive with multiple results.

    The derivatives and batches of a call are calls of the same primitive with derived jaxprs. Other
    parameters are passed on unchanged.

    Args:
      name: the function's name in lowered code; by default the primitive's name.
      transpose_rule: ``(cts, *args, call_jaxpr, **params)``. Each linear operand is a ``GradAccum``
        that receives its cotangent. The default is :func:`eval_jaxpr_transpose`.
      inline_jax_late: inline the jaxpr at lowering instead of emitting a function.
    """
    called_as = name or prim.name

    def types(*avals: Any, call_jaxpr: Jaxpr, **params: Any) -> Any:
        return call_jaxpr.out_avals

    def effects(*avals: Any, call_jaxpr: Jaxpr, **params: Any) -> Any:
        return call_jaxpr.effects

    def expand(*args: Any, call_jaxpr: Jaxpr, **params: Any) -> Any:
        return extend.eval_jaxpr(call_jaxpr, args)

    def lower(ctx: Any, *values: Any, call_jaxpr: Jaxpr, **params: Any) -> Any:
        return ctx.call_jaxpr(call_jaxpr, called_as, values)

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        return _forward(prim, primals, tangents, **params)

    def linearize(primals: Any, mask: Any, **params: Any) -> Any:
        return _linearized(prim, primals, mask, **params)

    def batch(axis: Any, args: Any, dims: Any, *, call_jaxpr: Jaxpr, **params: Any) -> Any:
        batched, out_dims = extend.batch_jaxpr(call_jaxpr, tuple(dims), axis)
        return _bind_call(prim, batched, args, params), list(out_dims)

    def transpose(cts: Any, *args: Any, **params: Any) -> Any:
        operands = [ValAccum(a.aval) if is_linear(a) else a for a in args]
        if transpose_rule is None:
            eval_jaxpr_transpose(prim, cts, *operands, **params)
        else:
            transpose_rule(cts, *operands, **params)
        cotangents = [g.freeze() if isinstance(g, ValAccum) else None for g in operands]
        return [None if c is None or is_zero(c) else c for c in cotangents]

    rules: list[tuple[extend.RuleKind[Any], Callable[..., Any]]] = [
        (extend.abstract, types),
        (extend.effects, effects),
        (extend.expand, expand),
        (extend.jvp, jvp),
        (extend.linearize, linearize),
        (extend.batch, batch),
        (extend.transpose, transpose),
    ]
    for kind, rule in rules:
        prim.rule(kind, override=True)(rule)
    if not inline_jax_late:
        prim.rule(extend.lower, override=True)(lower)


def _forward(
    prim: Primitive, primals: Any, tangents: Any, *, call_jaxpr: Jaxpr, **params: Any
) -> tuple[list[Any], list[Any]]:
    jvp, has = extend.jvp_jaxpr(call_jaxpr, tuple(not is_zero(t) for t in tangents))
    nonzero = [t for t in tangents if not is_zero(t)]
    outs = _bind_call(prim, jvp, [*primals, *nonzero], params)
    n = len(call_jaxpr.outvars)
    rest = iter(outs[n:])
    types = [a.tangent_aval() for a in call_jaxpr.out_avals]
    return outs[:n], [next(rest) if m else Zero(a) for m, a in zip(has, types)]


def _linearized(
    prim: Primitive, primals: Any, mask: Any, *, call_jaxpr: Jaxpr, **params: Any
) -> tuple[list[Any], Jaxpr, Any]:
    linearized = extend.linearize_jaxpr(call_jaxpr, mask)
    results = _bind_call(prim, linearized.forward, primals, params)
    outs, extra = results[: linearized.n_outs], results[linearized.n_outs :]
    if linearized.linear is None:
        ins = [typeof(p).tangent_aval() for p, m in zip(primals, mask, strict=True) if m]
        return outs, extend.stage(lambda *_: [], ins), linearized.out_mask
    sources = {"in": primals, "out": outs, "extra": extra}
    residuals = [sources[where][i] for where, i in linearized.residuals]

    def linear(*dots: Any) -> list[Any]:
        return _bind_call(prim, linearized.linear, [*residuals, *dots], params)

    tangents = linearized.linear.in_avals[len(residuals) :]
    return outs, extend.stage(linear, tangents, prim.name), linearized.out_mask


def eval_jaxpr_transpose(
    prim: Primitive, ct: Sequence[Any], *args: Any, call_jaxpr: Jaxpr, **params: Any
) -> None:
    """Transpose a call: call the transposed jaxpr and accumulate the cotangents.

    Args:
      ct: cotangents of the results; some may be ``Zero``.
      args: the operands: a ``GradAccum`` for each linear operand, otherwise the value.
    """
    linear = [isinstance(a, GradAccum) or is_linear(a) for a in args]
    known = [a for a, lin in zip(args, linear) if not lin]
    nonzero = [c for c in ct if not is_zero(c)]
    mask: list[bool] = []

    def backward(*values: Any) -> list[Any]:
        rest = iter(values)
        operands = [Linear(a.aval) if lin else next(rest) for a, lin in zip(args, linear)]
        cts = [c if is_zero(c) else next(rest) for c in ct]
        cotangents = extend.backward_pass(call_jaxpr, linear, operands, cts)
        mask[:] = [lin and not is_zero(c) for c, lin in zip(cotangents, linear)]
        return [instantiate(c) for c, m in zip(cotangents, mask) if m]

    transposed = extend.stage(backward, [typeof(v) for v in (*known, *nonzero)], prim.name)
    outs = iter(_bind_call(prim, transposed, [*known, *nonzero], params))
    for a, m in zip(args, mask):
        if m:
            a.accum(next(outs))


def _bind_call(
    prim: Primitive, jaxpr: Jaxpr, args: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """Bind the primitive on a jaxpr, with the jaxpr's constants as leading operands."""
    closed = jaxpr
    if jaxpr.constvars:
        closed = jaxpr.replace(constvars=[], consts=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    outs: list[Any] = prim.bind(*jaxpr.consts, *args, **{**params, "call_jaxpr": closed})
    return outs
