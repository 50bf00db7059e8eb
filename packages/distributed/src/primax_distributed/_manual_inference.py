"""The manual axes in the types of results: they vary along all axes along which operands vary."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final

from primax_core.extend import AbstractRef, Primitive, transpose
from primax_core.extend.placements import Casts, is_placed
from primax_core.extend.runtime import bounded_cache

from ._axis_casts import ordered, preduced_p, pvary_p, reduced_vary_cast_p
from ._named import NamedSharding
from ._placement_errors import ShardingTypeError
from ._reshard import reshard_to
from ._spec import PartitionSpec, UnreducedKind

Names = frozenset[Hashable]
_NONE: Final[Names] = frozenset()

_SUMS: Final = ("add", "sub", "add_any", "concatenate", "pad")
"""Operations that are linear in all operands together."""

_PRODUCTS: Final = ("mul", "dot_general", "conv_general_dilated")
"""Operations that are linear in each of two operands."""

_casts: Final = bounded_cache()


def varying_of(aval: Any) -> Names:
    """The axes along which values of a type vary."""
    if isinstance(aval, AbstractRef):
        aval = aval.inner_aval
    return aval.placement.varying if is_placed(aval) else _NONE


def reduced_of(aval: Any) -> Names:
    """The axes along which values of a type are reduced."""
    return aval.placement.reduced if is_placed(aval) else _NONE


def unreduced_of(aval: Any) -> Names:
    """The axes along which values of a type are unreduced."""
    return aval.placement.unreduced if is_placed(aval) else _NONE


def cast_to_varying(aval: Any, names: Names, mesh: Any) -> Callable[[Any], Any] | None:
    """The cast of operands of a type to one that varies along axes too; `None` if it does.

    Equal casts are one object.
    """
    missing = names - varying_of(aval)
    if not missing:
        return None
    reduced = ordered(missing & reduced_of(aval), mesh)
    return _cast(reduced, ordered(missing - {*reduced}, mesh), ())


def _cast(*axes: tuple[Hashable, ...], sharding: Any = None) -> Callable[[Any], Any]:
    key = (*axes, sharding)
    cast = _casts.get(key)
    if cast is None:
        cast = _casts[key] = partial(_with_axes, axes=axes, sharding=sharding)
    result: Callable[[Any], Any] = cast
    return result


def _with_axes(x: Any, axes: tuple[tuple[Hashable, ...], ...], sharding: Any) -> Any:
    if sharding is not None:
        x = reshard_to(x, sharding)
    for prim, names in zip((reduced_vary_cast_p, pvary_p, preduced_p), axes):
        if names:
            x = prim.bind(x, axes=names)
    return x


def _cast_operand(
    prim: Primitive, aval: Any, varying: Names, reduced: Names, mesh: Any
) -> Callable[[Any], Any] | None:
    """The cast of an operand to one that varies, and is reduced, along axes too."""
    missing = varying - varying_of(aval)
    equal = reduced - reduced_of(aval)
    if not missing and not equal:
        return None
    if isinstance(aval, AbstractRef):
        names = ordered(missing | equal, mesh)
        raise ShardingTypeError(
            f"{prim.name}: a reference of type {aval} does not vary along the mesh axes {names}, "
            "along which a value that is written to it, or an index, may vary: apply "
            f"lax.pcast(..., {names}, to='varying') to the initial value of the reference"
        )
    from_reduced = missing & reduced_of(aval)
    explicit = equal & {*mesh.explicit_axes}
    return _cast(
        ordered(from_reduced, mesh),
        ordered(missing - from_reduced, mesh),
        ordered(equal - explicit, mesh),
        sharding=_reduced_along(aval, explicit, mesh) if explicit else None,
    )


def _reduced_along(aval: Any, names: Names, mesh: Any) -> NamedSharding:
    """The sharding of a value of a type, reduced along explicit axes too."""
    spec = PartitionSpec(*[None] * aval.ndim)
    if is_placed(aval):
        spec = aval.placement.sharding.spec
    return NamedSharding(mesh, spec.update(reduced=spec.reduced | names))


def joined(
    prim: Primitive, in_avals: Sequence[Any], mesh: Any
) -> tuple[dict[str, Any], Casts | None]:
    """The manual axes of results, and the casts of operands.

    Returns:
      Keyword arguments of `Placement.of`: the axes along which results vary, are unreduced or
      reduced; and the casts.

    Raises:
      ShardingTypeError: if an operand is unreduced or reduced, and the others do not fit.
    """
    varying = _NONE.union(*map(varying_of, in_avals))
    axes: dict[str, Any] = {"varying": varying}
    unreduced = _NONE.union(*map(unreduced_of, in_avals))
    if unreduced:
        _check_unreduced(prim, in_avals, unreduced, varying, mesh)
        axes["unreduced"] = unreduced
        axes["unreduced_kind"] = _common_kind(prim, in_avals)
    reduced = _NONE.union(*map(reduced_of, in_avals)) - varying - unreduced
    if reduced:
        reduced -= {
            n for a in in_avals if is_placed(a) for names in a.placement.spec for n in names
        }
    if reduced:
        axes["reduced"] = reduced
    casts = [_cast_operand(prim, a, varying, reduced, mesh) for a in in_avals]
    if unreduced and _is_padded_sum(prim, in_avals, unreduced, mesh):
        casts[1] = _cast(
            (), (), (), sharding=NamedSharding(mesh, PartitionSpec(unreduced=unreduced))
        )
    return axes, casts if any(casts) else None


def _is_padded_sum(prim: Primitive, in_avals: Sequence[Any], unreduced: Names, mesh: Any) -> bool:
    """True if an array that is unreduced along explicit axes is padded with a whole number.

    The number is cast: the first position has it, the others have zeros.
    """
    if prim.name != "pad" or is_placed(in_avals[1]) or not unreduced <= {*mesh.explicit_axes}:
        return False
    return in_avals[0].placement.unreduced_kind is UnreducedKind.sum


def _common_kind(prim: Primitive, in_avals: Sequence[Any]) -> Any:
    kinds = {a.placement.unreduced_kind for a in in_avals if unreduced_of(a)}
    if len(kinds) > 1:
        raise ShardingTypeError(
            f"{prim.name}: the operands are unreduced with different reductions: "
            f"{', '.join(map(str, in_avals))}"
        )
    return kinds.pop()


def _check_unreduced(
    prim: Primitive, in_avals: Sequence[Any], unreduced: Names, varying: Names, mesh: Any
) -> None:
    names = ordered(unreduced, mesh)
    mend = f"sum it first: lax.psum(x, {names})"
    if varying & unreduced:
        raise ShardingTypeError(
            f"{prim.name}: an operand is unreduced along the mesh axes {names}, along which "
            f"another one varies ({', '.join(map(str, in_avals))}); {mend}"
        )
    with_parts = [a for a in in_avals if unreduced_of(a)]
    others = [a for a in in_avals if not unreduced_of(a)]
    if _is_padded_sum(prim, in_avals, unreduced, mesh):
        return
    if prim.name in _SUMS and (others or any(unreduced_of(a) != unreduced for a in with_parts)):
        raise ShardingTypeError(
            f"{prim.name}: all operands must be unreduced along the mesh axes {names}, because one "
            f"is; got {', '.join(map(str, in_avals))}; {mend}"
        )
    if prim.name in _PRODUCTS or prim.name == "div":
        divided = prim.name == "div" and not unreduced_of(in_avals[0])
        if divided or len(with_parts) > 1 or any(not unreduced <= reduced_of(a) for a in others):
            raise ShardingTypeError(
                f"{prim.name} of an operand that is unreduced along the mesh axes {names} needs "
                f"the other one reduced along them; got {', '.join(map(str, in_avals))}: apply "
                f"lax.pcast(x, {names}, to='reduced') to the other one, or {mend}"
            )
    elif prim.name not in _SUMS and (others or prim.find(transpose) is None):
        raise ShardingTypeError(
            f"{prim.name} is not linear, so its operand of type {with_parts[0]} cannot be "
            f"unreduced along the mesh axes {names}; {mend}"
        )
