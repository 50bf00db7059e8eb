"""Derivative rules that differentiate another function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primax_core import custom_jvp, jvp
from primax_core.custom_derivatives import SymbolicZero


def moving(tangents: Sequence[Any]) -> list[int]:
    """The positions of the operands whose tangents are not known to be zero."""
    return [i for i, t in enumerate(tangents) if not isinstance(t, SymbolicZero)]


def jvp_along(
    fun: Callable[..., Any], primals: Sequence[Any], positions: Sequence[int], dots: Sequence[Any]
) -> Any:
    """The value of a function and its derivative along the operands at some positions."""

    def along(*some: Any) -> Any:
        operands = list(primals)
        for i, x in zip(positions, some, strict=True):
            operands[i] = x
        return fun(*operands)

    return jvp(along, tuple(primals[i] for i in positions), tuple(dots))


def with_derivatives_of(other: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Decorator for a function whose derivatives are those of another one with its values.

    Args:
      other: a function of the same operands, which may be slower.
    """

    def declare(fun: Callable[..., Any]) -> Any:
        function = custom_jvp(fun)

        def _rule(primals: Any, tangents: Any) -> Any:
            positions = moving(tangents)
            return jvp_along(other, primals, positions, [tangents[i] for i in positions])

        function.defjvp(_rule, symbolic_zeros=True)
        return function

    return declare
