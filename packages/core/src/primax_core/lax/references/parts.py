"""Reads and writes of indexed parts of arrays, by slices, gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._ir.jaxpr import Literal
from ..._ir.symbolic_dims import Dimension, decided, is_static
from ..._trace.core import typeof
from ..arithmetic import add, mul
from ..bitwise import bitwise_or
from ..broadcasting import broadcast_in_dim, full, iota
from ..comparison import lt
from ..conversion import convert_element_type
from ..dynamic_slicing import dynamic_slice, dynamic_update_slice
from ..gathering import GatherDimensionNumbers, GatherScatterMode, gather
from ..joining import concatenate
from ..permuting import transpose
from ..reshaping import reshape
from ..scattering import ScatterDimensionNumbers, scatter, scatter_add
from ..selection import clamp, select
from ..slicing import slice as slice_array
from .indexing import (
    INTEGER,
    INTEGER_ARRAY,
    Index,
    StaticSlice,
    layout,
    selected_shape,
)


def read_at(x: Any, index: Index, operands: Sequence[Any]) -> Any:
    """The elements of an array at an index; positions out of bounds are clamped.

    Args:
      x: an array.
      index: a parsed index, the first result of :func:`parse_index`.
      operands: its second result: the traced positions.

    Returns:
      An array of the selected shape and of the array's dtype.

    Interpreters of references evaluate reads by it. It is linear in ``x``.

    >>> import numpy as np
    >>> from primax_core.extend.references import parse_index
    >>> x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    >>> read_at(x, *parse_index(x.shape, (1, slice(2, 4))))
    Array([6., 7.], dtype=float32)
    """
    if index is None:
        return x
    shape = typeof(x).shape
    if INTEGER_ARRAY in index:
        plan = _Gathered(shape, index, operands)
        return plan.arranged(plan.read(x))
    spans = [1 if e == INTEGER else span_of(e) for e in index]
    starts = _starts(index, operands, shape)
    if _surely_inside(starts, spans, shape):
        strides = [1 if e == INTEGER else e.stride for e in index]
        ends = [s + n for s, n in zip(starts, spans)]
        part = slice_array(x, starts, ends, strides)
    else:
        part = dynamic_slice(x, _of_one_dtype(starts), spans)
        if any(e != INTEGER and e.stride > 1 for e in index):
            strides = [1 if e == INTEGER else e.stride for e in index]
            part = slice_array(part, [0] * len(shape), spans, strides)
    return reshape(part, selected_shape(shape, index, ()))


def write_at(x: Any, index: Index, operands: Sequence[Any], new: Any) -> Any:
    """The array with the elements at an index replaced.

    Starts of slices are clamped, and so are single positions. If the index has an array of
    positions or a stride, positions out of bounds write nothing. Which of several values at one
    position is written is not specified.

    Args:
      x: an array.
      index: a parsed index, the first result of :func:`parse_index`.
      operands: its second result: the traced positions.
      new: elements of the selected shape and of the array's dtype.

    Returns:
      An array of the shape and dtype of ``x``.

    >>> import numpy as np
    >>> from primax_core.extend.references import parse_index
    >>> x = np.zeros(4, np.float32)
    >>> write_at(x, *parse_index(x.shape, slice(1, 3)), np.ones(2, np.float32))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    if index is None:
        return new
    return _written(x, index, operands, new, lambda old, value: value, scatter)


def add_at(x: Any, index: Index, operands: Sequence[Any], more: Any) -> Any:
    """The array with values added to the elements at an index; booleans are combined by "or".

    Args:
      x: an array.
      index: a parsed index, the first result of :func:`parse_index`.
      operands: its second result: the traced positions.
      more: elements of the selected shape and of the array's dtype.

    Returns:
      An array of the shape and dtype of ``x``.

    Values at repeated positions are all added. Positions out of bounds are treated as by
    :func:`write_at`.

    >>> import numpy as np
    >>> from primax_core.extend.references import parse_index
    >>> x = np.zeros(3, np.float32)
    >>> add_at(x, *parse_index(x.shape, np.array([2, 2])), np.ones(2, np.float32))
    Array([0., 0., 2.], dtype=float32)
    """
    if typeof(x).dtype == np.bool_:
        return write_at(x, index, operands, bitwise_or(read_at(x, index, operands), more))
    if index is None:
        return add(x, more)
    return _written(x, index, operands, more, add, scatter_add)


def _written(x, index, operands, value, combine: Callable, scattered: Callable) -> Any:
    shape = typeof(x).shape
    if INTEGER_ARRAY in index or any(e != INTEGER and e.stride > 1 for e in index):
        plan = _Gathered(shape, index, operands)
        return plan.write(x, plan.flattened(value), scattered)
    sizes = [1 if e == INTEGER else e.size for e in index]
    if 0 in sizes:
        return x
    starts = _starts(index, operands, shape)
    value = reshape(value, sizes)
    if combine is add:
        value = add(reshape(read_at(x, index, operands), sizes), value)
    return dynamic_update_slice(x, value, _of_one_dtype(starts))


def _surely_inside(starts: Sequence[Any], spans: Sequence[Any], shape: Sequence[Any]) -> bool:
    """Return True if the part is static and in bounds for all values of symbolic dimensions."""
    if not all(is_size(s) for s in starts):
        return False
    if is_static((*starts, *shape)):
        return True
    inside = lambda: all(0 <= s and s + k <= n for s, k, n in zip(starts, spans, shape))
    return decided(inside, False)


def span_of(entry: Any) -> int:
    return (entry.size - 1) * entry.stride + 1 if entry.size else 0


def known_position(x: Any) -> int | None:
    """The value of an index operand if it is concrete, otherwise ``None``."""
    if type(x) is Literal:
        x = x.scalar
    return int(x) if isinstance(x, (int, np.integer)) else None


def _starts(index: Sequence[Any], operands: Sequence[Any], shape: tuple[int, ...]) -> list[Any]:
    """Start of the part along each axis; concrete starts are nonnegative Python integers."""
    remaining = iter(operands)
    starts: list[Any] = []
    for e, n in zip(index, shape):
        x = e.start if type(e) is StaticSlice else next(remaining)
        known = known_position(x)
        starts.append(x if known is None else known + n if known < 0 else known)
    return starts


def _of_one_dtype(starts: Sequence[Any]) -> list[Any]:
    dtype = _index_dtype(starts)
    return [_cast(s, dtype) for s in starts]


def _index_dtype(starts: Sequence[Any]) -> np.dtype:
    any_int64 = any(typeof(s).dtype.itemsize == 8 for s in starts if not is_size(s))
    return np.dtype(np.int64 if any_int64 else np.int32)


def _cast(x: Any, dtype: Any) -> Any:
    return dtype.type(x) if isinstance(x, int) else convert_element_type(x, dtype)


def is_size(x: Any) -> bool:
    """Return True if a value is a Python integer or a symbolic dimension."""
    return isinstance(x, (int, Dimension))


class _Gathered:
    """An index as a gather or scatter of windows.

    The axes of the gather's result are the axes of the index arrays, the axes of strided parts, and
    the axes of the other parts, in this order.
    """

    def __init__(self, shape: tuple[int, ...], index: Sequence[Any], operands: Sequence[Any]):
        spread = layout(index, operands)
        self.index: Sequence[Any] = index
        self.base = () if spread is None else spread.shape
        self.at = 0 if spread is None else spread.at
        self.strided = [i for i, e in enumerate(index) if not isinstance(e, str) and e.stride > 1]
        self.windows = [i for i, e in enumerate(index) if not isinstance(e, str) and e.stride == 1]
        self.outer = (*self.base, *(self.index[i].size for i in self.strided))
        self.sizes: list[int] = [1 if i in self.strided or isinstance(e, str) else e.size
                      for i, e in enumerate(index)]  # fmt: skip
        self.shape = shape
        self.collapsed = tuple(i for i in range(len(shape)) if i not in self.windows)
        starts = _starts(index, operands, shape)
        dtype = _index_dtype(starts)
        columns = [self._column(i, s, dtype) for i, s in enumerate(starts)]
        self.positions = concatenate(columns, len(self.outer))

    def _column(self, axis: int, start: Any, dtype: Any) -> Any:
        entry: Any = self.index[axis]
        n = self.shape[axis]
        start = _cast(start, dtype)
        shape = (*self.outer, 1)
        aval = typeof(start)
        if type(entry) is not StaticSlice:
            below = lt(start, full(aval.shape, 0, dtype))
            size = broadcast_in_dim(_cast(n, dtype), aval.shape, ())
            start = select(below, add(start, size), start)
        if not isinstance(entry, str):
            last = _cast(n - span_of(entry), dtype)
            start = clamp(dtype.type(0), start, last)
        if axis in self.strided:
            size, stride = self.index[axis].size, self.index[axis].stride
            steps = mul(iota(dtype, size), dtype.type(stride))
            at = len(self.base) + self.strided.index(axis)
            row = broadcast_in_dim(steps, shape, (at,))
            return add(row, broadcast_in_dim(start, shape, ()))
        rank = aval.ndim
        first = len(self.base) - rank
        return broadcast_in_dim(start, shape, tuple(range(first, first + rank)))

    def read(self, x: Any) -> Any:
        n = len(self.outer)
        numbers = GatherDimensionNumbers(
            tuple(range(n, n + len(self.windows))), self.collapsed, tuple(range(len(self.shape)))
        )
        return gather(x, self.positions, numbers, self.sizes, mode=GatherScatterMode.CLIP)

    def write(self, x: Any, value: Any, scattered: Callable) -> Any:
        n = len(self.outer)
        numbers = ScatterDimensionNumbers(
            tuple(range(n, n + len(self.windows))), self.collapsed, tuple(range(len(self.shape)))
        )
        mode = GatherScatterMode.FILL_OR_DROP
        return scattered(x, self.positions, value, numbers, mode=mode)

    def _order(self) -> list[int]:
        """For each axis of the selected part, the axis of the gather's result."""
        n, k = len(self.base), len(self.strided)
        axis_of = {i: n + j for j, i in enumerate(self.strided)}
        axis_of.update({i: n + k + j for j, i in enumerate(self.windows)})
        parts = [axis_of[i] for i in sorted(axis_of)]
        return [*parts[: self.at], *range(n), *parts[self.at :]]

    def arranged(self, gathered: Any) -> Any:
        """The gather's result, transposed to the axes of the selected part."""
        order = self._order()
        return gathered if order == sorted(order) else transpose(gathered, order)

    def flattened(self, value: Any) -> Any:
        """A part, transposed to the axes of the scatter's updates."""
        order = self._order()
        return value if order == sorted(order) else transpose(value, np.argsort(order))
