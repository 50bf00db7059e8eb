"""References of a kernel: blocks of arrays behind pointers, and memory in registers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core.extend import ShapedArray, stage
from primax_core.extend.references import (
    INTEGER_ARRAY,
    StaticSlice,
    add_at,
    read_at,
    selected_shape,
    write_at,
)

from .._block_mapping import Extent
from . import types
from .emitter import Emitter
from .types import BOOL, INT32, INT64
from .values import Pointers, Value

Index = tuple[Any, ...] | None


class MemoryRef:
    """A block of an array behind a pointer.

    Attributes:
      pointer: name of the pointer to the first element of the array.
      dtype: type of the elements.
      array_shape: shape of the array, which is contiguous in row-major order.
      starts: position in the array where the block begins, along each axis.
      extents: the block, axis by axis.
      separated: whether threads wait for each other before each access, because another access
        may read or write the same elements.
      ends: position after the last element of a bounded slice, ``None`` along other axes.
      places: positions of the elements of an indirect block, ``None`` along other axes.
    """

    def __init__(
        self, emitter: Emitter, pointer: str, dtype: Any, array_shape: tuple[int, ...],
        starts: Sequence[Value], extents: Sequence[Extent], separated: bool = False,
        ends: Sequence[Value | None] = (), places: Sequence[Value | None] = (),
    ):  # fmt: skip
        self.emitter = emitter
        self.pointer = pointer
        self.dtype = np.dtype(dtype)
        self.array_shape = array_shape
        self.starts = starts
        self.extents = extents
        self.separated = separated
        nothing: list[Value | None] = [None] * len(extents)
        self.ends, self.places = ends or nothing, places or nothing
        self.strides = [math.prod(array_shape[a + 1 :]) for a in range(len(array_shape))]
        self.offset_dtype = INT64 if math.prod(array_shape) >= 2**31 else INT32

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Shape of the reference that the kernel sees."""
        return tuple(e.size for e in self.extents if not e.squeezed)

    def read(
        self, index: Index, operands: Sequence[Value], mask: Value | None = None,
        fill: Value | None = None,
    ) -> Value:  # fmt: skip
        """The elements at an index; those outside of the array are NaN, or 0.

        Args:
          mask: elements to read; a slice may then reach beyond the block.
          fill: the other elements.
        """
        e = self.emitter
        p = _pointers(self, index, operands, writes=False, condition=mask)
        self._wait()
        stored = np.dtype(np.int8) if self.dtype == BOOL else self.dtype
        other = ""
        if p.mask is not None:
            if fill is None:
                fill = e.constant(types.unwritten(self.dtype), stored, p.shape)
            elif self.dtype == BOOL:
                fill = e.changed("arith.extui", fill, stored)
            other = f", {p.mask.name}, {e.broadcast(fill, p.shape).name}"
        x = e.op(f"tt.load {p.name}{other} : {p.type}", stored, p.shape, pure=False)
        if self.dtype != BOOL:
            return x
        return e.compare("ne", x, e.constant(0, stored, p.shape))

    def write(
        self, value: Value, index: Index, operands: Sequence[Value], mask: Value | None = None
    ) -> None:
        """Replace the elements at an index; those outside of the array are not written.

        Args:
          mask: elements to write; a slice may then reach beyond the block.
        """
        e = self.emitter
        p = _pointers(self, index, operands, writes=True, condition=mask)
        self._wait()
        if self.dtype == BOOL:
            value = e.changed("arith.extui", value, np.int8)
        value = e.broadcast(value, p.shape)
        masked = "" if p.mask is None else f", {p.mask.name}"
        e.line(f"tt.store {p.name}, {value.name}{masked} : {p.type}")

    def add(self, value: Value, index: Index, operands: Sequence[Value]) -> None:
        """Add to the elements at an index, in one step for each element.

        Elements are ``float16``, ``float32``, ``float64`` or integers of 32 or 64 bits.
        """
        e = self.emitter
        p = _pointers(self, index, operands, writes=True)
        self._wait()
        value = e.broadcast(value, p.shape)
        mask = p.mask or e.constant(True, BOOL, p.shape)
        op = "fadd" if value.is_float else "add"
        e.op(
            f"tt.atomic_rmw {op}, acq_rel, gpu, {p.name}, {value.name}, {mask.name} : "
            f"({p.type}, {value.type}, {mask.type}) -> {value.type}",
            value.dtype,
            p.shape,
            pure=False,
        )

    def _wait(self) -> None:
        if self.separated:
            self.emitter.line("gpu.barrier")


class RegisterRef:
    """Memory whose contents are a value; a write replaces it.

    Attributes:
      value: the contents.
      shape: shape of the contents.
    """

    def __init__(self, emitter: Emitter, value: Value):
        self.emitter = emitter
        self.value = value

    def read(self, index: Index, operands: Sequence[Value]) -> Value:
        """The elements at an index."""
        if index is None:
            return self.value
        return self._apply(lambda x, *ops: [read_at(x, index, ops)], operands)

    def write(self, value: Value, index: Index, operands: Sequence[Value]) -> None:
        """Replace the elements at an index."""
        if index is None:
            self.value = self.emitter.broadcast(value, self.value.shape)
        else:
            self._replace(write_at, value, index, operands)

    def add(self, value: Value, index: Index, operands: Sequence[Value]) -> None:
        """Add to the elements at an index."""
        self._replace(add_at, value, index, operands)

    def _replace(self, fun: Any, value: Value, index: Index, operands: Sequence[Value]) -> None:
        n = len(operands)
        self.value = self._apply(
            lambda x, *ops: [fun(x, index, ops[:n], ops[n])], [*operands, value]
        )

    def _apply(self, fun: Any, operands: Sequence[Value]) -> Value:
        from .registry import lower_jaxpr

        # Constant positions become slices, which are cheaper than dynamic ones.
        fixed = [None if x.known is None or x.shape else np.int32(x.known) for x in operands]
        rest = [x for x, k in zip(operands, fixed) if k is None]

        def with_constants(x: Any, *traced: Any) -> list[Any]:
            remaining = iter(traced)
            return fun(x, *[next(remaining) if k is None else k for k in fixed])

        avals = [ShapedArray(x.shape, x.dtype) for x in (self.value, *rest)]
        (result,) = lower_jaxpr(self.emitter, stage(with_constants, avals), [self.value, *rest])
        return result


class _Axis:
    """Positions along an axis of an array: a scalar plus a tensor over axes of the result."""

    def __init__(self, scalar: Value, steps: Value | None, span: int, size: int | None):
        self.scalar = scalar
        self.steps = steps
        self.span = span
        self.size = size


def _pointers(
    ref: MemoryRef, index: Index, operands: Sequence[Value], writes: bool,
    condition: Value | None = None,
) -> Pointers:  # fmt: skip
    """Pointers to the elements at an index of a block, and the mask of those that exist."""
    e = ref.emitter
    block = ref.block_shape
    if index is None:
        index = tuple(StaticSlice(0, n, 1) for n in block)
    avals = [ShapedArray(x.shape, x.dtype) for x in operands]
    shape = selected_shape(block, index, avals)
    axes, mask = _axes(ref, index, operands, shape, writes, condition is not None)
    mask = e.both(mask, None if condition is None else e.broadcast(condition, shape))
    base: Value | None = None
    offsets: Value | None = None
    for axis, stride, n, end in zip(axes, ref.strides, ref.array_shape, ref.ends):
        mask = e.both(mask, _outside(ref, axis, n))
        if end is not None:
            position = axis.scalar if axis.steps is None else e.add(axis.scalar, axis.steps)
            mask = e.both(mask, e.compare("lt", position, end))
        base = _accumulated(ref, base, axis.scalar, stride)
        if axis.steps is not None:
            offsets = _accumulated(ref, offsets, axis.steps, stride)
    return _addressed(ref, base, offsets, mask, shape)


def _addressed(
    ref: MemoryRef, base: Value | None, offsets: Value | None, mask: Value | None,
    shape: tuple[int, ...],
) -> Pointers:  # fmt: skip
    e, element = ref.emitter, types.in_memory(ref.dtype)
    scalar = f"!tt.ptr<{element}>"
    name = ref.pointer
    if base is not None and base.known != 0:
        name = e.op(f"tt.addptr {name}, {base.name} : {scalar}, {base.type}", ref.dtype).name
    if shape:
        to = types.tensor(scalar, types.padded(shape))
        name = e.op(f"tt.splat {name} : {scalar} -> {to}", ref.dtype, shape).name
        if offsets is not None:
            offsets = e.broadcast(offsets, shape)
            text = f"tt.addptr {name}, {offsets.name} : {to}, {offsets.type}"
            name = e.op(text, ref.dtype, shape).name
        mask = None if mask is None else e.broadcast(mask, shape)
    return Pointers(name, element, shape, mask)


def _accumulated(ref: MemoryRef, total: Value | None, x: Value, stride: int) -> Value:
    """``total + x * stride``."""
    e = ref.emitter
    if ref.offset_dtype == INT64 and x.dtype != INT64:
        x = e.changed("arith.extsi", x, INT64).having(x.bounds)
    x = e.multiply(x, e.constant(stride, x.dtype))
    return x if total is None else e.add(total, x)


def _outside(ref: MemoryRef, axis: _Axis, n: int) -> Value | None:
    """Mask of the positions along an axis that are in the array; ``None`` if all are."""
    e = ref.emitter
    first = axis.scalar.bounds or (-(2**31), 2**31 - 1)
    low, high = first[0], first[1] + axis.span - 1
    mask = None
    size = axis.size
    stretched = size is not None and size != types.power_of_two(size)
    if high >= n:
        limit = e.subtract(e.index(n), axis.scalar)
        if axis.steps is None:
            return e.both(_low(ref, axis, low), e.compare("lt", axis.scalar, e.index(n)))
        if stretched and axis.span == size:
            limit, stretched = e.minimum(limit, e.index(axis.span)), False
        mask = e.compare("lt", axis.steps, limit)
    if stretched and axis.steps is not None:
        mask = e.both(mask, e.compare("lt", axis.steps, e.index(axis.span)))
    return e.both(_low(ref, axis, low), mask)


def _low(ref: MemoryRef, axis: _Axis, low: int) -> Value | None:
    """Mask of the positions that are not before the array."""
    if low >= 0:
        return None
    e = ref.emitter
    position = axis.scalar if axis.steps is None else e.add(axis.scalar, axis.steps)
    return e.compare("ge", position, e.index(0))


def _axes(
    ref: MemoryRef, index: tuple[Any, ...], operands: Sequence[Value], shape: tuple[int, ...],
    writes: bool, masked: bool,
) -> tuple[list[_Axis], Value | None]:  # fmt: skip
    """The positions along each axis of the array, and the mask of arrays of positions."""
    e = ref.emitter
    at, rank = _array_axes(index, operands)
    entries, remaining = iter(index), iter(operands)
    axes: list[_Axis] = []
    mask: Value | None = None
    slices = 0
    for start, extent, places, n in zip(ref.starts, ref.extents, ref.places, ref.array_shape):
        entry = None if extent.squeezed else next(entries)
        if places is not None:
            chosen = [] if isinstance(entry, StaticSlice) else [next(remaining)]
            position = RegisterRef(e, places).read((entry,), chosen)
            if not position.shape:
                axes.append(_Axis(_inside(e, position, n), None, 1, None))
                continue
            is_slice = not isinstance(entry, str)
            own = (slices if slices < at else slices + rank, 1) if is_slice else (at, rank)
            slices += is_slice
            axis, valid = _at_places(ref, position, own, n, shape, writes)
            axes.append(axis)
            mask = e.both(mask, valid)
        elif entry is None:
            axes.append(_Axis(start, None, 1, None))
        elif not isinstance(entry, str):
            out = slices if slices < at else slices + rank
            axis, valid = _sliced(e, entry, start, extent, remaining, shape, out, masked)
            axes.append(axis)
            mask = e.both(mask, None if valid is None else e.broadcast(valid, shape))
            slices += 1
        else:
            position = as_int32(e, next(remaining))
            if not position.shape:
                axes.append(_Axis(e.add(start, _inside(e, position, extent.size)), None, 1, None))
                continue
            axis, valid = _at_places(ref, position, (at, rank), extent.size, shape, writes)
            axes.append(_Axis(start, axis.steps, extent.size, None))
            mask = e.both(mask, valid)
    return axes, mask


def _at_places(
    ref: MemoryRef, position: Value, own: tuple[int, int], n: int, shape: tuple[int, ...],
    writes: bool,
) -> tuple[_Axis, Value | None]:  # fmt: skip
    """An array of positions along an axis of ``n`` elements, and the mask of those that exist.

    Args:
      own: first axis in the result of the axes of the array, and their number.
    """
    e = ref.emitter
    steps, valid = _looked_up(e, position, n, writes)
    mask: Value | None = None
    for m in (valid, e.inside(position.shape, range(len(position.shape)))):
        if m is not None:
            m = _placed(e, e.broadcast(m, position.shape), *own, len(shape))
            mask = e.both(mask, e.broadcast(m, shape))
    return _Axis(e.index(0), _placed(e, steps, *own, len(shape)), n, None), mask


def _array_axes(index: tuple[Any, ...], operands: Sequence[Value]) -> tuple[int, int]:
    """First axis in the result, and number, of the axes of arrays of positions."""
    if INTEGER_ARRAY not in index:
        return 0, 0
    advanced = [i for i, entry in enumerate(index) if isinstance(entry, str)]
    rank = max(len(x.shape) for x in operands)
    together = advanced[-1] - advanced[0] == len(advanced) - 1
    return (advanced[0] if together else 0), rank


def _placed(e: Emitter, x: Value, at: int, rank: int, total: int) -> Value:
    """An array of positions with its axes at their place among those of the result."""
    while len(x.shape) < rank:
        x = e.expand_dims(x, 0)
    for axis in range(total):
        if not at <= axis < at + rank:
            x = e.expand_dims(x, axis)
    return x


def as_int32(e: Emitter, x: Value) -> Value:
    if x.dtype == INT32:
        return x
    bits = types.bits(x.dtype)
    op = "trunci" if bits > 32 else "extui" if types.is_unsigned(x.dtype) else "extsi"
    if bits == 32:
        return Value(x.name, INT32, x.shape, x.bounds)
    if bits > 32:
        low = e.clamp(x, -(2**31) if x.dtype.kind == "i" else 0, 2**31 - 1)
        return e.changed("arith.trunci", low, INT32).having(low.bounds)
    return e.changed(f"arith.{op}", x, INT32).having(x.bounds)


def _inside(e: Emitter, position: Value, n: int, span: int = 1) -> Value:
    """A position in bounds: constants count from the end if negative, others are clamped."""
    if position.known is not None and position.known < 0:
        position = e.index(position.known + n)
    return e.clamp(position, 0, max(n - span, 0))


def _looked_up(e: Emitter, x: Value, n: int, writes: bool) -> tuple[Value, Value | None]:
    """An array of positions in bounds, and for writes the mask of those that were."""
    if x.bounds is not None and 0 <= x.bounds[0] and x.bounds[1] < n:
        return x, None
    size, zero = e.index(n), e.index(0)
    x = e.select(e.compare("lt", x, zero), e.add(x, size), x)
    inside = e.clamp(x, 0, n - 1)
    if not writes:
        return inside, None
    return inside, e.both(e.compare("ge", x, zero), e.compare("lt", x, size))


def _sliced(
    e: Emitter, entry: Any, start: Value, extent: Extent, remaining: Any, shape: tuple[int, ...],
    out: int, masked: bool,
) -> tuple[_Axis, Value | None]:  # fmt: skip
    """The positions of a slice; if the access is masked, with the mask of those in the block."""
    span = (entry.size - 1) * entry.stride + 1
    steps = e.positions(shape, out)
    if entry.stride != 1:
        steps = e.multiply(steps, e.index(entry.stride))
    valid = None
    if type(entry) is StaticSlice:
        first = e.index(entry.start)
    else:
        first = as_int32(e, next(remaining))
        inside = _inside(e, first, extent.size, span)
        if masked and inside != first:
            position = e.add(first, steps)
            low = e.compare("ge", position, e.index(0))
            valid = e.both(low, e.compare("lt", position, e.index(extent.size)))
        else:
            first = inside
    return _Axis(e.add(start, first), steps, span, entry.size), valid
