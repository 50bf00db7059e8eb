"""One-hot encoding."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, dimensions, dtypes
from primax_core.extend.dimensions import Dimension
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShardingLike
from primax_numpy.declaring import compiled, one_axis


@compiled("n", "axis", "dtype", name="one_hot")
def _one_hot(x, *, n, axis, dtype):
    aval = typeof(x)
    if not dtypes.issubdtype(aval.dtype, np.inexact) and aval.dtype.itemsize < 4:
        x = lax.convert_element_type(x, np.int32)  # a dtype that represents every class
    shape = (*aval.shape[:axis], n, *aval.shape[axis:])
    classes = lax.broadcasted_iota(typeof(x).dtype, shape, axis)
    others = tuple(i for i in range(len(shape)) if i != axis)
    return lax.convert_element_type(lax.broadcast_in_dim(x, shape, others) == classes, dtype)


def one_hot(
    x: ArrayLike,
    num_classes: ArrayLike | Dimension,
    *,
    dtype: DTypeLike | None = None,
    axis: int | Sequence[int] | None = -1,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """One-hot vectors: 1 at the position of an index, 0 elsewhere.

    Args:
      x: indices, ``int[...]``. The vector of an index out of bounds is 0. Floats are accepted for
        compatibility, with a warning.
      num_classes: the size of the new axis, a concrete integer or a symbolic dimension.
      dtype: the dtype of the result, the default float by default.
      axis: the position of the new axis in the result, the last by default; or the name of a
        mapped axis, each member of which returns the element of its own index.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of the shape of ``x`` with a new axis of size ``num_classes``. Its derivative is 0.

    Raises:
      TypeError: if ``num_classes`` is negative, not an integer or not concrete.
      ValueError: if the result has no such axis.

    >>> one_hot(np.array([0, 2, 5]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    if out_sharding is not None:
        return with_out_sharding(one_hot, out_sharding, x, num_classes, dtype=dtype, axis=axis)
    n = dimensions.index(num_classes)
    if n < 0:
        raise TypeError(f"one_hot: num_classes must not be negative, got {n}")
    result_dtype = dtypes.default_float()
    if dtype is not None:
        result_dtype = dtypes.canonicalize_user_dtype(dtype, "one_hot")
    x = pnp.asarray(x)
    aval = typeof(x)
    if not dtypes.issubdtype(aval.dtype, np.integer):
        warnings.warn(
            f"one_hot: indices should be integers, got dtype {aval.dtype.name}; convert with "
            "x.astype(int)",
            DeprecationWarning,
            stacklevel=2,
        )
    if isinstance(axis, str):
        return _one_hot_member(x, n, axis, result_dtype)
    out: Array = _one_hot(x, n=n, axis=one_axis(axis, aval.ndim + 1), dtype=result_dtype)
    return out


def _one_hot_member(x: Any, n: int, axis: str, dtype: Any) -> Array:
    size = lax.axis_size(axis)
    if size != n:
        raise ValueError(
            f"one_hot: num_classes must be the size of the mapped axis {axis!r}, which is {size}; "
            f"got {n}"
        )
    return lax.convert_element_type(x == lax.axis_index(axis), dtype)
