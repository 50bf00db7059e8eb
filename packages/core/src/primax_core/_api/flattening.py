"""``ravel_pytree``: conversion of a tree of arrays to a vector, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base import pytree, source
from .._base.pytree import PyTree
from .._base.source import api_boundary
from .._ir import dtypes
from .._trace.core import typeof
from ..lax.conversion import convert_element_type
from ..lax.joining import concatenate, split
from ..lax.magnitude import real
from ..lax.placement import ArrayCopySemantics, moved
from ..lax.reshaping import reshape

_flatten, _unflatten = pytree.tree_flatten, pytree.tree_unflatten


@api_boundary
def ravel_pytree(pytree: PyTree) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves of a tree in one vector, and the inverse function.

    Args:
      pytree: a tree of arrays and numbers. Leaves of different dtypes are promoted to a common
        one; ``unravel`` restores their dtypes.

    Returns:
      ``(vector, unravel)``. ``unravel`` accepts vectors of the same length and returns trees of
      the structure, shapes and dtypes of ``pytree``.

    Raises:
      TypeError: if a leaf is not an array or a number.
      ValueError: raised by ``unravel`` for a vector of another length.

    Both functions are linear, and can be transformed. Optimizers and solvers for vectors use
    them.

    >>> import numpy as np
    >>> vector, unravel = ravel_pytree({"a": np.ones(2, np.float32), "b": 3.0})
    >>> vector.tolist(), float(unravel(vector * 2)["b"])
    ([1.0, 1.0, 3.0], 6.0)
    """
    leaves, treedef = _flatten(pytree)
    if not leaves:
        vector = moved(np.zeros(0, np.float32), None, ArrayCopySemantics.REUSE_INPUT)
        return vector, lambda v: _unflatten(treedef, [])
    avals = [typeof(x) for x in leaves]
    sizes = [a.size for a in avals]
    total = sum(sizes)
    dtype, _ = dtypes.lattice_result(tuple((a.dtype, a.weak_type) for a in avals))
    parts = [convert_element_type(reshape(x, (n,)), dtype) for x, n in zip(leaves, sizes)]
    vector = parts[0] if len(parts) == 1 else concatenate(parts, 0)

    @api_boundary
    def unravel(v: Any) -> Any:
        aval = typeof(v)
        if aval.shape != (total,):
            raise ValueError(
                f"the unravel function takes a vector of shape {(total,)}, got shape {aval.shape}"
            )
        if aval.dtype != dtype and any(a.dtype != dtype for a in avals):
            raise TypeError(
                f"the unravel function of leaves with several dtypes takes a vector of dtype "
                f"{dtype.name}, got {aval.dtype.name}"
            )
        parts = [v] if len(sizes) == 1 else split(v, sizes, 0)
        return _unflatten(treedef, [_restored(p, a, dtype) for p, a in zip(parts, avals)])

    return vector, unravel


def _restored(x: Any, aval: Any, common: Any) -> Any:
    """A part of the vector with the leaf's shape and, if the dtypes differ, its dtype."""
    x = reshape(x, aval.shape)
    if aval.dtype == common:
        return x
    if dtypes.issubdtype(common, np.complexfloating) and not dtypes.issubdtype(
        aval.dtype, np.complexfloating
    ):
        source.warn("ravel_pytree: the imaginary part of a real leaf is dropped")
        x = real(x)
    return convert_element_type(x, aval.dtype)
