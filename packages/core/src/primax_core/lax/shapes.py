"""Shared checks and arithmetic of shapes and axes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.symbolic_dims import Dimension, index, is_static
from .._trace.core import Tracer


def canonical_shape(shape: Any, context: str = "") -> tuple[int, ...]:
    """A shape as a tuple of Python ints.

    Raises:
      TypeError: if the shape is not a sequence of concrete integers, or an element is negative.
    """
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__len__"):
        raise _bad_shape(shape, context)
    try:
        sizes = tuple([operator.index(d) for d in shape])
    except TypeError as e:
        if is_static(shape):
            raise _bad_shape(shape, context) from e
        sizes = symbolic_sizes(shape, context)
        if not any(d < 0 for d in sizes):
            return sizes
    if sizes and min(sizes) < 0:
        where = f"{context} " if context else ""
        raise TypeError(f"{where}shape must have every element be nonnegative, got {sizes}.")
    return sizes


def symbolic_sizes(sizes: Iterable[Any], context: str = "") -> tuple[Any, ...]:
    """A tuple of sizes that may include symbolic dimensions."""
    try:
        return tuple([index(d) for d in sizes])
    except (TypeError, AttributeError) as e:
        raise _bad_shape(sizes, context) from e


def _bad_shape(shape: Any, context: str) -> TypeError:
    text = f"Shapes must be 1D sequences of concrete values of integer type, got {shape}"
    if context:
        text += f" in {context}"
    for d in shape if isinstance(shape, Iterable) else [shape]:
        if isinstance(d, Tracer):
            return TypeError(
                f"{text}. A traced value cannot be part of a shape: take it from the shape of an "
                "array, or mark the argument it comes from as static (static_argnums) in jit.\n"
                + d._origin()
            )
    return TypeError(text + ".")


def int_tuple(name: str, what: str, values: Any) -> tuple[int, ...]:
    """A sequence of integers as a tuple of Python ints.

    Raises:
      TypeError: if ``values`` is not a sequence of integers.
    """
    try:
        return tuple([operator.index(v) for v in values])
    except TypeError as e:
        if isinstance(values, Sequence) and not is_static(values):
            return symbolic_sizes(values, name)
        raise TypeError(
            f"{name} {what} must be a sequence of integers known while tracing, got {values!r}."
        ) from e


def canonical_axis(axis: Any, ndim: int, what: str = "axis") -> int:
    """A nonnegative axis.

    Raises:
      ValueError: if it is out of range.
    """
    index = operator.index(axis)
    if not -ndim <= index < ndim:
        raise ValueError(f"{what} {axis} is out of bounds for array of dimension {ndim}")
    return index + ndim if index < 0 else index


def tail_of(aval: ShapedArray) -> tuple[int, ...]:
    """The trailing physical axes of an extended dtype; empty for plain dtypes."""
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return aval.dtype.physical_aval(aval).shape[aval.ndim :]
    return ()


def without(values: Sequence[Any], drop: Iterable[int]) -> tuple[Any, ...]:
    """The elements whose index is not in ``drop``."""
    dropped = set(drop)
    return tuple([v for i, v in enumerate(values) if i not in dropped])


def inserted(values: Sequence[Any], at: int, value: int | Dimension) -> tuple[Any, ...]:
    """A copy with an additional element."""
    return (*values[:at], value, *values[at:])


def past(dim: int, axes: Iterable[int]) -> tuple[int, ...]:
    """Axes of one example as axes of a batch with mapped axis ``dim``."""
    return tuple([a + (a >= dim) for a in axes])
