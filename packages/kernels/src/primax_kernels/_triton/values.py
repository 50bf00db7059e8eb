"""Values of the program that is emitted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from . import types

Bounds = tuple[int, int]
"""The least and the greatest value of an integer."""


@dataclass(frozen=True)
class Value:
    """A scalar or a tensor.

    Attributes:
      name: its name in the text.
      dtype: type of its elements.
      shape: shape of the value; its tensor has the next larger powers of two as sizes.
      bounds: bounds of all elements of integers, and of Booleans as integers, if they are known.
    """

    name: str
    dtype: Any
    shape: tuple[int, ...] = ()
    bounds: Bounds | None = None

    @property
    def element(self) -> str:
        """Type of an element."""
        return types.element(self.dtype)

    @property
    def padded(self) -> tuple[int, ...]:
        """Sizes of the tensor."""
        return types.padded(self.shape)

    @property
    def type(self) -> str:
        """Type in the text."""
        return types.tensor(self.element, self.padded)

    @property
    def is_float(self) -> bool:
        """Return True if the elements are floating-point numbers."""
        return types.is_float(self.dtype)

    @property
    def known(self) -> int | None:
        """The integer that all elements are, if it is known."""
        return self.bounds[0] if self.bounds and self.bounds[0] == self.bounds[1] else None

    def within(self, bounds: Bounds | None) -> Value:
        """The value with bounds."""
        return replace(self, bounds=bounds)

    def like(self, shape: tuple[int, ...]) -> Value:
        """The same tensor as a value of another shape with the same padded sizes."""
        return replace(self, shape=shape)


@dataclass(frozen=True)
class Pointers:
    """A pointer or a tensor of pointers, with a mask of the elements that exist.

    Attributes:
      name: its name in the text.
      element: type of the elements in memory.
      shape: shape of the value that is read or written.
      mask: Boolean tensor, or ``None`` if all elements exist.
    """

    name: str
    element: str
    shape: tuple[int, ...]
    mask: Value | None

    @property
    def type(self) -> str:
        """Type in the text."""
        return types.tensor(f"!tt.ptr<{self.element}>", types.padded(self.shape))
