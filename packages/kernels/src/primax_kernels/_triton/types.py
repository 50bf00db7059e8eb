"""Types and constants in the text of Triton's intermediate language.

Tensors have sizes that are powers of two. A value of another shape is held in the next larger
tensor, whose further elements are arbitrary.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._emission.elements import (
    BOOL as BOOL,
    ELEMENTS as SHARED_ELEMENTS,
    FLOAT32 as FLOAT32,
    INT32 as INT32,
    INT64 as INT64,
    bits as bits,
    highest as highest,
    is_float as is_float,
    is_unsigned as is_unsigned,
    literal as literal,
    lowest as lowest,
    unwritten as unwritten,
)
from .errors import TritonError

ELEMENTS: Final = {
    **SHARED_ELEMENTS, "int64": "i64", "uint64": "i64", "float16": "f16", "float64": "f64",
}  # fmt: skip
"""Types of elements, by dtype. Integers have no sign there; operations have."""

MAX_ELEMENTS: Final = 1 << 20
"""The most elements of a tensor."""


def element(dtype: Any) -> str:
    """The type of an element.

    Raises:
      TritonError: for a dtype that Triton does not have.
    """
    name = np.dtype(dtype).name
    if name not in ELEMENTS:
        raise TritonError(
            f"Triton has no elements of type {name}; it has {', '.join(ELEMENTS)}: convert before "
            "the kernel, or pass the parts of complex numbers as two arrays"
        )
    return ELEMENTS[name]


def in_memory(dtype: Any) -> str:
    """The type of an element in memory, where a Boolean is a byte."""
    return "i8" if np.dtype(dtype) == BOOL else element(dtype)


def is_f8(dtype: Any) -> bool:
    """Return True if elements are floating-point numbers of 8 bits."""
    return element(dtype).startswith("f8")


def power_of_two(n: int) -> int:
    """The smallest power of two that is not less than ``n``."""
    return 1 << max(n - 1, 0).bit_length()


def padded(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the tensor that holds a value."""
    return tuple(map(power_of_two, shape))


def tensor(element_type: str, shape: tuple[int, ...]) -> str:
    """The type of a tensor with the sizes ``shape``, or of a scalar."""
    if not shape:
        return element_type
    return f"tensor<{'x'.join(map(str, shape))}x{element_type}>"
