"""The types of results over explicit axes, for the inference of placements."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from primax_core import lax
from primax_core.extend import Primitive
from primax_core.extend.placements import is_placed, unplaced

from ._explicit import (
    UNREDUCED_ERROR,
    Ambiguous,
    ShardingTypeError,
    Spec,
    check_result,
    spec_of,
    specs_by_shardy,
    text,
)
from ._explicit_rules import own_rules
from ._mesh import AbstractMesh
from ._named import Placement

_LINEAR: Final = {
    getattr(lax, f"{name}_p")
    for name in "add sub neg reduce_sum reshape transpose convert_element_type squeeze copy "
    "broadcast_in_dim rev slice concatenate sharding_constraint optimization_barrier".split()
}
"""Primitives that may have unreduced operands."""


def explicit_types(
    prim: Primitive, outs: Sequence[Any], in_avals: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """The types of results with their explicit axes.

    Args:
      outs: types of the results by the abstract rule; those of the parameter ``out_sharding`` are
        placed already.
      in_avals: types of the operands.

    Raises:
      ShardingTypeError: if the axes of a result do not follow from those of the operands.
    """
    mesh = mesh_of(prim, in_avals)
    if mesh is None:
        return list(outs)
    if params.get("out_sharding") is not None or _is_asked(prim, params):
        return list(outs)
    specs = [spec_of(a) for a in in_avals]
    sizes = mesh._sizes
    bare = [a.update(placement=unplaced) if is_placed(a) else a for a in in_avals]
    try:
        rule = own_rules.get(prim)
        if rule is not None:
            found = rule(specs, bare, outs, params, sizes)
        elif any(any(s) for s in specs):
            ranks = [o.ndim for o in outs]
            found = specs_by_shardy(prim, bare, params, specs, ranks, sizes)
        else:
            found = [((),) * o.ndim for o in outs]
        for spec, out in zip(found, outs):
            check_result(spec, out.shape, sizes)
        extra = _other_axes(prim, in_avals, mesh)
    except Ambiguous as e:
        raise ShardingTypeError(_message(prim, in_avals, params, e)) from None
    return [_placed(o, mesh, spec, extra) for o, spec in zip(outs, found)]


def _is_asked(prim: Primitive, params: dict[str, Any]) -> bool:
    """Return True if a parameter gives the sharding of the result."""
    return prim is not lax.sharding_constraint_p and params.get("sharding") is not None


def _placed(out: Any, mesh: AbstractMesh, spec: Spec, extra: dict[str, Any]) -> Any:
    if is_placed(out):
        return out
    return out.update(placement=Placement.of(mesh, spec, **extra))


def mesh_of(prim: Primitive, avals: Sequence[Any]) -> AbstractMesh | None:
    """The mesh of the operands that have explicit axes; ``None`` if no operand has.

    Raises:
      ShardingTypeError: if there are several.
    """
    mesh: AbstractMesh | None = None
    for a in avals:
        if not is_placed(a):
            continue
        p = a.placement
        if not (any(p.spec) or p.explicit(p.unreduced) or p.explicit(p.reduced)):
            continue
        if mesh is None:
            mesh = p.mesh
        elif p.mesh is not mesh and not same_axes(p.mesh, mesh):
            types = ", ".join(b.str_short() for b in avals)
            raise ShardingTypeError(
                f"{prim.name} of {types}: the operands are divided over different meshes, {mesh} "
                f"and {p.mesh}. Move one of them with device_put"
            )
    return mesh


def same_axes(a: AbstractMesh, b: AbstractMesh) -> bool:
    """Return True if meshes have the same names, sizes and types of axes."""
    return (a.axis_names, a.axis_sizes, a.axis_types) == (b.axis_names, b.axis_sizes, b.axis_types)


def _other_axes(prim: Primitive, avals: Sequence[Any], mesh: AbstractMesh) -> dict[str, Any]:
    """Unreduced and reduced explicit axes of the results."""
    placements = [a.placement for a in avals if is_placed(a)]
    unreduced: set[frozenset[Hashable]] = {p.explicit(p.unreduced) for p in placements}
    reduced = frozenset().union(*[p.explicit(p.reduced) for p in placements])
    if not any(unreduced) and not reduced:
        return {}
    extra: dict[str, Any] = {"reduced": reduced}
    if any(unreduced):
        names = frozenset().union(*unreduced)
        if prim not in _LINEAR or len(placements) < len(avals) or len(unreduced) > 1:
            shown = text(tuple(n for n in mesh.axis_names if n in names))
            raise Ambiguous(UNREDUCED_ERROR.format(names=shown))
        kinds = {p.unreduced_kind for p in placements}
        if len(kinds) > 1:
            raise Ambiguous("the operands are unreduced with different reductions")
        extra |= {"unreduced": names, "unreduced_kind": kinds.pop()}
    return extra


def _message(
    prim: Primitive, avals: Sequence[Any], params: dict[str, Any], reason: Ambiguous
) -> str:
    types = ", ".join(a.str_short() for a in avals)
    takes = "out_sharding" in params or "sharding" in params
    how = "Pass out_sharding=, or reshard" if takes else "Reshard"
    return f"{prim.name} of {types}: {reason}. {how} an operand with reshard(x, spec)"
