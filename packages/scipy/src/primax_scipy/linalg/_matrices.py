"""Argument checks, and small operations on batches of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import dtypes, inexact, library_function
from primax_core.extend.elementwise import argument_type as typeof
from primax_numpy.declaring import check_arrays, is_complex


def matrix_function(check: Callable[..., None]) -> Callable[[Any], Any]:
    """Decorator that compiles a function of arrays; ``check`` validates the arguments."""
    return lambda fun: library_function(fun, check=partial(check, fun.__name__))


def check_matrices(name: str, *arrays: Any) -> None:
    """Check that operands have two axes or more.

    Raises:
      ValueError: with the name of the function.
      TypeError: if an operand is not an array.
    """
    check_arrays(f"linalg.{name}", *arrays)
    for a in arrays:
        if typeof(a).ndim < 2:
            raise ValueError(
                f"linalg.{name} needs arrays of at least two axes, got shape {typeof(a).shape}"
            )


def check_square(name: str, *arrays: Any) -> None:
    """Check that matrices are square; errors as for `check_matrices`."""
    check_matrices(name, *arrays)
    for a in arrays:
        shape = typeof(a).shape
        if shape[-1] != shape[-2]:
            raise ValueError(f"linalg.{name} needs square matrices, got shape {shape}")


def check_one_matrix(name: str, *arrays: Any) -> None:
    """Check that operands are single square matrices."""
    check_square(name, *arrays)
    for a in arrays:
        if typeof(a).ndim != 2:
            raise ValueError(
                f"linalg.{name} takes one matrix, got shape {typeof(a).shape}; use vmap for more"
            )


def check_system(name: str, a: Any, b: Any) -> None:
    """Check that the sizes of a linear system match.

    Raises:
      ValueError: with the name of the function and the shapes.
    """
    check_square(name, a)
    check_arrays(f"linalg.{name}", b)
    x, y = typeof(a).shape, typeof(b).shape
    vectors = holds_vectors(a, b)
    if not y or y[-1 if vectors else -2] != x[-1]:
        raise ValueError(
            f"linalg.{name}: a of shape {x} does not match b of shape {y}; the equations are "
            "the last axis of b if it has one axis or one less than a, otherwise the second to last"
        )
    lax.broadcast_shapes(x[:-2], y[: -1 if vectors else -2])


def holds_vectors(a: Any, b: Any) -> bool:
    """True if the right-hand side consists of vectors, not matrices."""
    n = typeof(b).ndim
    return n == 1 or n == typeof(a).ndim - 1 > 1


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return conjugate(transposed(x))


def transposed(x: Any) -> Any:
    """The transpose."""
    n = typeof(x).ndim
    return lax.transpose(x, (*range(n - 2), n - 1, n - 2))


def conjugate(x: Any) -> Any:
    """The complex conjugate; real numbers unchanged."""
    return lax.conj(x) if is_complex(x) else x


def in_common_dtype(*xs: Any) -> list[Any]:
    """Operands of any ranks converted to their common inexact dtype, strongly typed."""
    avals = [typeof(x) for x in xs]
    dtype, _ = inexact(*dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in avals])))
    return [lax.convert_element_type(x, dtype) for x in xs]


def with_batch(x: Any, batch: tuple[int, ...], core: int) -> Any:
    """The operand broadcast to leading axes ``batch``."""
    shape = (*batch, *typeof(x).shape[typeof(x).ndim - core :])
    if shape == typeof(x).shape:
        return x
    n = len(shape)
    return lax.broadcast_in_dim(x, shape, tuple(range(n - typeof(x).ndim, n)))


def identity_like(x: Any, rows: int | None = None) -> Any:
    """Identity matrices in the shape of ``x``, or with ``rows`` rows and columns."""
    shape = typeof(x).shape
    if rows is not None:
        shape = (*shape[:-2], rows, rows)
    n = len(shape)
    i, j = (lax.broadcasted_iota(np.int32, shape, d) for d in (n - 2, n - 1))
    return lax.convert_element_type(i == j, typeof(x).dtype)


def real_dtype(dtype: Any) -> np.dtype:
    """The dtype of the parts of a complex dtype; others unchanged."""
    return np.dtype(dtypes.finfo(dtype).dtype)


def rows_in_order(x: Any, order: Any) -> Any:
    """Permuted rows of each matrix."""
    n = typeof(x).ndim
    batch = tuple(range(n - 2))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(n - 1,),
        collapsed_slice_dims=(n - 2,),
        start_index_map=(n - 2,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    return lax.gather(
        x, lax.expand_dims(order, (n - 1,)), numbers, (1,) * (n - 1) + typeof(x).shape[-1:],
        unique_indices=True, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )  # fmt: skip
