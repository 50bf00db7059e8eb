"""Argument checks shared by many functions."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from primax_core.extend import dtypes, is_operand, typeof


def check_arrays(name: str, *args: Any) -> None:
    """Check that every argument is an array or a number.

    Raises:
      TypeError: with the name of the function, the type and the position.
    """
    for i, x in enumerate(args):
        if not is_operand(x):
            if hasattr(x, "aval"):
                typeof(x)  # raises for tracers of other libraries, with their name
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(x)} at position {i}."
            )


def converts_itself(x: Any) -> bool:
    """Return True if a value has a method ``__jax_array__``."""
    return callable(getattr(x, "__jax_array__", None))


def converted(x: Any) -> Any:
    """The array of an object that has a method ``__jax_array__``; other values are unchanged."""
    return x.__jax_array__() if converts_itself(x) else x


def check_out(name: str, out: Any) -> None:
    """Reject an ``out`` argument: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument of primax.numpy.{name} is not supported.")


def one_axis(axis: Any, ndim: int) -> int:
    """A nonnegative axis: negative ones count from the end.

    Raises:
      ValueError: if the array has no such axis.
    """
    position = operator.index(axis)
    if not -ndim <= position < ndim:
        raise ValueError(f"axis {position} is out of bounds for array of dimension {ndim}")
    return position % ndim if ndim else 0


def several_axes(axis: Any) -> tuple[Any, ...]:
    """The axes of an argument: one axis, or an array, a generator or another iterable of axes."""
    if type(axis) is int:
        return (axis,)
    if type(axis) is tuple or (isinstance(axis, Iterable) and getattr(axis, "ndim", 1)):
        return tuple(axis)
    return (axis,)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """A tuple of nonnegative axes; all of them for ``None``.

    Raises:
      ValueError: if an axis does not exist or is repeated.
    """
    if axis is None:
        return tuple(range(ndim))
    requested = several_axes(axis)
    axes = tuple([one_axis(a, ndim) for a in requested])
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {requested}")
    return axes


def dtype_argument(dtype: Any, name: str) -> Any:
    """The canonical form of a dtype argument; ``None`` stays ``None``."""
    return None if dtype is None else dtypes.canonicalize_user_dtype(dtype, name)
