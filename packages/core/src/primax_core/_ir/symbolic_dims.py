"""Base class of symbolic dimensions, and helpers for static and symbolic sizes.

The module does not load the arithmetic of symbolic dimensions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from .._base.errors import InconclusiveDimensionOperation


class UnknownDimensionError(ValueError):
    """A dimension variable is used in a context in which its value is not known."""


class Dimension:
    """Base of the symbolic dimensions, which are :class:`~.dimensions.DimExpr`."""

    __slots__ = ()

    def extremum(self, name: str, x: Any, y: Any) -> Any:
        """``max`` or ``min``, by name, of two dimensions, one of which is this one."""
        raise NotImplementedError

    def as_value(self) -> Any:
        """An array of the dimension's value."""
        raise NotImplementedError


def is_symbolic_dim(p: Any) -> bool:
    """Return True if a dimension is an expression over dimension variables, not a number.

    >>> is_symbolic_dim(3)
    False
    """
    return isinstance(p, Dimension)


def is_static(sizes: Iterable[Any]) -> bool:
    """Return True if all sizes are numbers."""
    for d in sizes:
        if type(d) is not int and isinstance(d, Dimension):
            return False
    return True


def as_size(d: Any) -> Any:
    """A dimension for a shape: a Python int, or the symbolic dimension itself."""
    return d if isinstance(d, Dimension) else int(d)


def index(d: Any) -> Any:
    """``operator.index``; symbolic dimensions are returned unchanged."""
    return d if isinstance(d, Dimension) else operator.index(d)


def decided(condition: Callable[[], bool], otherwise: bool) -> bool:
    """The value of a condition on dimensions, or ``otherwise`` if it is undecided.

    For choices between equivalent computations.
    """
    try:
        return condition()
    except InconclusiveDimensionOperation:
        return otherwise


def max_dim(x: Any, y: Any) -> Any:
    """The maximum of two dimensions; an expression if it is undecided.

    >>> max_dim(2, 3)
    3
    """
    symbolic = x if isinstance(x, Dimension) else y
    return symbolic.extremum("max", x, y) if isinstance(symbolic, Dimension) else max(x, y)


def min_dim(x: Any, y: Any) -> Any:
    """The minimum of two dimensions; an expression if it is undecided.

    >>> min_dim(2, 3)
    2
    """
    symbolic = x if isinstance(x, Dimension) else y
    return symbolic.extremum("min", x, y) if isinstance(symbolic, Dimension) else min(x, y)
