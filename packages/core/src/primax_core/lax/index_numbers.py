"""Dimension numbers and out-of-bounds modes of gathers and scatters."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._ir.avals import ShapedArray
from .elementwise import accepts


class GatherScatterMode(enum.Enum):
    """Treatment of windows that are not entirely within the operand.

    ``CLIP`` clamps their start indices. ``FILL_OR_DROP`` returns the fill value for a gather and
    drops the updates of a scatter. ``PROMISE_IN_BOUNDS`` promises that there are none; otherwise
    the result is unspecified. ``ONE_HOT`` gathers by a product with one-hot rows, so that such
    windows are zero.

    Functions accept the names ``"clip"``, ``"fill"``, ``"drop"``, ``"promise_in_bounds"`` and
    ``"one_hot"`` too.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> x, starts = np.array([1.0, 2.0, 3.0], np.float32), np.array([[1], [7]])
    >>> lax.gather(x, starts, numbers, (1,), mode=GatherScatterMode.CLIP).tolist()
    [2.0, 3.0]
    >>> lax.gather(x, starts, numbers, (1,), mode="fill", fill_value=-1.0).tolist()
    [2.0, -1.0]
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode with a name (``clip``, ``fill``, ``drop``, ``promise_in_bounds``).

        ``None`` is ``FILL_OR_DROP``.

        Raises:
          ValueError: if the name is unknown.
        """
        if isinstance(s, GatherScatterMode):
            return s
        mode = _MODES.get(s) if s is None or isinstance(s, str) else None
        if mode is None:
            raise ValueError(
                f'Unknown gather mode "{s}"; the modes are clip, fill, drop and promise_in_bounds'
            )
        return mode

    def __str__(self) -> str:
        return f"GatherScatterMode.{self.name}"


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class GatherDimensionNumbers(NamedTuple):
    """Correspondence of the axes of a gather's operand, indices and result.

    Index vectors are along the last axis of the indices; each is the start of a window.

    Attributes:
      offset_dims: sorted axes of the result along the windows.
      collapsed_slice_dims: sorted axes of the operand with window size 1, which the result lacks.
      start_index_map: for each component of an index vector, the operand's axis that it indexes.
      operand_batching_dims: axes of the operand that are paired with axes of the indices.
      start_indices_batching_dims: the paired axes of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Correspondence of the axes of a scatter's operand, indices and updates.

    Attributes:
      update_window_dims: sorted axes of the updates along the windows.
      inserted_window_dims: sorted axes of the operand with window size 1, which the updates lack.
      scatter_dims_to_operand_dims: for each component of an index vector, the operand's axis that
        it indexes.
      operand_batching_dims: axes of the operand that are paired with axes of the indices.
      scatter_indices_batching_dims: the paired axes of the indices.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


def hashable(numbers: Any) -> Any:
    """Dimension numbers whose fields are tuples of Python ints."""
    return type(numbers)(*[tuple([int(d) for d in field]) for field in numbers])


# Checks. Each raises TypeError.


def check_indices(
    op: str, operand: ShapedArray, indices: ShapedArray, index_map: Sequence[int], name: str
) -> None:
    """Raise an error if the indices or the map of index components are not valid."""
    if not accepts(indices.dtype, ("integer",)):
        raise ValueError(f"{op} indices must have an integer type, got {indices.dtype.name}")
    if not indices.ndim:
        raise TypeError(
            f"{op} indices must have an axis of index vectors: Gather index leaf dimension must be "
            f"within [0, rank(indices) + 1). rank(indices) is 0 and gather index leaf dimension is "
            "-1."
        )
    if len(index_map) != indices.shape[-1]:
        raise TypeError(
            f"{op} op has {len(index_map)} elements in {name} and the bound of dimension "
            f"index_vector_dim={indices.ndim - 1} of indices is {indices.shape[-1]}. These two "
            "numbers must be equal."
        )
    for i, d in enumerate(index_map):
        if not 0 <= d < operand.ndim:
            mapping = f"{name} mapping" if op == "Scatter" else name
            raise TypeError(f"Invalid {mapping}; domain is [0, {operand.ndim}), got: {i}->{d}.")
    check_axes(op, name, index_map, operand.ndim, ordered=False)


def check_axes(op: str, name: str, axes: Sequence[int], ndim: int, ordered: bool = True) -> None:
    """Raise an error for axes that are not sorted, not distinct, or out of range."""
    if ordered and list(axes) != sorted(axes):
        raise TypeError(f"{name} in {op} op must be sorted; got {axes}")
    if len(set(axes)) != len(axes):
        raise TypeError(f"{name} in {op} op must not repeat; got: {axes}.")
    for d in axes:
        if not 0 <= d < ndim:
            raise TypeError(f"Invalid {name} set in {op} op; valid range is [0, {ndim}); got: {d}.")


def check_disjoint(
    op: str, name: str, axes: Sequence[int], other_name: str, others: Sequence[int]
) -> None:
    """Raise an error for axes with two roles."""
    if set(axes) & set(others):
        raise TypeError(
            f"{name} and {other_name} in {op} op must be disjoint; got: {axes} and {others}."
        )


def check_batching(
    op: str,
    operand: ShapedArray,
    indices: ShapedArray,
    operand_dims: Sequence[int],
    index_dims: Sequence[int],
    names: Sequence[str],
) -> None:
    """Raise an error for paired batching axes that do not match."""
    check_axes(op, names[0], operand_dims, operand.ndim)
    check_axes(op, names[1], index_dims, indices.ndim, ordered=False)
    if len(operand_dims) != len(index_dims):
        raise TypeError(
            f"{op} op requires equal numbers of {names[0]} and {names[1]}, got {operand_dims} and "
            f"{index_dims}."
        )
    if indices.ndim - 1 in index_dims:
        raise TypeError(
            f"{op} op cannot have the index vector dimension as a batching dimension; got "
            f"{index_dims}."
        )
    sizes = tuple([operand.shape[d] for d in operand_dims])
    index_sizes = tuple([indices.shape[d] for d in index_dims])
    if sizes != index_sizes:
        raise TypeError(
            f"{op} op requires operand batching dimensions and indices batching dimensions to have "
            f"the same shape, got {sizes} and {index_sizes}."
        )
