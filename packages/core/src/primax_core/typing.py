"""Types for annotations of functions of arrays."""

from typing import Any

import numpy as np

from ._ir.dtypes import ExtendedDType
from ._trace.array import Array

ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""Arguments accepted as arrays: arrays, NumPy arrays and scalars, Python numbers."""

DTypeLike = str | type[Any] | np.dtype | ExtendedDType
"""Arguments accepted as dtypes: a dtype, its name, or a scalar class."""
