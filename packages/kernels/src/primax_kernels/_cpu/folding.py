"""Evaluation of jaxprs with known scalars: conditions on them are decided while tracing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primax_core.extend import (
    Eqn,
    Jaxpr,
    Literal,
    evaluate_scalars,
    expanded,
    interpret,
    jit_p,
    stage,
)

Decide = Callable[[Eqn, Sequence[Any]], Any]


def eval_folded(jaxpr: Jaxpr, args: Sequence[Any], decide: Decide | None = None) -> list[Any]:
    """Evaluate a jaxpr; operations on known scalars are computed at once.

    Known scalars are NumPy scalars. A ``cond`` whose predicate is known becomes its branch, and a
    call with a known operand its body.

    Args:
      decide: returns the known result of an equation, a scalar, or ``None``.
    """

    def evaluate(eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
        if decide is not None and (result := decide(eqn, operands)) is not None:
            return [result]
        known = [_is_known(x) for x in operands]
        if operands and all(known) and not any(v.aval.shape for v in eqn.outvars):
            results = _scalars(eqn, operands)
            if results is not None:
                return results
        if eqn.primitive.name == "cond" and known[0]:
            branches = eqn.params["branches"]
            chosen = branches[min(max(int(_value(operands[0])), 0), len(branches) - 1)]
            return eval_folded(chosen, operands[1:], decide)
        if eqn.primitive is jit_p and (any(known) or decide is not None):
            body = expanded(jit_p, [v.aval for v in eqn.invars], eqn.params)
            return eval_folded(body, operands, decide)
        results = eqn.primitive.bind(*operands, **eqn.params)
        return results if eqn.primitive.multiple_results else [results]

    return interpret(jaxpr, args, evaluate)


def scalar_of(x: Any) -> Any:
    """The value of a known scalar, or ``None``."""
    return _value(x) if _is_known(x) else None


def _is_known(x: Any) -> bool:
    return isinstance(x, (np.generic, Literal)) and not np.shape(_value(x))


def _value(x: Any) -> Any:
    return x.scalar if type(x) is Literal else x


def _scalars(eqn: Eqn, operands: Sequence[Any]) -> list[Any] | None:
    """The results on the host; ``None`` if the operation is not supported there."""
    avals = [v.aval for v in eqn.invars]

    def operation(*args: Any) -> Sequence[Any]:
        results = eqn.primitive.bind(*args, **eqn.params)
        return results if eqn.primitive.multiple_results else [results]

    if eqn.effects or any(not hasattr(a, "weak_type") for a in avals):
        return None
    try:
        return evaluate_scalars(stage(operation, avals), [_value(x) for x in operands])
    except (NotImplementedError, TypeError):
        return None
