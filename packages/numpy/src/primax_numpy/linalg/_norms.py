"""Norms, condition numbers and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, inexact, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from .._checks import axes_of, check_arrays
from .._functions import compiled
from .._reduction_helpers import squares
from ._decompositions import eigvalsh, svdvals
from ._matrices import as_inexact, check_square, checked_matrices
from ._solving import inv

_INF: Final = float("inf")


@one_call("ord", "axis", "keepdims")
def norm(
    x: ArrayLike,
    ord: int | float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """Norms of vectors or matrices.

    Args:
      x: ``number[...]``; integers become floats.
      ord: for vectors any number: ``sum(|x|**ord)**(1/ord)``, the number of nonzero elements for
        0, the largest or smallest absolute value for ``inf`` and ``-inf``. For matrices:
        ``"fro"``; ``"nuc"``, the sum of the singular values; 2 and -2, the largest and smallest
        of them; 1 and -1, the largest and smallest absolute column sum; ``inf`` and ``-inf``,
        those of the rows. By default the 2-norm of vectors and the Frobenius norm of matrices.
      axis: one axis for vector norms, two for matrix norms. By default all axes, which may be more
        than two if ``ord`` is ``None``.
      keepdims: keep the reduced axes with size 1.

    Raises:
      ValueError: if the order is unknown, or the number of axes is wrong.

    The derivative of the 2-norm at zero is NaN.

    >>> norm(np.float32([3, 4]))
    Array(5., dtype=float32)
    """
    check_arrays("linalg.norm", x)
    ndim = typeof(x).ndim
    if axis is None and ord is None:
        return _vector_norm(x, axes=tuple(range(ndim)), ord=2.0, keepdims=bool(keepdims))
    axes = axes_of(axis, ndim)
    if len(axes) == 1:
        return _vector_norm(x, axes=axes, ord=_vector_order(ord), keepdims=bool(keepdims))
    if len(axes) == 2:
        return _matrix_norm(x, axes=axes, ord=_matrix_order(ord), keepdims=bool(keepdims))
    raise ValueError(
        f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, "
        "or two axes to compute a matrix-norm."
    )


@one_call("ord", "axis", "keepdims")
def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: int | float | str = 2,
) -> Array:
    """Vector norms, over one or several axes.

    Args:
      x: an array or a number; integers become floats.
      axis: an axis or a sequence of axes, whose elements form one vector; all by default.
      keepdims: keep the reduced axes with size 1.
      ord: the order, as for :func:`norm`: by default 2, the Euclidean norm.

    Returns:
      Nonnegative real numbers, without the reduced axes.

    Raises:
      ValueError: if an axis does not exist, or the order is unknown.

    >>> float(vector_norm(np.float32([3, 4])))
    5.0
    >>> float(vector_norm(np.float32([[3, -4], [1, 2]]), ord=np.inf))
    4.0
    """
    check_arrays("linalg.vector_norm", x)
    axes = axes_of(axis, typeof(x).ndim)
    return _vector_norm(x, axes=axes, ord=_vector_order(ord), keepdims=bool(keepdims))


@one_call("ord", "keepdims")
def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro"
) -> Array:
    """Matrix norms over the last two axes.

    Args:
      x: ``number[..., m, n]``; integers become floats.
      keepdims: keep the reduced axes with size 1.
      ord: the order, as for :func:`norm`: by default ``"fro"``, the Frobenius norm.

    Returns:
      Nonnegative real numbers ``[...]``.

    Raises:
      ValueError: if there are fewer than two axes, or the order is unknown.

    >>> float(matrix_norm(np.float32([[3, 0], [0, 4]])))
    5.0
    >>> float(matrix_norm(np.float32([[3, 0], [0, 4]]), ord=1))
    4.0
    """
    checked_matrices("matrix_norm", x)
    n = typeof(x).ndim
    return _matrix_norm(x, axes=(n - 2, n - 1), ord=_matrix_order(ord), keepdims=bool(keepdims))


def _vector_order(ord: Any) -> float:
    if ord is None:
        return 2.0
    if isinstance(ord, str) or np.ndim(ord):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    return float(ord)


def _matrix_order(ord: Any) -> Any:
    if ord is None:
        return "fro"
    if isinstance(ord, str):
        known = ord in ("fro", "nuc")
    else:
        known = ord in (1, 2, -1, -2, _INF, -_INF)
    if not known:
        raise ValueError(f"Invalid order '{ord}' for matrix norm.")
    return ord if isinstance(ord, str) else float(ord)


@compiled("axes", "ord", "keepdims", name="norm")
def _vector_norm(x, *, axes, ord, keepdims):
    x = as_inexact(x)
    real = dtypes.finfo(typeof(x).dtype).dtype
    if ord == 2:
        out = lax.sqrt(lax.reduce_sum(squares(x), axes))
    elif ord == 0:
        zero = lax.full_like(x, 0)
        out = lax.reduce_sum(lax.convert_element_type(lax.ne(x, zero), real), axes)
    elif ord in (_INF, -_INF):
        out = _extreme(lax.abs(x), axes, ord > 0)
    elif ord == 1:
        out = lax.reduce_sum(lax.abs(x), axes)
    else:
        powers = lax.pow(lax.abs(x), np.asarray(ord, real)[()])
        out = lax.pow(lax.reduce_sum(powers, axes), np.asarray(1 / ord, real)[()])
    return lax.expand_dims(out, axes) if keepdims else out


def _extreme(x, axes, largest: bool):
    """Maximum (0 for empty arrays) or minimum."""
    shape = typeof(x).shape
    if 0 in [shape[i] for i in axes]:
        if not largest:
            raise ValueError(f"linalg.norm: the minimum of an empty array, of shape {shape}")
        return lax.reduce_sum(x, axes)
    return (lax.reduce_max if largest else lax.reduce_min)(x, axes)


@compiled("axes", "ord", "keepdims", name="norm")
def _matrix_norm(x, *, axes, ord, keepdims):
    x = as_inexact(x)
    rows, columns = axes
    if ord == "fro":
        out = lax.sqrt(lax.reduce_sum(squares(x), tuple(sorted(axes))))
    elif ord in ("nuc", 2.0, -2.0):
        n = typeof(x).ndim
        last = lax.transpose(x, (*[i for i in range(n) if i not in axes], rows, columns))
        s = lax.linalg.svd(last, compute_uv=False)
        end = (typeof(s).ndim - 1,)
        out = lax.reduce_sum(s, end) if ord == "nuc" else _extreme(s, end, ord > 0)
    else:
        summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = lax.reduce_sum(lax.abs(x), (summed,))
        out = _extreme(sums, (compared - (compared > summed),), ord > 0)
    return lax.expand_dims(out, tuple(sorted(axes))) if keepdims else out


@one_call("p")
def cond(x: ArrayLike, p: ArrayLike | None = None) -> Array:
    """Condition numbers of matrices: ``norm(x, p) * norm(inv(x), p)``.

    Args:
      x: ``number[..., m, n]``; square unless ``p`` is 2 or -2.
      p: the order of :func:`norm`; by default 2, the ratio of the largest and smallest singular
        values.

    Returns:
      Real numbers ``[...]``, inf for singular matrices.

    Raises:
      ValueError: if the shape is invalid, a matrix is empty, or the order is unknown.

    A large condition number means that solutions of linear systems lose as many digits as it has.

    >>> float(cond(np.float32([[4, 0], [0, 2]])))
    2.0
    """
    check_arrays("linalg.cond", x)
    shape = typeof(x).shape
    if len(shape) < 2:
        raise ValueError(f"linalg.cond: input array must be at least 2D; got {shape=}")
    if 0 in shape:
        raise ValueError(f"linalg.cond: input array must not be empty; got {shape=}")
    order = 2.0 if p is None else _matrix_order(p)
    if order not in (2.0, -2.0) and shape[-1] != shape[-2]:
        raise ValueError(f"linalg.cond: for {p=}, array must be square; got {shape=}")
    return _cond(x, ord=order)


@compiled("ord")
def _cond(x, *, ord):
    x = as_inexact(x)
    if ord in (2.0, -2.0):
        s = lax.linalg.svd(x, compute_uv=False)
        last = typeof(s).ndim - 1
        ends = [lax.index_in_dim(s, i, last, keepdims=False) for i in (0, -1)]
        out = lax.div(*(ends if ord > 0 else ends[::-1]))
    else:
        out = lax.mul(matrix_norm(x, ord=ord), matrix_norm(inv(x), ord=ord))
    n = typeof(x).ndim
    bad = lax.reduce_or(lax.ne(x, x), (n - 2, n - 1))
    singular = lax.bitwise_and(lax.ne(out, out), lax.bitwise_not(bad))
    return lax.select(singular, lax.full_like(out, np.inf), out)


@one_call("hermitian")
def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Numerical rank: the number of singular values above a tolerance.

    Args:
      M: ``number[..., m, n]``; for fewer than two axes, the rank is 1 unless all elements are
        zero.
      rtol: tolerance relative to the largest singular value; a number or ``[...]``, by default
        ``max(m, n)`` times the machine epsilon.
      hermitian: the matrices are Hermitian, which permits a faster algorithm.
      tol: absolute tolerance, instead of ``rtol``.

    Returns:
      Integers ``[...]``.

    Raises:
      ValueError: if both ``rtol`` and ``tol`` are specified.

    >>> int(matrix_rank(np.float32([[1, 2], [2, 4]])))
    1
    """
    check_arrays("linalg.matrix_rank", M)
    if rtol is not None and tol is not None:
        raise ValueError("linalg.matrix_rank: only one of rtol and tol may be specified.")
    limit = rtol if tol is None else tol
    aval = typeof(M)
    if aval.ndim < 2:
        return _any_nonzero(M)
    if hermitian:
        check_square("matrix_rank with hermitian=True", M)
    if limit is None:
        info = dtypes.finfo(inexact(aval.dtype, False)[0])
        limit = np.asarray(max(aval.shape[-2:]) * info.eps, info.dtype)
    return _matrix_rank(M, limit, hermitian=bool(hermitian), relative=tol is None)


@compiled(name="matrix_rank")
def _any_nonzero(a):
    zero = np.zeros((), typeof(a).dtype)[()]
    nonzero = lax.reduce_or(lax.ne(a, zero), tuple(range(typeof(a).ndim)))
    return lax.convert_element_type(nonzero, dtypes.default_int())


@compiled("hermitian", "relative")
def _matrix_rank(a, limit, *, hermitian, relative):
    s = lax.abs(eigvalsh(a)) if hermitian else svdvals(a)
    last = typeof(s).ndim - 1
    if not typeof(s).shape[last]:
        return lax.full(typeof(s).shape[:last], 0, dtypes.default_int())
    top = lax.reduce_max(s, (last,))
    limit = lax.convert_element_type(limit, typeof(s).dtype)
    n = typeof(limit).ndim
    limit = lax.broadcast_in_dim(limit, typeof(top).shape, tuple(range(last - n, last)))
    limit = lax.mul(top, limit) if relative else limit
    large = lax.gt(s, lax.broadcast_in_dim(limit, typeof(s).shape, tuple(range(last))))
    return lax.reduce_sum(lax.convert_element_type(large, dtypes.default_int()), (last,))
