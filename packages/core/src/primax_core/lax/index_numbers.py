"""How gathers and scatters lay out their axes, and what they do with positions out of bounds."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._ir.avals import ShapedArray
from .elementwise import accepts


class GatherScatterMode(enum.Enum):
    """What becomes of windows that are not wholly within the operand.

    ``CLIP`` moves them inside; ``FILL_OR_DROP`` gives a gather's results the fill value and leaves
    a scatter's updates out; ``PROMISE_IN_BOUNDS`` says that there are none, and the result is not
    specified if that is not true; ``ONE_HOT`` gathers by a product with one-hot rows, so that such
    windows are zero.
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode for its name (``clip``, ``fill``, ``drop``, ``promise_in_bounds``).

        ``None`` stands for ``FILL_OR_DROP``.

        Raises:
          ValueError: if there is no such mode.
        """
        if isinstance(s, GatherScatterMode):
            return s
        found = _MODES.get(s) if s is None or isinstance(s, str) else None
        if found is None:
            raise ValueError(
                f'Unknown gather mode "{s}"; the modes are clip, fill, drop and promise_in_bounds'
            )
        return found

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
    """How the axes of a gather's operand, indices and result belong together.

    The last axis of the indices holds index vectors; a window of the operand starts at each.

    Attributes:
      offset_dims: sorted axes of the result that run over windows.
      collapsed_slice_dims: sorted axes of the operand whose window has size 1 and that the result
        does not have.
      start_index_map: for each component of an index vector, the operand's axis it points into.
      operand_batching_dims: axes of the operand that go in step with axes of the indices.
      start_indices_batching_dims: those axes of the indices.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """How the axes of a scatter's operand, indices and updates belong together.

    Attributes:
      update_window_dims: sorted axes of the updates that run over windows.
      inserted_window_dims: sorted axes of the operand whose window has size 1 and that the updates
        do not have.
      scatter_dims_to_operand_dims: for each component of an index vector, the operand's axis it
        points into.
      operand_batching_dims: axes of the operand that go in step with axes of the indices.
      scatter_indices_batching_dims: those axes of the indices.
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
    """Refuse index vectors that do not point into the operand."""
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
    """Refuse axes that are not sorted, not distinct or out of range."""
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
    """Refuse axes that play two parts."""
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
    """Refuse axes in step that do not match."""
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
