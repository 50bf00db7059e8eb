"""Sharding constraints of lowered values, and the parameter ``out_sharding`` of primitives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .._ir.placement import is_placed
from .._ir.primitive import Primitive
from .._ir.rules import devices
from .._ir.symbolic_dims import is_static
from .._lower.lazy import mlir
from .._runtime.array import physical
from .._runtime.sharding import Sharding, ShardingLike, as_sharding


def constrain(
    x: Any, sharding: Sharding, aval: Any, open_axes: frozenset[int] = frozenset()
) -> Any:
    """The value, with a sharding constraint for the partitioner, which may divide ``open_axes``."""
    ndim = physical(aval).ndim
    text = sharding._sdy(ndim, open_axes) if open_axes else sharding._sdy(ndim)
    return x if text is None else mlir.sdy().sharding_constraint(x, mlir.parse_sharding(text))


def check_divides(sharding: ShardingLike | None, shape: tuple[int, ...], what: str) -> None:
    """Raise ``ValueError`` if an array of a shape cannot be sharded so.

    XLA would silently choose another sharding.
    """
    if isinstance(sharding, Sharding) and sharding.num_devices > 1 and is_static(shape):
        try:
            sharding.shard_shape(shape)
        except ValueError as e:
            raise ValueError(f"{what}: {e}") from None


def out_sharding_of(what: str, sharding: ShardingLike | None) -> Sharding | None:
    """The argument ``out_sharding`` of a function as a sharding; ``None`` is unchanged.

    Raises:
      TypeError: if it is not a sharding, or something that stands for one.
      ValueError: if the result of an operation cannot have it.
    """
    if sharding is None:
        return None
    converted = as_sharding(sharding)
    if not isinstance(converted, Sharding):
        raise TypeError(
            f"out_sharding of {what} must be a NamedSharding or a PartitionSpec, got {sharding!r} "
            f"of type {type(sharding).__name__}"
        )
    return converted._for_result(what)


def with_sharding(prim: Primitive, aval: Any, sharding: ShardingLike | None) -> Any:
    """The aval of a result, with the placement of the parameter ``out_sharding``.

    Raises:
      ValueError: if it does not fit the shape.
    """
    if sharding is None:
        return aval
    check_divides(sharding, aval.shape, f"out_sharding of {prim.name}")
    return aval.update(placement=sharding._placement(aval.ndim))


def sharding_like(aval: Any, *others: Any) -> Any:
    """The parameter ``out_sharding`` for a result with the placement of a type.

    Args:
      others: types of other values; if one is placed, the result of an unplaced type is replicated.
    """
    if is_placed(aval):
        return aval.placement.sharding
    for other in others:
        if is_placed(other):
            return other.placement.sharding._replicated()
    return None


def devices_named(sharding: ShardingLike | None) -> Sharding | None:
    """The replicated sharding over the devices of a sharding, if it has several."""
    if isinstance(sharding, Sharding) and sharding.num_devices > 1:
        return sharding._replicated()
    return None


def batched_sharding(sharding: ShardingLike | None, dim: int, axis: Any) -> Any:
    """The parameter of a batch; ``None`` is unchanged."""
    return None if sharding is None else sharding._batched(dim, axis.mesh_axes)


def sharded_result(
    prim: Primitive, parameter: str = "out_sharding", result: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a lowering rule of a primitive whose result has the sharding of a parameter.

    It also registers the rule ``devices`` of the primitive.

    Args:
      parameter: the name of the parameter, a ``Sharding`` or ``None``.
      result: the position of the result, if there are several.
    """
    if devices not in prim.rules:
        prim.rule(devices)(lambda eqn: devices_named(eqn.params.get(parameter)))

    def decorate(rule: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(rule)
        def lowered(ctx: Any, *values: Any, **params: Any) -> Any:
            out_avals = ctx.out_avals
            out = rule(ctx, *values, **params)
            sharding = params.get(parameter)
            if sharding is None:
                return out
            if result is None:
                return constrain(out, sharding, out_avals[0])
            outs = list(out)
            outs[result] = constrain(outs[result], sharding, out_avals[result])
            return outs

        return lowered

    return decorate
