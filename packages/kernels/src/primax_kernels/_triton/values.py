"""Values of the program that is emitted."""

from __future__ import annotations

from dataclasses import dataclass

from .._emission.values import Bounds as Bounds, EmittedValue
from . import types


@dataclass(frozen=True)
class Value(EmittedValue):
    """A scalar or a tensor, whose sizes are the next larger powers of two of the value's."""

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
