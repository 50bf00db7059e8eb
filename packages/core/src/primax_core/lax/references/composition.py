"""Composition of indices: a view of a view as one index of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._ir.symbolic_dims import is_static
from ..._trace.core import typeof
from ..arithmetic import add, mul
from ..comparison import lt
from ..conversion import convert_element_type
from ..selection import clamp, select
from .indexing import INTEGER, INTEGER_ARRAY, DynamicSlice, Index, StaticSlice
from .parts import known_position, span_of


def compose_indices(
    shape: Sequence[int],
    outer: Index,
    outer_operands: Sequence[Any],
    inner: Index,
    inner_operands: Sequence[Any],
) -> tuple[Index, list[Any]] | None:
    """The index that selects what ``inner`` selects from the elements at ``outer``.

    Args:
      shape: the shape of the array that ``outer`` indexes.
      outer: a parsed index, the first result of :func:`parse_index`.
      outer_operands: its operands, the second result.
      inner: a parsed index of the elements at ``outer``.
      inner_operands: its operands.

    Returns:
      The index and its operands. ``None`` if an index has an array of positions and the other is
      not that of a whole array, if sizes are symbolic, or if ``outer`` selects nothing. Positions
      in a view are clamped to the view.

    A view of a view is one access of the reference by it.

    >>> import numpy as np
    >>> from primax_core.extend.references import parse_index
    >>> outer, inner = parse_index((9,), np.s_[2:8]), parse_index((6,), np.s_[1:3])
    >>> compose_indices((9,), *outer, *inner)
    ((StaticSlice(start=3, size=2, stride=1),), [])
    """
    if outer is None:
        return inner, list(inner_operands)
    if inner is None:
        return outer, list(outer_operands)
    if INTEGER_ARRAY in outer or INTEGER_ARRAY in inner or not is_static(tuple(shape)):
        return None
    if any(not isinstance(e, str) and e.size == 0 for e in outer):
        return None  # a position in an empty view is an error
    remaining, operands = iter(outer_operands), iter(inner_operands)
    entries = iter(inner)
    composed = [
        (INTEGER, next(remaining))
        if e == INTEGER
        else _along_axis(n, e, _start(e, remaining), entries, operands)
        for e, n in zip(outer, shape)
    ]
    if any(e != INTEGER and e.stride > 1 for e, _ in composed):
        # Written by a scatter, which drops single positions out of bounds.
        for axis, (entry, x) in enumerate(composed):
            if entry == INTEGER:
                composed[axis] = INTEGER, _position(within(x, shape[axis]), shape[axis])
    index = tuple(e for e, _ in composed)
    return index, [x for e, x in composed if type(e) is not StaticSlice]


def _start(entry: Any, operands: Iterator[Any]) -> Any:
    return entry.start if type(entry) is StaticSlice else next(operands)


def _along_axis(
    n: int, outer: Any, start: Any, entries: Iterator[Any], operands: Iterator[Any]
) -> tuple[Any, Any]:
    """The composed entry of one axis of size ``n``, and its start or position."""
    inner = next(entries)
    offset = next(operands) if inner == INTEGER else _start(inner, operands)
    if outer == StaticSlice(0, n, 1):
        return inner, offset
    if inner != INTEGER and inner.size == outer.size and inner.stride == 1:
        return outer, start
    if inner != INTEGER and inner.size == 0:
        return StaticSlice(0, 0, 1), 0  # with a stride, the start could exceed the axis
    size = 1 if inner == INTEGER else span_of(inner)
    offset = within(offset, outer.size, size)
    if outer.stride > 1:
        offset = _apply(mul, offset, outer.stride)
    at = _apply(add, within(start, n, span_of(outer)), offset)
    if inner == INTEGER:
        return INTEGER, _position(at, n)
    stride = inner.stride * outer.stride
    if isinstance(at, int):
        return StaticSlice(at, inner.size, stride), at
    return DynamicSlice(inner.size, stride), at


def _position(x: Any, n: int) -> Any:
    """A position as an operand."""
    if not isinstance(x, int):
        return x
    return np.int32(x) if n < 2**31 else np.int64(x)


def _apply(fun: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """``fun(x, y)``; the result is a Python integer if both are."""
    if isinstance(x, int) and isinstance(y, int):
        return x * y if fun is mul else x + y
    wide = any(not isinstance(v, int) and typeof(v).dtype.itemsize == 8 for v in (x, y))
    dtype = np.dtype(np.int64 if wide else np.int32)
    cast = [dtype.type(v) if isinstance(v, int) else convert_element_type(v, dtype) for v in (x, y)]
    return fun(*cast)


def within(x: Any, n: int, span: int = 1) -> Any:
    """The position, clamped to the axis; a Python integer if it is known.

    Args:
      x: an integer, or an array or tracer of integers; negative ones count from the end.
      n: the size of the axis.
      span: the number of elements from the position on that must be on the axis.
    """
    known = known_position(x)
    if known is not None:
        return min(max(known + n if known < 0 else known, 0), n - span)
    dtype = np.dtype(np.int64 if typeof(x).dtype.itemsize == 8 else np.int32)
    x = convert_element_type(x, dtype)
    x = select(lt(x, dtype.type(0)), add(x, dtype.type(n)), x)
    return clamp(dtype.type(0), x, dtype.type(n - span))
