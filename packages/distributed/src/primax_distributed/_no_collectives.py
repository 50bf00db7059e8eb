"""``no_collectives``: refuse operations that exchange values along axes of a mesh."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from primax_core.extend.placements import is_placed
from primax_core.extend.runtime import ErrorWithPage

from ._mesh_options import forbidden_axes


class ForbiddenCollectiveError(ErrorWithPage, page=True):
    """An operation exchanges values along an axis that :func:`no_collectives` names."""


def no_collectives(new_val: Collection[Hashable]) -> AbstractContextManager[None]:
    """Context manager: refuse collectives along some axes of meshes, while functions are traced.

    Collectives in :func:`shard_map` are refused, and operations that remove an explicit axis from
    the types of their operands without marking the result as unreduced there: reductions and
    products over a divided axis, and ``reshard`` to fewer axes.

    Args:
      new_val: a set of names of mesh axes; the empty set permits all collectives.

    Raises:
      TypeError: if it is not a set.
      ForbiddenCollectiveError: in the context, for such an operation.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> from primax_distributed import make_mesh, P, shard_map
    >>> mesh = make_mesh((1,), ("x",))
    >>> total = shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    >>> with no_collectives({"x"}):
    ...     total(np.ones(3, np.float32))
    Traceback (most recent call last):
        ...
    primax_distributed._no_collectives.ForbiddenCollectiveError: psum acts on the axis 'x'...
    """
    if not isinstance(new_val, (set, frozenset)):
        raise TypeError(
            "no_collectives takes a set of names of mesh axes, such as {'x'}, got "
            f"{new_val!r} of type {type(new_val).__name__}"
        )
    return forbidden_axes(frozenset(new_val))


def check_types(name: str, in_avals: Sequence[Any], results: Sequence[Any]) -> None:
    """Refuse an operation whose results lose a forbidden axis of its operands."""
    lost = _explicit_axes(in_avals) & forbidden_axes.value
    for result in results:
        if is_placed(result):
            lost -= result.placement.unreduced
    lost -= _explicit_axes(results)
    if lost:
        axis = min(map(repr, lost))
        raise ForbiddenCollectiveError(
            f"{name} removes the axis {axis} from the types of its operands, "
            f"{', '.join(map(str, in_avals))}, and does not mark the result as unreduced: this is "
            f"a collective along {axis}, which no_collectives forbids. Reshard outside of the "
            "context, or pass out_sharding with the axis as unreduced"
        )


def check_collective(name: str, axes: Iterable[Hashable]) -> None:
    """Refuse a collective along a forbidden axis."""
    for axis in axes:
        if axis in forbidden_axes.value:
            raise ForbiddenCollectiveError(
                f"{name} acts on the axis {axis!r}, along which no_collectives forbids collectives"
            )


def _explicit_axes(avals: Sequence[Any]) -> set[Hashable]:
    specs = [a.placement.spec for a in avals if is_placed(a)]
    return {name for spec in specs for names in spec for name in names}
