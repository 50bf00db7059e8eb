"""Types for annotations of functions of arrays."""

from ._trace.array import Array as Array
from ._trace.typing import (
    ArrayLike as ArrayLike,
    DTypeLike as DTypeLike,
    Shape as Shape,
    ShapeLike as ShapeLike,
)
