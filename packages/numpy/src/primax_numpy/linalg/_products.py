"""Matrix products and related functions of the array API namespace ``linalg``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from primax_core import lax
from primax_core.extend import Array, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike

from .. import _products, _shapes, _triangles
from .._checks import check_arrays, one_axis
from .._einsum import einsum
from ._matrices import checked_matrices


def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Matrix product; see ``primax.numpy.matmul``."""
    return _products.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


def tensordot(
    x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2, precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None, out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Sum of products over several axes of both operands; see ``primax.numpy.tensordot``."""
    if out_sharding is not None:
        return with_out_sharding(
            tensordot,
            out_sharding,
            x1,
            x2,
            axes=axes,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    return _products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type
    )


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Sum of products along one axis, with the first operand conjugated; see
    ``primax.numpy.vecdot``.
    """
    return _products.vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of all pairs of elements of two vectors.

    Raises:
      ValueError: if an operand is not a vector.
    """
    check_arrays("linalg.outer", x1, x2)
    shapes = typeof(x1).shape, typeof(x2).shape
    if any(len(s) != 1 for s in shapes):
        raise ValueError(
            f"linalg.outer: Input arrays must be one-dimensional, got shapes {shapes[0]} and "
            f"{shapes[1]}"
        )
    return _products.outer(x1, x2)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Cross products of vectors with three components along an axis; the other axes broadcast.

    Raises:
      ValueError: if the axis does not have three elements in both.
    """
    check_arrays("linalg.cross", x1, x2)
    x, y = typeof(x1), typeof(x2)
    sizes = [t.shape[one_axis(axis, t.ndim)] if t.ndim else 0 for t in (x, y)]
    if sizes != [3, 3]:
        raise ValueError(
            "linalg.cross: Both input arrays must be (arrays of) 3-dimensional vectors, got shapes "
            f"{x.shape} and {y.shape} with {axis=}"
        )
    return _products.cross(x1, x2, axis=axis)


@one_call()
def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with the last two axes swapped.

    Raises:
      ValueError: if there are fewer than two axes.
    """
    checked_matrices("matrix_transpose", x)
    return _shapes.matrix_transpose(x)


@one_call("offset")
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Diagonals of the matrices in the last two axes: ``[..., k]``.

    Args:
      offset: the offset of the diagonal; positive offsets are above the main diagonal.

    Raises:
      ValueError: if there are fewer than two axes.
    """
    checked_matrices("diagonal", x)
    return _triangles.diagonal(x, offset, -2, -1)


@one_call("offset")
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sums of the diagonals of the matrices in the last two axes; narrow integers are widened.

    Raises:
      ValueError: if there are fewer than two axes.
    """
    checked_matrices("trace", x)
    return _triangles.trace(x, offset, -2, -1, dtype)


def multi_dot(arrays: Sequence[Any], *, precision: lax.PrecisionLike = None) -> Array:
    """Product of two or more matrices, in the order with the fewest multiplications.

    Args:
      arrays: matrices of matching sizes; the first and last may be vectors.

    Raises:
      ValueError: if there are fewer than two arrays, or shapes do not match.
    """
    check_arrays("linalg.multi_dot", *arrays)
    shapes = [typeof(a).shape for a in arrays]
    if len(shapes) < 2:
        raise ValueError(f"linalg.multi_dot needs at least two arrays, got {len(shapes)}")
    ends = (0, len(shapes) - 1)
    if any(len(s) != 2 and not (len(s) == 1 and i in ends) for i, s in enumerate(shapes)):
        raise ValueError(
            "linalg.multi_dot: arrays must be two-dimensional, the first and last may be "
            f"one-dimensional; got shapes {shapes}"
        )
    if any(s[-1] != t[0] for s, t in pairwise(shapes)):
        raise ValueError(
            "linalg.multi_dot: last dimension of each array must match first dimension of "
            f"following array. Got array shapes {shapes}"
        )
    labels, operands = 0, []
    for i, (a, s) in enumerate(zip(arrays, shapes)):
        first = i == 0 and len(s) == 1
        last = i > 0 and len(s) == 1
        operands += [a, [labels + 1] if first else [labels] if last else [labels, labels + 1]]
        labels += 1
    result = [0] * (len(shapes[0]) > 1) + [labels] * (len(shapes[-1]) > 1)
    return einsum(*operands, result, optimize="optimal", precision=precision)
