"""Promotion of operands to a common dtype and shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import any_number, cast, dtypes, inexact, promoted, same_rank
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.extend.elementwise import argument_type as typeof


def is_complex(x: Any) -> bool:
    """True if the dtype is complex."""
    return dtypes.issubdtype(typeof(x).dtype, np.complexfloating)


def is_floating(x: Any) -> bool:
    """True if the dtype is real floating-point."""
    return dtypes.issubdtype(typeof(x).dtype, np.floating)


def as_inexact(x: Any) -> Any:
    """The operand, with integers and booleans converted to floats."""
    aval = typeof(x)
    dtype, weak = inexact(aval.dtype, aval.weak_type)
    return x if dtype == aval.dtype else cast(x, aval, dtype, weak)


def as_real(name: str, x: Any) -> Any:
    """The operand, with integers and booleans converted to floats.

    Raises:
      TypeError: if the operand is complex.
    """
    check_not_complex(name, x, TypeError)
    return as_inexact(x)


def check_not_complex(name: str, x: Any, error: type[Exception] = ValueError) -> None:
    """Raise ``error`` for complex numbers."""
    if is_complex(x):
        raise error(
            f"{name} does not support complex-valued inputs, got dtype {typeof(x).dtype.name}; "
            "take the real part, imaginary part or absolute value first."
        )


def pair(name: str, x: Any, y: Any, adjust: Any = any_number) -> tuple[Any, Any]:
    """Two operands promoted to one dtype, and to one rank except for scalars."""
    return same_rank(name, *promoted(name, x, y, adjust))


def inexact_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands promoted to one inexact dtype."""
    return pair(name, x, y, inexact)


def real_pair(name: str, x: Any, y: Any, error: type[Exception] = TypeError) -> tuple[Any, Any]:
    """Two operands promoted to one floating-point dtype; complex operands raise an error."""
    x, y = pair(name, x, y, inexact)
    check_not_complex(name, x, error)
    return x, y


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape that shapes broadcast to.

    Raises:
      ValueError: if the shapes are incompatible.
    """
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}") from None


def broadcast_together(*xs: Any) -> list[Any]:
    """Operands broadcast to their common shape."""
    shape = common_shape(*[typeof(x).shape for x in xs])
    return [repeated(x, shape) for x in xs]


def repeated(x: Any, shape: tuple[int, ...]) -> Any:
    """An operand broadcast to a shape."""
    own_shape = typeof(x).shape
    if own_shape == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(own_shape), len(shape))))
