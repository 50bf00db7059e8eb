"""Text of a function for Mosaic, operation by operation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._emission.elements import bits, is_float, is_unsigned
from .._emission.emitter import TextEmitter
from .._emission.values import union
from . import types
from .types import BOOL, FLOAT32, INT32
from .values import Bounds, Value


class Emitter(TextEmitter[Value]):
    """Builder of the body of a function.

    Attributes:
      scratch: names and types of memory that operations of the kernel use.
      vmem_bytes: bytes of vector memory among it.
    """

    def __init__(self, kernel: Any):
        super().__init__(kernel)
        self.scratch: list[tuple[str, str]] = []
        self.vmem_bytes = 0

    # What the text of values is

    def value(
        self, name: str, dtype: Any, shape: Sequence[int], bounds: Bounds | None = None
    ) -> Value:  # fmt: skip
        """The value of a name."""
        return Value(name, np.dtype(dtype), tuple(shape), bounds)

    def type(self, dtype: Any, shape: Sequence[int]) -> str:
        """The type of a vector or scalar."""
        return types.vector(types.element(dtype), shape)

    def locate(self, source: Any) -> None:
        """Do nothing: the text has no locations."""

    def memory(self, element: str, shape: Sequence[int], space: str) -> tuple[str, str]:
        """The name and type of new memory, one for the whole kernel."""
        name = f"%m{len(self.scratch)}"
        if space == "vmem":
            self.vmem_bytes += types.padded_bytes(shape, element)
        self.scratch.append((name, types.memory(element, shape, space)))
        return self.scratch[-1]

    # Elements

    def constant(self, value: Any, dtype: Any, shape: tuple[int, ...] = ()) -> Value:
        """A constant whose elements are all equal."""
        dtype = np.dtype(dtype)
        narrow = not is_float(dtype) and dtype != BOOL and bits(dtype) < 32
        if shape and (narrow or bits(dtype) == 8 and is_float(dtype)):
            wide = self.constant(value, FLOAT32 if is_float(dtype) else INT32, shape)
            op = "arith.truncf" if is_float(dtype) else "arith.trunci"
            return self.changed(op, wide, dtype)
        return self.filled_constant(value, dtype, shape)

    def position(self, x: Value | int) -> str:
        """The name of a position in memory, of the type ``index``."""
        known = x if isinstance(x, int) else x.known
        if known is not None:
            return self.op(f"arith.constant {known} : index", INT32).name
        assert isinstance(x, Value)
        return self.op(f"arith.index_cast {x.name} : {x.type} to index", INT32).name

    def compare(self, predicate: str, x: Value, y: Value) -> Value:
        """Comparison of elements of 32 bits: ``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge``."""
        if x.is_float and predicate == "ne":  # there is no unordered comparison
            equal = self.compare("eq", x, y)
            return self.binary("arith.xori", equal, self.constant(True, BOOL, equal.shape))
        return self.compared(predicate, f"o{predicate}", x, y)

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """``x`` where a condition holds, and ``y`` elsewhere."""
        x, y = self.together(x, y)
        if condition.known is not None:
            return x if condition.known else y
        if condition.shape:
            shape = np.broadcast_shapes(condition.shape, x.shape)
            condition, x, y = (self.broadcast(v, shape) for v in (condition, x, y))
        types_ = f"{condition.type}, {x.type}" if condition.shape else x.type
        text = f"arith.select {condition.name}, {x.name}, {y.name} : {types_}"
        return self.op(text, x.dtype, x.shape, union(x.bounds, y.bounds))

    def words(self, x: Value) -> Value:
        """Elements of less than 32 bits, as 32 bits with the same value."""
        if x.dtype == BOOL:
            return self.changed("arith.extui", x, INT32)
        if bits(x.dtype) == 32:
            return x
        if x.is_float:
            return self.changed("arith.extf", x, FLOAT32)
        unsigned = is_unsigned(x.dtype)
        wide = self.changed("arith.extui" if unsigned else "arith.extsi", x, INT32)
        return Value(wide.name, np.dtype(np.uint32) if unsigned else INT32, x.shape)

    def from_words(self, x: Value, dtype: Any) -> Value:
        """The inverse of `words`."""
        dtype = np.dtype(dtype)
        if dtype == BOOL:
            return self.compare("ne", x, self.constant(0, x.dtype, x.shape))
        if bits(dtype) == 32:
            return Value(x.name, dtype, x.shape, x.bounds, x.multiple)
        return self.changed("arith.truncf" if is_float(dtype) else "arith.trunci", x, dtype)

    def minimum(self, x: Value, y: Value) -> Value:
        """The smaller integer."""
        return self.binary(f"arith.min{_sign(x)}i", x, y, _limited(min, x, y))

    def maximum(self, x: Value, y: Value) -> Value:
        """The larger integer."""
        return self.binary(f"arith.max{_sign(x)}i", x, y, _limited(max, x, y))

    def clamp(self, x: Value, low: int, high: int) -> Value:
        """An integer scalar moved into bounds; nothing is emitted if it is known to be inside."""
        if x.known is not None:
            return self.constant(min(max(x.known, low), high), x.dtype)
        bounds = x.bounds or (-(2**31), 2**31 - 1)
        if bounds[0] < low:
            x = self.maximum(x, self.constant(low, x.dtype)).having(
                (low, max(low, bounds[1])), math.gcd(x.multiple, low)
            )
            bounds = x.bounds or bounds
        if bounds[1] > high:
            x = self.minimum(x, self.constant(high, x.dtype)).having(
                (min(bounds[0], high), high), math.gcd(x.multiple, high)
            )
        return x

    # Shapes

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        """A value broadcast to a shape, by NumPy's rules."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if x.known is not None:
            return self.constant(x.known, x.dtype, shape)
        if bits(x.dtype) < 16 and x.dtype != BOOL or not x.shape and bits(x.dtype) == 16:
            return self.from_words(self.broadcast(self.words(x), shape), x.dtype)
        to = types.vector(x.element, shape)
        return self.op(f"vector.broadcast {x.name} : {x.type} to {to}", x.dtype, shape, x.bounds)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """A value with other sizes and the same order of elements."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if not x.shape:
            return self.broadcast(x, shape)
        if bits(x.dtype) < 32:
            return self.from_words(self.reshape(self.words(x), shape), x.dtype)
        if not shape:
            at = ", ".join("0" for _ in x.shape)
            text = f"vector.extract {x.name}[{at}] : {x.element} from {x.type}"
            return self.op(text, x.dtype, (), x.bounds)
        to = types.vector(x.element, shape)
        return self.op(f"vector.shape_cast {x.name} : {x.type} to {to}", x.dtype, shape, x.bounds)

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """A value with its axes in another order."""
        order = tuple(order)
        if order == tuple(range(len(order))):
            return x
        if bits(x.dtype) < 16 or bits(x.dtype) == 16 and len(order) > 2:
            return self.from_words(self.transpose(self.words(x), order), x.dtype)
        shape = tuple(x.shape[a] for a in order)
        to = types.vector(x.element, shape)
        text = f"vector.transpose {x.name}, {list(order)} : {x.type} to {to}"
        return self.op(text, x.dtype, shape, x.bounds)

    def positions(self, shape: tuple[int, ...], axis: int) -> Value:
        """The positions along an axis, of ``int32``."""
        bounds = (0, max(shape[axis] - 1, 0))
        if len(shape) == 1:
            return self.reshape(self.positions((1, *shape), 1), shape)
        to = types.vector("i32", shape)
        text = f"tpu.iota {{dimensions = array<i32: {axis}>}} : {to}"
        return self.op(text, INT32, shape, bounds)

    def part(self, x: Value, starts: Sequence[int], sizes: Sequence[int]) -> Value:
        """A part with constant starts."""
        shape = tuple(sizes)
        if x.shape == shape:
            return x
        if bits(x.dtype) < 32:
            return self.from_words(self.part(self.words(x), starts, shape), x.dtype)
        listed = f"offsets = {list(starts)}, sizes = {list(shape)}, strides = {[1] * len(shape)}"
        text = f'"vector.extract_strided_slice"({x.name}) <{{{listed}}}> : ({x.type}) -> '
        return self.op(text + types.vector(x.element, shape), x.dtype, shape, x.bounds)

    def concatenate(self, values: Sequence[Value], axis: int) -> Value:
        """Values one after the other along an axis."""
        first = values[0]
        if len(values) == 1:
            return first
        if bits(first.dtype) < 32:
            joined = self.concatenate([self.words(x) for x in values], axis)
            return self.from_words(joined, first.dtype)
        size = sum(x.shape[axis] for x in values)
        shape = (*first.shape[:axis], size, *first.shape[axis + 1 :])
        names, of_values = ", ".join(x.name for x in values), ", ".join(x.type for x in values)
        to = types.vector(first.element, shape)
        text = f"tpu.concatenate {names} in {axis} : {of_values} -> {to}"
        return self.op(text, first.dtype, shape)

    def rotate(self, x: Value, amount: Value, axis: int) -> Value:
        """Elements shifted cyclically to higher positions, by a scalar that is not negative."""
        if amount.known == 0 or x.shape[axis] == 1:
            return x
        if bits(x.dtype) < 32:
            return self.from_words(self.rotate(self.words(x), amount, axis), x.dtype)
        if len(x.shape) == 1:
            row = self.rotate(self.reshape(x, (1, *x.shape)), amount, 1)
            return self.reshape(row, x.shape)
        text = f"tpu.dynamic_rotate {x.name} by {amount.name} dim {axis} : {x.type}, i32 -> "
        return self.op(text + x.type, x.dtype, x.shape)


def _sign(x: Value) -> str:
    return "u" if is_unsigned(x.dtype) else "s"


def _limited(fun: Any, x: Value, y: Value) -> Bounds | None:
    """Bounds of a minimum or maximum, of which one operand's are enough."""
    if x.dtype == BOOL or is_float(x.dtype) or (x.bounds is None and y.bounds is None):
        return None
    info = np.iinfo(x.dtype)
    a, b = (v.bounds or (info.min, info.max) for v in (x, y))
    return fun(a[0], b[0]), fun(a[1], b[1])
