"""Tokens as operands and results of native functions.

Values of ``lax.create_token`` are arrays without elements for the core; handlers receive tokens of
StableHLO (``ffi::Token``). An optimization barrier ties one to the other. XLA removes barriers
before it orders calls, so a call receives the tokens of the calls before it, which are found
through barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from primax_core.extend import ShapedArray, lowering
from primax_core.extend.native import abstract_token
from primax_core.lax.tokens import TokenDType

TOKEN: Final = ShapedArray((), TokenDType())
"""The type of ``lax.create_token()``."""


def with_tokens(
    target: str,
    call: Callable[[list[Any], list[Any]], list[Any]],
    operands: Sequence[Any],
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
) -> list[Any]:
    """The results of a call, with tokens of StableHLO in place of the core's.

    Args:
      call: receives the operands and the types of the results.

    Raises:
      NotImplementedError: if the calls before it are not in the same function or loop.
    """
    hlo = lowering.hlo
    values = [
        hlo.after_all(_tokens_before(target, x)) if a == TOKEN else x
        for x, a in zip(operands, in_avals)
    ]
    types = [abstract_token if a == TOKEN else a for a in out_avals]
    outs = call(values, types)
    return [
        hlo.OptimizationBarrierOp([_empty(), x]).results[0] if a == TOKEN else x
        for x, a in zip(outs, out_avals)
    ]


def _tokens_before(target: str, value: Any) -> list[Any]:
    """The tokens of StableHLO that a value of the core's depends on."""
    ir = lowering.ir
    owner = value.owner
    if isinstance(owner, ir.Block):
        if _is_main(owner.owner):  # it is an argument of the program, and present
            return []
        raise NotImplementedError(
            f"a token of the call of {target!r} comes from outside of the loop, branch or function "
            "that contains the call, where XLA does not order calls by it: create the token "
            "inside, or use ordered=True in place of tokens"
        )
    if owner.operation.name != "stablehlo.optimization_barrier":
        return []
    token_type = lowering.hlo.TokenType.get()
    tokens: list[Any] = []
    for operand, result in zip(owner.operation.operands, owner.operation.results):
        if operand.type == token_type:
            tokens.append(result)
        else:
            tokens += _tokens_before(target, operand)
    return tokens


def _is_main(operation: Any) -> bool:
    operation = operation.operation
    return operation.name == "func.func" and str(operation.attributes["sym_name"]) == '"main"'


def _empty() -> Any:
    return lowering.full(np.bool_(False), (0,))
