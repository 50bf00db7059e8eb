"""Primitives that call a program, which is their parameter ``call_jaxpr``."""

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
    """A primitive that calls the program ``call_jaxpr`` on its operands.

    Args:
      name: the name that jaxprs print.
      inline_jax_late: write the program out where it is lowered, instead of as a function.
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
    """Give a primitive with multiple results the rules of a call of its ``call_jaxpr``.

    Derivatives and batches of a call are calls of the same primitive with other programs; its
    further parameters stay as they are.

    Args:
      name: how the function is called in lowered code; by default as the primitive.
      transpose_rule: ``(cts, *args, call_jaxpr, **params)``, where each operand that the program is
        linear in is a ``GradAccum`` to put its cotangent into; by default
        :func:`eval_jaxpr_transpose`.
      inline_jax_late: write the program out where it is lowered, instead of as a function.
    """
    called_as = name or prim.name

    def types(*avals: Any, call_jaxpr: Jaxpr, **params: Any) -> Any:
        return call_jaxpr.out_avals

    def effects(*avals: Any, call_jaxpr: Jaxpr, **params: Any) -> Any:
        return call_jaxpr.effects

    def expand(*args: Any, call_jaxpr: Jaxpr, **params: Any) -> Any:
        return extend.eval_jaxpr(call_jaxpr, args)

    def lower(ctx: Any, *values: Any, call_jaxpr: Jaxpr, **params: Any) -> Any:
        return ctx.call_program(call_jaxpr, called_as, values)

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        return _forward(prim, primals, tangents, **params)

    def linearize(primals: Any, mask: Any, **params: Any) -> Any:
        return _linearized(prim, primals, mask, **params)

    def batch(axis: Any, args: Any, dims: Any, *, call_jaxpr: Jaxpr, **params: Any) -> Any:
        program, out_dims = extend.batch_jaxpr(call_jaxpr, tuple(dims), axis)
        return _called(prim, program, args, params), list(out_dims)

    def transpose(cts: Any, *args: Any, **params: Any) -> Any:
        given = [ValAccum(a.aval) if is_linear(a) else a for a in args]
        if transpose_rule is None:
            eval_jaxpr_transpose(prim, cts, *given, **params)
        else:
            transpose_rule(cts, *given, **params)
        found = [g.freeze() if isinstance(g, ValAccum) else None for g in given]
        return [None if c is None or is_zero(c) else c for c in found]

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
    program, has = extend.jvp_jaxpr(call_jaxpr, tuple(not is_zero(t) for t in tangents))
    given = [t for t in tangents if not is_zero(t)]
    outs = _called(prim, program, [*primals, *given], params)
    n = len(call_jaxpr.outvars)
    rest = iter(outs[n:])
    types = [a.tangent_aval() for a in call_jaxpr.out_avals]
    return outs[:n], [next(rest) if m else Zero(a) for m, a in zip(has, types)]


def _linearized(
    prim: Primitive, primals: Any, mask: Any, *, call_jaxpr: Jaxpr, **params: Any
) -> tuple[list[Any], Jaxpr, Any]:
    piece = extend.linearize_jaxpr(call_jaxpr, mask)
    found = _called(prim, piece.forward, primals, params)
    outs, extra = found[: piece.n_outs], found[piece.n_outs :]
    if piece.linear is None:
        return outs, extend.stage(list, []), piece.out_mask
    sources = {"in": primals, "out": outs, "extra": extra}
    residuals = [sources[where][i] for where, i in piece.residuals]

    def linear(*dots: Any) -> list[Any]:
        return _called(prim, piece.linear, [*residuals, *dots], params)

    tangents = piece.linear.in_avals[len(residuals) :]
    return outs, extend.stage(linear, tangents, prim.name), piece.out_mask


def eval_jaxpr_transpose(
    prim: Primitive, ct: Sequence[Any], *args: Any, call_jaxpr: Jaxpr, **params: Any
) -> None:
    """The transpose of a call: a call of the transposed program, put into the accumulators.

    Args:
      ct: cotangents of the results; some may be ``Zero``.
      args: the operands: a ``GradAccum`` for each that the program is linear in, else the value.
    """
    linear = [isinstance(a, GradAccum) or is_linear(a) for a in args]
    known = [a for a, lin in zip(args, linear) if not lin]
    given = [c for c in ct if not is_zero(c)]
    made: list[bool] = []

    def backward(*values: Any) -> list[Any]:
        rest = iter(values)
        operands = [Linear(a.aval) if lin else next(rest) for a, lin in zip(args, linear)]
        cts = [c if is_zero(c) else next(rest) for c in ct]
        found = extend.backward_pass(call_jaxpr, linear, operands, cts)
        made[:] = [lin and not is_zero(c) for c, lin in zip(found, linear)]
        return [instantiate(c) for c, m in zip(found, made) if m]

    program = extend.stage(backward, [typeof(v) for v in (*known, *given)], prim.name)
    outs = iter(_called(prim, program, [*known, *given], params))
    for a, m in zip(args, made):
        if m:
            a.accum(next(outs))


def _called(
    prim: Primitive, program: Jaxpr, args: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """Bind the primitive on a program, with the program's constants among the operands."""
    moved = program
    if program.constvars:
        moved = program.replace(
            constvars=[], consts=[], invars=[*program.constvars, *program.invars]
        )
    outs: list[Any] = prim.bind(*program.consts, *args, **{**params, "call_jaxpr": moved})
    return outs
