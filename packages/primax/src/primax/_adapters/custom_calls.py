"""Calls of functions with custom derivatives, in the reference's convention of flat functions.

The reference passes an interpreter the function and its rules as wrapped functions of flat values:
to ``process_custom_jvp_call`` of its trace, or, from an equation, as the parameter ``subfuns``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

import primax_core
from primax_core import extend
from primax_core.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_jvp_call_p,
    custom_vjp_call_p,
)
from primax_core.extend import Primitive, Zero, instantiate, is_zero
from primax_core.tree_util import tree_structure

from .wrapped import StoreException, WrappedFun, wrap_init

CUSTOM_CALLS: Final = (custom_jvp_call_p, custom_vjp_call_p)


def process_custom_call(trace: Any, custom: Any, tracers: Sequence[Any]) -> Sequence[Any]:
    """Process a call in a trace, with flat functions instead of the rules."""
    if hasattr(custom, "rule"):
        outs: Sequence[Any] = trace.process_custom_jvp_call(
            custom_jvp_call_p,
            *_forward_functions(custom),
            tracers,
            symbolic_zeros=custom.symbolic_zeros,
        )
        return outs
    *functions, out_trees = _reverse_functions(custom, [extend.typeof(t) for t in tracers])
    outs = trace.process_custom_vjp_call(
        custom_vjp_call_p,
        *functions,
        tracers,
        out_trees=out_trees,
        symbolic_zeros=custom.symbolic_zeros,
    )
    return outs


def bind_params(prim: Primitive, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a custom call's equation, with its functions as ``subfuns``."""
    jaxpr = params["call_jaxpr"]
    custom = SimpleNamespace(
        fun=lambda *args: [extend.as_result(o) for o in extend.eval_jaxpr(jaxpr, args)], **params
    )
    common = {"symbolic_zeros": params["symbolic_zeros"]}
    if prim is custom_jvp_call_p:
        custom.rule = params["jvp"]
        return {**common, "subfuns": _forward_functions(custom)}
    *functions, out_trees = _reverse_functions(custom, jaxpr.in_avals)
    return {**common, "subfuns": tuple(functions), "out_trees": out_trees}


def _forward_functions(custom: Any) -> tuple[WrappedFun, WrappedFun]:
    n = custom.num_consts

    def jvp(*args: Any) -> list[Any]:
        half = len(args) // 2
        primals, tangents = list(args[:half]), list(args[half:])
        if not custom.symbolic_zeros:
            tangents = [_instantiated(t) for t in tangents]
        outs, dots = custom.rule(primals[n:], tangents[n:])
        return [*outs, *dots]

    return wrap_init(_listed(custom.fun)), wrap_init(jvp)


def _reverse_functions(
    custom: Any, avals: Sequence[Any]
) -> tuple[WrappedFun, WrappedFun, WrappedFun, Callable[[], tuple[Any, Any, list[None]]]]:
    n = custom.num_consts
    trees: list[Any] = []

    def fwd(*flat: Any) -> list[Any]:
        values, perturbed = list(flat[::2])[n:], list(flat[1::2])[n:]
        if custom.symbolic_zeros:
            values = [CustomVJPPrimal(v, p) for v, p in zip(values, perturbed)]
        outs, residuals = custom.fwd(*values)
        n_out, n_residuals = len(outs), len(residuals)
        trees[:] = [_flat_tree(n_out), _flat_tree(n_residuals), [None] * n_residuals]
        return [*residuals, *outs]

    def out_trees() -> tuple[Any, Any, list[None]]:
        if not trees:
            raise StoreException("Store empty")
        return trees[0], trees[1], trees[2]

    def bwd(*flat: Any) -> tuple[list[Any], None]:
        n_residuals = out_trees()[1].num_leaves
        cts = list(flat[n_residuals:])
        if not custom.symbolic_zeros:
            cts = [_instantiated(c) for c in cts]
        cotangents = custom.bwd(list(flat[:n_residuals]), cts)
        types = [a.tangent_aval() for a in avals]
        known = [
            Zero(a) if c is None or type(c) is SymbolicZero else c
            for c, a in zip(cotangents, types[n:])
        ]
        return [*(Zero(a) for a in types[:n]), *known], None

    return wrap_init(_listed(custom.fun)), wrap_init(fwd), wrap_init(bwd), out_trees


def bind_custom_call(prim: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """Apply ``custom_jvp_call`` or ``custom_vjp_call`` to functions operands as ``subfuns``."""
    subfuns: Sequence[WrappedFun] = params["subfuns"]
    symbolic_zeros = params.get("symbolic_zeros", False)
    run = _listed(subfuns[0].call_wrapped)
    if prim is custom_jvp_call_p:
        forward = primax_core.custom_jvp(run)

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            out = list(subfuns[1].call_wrapped(*primals, *tangents))
            half = len(out) // 2
            return out[:half], [_instantiated(t) for t in out[half:]]

        forward.defjvp(rule, symbolic_zeros=symbolic_zeros)
        return list(forward(*args))

    backward = primax_core.custom_vjp(run)

    def fwd(*operands: Any) -> tuple[list[Any], list[Any]]:
        if symbolic_zeros:
            flat = [part for g in operands for part in (g.value, g.perturbed)]
        else:
            flat = [part for g in operands for part in (g, True)]
        out = list(subfuns[1].call_wrapped(*flat))
        n_residuals = params["out_trees"]()[1].num_leaves
        return out[n_residuals:], out[:n_residuals]

    def bwd(residuals: Sequence[Any], cts: Sequence[Any]) -> tuple[Any, ...]:
        cotangents = subfuns[2].call_wrapped(*residuals, *cts)
        if (
            isinstance(cotangents, tuple)
            and len(cotangents) == 2
            and isinstance(cotangents[0], list)
        ):
            cotangents = cotangents[0]
        return tuple(None if is_zero(c) or type(c) is SymbolicZero else c for c in cotangents)

    backward.defvjp(fwd, bwd, symbolic_zeros=symbolic_zeros)
    return list(backward(*args))


def _flat_tree(n: int) -> Any:
    return tree_structure([0] * n)


def _listed(fun: Callable[..., Any]) -> Callable[..., list[Any]]:
    def run(*args: Any) -> list[Any]:
        return list(fun(*args))

    return run


def _instantiated(x: Any) -> Any:
    """Replace a symbolic zero tangent by an array."""
    if type(x) is SymbolicZero:
        x = Zero(x.aval)
    return instantiate(x) if is_zero(x) else x
