"""Discharge: conversion of jaxprs with references to jaxprs without.

The result of an equation that reads or writes references takes their contents instead, and returns
the new contents as additional results. A local reference becomes a value that is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from .._base.config import state
from .._ir import rules as rule_kinds
from .._ir.jaxpr import Eqn, Jaxpr
from .._ir.primitive import Primitive, discharge as discharge_kind
from .._ir.ref_types import AbstractRef, is_ref, local_ref_effect
from .._ir.rule_results import check_count, check_pair, described, invalid_result, is_list
from .._trace.core import typeof
from .._trace.interpret import eval_jaxpr, interpret
from .._trace.staging import StagingTrace, stage_with_aux
from .._transform.derived import derive_from_jaxpr
from .._transform.expansion import expanded
from .call import call_jaxpr as call_jaxpr_of, jit_p
from .custom_jvp import custom_jvp_call_p
from .custom_vjp import custom_vjp_call_p
from .remat import remat_p

Refs = tuple[int | None, ...]
"""For each operand ``None``, or the number of the discharged reference. Operands with the same
number are the same reference.
"""


class Discharged(NamedTuple):
    """A jaxpr without references.

    Attributes:
      jaxpr: takes the contents of each reference once, at the position of its first appearance. The
        final contents of the written references follow its results.
      written: the numbers of the written references.
    """

    jaxpr: Jaxpr
    written: tuple[int, ...]


class _Cell:
    """Contents of a reference during discharge."""

    __slots__ = ("value", "written")

    def __init__(self, value: Any):
        self.value = value
        self.written = False


def needs_discharge(jaxpr: Jaxpr) -> bool:
    """Return True if a jaxpr creates references."""
    return bool(jaxpr.effects) and local_ref_effect in jaxpr.effects


def discharged(jaxpr: Jaxpr, refs: Refs) -> Discharged:
    """The jaxpr without its local references and its numbered reference arguments."""
    if all(r is None for r in refs) and not needs_discharge(jaxpr):
        return Discharged(jaxpr, ())

    def make():
        types: list[Any] = jaxpr.in_avals
        avals = [t if r is None else t.inner_aval for t, r in zip(types, refs)]

        def run(*args):
            cells: dict[int, _Cell] = {}
            operands = iter(args)
            values = []
            for r in refs:
                if r is not None and r not in cells:
                    cells[r] = _Cell(next(operands))
                values.append(next(operands) if r is None else cells[r])
            outs = interpret(jaxpr, values, _discharge_eqn)
            written = tuple(r for r, cell in cells.items() if cell.written)
            return [*outs, *(cells[r].value for r in written)], written

        return Discharged(*stage_with_aux(run, distinct(refs, avals), jaxpr.debug_info))

    return derive_from_jaxpr(jaxpr, "discharge", (refs, discharge_kind.version), make)


def _discharge_eqn(eqn: Eqn, values: list[Any]) -> Sequence[Any]:
    """The results of one equation on cells and values, in the jaxpr under construction."""
    if (
        any(type(x) is _Cell for x in values)
        or local_ref_effect in eqn.effects
        or any(is_ref(v.aval) for v in eqn.outvars)
    ):
        return _without_refs(eqn, values)
    trace: StagingTrace = state.trace
    out = trace.emit(eqn.primitive, values, eqn.params)
    return out if eqn.primitive.multiple_results else (out,)


def _without_refs(eqn: Eqn, values: Sequence[Any]) -> list[Any]:
    numbers: dict[int, int] = {}
    refs = tuple(
        numbers.setdefault(id(x), len(numbers)) if type(x) is _Cell else None for x in values
    )
    args = [x.value if type(x) is _Cell else x for x in values]
    outs, new = apply_rule(eqn.primitive, refs, args, eqn.params)
    for x, value in zip(values, new):
        if value is not None:
            x.value = value
            x.written = True
    return [_Cell(o) if is_ref(v.aval) else o for v, o in zip(eqn.outvars, outs)]


def apply_rule(
    prim: Primitive, refs: Refs, args: Sequence[Any], params: dict[str, Any]
) -> tuple[list[Any], Sequence[Any]]:
    """A list of results of an operation on the contents of references, and their new contents."""
    rule = prim.find(rule_kinds.discharge)
    if rule is None and all(r is None for r in refs):
        # Only its sub-jaxprs create references.
        out = prim.bind(*args, **{k: _without(v) for k, v in params.items()})
        return (list(out) if prim.multiple_results else [out]), [None] * len(args)
    rule = prim.require(rule_kinds.discharge, "the compilation of a jaxpr with references")
    kind = rule_kinds.discharge
    outs, new = check_pair(prim, kind, rule, rule(refs, args, **params))
    if prim.multiple_results and not is_list(outs):
        invalid_result(prim, kind, rule, f"returned {described(outs)} as results")
    new = check_count(prim, kind, rule, new, len(args), "new values of operands")
    return (list(outs) if prim.multiple_results else [outs]), new


def _without(value: Any) -> Any:
    """A parameter with its sub-jaxprs free of local references."""
    if type(value) is Jaxpr:
        return without_local_refs(value)
    return tuple(map(_without, value)) if type(value) is tuple else value


def distinct(refs: Refs, values: Sequence[Any]) -> list[Any]:
    """Operands without repeated references."""
    seen: set[int] = set()
    operands = []
    for r, x in zip(refs, values):
        if r is None or r not in seen:
            operands.append(x)
        if r is not None:
            seen.add(r)
    return operands


def placed(refs: Refs, written: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """New contents in the form of a discharge rule: one for each operand, or ``None``."""
    new: dict[int | None, Any] = dict(zip(written, values))
    return [new.pop(r, None) if r is not None else None for r in refs]


def discharge_jaxpr(jaxpr: Jaxpr, should_discharge: bool | Sequence[bool] = True) -> Jaxpr:
    """The jaxpr without references: they become arrays and additional results.

    Args:
      jaxpr: a jaxpr without references among its constants.
      should_discharge: for each argument, or for all: ``True`` discharges it if it is a reference.

    Returns:
      A jaxpr that takes the contents of the discharged references in place of the references. The
      final contents, one result for each reference, follow its results. Local references are
      discharged too.

    Raises:
      MissingRule: with the name of a primitive that takes a reference and has no ``discharge``
        rule.
      ValueError: if constants of the jaxpr are references.

    >>> import numpy as np
    >>> from primax_core import make_jaxpr, new_ref
    >>> def double(ref):
    ...     ref[...] = ref[...] * 2.0
    >>> print(discharge_jaxpr(make_jaxpr(double)(new_ref(np.float32(1.0)))))
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    if any(is_ref(v.aval) for v in jaxpr.constvars):
        raise ValueError(
            "cannot discharge a jaxpr with references among its constants: pass the references as "
            "arguments of the traced function"
        )
    n = len(jaxpr.invars)
    marks = [should_discharge] * n if isinstance(should_discharge, bool) else should_discharge
    refs = tuple(
        i if m and is_ref(v.aval) else None
        for i, (v, m) in enumerate(zip(jaxpr.invars, marks, strict=True))
    )
    if all(r is None for r in refs) and not needs_discharge(jaxpr):
        return jaxpr
    result, written = discharged(jaxpr, refs)
    n_outs = len(jaxpr.outvars)
    last = dict(zip(written, result.outvars[n_outs:]))
    finals = [last.get(r, result.invars[r]) for r in refs if r is not None]
    return result.replace(outvars=[*result.outvars[:n_outs], *finals])


def for_lowering(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr without its local references, ready for compilation.

    Raises:
      ValueError: if an argument or a constant is a reference.
    """
    for v in (*jaxpr.invars, *jaxpr.constvars):
        if is_ref(v.aval):
            raise ValueError(
                f"the jaxpr of {jaxpr.debug_info.func_src_info} takes a reference of type "
                f"{v.aval} and cannot be lowered separately: convert it to a jaxpr of arrays with "
                "`extend.discharge_jaxpr`"
            )
    return without_local_refs(jaxpr)


def without_local_refs(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr without its local references."""
    return discharged(jaxpr, (None,) * len(jaxpr.invars)).jaxpr


# Rules of call primitives


def _split(jaxpr: Jaxpr, refs: Refs, result: Discharged, outs: Sequence[Any]):
    n = len(jaxpr.outvars)
    return list(outs[:n]), placed(refs, result.written, outs[n:])


@jit_p.rule(discharge_kind)
def _jit_discharge(refs, args, *, jaxpr, **params):
    result = discharged(jaxpr, refs)
    outs = call_jaxpr_of(result.jaxpr, distinct(refs, args), params)
    return _split(jaxpr, refs, result, outs)


@remat_p.rule(discharge_kind)
def _remat_discharge(refs, args, *, jaxpr, **params):
    result = discharged(jaxpr, refs)
    outs = remat_p.bind(*distinct(refs, args), jaxpr=result.jaxpr, **params)
    return _split(jaxpr, refs, result, outs)


def _custom(prim: Primitive) -> None:
    @prim.rule(discharge_kind)
    def _discharge(refs, args, *, call_jaxpr, **params):
        result = discharged(call_jaxpr, refs)
        operands = distinct(refs, args)
        if all(r is None for r in refs) and not any(is_ref(typeof(a)) for a in args):
            # Only the local references of the function are removed: the custom rules still apply.
            return prim.bind(*operands, call_jaxpr=result.jaxpr, **params), [None] * len(args)
        # Its rules take references: they are used before the discharge, or not at all.
        like = {"name": params["name"], "inline": False, "donated": ()}
        return _split(call_jaxpr, refs, result, call_jaxpr_of(result.jaxpr, operands, like))


_custom(custom_jvp_call_p)
_custom(custom_vjp_call_p)


# Primitives with an expansion


@discharge_kind.falls_back
def _discharge_fallback(prim: Primitive) -> Callable[..., Any] | None:
    return partial(_by_expansion, prim) if prim.find(rule_kinds.expand) is not None else None


def _by_expansion(prim: Primitive, refs: Refs, args: Sequence[Any], **params: Any) -> Any:
    avals = [typeof(a) if r is None else AbstractRef(typeof(a)) for a, r in zip(args, refs)]
    jaxpr = expanded(prim, avals, params)
    assert jaxpr is not None
    result = discharged(jaxpr, refs)
    outs, new = _split(jaxpr, refs, result, eval_jaxpr(result.jaxpr, distinct(refs, args)))
    return (outs if prim.multiple_results else outs[0]), new
