"""Named axes of collectives: their sizes and groups, and binding by the owner of the axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from .._ir.primitive import Primitive
from .._trace.axes import axis_env, axis_size_in_scope, owner_of
from .._trace.typing import ArrayLike

AxisName = Any
Groups: TypeAlias = Sequence[Sequence[int]] | None


def names_of(axis_name: AxisName) -> tuple[Any, ...]:
    if not isinstance(axis_name, (tuple, list)):
        return (axis_name,)
    if len({*axis_name}) != len(axis_name):
        raise ValueError(f"axis_name {axis_name} names an axis twice: name each axis once")
    return tuple(axis_name)


def axis_size(axis_name: AxisName) -> int:
    """Size of a named axis.

    Args:
      axis_name: the name of an axis of ``vmap`` or of a mesh, or a tuple of names: the axes
        together, the first one outermost.

    Returns:
      A Python integer, the product of the sizes for several axes. It is a symbolic dimension if
      the axis was mapped with one.

    Raises:
      NameError: if no enclosing transformation binds the axis.

    The size is known while a function is traced, so shapes may depend on it.

    >>> import numpy as np
    >>> from primax_core import vmap
    >>> from primax_core.lax import axis_size
    >>> vmap(lambda x: x * axis_size("i"), axis_name="i")(np.array([1.0, 3.0])).tolist()
    [2.0, 6.0]
    """
    return math.prod([axis_size_in_scope(n) for n in names_of(axis_name)])


def checked_groups(
    what: str, groups: Groups, names: tuple[Any, ...], equal: bool = False
) -> tuple[tuple[int, ...], ...] | None:
    """Groups of indices along some axes, as a tuple.

    Args:
      equal: the groups must have equal sizes.

    Raises:
      NotImplementedError: an axis is mapped by ``vmap``.
      ValueError: the groups do not contain each index once, or differ in size.
    """
    if groups is None:
        return None
    if any(owner_of((n,)) is None for n in names):
        raise NotImplementedError(
            "axis_index_groups are not supported over axes of vmap; reshape the axis and name the "
            "parts instead"
        )
    listed = tuple([tuple([int(i) for i in g]) for g in groups])
    size = axis_size(names)
    if sorted(i for g in listed for i in g) != list(range(size)):
        raise ValueError(
            f"{what}: axis_index_groups must cover all indices exactly once: the indices 0 to "
            f"{size - 1} of the axes {names}, got {groups}"
        )
    if equal and len({len(g) for g in listed}) > 1:
        raise ValueError(f"{what}: axis_index_groups must have equal sizes, got {groups}")
    return listed


def bind(
    prim: Primitive, args: tuple[Any, ...], names: tuple[Any, ...], to: str = "varying",
    **params: Any,
) -> Any:  # fmt: skip
    """Bind a collective over axes, by their owner if they have one."""
    if prim.name in ("psum", "pmax", "pmin"):
        params["axes"] = names
    else:
        params["axis_name"] = names[0] if prim.name == "axis_index" else names
    owner = owner_of(names)
    return prim.bind(*args, **params) if owner is None else owner.bind(prim, args, params, to)


def bind_reduction(prim: Primitive, x: ArrayLike, names: tuple[Any, ...], groups: Groups) -> Any:
    """A reduction over axes of different owners: over those of one owner after the other."""
    if not axis_env.owners or len({id(owner_of((n,))) for n in names}) == 1:
        return bind(prim, (x,), names, axis_index_groups=groups)
    for owner in dict.fromkeys(owner_of((n,)) for n in names):
        part = tuple(n for n in names if owner_of((n,)) is owner)
        x = bind(prim, (x,), part, axis_index_groups=None)
    return x


def are_joint(names: tuple[Any, ...]) -> bool:
    """Return True if one collective can act on all axes: they are not mapped by ``vmap``."""
    owner = owner_of(names)
    return len(names) == 1 or owner is not None and all(owner_of((n,)) is owner for n in names)


def group_size(what: str, groups: Groups) -> int:
    """The size of groups, which must be equal."""
    if len({len(g) for g in groups}) > 1:
        raise ValueError(f"{what}: axis_index_groups must have equal sizes, got {groups}")
    return len(groups[0])
