"""Operands brought to one dtype and shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import any_number, cast, dtypes, inexact, promoted, same_rank, typeof
from primax_core.extend.dimensions import broadcast_shapes


def is_complex(x: Any) -> bool:
    """Whether the elements are complex."""
    return dtypes.issubdtype(typeof(x).dtype, np.complexfloating)


def is_floating(x: Any) -> bool:
    """Whether the elements are real floating-point numbers."""
    return dtypes.issubdtype(typeof(x).dtype, np.floating)


def as_inexact(x: Any) -> Any:
    """The operand; integers and booleans as floats."""
    aval = typeof(x)
    dtype, weak = inexact(aval.dtype, aval.weak_type)
    return x if dtype == aval.dtype else cast(x, aval, dtype, weak)


def as_real(name: str, x: Any) -> Any:
    """The operand; integers and booleans as floats.

    Raises:
      TypeError: for complex numbers.
    """
    refuse_complex(name, x, TypeError)
    return as_inexact(x)


def refuse_complex(name: str, x: Any, error: type[Exception] = ValueError) -> None:
    """Raise ``error`` for complex numbers."""
    if is_complex(x):
        raise error(
            f"{name} does not support complex-valued inputs, got dtype {typeof(x).dtype.name}; "
            "take the real part, imaginary part or absolute value first."
        )


def pair(name: str, x: Any, y: Any, adjust: Any = any_number) -> tuple[Any, Any]:
    """Two operands in one dtype, and of one rank but for scalars."""
    return same_rank(name, *promoted(name, x, y, adjust))


def inexact_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands in one inexact dtype."""
    return pair(name, x, y, inexact)


def real_pair(name: str, x: Any, y: Any, error: type[Exception] = TypeError) -> tuple[Any, Any]:
    """Two operands in one floating-point dtype; complex ones are refused."""
    x, y = pair(name, x, y, inexact)
    refuse_complex(name, x, error)
    return x, y


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    Raises:
      ValueError: with the shapes, if they do not fit together.
    """
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}") from None


def broadcast_together(*xs: Any) -> list[Any]:
    """Operands repeated to their common shape."""
    shape = common_shape(*[typeof(x).shape for x in xs])
    return [repeated(x, shape) for x in xs]


def repeated(x: Any, shape: tuple[int, ...]) -> Any:
    """An operand repeated to a shape that it broadcasts to."""
    found = typeof(x).shape
    if found == shape:
        return x
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - len(found), len(shape))))
