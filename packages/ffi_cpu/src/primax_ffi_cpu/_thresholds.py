"""Sizes from which the native kernels are faster than XLA's forms.

``python -m primax_ffi_cpu.measure`` measures the table again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LEAST: Final[dict[tuple[str, str], int]] = {
    ("argsort", "int32"): 16,
    ("argsort", "int64"): 16,
    ("argsort", "int8"): 16,
    ("argsort", "uint16"): 16,
    ("argsort", "uint32"): 4,
    ("sort", "int32"): 4,
    ("sort", "int64"): 4,
    ("sort", "uint64"): 16,
    ("sort", "uint8"): 4,
    ("top_k", "bool"): 8,
    ("top_k", "float32"): 32,
    ("top_k", "float64"): 4,
    ("top_k", "int32"): 4,
    ("top_k", "int64"): 8,
    ("top_k", "uint16"): 4,
    ("top_k", "uint32"): 8,
}
"""For operations and dtypes the least number of elements; 1 where there is no entry."""

_thread = threading.local()


def least_size(operation: str, dtype: str) -> int:
    """The least number of elements for which an operation calls the native kernel."""
    if getattr(_thread, "measuring", False):
        return 1
    return LEAST.get((operation, dtype), 1)


@contextmanager
def measuring() -> Iterator[None]:
    """Native kernels for all sizes, in this thread."""
    before = getattr(_thread, "measuring", False)
    _thread.measuring = True
    try:
        yield
    finally:
        _thread.measuring = before
