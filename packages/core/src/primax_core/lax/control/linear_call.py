"""``linear_call``: a linear function with a user-defined transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..._base import pytree
from ..._base.config import state
from ..._base.operand_trees import flatten_operands
from ..._base.pytree import PyTree
from ..._base.source import api_boundary
from ..._engine.results import as_result
from ..._ir.check import check_types
from ..._ir.primitive import (
    Primitive,
    abstract,
    batch,
    check,
    effects,
    jvp,
    lower,
    transpose,
)
from ..._ir.samples import Sample, f32, samples
from ..._lower.lazy import lowering
from ..._trace.core import call_on, typeof
from ..._transform.batching import batch_jaxpr, move_axis
from ..._transform.jvp import jvp_jaxpr
from ..._transform.zeros import Zero, add_tangents, instantiate, is_linear
from ..arithmetic import mul
from ..conversion import convert
from .bodies import trace_body

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten

linear_call_p: Final = Primitive(
    "linear_call", multiple_results=True, cache_on=lambda params: params["jaxprs"][0].cache
)


@api_boundary
def linear_call(
    fun: Callable[..., Any],
    fun_transpose: Callable[..., Any],
    residual_args: PyTree,
    linear_args: PyTree,
) -> Any:
    """``fun(residual_args, linear_args)`` with a user-defined transpose for reverse mode.

    Args:
      fun: function that is linear in its second argument.
      fun_transpose: ``fun_transpose(residual_args, cotangent)`` returns a pytree like
        ``linear_args``. Its transpose is ``fun``.
      residual_args, linear_args: pytrees of arrays.

    Returns:
      The result of ``fun``.

    Raises:
      TypeError: if the transpose returns another structure, or an argument is not callable.
      ValueError: if the transpose returns other shapes or dtypes.

    >>> from primax_core import grad
    >>> scaled = lambda x: linear_call(lambda r, x: x * r, lambda r, ct: 7.0 * ct, 2.0, x)
    >>> float(scaled(3.0)), float(grad(scaled)(3.0))
    (6.0, 7.0)
    """
    for f in (fun, fun_transpose):
        if not callable(f):
            raise TypeError(f"linear_call takes two functions, got {f!r}")
    res = _flatten(residual_args)[0]
    lin, lin_tree = _flatten(linear_args)
    res_avals, lin_avals = [typeof(x) for x in res], [typeof(x) for x in lin]
    in_tree = _flatten((residual_args, linear_args))[1]
    forward = trace_body(fun, in_tree, [*res_avals, *lin_avals], "linear_call")
    out_avals = [a.tangent_aval() for a in forward.jaxpr.out_avals]

    def checked(r, ct):
        out = fun_transpose(r, ct)
        outs, tree = _flatten(out)
        if tree != lin_tree:
            raise TypeError(
                "transpose output pytree structure must match that of linear inputs, got output "
                f"structure {tree} and input structure {lin_tree}."
            )
        for o, a in zip(outs, lin_avals):
            got, expected = typeof(o), a.tangent_aval()
            if got.shape != expected.shape or got.dtype != expected.dtype:
                raise ValueError(
                    f"Expected cotangent type {expected.strip_weak_type()} but got "
                    f"{got.strip_weak_type()}"
                )
        return out

    out = _unflatten(forward.out_tree, list(range(len(out_avals))))
    back_tree = _flatten((residual_args, out))[1]
    backward = trace_body(checked, back_tree, [*res_avals, *out_avals], "linear_call")
    outs = linear_call_p.bind(
        *forward.consts, *backward.consts, *res, *lin,
        jaxprs=(forward.jaxpr, backward.jaxpr),
        num_consts=(len(forward.consts), len(backward.consts)), num_res=len(res),
    )  # fmt: skip
    return _unflatten(forward.out_tree, [as_result(o) for o in outs])


def _split(values: Sequence, num_consts: tuple[int, int], num_res: int) -> tuple[list, ...]:
    """Constants of both jaxprs, residuals, linear operands."""
    a, b = num_consts
    values = list(values)
    return values[:a], values[a : a + b], values[a + b : a + b + num_res], values[a + b + num_res :]


def _typed(values: Sequence, jaxpr: Any) -> list:
    """Tangents or cotangents, converted to the types of a jaxpr's last arguments."""
    avals = jaxpr.in_avals[len(jaxpr.in_avals) - len(values) :]
    return [convert(instantiate(v), a.dtype, a.weak_type) for v, a in zip(values, avals)]


@linear_call_p.rule(abstract)
def _abstract(*avals, jaxprs, **_):
    return jaxprs[0].out_avals


@linear_call_p.rule(check)
def _check(*avals, jaxprs, num_consts, num_res):
    own, _, res, lin = _split(avals, num_consts, num_res)
    check_types("operands", [*own, *res, *lin], jaxprs[0].in_avals)


@linear_call_p.rule(effects)
def _effects(*avals, jaxprs, **_):
    return jaxprs[0].effects


@linear_call_p.rule(lower)
def _lower(ctx, *values, jaxprs, num_consts, num_res):
    own, _, res, lin = _split(values, num_consts, num_res)
    return lowering.lower_body(ctx, jaxprs[0], [*own, *res, *lin])


@linear_call_p.rule(jvp)
def _jvp(primals, tangents, *, jaxprs, num_consts, num_res):
    params = {"jaxprs": jaxprs, "num_consts": num_consts, "num_res": num_res}
    outs = linear_call_p.bind(*primals, **params)
    own, other, res, lin = _split(primals, num_consts, num_res)
    own_t, _, res_t, lin_t = _split(tangents, num_consts, num_res)
    dots: list[Any] = [Zero.like(o) for o in outs]
    if any(type(t) is not Zero for t in lin_t):
        typed = _typed(lin_t, jaxprs[0])
        dots = linear_call_p.bind(*own, *other, *res, *typed, **params)
    mask = tuple(type(t) is not Zero for t in (*own_t, *res_t))
    if any(mask):
        program, out_mask = jvp_jaxpr(jaxprs[0], (*mask, *[False] * len(lin)))
        nonzero = [t for t in (*own_t, *res_t) if type(t) is not Zero]
        more = iter(call_on(state.trace, program, [*own, *res, *lin, *nonzero])[len(outs) :])
        dots = [add_tangents(d, next(more)) if m else d for d, m in zip(dots, out_mask)]
    return outs, dots


@linear_call_p.rule(transpose)
def _transpose(cts, *args, jaxprs, num_consts, num_res):
    own, other, res, lin = _split(args, num_consts, num_res)
    if any(is_linear(x) for x in (*own, *other, *res)):
        raise TypeError("linear_call is linear in its linear arguments only, not in its residuals")
    outs = linear_call_p.bind(
        *other, *own, *res, *_typed(cts, jaxprs[1]), jaxprs=jaxprs[::-1],
        num_consts=num_consts[::-1], num_res=num_res,
    )  # fmt: skip
    cotangents = [c if is_linear(x) else None for c, x in zip(outs, lin)]
    return [*[None] * (len(args) - len(lin)), *cotangents]


@linear_call_p.rule(batch)
def _batch(axis, args, dims, *, jaxprs, num_consts, num_res):
    own, other, res, lin = _split(args, num_consts, num_res)
    own_d, other_d, res_d, lin_d = _split(dims, num_consts, num_res)
    lin = [move_axis(x, d, 0, axis.size) for x, d in zip(lin, lin_d)]
    outs = len(jaxprs[0].outvars)
    programs = tuple(
        batch_jaxpr(jaxpr, (*consts, *res_d, *[0] * n_in), axis, (0,) * n_out)[0]
        for jaxpr, consts, n_in, n_out in (
            (jaxprs[0], own_d, len(lin), outs), (jaxprs[1], other_d, outs, len(lin)),
        )
    )  # fmt: skip
    results = linear_call_p.bind(
        *own, *other, *res, *lin, jaxprs=programs, num_consts=num_consts, num_res=num_res
    )
    return results, [0] * outs


@linear_call_p.rule(samples)
def _samples():
    yield Sample(f32(3), f32(3)).set(call=lambda r, x: linear_call(mul, mul, r, x))
    yield Sample(f32(), f32(2)).set(call=lambda r, x: linear_call(mul, mul, r, x))
