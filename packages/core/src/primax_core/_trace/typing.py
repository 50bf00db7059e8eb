"""Types of the arguments of functions of arrays, such as ``ArrayLike`` and ``Shape``."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from .._ir.dtypes import DTypeLike as DTypeLike
from .._ir.symbolic_dims import Dimension
from .array import Array

# Without type parameters, so that ``isinstance`` takes the union.
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""An operand: an array, a NumPy array or scalar, or a Python number."""

Shape: TypeAlias = Sequence[int | Dimension]
"""Sizes of the axes: integers, or symbolic dimensions during export."""

ShapeLike: TypeAlias = Shape | int | Dimension
"""A shape, or the size of the only axis."""
