"""Matrix products and related functions of the array API namespace ``linalg``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from primax_core import lax
from primax_core.extend import Array, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShardingLike

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
    """Matrix product over the last two axes; the others broadcast. Vectors are rows or columns.

    Args:
      x1: shape ``(..., n, k)`` or ``(k,)``.
      x2: shape ``(..., k, m)`` or ``(k,)``.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.

    Returns:
      An array of shape ``(..., n, m)``, without ``n`` or ``m`` for vectors.

    Raises:
      ValueError: if an operand is a scalar, or the batch axes do not broadcast.
      TypeError: if the contracted sizes differ.

    >>> import numpy as np
    >>> matmul(np.float32([[1, 2], [3, 4]]), np.float32([1, 10])).tolist()
    [21.0, 43.0]
    """
    return _products.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[Any] = 2,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Sum of products over several axes of both operands.

    Args:
      x1, x2: arrays or numbers.
      axes: a number (the last axes of ``x1``, the first of ``x2``), or a pair of axes or of lists.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of the other axes of ``x1``, then those of ``x2``.

    Raises:
      TypeError: if the axes are malformed, repeated, or of different sizes.

    >>> import numpy as np
    >>> tensordot(np.ones((2, 3, 4)), np.ones((3, 4, 5))).shape
    (2, 5)
    """
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
    """Sum of products along one axis, with the first operand conjugated; the other axes broadcast.

    Args:
      x1, x2: arrays with at least one axis.
      axis: the axis of the sum, by default the last.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.
      preferred_element_type: the dtype of the accumulator and of the result.

    Returns:
      An array of the common shape without the axis, of the promoted dtype.

    Raises:
      ValueError: if an operand is a scalar, or the sizes along the axis differ.

    >>> import numpy as np
    >>> vecdot(np.array([[1, 2], [3, 4]]), np.array([1, 10])).tolist()
    [21, 43]
    """
    return _products.vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of all pairs of elements of two vectors.

    Args:
      x1, x2: vectors. ``primax.numpy.outer`` flattens arrays of other ranks.

    Returns:
      An array of shape ``(x1.size, x2.size)``, of the promoted dtype.

    Raises:
      ValueError: if an operand is not a vector.

    Complex numbers are not conjugated.

    >>> import numpy as np
    >>> outer(np.array([1, 2]), np.array([1, 10])).tolist()
    [[1, 10], [2, 20]]
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

    Args:
      x1, x2: arrays with an axis of size 3.
      axis: the axis of the components, by default the last.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      ValueError: if the axis does not have three elements in both.

    The result is orthogonal to both vectors.

    >>> import numpy as np
    >>> cross(np.array([1, 0, 0]), np.array([0, 1, 0])).tolist()
    [0, 0, 1]
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

    Args:
      x: an array of shape ``(..., m, n)``.

    Returns:
      An array of shape ``(..., n, m)``. Complex numbers are not conjugated.

    Raises:
      ValueError: if there are fewer than two axes.

    >>> import numpy as np
    >>> matrix_transpose(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    >>> matrix_transpose(np.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    checked_matrices("matrix_transpose", x)
    return _shapes.matrix_transpose(x)


@one_call("offset")
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Diagonals of the matrices in the last two axes.

    Args:
      x: an array of shape ``(..., m, n)``.
      offset: the offset of the diagonal; positive offsets are above the main diagonal.

    Returns:
      An array of shape ``(..., k)``, where ``k`` is the length of the diagonal.

    Raises:
      ValueError: if there are fewer than two axes.

    ``primax.numpy.diagonal`` uses the first two axes by default.

    >>> import numpy as np
    >>> diagonal(np.array([[1, 2], [3, 4]])).tolist()
    [1, 4]
    >>> diagonal(np.array([[1, 2], [3, 4]]), offset=1).tolist()
    [2]
    """
    checked_matrices("diagonal", x)
    return _triangles.diagonal(x, offset, -2, -1)


@one_call("offset")
def trace(x: ArrayLike, /, *, offset: int | Array = 0, dtype: DTypeLike | None = None) -> Array:
    """Sums of the diagonals of the matrices in the last two axes.

    Args:
      x: an array of shape ``(..., m, n)``.
      offset: the offset of the diagonal; positive offsets are above the main diagonal.
      dtype: the dtype of the accumulator; the default integer for narrow integers.

    Returns:
      An array of shape ``(...)``.

    Raises:
      ValueError: if there are fewer than two axes.

    >>> import numpy as np
    >>> int(trace(np.array([[1, 2], [3, 4]])))
    5
    >>> trace(np.ones((5, 2, 3))).tolist()
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    checked_matrices("trace", x)
    return _triangles.trace(x, offset, -2, -1, dtype)


def multi_dot(arrays: Sequence[Any], *, precision: lax.PrecisionLike = None) -> Array:
    """Product of two or more matrices, in the order with the fewest multiplications.

    Args:
      arrays: matrices of matching sizes; the first and last may be vectors.
      precision: a ``primax.lax.Precision``, a pair of them, or a name such as ``"highest"``.

    Returns:
      A matrix; a vector or a scalar if the first or the last operand is a vector.

    Raises:
      ValueError: if there are fewer than two arrays, or shapes do not match.

    The order is chosen from the shapes when the function is traced.

    >>> import numpy as np
    >>> multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones(4)]).tolist()
    [12.0, 12.0]
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
