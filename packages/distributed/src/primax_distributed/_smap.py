"""`smap`: `shard_map` over one mesh axis, with array axes in place of specs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

from primax_core import tree_util
from primax_core.typing import PyTree

from ._shard_map import shard_map
from ._shard_map_specs import Infer, InferFromArgs
from ._spec import PartitionSpec


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: PyTree = Infer,
    out_axes: PyTree,
    axis_name: Hashable,
) -> Any:
    """Apply a function to the parts of arrays along one mesh axis.

    It is :func:`shard_map` over one axis of the mesh of the context, whose specs are written as
    numbers of array axes, as those of `vmap` are.

    Args:
      f: the function. Without it, a decorator is returned.
      in_axes: for each argument the axis that is divided, a prefix of the tuple of arguments;
        `None` for values that are not divided. By default it follows from the types of the
        arguments.
      out_axes: the same for the results.
      axis_name: the name of the mesh axis.

    Raises:
      TypeError: if an axis is no number, or `axis_name` is a set or tuple of names.
      ValueError: as :func:`shard_map`; or if an axis is negative.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> from primax_distributed import make_mesh, set_mesh
    >>> with set_mesh(make_mesh((1,), ("i",))):
    ...     total = smap(lambda x: lax.psum(x, "i"), in_axes=0, out_axes=None, axis_name="i")
    ...     total(np.arange(3.0)).tolist()
    [0.0, 1.0, 2.0]
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (tuple, list, set, frozenset)):
        raise TypeError(
            f"axis_name of smap is one name, got {axis_name!r}: for several axes nest smap, or "
            "use shard_map"
        )
    specs = in_axes
    if not isinstance(in_axes, InferFromArgs):
        specs = _specs("in_axes", in_axes, axis_name)
    return shard_map(
        f,
        in_specs=specs,
        out_specs=_specs("out_axes", out_axes, axis_name),
        axis_names={axis_name},
    )


def _specs(what: str, axes: Any, name: Hashable) -> Any:
    return tree_util.tree_map(
        lambda axis: _spec(what, axis, name), axes, is_leaf=lambda x: x is None
    )


def _spec(what: str, axis: Any, name: Hashable) -> PartitionSpec:
    if axis is None:
        return PartitionSpec()
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise TypeError(
            f"{what} of smap is a tree of array axes and None, got {axis!r} of type "
            f"{type(axis).__name__}"
        )
    if axis < 0:
        raise ValueError(
            f"{what} of smap must count axes from the front, got {axis}: pass the number of array "
            f"axes minus {-axis}"
        )
    return PartitionSpec(*[None] * axis, name)
