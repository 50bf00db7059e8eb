"""Types of results of operations on references whose contents are divided over mesh axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primax_core.extend import AbstractRef, Primitive, discharge, stage
from primax_core.extend.placements import is_placed, unplaced


def placed_by_contents(
    prim: Primitive,
    abstract: Callable[..., list[Any]],
    in_avals: Sequence[Any],
    params: dict[str, Any],
) -> list[Any]:
    """The types of the results of an operation that creates, reads or writes references.

    The placement of a result is that of the result of the operation's discharge rule on the
    contents.

    Args:
      abstract: from the types of the operands to the types of the results without placements.
    """
    results = abstract(*in_avals)
    rule = prim.require(discharge, "the placement of its results")
    refs = tuple(i if isinstance(a, AbstractRef) else None for i, a in enumerate(in_avals))

    def contents(*values: Any) -> list[Any]:
        outs, _ = rule(refs, values, **params)
        return list(outs) if prim.multiple_results else [outs]

    jaxpr = stage(contents, [a.inner_aval if isinstance(a, AbstractRef) else a for a in in_avals])
    placements = [v.aval.placement if is_placed(v.aval) else unplaced for v in jaxpr.outvars]
    return [r.update(placement=p) for r, p in zip(results, placements)]
