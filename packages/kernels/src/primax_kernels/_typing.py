"""Types of the arguments of this package's functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from primax_core.extend.dimensions import Dimension
from primax_core.lax import PrecisionLike as PrecisionLike
from primax_core.typing import (
    Array as Array,
    ArrayLike as ArrayLike,
    DTypeLike as DTypeLike,
    Shape as Shape,
)

from ._block_specs import BlockSpec, NoBlockSpec


class HasShape(Protocol):
    """An object with a shape and a dtype: a ``ShapeDtypeStruct``, an array, type of a reference."""

    @property
    def shape(self) -> Any:
        """Sizes of the axes."""

    @property
    def dtype(self) -> Any:
        """Type of the elements."""


Reference: TypeAlias = HasShape
"""A reference, a view of one (``ref.at[index]``), or one that `select_ref` chooses."""

Types: TypeAlias = HasShape | Sequence[Any] | Mapping[Any, Any] | None
"""A pytree of objects with a shape and a dtype."""

Specs: TypeAlias = BlockSpec | NoBlockSpec | Sequence[Any] | Mapping[Any, Any] | None
"""A pytree of specifications of blocks."""

Size: TypeAlias = ArrayLike | Dimension
"""An integer, a computed integer scalar, or a symbolic size."""

Grid: TypeAlias = Size | Sequence[Size]
"""Sizes of a grid."""
