"""Numbers of classes as vectors."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_numpy.declaring import compiled, one_axis


@compiled("n", "axis", "dtype", name="one_hot")
def _one_hot(x, *, n, axis, dtype):
    given = typeof(x)
    if not dtypes.issubdtype(given.dtype, np.inexact) and given.dtype.itemsize < 4:
        x = lax.convert_element_type(x, np.int32)  # which holds every class
    shape = (*given.shape[:axis], n, *given.shape[axis:])
    classes = lax.broadcasted_iota(typeof(x).dtype, shape, axis)
    others = tuple(i for i in range(len(shape)) if i != axis)
    return lax.convert_element_type(lax.broadcast_in_dim(x, shape, others) == classes, dtype)


def one_hot(
    x: Any, num_classes: Any, *, dtype: Any = None, axis: Any = -1, out_sharding: Any = None
) -> Array:
    """Vectors with a 1 at the position that an index names, and 0 elsewhere.

    Args:
      x: indices, ``int[...]``. Where one is negative or too large its vector is 0. Floats are
        accepted for compatibility, with a warning.
      num_classes: the size of the new axis, a known number.
      dtype: of the result, the default float by default.
      axis: where the new axis stands in the result, the last by default; or the name of an axis
        that is mapped over, whose members each give the element at their own position.
      out_sharding: accepted for compatibility; arrays lie on one device.

    Raises:
      TypeError: if ``num_classes`` is negative, no integer or not known.
      ValueError: if the result has no such axis.

    >>> one_hot(np.array([0, 2, 5]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    n = operator.index(num_classes)
    if n < 0:
        raise TypeError(f"one_hot: num_classes must not be negative, got {n}")
    wanted = dtypes.default_float()
    if dtype is not None:
        wanted = dtypes.canonicalize_user_dtype(dtype, "one_hot")
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
        return _one_hot_member(x, n, axis, wanted)
    out: Array = _one_hot(x, n=n, axis=one_axis(axis, aval.ndim + 1), dtype=wanted)
    return out


def _one_hot_member(x: Any, n: int, axis: str, dtype: Any) -> Array:
    size = lax.axis_size(axis)
    if size != n:
        raise ValueError(
            f"one_hot: num_classes must be the size of the mapped axis {axis!r}, which is {size}; "
            f"got {n}"
        )
    return lax.convert_element_type(x == lax.axis_index(axis), dtype)
