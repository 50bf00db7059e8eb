"""Values of the kernel that is emitted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .._emission.elements import is_float
from . import types

Bounds = tuple[int, int]
"""The least and the greatest value of an integer."""


@dataclass(frozen=True)
class Value:
    """A scalar or a vector.

    Attributes:
      name: its name in the text.
      dtype: type of its elements.
      shape: shape.
      bounds: bounds of all elements of integers, and of Booleans as integers, if they are known.
      multiple: a divisor of an integer scalar.
    """

    name: str
    dtype: Any
    shape: tuple[int, ...] = ()
    bounds: Bounds | None = None
    multiple: int = 1

    @property
    def element(self) -> str:
        """Type of an element."""
        return types.element(self.dtype)

    @property
    def type(self) -> str:
        """Type in the text."""
        return types.vector(self.element, self.shape)

    @property
    def is_float(self) -> bool:
        """Return True if the elements are floating-point numbers."""
        return is_float(self.dtype)

    @property
    def known(self) -> int | None:
        """The integer that all elements are, if it is known."""
        return self.bounds[0] if self.bounds and self.bounds[0] == self.bounds[1] else None

    def divisible(self, n: int) -> bool:
        """Return True if an integer is known to be a multiple of ``n``."""
        return self.known % n == 0 if self.known is not None else self.multiple % n == 0

    def having(self, bounds: Bounds | None, multiple: int = 1) -> Value:
        """The value with bounds and a divisor."""
        return replace(self, bounds=bounds, multiple=multiple)
