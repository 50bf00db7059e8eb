"""Constant arrays, and identity-like matrices."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, is_operand
from primax_core.extend.dimensions import Dimension, index
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, PlacementLike, ShapeLike, ShardingLike

from ._checks import check_arrays, converted, dtype_argument, not_integers, shape_argument
from ._creation import asarray, placed
from ._functions import compiled

_FLOAT: Final = dtypes.default_float


def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: PlacementLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """An array of zeros, of the default float dtype unless ``dtype`` is specified.

    Args:
      shape: a size or a sequence of sizes, which must be concrete under ``jit``.
      dtype: the dtype of the result; by default the default float type.
      device: a device or a sharding for the result; by default the default device.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      TypeError: if a size is traced, negative or not an integer.

    >>> zeros((2, 1))
    Array([[0.],
           [0.]], dtype=float32)
    >>> zeros(3, dtype=int)
    Array([0, 0, 0], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(zeros, out_sharding, shape, dtype, device=device)
    dtype_ = dtype_argument(dtype, "zeros") or _FLOAT()
    return placed(lax.full(shape_argument(shape), 0, dtype_), device)


def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: PlacementLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """An array of ones, of the default float dtype unless ``dtype`` is specified.

    Args:
      shape: a size or a sequence of sizes, which must be concrete under ``jit``.
      dtype: the dtype of the result; by default the default float type.
      device: a device or a sharding for the result; by default the default device.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      TypeError: if a size is traced, negative or not an integer.

    >>> ones((2, 1))
    Array([[1.],
           [1.]], dtype=float32)
    >>> ones(3, dtype=bool)
    Array([ True,  True,  True], dtype=bool)
    """
    if out_sharding is not None:
        return with_out_sharding(ones, out_sharding, shape, dtype, device=device)
    dtype_ = dtype_argument(dtype, "ones") or _FLOAT()
    return placed(lax.full(shape_argument(shape), 1, dtype_), device)


def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: PlacementLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """An array of unspecified values, for code that replaces all of them.

    The values are zeros, because arrays are immutable and uninitialised memory would have no use.

    Args:
      shape: a size or a sequence of sizes, which must be concrete under ``jit``.
      dtype: the dtype of the result; by default the default float type.
      device: a device or a sharding for the result; by default the default device.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      TypeError: if a size is traced, negative or not an integer.

    >>> empty((2, 1)).shape
    (2, 1)
    """
    if out_sharding is not None:
        return with_out_sharding(empty, out_sharding, shape, dtype, device=device)
    dtype_ = dtype_argument(dtype, "empty") or _FLOAT()
    return placed(lax.full(shape_argument(shape), 0, dtype_), device)


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: PlacementLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """An array of one value, or of a value that broadcasts.

    Args:
      shape: a size or a sequence of sizes, which must be concrete under ``jit``.
      fill_value: a number, or an array that broadcasts to ``shape``. It may be traced.
      dtype: by default that of ``fill_value``, weakly typed if it is a number.
      device: a device or a sharding for the result; by default the default device.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape``.

    Raises:
      TypeError: if a size is traced, negative or not an integer.
      ValueError: if ``fill_value`` does not broadcast to ``shape``.

    The derivative with respect to ``fill_value`` is the sum of the cotangents.

    >>> full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int32, weak_type=True)
    >>> full((2, 2), np.array([1, 2], np.int32))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(full, out_sharding, shape, fill_value, dtype, device=device)
    check_arrays("full", fill_value)
    requested = dtype_argument(dtype, "full")
    target = shape_argument(shape)
    if np.ndim(fill_value) == 0:
        out = lax.full(target, fill_value, requested)
    else:
        out = _spread(asarray(fill_value, requested), target)
    return placed(out, device)


def _spread(value: Array, shape: tuple[int, ...]) -> Array:
    n = len(shape)
    if value.ndim > n or any(d not in (1, e) for d, e in zip(value.shape, shape[n - value.ndim :])):
        raise ValueError(
            f"full: a fill_value of shape {value.shape} does not broadcast to shape {shape}"
        )
    return lax.broadcast_in_dim(value, shape, tuple(range(n - value.ndim, n)))


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: PlacementLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Zeros with the shape and dtype of another array.

    Args:
      a: an array, a number, or anything with a ``shape`` and a ``dtype``. Its values are not read.
      dtype: overrides the dtype of ``a``.
      shape: overrides the shape of ``a``.
      device: a device or a sharding for the result; by default the default device.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      TypeError: if ``a`` has no shape and dtype.

    >>> zeros_like(np.array([[1, 2]], np.int32))
    Array([[0, 0]], dtype=int32)
    >>> zeros_like(np.array([[1, 2]], np.int32), dtype=bool, shape=2)
    Array([False, False], dtype=bool)
    """
    if out_sharding is not None:
        return with_out_sharding(zeros_like, out_sharding, a, dtype, shape, device=device)
    return _like("zeros_like", a, 0, dtype, shape, device)


def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: PlacementLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Ones with the shape and dtype of another array.

    Args:
      a: an array, a number, or anything with a ``shape`` and a ``dtype``. Its values are not read.
      dtype: overrides the dtype of ``a``.
      shape: overrides the shape of ``a``.
      device: a device or a sharding for the result; by default the default device.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      TypeError: if ``a`` has no shape and dtype.

    >>> ones_like(np.array([[1, 2]], np.int32))
    Array([[1, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(ones_like, out_sharding, a, dtype, shape, device=device)
    return _like("ones_like", a, 1, dtype, shape, device)


def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: PlacementLike | None = None,
) -> Array:
    """An array of unspecified values with the shape and dtype of another.

    The values are zeros, as for :func:`empty`.

    Args:
      prototype: an array, a number, or anything with a ``shape`` and a ``dtype``. Its values are
        not read.
      dtype: overrides the dtype of ``prototype``.
      shape: overrides the shape of ``prototype``.
      device: a device or a sharding for the result; by default the default device.

    Returns:
      An array of the shape and dtype of ``prototype``.

    Raises:
      TypeError: if ``prototype`` has no shape and dtype.

    >>> empty_like(np.array([[1, 2]], np.int32)).shape
    (1, 2)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: PlacementLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """An array filled with one value, with the shape and dtype of another.

    Args:
      a: an array, a number, or anything with a ``shape`` and a ``dtype``. Its values are not read.
      fill_value: a number, or an array that broadcasts to the shape. It may be traced.
      dtype: overrides the dtype of ``a``, to which ``fill_value`` is converted.
      shape: overrides the shape of ``a``.
      device: a device or a sharding for the result; by default the default device.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of the shape and dtype of ``a``.

    Raises:
      TypeError: if ``a`` has no shape and dtype.
      ValueError: if ``fill_value`` does not broadcast to the shape.

    >>> full_like(np.array([[1, 2]], np.int32), 7)
    Array([[7, 7]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            full_like, out_sharding, a, fill_value, dtype, shape, device=device
        )
    return _like("full_like", a, fill_value, dtype, shape, device)


def _like(name: str, a: Any, value: Any, dtype: Any, shape: Any, device: Any) -> Array:
    if not is_operand(a) and not (hasattr(a, "shape") and hasattr(a, "dtype")):
        raise TypeError(
            f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0."
        )
    check_arrays(name, value)
    requested = dtype_argument(dtype, name)
    target = None if shape is None else shape_argument(shape)
    a, value = converted(a), converted(value)
    if np.ndim(value) == 0:
        out = lax.full_like(a, value, requested, target)
    else:
        like = a if hasattr(a, "dtype") else typeof(a)
        out = _spread(
            asarray(value, like.dtype if requested is None else requested),
            tuple(like.shape) if target is None else target,
        )
    return placed(out, device)


def eye(
    N: int | Dimension,
    M: int | Dimension | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    *,
    device: PlacementLike | None = None,
) -> Array:
    """Ones on a diagonal, zeros elsewhere.

    Args:
      N: the number of rows.
      M: the number of columns, by default ``N``.
      k: the offset of the diagonal; positive offsets are above the main one. It may be traced.
      dtype: the dtype of the result; by default the default float type.
      device: a device or a sharding for the result; by default the default device.

    Returns:
      An array of shape ``(N, M)``.

    Raises:
      TypeError: if a size is not a concrete integer.
      ValueError: if a size is negative, or ``k`` is not a scalar integer.

    >>> eye(2, 3, 1, dtype=int)
    Array([[0, 1, 0],
           [0, 0, 1]], dtype=int32)
    """
    dtype_ = dtype_argument(dtype, "eye") or _FLOAT()
    return placed(_eye(_diagonal(k), shape=_matrix_shape("eye", N, M), dtype=dtype_), device)


def identity(n: int | Dimension, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix: ones on the main diagonal, zeros elsewhere.

    Args:
      n: the number of rows and columns, a concrete integer.
      dtype: the dtype of the result; by default the default float type.

    Returns:
      An array of shape ``(n, n)``.

    Raises:
      TypeError: if ``n`` is not a concrete integer.
      ValueError: if ``n`` is negative.

    See :func:`eye` for other diagonals and shapes.

    >>> identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(
    N: int | Dimension, M: int | Dimension | None = None, k: int = 0, dtype: DTypeLike | None = None
) -> Array:
    """Ones on and below a diagonal, zeros above it.

    Args:
      N: the number of rows.
      M: the number of columns, by default ``N``.
      k: the offset of the diagonal; positive offsets are above the main one. It may be traced.
      dtype: the dtype of the result; by default the default float type.

    Returns:
      An array of shape ``(N, M)``.

    Raises:
      TypeError: if a size is not a concrete integer.
      ValueError: if a size is negative, or ``k`` is not a scalar integer.

    See :func:`tril` for the lower triangle of a matrix.

    >>> tri(2, 3, 1, dtype=int)
    Array([[1, 1, 0],
           [1, 1, 1]], dtype=int32)
    """
    dtype_ = dtype_argument(dtype, "tri") or _FLOAT()
    return _tri(_diagonal(k), shape=_matrix_shape("tri", N, M), dtype=dtype_)


def _matrix_shape(name: str, rows: Any, columns: Any) -> tuple[int, int]:
    sizes = (rows, rows if columns is None else columns)
    try:
        shape = (index(sizes[0]), index(sizes[1]))
    except (TypeError, AttributeError):
        message = f"{name}: sizes must be concrete integers, got {sizes}"
        raise not_integers(message, *sizes) from None
    if shape[0] < 0 or shape[1] < 0:
        raise ValueError(f"{name}: negative dimensions are not allowed, got {shape}")
    return shape


def _diagonal(k: Any) -> Any:
    """The offset of a diagonal as an ``int32`` operand."""
    if type(k) is not int:
        dtype = typeof(k).dtype
        if not dtypes.issubdtype(dtype, np.integer) or typeof(k).ndim:
            raise ValueError(f"k must be a scalar integer; got {k!r}")
        return lax.convert_element_type(k, np.dtype(np.int32))
    return np.int32(min(max(k, -(2**30)), 2**30))


@compiled("shape", "dtype")
def _eye(k, *, shape, dtype):
    return lax.convert_element_type(lax.eq(*_rows_and_columns(k, shape)), dtype)


@compiled("shape", "dtype")
def _tri(k, *, shape, dtype):
    return lax.convert_element_type(lax.ge(*_rows_and_columns(k, shape)), dtype)


def _rows_and_columns(k, shape):
    rows = lax.broadcasted_iota(np.int32, shape, 0)
    return lax.add(rows, k), lax.broadcasted_iota(np.int32, shape, 1)
