"""``ds``: a slice by its start and size, of which the start may be traced."""

from __future__ import annotations

from typing import Any

from .._base import pytree
from .._trace.core import Tracer


class Slice:
    """A part of an axis: ``size`` elements from ``start`` on, ``stride`` apart.

    Attributes:
      start: an integer, or a scalar array.
      size: how many elements.
      stride: the distance between them.
    """

    __slots__ = ("start", "size", "stride")

    def __init__(self, start: Any, size: Any, stride: int = 1):
        if not isinstance(stride, Tracer) and stride < 0:
            raise ValueError("`stride` must be >= 0.")
        self.start: Any = start
        self.size: Any = size
        self.stride: int = stride

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the start is no plain integer."""
        return not isinstance(self.start, int)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether the size is no plain integer."""
        return not isinstance(self.size, int)

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """The part of an axis of ``size`` elements that a Python slice stands for."""
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
    # What is known while tracing stays in the structure.
    parts = (s.start, s.size, s.stride)
    known = tuple(p if isinstance(p, int) else None for p in parts)
    return [p for p in parts if not isinstance(p, int)], known


def _join(known: tuple, parts: Any) -> Slice:
    given = iter(parts)
    new = object.__new__(Slice)
    new.start, new.size, new.stride = (next(given) if k is None else k for k in known)
    return new


pytree.register_pytree_node(Slice, _split, _join)


class _NotGiven:
    def __repr__(self):
        return "..."


_NOT_GIVEN: Any = _NotGiven()


def ds(start: Any, size: Any = _NOT_GIVEN, stride: int | None = None) -> slice | Slice:
    """A slice of ``size`` elements from ``start`` on; of one argument, that many from 0 on.

    Args:
      start: where it begins, an integer or a traced scalar; 0 for ``None``. ``ds(None)`` is the
        whole axis.
      size: how many elements.
      stride: the distance between them, 1 by default.

    >>> ds(2, 3)
    Slice(start=2, size=3, stride=1)
    """
    if size is _NOT_GIVEN:
        if start is None:
            return slice(None)
        start, size = None, start
    start = 0 if start is None else start
    return Slice(start, size, 1 if stride is None else stride)
