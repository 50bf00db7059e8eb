"""What tells a symbolic dimension from a number, without loading what computes with them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from .._base.errors import InconclusiveDimensionOperation


class UnknownDimensionError(ValueError):
    """A dimension variable is used where nothing tells its value."""


class Dimension:
    """Base of the symbolic dimensions, which are :class:`~.dimensions.DimExpr`."""

    __slots__ = ()

    def extremum(self, name: str, x: Any, y: Any) -> Any:
        """``max`` or ``min``, by name, of two dimensions of which this is one."""
        raise NotImplementedError

    def as_value(self) -> Any:
        """An array of the dimension's value."""
        raise NotImplementedError


def is_symbolic_dim(p: Any) -> bool:
    """Whether a dimension is an expression over dimension variables and not a number.

    >>> is_symbolic_dim(3)
    False
    """
    return isinstance(p, Dimension)


def is_static(sizes: Iterable[Any]) -> bool:
    """Whether all sizes are numbers."""
    for d in sizes:
        if type(d) is not int and isinstance(d, Dimension):
            return False
    return True


def as_size(d: Any) -> Any:
    """A dimension as it stands in a shape: a Python int, or the symbolic dimension itself."""
    return d if isinstance(d, Dimension) else int(d)


def index(d: Any) -> Any:
    """``operator.index`` that lets symbolic dimensions pass."""
    return d if isinstance(d, Dimension) else operator.index(d)


def decided(condition: Callable[[], bool], otherwise: bool) -> bool:
    """A condition on dimensions, or ``otherwise`` where it is not decided for all their values:
    for choices that change how something is computed, and not what."""
    try:
        return condition()
    except InconclusiveDimensionOperation:
        return otherwise


def max_dim(x: Any, y: Any) -> Any:
    """The greater of two dimensions, as an expression where that is not decided.

    >>> max_dim(2, 3)
    3
    """
    symbolic = x if isinstance(x, Dimension) else y
    return symbolic.extremum("max", x, y) if isinstance(symbolic, Dimension) else max(x, y)


def min_dim(x: Any, y: Any) -> Any:
    """The smaller of two dimensions, as an expression where that is not decided.

    >>> min_dim(2, 3)
    2
    """
    symbolic = x if isinstance(x, Dimension) else y
    return symbolic.extremum("min", x, y) if isinstance(symbolic, Dimension) else min(x, y)
