"""Dtypes of values, and shapes as arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .._ir import dtypes
from .._runtime.array import put
from .._trace.array import Array
from .._trace.typing import Shape


def dtype(x: Any) -> Any:
    """The dtype of a value as an array, or of a scalar class.

    Args:
      x: an array, a number, a dtype, its name or a scalar class.

    Returns:
      A dtype that arrays can have: 64-bit dtypes only if ``enable_x64`` is set.

    Raises:
      TypeError: if the value has no dtype.
      ValueError: for ``None``.

    The values of an array are not read.

    >>> dtype(1.0).name, dtype(np.int8).name
    ('float32', 'int8')
    >>> dtype(np.zeros(2, np.float64)).name
    'float32'
    """
    if x is None:
        raise ValueError(f"Invalid argument to dtype: {x}.")
    return dtypes.dtype(x)


def shape_as_value(shape: Shape) -> Array:
    """A shape as an array of integers.

    Args:
      shape: a tuple of sizes, numbers or symbolic dimensions.

    Returns:
      A vector of the default integer dtype. The sizes that are symbolic are computed when the
      function runs.

    Raises:
      TypeError: if an element is not a size.

    Without symbolic dimensions it is a constant.

    >>> shape_as_value((2, 3)).tolist()
    [2, 3]
    >>> shape_as_value(()).shape
    (0,)
    """
    try:
        sizes = [operator.index(d) for d in shape]
    except TypeError as e:
        raise TypeError(f"shape_as_value takes a sequence of integers, got {shape}: {e}") from None
    return put(np.array(sizes, dtypes.default_int()))
