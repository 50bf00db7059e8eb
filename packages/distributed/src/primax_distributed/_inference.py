"""Inference of the placements of results, for operations on values whose types have one.

It has two parts: the manual axes (varying, unreduced, reduced) in `_manual_inference.py`, and the
explicit axes, which divide arrays, in `_explicit_types.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from primax_core.extend import AbstractRef, Primitive
from primax_core.extend.placements import (
    Casts,
    PlacementInference,
    install_placements,
    is_placed,
    unplaced,
)

from ._explicit_types import explicit_specs, is_requested
from ._manual_inference import joined
from ._mesh_options import current_abstract_mesh, forbidden_axes
from ._named import Placement
from ._no_collectives import check_types
from ._placement_errors import ShardingTypeError
from ._reference_types import placed_by_contents
from ._reshard import check_partial


class AxisInference(PlacementInference):
    """The placements of results from the mesh axes in the types of operands."""

    __slots__ = ()

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
        if any(isinstance(a, AbstractRef) for a in (*in_avals, *results)):
            return placed_by_contents(prim, abstract, in_avals, params), casts
        if any(any(p.spec) for p in placements):
            specs = explicit_specs(prim, in_avals, results, params, mesh)
        else:
            specs = [r.placement.spec if is_placed(r) else ((),) * r.ndim for r in results]
        if is_requested(prim, params):
            axes = {n: v for n, v in axes.items() if n == "varying"}
        placed = [_placed(r, mesh, spec, axes) for r, spec in zip(results, specs)]
        if forbidden_axes.value:
            check_types(prim.name, in_avals, placed)
        return placed, casts


def _placed(result: Any, mesh: Any, spec: Any, axes: dict[str, Any]) -> Any:
    """The type of a result; unreduced axes of the parameter `out_sharding` are kept.

    A result that is divided along an axis along which an operand is reduced is not reduced there.
    """
    if axes.get("reduced"):
        axes = {**axes, "reduced": axes["reduced"] - {n for names in spec for n in names}}
    if is_placed(result):
        placement = result.placement.update(spec=spec, **axes)
    else:
        placement = Placement.of(mesh, spec, **axes)
    if mesh.manual_axes and placement is not unplaced:
        check_partial(placement)
    return result.update(placement=placement)


def common_mesh(prim: Primitive, placements: Sequence[Any]) -> Any:
    """The mesh of the operands.

    Values of an enclosing `shard_map` have the types of the axes there; then it is the mesh of the
    context.

    Raises:
      ShardingTypeError: if they are on different meshes.
    """
    mesh = placements[0].mesh
    for placement in placements:
        if placement.mesh is not mesh and not same_axes(placement.mesh, mesh):
            return _of_context(prim, mesh, placement.mesh)
    return mesh


def _of_context(prim: Primitive, mesh: Any, other: Any) -> Any:
    context = current_abstract_mesh.value
    if context is None or any(
        m._sizes != context._sizes or not {*m.manual_axes} <= {*context.manual_axes}
        for m in (mesh, other)
    ):
        raise ShardingTypeError(
            f"{prim.name}: the operands are on different meshes, {mesh} and {other}. Move one of "
            "them with device_put"
        )
    return context


def same_axes(a: Any, b: Any) -> bool:
    """Return True if meshes have the same names, sizes and types of axes."""
    same: bool = (a.axis_names, a.axis_sizes, a.axis_types) == (
        b.axis_names, b.axis_sizes, b.axis_types
    )  # fmt: skip
    return same


inference: Final = AxisInference()
install_placements(inference)
