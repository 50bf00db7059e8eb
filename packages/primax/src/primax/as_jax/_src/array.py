"""Arrays."""

from typing import TypeAlias

from primax._array_methods import CLASS_OF_ARRAYS as _CLASS_OF_ARRAYS
from primax_core import Array as _Array

ArrayImpl: type[_Array] = _CLASS_OF_ARRAYS
Shape: TypeAlias = tuple[int, ...]
Index: TypeAlias = tuple[slice, ...]
