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

    Raises:
      TypeError: if the value has no dtype.
      ValueError: for ``None``.

    >>> dtype(1.0).name, dtype(np.int8).name
    ('float32', 'int8')
    """
    if x is None:
        raise ValueError(f"Invalid argument to dtype: {x}.")
    return dtypes.dtype(x)


def shape_as_value(shape: Shape) -> Array:
    """A shape as an array of integers.

    >>> shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    try:
        sizes = [operator.index(d) for d in shape]
    except TypeError as e:
        raise TypeError(f"shape_as_value takes a sequence of integers, got {shape}: {e}") from None
    return put(np.array(sizes, dtypes.default_int()))
