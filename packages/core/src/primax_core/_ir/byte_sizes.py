"""Sizes of values in memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from . import dtypes


def nbytes(aval: Any) -> int:
    """Bytes of a value, or of the contents of a reference, from its type.

    Args:
      aval: a type, as :func:`typeof` returns it.

    Returns:
      An integer; a symbolic dimension for symbolic shapes.

    Elements of less than a byte are counted with their bits and rounded up; padding of devices is
    not counted.

    >>> import numpy as np
    >>> from primax_core.extend import nbytes, typeof
    >>> nbytes(typeof(np.zeros((2, 3), np.float32)))
    24
    >>> nbytes(typeof(1.0))
    4
    """
    aval = getattr(aval, "inner_aval", aval)
    dtype: Any = aval.dtype
    if isinstance(dtype, dtypes.ExtendedDType):
        extended: Any = dtype
        aval = extended.physical_aval(aval)
        dtype = aval.dtype
    if dtype == dtypes.float0:
        return 0
    return -(-prod(aval.shape) * dtypes.itemsize_bits(dtype) // 8)


def total_bytes(avals: Sequence[Any]) -> int:
    """Bytes of several values, from their types.

    Args:
      avals: types, such as those of the arguments of a jaxpr.

    Returns:
      An integer, the sum of :func:`nbytes`.

    The memory of a computation is larger: it has intermediate values.

    >>> import numpy as np
    >>> from primax_core.extend import total_bytes, typeof
    >>> total_bytes([typeof(np.zeros(3, np.float32)), typeof(np.zeros(2, np.int8))])
    14
    """
    return sum(map(nbytes, avals))
