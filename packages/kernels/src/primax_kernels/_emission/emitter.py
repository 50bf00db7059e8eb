"""Text of a function in MLIR, operation by operation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np

from .elements import BOOL, INT32, is_float, is_unsigned, literal
from .values import Bounds, EmittedValue, corners, decided

V = TypeVar("V", bound=EmittedValue)


class TextEmitter(ABC, Generic[V]):
    """Builder of the body of a function.

    Equal operations without effects are emitted once for each region.

    Attributes:
      kernel: the kernel in errors.
      lines: the text.
      replaced: functions instead of the rules of some equations, by their identity.
    """

    def __init__(self, kernel: Any):
        self.kernel = kernel
        self.lines: list[str] = []
        self.replaced: dict[int, Callable[..., V]] = {}
        self._indent = 1
        self._count = 0
        self._location = ""
        self._scopes: list[dict[tuple[str, Any], V]] = [{}]

    # Types and locations, which differ by backend

    @abstractmethod
    def value(self, name: str, dtype: Any, shape: Sequence[int], bounds: Bounds | None = None) -> V:
        """The value of a name."""

    @abstractmethod
    def type(self, dtype: Any, shape: Sequence[int]) -> str:
        """The type of values in the text."""

    @abstractmethod
    def constant(self, value: Any, dtype: Any, shape: tuple[int, ...] = ()) -> V:
        """A constant whose elements are all equal."""

    @abstractmethod
    def broadcast(self, x: V, shape: Sequence[int]) -> V:
        """A value broadcast to a shape, by NumPy's rules."""

    @abstractmethod
    def locate(self, source: Any) -> None:
        """Set the source location of the lines that follow, if the text has locations."""

    # Text

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
        self, text: str, dtype: Any, shape: Sequence[int] = (), bounds: Bounds | None = None,
        *, multiple: int = 1, pure: bool = True,
    ) -> V:  # fmt: skip
        """The result of an operation.

        Args:
          text: the operation, with its types.
          bounds, multiple: bounds and a divisor of integers.
          pure: whether an equal operation before it gives the same result.
        """
        dtype, shape = np.dtype(dtype), tuple(shape)
        if pure:
            for scope in self._scopes:
                if (text, dtype) in scope:
                    return scope[text, dtype].like(shape)
        value = self.value(self.name(), dtype, shape, bounds)
        if multiple != 1:
            value = value.having(bounds, multiple)
        self.line(f"{value.name} = {text}")
        if pure:
            self._scopes[-1][text, dtype] = value
        return value

    # Elements

    def filled_constant(self, value: Any, dtype: Any, shape: tuple[int, ...] = ()) -> V:
        """A constant as one operation, for types that have constants."""
        dtype = np.dtype(dtype)
        text = literal(value, dtype)
        bounds = None if is_float(dtype) else (int(value), int(value))
        if not shape and dtype == BOOL:  # the syntax has no type then
            return self.op(f"arith.constant {text}", dtype, (), bounds)
        text = f"dense<{text}>" if shape else text
        return self.op(f"arith.constant {text} : {self.type(dtype, shape)}", dtype, shape, bounds)

    def index(self, value: int) -> V:
        """An ``int32`` constant."""
        return self.constant(value, INT32)

    def unary(self, op: str, x: V) -> V:
        """An operation on each element that keeps the type."""
        return self.op(f"{op} {x.name} : {x.type}", x.dtype, x.shape)

    def binary(self, op: str, x: V, y: V, bounds: Bounds | None = None) -> V:
        """An operation on pairs of elements of one type."""
        x, y = self.together(x, y)
        return self.op(f"{op} {x.name}, {y.name} : {x.type}", x.dtype, x.shape, bounds)

    def changed(self, op: str, x: V, dtype: Any) -> V:
        """An operation on each element with another type of result."""
        text = f"{op} {x.name} : {x.type} to {self.type(dtype, x.shape)}"
        return self.op(text, dtype, x.shape)

    def compared(self, predicate: str, of_floats: str, x: V, y: V) -> V:
        """Comparison of elements.

        Args:
          predicate: ``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge``.
          of_floats: MLIR's name of the predicate for floats.
        """
        x, y = self.together(x, y)
        if x.is_float:
            op = f"arith.cmpf {of_floats}"
        else:
            sign = "u" if is_unsigned(x.dtype) else "s"
            op = f"arith.cmpi {predicate if predicate in ('eq', 'ne') else sign + predicate}"
        outcome = decided(predicate, x.bounds, y.bounds)
        if outcome is not None:
            return self.constant(outcome, BOOL, x.shape)
        return self.op(f"{op}, {x.name}, {y.name} : {x.type}", BOOL, x.shape)

    # Integers with bounds

    def add(self, x: V, y: V) -> V:
        """A sum."""
        if x.is_float:
            return self.binary("arith.addf", x, y)
        if x.known == 0 or y.known == 0:
            return self.as_wide(y, x) if x.known == 0 else self.as_wide(x, y)
        return self._folded("arith.addi", x, y, lambda a, b: a + b, _common(x, y))

    def subtract(self, x: V, y: V) -> V:
        """A difference."""
        if x.is_float:
            return self.binary("arith.subf", x, y)
        if y.known == 0:
            return self.as_wide(x, y)
        return self._folded("arith.subi", x, y, lambda a, b: a - b, _common(x, y))

    def multiply(self, x: V, y: V) -> V:
        """A product."""
        if x.is_float:
            return self.binary("arith.mulf", x, y)
        if x.known == 1 or y.known == 1:
            return self.as_wide(y, x) if x.known == 1 else self.as_wide(x, y)
        return self._folded("arith.muli", x, y, lambda a, b: a * b, _divisor(x) * _divisor(y))

    def as_wide(self, x: V, y: V) -> V:
        """``x`` with the shape that it has together with ``y``."""
        return self.broadcast(x, np.broadcast_shapes(x.shape, y.shape))

    def _folded(self, op: str, x: V, y: V, fun: Callable[[int, int], int], multiple: int) -> V:
        bounds = corners(fun, x, y)
        shape = np.broadcast_shapes(x.shape, y.shape)
        if bounds is not None and bounds[0] == bounds[1]:
            return self.constant(bounds[0], x.dtype, shape)
        result = self.binary(op, x, y, bounds)
        # Of an overflow only powers of two remain.
        known = multiple if bounds is not None else multiple & -multiple
        return result if shape else result.having(bounds, max(known, 1))

    # Shapes

    def together(self, x: V, y: V) -> tuple[V, V]:
        """Both values broadcast to a common shape."""
        if x.shape == y.shape:
            return x, y
        return self.as_wide(x, y), self.as_wide(y, x)


def _divisor(x: EmittedValue) -> int:
    return abs(x.known) if x.known is not None else x.multiple


def _common(x: EmittedValue, y: EmittedValue) -> int:
    return math.gcd(_divisor(x), _divisor(y))
