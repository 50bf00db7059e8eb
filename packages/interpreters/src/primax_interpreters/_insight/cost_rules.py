"""Costs of operations: the results of ``cost`` rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from primax_core.extend import Jaxpr, RuleKind


class Run(NamedTuple):
    """A sub-jaxpr that an operation runs.

    Attributes:
      program: a jaxpr.
      times: how often; ``None`` where that depends on values.
    """

    program: Jaxpr
    times: int | None = 1


class Cost(NamedTuple):
    """Cost of one application of a primitive, without its sub-jaxprs.

    Attributes:
      flops: additions, multiplications, divisions and comparisons of floats, a complex one counted
        as the real ones it is made of; ``None`` if unknown.
      special: evaluations of exponentials, logarithms, roots, trigonometric functions and so on.
      bytes: memory read and written; ``None`` stands for all operands and results.
      runs: the programs it runs, all of them.
      one_of: programs of which one runs.
      estimated: whether the figures are estimates, not counts.
    """

    flops: float | None = 0
    special: float = 0
    bytes: int | None = None
    runs: tuple[Run, ...] = ()
    one_of: tuple[Jaxpr, ...] = ()
    estimated: bool = False


cost: Final[RuleKind[Callable[..., Cost]]] = RuleKind(
    "cost",
    "(in_avals, out_avals, **params) -> Cost",
    versioned=True,
    doc="""The cost of an operation, which ``explain`` adds up.

    in_avals, out_avals: the types of the operands and of the results.
    Returns a :class:`Cost`. Without a rule it is estimated from the expansion or from the types.
    """,
)
