"""Classes of constants with a dtype.

Constants of jaxprs are ordinary values here; libraries refer to these classes in conversions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import ShapedArray


class LiteralArray(np.ndarray):
    """The reference's arrays for constants of jaxprs; there are no instances."""


class TypedNdArray(np.ndarray):
    """The reference's weakly typed arrays for constants; there are no instances."""


class _Typed:
    """A Python number with a dtype.

    Args:
      value: the number.
      dtype: its dtype.
    """

    dtype: np.dtype[Any]

    def __new__(cls, value: Any, dtype: Any) -> _Typed:
        number: _Typed = super().__new__(cls, value)  # type: ignore[call-arg]
        number.dtype = np.dtype(dtype)
        return number

    @property
    def aval(self) -> ShapedArray:
        """The type of the number, which is weak."""
        return ShapedArray((), self.dtype, weak_type=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()}, dtype={self.dtype.name})"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (type(self).__bases__[-1](self), self.dtype)


class TypedInt(_Typed, int):
    """An integer with a dtype."""


class TypedFloat(_Typed, float):
    """A float with a dtype."""

    __str__ = float.__repr__


class TypedComplex(_Typed, complex):
    """A complex number with a dtype."""
