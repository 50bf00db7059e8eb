"""Values of the kernel that is emitted."""

from __future__ import annotations

from dataclasses import dataclass

from .._emission.values import Bounds as Bounds, EmittedValue
from . import types


@dataclass(frozen=True)
class Value(EmittedValue):
    """A scalar or a vector."""

    @property
    def element(self) -> str:
        """Type of an element."""
        return types.element(self.dtype)

    @property
    def type(self) -> str:
        """Type in the text."""
        return types.vector(self.element, self.shape)
