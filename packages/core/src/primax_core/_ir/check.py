"""The jaxpr checker: the IR is checked after every pass while tests run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base.errors import ErrorWithPage
from . import rules as rule_kinds
from .avals import ShapedArray
from .jaxpr import DropVar, Eqn, Jaxpr, Literal, Var, jaxprs_in
from .placement import is_placed


class JaxprCheckError(ErrorWithPage, TypeError, page=True):
    """A jaxpr is not well formed."""


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that a jaxpr is well formed.

    Every variable is bound once, before its first use. Constants match their variables. The avals
    of results match those of the abstract rules. Sub-jaxprs are well formed too, and accept the
    operands of their equations.

    Args:
      jaxpr: a jaxpr, such as the result of ``make_jaxpr``.

    Returns:
      ``None``.

    Raises:
      JaxprCheckError: with the first ill-formed equation.

    With the option ``enable_checks`` every pass checks its result. Interpreters that build jaxprs
    should call it in their tests.

    >>> from primax_core import lax, make_jaxpr
    >>> from primax_core.extend import check_jaxpr
    >>> jaxpr = make_jaxpr(lambda x: lax.sin(lax.cos(x)))(1.0)
    >>> check_jaxpr(jaxpr)
    >>> try:
    ...     check_jaxpr(jaxpr.replace(eqns=jaxpr.eqns[::-1]))
    ... except Exception as error:
    ...     print(type(error).__name__)
    JaxprCheckError
    """
    bound: set[Any] = set()

    def bind(v: Any, where: str) -> None:
        if not isinstance(v, Var):
            raise JaxprCheckError(f"{where} binds {v!r}, which is not a variable")
        if v in bound:
            raise JaxprCheckError(f"{where} binds {v!r} a second time")
        bound.add(v)

    def read(v: Any, where: str) -> None:
        if type(v) is Literal:
            return
        if v not in bound:
            raise JaxprCheckError(f"{where} reads {v!r}, which is not bound before")

    if jaxpr.cache.get("checked"):
        return
    if len(jaxpr.constvars) != len(jaxpr.consts):
        raise JaxprCheckError(
            f"{len(jaxpr.constvars)} variables of constants for {len(jaxpr.consts)} constants"
        )
    for v, c in zip(jaxpr.constvars, jaxpr.consts):
        bind(v, "the header (constants)")
        constant_aval = getattr(c, "aval", v.aval)
        if not _same(v.aval, constant_aval):
            raise JaxprCheckError(
                f"a constant of type {constant_aval} has a variable of type {v.aval}"
            )
    for v in jaxpr.invars:
        bind(v, "the header (arguments)")
    for i, eqn in enumerate(jaxpr.eqns):
        where = f"equation {i} ({eqn.primitive.name})"
        for v in eqn.invars:
            read(v, where)
        _check_types(eqn, where)
        for sub in jaxprs_in(eqn.params):
            try:
                check_jaxpr(sub)
            except JaxprCheckError as e:
                raise JaxprCheckError(f"in a sub-jaxpr of {where}: {e.args[0]}") from None
        for v in eqn.outvars:
            if type(v) is not DropVar:
                bind(v, where)
    for v in jaxpr.outvars:
        read(v, "the result")
    jaxpr.cache["checked"] = True


def _check_types(eqn: Eqn, where: str) -> None:
    rule = eqn.primitive.find(rule_kinds.abstract)
    if rule is None:
        raise JaxprCheckError(f"{where} has no abstract rule")
    in_avals = [v.aval for v in eqn.invars]
    check = eqn.primitive.rules.get(rule_kinds.check)
    if check is not None:
        try:
            check(*in_avals, **eqn.params)
        except JaxprCheckError as e:
            raise JaxprCheckError(f"{where}: {e.args[0]}") from None
    if rule_kinds.place in eqn.primitive.rules or any(map(is_placed, in_avals)):
        from .placed_types import placed_results

        avals, casts = placed_results(eqn.primitive, rule, in_avals, eqn.params)
        for v, cast in zip(eqn.invars, casts or ()):
            if cast is not None:
                raise JaxprCheckError(
                    f"{where} reads {v!r} of type {v.aval}, whose placement it needs to be cast"
                )
    else:
        out = rule(*in_avals, **eqn.params)
        avals = list(out) if eqn.primitive.multiple_results else [out]
    if len(avals) != len(eqn.outvars):
        raise JaxprCheckError(
            f"{where} has {len(eqn.outvars)} results, but its rule gives {len(avals)}"
        )
    for v, a in zip(eqn.outvars, avals):
        if not _same(v.aval, a):
            raise JaxprCheckError(
                f"{where} claims the type {v.aval} for a result whose type is {a}"
            )


def check_types(what: str, actual: Sequence, expected: Sequence) -> None:
    """Compare the avals of values with those that a jaxpr takes or returns.

    Raises:
      JaxprCheckError: with the values that were compared.
    """
    if len(actual) != len(expected):
        raise JaxprCheckError(f"{what}: {len(actual)} where there must be {len(expected)}")
    for i, (a, b) in enumerate(zip(actual, expected)):
        if not _same(b, a):
            raise JaxprCheckError(f"{what}: number {i} has type {a} where it must have {b}")


def _same(claimed: Any, actual: Any) -> bool:
    """Return True if avals are equal up to weak type: a derived jaxpr may be inlined where an
    operand has no weak type.
    """
    if isinstance(claimed, ShapedArray) and isinstance(actual, ShapedArray):
        return (
            claimed.shape == actual.shape
            and claimed.dtype == actual.dtype
            and claimed.placement is actual.placement
        )
    return claimed == actual
