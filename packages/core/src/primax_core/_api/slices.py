"""``ds``: a slice by its start, which may be traced, and its size."""

from __future__ import annotations

from typing import Any

from .._base import pytree
from .._ir.symbolic_dims import Dimension, is_symbolic_dim
from .._trace.core import Tracer
from .._trace.typing import ArrayLike


def _check_integer(name: str, value: Any) -> None:
    # The dtypes of arrays and tracers are checked where the slice is used.
    if not (hasattr(value, "__index__") or hasattr(value, "dtype") or is_symbolic_dim(value)):
        raise TypeError(
            f"ds(start, size, stride): {name} must be an integer or a scalar array of integers, "
            f"got {value!r} of type {type(value).__name__}"
        )


class Slice:
    """A slice of an axis: ``size`` elements from ``start``, with a ``stride``.

    Attributes:
      start: an integer, or a scalar array.
      size: the number of elements.
      stride: the distance between elements.
    """

    __slots__ = ("start", "size", "stride")

    def __init__(self, start: Any, size: Any, stride: int = 1):
        for name, value in (("start", start), ("size", size), ("stride", stride)):
            _check_integer(name, value)
        if not isinstance(stride, Tracer) and stride < 0:
            raise ValueError("`stride` must be >= 0.")
        self.start: Any = start
        self.size: Any = size
        self.stride: int = stride

    @property
    def is_dynamic_start(self) -> bool:
        """True if the start is not a Python integer."""
        return not isinstance(self.start, int)

    @property
    def is_dynamic_size(self) -> bool:
        """True if the size is not a Python integer."""
        return not isinstance(self.size, int)

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """The slice of an axis of ``size`` elements for a Python slice."""
        start, stop, step = slc.indices(size)
        if step < 1:
            raise ValueError(f"slice must have a step of 1 or more (found: {step})")
        return cls(start, max((stop - start + step - 1) // step, 0), step)

    def __eq__(self, other: object) -> bool:
        parts = (self.start, self.size, self.stride)
        return type(other) is Slice and parts == (other.start, other.size, other.stride)

    __hash__: Any = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size!r}, stride={self.stride!r})"


def _split(s: Slice):
    # Python integers are metadata, other values are leaves.
    parts = (s.start, s.size, s.stride)
    known = tuple(p if isinstance(p, int) else None for p in parts)
    return [p for p in parts if not isinstance(p, int)], known


def _join(known: tuple, parts: Any) -> Slice:
    leaves = iter(parts)
    new = object.__new__(Slice)
    new.start, new.size, new.stride = (next(leaves) if k is None else k for k in known)
    return new


pytree.register_pytree_node(Slice, _split, _join)


class _NotGiven:
    def __repr__(self):
        return "..."


_NOT_GIVEN: Any = _NotGiven()


def ds(
    start: ArrayLike | Dimension, size: int | Dimension = _NOT_GIVEN, stride: int | None = None
) -> slice | Slice:
    """A slice of ``size`` elements from ``start``; with one argument, of that size from 0.

    It is an index of references, such as ``ref[ds(start, size)]``. Unlike a Python slice it may
    start at a traced index.

    Args:
      start: the first index, an integer or a traced scalar; ``None`` is 0. ``ds(None)`` is the
        whole axis.
      size: the number of elements, a Python integer.
      stride: the distance between elements, 1 by default.

    Returns:
      A ``Slice``, or a Python slice for ``ds(None)``.

    Raises:
      TypeError: if a value can never be an index, such as a string or a Python float.
      ValueError: if ``stride`` is negative.

    The bounds are checked where the slice is used as an index. ``ref[start:start + size]`` is the
    same for Python integers.

    >>> import numpy as np
    >>> ds(2, 3)
    Slice(start=2, size=3, stride=1)
    >>> ds(3)
    Slice(start=0, size=3, stride=1)
    >>> from primax_core import new_ref
    >>> import numpy as np
    >>> new_ref(np.arange(6))[ds(2, 3)].tolist()
    [2, 3, 4]
    """
    if size is _NOT_GIVEN:
        if start is None:
            return slice(None)
        start, size = None, start
    start = 0 if start is None else start
    return Slice(start, size, 1 if stride is None else stride)
