"""Sizes that may be symbolic dimensions, for those who compute shapes.

``n + 1``, ``n * m``, ``n // 2`` and ``n == m`` work on numbers and symbolic dimensions alike;
``min``, ``max``, ``int`` and ``range`` do not, and comparisons may be undecided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
    """Return True if a value is a size: a Python int or a symbolic dimension."""
    return isinstance(x, (int, Dimension))


def size_as(n: Any, dtype: Any) -> Any:
    """A size as an operand of a dtype: a NumPy scalar, or the array of a symbolic dimension."""
    if isinstance(n, Dimension):
        return convert_element_type(n, dtype)
    return np.asarray(n).astype(dtype)[()]


def typical_size(n: Any) -> int:
    """A typical value of a size, for cost estimates that do not affect results."""
    if not isinstance(n, Dimension):
        return n
    value = n.evaluate(dict.fromkeys(n.variables(), _TYPICAL))  # type: ignore[attr-defined]
    return max(value, 1)


_TYPICAL = 128


def broadcast_shapes(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape that shapes broadcast to.

    Raises:
      ValueError: if they do not fit together.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    try:
        return np.broadcast_shapes(*shapes)
    except TypeError:
        return _symbolic_broadcast(*shapes)
