"""``Array``: what arrays and tracers have in common.

The class holds no behaviour of its own. Operators arrive from ``lax``, methods and indexing from
the NumPy layer, both through :func:`register_method`; so they work on arrays and tracers alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Array:
    """An n-dimensional array, or a tracer that stands for one."""

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
        """Whether the dtype gives way in promotion, as that of a Python scalar does."""
        return self.aval.weak_type

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __setitem__(self, index, value):
        raise TypeError(
            "Primax arrays are immutable and do not support in-place item assignment. Instead of "
            "x[idx] = y, use x = x.at[idx].set(y), which returns a changed copy (and compiles to "
            "an update in place where nobody else needs the original)."
        )


def register_method(name: str, value: Any, *, override: bool = False) -> None:
    """Give arrays and tracers a method, an operator or a property.

    Raises:
      ValueError: if the name is taken and ``override`` is not set.
    """
    if name in Array.__dict__ and not override and name not in _replaceable:
        raise ValueError(f"Array already has {name!r}; pass override=True to replace it")
    setattr(Array, name, value)


_replaceable = {"__hash__"}


def as_dtype_name(dtype: Any) -> str:
    """The dtype's name for messages."""
    return np.dtype(dtype).name if not hasattr(dtype, "name") else dtype.name
