"""Transposition: linear programs, backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base.config import state
from .._ir import rules as rule_kinds
from .._ir.jaxpr import DebugInfo, Eqn, Jaxpr, Literal, Var
from .._trace.core import bind_on, call_on, typeof
from .._trace.interpret import EquationContext
from .._trace.reference_ops import references
from .._trace.staging import stage_with_aux
from .derived import derive, derive_from_jaxpr
from .linearize import Node, Tangent
from .zeros import Linear, Zero, add_tangents, instantiate


def run_tape_backwards(tape: Sequence[Node], out_cts: dict[Tangent, Any], ins: Sequence[Tangent]):
    """Cotangents (``None`` where zero) of a tape's inputs, computed under the current trace."""
    cts: dict[Tangent, Any] = dict(out_cts)
    here = state.name_stack, state.source
    try:
        for node in reversed(tape):
            given = [cts.pop(t, None) for t in node.outputs]
            ct_types = tuple([None if c is None else typeof(c) for c in given])
            if not any(ct_types):
                continue
            if node.at is not None:
                state.name_stack, state.source = node.at
            if node.backward is not None:
                found = node.backward(node.residuals, given)
                pairs = [(t, c) for t, c in zip(node.inputs, found) if c is not None]
            else:
                linear = (False,) * len(node.residuals) + (True,) * len(node.inputs)
                jaxpr, out_mask = transpose_jaxpr(node.jaxpr, linear, ct_types)
                out_mask = out_mask[len(node.residuals) :]
                operands = [*node.residuals, *(c for c in given if c is not None)]
                found = iter(call_on(state.trace, jaxpr, operands))
                pairs = [(t, next(found)) for t, m in zip(node.inputs, out_mask) if m]
            for t, c in pairs:
                old = cts.get(t)
                cts[t] = c if old is None else add_tangents(old, c)
    finally:
        state.name_stack, state.source = here
    return [cts.get(t) for t in ins]


def transpose_jaxpr(
    jaxpr: Jaxpr,
    linear: tuple[bool, ...],
    ct_mask: tuple[Any, ...],
    instantiate_outs: bool = False,
):
    """Program ``(*known, *cotangents) -> (*cotangents of the linear inputs)``.

    ``linear`` marks the arguments that the program is linear in, the others are known. Only results
    marked in ``ct_mask`` have cotangents, of the result's type or of the type that stands as the
    mark. Also returned: which arguments get one (all linear ones with ``instantiate_outs``).
    """

    if jaxpr.effects and references.ops.loaded:
        jaxpr = references.ops.without_local_refs(jaxpr)

    def make():
        n_known = linear.count(False)

        def run(*args):
            known_args, given = iter(args[:n_known]), iter(args[n_known:])
            known = [None if is_lin else next(known_args) for is_lin in linear]
            cts = [next(given) if m else Zero(v.aval) for m, v in zip(ct_mask, jaxpr.outvars)]
            found = backward_pass(jaxpr, linear, known, cts)
            if instantiate_outs:
                found = [instantiate(c) if is_lin else c for c, is_lin in zip(found, linear)]
            out_mask = tuple(is_lin and type(c) is not Zero for c, is_lin in zip(found, linear))
            return [c for c, m in zip(found, out_mask) if m], out_mask

        known_avals = [v.aval for v, is_lin in zip(jaxpr.invars, linear) if not is_lin]
        ct_avals = [
            v.aval.tangent_aval() if m is True else m for v, m in zip(jaxpr.outvars, ct_mask) if m
        ]
        return stage_with_aux(run, [*known_avals, *ct_avals], jaxpr.debug_info)

    return derive_from_jaxpr(jaxpr, "transpose", (linear, ct_mask, instantiate_outs), make)


def backward_pass(
    jaxpr: Jaxpr, linear: Sequence[bool], known: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """Cotangents (maybe ``Zero``) of a program's inputs, under the current trace.

    Equations that do not depend on linear inputs are computed forward first.
    """
    with EquationContext(jaxpr) as context:
        env, linear_vars, linear_eqns = _compute_known(jaxpr, linear, known, context)
        return _backward_pass(jaxpr, linear_eqns, linear_vars, env, cts, context)


def _compute_known(
    jaxpr: Jaxpr, linear: Sequence[bool], known: Sequence[Any], context: EquationContext
) -> tuple[dict[Any, Any], set[Any], list[Eqn]]:
    """Values of what does not depend on linear inputs; the variables and equations that do."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, jaxpr.consts))
    linear_vars: set[Any] = set()
    for v, is_lin, value in zip(jaxpr.invars, linear, known):
        if is_lin:
            linear_vars.add(v)
        else:
            env[v] = value
    linear_eqns = []
    for eqn in jaxpr.eqns:
        if any(v in linear_vars for v in eqn.invars if type(v) is Var):
            linear_vars.update(eqn.outvars)
            linear_eqns.append(eqn)
        else:
            context.enter(eqn)
            values = [v if type(v) is Literal else env[v] for v in eqn.invars]
            outs = bind_on(state.trace, eqn.primitive, values, eqn.params)
            env.update(zip(eqn.outvars, outs))
    return env, linear_vars, linear_eqns


def _backward_pass(
    jaxpr: Jaxpr,
    linear_eqns: Sequence[Eqn],
    linear_vars: set[Any],
    env: dict[Any, Any],
    cts: Sequence[Any],
    context: EquationContext,
) -> list[Any]:
    ct_env: dict[Any, Any] = {}
    for v, ct in zip(jaxpr.outvars, cts):
        if type(v) is Var and v in linear_vars and type(ct) is not Zero:
            ct_env[v] = add_tangents(ct_env[v], ct) if v in ct_env else ct
    for eqn in reversed(linear_eqns):
        given = [ct_env.pop(v, None) for v in eqn.outvars]
        if all(c is None for c in given):
            continue
        context.enter(eqn)
        linear_args = tuple(type(v) is Var and v in linear_vars for v in eqn.invars)
        values = [
            None if is_lin else v if type(v) is Literal else env[v]
            for v, is_lin in zip(eqn.invars, linear_args)
        ]
        for v, ct in zip(eqn.invars, transpose_eqn(eqn, linear_args, values, given)):
            if ct is not None:
                ct_env[v] = add_tangents(ct_env[v], ct) if v in ct_env else ct
    return [ct_env.get(v, Zero(v.aval)) for v in jaxpr.invars]


def transposed_once(linear: Jaxpr, residuals: Sequence, cts: Sequence) -> list:
    """Transpose a linear program that was made for one call: operation by operation, since its
    transpose would be compiled and remembered for nothing.

    Args:
      residuals: values of the program's first arguments; it is linear in the others.
      cts: cotangents of its results, ``None`` where zero. So are those of the others, returned.
    """
    n, k = len(residuals), len(linear.invars) - len(residuals)
    given = [Zero(v.aval) if c is None else c for v, c in zip(linear.outvars, cts)]
    known = [*residuals, *[None] * k]
    found = backward_pass(linear, [False] * n + [True] * k, known, given)
    return [None if type(c) is Zero else c for c in found[n:]]


def transpose_eqn(eqn, linear_args: tuple[bool, ...], values: Sequence, cts: Sequence) -> list:
    """Cotangents (or ``None``) of one equation's operands, through its remembered piece."""
    prim, params = eqn.primitive, eqn.params
    direct = prim.rules.get(rule_kinds.transpose_direct)
    if direct is not None:
        return direct(cts, values, linear_args, [v.aval for v in eqn.invars], **params)
    avals = tuple(
        v.aval if is_lin else typeof(x) for v, x, is_lin in zip(eqn.invars, values, linear_args)
    )
    ct_types = tuple(None if c is None else typeof(c) for c in cts)
    out_avals = tuple(v.aval for v in eqn.outvars)
    jaxpr, out_mask = transpose_primitive(prim, params, avals, linear_args, out_avals, ct_types)
    operands = [v for v, is_lin in zip(values, linear_args) if not is_lin]
    operands.extend(c for c in cts if c is not None)
    found = iter(call_on(state.trace, jaxpr, operands))
    return [next(found) if m else None for m in out_mask]


def transpose_primitive(prim, params, avals, linear_args, out_avals, ct_types):
    """Program ``(*known operands, *cotangents) -> cotangents`` of one operation."""

    def make():
        rule = prim.require(rule_kinds.transpose, "reverse-mode differentiation")

        def run(*args):
            given = iter(args)
            operands = [
                Linear(a) if is_lin else next(given) for a, is_lin in zip(avals, linear_args)
            ]
            cts = [next(given) if m else Zero(a) for m, a in zip(ct_types, out_avals)]
            found = rule(cts if prim.multiple_results else cts[0], *operands, **params)
            found = [None if c is None or type(c) is Zero or not lin else c
                     for c, lin in zip(found, linear_args, strict=True)]  # fmt: skip
            out_mask = tuple(c is not None for c in found)
            return [c for c in found if c is not None], out_mask

        known = [a for a, is_lin in zip(avals, linear_args) if not is_lin]
        avals_in = [*known, *(a for a in ct_types if a is not None)]
        return stage_with_aux(run, avals_in, DebugInfo("transpose", prim.name))

    return derive("transpose", prim, params, (avals, linear_args, out_avals, ct_types), make)
