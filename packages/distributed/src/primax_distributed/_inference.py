"""Inference of the placements of results, for operations on values whose types have one.

It has two parts: the manual axes (varying, unreduced, reduced) in `_manual_inference.py`, and the
explicit axes that divide arrays, which a function of :data:`explicit_part` infers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from primax_core.extend import Primitive
from primax_core.extend.placements import Casts, PlacementInference, install_placements, is_placed

from ._manual_inference import joined
from ._mesh_options import current_abstract_mesh
from ._named import Placement
from ._placement_errors import ShardingTypeError

ExplicitPart = Callable[[Primitive, Sequence[Any], Sequence[Any], dict[str, Any], Any], Any]


class AxisInference(PlacementInference):
    """The placements of results from the mesh axes in the types of operands."""

    __slots__ = ("explicit_part",)

    def __init__(self, explicit_part: ExplicitPart) -> None:
        self.explicit_part: ExplicitPart = explicit_part

    def infer(
        self,
        prim: Primitive,
        abstract: Callable[..., list[Any]],
        in_avals: Sequence[Any],
        params: dict[str, Any],
    ) -> tuple[Sequence[Any], Casts | None]:
        placements = [a.placement for a in in_avals if is_placed(a)]
        mesh = common_mesh(prim, placements)
        axes, casts = joined(prim, in_avals, mesh)
        results = abstract(*in_avals)
        if any(any(p.spec) for p in placements):
            specs = self.explicit_part(prim, in_avals, results, params, mesh)
        else:
            specs = [((),) * r.ndim for r in results]
        return [
            r.update(placement=Placement.of(mesh, spec, **axes)) for r, spec in zip(results, specs)
        ], casts


def common_mesh(prim: Primitive, placements: Sequence[Any]) -> Any:
    """The mesh of the operands.

    Values of an enclosing `shard_map` have the types of the axes there; then it is the mesh of the
    context.

    Raises:
      ShardingTypeError: if they are on different meshes.
    """
    mesh = placements[0].mesh
    for placement in placements:
        if placement.mesh is not mesh:
            return _of_context(prim, mesh, placement.mesh)
    return mesh


def _of_context(prim: Primitive, mesh: Any, other: Any) -> Any:
    context = current_abstract_mesh.value
    if context is None or any(
        m._sizes != context._sizes or not {*m.manual_axes} <= {*context.manual_axes}
        for m in (mesh, other)
    ):
        raise ShardingTypeError(
            f"{prim.name}: the operands are on different meshes, {mesh} and {other}"
        )
    return context


def _no_explicit_part(
    prim: Primitive, in_avals: Sequence[Any], results: Sequence[Any], params: dict[str, Any],
    mesh: Any,
) -> Any:  # fmt: skip
    return [((),) * r.ndim for r in results]


inference: Final = AxisInference(_no_explicit_part)
install_placements(inference)
