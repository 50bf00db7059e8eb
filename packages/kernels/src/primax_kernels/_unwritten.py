"""Arrays and references whose contents do not matter yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primax_core import extend, lax, tree_util
from primax_core.extend import ShapedArray
from primax_core.ref import empty_ref

from ._typing import DTypeLike, HasShape, Shape, ShardingLike


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: ShardingLike | None = None) -> Any:
    """An array whose elements are not specified, as an operand that a kernel overwrites.

    Args:
      shape: sizes of the axes.
      dtype: type of the elements.
      out_sharding: division over devices.
    """
    return lax.empty(shape, dtype, out_sharding=out_sharding)


def empty_like(x: HasShape) -> Any:
    """Arrays of the shapes and dtypes of a pytree's leaves, whose elements are not specified."""
    return tree_util.tree_map(lambda leaf: lax.empty(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: HasShape) -> Any:
    """A new reference to an array of the shape and dtype of ``x``, which is not written yet."""
    return empty_ref(ShapedArray(tuple(x.shape), x.dtype))


def run_state(f: Callable[..., None]) -> Callable[[Any], Any]:
    """A function of arrays from a function ``f`` of references, that returns their final contents.

    >>> import numpy as np
    >>> def double(ref):
    ...     ref[...] = ref[...] * 2
    >>> run_state(double)(np.arange(3.0, dtype=np.float32))
    Array([0., 2., 4.], dtype=float32)
    """
    return extend.run_state(f)
