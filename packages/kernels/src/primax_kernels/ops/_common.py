"""Checks of arguments, and expressions that several kernels use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import dtypes, lax
from primax_core.extend import typeof

FLOATS: Final = tuple(
    np.dtype(d) for d in (dtypes.bfloat16, np.float16, np.float32, np.float64)
)  # fmt: skip
INTEGERS: Final = tuple(
    np.dtype(f"{kind}int{bits}") for kind in ("", "u") for bits in (8, 16, 32, 64)
)  # fmt: skip
SIGNED_INTEGERS: Final = tuple(np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))


def names(kinds: Sequence[np.dtype[Any]]) -> str:
    """Names of dtypes, for errors."""
    return ", ".join(d.name for d in kinds)


def operand(
    function: str, name: str, x: Any, *, rank: int | None = None,
    kinds: Sequence[np.dtype[Any]] = FLOATS,
) -> Any:  # fmt: skip
    """The type of an argument.

    Raises:
      TypeError: if it is no array, or its dtype is not one of ``kinds``.
      ValueError: if it has another number of axes than ``rank``.
    """
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(
            f"{function}: {name} is an array, got {type(x).__name__}; convert it with an array "
            "constructor"
        )
    aval = typeof(x)
    if aval.dtype not in kinds:
        raise TypeError(
            f"{function}: {name} has the dtype {aval.dtype}; supported are {names(kinds)}: convert "
            "it with lax.convert_element_type"
        )
    if rank is not None and aval.ndim != rank:
        raise ValueError(
            f"{function}: {name} has {rank} axes, got the shape {aval.shape}; use vmap for batches"
        )
    return aval


def same_dtype(function: str, **avals: Any) -> None:
    """Check that operands have one dtype.

    Raises:
      TypeError: if they do not.
    """
    if len({a.dtype for a in avals.values()}) > 1:
        listed = ", ".join(f"{name}: {a.dtype}" for name, a in avals.items())
        raise TypeError(
            f"{function}: the operands have different dtypes ({listed}); convert them to one"
        )


def axis_in(function: str, axis: Any, rank: int) -> int:
    """An axis, counted from the front.

    Raises:
      TypeError: if it is no integer.
      ValueError: if the array has no such axis.
    """
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise TypeError(f"{function}: axis is an integer, got {axis!r}")
    number = int(axis.__index__())
    if not -rank <= number < rank:
        raise ValueError(f"{function}: axis {number} of an array with {rank} axes")
    return number % rank


def block_size(function: str, name: str, value: Any, default: int, size: int) -> int:
    """A block's size, at most that of the axis; ``default`` if the argument is ``None``.

    Raises:
      TypeError: if it is no integer.
      ValueError: if it is not positive.
    """
    if value is None:
        value = default
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{function}: {name} is a positive integer or None, got {value!r}")
    number = int(value.__index__())
    if number < 1:
        raise ValueError(f"{function}: {name} is a positive integer, got {number}")
    return min(number, max(size, 1))


def block_sizes(
    function: str, name: str, block: Any, parts: Sequence[str], default: Sequence[int],
    sizes: Sequence[int],
) -> tuple[int, ...]:  # fmt: skip
    """The sizes of a block along several axes; see `block_size`.

    Args:
      name: the argument's name.
      block: a size or ``None`` for each axis, or ``None``.
      parts: what the axes are, for errors.
      default: the sizes in place of ``None``.
      sizes: the sizes of the axes.
    """
    if block is None:
        block = (None,) * len(sizes)
    if not isinstance(block, (tuple, list)) or len(block) != len(sizes):
        raise ValueError(f"{function}: {name} is ({', '.join(parts)}) or None, got {block!r}")
    return tuple(
        block_size(function, f"{name}[{i}]", *entry)
        for i, entry in enumerate(zip(block, default, sizes))
    )


def positive(function: str, name: str, value: Any) -> float:
    """A positive number.

    Raises:
      TypeError: if it is no real number, such as a traced value.
      ValueError: if it is not positive and finite.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(
            f"{function}: {name} is a number known while tracing, got {type(value).__name__}"
        )
    number = float(value)
    if not (0 < number < math.inf):
        raise ValueError(f"{function}: {name} is positive and finite, got {number}")
    return number


def accumulator(dtype: Any) -> np.dtype[Any]:
    """The dtype of sums of products: 32 bits for narrower numbers."""
    dtype = np.dtype(dtype)
    if dtype in INTEGERS:
        return dtype if dtype.itemsize > 4 else np.dtype(np.int32)
    return dtype if dtype == np.float64 else np.dtype(np.float32)


def cast(x: Any, dtype: Any) -> Any:
    """``x`` with another dtype."""
    return x if typeof(x).dtype == dtype else lax.convert_element_type(x, dtype)


def filled(shape: Sequence[int], value: Any, dtype: Any) -> Any:
    """An array of equal elements."""
    return lax.full(tuple(shape), value, dtype)


def row_sum(x: Any) -> Any:
    """Sums of the last axis, which is kept."""
    return lax.expand_dims(lax.reduce_sum(x, (x.ndim - 1,)), (x.ndim - 1,))


def row_max(x: Any) -> Any:
    """Maxima of the last axis, which is kept."""
    return lax.expand_dims(lax.reduce_max(x, (x.ndim - 1,)), (x.ndim - 1,))


def product(x: Any, y: Any, over: tuple[int, int], dtype: Any, precision: Any = None) -> Any:
    """The product of two matrices, summed over an axis of each, in a wide dtype."""
    dims = (((over[0],), (over[1],)), ((), ()))
    return lax.dot_general(x, y, dims, precision=precision, preferred_element_type=dtype)


def positions(shape: Sequence[int], axis: int, start: Any) -> Any:
    """Positions in the array of the elements of a block that begins at ``start``."""
    return lax.broadcasted_iota(np.int32, tuple(shape), axis) + start


def inside(x: Any, *limits: tuple[int, Any, int], fill: Any = 0) -> Any:
    """A block whose elements outside of the array are replaced.

    They are NaN: a product with 0 would pass them on, in values or derivatives.

    Args:
      limits: axis of the block, number of the block, size of the array's axis.
    """
    for axis, number, size in limits:
        n = x.shape[axis]
        if size % n:
            keep = positions(x.shape, axis, number * np.int32(n)) < np.int32(size)
            x = lax.select(keep, x, filled(x.shape, fill, typeof(x).dtype))
    return x
