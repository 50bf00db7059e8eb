"""Memory spaces of references, and the types of scratch memory."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from primax_core.dtypes import canonicalize_dtype
from primax_core.extend import AbstractRef, ShapedArray, dtypes


class MemorySpace(enum.Enum):
    """Memory in which a block lies.

    ``ANY`` leaves the whole array where it is, without a copy of a block. The other members are for
    internal arguments of backends.
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"

    def __call__(self, shape: Any, dtype: Any) -> MemoryRef:
        """The type of an array in this memory."""
        return memory_ref(shape, dtype, self)

    def __str__(self) -> str:
        return self.value


ANY = MemorySpace.ANY
HOST = MemorySpace.HOST


@dataclass(frozen=True)
class MemoryRef:
    """Type of scratch memory: an array in a memory space.

    Attributes:
      inner_aval: shape and dtype.
      memory_space: the memory.
    """

    inner_aval: ShapedArray
    memory_space: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self.inner_aval.dtype

    def get_ref_aval(self) -> AbstractRef:
        """The type of the reference that a kernel receives."""
        return AbstractRef(self.inner_aval, self.memory_space)


def memory_ref(shape: Any, dtype: Any, memory_space: Any) -> MemoryRef:
    """The type of an array of ``shape`` and ``dtype`` in a memory space.

    Raises:
      TypeError: if ``shape`` is not a sequence of integers.
      ValueError: for a negative size.
    """
    sizes = (shape,) if isinstance(shape, int) else shape
    try:
        sizes = tuple(int(n.__index__()) for n in sizes)
    except (AttributeError, TypeError):
        raise TypeError(
            f"the shape of scratch memory is a tuple of integers, got {shape!r}"
        ) from None
    if any(n < 0 for n in sizes):
        raise ValueError(f"the shape of scratch memory has a negative size: {sizes}")
    return MemoryRef(ShapedArray(sizes, canonicalize_dtype(np.dtype(dtype))), memory_space)


def scratch_type(scratch: Any) -> AbstractRef:
    """The type of the reference for an element of ``scratch_shapes``.

    Raises:
      TypeError: if it has neither ``get_ref_aval`` nor a shape and a dtype.
    """
    make = getattr(scratch, "get_ref_aval", None)
    if make is not None:
        return make()
    if hasattr(scratch, "shape") and hasattr(scratch, "dtype"):
        return memory_ref(scratch.shape, scratch.dtype, None).get_ref_aval()
    raise TypeError(
        f"scratch memory is described by a memory space called with shape and dtype, such as "
        f"VMEM((8, 128), float32), got {scratch!r}"
    )


def unwritten_value(dtype: Any) -> Any:
    """The elements of memory before the first write, and of blocks outside of the array.

    They are NaN, and the least integer in dtypes without NaN, so that a kernel that uses them gives
    no plausible number.
    """
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    return dtypes.iinfo(dtype).min if dtypes.issubdtype(dtype, np.integer) else 0
