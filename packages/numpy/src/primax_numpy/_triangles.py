"""Triangular and diagonal parts of matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, Tracer, as_operand, dtypes, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike

from ._checks import check_arrays, check_out, converted, dtype_argument, not_integers, one_axis
from ._filled import ones
from ._functions import compiled
from ._positions import nonzero
from ._reductions import sum as sum_of
from ._shapes import ravel


@one_call("k")
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Lower triangle of the last two axes: zeros above a diagonal.

    Args:
      m: an array of shape ``(..., rows, columns)``.
      k: the offset of the diagonal; positive offsets are above the main one. It must be concrete.

    Returns:
      An array of the shape and dtype of ``m``.

    Raises:
      ValueError: if the array has fewer than two axes.

    The derivative with respect to the zeroed elements is 0.

    >>> tril(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 0], [3, 4]]
    >>> tril(np.array([[1, 2], [3, 4]]), k=-1).tolist()
    [[0, 0], [3, 0]]
    """
    check_arrays("tril", m)
    return _triangle(m, k=_known_diagonal("tril", m, k), lower=True)


@one_call("k")
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Upper triangle of the last two axes: zeros below a diagonal.

    Args:
      m: an array of shape ``(..., rows, columns)``.
      k: the offset of the diagonal; positive offsets are above the main one. It must be concrete.

    Returns:
      An array of the shape and dtype of ``m``.

    Raises:
      ValueError: if the array has fewer than two axes.

    The derivative with respect to the zeroed elements is 0.

    >>> triu(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 2], [0, 4]]
    >>> triu(np.array([[1, 2], [3, 4]]), k=1).tolist()
    [[0, 2], [0, 0]]
    """
    check_arrays("triu", m)
    return _triangle(m, k=_known_diagonal("triu", m, k) - 1, lower=False)


def _known_diagonal(name: str, m: Any, k: Any) -> int:
    if typeof(m).ndim < 2:
        raise ValueError(
            f"{name}: the array must have at least 2 axes, got shape {typeof(m).shape}"
        )
    return operator.index(k)


@compiled("k", "lower", name="triangle")
def _triangle(m, *, k, lower):
    shape = typeof(m).shape
    rows = lax.broadcasted_iota(np.int32, shape[-2:], 0)
    columns = lax.broadcasted_iota(np.int32, shape[-2:], 1)
    k = min(max(k, -(2**30)), 2**30)
    below = lax.ge(lax.add(rows, np.int32(k)), columns)
    mask = lax.broadcast_in_dim(below, shape, (len(shape) - 2, len(shape) - 1))
    zeros = lax.full_like(m, 0)
    return lax.select(mask, m, zeros) if lower else lax.select(mask, zeros, m)


# Indices


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the lower triangle of an ``n`` by ``m`` matrix.

    Args:
      n: the number of rows, a concrete integer.
      k: the offset of the diagonal; positive offsets are above the main one.
      m: the number of columns, by default ``n``.

    Returns:
      A pair of vectors of the default integer dtype, in row-major order.

    >>> tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    >>> np.array([[1, 2], [3, 4]])[tril_indices(2)].tolist()
    [1, 3, 4]
    """
    return _pair(np.tril_indices(*_sizes("tril_indices", n, k, m)))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Rows and columns of the upper triangle of an ``n`` by ``m`` matrix.

    Args:
      n: the number of rows, a concrete integer.
      k: the offset of the diagonal; positive offsets are above the main one.
      m: the number of columns, by default ``n``.

    Returns:
      A pair of vectors of the default integer dtype, in row-major order.

    >>> triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    >>> np.array([[1, 2], [3, 4]])[triu_indices(2)].tolist()
    [1, 2, 4]
    """
    return _pair(np.triu_indices(*_sizes("triu_indices", n, k, m)))


def _sizes(name: str, n: Any, k: Any, m: Any) -> tuple[int, int, int]:
    try:
        rows, diagonal = operator.index(n), operator.index(k)
        return rows, diagonal, rows if m is None else operator.index(m)
    except TypeError as e:
        message = f"{name}: sizes must be concrete integers, got n={n!r}, k={k!r}, m={m!r}"
        raise not_integers(message, n, k, m) from e


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Rows and columns of the lower triangle of a matrix; :func:`tril_indices` for its shape.

    Args:
      arr: a matrix. Its values are not read.
      k: the offset of the diagonal; positive offsets are above the main one.

    Returns:
      A pair of vectors of the default integer dtype, in row-major order.

    Raises:
      ValueError: if ``arr`` is not a matrix.

    >>> tril_indices_from(np.zeros((2, 3)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _matrix("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """Rows and columns of the upper triangle of a matrix; :func:`triu_indices` for its shape.

    Args:
      arr: a matrix. Its values are not read.
      k: the offset of the diagonal; positive offsets are above the main one.

    Returns:
      A pair of vectors of the default integer dtype, in row-major order.

    Raises:
      ValueError: if ``arr`` is not a matrix.

    >>> triu_indices_from(np.zeros((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _matrix("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def _matrix(name: str, arr: Any) -> tuple[int, int]:
    arr = converted(arr)
    shape = tuple(arr.shape) if hasattr(arr, "shape") else np.shape(arr)
    if len(shape) != 2:
        raise ValueError(f"{name}: Only 2-D inputs are accepted, got shape {shape}")
    return shape[0], shape[1]


def _pair(indices: tuple[np.ndarray, ...]) -> Any:
    return tuple([as_operand(p.astype(dtypes.default_int())) for p in indices])


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Rows and columns of the nonzero elements of ``mask_func(ones((n, n)), k)``.

    Args:
      n: the number of rows and columns, a concrete integer.
      mask_func: ``mask_func(matrix, k)``, such as :func:`tril`.
      k: the second argument of ``mask_func``.
      size: the number of indices, required if the mask is traced. See :func:`nonzero`.

    Returns:
      A pair of vectors of the default integer dtype, in row-major order.

    >>> mask_indices(2, tril)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = nonzero(mask_func(ones((n, n)), k), size=size)
    return rows, columns


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array with ``ndim`` axes of size ``n``.

    Args:
      n: the size of the axes, a concrete integer.
      ndim: the number of axes.

    Returns:
      A tuple of ``ndim`` vectors of ``n`` integers.

    Raises:
      ValueError: if ``n`` or ``ndim`` is negative.

    >>> diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    >>> np.array([[1, 2], [3, 4]])[diag_indices(2)].tolist()
    [1, 4]
    """
    size, count = operator.index(n), operator.index(ndim)
    if min(size, count) < 0:
        raise ValueError(f"diag_indices: n and ndim must not be negative, got {n} and {ndim}")
    return (lax.iota(dtypes.default_int(), size),) * count


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array with axes of equal size.

    Args:
      arr: an array with at least two axes. Its values are not read.

    Returns:
      A tuple of a vector of integers for each axis.

    Raises:
      ValueError: if the axes have different sizes, or there are fewer than two.

    >>> diag_indices_from(np.zeros((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    check_arrays("diag_indices_from", arr)
    shape = typeof(arr).shape
    if len(shape) < 2:
        raise ValueError(f"diag_indices_from: the array must be at least 2-d, got shape {shape}")
    if len(set(shape)) > 1:
        raise ValueError(
            f"diag_indices_from: All dimensions of input must be of equal length, got shape {shape}"
        )
    return diag_indices(shape[0], len(shape))


# Diagonals


@one_call("offset", "axis1", "axis2")
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal ``(i, i + offset)`` of two axes, along a new last axis.

    Args:
      a: an array with at least two axes.
      offset: the offset of the diagonal; positive offsets are above the main one.
      axis1, axis2: the axes of the rows and of the columns, by default the first two.

    Returns:
      An array without the two axes, with the diagonal along a new last axis.

    Raises:
      ValueError: if the array has fewer than two axes, or ``axis1`` is ``axis2``.

    >>> diagonal(np.array([[1, 2], [3, 4]])).tolist()
    [1, 4]
    >>> diagonal(np.array([[1, 2], [3, 4]]), offset=1).tolist()
    [2]
    """
    check_arrays("diagonal", a)
    return _diagonal(a, offset=operator.index(offset), axes=_two_axes("diagonal", a, axis1, axis2))


def _two_axes(name: str, a: Any, axis1: Any, axis2: Any) -> tuple[int, int]:
    n = typeof(a).ndim
    if n < 2:
        raise ValueError(f"{name} requires an array of at least two dimensions, got shape "
                         f"{typeof(a).shape}.")  # fmt: skip
    axes = one_axis(axis1, n), one_axis(axis2, n)
    if axes[0] == axes[1]:
        raise ValueError(f"{name}: axis1 and axis2 cannot be the same, got {axis1} and {axis2}")
    return axes


@compiled("offset", "axes")
def _diagonal(a, *, offset, axes):
    return diagonal_of(a, offset, axes)


def diagonal_of(a: Any, offset: int, axes: tuple[int, int]) -> Any:
    """A diagonal of two axes, as a strided slice of the flattened matrix."""
    n = typeof(a).ndim
    axes = axes[0] % n, axes[1] % n
    batch_axes = [i for i in range(n) if i not in axes]
    x = lax.transpose(a, (*batch_axes, *axes))
    rows, columns = x.shape[-2:]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    outer = x.shape[:-2]
    if not count:
        return lax.slice_in_dim(lax.reshape(x, (*outer, rows * columns)), 0, 0, axis=n - 2)
    first = offset if offset >= 0 else -offset * columns
    line = lax.reshape(x, (*outer, rows * columns))
    last = first + (count - 1) * (columns + 1) + 1
    return lax.slice_in_dim(line, first, last, columns + 1, axis=n - 2)


@one_call("offset", "axis1", "axis2")
def trace(
    a: ArrayLike,
    offset: int | Array = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sum of a diagonal of two axes.

    Args:
      a: an array with at least two axes.
      offset: the offset of the diagonal; positive offsets are above the main one. It may be traced.
      axis1, axis2: the axes of the rows and of the columns, by default the first two.
      dtype: the dtype of the accumulator; the default integer for integers.
      out: unsupported.

    Returns:
      An array without the two axes.

    Raises:
      ValueError: if the array has fewer than two axes, or ``axis1`` is ``axis2``.

    >>> int(trace(np.array([[1, 2], [3, 4]])))
    5
    """
    check_arrays("trace", a)
    check_out("trace", out)
    axes = _two_axes("trace", a, axis1, axis2)
    sum_dtype = dtype_argument(dtype, "trace")
    if isinstance(offset, Tracer) and not offset.ndim and offset.dtype.kind in "iu":
        return _traced_offset(a, offset, axes=axes, dtype=sum_dtype)
    return _trace(a, offset=operator.index(offset), axes=axes, dtype=sum_dtype)


@compiled("offset", "axes", "dtype")
def _trace(a, *, offset, axes, dtype):
    return sum_of(diagonal_of(a, offset, axes), -1, dtype)


@compiled("axes", "dtype", name="trace")
def _traced_offset(a, offset, *, axes, dtype):
    shape = typeof(a).shape
    row, column = (lax.broadcasted_iota(np.int32, shape, axis) for axis in axes)
    offsets = lax.full_like(row, lax.convert_element_type(offset, np.int32))
    on_diagonal = lax.eq(lax.sub(column, row), offsets)
    return sum_of(lax.select(on_diagonal, a, lax.full_like(a, 0)), axes, dtype)


@one_call("k")
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with a given diagonal, or a diagonal of a matrix.

    Args:
      v: a vector or a matrix.
      k: the offset of the diagonal; positive offsets are above the main one. It must be concrete.

    Returns:
      A square matrix of ``v.size + abs(k)`` rows for a vector, a vector for a matrix.

    Raises:
      ValueError: if ``v`` has another rank.

    >>> diag(np.array([1, 2])).tolist()
    [[1, 0], [0, 2]]
    >>> diag(np.array([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    check_arrays("diag", v)
    n = typeof(v).ndim
    if n == 2:
        return _diagonal(v, offset=operator.index(k), axes=(0, 1))
    if n != 1:
        raise ValueError(f"diag input must be 1d or 2d, got shape {typeof(v).shape}")
    return _diag(v, k=operator.index(k))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with all elements of an array on a diagonal.

    Args:
      v: an array of any rank, which is flattened.
      k: the offset of the diagonal; positive offsets are above the main one. It must be concrete.

    Returns:
      A square matrix of ``v.size + abs(k)`` rows.

    See :func:`diag` for the diagonal of a matrix.

    >>> diagflat(np.array([[1], [2]])).tolist()
    [[1, 0], [0, 2]]
    >>> diagflat(np.array([1]), k=1).tolist()
    [[0, 1], [0, 0]]
    """
    check_arrays("diagflat", v)
    return _diag(ravel(v), k=operator.index(k))


@compiled("k")
def _diag(v, *, k):
    n = typeof(v).shape[0]
    size = n + abs(k)
    zero = lax.full_like(v, 0, shape=())
    if not n:
        return lax.broadcast_in_dim(zero, (size, size), ())
    # In row-major order, adjacent elements of a diagonal have a distance of size + 1.
    low = k if k >= 0 else -k * size
    high = size * size - low - (n - 1) * (size + 1) - 1
    return lax.reshape(lax.pad(v, zero, [(low, high, size)]), (size, size))


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """A copy of an array with the main diagonal set.

    Args:
      a: an array of rank 2 or more; more than two axes must have equal sizes.
      val: a number, or an array whose elements are repeated cyclically.
      wrap: restart the diagonal below the square at the top of a tall matrix, after an empty row.
      inplace: must be ``False``: arrays are immutable.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      NotImplementedError: if ``inplace`` is true, which is the default.
      ValueError: if ``a`` has fewer than two axes, or more of different sizes.

    >>> fill_diagonal(np.zeros((2, 2), np.int32), np.array([5, 6]), inplace=False)
    Array([[5, 0],
           [0, 6]], dtype=int32)
    """
    if inplace:
        raise NotImplementedError(
            "fill_diagonal: arrays are immutable: pass inplace=False and use the array it returns"
        )
    check_arrays("fill_diagonal", a, val)
    shape = typeof(a).shape
    if len(shape) < 2:
        raise ValueError(f"fill_diagonal: array must be at least 2-d, got shape {shape}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError(
            f"fill_diagonal: All dimensions of input must be of equal length, got shape {shape}"
        )
    return _fill_diagonal(a, val, wrap=bool(wrap))


@compiled("wrap")
def _fill_diagonal(a, val, *, wrap):
    shape = typeof(a).shape
    size = typeof(a).size
    step = 1 + sum(int(np.prod(shape[i + 1 :])) for i in range(len(shape) - 1))
    end = size if wrap or len(shape) > 2 else min(shape[1] * shape[1], size)
    count = len(range(0, end, step))
    if not count:
        return lax.convert_element_type(a, typeof(a).dtype)
    values = lax.convert_element_type(ravel(val), typeof(a).dtype)
    times = -(-count // max(values.shape[0], 1))
    values = lax.slice_in_dim(lax.tile(values, (times,)), 0, count)
    line = lax.reshape(a, (size,))
    return lax.reshape(line.at[0:end:step].set(values), shape)


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Vandermonde matrix: its columns are powers of a vector.

    Args:
      x: a vector.
      N: the number of columns, by default that of rows.
      increasing: order the powers from the 0th.

    Returns:
      An array of shape ``(x.size, N)``.

    Raises:
      ValueError: if ``x`` is not a vector, or ``N`` is negative.

    >>> vander(np.array([2, 3], np.int32), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    check_arrays("vander", x)
    if typeof(x).ndim != 1:
        raise ValueError(f"vander: x must be a one-dimensional array, got shape {typeof(x).shape}")
    count = typeof(x).shape[0] if N is None else operator.index(N)
    if count < 0:
        raise ValueError(f"vander: N must be nonnegative, got {N}")
    return _vander(x, N=count, increasing=bool(increasing))


@compiled("N", "increasing")
def _vander(x, *, N, increasing):
    if typeof(x).dtype == np.bool_:
        x = lax.convert_element_type(x, dtypes.default_int())
    rows = typeof(x).shape[0]
    ones_first = lax.full_like(x, 1, shape=(rows, min(N, 1)))
    rest = lax.broadcast_in_dim(x, (rows, max(N - 1, 0)), (0,))
    powers = lax.concatenate([ones_first, rest], 1)
    return lax.cumprod(powers, 1) if increasing else lax.rev(lax.cumprod(powers, 1), (1,))
