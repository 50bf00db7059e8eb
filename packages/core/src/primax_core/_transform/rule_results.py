"""Checks of what batching and differentiation rules return, against the primitive's own type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._ir import rules as kinds
from .._ir.avals import ShapedArray
from .._ir.jaxpr import Eqn, Jaxpr
from .._ir.placement import transposed
from .._ir.primitive import Primitive
from .._ir.rule_results import (
    check_count,
    check_like,
    check_pair,
    described,
    invalid_result,
    is_list,
    result_avals,
)
from .._ir.rules import RuleKind
from .._trace.core import is_valid_type, placed_like, typeof
from .._trace.staging import infer
from .batching import batched_aval
from .zeros import Zero

Rule = Callable[..., Any]


def _values(
    prim: Primitive, kind: RuleKind[Any], rule: Rule, outs: Any, count: int, what: str
) -> Sequence[Any]:
    """The values of a part of a result: one, or a list for several results."""
    if prim.multiple_results:
        outs = check_count(prim, kind, rule, outs, count, what)
    else:
        outs = [outs]
    for x in outs:
        if type(x) is not Zero and not is_valid_type(x):
            invalid_result(prim, kind, rule, f"returned {described(x)} in place of an array")
    return outs


def batched_results(
    prim: Primitive,
    rule: Rule,
    result: Any,
    params: dict[str, Any],
    avals: Sequence[Any],
    dims: Sequence[int | None],
    size: int,
) -> tuple[list[Any], tuple[int | None, ...]]:
    """The outs of a batch rule and their mapped axes, one for each.

    Args:
      avals, dims: avals of the batched operands, and their mapped axes.
      size: the size of the mapped axis.
    """
    kind = kinds.batch
    outs, out_dims = check_pair(prim, kind, rule, result)
    examples = [a if d is None else example_of(a, d) for a, d in zip(avals, dims)]
    out_avals = infer(prim, examples, params)[0]
    outs = _values(prim, kind, rule, outs, len(out_avals), "results")
    if not prim.multiple_results or out_dims is None or isinstance(out_dims, (int, np.integer)):
        out_dims = [out_dims] * len(outs)
    out_dims = check_count(prim, kind, rule, out_dims, len(outs), "mapped axes")
    out_dims = [int(d) if isinstance(d, np.integer) else d for d in out_dims]
    for out, dim, expected in zip(outs, out_dims, out_avals):
        if dim is not None and type(dim) is not int:
            problem = f"returned {described(dim)} as the mapped axis of a result"
            invalid_result(prim, kind, rule, problem)
        aval = typeof(out)
        if not isinstance(aval, ShapedArray) or not isinstance(expected, ShapedArray):
            continue
        if dim is not None and not 0 <= dim < aval.ndim:
            axes = f"the axes 0 to {aval.ndim - 1}" if aval.ndim else "no axes"
            invalid_result(
                prim, kind, rule,
                f"returned {dim} as the mapped axis of a result of type {aval.str_short()}, which "
                f"has {axes}",
            )  # fmt: skip
        what = "an unbatched result" if dim is None else f"a result with mapped axis {dim}"
        check_like(prim, kind, rule, aval, batched_aval(expected, dim, size), what)
    return list(outs), tuple(out_dims)


def example_of(aval: Any, dim: int) -> Any:
    """The aval of one example of a batch."""
    return aval.without_axis(dim)


def jvp_results(
    prim: Primitive, rule: Rule, result: Any, params: dict[str, Any], avals: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The outs of a jvp rule and their tangents, which may be symbolic zeros."""
    kind = kinds.jvp
    outs, tangents = check_pair(prim, kind, rule, result)
    out_avals = infer(prim, avals, params)[0]
    outs = _values(prim, kind, rule, outs, len(out_avals), "results")
    tangents = _values(prim, kind, rule, tangents, len(out_avals), "tangents")
    placed = []
    for out, tangent, expected in zip(outs, tangents, out_avals):
        if type(out) is Zero:
            invalid_result(prim, kind, rule, f"returned {described(out)} as a result")
        check_like(prim, kind, rule, typeof(out), expected, "a result")
        if isinstance(expected, ShapedArray):
            aval = tangent.aval if type(tangent) is Zero else typeof(tangent)
            check_like(prim, kind, rule, aval, expected.tangent_aval(), "a tangent")
            if type(tangent) is not Zero:
                tangent = placed_like(tangent, expected.tangent_aval())
        placed.append(tangent)
    return list(outs), placed


def linearized_results(
    prim: Primitive,
    rule: Rule,
    result: Any,
    params: dict[str, Any],
    avals: Sequence[Any],
    mask: Sequence[bool],
) -> tuple[list[Any], Jaxpr, Sequence[bool]]:
    """The outs of a linearize rule, its linear jaxpr, and the mask of results with tangents."""
    kind = kinds.linearize
    if not is_list(result) or len(result) != 3:
        invalid_result(prim, kind, rule, f"returned {described(result)}")
    outs, linear, out_mask = result
    out_avals = infer(prim, avals, params)[0]
    n = len(out_avals)
    outs = check_count(prim, kind, rule, outs, n, "results")
    out_mask = check_count(prim, kind, rule, out_mask, n, "marks of results")
    for out, expected in zip(outs, out_avals):
        if not is_valid_type(out):
            invalid_result(prim, kind, rule, f"returned {described(out)} in place of an array")
        check_like(prim, kind, rule, typeof(out), expected, "a result")
    if not isinstance(linear, Jaxpr):
        invalid_result(prim, kind, rule, f"returned {described(linear)} as the linear jaxpr")
    for what, actual, expected in (
        ("arguments", linear.in_avals, [a for a, m in zip(avals, mask) if m]),
        ("results", linear.out_avals, [a for a, m in zip(out_avals, out_mask) if m]),
    ):
        if len(actual) != len(expected):
            invalid_result(
                prim, kind, rule,
                f"returned a linear jaxpr with {len(actual)} {what} for {len(expected)} tangents",
            )  # fmt: skip
        for a, e in zip(actual, expected):
            check_like(
                prim, kind, rule, a, e.tangent_aval(), f"a linear jaxpr with one of its {what}"
            )
    return list(outs), linear, out_mask


def cotangents(
    prim: Primitive, rule: Rule, result: Any, avals: Sequence[Any], linear: Sequence[bool]
) -> list[Any]:
    """The cotangents of the operands, ``None`` for zeros and for operands that are not linear."""
    kind = kinds.transpose
    result = check_count(prim, kind, rule, result, len(avals), "cotangents of operands")
    checked = []
    for i, (ct, aval, is_lin) in enumerate(zip(result, avals, linear)):
        if ct is None or type(ct) is Zero or not is_lin:
            checked.append(None)
            continue
        if not is_valid_type(ct):
            invalid_result(prim, kind, rule, f"returned {described(ct)} in place of an array")
        if isinstance(aval, ShapedArray):
            # A function that is linear in integers may be transposed too.
            actual = typeof(ct)
            expected = aval if actual.dtype == aval.dtype else aval.tangent_aval()
            check_like(prim, kind, rule, actual, expected, f"a cotangent for operand {i}")
            ct = placed_like(ct, transposed(expected))
        checked.append(ct)
    return checked


def remaining_equation(
    eqn: Eqn, rule: Rule, result: Any, used_outputs: Sequence[bool]
) -> Eqn | None:
    """The equation that a dce rule returned, or ``None``."""
    prim, kind = eqn.primitive, kinds.dce
    used, new = check_pair(prim, kind, rule, result)
    used = check_count(prim, kind, rule, used, len(eqn.invars), "marks of operands")
    if new is None:
        return None
    if not isinstance(new, Eqn):
        invalid_result(prim, kind, rule, f"returned {described(new)} as the new equation")
    if any(u and v not in new.outvars for u, v in zip(used_outputs, eqn.outvars)):
        invalid_result(prim, kind, rule, "returned an equation without one of the used results")
    if len(new.invars) != sum(map(bool, used)):
        invalid_result(
            prim, kind, rule,
            f"returned an equation with {len(new.invars)} operands, but marks {sum(used)} as used",
        )  # fmt: skip
    return new


def expansion_results(
    prim: Primitive, rule: Rule, result: Any, params: dict[str, Any], avals: Sequence[Any]
) -> list[Any]:
    """The results of an expand rule, of the types that the abstract rule gives if there is one."""
    kind = kinds.expand
    abstract = prim.rules.get(kinds.abstract)
    if abstract is not None and type(abstract) is not kinds.Unsupported:
        out_avals = result_avals(prim, kinds.abstract, abstract, abstract(*avals, **params))
        outs = _values(prim, kind, rule, result, len(out_avals), "results")
        for out, expected in zip(outs, out_avals):
            check_like(prim, kind, rule, typeof(out), expected, "a result")
        return list(outs)
    if prim.multiple_results and not is_list(result):
        invalid_result(prim, kind, rule, f"returned {described(result)}")
    count = len(result) if prim.multiple_results else 1
    return list(_values(prim, kind, rule, result, count, "results"))
