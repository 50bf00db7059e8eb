"""Transposition of linear jaxprs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .._base import source
from .._base.config import state
from .._ir import rules as rule_kinds
from .._ir.avals import ShapedArray
from .._ir.jaxpr import DebugInfo, Eqn, Jaxpr, Literal, Var
from .._ir.placement import transposed
from .._ir.primitive import Primitive
from .._ir.rule_results import check_count, code_of
from .._trace.core import bind_on, call_on, placed_like, typeof
from .._trace.interpret import EquationContext
from .._trace.reference_ops import references
from .._trace.staging import stage_with_aux
from .derived import derive, derive_from_jaxpr
from .linearize import Node, Tangent, reachable_nodes
from .zeros import Linear, SymbolicOperandError, Zero, add_tangents, instantiate

always_transposed: Final[set[Primitive]] = set()
"""Primitives that are transposed without cotangents too, if a result depends on them: a user's
backward rule need not return zeros for zeros."""


def run_tape_backwards(tape: Sequence[Node], out_cts: dict[Tangent, Any], ins: Sequence[Tangent]):
    """Cotangents (``None`` for zeros) of a tape's inputs, computed under the current trace."""
    cts: dict[Tangent, Any] = dict(out_cts)
    here = state.name_stack, state.source
    forward, backward = None, here[0]
    reachable: set[Node] | None = None
    try:
        for node in reversed(tape):
            node_cts = [cts.pop(t, None) for t in node.outputs]
            nonzero = [c for c in node_cts if c is not None]
            if not nonzero:
                if all(eqn.primitive not in always_transposed for eqn in node.jaxpr.eqns):
                    continue
                if reachable is None:
                    reachable = reachable_nodes([t for t, c in out_cts.items() if c is not None])
                if node not in reachable:
                    continue
            if node.at is not None:
                if node.at[0] is not forward:
                    from .._ir.name_stack import transposed_scopes

                    forward = node.at[0]
                    backward = transposed_scopes(here[0], forward)
                state.name_stack, state.source = backward, node.at[1]
            if node.backward is not None:
                input_cts = node.backward(node.residuals, node_cts)
                pairs = [(t, c) for t, c in zip(node.inputs, input_cts) if c is not None]
            else:
                n = len(node.residuals)
                linear = (False,) * n + (True,) * len(node.inputs)
                ct_types = tuple([None if c is None else typeof(c) for c in node_cts])
                jaxpr, out_mask = transpose_jaxpr(node.jaxpr, linear, ct_types)
                input_cts = iter(call_on(state.trace, jaxpr, [*node.residuals, *nonzero]))
                pairs = [(t, next(input_cts)) for t, m in zip(node.inputs, out_mask[n:]) if m]
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
    """Jaxpr ``(*known, *cotangents) -> (*cotangents of the linear inputs)``.

    ``linear`` marks the arguments in which the jaxpr is linear; the others are known. Only results
    marked in ``ct_mask`` have cotangents, of the aval that is the mark or, for ``True``, of the
    tangent aval of the result. The second result marks the arguments with a cotangent (all linear
    ones with ``instantiate_outs``).
    """

    if jaxpr.effects and references.ops.loaded:
        jaxpr = references.ops.without_local_refs(jaxpr)

    def make():
        n_known = linear.count(False)

        def run(*args):
            known_args, nonzero = iter(args[:n_known]), iter(args[n_known:])
            known = [None if is_lin else next(known_args) for is_lin in linear]
            cts = [next(nonzero) if m else Zero(v.aval) for m, v in zip(ct_mask, jaxpr.outvars)]
            input_cts = backward_pass(jaxpr, linear, known, cts)
            if instantiate_outs:
                input_cts = [
                    instantiate(c) if is_lin else c for c, is_lin in zip(input_cts, linear)
                ]
            out_mask = tuple(is_lin and type(c) is not Zero for c, is_lin in zip(input_cts, linear))
            return [c for c, m in zip(input_cts, out_mask) if m], out_mask

        known_avals = [v.aval for v, is_lin in zip(jaxpr.invars, linear) if not is_lin]
        ct_avals = [
            transposed(v.aval.tangent_aval()) if m is True else m
            for v, m in zip(jaxpr.outvars, ct_mask)
            if m
        ]
        return stage_with_aux(run, [*known_avals, *ct_avals], jaxpr.debug_info)

    return derive_from_jaxpr(jaxpr, "transpose", (linear, ct_mask, instantiate_outs), make)


def backward_pass(
    jaxpr: Jaxpr, linear: Sequence[bool], known: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """Cotangents of a jaxpr's linear inputs, under the current trace.

    Equations that do not depend on linear inputs are computed forward first. The others are
    transposed from the last to the first.

    Args:
      jaxpr: a jaxpr that is linear in the marked inputs.
      linear: a bool for each input: True for linear ones.
      known: the values of the other inputs; entries of linear ones are ignored.
      cts: the cotangents of the results, possibly ``Zero``.

    Returns:
      A list with a cotangent for each input, possibly ``Zero``; it is ``Zero`` for inputs that
      are not linear.

    Raises:
      MissingRule: if an operation on linear values has no transpose rule.

    >>> from primax_core import lax, make_jaxpr
    >>> from primax_core.extend.traces import backward_pass
    >>> jaxpr = make_jaxpr(lambda k, x: lax.mul(k, x))(2.0, 3.0)
    >>> float(backward_pass(jaxpr, [False, True], [2.0, None], [1.0])[1])
    2.0
    """
    with EquationContext(jaxpr) as context:
        env, linear_vars, linear_eqns = _compute_known(jaxpr, linear, known, context)
        return _backward_pass(jaxpr, linear_eqns, linear_vars, env, cts, context)


def _compute_known(
    jaxpr: Jaxpr, linear: Sequence[bool], known: Sequence[Any], context: EquationContext
) -> tuple[dict[Any, Any], set[Any], list[Eqn]]:
    """Values of the known equations; the variables and equations that depend on linear inputs."""
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
    needed: set[Any] | None = None
    for eqn in reversed(linear_eqns):
        out_cts = [ct_env.pop(v, None) for v in eqn.outvars]
        if all(c is None for c in out_cts):
            if eqn.primitive not in always_transposed:
                continue
            if needed is None:
                needed = {v for v in jaxpr.outvars if type(v) is Var}
                for other in reversed(linear_eqns):
                    if not needed.isdisjoint(other.outvars):
                        needed.update(v for v in other.invars if type(v) is Var)
            if needed.isdisjoint(eqn.outvars):
                continue
        context.enter(eqn)
        linear_args = tuple(type(v) is Var and v in linear_vars for v in eqn.invars)
        values = [
            None if is_lin else v if type(v) is Literal else env[v]
            for v, is_lin in zip(eqn.invars, linear_args)
        ]
        for v, ct in zip(eqn.invars, transpose_eqn(eqn, linear_args, values, out_cts)):
            if ct is not None:
                ct_env[v] = add_tangents(ct_env[v], ct) if v in ct_env else ct
    return [ct_env.get(v, Zero(v.aval)) for v in jaxpr.invars]


def transposed_once(linear: Jaxpr, residuals: Sequence, cts: Sequence) -> list:
    """Transpose a linear jaxpr of a single call, operation by operation.

    Compiling and caching its transpose would not pay off.

    Args:
      residuals: values of the leading arguments; the jaxpr is linear in the others.
      cts: cotangents of its results, ``None`` for zeros.

      Returns:
        Cotangents of the linear arguments, ``None`` for zeros.
    """
    n, k = len(residuals), len(linear.invars) - len(residuals)
    out_cts = [Zero(v.aval) if c is None else c for v, c in zip(linear.outvars, cts)]
    known = [*residuals, *[None] * k]
    input_cts = backward_pass(linear, [False] * n + [True] * k, known, out_cts)
    return [None if type(c) is Zero else c for c in input_cts[n:]]


def transpose_eqn(eqn, linear_args: tuple[bool, ...], values: Sequence, cts: Sequence) -> list:
    """Cotangents (or ``None``) of one equation's operands, through its derived jaxpr."""
    prim, params = eqn.primitive, eqn.params
    direct = prim.rules.get(rule_kinds.transpose_direct)
    if direct is not None:
        avals = [v.aval for v in eqn.invars]
        result = direct(cts, values, linear_args, avals, **params)
        kind = rule_kinds.transpose_direct
        cotangents = check_count(prim, kind, direct, result, len(avals), "cotangents of operands")
        return [
            placed_like(c, transposed(a)) if c is not None and type(a) is ShapedArray else c
            for c, a in zip(cotangents, avals)
        ]
    avals = tuple(
        v.aval if is_lin else typeof(x) for v, x, is_lin in zip(eqn.invars, values, linear_args)
    )
    ct_types = tuple(None if c is None else typeof(c) for c in cts)
    out_avals = tuple(v.aval for v in eqn.outvars)
    try:
        jaxpr, out_mask = transpose_primitive(prim, params, avals, linear_args, out_avals, ct_types)
    except SymbolicOperandError as e:
        raise _not_linear(eqn, linear_args, e) from None
    operands = [v for v, is_lin in zip(values, linear_args) if not is_lin]
    operands.extend(c for c in cts if c is not None)
    nonzero = iter(call_on(state.trace, jaxpr, operands))
    return [next(nonzero) if m else None for m in out_mask]


def _not_linear(
    eqn: Eqn, linear_args: Sequence[bool], error: SymbolicOperandError
) -> SymbolicOperandError:
    """The error about a transpose rule that reads a linear operand: the rule's own error if another
    package wrote it, otherwise an error about the equation."""
    rule = eqn.primitive.find(rule_kinds.transpose)
    code = None if rule is None else code_of(rule)
    if code is None or not source.is_internal(code):
        return error
    operands = ", ".join(str(i) for i, is_lin in enumerate(linear_args) if is_lin)
    return SymbolicOperandError(
        f"{eqn.primitive.name}, on line {source.summarize(eqn.source)}, is not linear in its "
        f"operands {operands}, so it cannot be transposed. A jvp rule must be linear in its "
        "tangents: the tangents may be scaled by functions of the primals and added, but not "
        "multiplied with each other."
    )


def transpose_primitive(prim, params, avals, linear_args, out_avals, ct_types):
    """Jaxpr ``(*known operands, *cotangents) -> cotangents`` of one operation."""

    def make():
        from .rule_results import cotangents  # loaded with the first rule

        rule = prim.require(rule_kinds.transpose, "reverse-mode differentiation")

        def run(*args):
            operands_and_cts = iter(args)
            operands = [
                Linear(a) if is_lin else next(operands_and_cts)
                for a, is_lin in zip(avals, linear_args)
            ]
            cts = [next(operands_and_cts) if m else Zero(a) for m, a in zip(ct_types, out_avals)]
            result = rule(cts if prim.multiple_results else cts[0], *operands, **params)
            input_cts = cotangents(prim, rule, result, avals, linear_args)
            out_mask = tuple(c is not None for c in input_cts)
            return [c for c in input_cts if c is not None], out_mask

        known = [a for a, is_lin in zip(avals, linear_args) if not is_lin]
        avals_in = [*known, *(a for a in ct_types if a is not None)]
        return stage_with_aux(run, avals_in, DebugInfo("transpose", prim.name))

    return derive("transpose", prim, params, (avals, linear_args, out_avals, ct_types), make)
