"""Sizes that may be symbolic dimensions, for those who compute shapes.

``n + 1``, ``n * m``, ``n // 2`` and ``n == m`` work on numbers and symbolic dimensions alike;
``min``, ``max``, ``int`` and ``range`` do not, and comparisons may be undecided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._ir.element_types import DTypeLike
from .._ir.slice_sizes import slice_bounds as slice_bounds, slice_length as slice_length
from .._ir.symbolic_dims import (
    Dimension as Dimension,
    as_size as as_size,
    decided as decided,
    index as index,
    is_static as is_static,
    is_symbolic_dim as is_symbolic_dim,
    max_dim as max_dim,
    min_dim as min_dim,
)
from ..lax.broadcasting import broadcast_shapes as _symbolic_broadcast
from ..lax.conversion import convert_element_type

__all__ = [
    "Dimension",
    "as_size",
    "broadcast_shapes",
    "decided",
    "index",
    "is_size",
    "is_static",
    "is_symbolic_dim",
    "max_dim",
    "min_dim",
    "size_as",
    "slice_bounds",
    "slice_length",
    "typical_size",
]


def is_size(x: Any) -> bool:
    """Return True if a value is a size: an integer or a symbolic dimension.

    Args:
      x: any value.

    Returns:
      A bool.

    Arguments that may be sizes or arrays are distinguished by it.

    >>> from primax_core import export
    >>> from primax_core.extend.dimensions import is_size
    >>> (n,) = export.symbolic_shape("n")
    >>> is_size(3), is_size(n), is_size(1.5)
    (True, True, False)
    """
    return isinstance(x, (int, Dimension))


def size_as(n: int | Dimension, dtype: DTypeLike) -> Any:
    """A size as an operand of a dtype.

    Args:
      n: an integer or a symbolic dimension.
      dtype: the dtype of the operand.

    Returns:
      A NumPy scalar, or an array whose value is computed when the function runs.

    The mean of an axis divides by ``size_as(n, x.dtype)``.

    >>> import numpy as np
    >>> from primax_core.extend.dimensions import size_as
    >>> size_as(3, np.float32)
    np.float32(3.0)
    """
    if isinstance(n, Dimension):
        return convert_element_type(n, dtype)
    return np.asarray(n).astype(dtype)[()]


def typical_size(n: int | Dimension) -> int:
    """A typical value of a size, for cost estimates that do not affect results.

    Args:
      n: an integer or a symbolic dimension.

    Returns:
      A Python integer; the integer itself, or a value within the bounds of the dimension.

    Choices between algorithms by size use it; results must not depend on it.

    >>> from primax_core import export
    >>> from primax_core.extend.dimensions import typical_size
    >>> (n,) = export.symbolic_shape("n")
    >>> typical_size(3), typical_size(n) >= 1
    (3, True)
    """
    if not isinstance(n, Dimension):
        return n
    value = n.evaluate(dict.fromkeys(n.variables(), _TYPICAL))  # type: ignore[attr-defined]
    return max(value, 1)


_TYPICAL = 128


def broadcast_shapes(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape that shapes broadcast to, by NumPy's rules.

    Args:
      shapes: tuples of sizes, also symbolic ones.

    Returns:
      A tuple of sizes.

    Raises:
      ValueError: if they do not fit together.

    A symbolic size fits an equal one and 1. It is the function of :mod:`primax_core.lax`, for the
    extension API.

    >>> from primax_core.extend.dimensions import broadcast_shapes
    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return np.broadcast_shapes(*shapes)
    except TypeError:
        return _symbolic_broadcast(*shapes)
