"""Index expressions parsed into a static plan and its operands.

A plan has an entry for each part of an index, in order:

- ``("slice", start, stop, step)``: a slice of one axis with static bounds;
- ``("all",)``: a whole axis;
- ``("new",)`` and ``("none",)``: a new axis, and a marker that the preceding one is empty;
- ``("flag", k)``: a boolean scalar next to other positions: operand ``k`` contains the positions
  along a new axis of size 1 (one zero for ``True``, none for ``False``), which broadcast together
  with those of the arrays;
- ``("at", i)``: a concrete position, possibly negative, inside a trace;
- ``("scalar", k)`` and ``("array", k)``: positions stored in operand ``k``;
- ``("window", k, size)``: ``size`` elements that start at the position in operand ``k``.
"""

from __future__ import annotations

import operator
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import device_put, ds, lax
from primax_core.errors import NonConcreteBooleanIndexError
from primax_core.extend import Array, Tracer, bounded_cache, dtypes, state, typeof
from primax_core.extend.dimensions import Dimension, index, slice_bounds

_DYNAMIC_SLICE: Final = type(ds(0, 1))


class Plan(NamedTuple):
    """The static part of an index.

    Attributes:
      parts: its parts, in order.
      separated: True if positions stand on both sides of an ellipsis without axes: as in NumPy,
        they are not adjacent, so that their axes come first in the result.
    """

    parts: tuple[tuple[Any, ...], ...]
    separated: bool = False


def plan_of(index: Any, shape: tuple[int, ...]) -> tuple[Plan, list[Any]]:
    """The plan of an index expression for an array of a shape, and its operands.

    Raises:
      IndexError: for too many indices, masks of the wrong shape, and traced slice bounds.
      TypeError: if an index is not an integer, a boolean, a slice, ``...``, ``None`` or an array.
      OverflowError: if a Python integer does not fit the index dtype.
    """
    expanded = _entries_of(index)
    used = sum(1 for e in expanded if e is not None and e is not Ellipsis and not _is_flag(e))
    if used > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed"
        )
    parts: list[tuple[Any, ...]] = []
    operands: list[Any] = []
    axis = gap = 0
    for position, e in enumerate(expanded):
        if e is Ellipsis:
            fill = len(shape) - used
            gap = 0 if fill else len(parts)
            parts.extend([("all",)] * fill)
            axis += fill
        elif e is None:
            parts.append(("new",))
        elif _is_flag(e):
            parts.append(("flag", len(operands)))
            operands.append(np.zeros(int(e), np.int32))
        else:
            parts.append(_part(e, shape[axis], axis, position, operands))
            axis += 1
    if len(operands) == 1 and all(p[0] not in _POSITIONS for p in parts):
        # A mask of rank 0 without other positions adds an axis of size 1 or 0.
        parts = [q for p in parts for q in (_new_axis(operands) if p[0] == "flag" else (p,))]
        operands = []
    separated = _has_positions(parts[:gap]) and _has_positions(parts[gap:])
    return Plan(tuple(parts), separated), operands


_POSITIONS: Final = frozenset(("at", "scalar", "array", "window"))


def _has_positions(parts: list[tuple[Any, ...]]) -> bool:
    return any(p[0] in ("at", "scalar", "array", "flag") for p in parts)


def _new_axis(operands: list[Any]) -> tuple[tuple[str], ...]:
    return (("new",),) if len(operands[0]) else (("new",), ("none",))


def with_axes_of_flags(plan: Plan) -> tuple[Plan, tuple[int, ...]]:
    """The plan with each flag as positions along its new axis, and the new axes of the array."""
    parts, axes, axis = [], [], 0
    for part in plan.parts:
        if part[0] == "flag":
            axes.append(axis)
            part = ("array", part[1])
        parts.append(part)
        axis += part[0] not in ("new", "none")
    return plan._replace(parts=tuple(parts)), tuple(axes)


def _entries_of(index: Any) -> list[Any]:
    """The entries of an index with masks expanded, exactly one of which is ``...``."""
    entries = index if type(index) is tuple else (index,)
    if isinstance(index, list):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use "
            f"`arr[array(seq)]` instead of `arr[seq]`: got {index!r}"
        )
    expanded = _without_masks(entries)
    ellipses = sum(1 for e in expanded if e is Ellipsis)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    return expanded if ellipses else [*expanded, Ellipsis]


def _is_flag(e: Any) -> bool:
    return isinstance(e, (bool, np.bool_))


def _without_masks(entries: tuple[Any, ...]) -> list[Any]:
    expanded: list[Any] = []
    for i, e in enumerate(entries):
        is_array = isinstance(e, (Array, np.ndarray, list, tuple))
        if isinstance(e, (list, tuple)):
            e = np.asarray(e, dtype=None if e else np.int32)
        if is_array and np.dtype(bool) == getattr(e, "dtype", None):
            if isinstance(e, Tracer):
                raise NonConcreteBooleanIndexError(e)
            mask = np.asarray(e)
            if not mask.ndim:
                expanded.append(bool(mask))
                continue
            expanded.extend(_Mask(part, mask.shape[k], i) for k, part in enumerate(mask.nonzero()))
        else:
            expanded.append(e)
    return expanded


class _Mask(NamedTuple):
    """Positions selected by a concrete mask along one axis."""

    where: np.ndarray
    length: int
    position: int


def _part(e: Any, size: int, axis: int, position: int, operands: list[Any]) -> tuple[Any, ...]:
    if isinstance(e, _Mask):
        # A mask without elements selects nothing from any axis.
        if e.length != size and e.length:
            raise IndexError(
                f"boolean index did not match shape of indexed array in index {e.position}: got "
                f"({e.length},), expected [{size}]"
            )
        operands.append(e.where.astype(np.int32))
        return ("array", len(operands) - 1)
    if isinstance(e, slice):
        return _slice_part(e, size, position)
    if isinstance(e, _DYNAMIC_SLICE):
        return _window_part(e, size, position, operands)
    if isinstance(e, (int, np.integer)):
        return _known_position(int(e), size, axis, operands)
    if isinstance(e, (Array, np.ndarray)):
        aval = typeof(e)
        if not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError(
                "Indexer must have integer or boolean type, got indexer with type "
                f"{aval.dtype.name} at position {position}, indexer value {e}"
            )
        if isinstance(e, np.ndarray) and e.dtype.itemsize == 8 and _is_long(size):
            # int64 is not available in every mode; uint32 represents these positions.
            e = np.where(e < 0, e + size, e)
            e = np.where(e < 0, _LAST, np.minimum(e, _LAST)).astype(np.uint32)
        operands.append(e)
        return ("scalar" if not aval.ndim else "array", len(operands) - 1)
    if isinstance(e, (float, complex, np.inexact)):
        raise TypeError(
            "Indexer must have integer or boolean type, got indexer with type "
            f"{np.asarray(e).dtype} at position {position}, indexer value {e}"
        )
    if isinstance(e, str):
        raise TypeError(f"string indexing is not supported; got idx={e!r}")
    if isinstance(e, Dimension):
        operands.append(e.as_value())
        return ("scalar", len(operands) - 1)
    if hasattr(e, "__index__"):
        return _known_position(operator.index(e), size, axis, operands)
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are "
        f"valid indices, got {e!r}"
    )


def _known_position(i: int, size: int, axis: int, operands: list[Any]) -> tuple[Any, ...]:
    if not size:
        raise IndexError(f"index is out of bounds for axis {axis} with size 0")
    long = _is_long(size)
    if (state.trace is not None or long) and type(size) is int and -size <= i < size:
        return ("at", i)
    if long and i >= size:
        return ("at", size)
    i = min(max(i, -_FAR), _FAR - 1)  # still out of bounds, and representable in the index dtype
    # One executable serves all positions. checkify detects those out of bounds.
    operands.append(position_array(i) if state.trace is None else np.int32(i))
    return ("scalar", len(operands) - 1)


_FAR: Final = 2**31
_LAST: Final = 2**32 - 1


def _is_long(size: Any) -> bool:
    """Return True if an axis has positions that int32 does not represent."""
    return type(size) is int and size > _FAR


_positions: dict[tuple[Any, int], Array] = bounded_cache()


def position_array(i: int) -> Array:
    """The cached array of a concrete position."""
    key = (state.key, i)
    array = _positions.get(key)
    if array is None:
        if not -_FAR <= i < _FAR:
            raise OverflowError(f"Python int {i} too large to convert to int32")
        array = device_put(np.int32(i))
        _positions[key] = array
    return array


def _slice_part(e: slice, size: int, position: int) -> tuple[Any, ...]:
    bounds = []
    for bound in (e.start, e.stop, e.step):
        if isinstance(bound, Tracer):
            raise IndexError(
                "Array slice indices must have static start/stop/step to be used with NumPy "
                f"indexing syntax. Got {e} at position {position}. To index a statically sized "
                "array at a dynamic position, try lax.dynamic_slice/dynamic_update_slice."
            )
        if bound is not None and not hasattr(bound, "__index__"):
            raise TypeError(f"slice indices must be integers or None, got {e}")
        bounds.append(bound)
    start, stop, step = slice_bounds(slice(*bounds), size)
    if step == 1 and start == 0 and stop == size:
        return ("all",)
    return ("slice", start, stop, step)


def _window_part(e: Any, size: int, position: int, operands: list[Any]) -> tuple[Any, ...]:
    """The part of a slice defined by start and size (``ds``)."""
    for what, value in (("size", e.size), ("stride", e.stride)):
        if isinstance(value, Tracer) or not hasattr(value, "__index__"):
            raise TypeError(
                f"the {what} of a slice must be a concrete integer, because it determines a "
                f"shape: got {e} at position {position}"
            )
    count, stride = index(e.size), index(e.stride)
    if isinstance(e.start, int):
        return _slice_part(slice(e.start, e.start + count * stride, stride), size, position)
    aval = typeof(e.start)
    if aval.ndim or not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(
            f"the start of a slice must be an integer, got {aval} in {e} at position {position}"
        )
    if stride != 1:
        steps = lax.iota(np.dtype(np.int32), count) * np.int32(stride)
        operands.append(steps + lax.convert_element_type(e.start, np.dtype(np.int32)))
        return ("array", len(operands) - 1)
    if count > size:
        raise IndexError(
            f"a slice of {count} elements does not fit an axis of size {size}: got {e} at position "
            f"{position}"
        )
    operands.append(e.start)
    return ("window", len(operands) - 1, count)
