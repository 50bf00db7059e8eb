"""Types of the arguments of this package's functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from primax_core.extend.dimensions import Dimension
from primax_core.extend.references import DynamicSlice
from primax_core.lax import PrecisionLike as PrecisionLike
from primax_core.typing import (
    Array as Array,
    ArrayLike as ArrayLike,
    DTypeLike as DTypeLike,
    PyTree as PyTree,
    Shape as Shape,
    ShardingLike as ShardingLike,
)

from ._block_specs import BlockSpec, NoBlockSpec

if TYPE_CHECKING:
    from ._memory_spaces import MemorySpace
    from ._tpu_memory import MemorySpace as TpuMemorySpace


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

Index: TypeAlias = ArrayLike | slice | DynamicSlice | EllipsisType | tuple[Any, ...] | None
"""The index of a part of a reference: one for its first axis, or a tuple."""

DeviceId: TypeAlias = ArrayLike | Sequence[ArrayLike] | Mapping[Any, ArrayLike]
"""A device of a mesh: its number, its positions along all axes, or along some by name."""

Memory: TypeAlias = "MemorySpace | TpuMemorySpace"
"""A memory, such as ``ANY`` or ``tpu.VMEM``."""
