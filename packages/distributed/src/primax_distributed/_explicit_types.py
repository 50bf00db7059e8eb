"""The explicit axes in the types of results, for the inference of placements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primax_core import lax
from primax_core.extend import Primitive
from primax_core.extend.placements import is_placed, unplaced

from ._abstract_mesh import AbstractMesh
from ._explicit import Ambiguous, Spec, check_result, spec_of, specs_by_shardy
from ._placement_errors import ShardingTypeError


def explicit_specs(
    prim: Primitive,
    in_avals: Sequence[Any],
    results: Sequence[Any],
    params: dict[str, Any],
    mesh: AbstractMesh,
) -> Sequence[Spec]:
    """The explicit axes that divide the results of an operation.

    Args:
      results: types of the results by the abstract rule; those of the parameter ``out_sharding``
        are placed already.

    Raises:
      ShardingTypeError: if the axes of a result do not follow from those of the operands.
    """
    if is_requested(prim, params):
        return [spec_of(r) for r in results]
    specs = [spec_of(a) for a in in_avals]
    if prim is lax.device_put_p:
        return [
            spec_of(r) if d is not None else s for r, d, s in zip(results, params["devices"], specs)
        ]
    bare = [a.update(placement=unplaced) if is_placed(a) else a for a in in_avals]
    sizes = mesh._sizes
    try:
        from ._explicit_rules import rule_of  # loaded on first use: it loads parts of lax

        rule = rule_of(prim)
        if rule is not None:
            specs_of_results = rule(specs, bare, results, params, sizes)
        else:
            ranks = [r.ndim for r in results]
            specs_of_results = specs_by_shardy(prim, bare, params, specs, ranks, sizes)
        for spec, result in zip(specs_of_results, results):
            check_result(spec, result.shape, sizes)
    except Ambiguous as e:
        raise ShardingTypeError(_message(prim, in_avals, params, e)) from None
    return specs_of_results


def is_requested(prim: Primitive, params: dict[str, Any]) -> bool:
    """Return True if a parameter gives the sharding of the result."""
    if prim is lax.sharding_constraint_p:
        return False
    return params.get("out_sharding") is not None or params.get("sharding") is not None


def _message(
    prim: Primitive, avals: Sequence[Any], params: dict[str, Any], reason: Ambiguous
) -> str:
    types = ", ".join(a.str_short() for a in avals)
    takes = "out_sharding" in params or "sharding" in params
    how = "Pass out_sharding=, or reshard" if takes else "Reshard"
    return f"{prim.name} of {types}: {reason}. {how} an operand with reshard(x, spec)"
