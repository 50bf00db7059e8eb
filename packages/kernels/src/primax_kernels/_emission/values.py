"""Values of a function that is emitted, and what is known of their elements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from .elements import BOOL, is_float

Bounds = tuple[int, int]
"""The least and the greatest value of an integer."""

V = TypeVar("V", bound="EmittedValue")


@dataclass(frozen=True)
class EmittedValue(ABC):
    """A scalar or an array in the text.

    Attributes:
      name: its name in the text.
      dtype: type of its elements.
      shape: shape of the value.
      bounds: bounds of all elements of integers, and of Booleans as integers, if they are known.
      multiple: a divisor of an integer scalar.
    """

    name: str
    dtype: Any
    shape: tuple[int, ...] = ()
    bounds: Bounds | None = None
    multiple: int = 1

    @property
    @abstractmethod
    def element(self) -> str:
        """Type of an element."""

    @property
    @abstractmethod
    def type(self) -> str:
        """Type in the text."""

    @property
    def is_float(self) -> bool:
        """Return True if the elements are floating-point numbers."""
        return is_float(self.dtype)

    @property
    def known(self) -> int | None:
        """The integer that all elements are, if it is known."""
        return self.bounds[0] if self.bounds and self.bounds[0] == self.bounds[1] else None

    def divisible(self, n: int) -> bool:
        """Return True if an integer is known to be a multiple of ``n``."""
        return self.known % n == 0 if self.known is not None else self.multiple % n == 0

    def having(self: V, bounds: Bounds | None, multiple: int = 1) -> V:
        """The value with bounds and a divisor."""
        return replace(self, bounds=bounds, multiple=multiple)

    def like(self: V, shape: tuple[int, ...]) -> V:
        """The same elements as a value of another shape that the text does not distinguish."""
        return replace(self, shape=shape)


def names(values: Sequence[EmittedValue]) -> str:
    """The names of values, as the text lists them."""
    return ", ".join(x.name for x in values)


def types_of(values: Sequence[EmittedValue]) -> str:
    """The types of values, as the text lists them."""
    return ", ".join(x.type for x in values)


def corners(fun: Callable[[int, int], int], x: EmittedValue, y: EmittedValue) -> Bounds | None:
    """Bounds of a function that is monotonic in each operand; ``None`` if it may overflow."""
    if x.bounds is None or y.bounds is None or x.dtype == BOOL or is_float(x.dtype):
        return None
    results = [fun(a, b) for a in x.bounds for b in y.bounds]
    info = np.iinfo(x.dtype)
    if min(results) < info.min or max(results) > info.max:
        return None
    return min(results), max(results)


def union(x: Bounds | None, y: Bounds | None) -> Bounds | None:
    """Bounds of either of two values."""
    return None if x is None or y is None else (min(x[0], y[0]), max(x[1], y[1]))


def decided(predicate: str, x: Bounds | None, y: Bounds | None) -> bool | None:
    """The result of a comparison that is the same for all values within bounds.

    >>> decided("lt", (0, 3), (4, 9)), decided("gt", (0, 3), (4, 9)), decided("lt", (0, 3), (3, 9))
    (True, False, None)
    """
    if x is None or y is None:
        return None
    if predicate in ("gt", "ge"):
        x, y = y, x
    if predicate in ("lt", "gt"):
        return True if x[1] < y[0] else False if x[0] >= y[1] else None
    if predicate in ("le", "ge"):
        return True if x[1] <= y[0] else False if x[0] > y[1] else None
    equal = x == y and x[0] == x[1]
    apart = x[1] < y[0] or y[1] < x[0]
    return (predicate == "eq") if equal else (predicate == "ne") if apart else None
