"""The position in the grid, while a kernel is traced or stepped through."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import lax


class Position(NamedTuple):
    """Indices and sizes of the grid."""

    indices: Sequence[Any]
    grid: tuple[Any, ...]


class _Positions(threading.local):
    def __init__(self) -> None:
        self.stack: list[Position] = []


_positions = _Positions()


UNKNOWN_SIZE: Final = 2**31 - 1
"""The size of a dimension that is computed, as a bound."""


def sizes_of(
    grid: tuple[int, ...], dynamic: Sequence[int], refs: Sequence[Any]
) -> tuple[tuple[Any, ...], Sequence[Any]]:
    """The sizes of a grid, and the references after those to the sizes that are computed."""
    sizes: list[Any] = list(grid)
    for d, ref in zip(dynamic, refs):
        sizes[d] = ref[...]
    return tuple(sizes), refs[len(dynamic) :]


@contextmanager
def at(indices: Sequence[Any], grid: tuple[Any, ...]) -> Iterator[None]:
    """Make ``program_id`` return the given indices."""
    _positions.stack.append(Position(indices, grid))
    try:
        yield
    finally:
        _positions.stack.pop()


def _position(axis: Any, function: str) -> Position:
    if not _positions.stack:
        raise RuntimeError(f"{function} is called outside of a kernel")
    position = _positions.stack[-1]
    if not isinstance(axis, int):
        raise TypeError(f"{function} takes the number of a grid dimension, got {axis!r}")
    if not -len(position.grid) <= axis < len(position.grid):
        raise ValueError(
            f"{function}({axis}): the grid {position.grid} has {len(position.grid)} dimensions"
        )
    return position


def program_id(axis: int) -> Any:
    """The index of the step along a dimension of the grid, an ``int32`` scalar.

    Raises:
      RuntimeError: outside of a kernel.
      ValueError: if the grid has no such dimension.
    """
    return _position(axis, "program_id").indices[axis]


def num_programs(axis: int) -> Any:
    """The number of steps along a dimension of the grid, an integer unless it is computed.

    Raises the errors of `program_id`.
    """
    return _position(axis, "num_programs").grid[axis]


def indices_of(step: Any, sizes: Sequence[int]) -> list[Any]:
    """The indices of a step by its number, an integer scalar, in row-major order."""
    step = lax.convert_element_type(step, np.int32)  # loops count in int64 with enable_x64
    if len(sizes) == 1:
        return [step]
    indices: list[Any] = []
    for size in reversed(sizes):
        count = np.int32(size) if isinstance(size, int) else size
        indices.insert(0, lax.rem(step, count))
        step = lax.div(step, count)
    return indices
