"""What the pages of linear algebra share: checks of shapes, and matrix notation in ``lax``."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import typeof
from primax_core.extend.dimensions import broadcast_shapes

from .. import _promotion
from .._checks import check_arrays
from .._promotion import is_complex, repeated
from .._reducing import strong
from .._triangles import diagonal_of


def checked_matrices(name: str, *arrays: Any) -> None:
    """Refuse what is not an array of at least two axes.

    Raises:
      TypeError: for what is no array.
      ValueError: for arrays with fewer axes.
    """
    check_arrays(f"linalg.{name}", *arrays)
    for a in arrays:
        if typeof(a).ndim < 2:
            raise ValueError(
                f"Argument to linalg.{name} must be matrices, of shape [..., m, n], got "
                f"{typeof(a).shape}"
            )


def check_square(name: str, a: Any) -> None:
    """Refuse what is not an array of square matrices.

    Raises:
      TypeError: for what is no array.
      ValueError: for other shapes.
    """
    check_arrays(f"linalg.{name}", a)
    shape = typeof(a).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"Argument to linalg.{name} must have shape [..., n, n], got {shape}.")


def as_inexact(a: Any) -> Any:
    """Integers and booleans as floats; never weakly typed."""
    return strong(_promotion.as_inexact(a))


def transposed(x: Any) -> Any:
    """The last two axes exchanged."""
    n = typeof(x).ndim
    return lax.transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    """Transposed and conjugated."""
    return lax.conj(transposed(x)) if is_complex(x) else transposed(x)


def product(a: Any, b: Any) -> Any:
    """Matrix products of arrays with the same leading axes."""
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
    """Identity matrices of the shape and dtype of square ones."""
    shape = typeof(x).shape
    rows = lax.broadcasted_iota(np.int32, shape, len(shape) - 2)
    columns = lax.broadcasted_iota(np.int32, shape, len(shape) - 1)
    return lax.convert_element_type(lax.eq(rows, columns), typeof(x).dtype)


def broadcast_batch(x: Any, batch: tuple[int, ...], core: int) -> Any:
    """The leading axes repeated to a shape; the last ``core`` axes are kept."""
    shape = typeof(x).shape
    return repeated(x, (*batch, *shape[len(shape) - core :]))


def joint_batch(name: str, a: Any, b: Any, core_a: int, core_b: int) -> tuple[int, ...]:
    """The shape that the leading axes broadcast to.

    Raises:
      ValueError: if they do not.
    """
    x, y = typeof(a).shape, typeof(b).shape
    try:
        return broadcast_shapes(x[: len(x) - core_a], y[: len(y) - core_b])
    except ValueError:
        raise ValueError(
            f"linalg.{name}: the leading axes of shapes {x} and {y} do not broadcast"
        ) from None
