"""Text of a Triton function, operation by operation."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core.extend import summarize
from primax_core.extend.runtime import state

from .._emission.emitter import TextEmitter
from .._emission.values import corners, union
from . import types
from .types import INT32, is_unsigned, padded
from .values import Bounds, Value

_POSITION: Final = re.compile(r"(.+?):(\d+)(?::(\d+))?(?: |$)")
"""File, line and column in the text of a source location."""


class Emitter(TextEmitter[Value]):
    """Builder of the body of a function."""

    # Text

    def locate(self, source: Any) -> None:
        """Set the source location of the lines that follow.

        Executables are cached by their text: equal kernels from different lines share one, unless
        the option ``compilation_cache_include_metadata_in_key`` is set.
        """
        if state.compilation_cache_include_metadata_in_key and source:
            match = _POSITION.match(summarize(source))
            if match is not None:
                file = json.dumps(match[1])
                self._location = f" loc({file}:{match[2]}:{match[3] or 1})"

    def value(
        self, name: str, dtype: Any, shape: Sequence[int], bounds: Bounds | None = None
    ) -> Value:  # fmt: skip
        """The value of a name."""
        return Value(name, np.dtype(dtype), tuple(shape), bounds)

    def type(self, dtype: Any, shape: Sequence[int]) -> str:
        """The type of a tensor or scalar."""
        return types.tensor(types.element(dtype), padded(tuple(shape)))

    def annotate(self, x: Value, attribute: str, values: Sequence[int]) -> None:
        """Add a promise about integers to the operation that computes them.

        Constants need none, and arguments of loops have no operation.
        """
        start = f"{x.name} = "
        for i in range(len(self.lines) - 1, -1, -1):
            line = self.lines[i]
            if not line.lstrip().startswith(start):
                continue
            if "arith.constant" in line or line.endswith("{") or attribute in line:
                return
            listed = str(list(values)) if len(values) > 1 else str(values[0])
            text = f"{attribute} = dense<{listed}> : tensor<{len(values)}xi32>"
            types_at, attributes_at = line.index(" : "), line.find("{")
            if 0 <= attributes_at < types_at:
                at = attributes_at + 1
                self.lines[i] = f"{line[:at]}{text}, {line[at:]}"
            else:
                self.lines[i] = f"{line[:types_at]} {{{text}}}{line[types_at:]}"
            return

    # Elements

    def constant(self, value: Any, dtype: Any, shape: tuple[int, ...] = ()) -> Value:
        """A constant whose elements are all equal."""
        dtype = np.dtype(dtype)
        if types.is_f8(dtype) and shape:
            return self.broadcast(self.constant(value, dtype), shape)
        return self.filled_constant(value, dtype, shape)

    def external(self, symbol: str, *operands: Value, dtype: Any = None) -> Value:
        """A function of NVIDIA's mathematical library on each element."""
        first = operands[0]
        dtype = first.dtype if dtype is None else dtype
        names = ", ".join(x.name for x in operands)
        taken = ", ".join(x.type for x in operands)
        to = types.tensor(types.element(dtype), first.padded)
        return self.op(
            f'tt.extern_elementwise {names} {{libname = "", libpath = "", pure = true, '
            f'symbol = "{symbol}"}} : ({taken}) -> {to}',
            dtype,
            first.shape,
        )

    def compare(self, predicate: str, x: Value, y: Value) -> Value:
        """Comparison of elements: ``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge``."""
        return self.compared(predicate, "une" if predicate == "ne" else f"o{predicate}", x, y)

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """``x`` where a condition holds, and ``y`` elsewhere."""
        x, y = self.together(x, y)
        if condition.known is not None:
            return x if condition.known else y
        shape = np.broadcast_shapes(condition.shape, x.shape)
        condition, x, y = (self.broadcast(v, shape) for v in (condition, x, y))
        text = f"arith.select {condition.name}, {x.name}, {y.name} : "
        text += f"{condition.type}, {x.type}" if shape else x.type
        return self.op(text, x.dtype, x.shape, union(x.bounds, y.bounds))

    def both(self, x: Value | None, y: Value | None) -> Value | None:
        """The conjunction of masks, where ``None`` is true."""
        if x is None or y is None:
            return y if x is None else x
        return self.binary("arith.andi", x, y)

    # Integers with bounds

    def minimum(self, x: Value, y: Value) -> Value:
        """The smaller integer."""
        return self._extreme("min", x, y, min)

    def maximum(self, x: Value, y: Value) -> Value:
        """The larger integer."""
        return self._extreme("max", x, y, max)

    def _extreme(self, name: str, x: Value, y: Value, fun: Any) -> Value:
        bounds = corners(fun, x, y)
        if bounds is not None and bounds in (x.bounds, y.bounds) and x.bounds != y.bounds:
            one, other = (x, y) if bounds == x.bounds else (y, x)
            if fun(one.bounds[0], other.bounds[1]) == one.bounds[0] and (
                fun(one.bounds[1], other.bounds[0]) == one.bounds[1]
            ):
                return self.as_wide(one, other)
        sign = "u" if is_unsigned(x.dtype) else "s"
        return self.binary(f"arith.{name}{sign}i", x, y, bounds)

    def clamp(self, x: Value, low: int, high: int) -> Value:
        """An integer moved into bounds; nothing is emitted if it is known to be inside."""
        if x.bounds is not None and low <= x.bounds[0] and x.bounds[1] <= high:
            return x
        x = self.maximum(x, self.constant(low, x.dtype))
        return self.minimum(x, self.constant(high, x.dtype))

    # Shapes

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        """A value broadcast to a shape, by NumPy's rules."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        to = types.tensor(x.element, padded(shape))
        if x.known is not None:
            return self.constant(x.known, x.dtype, shape)
        if not x.shape:
            return self.op(f"tt.splat {x.name} : {x.element} -> {to}", x.dtype, shape, x.bounds)
        while len(x.shape) < len(shape):
            x = self.expand_dims(x, 0)
        if x.padded == padded(shape):
            return x.like(shape)
        return self.op(f"tt.broadcast {x.name} : {x.type} -> {to}", x.dtype, shape, x.bounds)

    def expand_dims(self, x: Value, axis: int) -> Value:
        """A value with one more axis, of size 1."""
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        if not x.shape:
            return self.broadcast(x, shape)
        to = types.tensor(x.element, padded(shape))
        return self.op(
            f"tt.expand_dims {x.name} {{axis = {axis} : i32}} : {x.type} -> {to}",
            x.dtype,
            shape,
            x.bounds,
        )

    def reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        """The tensor with other sizes, in the same order; sizes are those of padded tensors."""
        if x.padded == padded(shape):
            return x.like(shape)
        if not shape:
            while len(x.shape) > 1:
                x = self.reshape(x, (1,))
            return self.op(f"tt.unsplat {x.name} : {x.type}", x.dtype, (), x.bounds)
        if not x.shape:
            return self.broadcast(x, shape)
        to = types.tensor(x.element, padded(shape))
        return self.op(f"tt.reshape {x.name} : {x.type} -> {to}", x.dtype, shape, x.bounds)

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """A value with its axes in another order."""
        order = tuple(order)
        if order == tuple(range(len(order))):
            return x
        shape = tuple(x.shape[a] for a in order)
        to = types.tensor(x.element, padded(shape))
        listed = ", ".join(map(str, order))
        return self.op(
            f"tt.trans {x.name} {{order = array<i32: {listed}>}} : {x.type} -> {to}",
            x.dtype,
            shape,
            x.bounds,
        )

    def range(self, n: int) -> Value:
        """``0, 1, ..., n - 1``, of ``int32``; the tensor continues to a power of two."""
        end = types.power_of_two(n)
        return self.op(
            f"tt.make_range {{end = {end} : i32, start = 0 : i32}} : tensor<{end}xi32>",
            INT32,
            (n,),
            (0, end - 1),
        )

    def positions(self, shape: tuple[int, ...], axis: int) -> Value:
        """Positions along an axis, as a tensor whose other sizes are 1."""
        x = self.range(shape[axis])
        for a in range(len(shape)):
            if a != axis:
                x = self.expand_dims(x, a)
        return x

    def gather(self, x: Value, positions: Value, axis: int) -> Value:
        """Elements at positions along an axis, which are in bounds of the tensor."""
        shape = tuple(positions.shape[a] if a == axis else n for a, n in enumerate(x.shape))
        where = self.broadcast(positions, shape)
        to = types.tensor(x.element, padded(shape))
        return self.op(
            f"tt.gather {x.name}[{where.name}] {{axis = {axis} : i32}} : "
            f"({x.type}, {where.type}) -> {to}",
            x.dtype,
            shape,
            x.bounds,
        )

    def inside(self, shape: tuple[int, ...], axes: Sequence[int]) -> Value | None:
        """Mask of the elements of a tensor that belong to a value; ``None`` if all do."""
        mask = None
        for axis in axes:
            if shape[axis] != types.power_of_two(shape[axis]):
                limit = self.index(shape[axis])
                mask = self.both(mask, self.compare("lt", self.positions(shape, axis), limit))
        return mask

    def filled(self, x: Value, axes: Sequence[int], fill: Any) -> Value:
        """A value whose tensor has ``fill`` outside of it along some axes."""
        mask = self.inside(x.shape, axes)
        if mask is None:
            return x
        return self.select(self.broadcast(mask, x.shape), x, self.constant(fill, x.dtype, x.shape))
