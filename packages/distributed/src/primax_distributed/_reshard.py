"""The primitives that change the explicit axes in a type: ``reshard`` and ``mesh_cast``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Primitive,
    abstract,
    batch,
    devices,
    dtypes,
    instantiate,
    lower,
    place,
    typeof,
)
from primax_core.extend.elementwise import linear
from primax_core.extend.placements import is_placed, unplaced

from ._mesh_options import forbidden_axes
from ._no_collectives import check_types
from ._placement_errors import ShardingTypeError
from ._spec import UnreducedKind

reshard_p: Final = Primitive("reshard")
mesh_cast_p: Final = Primitive("mesh_cast")


def reshard_to(x: Any, sharding: Any) -> Any:
    """The value with another sharding over the explicit axes of a mesh."""
    if sharding.spec.unreduced and _becomes_partial(x, sharding) and _is_complex(x):
        # XLA crashes when it makes partial complex values.
        parts = (reshard_p.bind(f(x), dst_sharding=sharding) for f in (lax.real, lax.imag))
        return lax.complex(*parts)
    return reshard_p.bind(x, dst_sharding=sharding)


def moved_to(x: Any, sharding: Any) -> Any:
    """A concrete array with a sharding over its devices.

    Raises:
      ValueError: for partial values in another memory than the default one.
    """
    if sharding.spec.unreduced and not sharding._on_default_memory():
        raise ValueError(
            f"device_put of partial values, with {sharding.spec}, to the memory "
            f"{sharding.memory_kind!r}: they are computed in the memory of the device. Use a "
            "sharding without memory_kind, or move the whole value, with a spec without `unreduced`"
        )
    return reshard_to(x, sharding)


def _is_complex(x: Any) -> bool:
    return bool(dtypes.issubdtype(typeof(x).dtype, np.complexfloating))


def _becomes_partial(x: Any, sharding: Any) -> bool:
    """True if a value that is whole along a mesh axis is divided into parts along it.

    Raises:
      ShardingTypeError: if the parts are not summed.
    """
    spec, aval = sharding.spec, typeof(x)
    own = aval.placement if is_placed(aval) else None
    whole = spec.unreduced - (own.unreduced if own else frozenset())
    if spec.unreduced_kind is not UnreducedKind.sum and (
        whole or own is None or own.unreduced_kind is not spec.unreduced_kind
    ):
        raise cannot_become_partial(f"a value of type {aval.str_short()}", spec)
    return bool(whole)


def cannot_become_partial(what: str, spec: Any) -> ShardingTypeError:
    """The error for partial values that are not summed: XLA aborts the process on them."""
    return ShardingTypeError(
        f"{what} cannot become partial values with {spec}: only values of which the sum is the "
        "whole can be made of it. Make the array with make_array_from_single_device_arrays, or "
        "return it from a shard_map with these out_specs"
    )


def cast_explicit(x: Any, placement: Any) -> Any:
    """A value with the explicit axes of a placement."""
    actual, target = explicit_part(typeof(x).placement), explicit_part(placement)
    if actual is target:
        return x
    if target is unplaced:
        return reshard_to(x, actual.sharding._replicated())
    return reshard_to(x, target.sharding)


def uncast_explicit(x: Any) -> Any:
    """A value without explicit axes: the whole value on each device."""
    placement = explicit_part(typeof(x).placement)
    return x if placement is unplaced else reshard_to(x, placement.sharding._replicated())


def explicit_part(placement: Any) -> Any:
    """A placement without manual axes: `unplaced` if it has no explicit ones."""
    if placement is unplaced:
        return placement
    unreduced = placement.explicit(placement.unreduced)
    return placement.update(
        varying=frozenset(), unreduced=unreduced, reduced=placement.explicit(placement.reduced),
        unreduced_kind=placement.unreduced_kind if unreduced else None,
    )  # fmt: skip


def without_explicit_axes(x: Any) -> Any:
    """The value with a type that does not say how it is divided; it is not moved."""
    placement = typeof(x).placement
    if placement is unplaced or not any(placement.spec):
        return x
    return mesh_cast_p.bind(x, dst_sharding=placement.sharding._replicated())


@reshard_p.rule(abstract)
def _abstract(x: Any, *, dst_sharding: Any) -> Any:
    try:
        dst_sharding.shard_shape(x.shape)
    except ValueError as e:
        raise ValueError(f"reshard: {e}") from None
    return x


@reshard_p.rule(place)
def _place(abstract: Any, in_avals: Any, params: Any) -> tuple[list[Any], None]:
    (x,) = in_avals
    (out,) = abstract(x)
    target = params["dst_sharding"]._placement(x.ndim)
    placement = _with_manual_axes(target, x)
    if placement is not unplaced:
        check_partial(placement)
    out = out.update(placement=placement)
    if forbidden_axes.value:
        check_types("reshard", in_avals, [out])
    return [out], None


def check_partial(placement: Any) -> None:
    """Raise ``ShardingTypeError`` for a value that is unreduced along axes that XLA cannot reduce.

    XLA aborts the process on such a value in a manual computation.
    """
    mesh = placement.mesh
    if mesh.manual_axes and placement.is_partial:
        names = tuple([n for n in mesh.axis_names if n in placement.explicit(placement.unreduced)])
        raise ShardingTypeError(
            f"a value is unreduced along the mesh axes {names} in a shard_map that is manual along "
            f"{mesh.manual_axes} only, which XLA cannot compile: reduce the value there, with a "
            "sharding without `unreduced`, or make all axes manual"
        )


def _with_manual_axes(target: Any, aval: Any) -> Any:
    """A placement with the manual axes of a type."""
    if not is_placed(aval):
        return target
    own = aval.placement
    manual = {n: own.manual(getattr(own, n)) for n in ("varying", "unreduced", "reduced")}
    if not any(manual.values()):
        return target
    if target is unplaced:
        return own.update(spec=((),) * aval.ndim, **manual)
    return target.update(**{n: getattr(target, n) | names for n, names in manual.items()})


def _lower(ctx: Any, x: Any, *, dst_sharding: Any) -> Any:
    rule = ctx.rule(lax.sharding_constraint_p)
    aval = ctx.eqn.invars[0].aval
    own = aval.placement.unreduced if is_placed(aval) else frozenset()
    if dst_sharding.spec.unreduced - own:
        # Shardy would compute the operand itself as an unreduced value.
        before = dst_sharding._replicated()
        if is_placed(aval) and (placement := explicit_part(aval.placement)) is not unplaced:
            before = type(dst_sharding)(dst_sharding.mesh, placement.sharding.spec)
        x = rule(ctx, x, sharding=before, unconstrained_dims=frozenset())
    return rule(ctx, x, sharding=dst_sharding, unconstrained_dims=frozenset())


reshard_p.rule(lower)(_lower)


@reshard_p.rule(devices)
def _devices(eqn: Any) -> Any:
    return eqn.params["dst_sharding"]._replicated()


# The cotangent is cast to the type of the operand.
linear(reshard_p, lambda ct, x, *, dst_sharding: instantiate(ct))


@reshard_p.rule(batch)
def _batch(axis: Any, args: Any, dims: Any, *, dst_sharding: Any) -> Any:
    (x,), (dim,) = args, dims
    batched = dst_sharding._batched(dim, axis.mesh_axes)
    return reshard_p.bind(x, dst_sharding=batched), dim


# Values of regions whose axes have other types


@mesh_cast_p.rule(abstract)
def _cast_abstract(x: Any, *, dst_sharding: Any) -> Any:
    return x


@mesh_cast_p.rule(place)
def _cast_place(abstract: Any, in_avals: Any, params: Any) -> tuple[list[Any], None]:
    (out,) = abstract(*in_avals)
    target = params["dst_sharding"]._placement(out.ndim)
    return [out.update(placement=_with_manual_axes(target, in_avals[0]))], None


mesh_cast_p.rule(lower)(lambda ctx, x, *, dst_sharding: x)
linear(mesh_cast_p, lambda ct, x, *, dst_sharding: instantiate(ct))


@mesh_cast_p.rule(batch)
def _cast_batch(axis: Any, args: Any, dims: Any, *, dst_sharding: Any) -> Any:
    (x,), (dim,) = args, dims
    batched = dst_sharding._batched(dim, axis.mesh_axes)
    return mesh_cast_p.bind(x, dst_sharding=batched), dim
