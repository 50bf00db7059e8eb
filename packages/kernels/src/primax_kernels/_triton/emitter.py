"""Text of a Triton function, operation by operation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from primax_core.extend import summarize
from primax_core.extend.runtime import state

from . import types
from .types import BOOL, INT32, is_float, is_unsigned, padded
from .values import Bounds, Value

_POSITION: Final = re.compile(r"(.+?):(\d+)(?::(\d+))?(?: |$)")
"""File, line and column in the text of a source location."""

_FLOAT_PREDICATES: Final = {
    "eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
}  # fmt: skip


class Emitter:
    """Builder of the body of a function.

    Equal operations without effects are emitted once for each region.

    Attributes:
      kernel: the kernel in errors.
      lines: the text.
    """

    def __init__(self, kernel: Any):
        self.kernel = kernel
        self.lines: list[str] = []
        self._indent = 1
        self._count = 0
        self._scopes: list[dict[tuple[str, Any], Value]] = [{}]
        self._location = ""

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

    def name(self) -> str:
        """A new name."""
        self._count += 1
        return f"%v{self._count - 1}"

    def line(self, text: str) -> None:
        """Emit a line."""
        # Locations of operations with regions come after these.
        located = text and not text.endswith("{") and text[0] not in "}^"
        self.lines.append("  " * self._indent + text + (self._location if located else ""))

    @contextmanager
    def region(self) -> Iterator[None]:
        """Emit into a region; its values are not visible after it."""
        self._indent += 1
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()
            self._indent -= 1

    def op(
        self, text: str, dtype: Any, shape: tuple[int, ...] = (), bounds: Bounds | None = None,
        *, pure: bool = True,
    ) -> Value:  # fmt: skip
        """The result of an operation.

        Args:
          text: the operation, with its types.
          pure: whether an equal operation before it gives the same result.
        """
        dtype = np.dtype(dtype)
        if pure:
            for scope in self._scopes:
                if (text, dtype) in scope:
                    return scope[text, dtype].like(shape)
        value = Value(self.name(), dtype, shape, bounds)
        self.line(f"{value.name} = {text}")
        if pure:
            self._scopes[-1][text, dtype] = value
        return value

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
        text = types.literal(value, dtype)
        type_ = types.tensor(types.element(dtype), padded(shape))
        bounds = None if is_float(dtype) else (int(value), int(value))
        if not shape and dtype == BOOL:  # the syntax has no type then
            return self.op(f"arith.constant {text}", dtype, (), bounds)
        text = f"dense<{text}>" if shape else text
        return self.op(f"arith.constant {text} : {type_}", dtype, shape, bounds)

    def index(self, value: int) -> Value:
        """An ``int32`` constant."""
        return self.constant(value, INT32)

    def unary(self, op: str, x: Value) -> Value:
        """An operation on each element that keeps the type."""
        return self.op(f"{op} {x.name} : {x.type}", x.dtype, x.shape)

    def binary(self, op: str, x: Value, y: Value, bounds: Bounds | None = None) -> Value:
        """An operation on pairs of elements of one type."""
        x, y = self.together(x, y)
        return self.op(f"{op} {x.name}, {y.name} : {x.type}", x.dtype, x.shape, bounds)

    def changed(self, op: str, x: Value, dtype: Any) -> Value:
        """An operation on each element with another type of result."""
        to = types.tensor(types.element(dtype), x.padded)
        return self.op(f"{op} {x.name} : {x.type} to {to}", dtype, x.shape)

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
        x, y = self.together(x, y)
        if x.is_float:
            op = f"arith.cmpf {_FLOAT_PREDICATES[predicate]}"
        else:
            sign = "u" if is_unsigned(x.dtype) else "s"
            op = f"arith.cmpi {predicate if predicate in ('eq', 'ne') else sign + predicate}"
        bounds = _decided(predicate, x.bounds, y.bounds)
        if bounds is not None:
            return self.constant(bool(bounds[0]), BOOL, x.shape)
        return self.op(f"{op}, {x.name}, {y.name} : {x.type}", BOOL, x.shape)

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """``x`` where a condition holds, and ``y`` elsewhere."""
        x, y = self.together(x, y)
        if condition.known is not None:
            return x if condition.known else y
        shape = np.broadcast_shapes(condition.shape, x.shape)
        condition, x, y = (self.broadcast(v, shape) for v in (condition, x, y))
        text = f"arith.select {condition.name}, {x.name}, {y.name} : "
        text += f"{condition.type}, {x.type}" if shape else x.type
        return self.op(text, x.dtype, x.shape, _union(x.bounds, y.bounds))

    def both(self, x: Value | None, y: Value | None) -> Value | None:
        """The conjunction of masks, where ``None`` is true."""
        if x is None or y is None:
            return y if x is None else x
        return self.binary("arith.andi", x, y)

    # Integers with bounds

    def add(self, x: Value, y: Value) -> Value:
        """A sum."""
        if x.is_float:
            return self.binary("arith.addf", x, y)
        if x.known == 0 or y.known == 0:
            return self._as_wide(y, x) if x.known == 0 else self._as_wide(x, y)
        return self._folded("arith.addi", x, y, lambda a, b: a + b)

    def subtract(self, x: Value, y: Value) -> Value:
        """A difference."""
        if x.is_float:
            return self.binary("arith.subf", x, y)
        if y.known == 0:
            return self._as_wide(x, y)
        return self._folded("arith.subi", x, y, lambda a, b: a - b)

    def multiply(self, x: Value, y: Value) -> Value:
        """A product."""
        if x.is_float:
            return self.binary("arith.mulf", x, y)
        if x.known == 1 or y.known == 1:
            return self._as_wide(y, x) if x.known == 1 else self._as_wide(x, y)
        return self._folded("arith.muli", x, y, lambda a, b: a * b)

    def _as_wide(self, x: Value, y: Value) -> Value:
        return self.broadcast(x, np.broadcast_shapes(x.shape, y.shape))

    def _folded(self, op: str, x: Value, y: Value, fun: Any) -> Value:
        bounds = _corners(fun, x, y)
        if bounds is not None and bounds[0] == bounds[1]:
            shape = np.broadcast_shapes(x.shape, y.shape)
            return self.constant(bounds[0], x.dtype, shape)
        return self.binary(op, x, y, bounds)

    def minimum(self, x: Value, y: Value) -> Value:
        """The smaller integer."""
        return self._extreme("min", x, y, min)

    def maximum(self, x: Value, y: Value) -> Value:
        """The larger integer."""
        return self._extreme("max", x, y, max)

    def _extreme(self, name: str, x: Value, y: Value, fun: Any) -> Value:
        bounds = _corners(fun, x, y)
        if bounds is not None and bounds in (x.bounds, y.bounds) and x.bounds != y.bounds:
            one, other = (x, y) if bounds == x.bounds else (y, x)
            if fun(one.bounds[0], other.bounds[1]) == one.bounds[0] and (
                fun(one.bounds[1], other.bounds[0]) == one.bounds[1]
            ):
                return self._as_wide(one, other)
        sign = "u" if is_unsigned(x.dtype) else "s"
        return self.binary(f"arith.{name}{sign}i", x, y, bounds)

    def clamp(self, x: Value, low: int, high: int) -> Value:
        """An integer moved into bounds; nothing is emitted if it is known to be inside."""
        if x.bounds is not None and low <= x.bounds[0] and x.bounds[1] <= high:
            return x
        x = self.maximum(x, self.constant(low, x.dtype))
        return self.minimum(x, self.constant(high, x.dtype))

    # Shapes

    def together(self, x: Value, y: Value) -> tuple[Value, Value]:
        """Both values broadcast to a common shape."""
        if x.shape == y.shape:
            return x, y
        shape = np.broadcast_shapes(x.shape, y.shape)
        return self.broadcast(x, shape), self.broadcast(y, shape)

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


def _corners(fun: Any, x: Value, y: Value) -> Bounds | None:
    """Bounds of a function that is monotonic in each operand; ``None`` if it may overflow."""
    if x.bounds is None or y.bounds is None or types.is_float(x.dtype):
        return None
    results = [fun(a, b) for a in x.bounds for b in y.bounds]
    if x.dtype == BOOL:
        return None
    info = np.iinfo(x.dtype)
    if min(results) < info.min or max(results) > info.max:
        return None
    return min(results), max(results)


def _union(x: Bounds | None, y: Bounds | None) -> Bounds | None:
    return None if x is None or y is None else (min(x[0], y[0]), max(x[1], y[1]))


def _decided(predicate: str, x: Bounds | None, y: Bounds | None) -> Bounds | None:
    """The result of a comparison that is the same for all values within bounds."""
    if x is None or y is None:
        return None
    if predicate in ("gt", "ge"):
        x, y = y, x
    if predicate in ("lt", "gt"):
        outcome = True if x[1] < y[0] else False if x[0] >= y[1] else None
    elif predicate in ("le", "ge"):
        outcome = True if x[1] <= y[0] else False if x[0] > y[1] else None
    else:
        equal = x == y and x[0] == x[1]
        apart = x[1] < y[0] or y[1] < x[0]
        outcome = (predicate == "eq") if equal else (predicate == "ne") if apart else None
    return None if outcome is None else (int(outcome), int(outcome))
