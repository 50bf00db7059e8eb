"""Arrays."""

from typing import TypeAlias

from primax_core import Array as _Array
from primax_core.extend import as_operand as _as_operand

ArrayImpl: type[_Array] = type(_as_operand(False))
Shape: TypeAlias = tuple[int, ...]
Index: TypeAlias = tuple[slice, ...]
