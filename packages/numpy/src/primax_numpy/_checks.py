"""Argument checks shared by many functions."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Set
from typing import Any, Final

from primax_core import Ref
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Tracer, dtypes, is_operand, typeof
from primax_core.extend.traces import is_valid_type


def check_arrays(name: str, *args: Any) -> None:
    """Check that every argument is an array or a number.

    Raises:
      TypeError: with the name of the function, the type and the position.
    """
    for i, x in enumerate(args):
        if isinstance(x, Ref):
            raise TypeError(
                f"{name} takes arrays or numbers, got a Ref of type {typeof(x)} at position {i}. "
                "Pass the value that it holds now: index the reference with [...]."
            )
        if not is_operand(x):
            if hasattr(x, "aval"):
                typeof(x)  # raises for tracers of other libraries, with their name
            if is_valid_type(x):  # its class is registered
                continue
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


def not_integers(message: str, *values: Any) -> TypeError:
    """The error for sizes or positions that are not integers; a traced one is named.

    Args:
      message: what was expected, without a full stop.
      values: the numbers.
    """
    for value in values:
        if isinstance(value, Tracer):
            return ConcretizationTypeError(
                value,
                f"{message}. Take the number from the shape of an array, or mark the argument it "
                "comes from as static (static_argnums) in jit.",
            )
    return TypeError(message + ".")


def untraced(size: Any) -> Any:
    """A size of a shape, refused if it is traced.

    Raises:
      ConcretizationTypeError: with the argument that the size comes from.
    """
    if isinstance(size, Tracer):
        message = f"Shapes must be 1D sequences of concrete values of integer type, got {size}"
        raise not_integers(message, size)
    return size


_NO_SHAPES: Final = (str, bytes, bytearray, Set, Mapping)
"""Classes of which the elements are not sizes in an order."""


def shape_argument(shape: Any) -> tuple[Any, ...]:
    """A tuple of sizes from a shape argument; the sizes themselves are checked by the caller."""
    if isinstance(shape, (tuple, list)):
        return tuple(shape)
    if hasattr(shape, "__index__") and not getattr(shape, "ndim", 0):
        return (shape,)
    if hasattr(shape, "__iter__") and not isinstance(shape, _NO_SHAPES):
        return tuple(shape)
    raise TypeError(
        f"Shapes must be 1D sequences of concrete values of integer type, got {shape!r}."
    )


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
