"""Discharge: programs with references as programs without.

An equation that reads or writes references takes what they hold instead, and gives what they hold
afterwards as further results; a reference that a program makes is a value that changes.
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
"""For each operand ``None``, or the number of the reference that is discharged; operands with one
number are the same reference."""


class Discharged(NamedTuple):
    """A program without references.

    Attributes:
      jaxpr: takes what the references hold, each once, in the place where it first stood. After its
        results it gives what those that were written hold at the end.
      written: the numbers of those.
    """

    jaxpr: Jaxpr
    written: tuple[int, ...]


class _Cell:
    """What a reference holds while a program is rewritten."""

    __slots__ = ("value", "written")

    def __init__(self, value: Any):
        self.value = value
        self.written = False


def needs_discharge(jaxpr: Jaxpr) -> bool:
    """Whether a program makes references of its own."""
    return bool(jaxpr.effects) and local_ref_effect in jaxpr.effects


def discharged(jaxpr: Jaxpr, refs: Refs) -> Discharged:
    """The program without the references among its arguments that have numbers, and without those
    that it makes."""
    if all(r is None for r in refs) and not needs_discharge(jaxpr):
        return Discharged(jaxpr, ())

    def make():
        types: list[Any] = jaxpr.in_avals
        avals = [t if r is None else t.inner_aval for t, r in zip(types, refs)]

        def run(*args):
            cells: dict[int, _Cell] = {}
            given = iter(args)
            values = []
            for r in refs:
                if r is not None and r not in cells:
                    cells[r] = _Cell(next(given))
                values.append(next(given) if r is None else cells[r])
            outs = interpret(jaxpr, values, _discharge_eqn)
            written = tuple(r for r, cell in cells.items() if cell.written)
            return [*outs, *(cells[r].value for r in written)], written

        return Discharged(*stage_with_aux(run, distinct(refs, avals), jaxpr.debug_info))

    return derive_from_jaxpr(jaxpr, "discharge", (refs, discharge_kind.version), make)


def _discharge_eqn(eqn: Eqn, values: list[Any]) -> Sequence[Any]:
    """The results of one equation on cells and values, in the jaxpr that is written."""
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
    """A list of results of an operation on what references hold, and their new contents."""
    rule = prim.find(rule_kinds.discharge)
    if rule is None and all(r is None for r in refs):
        # Only programs that it holds make references.
        out = prim.bind(*args, **{k: _without(v) for k, v in params.items()})
        return (list(out) if prim.multiple_results else [out]), [None] * len(args)
    rule = prim.require(rule_kinds.discharge, "a program that is compiled with references")
    outs, new = rule(refs, args, **params)
    return (list(outs) if prim.multiple_results else [outs]), new


def _without(value: Any) -> Any:
    """A parameter whose programs make no references."""
    if type(value) is Jaxpr:
        return without_local_refs(value)
    return tuple(map(_without, value)) if type(value) is tuple else value


def distinct(refs: Refs, values: Sequence[Any]) -> list[Any]:
    """Operands without the second and later appearances of a reference."""
    seen: set[int] = set()
    found = []
    for r, x in zip(refs, values):
        if r is None or r not in seen:
            found.append(x)
        if r is not None:
            seen.add(r)
    return found


def placed(refs: Refs, written: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """New contents as a discharge rule gives them: one for each operand, ``None`` for none."""
    new: dict[int | None, Any] = dict(zip(written, values))
    return [new.pop(r, None) if r is not None else None for r in refs]


def discharge_jaxpr(jaxpr: Jaxpr, should_discharge: bool | Sequence[bool] = True) -> Jaxpr:
    """The program without references: they become arrays, and further results.

    Args:
      jaxpr: a program whose constants are no references.
      should_discharge: for each argument whether it is discharged, where it is a reference; the
        others stay references.

    Returns:
      A program that takes what the discharged references hold, in their places, and gives after its
      results what they hold at the end, one result for each. References that the program makes
      are discharged too.

    Raises:
      MissingRule: naming a primitive that takes a reference and has no rule of kind ``discharge``.
      ValueError: if constants of the program are references.

    >>> import numpy as np
    >>> from primax_core import make_jaxpr, new_ref
    >>> def double(ref):
    ...     ref[...] = ref[...] * 2.0
    >>> print(discharge_jaxpr(make_jaxpr(double)(new_ref(np.float32(1.0)))))
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    if any(is_ref(v.aval) for v in jaxpr.constvars):
        raise ValueError(
            "cannot discharge a program whose constants are references: pass them as arguments to "
            "the function that the program is made of"
        )
    n = len(jaxpr.invars)
    marks = [should_discharge] * n if isinstance(should_discharge, bool) else should_discharge
    refs = tuple(
        i if m and is_ref(v.aval) else None
        for i, (v, m) in enumerate(zip(jaxpr.invars, marks, strict=True))
    )
    if all(r is None for r in refs) and not needs_discharge(jaxpr):
        return jaxpr
    program, written = discharged(jaxpr, refs)
    n_outs = len(jaxpr.outvars)
    last = dict(zip(written, program.outvars[n_outs:]))
    finals = [last.get(r, program.invars[r]) for r in refs if r is not None]
    return program.replace(outvars=[*program.outvars[:n_outs], *finals])


def for_lowering(jaxpr: Jaxpr) -> Jaxpr:
    """The program without the references that it makes, for a compiler.

    Raises:
      ValueError: if it takes references.
    """
    for v in (*jaxpr.invars, *jaxpr.constvars):
        if is_ref(v.aval):
            raise ValueError(
                f"the program of {jaxpr.debug_info.func_src_info} takes a reference of type "
                f"{v.aval}, so it cannot be lowered alone: `extend.discharge_jaxpr` makes a "
                "program of arrays of it"
            )
    return without_local_refs(jaxpr)


def without_local_refs(jaxpr: Jaxpr) -> Jaxpr:
    """The program without the references that it makes."""
    return discharged(jaxpr, (None,) * len(jaxpr.invars)).jaxpr


# Rules of the primitives that call a program


def _split(jaxpr: Jaxpr, refs: Refs, found: Discharged, outs: Sequence[Any]):
    n = len(jaxpr.outvars)
    return list(outs[:n]), placed(refs, found.written, outs[n:])


@jit_p.rule(discharge_kind)
def _jit_discharge(refs, args, *, jaxpr, **params):
    found = discharged(jaxpr, refs)
    outs = call_jaxpr_of(found.jaxpr, distinct(refs, args), params)
    return _split(jaxpr, refs, found, outs)


@remat_p.rule(discharge_kind)
def _remat_discharge(refs, args, *, jaxpr, **params):
    found = discharged(jaxpr, refs)
    outs = remat_p.bind(*distinct(refs, args), jaxpr=found.jaxpr, **params)
    return _split(jaxpr, refs, found, outs)


def _custom(prim: Primitive) -> None:
    @prim.rule(discharge_kind)
    def _discharge(refs, args, *, call_jaxpr, **params):
        found = discharged(call_jaxpr, refs)
        given = distinct(refs, args)
        if all(r is None for r in refs) and not any(is_ref(typeof(a)) for a in args):
            # Only the function's own references go; it keeps its rules.
            return prim.bind(*given, call_jaxpr=found.jaxpr, **params), [None] * len(args)
        # Its rules take references: they are used before references are discharged, or never.
        like = {"name": params["name"], "inline": False, "donated": ()}
        return _split(call_jaxpr, refs, found, call_jaxpr_of(found.jaxpr, given, like))


_custom(custom_jvp_call_p)
_custom(custom_vjp_call_p)


# Others that stand for a program.


@discharge_kind.falls_back
def _discharge_fallback(prim: Primitive) -> Callable[..., Any] | None:
    return partial(_by_expansion, prim) if prim.find(rule_kinds.expand) is not None else None


def _by_expansion(prim: Primitive, refs: Refs, args: Sequence[Any], **params: Any) -> Any:
    avals = [typeof(a) if r is None else AbstractRef(typeof(a)) for a, r in zip(args, refs)]
    program = expanded(prim, avals, params)
    assert program is not None
    found = discharged(program, refs)
    outs, new = _split(program, refs, found, eval_jaxpr(found.jaxpr, distinct(refs, args)))
    return (outs if prim.multiple_results else outs[0]), new
