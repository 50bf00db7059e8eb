"""Sizes that may be symbolic dimensions, for those who compute shapes.

``n + 1``, ``n * m``, ``n // 2`` and ``n == m`` work on numbers and symbolic dimensions alike;
``min``, ``max``, ``int`` and ``range`` do not, and comparisons may be undecided.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._ir.symbolic import (
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
    """Whether a value is known while tracing as a size is: a Python int or a symbolic dimension."""
    return isinstance(x, (int, Dimension))


def size_as(n: Any, dtype: Any) -> Any:
    """A size as an operand of a dtype: a NumPy scalar, or the array of a symbolic dimension."""
    if isinstance(n, Dimension):
        return convert_element_type(n, dtype)
    return np.asarray(n).astype(dtype)[()]


def typical_size(n: Any) -> int:
    """A number that stands for a size where costs are weighed and results do not depend on it."""
    if not isinstance(n, Dimension):
        return n
    found = n.evaluate(dict.fromkeys(n.variables(), _TYPICAL))  # type: ignore[attr-defined]
    return max(found, 1)


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


def slice_bounds(s: slice, n: Any) -> tuple[Any, Any, int]:
    """``slice.indices`` for an axis of any size, with a stop that is not before the start.

    >>> slice_bounds(slice(-2, None), 5)
    (3, 5, 1)
    """
    given = [None if v is None else index(v) for v in (s.start, s.stop, s.step)]
    if is_static([n, *[v for v in given if v is not None]]):
        start, stop, step = slice(*given).indices(n)
        return start, max(start, stop) if step > 0 else min(start, stop), step
    low, high, step = given
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    first, last = (0, n) if step > 0 else (n - 1, -1)

    def inside(v: Any, default: Any) -> Any:
        if v is None:
            return default
        if v >= 0:
            return min_dim(n if step > 0 else n - 1, v)
        return max_dim(0 if step > 0 else -1, v + n)

    start, stop = inside(low, first), inside(high, last)
    if not _in_order(low, high, step):
        stop = max_dim(start, stop) if step > 0 else min_dim(start, stop)
    return start, stop, step


def _in_order(low: Any, high: Any, step: int) -> bool:
    """Whether bounds of the same kind stand in order before they are moved inside."""
    if low is None or high is None:
        return True
    if not decided(lambda: (low >= 0) == (high >= 0), False):
        return False
    return decided(lambda: low <= high if step > 0 else low >= high, False)


def slice_length(start: Any, stop: Any, step: int) -> Any:
    """How many positions there are from ``start`` to before ``stop``, which is not before it.

    >>> slice_length(0, 5, 2)
    3
    """
    if is_static((start, stop)):
        return len(range(start, stop, step))
    if step < 0:
        start, stop, step = stop, start, -step
    return (stop - start + step - 1) // step
