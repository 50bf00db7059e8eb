"""Types for annotations of functions of arrays."""

from ._base.pytree import PyTree as PyTree
from ._runtime.layouts import PlacementLike as PlacementLike
from ._runtime.sharding import ShardingLike as ShardingLike
from ._trace.array import Array as Array
from ._trace.typing import (
    ArrayLike as ArrayLike,
    DTypeLike as DTypeLike,
    Shape as Shape,
    ShapeLike as ShapeLike,
)
