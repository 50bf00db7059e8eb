"""Derivative and transpose rules for groups of primitives, functions and jaxprs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import primax_core.extend as core
from primax_core import tree_util
from primax_core.extend import Jaxpr, Linear, Primitive, Zero, add_tangents, typeof
from primax_core.typing import ArrayLike

from .tables import Rule, primitive_jvps, primitive_transposes
from .zeros import instantiate_zeros, is_undefined_primal

add_jaxvals_p: Final[Primitive] = core.add_any_p
"""Primitive that adds two tangents or cotangents of one type."""


def add_jaxvals(x: ArrayLike, y: ArrayLike) -> Any:
    """Add two values of one type as tangents."""
    return add_jaxvals_p.bind(x, y)


def get_primitive_transpose(p: Primitive) -> Rule:
    """Return the transpose rule of a primitive.

    Raises:
      NotImplementedError: if it has none.
    """
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for {p.name!r} not implemented"
        ) from None


# Rules for groups of primitives


def defjvp(primitive: Primitive, *jvprules: Rule | None) -> None:
    """Define one derivative rule per operand for a primitive with one result.

    Args:
      jvprules: ``rule(tangent, *primals, **params)`` for each operand, or ``None`` for an operand
        without derivative.
    """
    primitive_jvps[primitive] = partial(_standard_jvp, primitive, jvprules)


def _standard_jvp(
    prim: Primitive, rules: Sequence[Rule | None], primals: Any, tangents: Any, **params: Any
) -> tuple[Any, Any]:
    out = prim.bind(*primals, **params)
    tangent: Any = Zero.like(out)
    for rule, t in zip(rules, tangents, strict=True):
        if rule is not None and type(t) is not Zero:
            tangent = add_tangents(tangent, rule(t, *primals, **params))
    return out, tangent


def defjvp2(primitive: Primitive, *jvprules: Rule | None) -> None:
    """Define one derivative rule per operand; the rules also receive the result.

    Args:
      jvprules: ``rule(tangent, out, *primals, **params)`` for each operand, or ``None``.
    """
    primitive_jvps[primitive] = partial(_standard_jvp2, primitive, jvprules)


def _standard_jvp2(
    prim: Primitive, rules: Sequence[Rule | None], primals: Any, tangents: Any, **params: Any
) -> tuple[Any, Any]:
    out = prim.bind(*primals, **params)
    tangent: Any = Zero.like(out)
    for rule, t in zip(rules, tangents, strict=True):
        if rule is not None and type(t) is not Zero:
            tangent = add_tangents(tangent, rule(t, out, *primals, **params))
    return out, tangent


def deflinear(primitive: Primitive, transpose_rule: Rule) -> None:
    """Declare a primitive linear in all operands.

    Args:
      transpose_rule: ``rule(ct, **params)`` returns a cotangent for each operand.
    """
    deflinear2(primitive, lambda ct, *operands, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Rule) -> None:
    """As :func:`deflinear`, but with ``rule(ct, *operands, **params)``."""

    def transpose(cts: Any, *operands: Any, **params: Any) -> Any:
        cotangents = cts if primitive.multiple_results else [cts]
        if all(type(c) is Zero for c in cotangents):
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in operands]
        return transpose_rule(cts, *operands, **params)

    primitive_jvps[primitive] = partial(_linear_jvp, primitive)
    primitive_transposes[primitive] = transpose


def _linear_jvp(prim: Primitive, primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    out = prim.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents):
        if prim.multiple_results:
            return out, [Zero.like(o) for o in out]
        return out, Zero.like(out)
    return out, prim.bind(*map(instantiate_zeros, tangents), **params)


def defbilinear(prim: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Declare a primitive linear in each of its two operands.

    Args:
      lhs_rule, rhs_rule: ``rule(ct, x, y, **params)`` returns the cotangent of the first or second
        operand, which is then an ``UndefinedPrimal``.
    """

    def left(t: Any, x: Any, y: Any, **params: Any) -> Any:
        return prim.bind(t, y, **params)

    def right(t: Any, x: Any, y: Any, **params: Any) -> Any:
        return prim.bind(x, t, **params)

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        if is_undefined_primal(x) == is_undefined_primal(y):
            raise ValueError(
                f"{prim.name} is linear in one operand at a time, and is transposed with "
                f"respect to {'both' if is_undefined_primal(x) else 'none'}"
            )
        if is_undefined_primal(x):
            return [Zero(x.aval) if type(ct) is Zero else lhs_rule(ct, x, y, **params), None]
        return [None, Zero(y.aval) if type(ct) is Zero else rhs_rule(ct, x, y, **params)]

    defjvp(prim, left, right)
    primitive_transposes[prim] = transpose


# Functions and jaxprs


def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    instantiate: bool = True,
    transform_stack: bool = True,
) -> tuple[Any, ...]:
    """Run a function in forward mode; return its results and their tangents.

    Args:
      fun: a function from values (positional) to a pytree of values; with ``has_aux`` to a pair of
        such a pytree and an auxiliary output.
      primals, tangents: sequences of values; a tangent may be ``Zero``.
      instantiate: whether zero tangents become arrays or stay ``Zero``.

    Returns:
      Two pytrees, and with ``has_aux`` the auxiliary output.
    """
    structure: list[Any] = []

    def flat(*args: Any) -> list[Any]:
        out = getattr(fun, "call_wrapped", fun)(*args)
        out, aux = out if has_aux else (out, None)
        leaves, tree = tree_util.tree_flatten(out)
        structure[:] = [tree, tree_util.tree_flatten(aux), len(leaves)]
        return [*leaves, *structure[1][0]]

    nonzero = [None if type(t) is Zero else t for t in tangents]
    outs, dots = core.jvp_of(flat, list(primals), nonzero)
    tree, (_, aux_tree), n = structure
    out_tangents = [Zero.like(o) if t is None else t for o, t in zip(outs[:n], dots[:n])]
    if instantiate:
        out_tangents = [instantiate_zeros(t) for t in out_tangents]
    both = tree.unflatten(outs[:n]), tree.unflatten(out_tangents)
    return (*both, aux_tree.unflatten(outs[n:])) if has_aux else both


def linearize(
    traceable: Callable[..., Any],
    primals_ft: Sequence[Any],
    has_aux: bool = False,
    is_vjp: bool = False,
    in_nzs: Sequence[bool] | None = None,
) -> tuple[Any, ...]:
    """Compute the value of a function, and its linear part as a jaxpr.

    Args:
      traceable: a function from values (positional) to a pytree of values; with ``has_aux`` to a
        pair of such a pytree and an auxiliary output.
      primals_ft: a sequence of values.
      is_vjp: accepted for compatibility.
      in_nzs: which values have tangents; all by default.

    Returns:
      The results; which of them have no tangent; the jaxpr ``(*residuals, *tangents) -> tangents``
      of the others; the residuals; and with ``has_aux`` the auxiliary output.
    """
    structure: list[Any] = []
    primals = list(primals_ft)

    def flat(*args: Any) -> list[Any]:
        out = getattr(traceable, "call_wrapped", traceable)(*args)
        out, aux = out if has_aux else (out, None)
        leaves, tree = tree_util.tree_flatten(out)
        structure[:] = [tree, tree_util.tree_flatten(aux), len(leaves)]
        return [*leaves, *structure[1][0]]

    jaxpr = core.stage(flat, [typeof(p) for p in primals])
    tree, (_, aux_tree), n = structure
    nonzero = (True,) * len(primals) if in_nzs is None else tuple(in_nzs)
    mask = (*(False for _ in jaxpr.constvars), *nonzero)
    values = [*jaxpr.consts, *primals]
    invars = [*jaxpr.constvars, *jaxpr.invars]
    linearized = core.linearize_jaxpr(jaxpr.replace(constvars=[], consts=[], invars=invars), mask)
    results = [core.as_result(x) for x in core.eval_jaxpr(linearized.forward, values)]
    outs, extra = results[: linearized.n_outs], results[linearized.n_outs :]
    sources = {"in": values, "out": outs, "extra": extra}
    residuals = [sources[where][i] for where, i in linearized.residuals]
    linear = linearized.linear
    if linear is None:
        avals = [typeof(p).tangent_aval() for p, g in zip(primals, nonzero) if g]
        linear = core.stage(lambda *ts: [], avals)
    else:
        linear = linear.replace(
            outvars=linear.outvars[: sum(linearized.out_mask[:n])], invars=linear.invars
        )
    zero = [not m for m in linearized.out_mask[:n]]
    result = (tree.unflatten(outs[:n]), zero, linear, residuals)
    return (*result, aux_tree.unflatten(outs[n:])) if has_aux else result


def jvp_jaxpr(
    jaxpr: Jaxpr, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[Jaxpr, list[bool]]:
    """Derive the forward-mode jaxpr; also return which results have tangents.

    The derived jaxpr is ``(*args, *tangents) -> (*outs, *out tangents)``.

    Args:
      nonzeros: which arguments have tangents.
      instantiate: which results get tangents in any case.
    """
    force = instantiate if isinstance(instantiate, bool) else tuple(instantiate)
    derived, mask = core.jvp_jaxpr(jaxpr, tuple(nonzeros), force)
    return derived, list(mask)


def backward_pass(
    jaxpr: Jaxpr,
    transform_stack: Any,
    consts: Sequence[Any],
    primals_in: Sequence[Any],
    cts_in: Sequence[Any],
    *,
    return_logs: bool = False,
) -> list[Any]:
    """Evaluate the transpose of a linear jaxpr.

    Args:
      jaxpr: linear in the arguments that are ``UndefinedPrimal`` in ``primals_in``.
      consts: values of its constants.
      primals_in: the values of the other arguments.
      cts_in: cotangents of its results, arrays or ``Zero``.
      transform_stack, return_logs: accepted for compatibility; no log is written.

    Returns:
      A cotangent for each argument: ``Zero`` for those that have values.
    """
    if consts:
        jaxpr = jaxpr.replace(consts=list(consts))
    linear = [type(p) is Linear for p in primals_in]
    known = [None if is_lin else p for p, is_lin in zip(primals_in, linear)]
    cotangents = core.backward_pass(jaxpr, linear, known, list(cts_in))
    return [
        c if is_lin else Zero(typeof(p).tangent_aval())
        for c, p, is_lin in zip(cotangents, primals_in, linear)
    ]
