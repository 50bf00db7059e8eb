"""Random vectors and matrices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike

from .._functions import compiled
from .._promotion import repeated
from . import _draws as draws
from ._keys import check_key, typed

_METHODS = ("cholesky", "eigh", "svd")


@compiled("shape", "dtype", "method")
def _multivariate_normal(
    key: Any, mean: Any, cov: Any, *, shape: tuple[int, ...], dtype: Any, method: str
) -> Any:
    joint = dtypes.result_type(mean.dtype, cov.dtype)
    if not dtypes.issubdtype(joint, np.inexact):
        joint = dtypes.result_type(joint, np.float32)
    mean, cov = (lax.convert_element_type(v, joint) for v in (mean, cov))
    factor = _factor(cov, method)
    d = mean.shape[-1]
    n = draws.normal(typed(key), (*shape, d), dtype)
    working = dtypes.result_type(factor.dtype, n.dtype)
    factor, n = (lax.convert_element_type(v, working) for v in (factor, n))
    moved = _products(factor, n)
    out = dtypes.result_type(mean.dtype, working)
    mean, moved = (lax.convert_element_type(v, out) for v in (mean, moved))
    return lax.add(repeated(mean, moved.shape), moved)


def _factor(cov: Any, method: str) -> Any:
    """A factor of the covariance: its product with its conjugate transpose."""
    if method == "cholesky":
        return lax.linalg.cholesky(cov)
    if method == "eigh":
        vectors, scales = lax.linalg.eigh(cov)
    else:
        vectors, scales, _ = lax.linalg.svd(cov)
    return lax.mul(
        vectors,
        repeated(lax.expand_dims(lax.sqrt(scales), (scales.ndim - 1,)), vectors.shape),
    )


def _products(matrices: Any, vectors: Any) -> Any:
    """Products of matrices, with broadcast leading axes, and vectors."""
    lead = matrices.shape[:-2]
    batch = vectors.shape[:-1]
    extra = len(batch) - len(lead)
    if all(a == b for a, b in zip(lead, batch[extra:])):
        shared = tuple(range(len(lead)))
        numbers = (
            ((matrices.ndim - 1,), (vectors.ndim - 1,)),
            (shared, tuple(extra + i for i in shared)),
        )
        out = lax.dot_general(matrices, vectors, numbers)  # shared axes, rows, extra axes
        k = len(lead)
        order = (*range(k + 1, k + 1 + extra), *range(k), k)
        return lax.transpose(out, order)
    matrices = repeated(matrices, (*batch, *matrices.shape[-2:]))
    return _products(matrices, vectors)


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Multivariate normal samples.

    Args:
      key: one key, typed or raw. It must not be used again.
      mean: ``float[..., n]``.
      cov: ``float[..., n, n]``, symmetric and positive semi-definite.
      shape: the batch shape, by default that of ``mean`` and ``cov``, which must broadcast to it.
      dtype: the dtype of the normal samples, by default that of ``mean`` and ``cov``; the result
        is promoted with these.
      method: the factorization of ``cov``: ``"cholesky"`` (for positive definite matrices),
        ``"eigh"`` or ``"svd"``.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``(*shape, n)``.

    Raises:
      ValueError: if shapes do not match, or the method is unknown.

    Samples are differentiable with respect to ``mean`` and ``cov``.

    >>> from primax_numpy import random
    >>> import numpy as np
    >>> mean, cov = np.zeros(2, np.float32), np.eye(2, dtype=np.float32)
    >>> random.multivariate_normal(random.key(0), mean, cov, (5,)).shape
    (5, 2)
    """
    if out_sharding is not None:
        return with_out_sharding(
            multivariate_normal, out_sharding, key, mean, cov, shape, dtype, method
        )
    check_key("multivariate_normal", key)
    draws.check_parameters("multivariate_normal", mean, cov)
    if method not in _METHODS:
        raise ValueError(f"multivariate_normal: method must be one of {_METHODS}, got {method!r}")
    a, b = typeof(mean), typeof(cov)
    if a.ndim < 1:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got a scalar")
    if b.ndim < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got shape {b.shape}")
    n = a.shape[-1]
    if b.shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got mean of "
            f"shape {a.shape} and cov of shape {b.shape}"
        )
    if dtype is None:
        dtype = dtypes.result_type(a.dtype, b.dtype)
        if dtypes.issubdtype(dtype, np.integer) or dtype == np.bool_:
            dtype = dtypes.default_float()
    dtype = draws.float_dtype(dtype, "multivariate_normal")
    batches = [a.shape[:-1], b.shape[:-2]]
    if shape is None:
        try:
            batch_shape = tuple(broadcast_shapes(*batches))
        except ValueError:
            raise ValueError(
                f"multivariate_normal: batches of mean {a.shape} and cov {b.shape} do not broadcast"
            ) from None
    else:
        batch_shape = draws.shape_of(shape, "multivariate_normal")
        draws.check_fits("multivariate_normal", batches, batch_shape)
    out: Array = _multivariate_normal(key, mean, cov, shape=batch_shape, dtype=dtype, method=method)
    return out


@compiled("shape", "n", "m", "dtype")
def _orthogonal(key: Any, *, shape: tuple[int, ...], n: int, m: int, dtype: Any) -> Any:
    """Haar samples by QR with the signs of the diagonal of R (Mezzadri, Notices of the AMS 54,
    2007).
    """
    z = draws.normal(typed(key), (*shape, max(n, m), min(n, m)), dtype)
    q, r = lax.linalg.qr(z, full_matrices=False)
    diagonal = lax.sign(_diagonal(r))
    q = lax.mul(q, repeated(lax.expand_dims(diagonal, (diagonal.ndim - 1,)), q.shape))
    if n >= m:
        return q
    return lax.transpose(q, (*range(q.ndim - 2), q.ndim - 1, q.ndim - 2))


def _diagonal(x: Any) -> Any:
    """The diagonal of square matrices."""
    rank = x.ndim
    same = lax.eq(*(lax.broadcasted_iota(np.dtype(np.int32), x.shape, rank - i) for i in (1, 2)))
    return lax.reduce_sum(lax.select(same, x, lax.full_like(x, 0)), (rank - 2,))


def orthogonal(
    key: ArrayLike,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Haar-distributed orthogonal matrices, unitary ones for complex dtypes.

    Args:
      key: one key, typed or raw. It must not be used again.
      n, m: numbers of rows and columns (``m`` is ``n`` by default). If they differ, the shorter
        dimension is orthonormal: the rows for ``n < m``, the columns for ``n > m``.
      shape: the batch shape.
      dtype: a float or complex dtype of 32 bits or more.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      ``dtype[*shape, n, m]``.

    Raises:
      TypeError: if ``n`` or ``m`` is not an integer.
      ValueError: if they are negative.

    >>> from primax_numpy import random
    >>> import numpy as np
    >>> q = random.orthogonal(random.key(0), 2)
    >>> np.abs(np.asarray(q @ q.T)).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if out_sharding is not None:
        return with_out_sharding(orthogonal, out_sharding, key, n, shape, dtype, m)
    check_key("orthogonal", key)
    shape, dtype = draws.shape_of(shape, "orthogonal"), draws.inexact_dtype(dtype, "orthogonal")
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    if rows < 0 or columns < 0:
        raise ValueError(f"orthogonal: sizes must not be negative, got n={n} and m={m}")
    out: Array = _orthogonal(key, shape=shape, n=rows, m=columns, dtype=dtype)
    return out
