"""Types for annotations of functions of arrays."""

from typing import Any

import numpy as np

from ._ir.dtypes import ExtendedDType
from ._trace.array import Array

ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""What functions take for an array: arrays, NumPy's arrays and scalars, Python's numbers."""

DTypeLike = str | type[Any] | np.dtype | ExtendedDType
"""What stands for a dtype: a dtype, its name, or a scalar class."""
