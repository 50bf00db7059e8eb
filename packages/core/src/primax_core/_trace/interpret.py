"""Evaluation of jaxprs equation by equation, in any domain of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.config import state
from .._ir.jaxpr import Eqn, Jaxpr, Literal


class EquationContext:
    """Named scopes and source locations of a jaxpr's equations while they are evaluated.

    >>> with EquationContext(jaxpr) as context:  # doctest: +SKIP
    ...     for eqn in jaxpr.eqns:
    ...         context.enter(eqn)
    """

    __slots__ = ("located", "location", "scope")

    def __init__(self, jaxpr: Jaxpr, located: bool | None = None):
        # A jaxpr of the library itself keeps the source location of the call.
        self.located: bool = jaxpr.debug_info.filename is not None if located is None else located

    def __enter__(self) -> EquationContext:
        self.scope: tuple[str, ...] = state.name_stack
        self.location: Any = state.source
        return self

    def enter(self, eqn: Eqn) -> None:
        """Make the scopes and the location of an equation current."""
        state.name_stack = self.scope + eqn.ctx if eqn.ctx else self.scope
        if self.located:
            state.source = eqn.source or self.location

    def __exit__(self, *exc: object) -> None:
        state.name_stack, state.source = self.scope, self.location


def interpret(
    jaxpr: Jaxpr,
    args: Sequence[Any],
    step: Callable[[Eqn, list[Any]], Sequence[Any]],
    constant: Callable[[Any], Any] | None = None,
    located: bool | None = None,
) -> list[Any]:
    """Evaluate a jaxpr in the domain of ``step``.

    Args:
      args: values of the domain, one for each argument.
      step: ``(eqn, values) -> values``, the results of one equation.
      constant: the value of the domain for a constant or a literal's value; by default constants
        are values of the domain, and literals are passed on as ``Literal``.
      located: the equations have source locations; by default true if the jaxpr comes from a
      user's function.

    Returns:
      Values of the domain, one for each result.
    """
    consts = jaxpr.consts if constant is None else map(constant, jaxpr.consts)
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))

    def read(v: Any) -> Any:
        if type(v) is Literal:
            return v if constant is None else constant(v.scalar)
        return env[v]

    with EquationContext(jaxpr, located) as context:
        for eqn in jaxpr.eqns:
            context.enter(eqn)
            env.update(zip(eqn.outvars, step(eqn, [read(v) for v in eqn.invars])))
    return [read(v) for v in jaxpr.outvars]


def eval_jaxpr(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Apply the primitives of a jaxpr under the current trace.

    Literals are passed on unchanged: they have weak types, and may be results.
    """
    return interpret(jaxpr, args, apply_equation)


def apply_equation(eqn: Eqn, values: list[Any]) -> Sequence[Any]:
    """The results of an equation under the current trace."""
    out = eqn.primitive.bind(*values, **eqn.params)
    return out if eqn.primitive.multiple_results else (out,)
