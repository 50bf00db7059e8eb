"""Types for annotations."""

from typing import Any as _Any, TypeAlias

from primax_core import Array as Array
from primax_core.typing import ArrayLike as ArrayLike, DTypeLike as DTypeLike

Shape: TypeAlias = tuple[int, ...]
DimSize: TypeAlias = int | _Any
DType: TypeAlias = _Any
