"""Shape checks and matrix operations in ``lax``, shared by the modules of linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.extend.elementwise import argument_type as typeof

from .. import _promotion
from .._checks import check_arrays
from .._promotion import is_complex, repeated
from .._reduction_helpers import strong
from .._triangles import diagonal_of


def checked_matrices(name: str, *arrays: Any) -> None:
    """Check that operands are arrays of at least two axes.

    Raises:
      TypeError: if an operand is not an array.
      ValueError: if an operand has fewer axes.
    """
    check_arrays(f"linalg.{name}", *arrays)
    for a in arrays:
        if typeof(a).ndim < 2:
            raise ValueError(
                f"Argument to linalg.{name} must be matrices, of shape [..., m, n], got "
                f"{typeof(a).shape}"
            )


def check_square(name: str, a: Any) -> None:
    """Check that an operand is an array of square matrices.

    Raises:
      TypeError: if an operand is not an array.
      ValueError: if the shape is not ``[..., n, n]``.
    """
    check_arrays(f"linalg.{name}", a)
    shape = typeof(a).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"Argument to linalg.{name} must have shape [..., n, n], got {shape}.")


def as_inexact(a: Any) -> Any:
    """The operand as strongly typed inexact values; integers and booleans become floats."""
    return strong(_promotion.as_inexact(a))


def transposed(x: Any) -> Any:
    """The array with the last two axes swapped."""
    n = typeof(x).ndim
    return lax.transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return lax.conj(transposed(x)) if is_complex(x) else transposed(x)


def product(a: Any, b: Any) -> Any:
    """Batched matrix product of arrays with the same leading axes."""
    n = typeof(a).ndim
    batch = tuple(range(n - 2))
    return lax.dot_general(a, b, (((n - 1,), (n - 2,)), (batch, batch)))


def scaled_columns(a: Any, s: Any) -> Any:
    """``a @ diag(s)``."""
    n = typeof(a).ndim
    s = lax.convert_element_type(s, typeof(a).dtype)
    return lax.mul(a, lax.broadcast_in_dim(s, typeof(a).shape, (*range(n - 2), n - 1)))


def scaled_rows(a: Any, s: Any) -> Any:
    """``diag(s) @ a``."""
    n = typeof(a).ndim
    s = lax.convert_element_type(s, typeof(a).dtype)
    return lax.mul(a, lax.broadcast_in_dim(s, typeof(a).shape, tuple(range(n - 1))))


def trace_of(x: Any) -> Any:
    """Sum of the diagonal of square matrices."""
    return lax.reduce_sum(diagonal_of(x, 0, (-2, -1)), (typeof(x).ndim - 2,))


def eye_like(x: Any) -> Any:
    """Identity matrices with the shape and dtype of square matrices."""
    shape = typeof(x).shape
    rows = lax.broadcasted_iota(np.int32, shape, len(shape) - 2)
    columns = lax.broadcasted_iota(np.int32, shape, len(shape) - 1)
    return lax.convert_element_type(lax.eq(rows, columns), typeof(x).dtype)


def broadcast_batch(x: Any, batch: tuple[int, ...], core: int) -> Any:
    """The array with its leading axes broadcast to a shape; the last ``core`` axes are
    unchanged."""
    shape = typeof(x).shape
    return repeated(x, (*batch, *shape[len(shape) - core :]))


def joint_batch(name: str, a: Any, b: Any, core_a: int, core_b: int) -> tuple[int, ...]:
    """The broadcast shape of the leading axes.

    Raises:
      ValueError: if they do not broadcast.
    """
    x, y = typeof(a).shape, typeof(b).shape
    try:
        return broadcast_shapes(x[: len(x) - core_a], y[: len(y) - core_b])
    except ValueError:
        raise ValueError(
            f"linalg.{name}: the leading axes of shapes {x} and {y} do not broadcast"
        ) from None
