"""Normalized indices of references.

An index is ``None`` for the whole array, or a tuple with an entry for each axis:
:class:`StaticSlice`, :class:`DynamicSlice`, ``INTEGER`` or ``INTEGER_ARRAY``. It is hashable. The
integers, the arrays of integers and the starts of dynamic slices are operands, in the order of the
axes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..._base import errors
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.slice_sizes import slice_bounds, slice_length
from ..._ir.symbolic_dims import decided, index as size_index
from ..._trace.core import Tracer, typeof
from ..._trace.refs import RefOperations


class StaticSlice(NamedTuple):
    """Entry of an index: every ``stride``-th element from a constant ``start``, ``size`` in all.

    >>> import numpy as np
    >>> parse_index((8,), np.s_[1:7:2])
    ((StaticSlice(start=1, size=3, stride=2),), [])
    """

    start: int
    size: int
    stride: int


class DynamicSlice(NamedTuple):
    """Entry of an index: every ``stride``-th element from a start that is an operand.

    >>> import numpy as np
    >>> from primax_core import ds
    >>> parse_index((8,), ds(np.int32(1), 3))
    ((DynamicSlice(size=3, stride=1),), [np.int32(1)])
    """

    size: int
    stride: int


INTEGER: Final = "integer"
"""Entry of an index: one position, an operand without axes."""

INTEGER_ARRAY: Final = "integer_array"
"""Entry of an index: an array of positions, an operand."""

Index = tuple[Any, ...] | None
"""An index: ``None``, or a tuple with an entry for each axis."""


def parse_index(shape: tuple[int, ...], user_index: Any) -> tuple[Index, list[Any]]:
    """The normalized form of a user's index for an array of a shape, and its operands.

    Args:
      shape: the shape of the array.
      user_index: integers, slices, ``ds``, ``...``, integer arrays and concrete masks, as between
        the brackets of ``ref[...]``; or ``None`` for the whole array.

    Returns:
      A hashable index, for parameters of primitives, and a list of integers and arrays.

    Raises:
      IndexError, ValueError: for constants out of bounds and too many indices.
      TypeError: for objects that are not indices.

    Primitives of references have the first as a parameter, and the second as operands.

    >>> import numpy as np
    >>> parse_index((4, 6), (-1, slice(2, 5)))
    (('integer', StaticSlice(start=2, size=3, stride=1)), [np.int32(-1)])
    >>> parse_index((4, 6), ...)
    (None, [])
    """
    if user_index is None or user_index is Ellipsis:
        return None, []
    entries = _expanded(shape, user_index if isinstance(user_index, tuple) else (user_index,))
    index: list[Any] = []
    operands: list[Any] = []
    for entry in entries:
        n = shape[len(index)]
        if isinstance(entry, slice):
            index.append(_static_slice(entry, n))
        elif _is_slice(entry):
            _add_slice(entry, n, index, operands)
        else:
            position = _position(entry, n)
            index.append(INTEGER_ARRAY if typeof(position).ndim else INTEGER)
            operands.append(position)
    if all(type(e) is StaticSlice and e == (0, n, 1) for e, n in zip(index, shape)):
        return None, []
    return tuple(index), operands


def _expanded(shape: tuple[int, ...], user_entries: tuple[Any, ...]) -> list[Any]:
    """One entry for each axis: masks become index arrays, missing entries select whole axes."""
    entries: list[Any] = []
    for entry in user_entries:
        if _is_mask(entry):
            entries.extend(_true_positions(entry, shape, len(entries)))
        else:
            entries.append(entry)
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    left = len(shape) - (len(entries) - len(dots))
    if left < 0:
        raise ValueError(
            f"`indices` must not be longer than `shape`: {len(entries)} indices for a reference of "
            f"shape {shape}"
        )
    fill = [slice(None)] * left
    return [*entries[: dots[0]], *fill, *entries[dots[0] + 1 :]] if dots else [*entries, *fill]


def _is_slice(entry: Any) -> bool:
    return type(entry).__name__ == "Slice" and hasattr(entry, "stride")


def _is_mask(entry: Any) -> bool:
    dtype = getattr(entry, "dtype", None)
    return dtype is not None and dtype == np.bool_ and bool(getattr(entry, "ndim", 0))


def _true_positions(mask: Any, shape: tuple[int, ...], at: int) -> list[Any]:
    if isinstance(mask, Tracer):
        raise errors.NonConcreteBooleanIndexError(mask)
    values = np.asarray(mask)
    if values.shape != shape[at : at + values.ndim]:
        raise IndexError(
            f"a mask of shape {values.shape} does not fit axes of sizes "
            f"{shape[at : at + values.ndim]}"
        )
    return [p.astype(np.int32) for p in np.nonzero(values)]


def _static_slice(entry: slice, n: int) -> StaticSlice:
    for bound in (entry.start, entry.stop, entry.step):
        if isinstance(bound, Tracer):
            raise TypeError(
                "a slice of a reference has a traced bound, so its size is not known: use "
                "ds(start, size), whose start may be traced"
            )
    step = 1 if entry.step is None else entry.step
    if step < 1:
        raise ValueError(f"slice must have a step >= 1 (found: {step})")
    start, stop, step = slice_bounds(entry, n)
    return StaticSlice(start, slice_length(start, stop, step), step)


def _add_slice(entry: Any, n: int, index: list[Any], operands: list[Any]) -> None:
    size, stride, start = entry.size, entry.stride, entry.start
    if isinstance(size, Tracer) or isinstance(stride, Tracer):
        raise TypeError("a slice of a reference needs a static size and stride")
    size, stride = size_index(size), operator.index(stride)
    span = (size - 1) * stride + 1 if size else 0
    known = not isinstance(start, Tracer) and not hasattr(start, "dtype")
    outside = decided(lambda: span > n or known and not 0 <= start <= n - span, False)
    if outside:
        raise ValueError(
            f"Out of bound slice: start={start}, size={size}, stride={stride}, dim={n}."
        )
    if known:
        index.append(StaticSlice(size_index(start), size, stride))
    else:
        index.append(DynamicSlice(size, stride))
        operands.append(start)


def _position(entry: Any, n: int) -> Any:
    """An index or an array of indices; concrete ones are checked."""
    if isinstance(entry, RefOperations):
        raise TypeError(
            f"a reference was used as an index: read it first, `ref[...]`; its type is {entry.aval}"
        )
    if entry is None:
        raise IndexError("references cannot be indexed with None: reshape the result instead")
    if isinstance(entry, (bool, np.bool_)):
        entry = int(entry)
    if isinstance(entry, (list, str)) or not hasattr(entry, "dtype"):
        position: Any = entry
        try:
            entry = operator.index(position)
        except TypeError:
            raise TypeError(
                "references are indexed with integers, slices, `...`, and arrays of integers, got "
                f"{entry!r} of type {type(entry).__name__}"
            ) from None
    aval = typeof(entry)
    if aval.dtype == np.bool_:
        raise TypeError("a boolean scalar that is traced or an array cannot index a reference")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"indices of references must have an integer type, got {aval.dtype.name}")
    if isinstance(entry, (int, np.integer)):
        i = int(entry)
        if decided(lambda: not -n <= i < n, False):
            raise ValueError(f"Out of bound indexer: idx={i}, dim={n}.")
        return np.int32(i) if decided(lambda: n < 2**31, True) else np.int64(i)
    return entry


class Layout(NamedTuple):
    """Layout of the result of an index with index arrays.

    Attributes:
      advanced: axes with an index or index array.
      shape: the broadcast shape of the index arrays.
      at: first axis of that shape among the axes of the result.
    """

    advanced: list[int]
    shape: tuple[int, ...]
    at: int


def layout(index: Sequence[Any], operands: Sequence[Any]) -> Layout | None:
    """The layout of an index, or ``None`` if it has no index arrays."""
    if INTEGER_ARRAY not in index:
        return None
    advanced = [i for i, e in enumerate(index) if e == INTEGER_ARRAY or e == INTEGER]
    computed = [e for e in index if type(e) is not StaticSlice]
    avals = [x if isinstance(x, ShapedArray) else typeof(x) for x in operands]
    shapes = [a.shape for e, a in zip(computed, avals, strict=True) if isinstance(e, str)]
    shape = np.broadcast_shapes(*shapes)
    together = advanced[-1] - advanced[0] == len(advanced) - 1
    return Layout(advanced, shape, advanced[0] if together else 0)


def selected_shape(
    shape: tuple[int, ...], index: Index, operands: Sequence[Any]
) -> tuple[int, ...]:
    """The shape of the elements that an index selects.

    Args:
      shape: the shape of the array.
      index: a parsed index, the first result of :func:`parse_index`.
      operands: its second result, or the avals of these operands.

    Returns:
      A tuple of sizes.

    Integers remove axes; an array of positions has its own axes.

    >>> import numpy as np
    >>> selected_shape((4, 6), *parse_index((4, 6), (np.array([0, 2, 3]), slice(1, 3))))
    (3, 2)
    >>> selected_shape((4, 6), *parse_index((4, 6), 1))
    (6,)
    """
    if index is None:
        return shape
    spread = layout(index, operands)
    sizes = tuple(e.size for e in index if not isinstance(e, str))
    if spread is None:
        return sizes
    return (*sizes[: spread.at], *spread.shape, *sizes[spread.at :])
