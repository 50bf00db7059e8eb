"""Types in the text of Mosaic's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._emission.elements import (
    BOOL as BOOL,
    ELEMENTS as ELEMENTS,
    FLOAT32 as FLOAT32,
    INT32 as INT32,
)
from .errors import MosaicError

SUBLANES: Final = 8
LANES: Final = 128
"""Sizes of a register of a TPU, along the last axis but one and along the last axis."""

DMA_SEMAPHORE: Final = "!tpu.dma_semaphore"
"""The type of semaphores that copies signal."""

SEMAPHORE: Final = "!tpu.semaphore"
"""The type of semaphores that devices signal."""


def element(dtype: Any) -> str:
    """The type of an element.

    Raises:
      MosaicError: for a dtype that Mosaic does not have.
    """
    name = np.dtype(dtype).name
    if name in ELEMENTS:
        return ELEMENTS[name]
    rewrite = {
        "float16": "use bfloat16 or float32",
        "float64": "use float32",
        "int64": "use int32",
        "uint64": "use uint32",
    }.get(name, "convert before the kernel, or pass the parts of complex numbers as two arrays")
    raise MosaicError(f"Mosaic has no elements of type {name}; {rewrite}")


def stored(dtype: Any) -> np.dtype:
    """The dtype of elements in memory, where a Boolean is an ``int32``."""
    return INT32 if np.dtype(dtype) == BOOL else np.dtype(dtype)


def vector(element_type: str, shape: Sequence[int]) -> str:
    """The type of a vector, or of a scalar."""
    if not shape:
        return element_type
    return f"vector<{'x'.join(map(str, shape))}x{element_type}>"


def memory(element_type: str, shape: Sequence[int], space: str) -> str:
    """The type of memory, of one element if the shape is ``()``."""
    sizes = "".join(f"{n}x" for n in shape)
    return f"memref<{sizes}{element_type}, #tpu.memory_space<{space}>>"


def array_attribute(numbers: Sequence[int]) -> str:
    """An array of integers of 64 bits."""
    listed = ", ".join(map(str, numbers))
    return f"array<i64: {listed}>" if listed else "array<i64>"


def tile(rank: int, dtype: Any) -> tuple[int, ...]:
    """The multiples that sizes of blocks and computed starts have to be, axis by axis."""
    if rank == 0:
        return ()
    if rank == 1:
        return (LANES * max(4 // np.dtype(stored(dtype)).itemsize, 1),)
    return (1,) * (rank - 2) + (SUBLANES, LANES)


def padded_bytes(shape: Sequence[int], element_type: str) -> int:
    """The least bytes of an array in vector memory, whose last two axes are whole tiles."""
    size = {"i1": 1, "i8": 1, "f8E4M3FN": 1, "f8E5M2": 1, "i16": 2, "bf16": 2}.get(element_type, 4)
    total = size
    rank = len(shape)
    for axis, n in enumerate(shape):
        multiple = 1
        if axis == rank - 1:
            multiple = LANES
        elif axis == rank - 2:  # short axes have smaller tiles
            multiple = min(SUBLANES, 1 << max(n - 1, 0).bit_length())
        total *= -(-n // multiple) * multiple
    return total
