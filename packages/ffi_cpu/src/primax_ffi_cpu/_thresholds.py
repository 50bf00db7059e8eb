"""Sizes from which the native kernels are faster than XLA's forms."""

from __future__ import annotations

from typing import Final

LEAST: Final[dict[str, dict[str, int]]] = {}
"""For each operation and dtype the least number of elements; others are 1."""


def least_size(operation: str, dtype: str, length: int) -> int:
    return LEAST.get(operation, {}).get(dtype, 1)
