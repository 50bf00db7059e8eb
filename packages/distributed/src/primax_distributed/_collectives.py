"""Collectives over the manual axes of a mesh: the types of their results, and their owner."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Primitive,
    abstract,
    batch,
    effects,
    lower,
    move_axis,
    place,
    reduce_scatter_p,
    typeof,
)
from primax_core.extend.placements import is_placed
from primax_core.extend.traces import AxisOwner, owner_of

from ._abstract_mesh import AbstractMesh
from ._axis_casts import (
    linear_collective,
    ordered,
    preduced_p,
    psum_invariant_p,
    pvary_p,
    reduced_vary_cast_p,
    unreduced_psum_p,
    vary_unreduced_cast_p,
)
from ._inference import inference as inference
from ._manual_inference import cast_to_varying, reduced_of, unreduced_of, varying_of
from ._mesh_options import forbidden_axes
from ._named import Placement
from ._no_collectives import check_collective

Names = tuple[Hashable, ...]

all_gather_invariant_p: Final = Primitive("all_gather_invariant")
"""Varying values of all positions; the result is invarying."""
all_gather_reduced_p: Final = Primitive("all_gather_reduced")
"""Varying values of all positions; the result is reduced."""
unreduced_reduce_scatter_p: Final = Primitive("unreduced_reduce_scatter")
"""The own part of the sum of unreduced values; the result varies."""


class MeshAxesOwner(AxisOwner):
    """Binds collectives over the manual axes of a mesh.

    Args:
      mesh: the abstract mesh with its manual axes.
      checked: the types say along which axes values vary.
    """

    __slots__ = ("checked", "mesh")

    def __init__(self, mesh: AbstractMesh, checked: bool) -> None:
        self.mesh: AbstractMesh = mesh
        self.checked: bool = checked

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is MeshAxesOwner
            and other.mesh is self.mesh
            and other.checked is self.checked
        )

    def __hash__(self) -> int:
        return hash((self.mesh, self.checked))

    def bind(
        self, prim: Primitive, args: Sequence[Any], params: dict[str, Any], to: str = "varying"
    ) -> Any:
        """The result of a collective, whose type contains the axes."""
        if forbidden_axes.value and prim is not lax.axis_index_p:
            check_collective(prim.name, params.get("axes") or params["axis_name"])
        if not self.checked:
            return prim.bind(*args, **params)
        special = _BOUND.get(prim)
        if special is None:
            return prim.bind(*args, **params)
        return special(self.mesh, args[0], params, to)

    def cast(self, x: Any, names: Names, to: str) -> Any:
        """The result of ``lax.pcast``."""
        if not self.checked:
            return x
        state = state_along("pcast", typeof(x), names)
        prim = _CASTS.get((state, to))
        if prim is None:
            raise ValueError(
                f"lax.pcast of a value of type {typeof(x)} along {names} from {state} to {to} is "
                f"not possible: {_why_not(state, to)}"
            )
        return prim.bind(x, axes=names)


_CASTS: Final = {
    ("invarying", "varying"): pvary_p,
    ("invarying", "reduced"): preduced_p,
    ("reduced", "varying"): reduced_vary_cast_p,
    ("varying", "unreduced"): vary_unreduced_cast_p,
}


def _why_not(state: str, to: str) -> str:
    if state == to:
        return f"it is {to} already"
    if state == "unreduced":
        return "sum it with lax.psum"
    if to == "unreduced":
        return "only a varying value can be a part of a sum; cast it to 'varying' first"
    return "values that vary can only become equal by a collective, such as lax.psum"


def state_along(what: str, aval: Any, names: Names) -> str:
    """The type of a value along some axes: invarying, varying, unreduced or reduced.

    Raises:
      ValueError: if it is not the same along all of them.
    """
    states = {
        "varying": varying_of(aval),
        "unreduced": unreduced_of(aval),
        "reduced": reduced_of(aval),
    }
    along = {n: next((s for s, of in states.items() if n in of), "invarying") for n in names}
    if len({*along.values()}) > 1:
        listed = ", ".join(f"{state} along {n!r}" for n, state in along.items())
        missing = tuple([n for n, state in along.items() if state == "invarying"])
        raise ValueError(
            f"lax.{what} over the mesh axes {names} of a value of type {aval}, which is {listed}: "
            "its type must be the same along all of them. Leave out the axes along which it does "
            f"not vary, or apply lax.pcast(x, {missing}, to='varying') to it first"
        )
    return next(iter(along.values()))


def as_varying(x: Any, names: Names, mesh: AbstractMesh) -> Any:
    """A value that varies along some axes at least."""
    cast = cast_to_varying(typeof(x), frozenset(names), mesh)
    return x if cast is None else cast(x)


# Binding


def _refuse_groups(what: str, params: dict[str, Any]) -> None:
    if params.pop("axis_index_groups") is not None:
        raise NotImplementedError(
            f"lax.{what} with axis_index_groups gives values that differ between groups, which "
            "types of mesh axes cannot say: use shard_map(..., check_vma=False), or a mesh with "
            "one more axis"
        )


def _bind_psum(mesh: AbstractMesh, x: Any, params: dict[str, Any], to: str) -> Any:
    names = params["axes"]
    state = state_along("psum", typeof(x), names)
    _refuse_groups("psum", params)
    if state == "unreduced":
        return unreduced_psum_p.bind(x, axes=names)
    _refuse_reduced("psum", state, x)
    return psum_invariant_p.bind(as_varying(x, names, mesh), axes=names)


def _refuse_reduced(what: str, state: str, x: Any) -> None:
    if state in ("reduced", "unreduced"):
        raise ValueError(
            f"lax.{what} of a value of type {typeof(x)}, which is {state}: apply "
            f"{'lax.psum' if state == 'unreduced' else 'lax.pcast(..., to=varying)'} to it first"
        )


def _bind_extremum(prim: Primitive) -> Any:
    def bind(mesh: AbstractMesh, x: Any, params: dict[str, Any], to: str) -> Any:
        names = params["axes"]
        _refuse_reduced(prim.name, state_along(prim.name, typeof(x), names), x)
        if params["axis_index_groups"] is not None:
            _refuse_groups(prim.name, dict(params))
        return prim.bind(as_varying(x, names, mesh), **params)

    return bind


def _bind_gather(mesh: AbstractMesh, x: Any, params: dict[str, Any], to: str) -> Any:
    names = params["axis_name"]
    x = as_varying(x, names, mesh)
    if to == "varying":
        return lax.all_gather_p.bind(x, **params)
    params = dict(params)
    _refuse_groups(f"all_gather(to={to!r})", params)
    prim = all_gather_invariant_p if to == "invarying" else all_gather_reduced_p
    return prim.bind(x, **params)


def _bind_scatter(mesh: AbstractMesh, x: Any, params: dict[str, Any], to: str) -> Any:
    state = state_along("psum_scatter", typeof(x), params["axis_name"])
    if state == "unreduced":
        params = dict(params)
        _refuse_groups("psum_scatter of an unreduced value", params)
        return unreduced_reduce_scatter_p.bind(x, **params)
    _refuse_reduced("psum_scatter", state, x)
    return reduce_scatter_p.bind(as_varying(x, params["axis_name"], mesh), **params)


_BOUND: Final = {
    lax.psum_p: _bind_psum,
    lax.pmax_p: _bind_extremum(lax.pmax_p),
    lax.pmin_p: _bind_extremum(lax.pmin_p),
    lax.all_gather_p: _bind_gather,
    reduce_scatter_p: _bind_scatter,
}


# Types of results


def _changed(aval: Any, mesh: Any, **axes: Any) -> Any:
    """An aval with other axes; `mesh` is that of its placement if it has none."""
    placement = aval.placement
    if is_placed(aval):
        return aval.update(placement=placement.update(**axes))
    return aval.update(placement=Placement.of(mesh, ((),) * aval.ndim, **axes))


def _mesh_of(aval: Any, names: Sequence[Hashable]) -> AbstractMesh | None:
    """The mesh whose types contain some axes; `None` if types do not."""
    if is_placed(aval):
        mesh: AbstractMesh = aval.placement.mesh
        return mesh if {*names} <= {*mesh.manual_axes} else None
    owner = owner_of(names)
    return owner.mesh if isinstance(owner, MeshAxesOwner) and owner.checked else None


def _casting(prim: Primitive, before: str, after: str) -> None:
    """The rule of a cast or sum along axes, which are `before` for the operand."""

    @prim.rule(place)
    def _place(abstract, in_avals, params):  # type: ignore[no-untyped-def]
        (x,), names = in_avals, frozenset(params.get("axes", params.get("axis_name")))
        (out,) = abstract(x)
        mesh = _mesh_of(x, names)
        if mesh is None:
            return [out], None
        state = state_along(prim.name, x, ordered(names, mesh))
        if state != before:
            raise ValueError(
                f"{prim.name} along {ordered(names, mesh)} needs an operand that is {before}, got "
                f"one of type {x}"
            )
        axes = {k: getattr(x.placement, k) - names for k in (before,) if k != "invarying"}
        if after != "invarying":
            axes[after] = (getattr(x.placement, after) if is_placed(x) else frozenset()) | names
        if prim.name == "unreduced_psum" and axes.get("unreduced") == frozenset():
            axes["unreduced_kind"] = None
        return [_result(out, x, mesh, axes)], None


def _result(out: Any, operand: Any, mesh: Any, axes: dict[str, Any]) -> Any:
    """The type of a result: the operand's axes, some of which are replaced."""
    axes_of_operand = {}
    if is_placed(operand):
        placement = operand.placement
        axes_of_operand = {k: getattr(placement, k) for k in ("varying", "unreduced", "reduced")}
    spec = operand.placement.spec if is_placed(operand) else ()
    if len(spec) != out.ndim or not any(spec):
        spec = ((),) * out.ndim
    return out.update(placement=Placement.of(mesh, spec, **{**axes_of_operand, **axes}))


for _prim, _before, _after in (
    (pvary_p, "invarying", "varying"),
    (psum_invariant_p, "varying", "invarying"),
    (preduced_p, "invarying", "reduced"),
    (unreduced_psum_p, "unreduced", "invarying"),
    (reduced_vary_cast_p, "reduced", "varying"),
    (vary_unreduced_cast_p, "varying", "unreduced"),
    (all_gather_invariant_p, "varying", "invarying"),
    (all_gather_reduced_p, "varying", "reduced"),
    (unreduced_reduce_scatter_p, "unreduced", "varying"),
):
    _casting(_prim, _before, _after)


def _varying_results(prim: Primitive) -> None:
    """Results vary along the axes of the collective."""

    @prim.rule(place)
    def _place(abstract, in_avals, params):  # type: ignore[no-untyped-def]
        results = abstract(*in_avals)
        names = frozenset(_names(params))
        mesh = next((m for a in in_avals if (m := _mesh_of(a, names)) is not None), None)
        if mesh is None:
            return inference.infer(prim, lambda *_: results, in_avals, params) if any(
                map(is_placed, in_avals)
            ) else (results, None)  # fmt: skip
        varying = names.union(*map(varying_of, in_avals))
        casts = [cast_to_varying(a, varying, mesh) for a in in_avals]
        axes = {"varying": varying}
        return [_result(r, in_avals[0], mesh, axes) for r in results], casts


def _names(params: dict[str, Any]) -> Names:
    names = params.get("axis_name", params.get("axes"))
    return names if isinstance(names, tuple) else (names,)


for _prim in (
    lax.ppermute_p, lax.all_gather_p, lax.all_to_all_p, reduce_scatter_p, lax.ragged_all_to_all_p,
):  # fmt: skip
    _varying_results(_prim)


def _equal_results(prim: Primitive) -> None:
    """Results do not vary along the axes of the collective."""

    @prim.rule(place)
    def _place(abstract, in_avals, params):  # type: ignore[no-untyped-def]
        (x,), (out,) = in_avals, abstract(*in_avals)
        names = frozenset(_names(params))
        if not is_placed(x):
            return [out], None
        return [_result(out, x, x.placement.mesh, {"varying": varying_of(x) - names})], None


for _prim in (lax.pmax_p, lax.pmin_p):
    _equal_results(_prim)


@lax.axis_index_p.rule(place)
def _place_index(abstract, in_avals, params):  # type: ignore[no-untyped-def]
    (out,) = abstract()
    name = params["axis_name"]
    owner = owner_of((name,))
    if not isinstance(owner, MeshAxesOwner) or not owner.checked:
        return [out], None
    return [_result(out, out, owner.mesh, {"varying": frozenset({name})})], None


# Gathered and scattered values


def _gathered(x: Any, *, all_gather_dimension: int, axis_size: int, tiled: bool, **_: Any) -> Any:
    d, shape = all_gather_dimension, x.shape
    if tiled:
        return x.update(shape=(*shape[:d], shape[d] * axis_size, *shape[d + 1 :]))
    return x.update(shape=(*shape[:d], axis_size, *shape[d:]))


def _scattered(x: Any, *, scatter_dimension: int, axis_size: int, tiled: bool, **_: Any) -> Any:
    d, shape = scatter_dimension, x.shape
    rest = (shape[d] // axis_size,) if tiled else ()
    return x.update(shape=(*shape[:d], *rest, *shape[d + 1 :]))


def _own_part(
    ct: Any, *, all_gather_dimension: int, axis_name: Names, axis_size: int, tiled: bool
) -> Any:
    """The part of this position of a value that is equal at all of them."""
    d = all_gather_dimension
    here = lax.axis_index(axis_name)
    if not tiled:
        return lax.dynamic_index_in_dim(ct, here, d, keepdims=False)
    size = typeof(ct).shape[d] // axis_size
    return lax.dynamic_slice_in_dim(ct, lax.mul(here, np.int32(size)), size, d)


def _define(prim: Primitive, like: Primitive, shape: Any, dimension: str, transposed: Any) -> None:
    """Add the rules of a collective that computes like another one."""
    prim.rule(abstract)(shape)
    linear_collective(prim, transposed)

    @prim.rule(effects)
    def _effects(*avals, **params):  # type: ignore[no-untyped-def]
        return like.require(effects, "tracing")(*avals, axis_index_groups=None, **params)

    @prim.rule(lower)
    def _lower(ctx, x, **params):  # type: ignore[no-untyped-def]
        return ctx.rule(like)(ctx, x, axis_index_groups=None, **params)

    @prim.rule(batch)
    def _batch(axis, args, dims, **params):  # type: ignore[no-untyped-def]
        x = move_axis(args[0], dims[0], 0, axis.size)
        return prim.bind(x, **{**params, dimension: params[dimension] + 1}), 0


_define(all_gather_invariant_p, lax.all_gather_p, _gathered, "all_gather_dimension", _own_part)
_define(
    all_gather_reduced_p, lax.all_gather_p, _gathered, "all_gather_dimension",
    lambda ct, *, all_gather_dimension, **params: unreduced_reduce_scatter_p.bind(
        ct, scatter_dimension=all_gather_dimension, **params
    ),
)  # fmt: skip
_define(
    unreduced_reduce_scatter_p, reduce_scatter_p, _scattered, "scatter_dimension",
    lambda ct, *, scatter_dimension, **params: all_gather_reduced_p.bind(
        ct, all_gather_dimension=scatter_dimension, **params
    ),
)  # fmt: skip
