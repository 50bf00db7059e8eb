"""Arithmetic on sizes of blocks, and hints."""

from __future__ import annotations

import math
from typing import Any

from primax_core import ds, lax

from ._typing import ArrayLike, Size

Slice: type[Any] = type(ds(0, 1))
"""A slice by start and size, which `ds` returns."""


def cdiv(a: Size, b: Size) -> Any:
    """``a / b`` rounded up, for integers, arrays and symbolic sizes.

    >>> cdiv(10, 4)
    3
    """
    return -(-a // b)


def align_to(a: Size, alignment: Size) -> Any:
    """The smallest multiple of ``alignment`` that is not less than ``a``.

    >>> align_to(10, 4)
    12
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is not less than ``x``.

    Raises:
      ValueError: for a negative number.

    >>> next_power_of_2(100)
    128
    """
    if x < 0:
        raise ValueError(f"next_power_of_2 takes a number that is not negative, got {x}")
    return 1 if x == 0 else 1 << (x - 1).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Distances in elements between neighbours along each axis, in row-major order.

    >>> strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def broadcast_to(a: ArrayLike, shape: tuple[int, ...]) -> Any:
    """``a`` broadcast to ``shape``, by NumPy's rules.

    Raises:
      ValueError: if the shapes are incompatible.
    """
    return lax.broadcast_in_dim(
        a, tuple(shape), tuple(range(len(shape) - getattr(a, "ndim", 0), len(shape)))
    )


def dslice(start: Size, size: Size | None = None, stride: int | None = None) -> Any:
    """The same as ``ds``; with one argument, a slice of that size from 0."""
    return ds(start) if size is None else ds(start, size, stride)
