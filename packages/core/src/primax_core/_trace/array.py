"""``Array``: the common base class of arrays and tracers.

The class has no behaviour. ``lax`` registers the operators, and the NumPy layer registers methods
and indexing, both with :func:`register_method`: they apply to arrays and tracers.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Array:
    """An n-dimensional array, or a tracer of one."""

    __slots__ = ()
    __array_priority__ = 100
    __hash__: Any = None  # type: ignore[assignment]

    aval: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize

    @property
    def weak_type(self) -> bool:
        """True if the dtype is a weak type, which adapts to other operands in promotion."""
        return self.aval.weak_type

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __setitem__(self, index, value):
        raise TypeError(
            "Primax arrays are immutable and do not support in-place item assignment. Instead of "
            "x[idx] = y, use x = x.at[idx].set(y), which returns a changed copy (and compiles to "
            "an in-place update if no other operation needs the original)."
        )


def register_method(name: str, value: Any, *, override: bool = False) -> None:
    """Add a method, an operator or a property to arrays and tracers.

    Raises:
      ValueError: if the name is in use and ``override`` is false.
    """
    if name in Array.__dict__ and not override and name not in _replaceable:
        raise ValueError(f"Array already has {name!r}; pass override=True to replace it")
    setattr(Array, name, value)


_replaceable = {"__hash__"}


def as_dtype_name(dtype: Any) -> str:
    """Name of a dtype for messages."""
    return np.dtype(dtype).name if not hasattr(dtype, "name") else dtype.name
