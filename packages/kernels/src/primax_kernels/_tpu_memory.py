"""Memories of a TPU."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from ._memory_spaces import memory_ref


class MemorySpace(enum.Enum):
    """Memories of a TPU. A member called with shape and dtype is the type of an array there.

    >>> import numpy as np
    >>> VMEM((8, 128), np.float32).shape
    (8, 128)
    """

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __call__(self, shape: Any, dtype: Any) -> Any:
        """The type of an array in this memory."""
        return memory_ref(shape, dtype, self)

    def __str__(self) -> str:
        return self.name


VMEM = MemorySpace.VMEM
VMEM_SHARED = MemorySpace.VMEM_SHARED
SMEM = MemorySpace.SMEM
CMEM = MemorySpace.CMEM
SEMAPHORE = MemorySpace.SEMAPHORE
HBM = MemorySpace.HBM


@dataclass(frozen=True)
class ACC:
    """Memory of the accumulators of a matrix unit, which begin with 0.

    Args:
      mxu_id: the number of the unit.

    >>> import numpy as np
    >>> ACC(0)((256, 256), np.float32).shape
    (256, 256)
    """

    mxu_id: int

    def __post_init__(self) -> None:
        if isinstance(self.mxu_id, bool) or not isinstance(self.mxu_id, int) or self.mxu_id < 0:
            raise ValueError(f"mxu_id is the number of a matrix unit, got {self.mxu_id!r}")

    def __call__(self, shape: Any, dtype: Any) -> Any:
        """The type of an accumulator, an array in this memory."""
        return memory_ref(shape, dtype, self)

    def __str__(self) -> str:
        return f"acc{self.mxu_id}"


accumulators: Final[WeakKeyDictionary[Any, ACC]] = WeakKeyDictionary()
"""Accumulators of kernels that run as Python functions, whose references have no memory space."""
