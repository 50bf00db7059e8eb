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

    Args:
      p: a dimension: an element of a shape.

    Returns:
      A bool. Python and NumPy integers are not symbolic.

    Functions that are exported for several shapes have such dimensions while they are traced.
    They support arithmetic and comparisons; see :func:`symbolic_shape`.

    >>> from primax_core import export
    >>> export.is_symbolic_dim(3)
    False
    >>> (n,) = export.symbolic_shape("n")
    >>> export.is_symbolic_dim(n), export.is_symbolic_dim(2 * n + 1)
    (True, True)
    """
    return isinstance(p, Dimension)


def is_static(sizes: Iterable[Any]) -> bool:
    """Return True if all sizes are numbers.

    Args:
      sizes: sizes, mostly a shape.

    Returns:
      A bool; True for an empty shape.

    A computation that needs numbers at tracing time checks it first, to raise its own error.

    >>> from primax_core import export
    >>> from primax_core.extend.dimensions import is_static
    >>> (n,) = export.symbolic_shape("n")
    >>> is_static((2, 3)), is_static((n, 3))
    (True, False)
    """
    for d in sizes:
        if type(d) is not int and isinstance(d, Dimension):
            return False
    return True


def as_size(d: Any) -> Any:
    """A dimension for a shape: a Python integer, or the symbolic dimension itself.

    Args:
      d: an integer of Python or NumPy, or a symbolic dimension.

    Returns:
      A size.

    Raises:
      TypeError: if ``d`` is not an integer; also for floats with an integer value.

    Arguments of public functions that are sizes are converted by it.

    >>> import numpy as np
    >>> from primax_core.extend.dimensions import as_size
    >>> as_size(np.int64(3))
    3
    """
    if isinstance(d, Dimension):
        return d
    if not hasattr(d, "__index__"):
        raise TypeError(
            f"a size must be an integer or a symbolic dimension, got {d!r} of type "
            f"{type(d).__name__}: convert it with int(...), or divide with // instead of /"
        )
    return int(operator.index(d))


def as_steps(d: Any) -> Any:
    """A number of steps of a loop: like :func:`as_size`, but floats are truncated."""
    return d if isinstance(d, Dimension) else int(d)


def index(d: Any) -> Any:
    """``operator.index`` that accepts symbolic dimensions.

    Args:
      d: an integer of Python or NumPy, or a symbolic dimension.

    Returns:
      A Python integer, or the symbolic dimension unchanged.

    Raises:
      TypeError: if ``d`` is not an integer.

    The error is that of ``operator.index``.

    >>> import numpy as np
    >>> from primax_core.extend.dimensions import index
    >>> index(np.int8(3))
    3
    """
    return d if isinstance(d, Dimension) else operator.index(d)


def decided(condition: Callable[[], bool], otherwise: bool) -> bool:
    """The value of a condition on dimensions, or a default if it is undecided.

    For choices between equivalent computations, of which one is faster.

    Args:
      condition: a function without arguments that compares dimensions.
      otherwise: the result if a comparison depends on the values of dimension variables.

    Returns:
      A bool.

    >>> from primax_core import export
    >>> from primax_core.extend.dimensions import decided
    >>> (n,) = export.symbolic_shape("n")
    >>> decided(lambda: n >= 1, otherwise=False), decided(lambda: n > 5, otherwise=False)
    (True, False)
    """
    try:
        return condition()
    except InconclusiveDimensionOperation:
        return otherwise


def max_dim(x: Any, y: Any) -> Any:
    """The maximum of two dimensions; an expression if it is undecided.

    Args:
      x: a number or a symbolic dimension.
      y: a number or a symbolic dimension.

    Returns:
      A number or a symbolic dimension.

    Unlike Python's ``max`` it raises no error if the order depends on dimension variables.

    >>> from primax_core import export
    >>> from primax_core.extend.dimensions import max_dim
    >>> (n,) = export.symbolic_shape("n")
    >>> max_dim(2, 3), max_dim(n, 1), max_dim(n, 4)
    (3, n, max(n, 4))
    """
    symbolic = x if isinstance(x, Dimension) else y
    return symbolic.extremum("max", x, y) if isinstance(symbolic, Dimension) else max(x, y)


def min_dim(x: Any, y: Any) -> Any:
    """The minimum of two dimensions; an expression if it is undecided.

    Args:
      x: a number or a symbolic dimension.
      y: a number or a symbolic dimension.

    Returns:
      A number or a symbolic dimension.

    Unlike Python's ``min`` it raises no error if the order depends on dimension variables.

    >>> from primax_core import export
    >>> from primax_core.extend.dimensions import min_dim
    >>> (n,) = export.symbolic_shape("n")
    >>> min_dim(2, 3), min_dim(n, 1), min_dim(n, 4)
    (2, 1, min(n, 4))
    """
    symbolic = x if isinstance(x, Dimension) else y
    return symbolic.extremum("min", x, y) if isinstance(symbolic, Dimension) else min(x, y)
