"""Linear systems, inverses and least squares."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import Array, dtypes, inexact, one_call, promoted
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from .._checks import check_arrays, one_axis
from .._functions import checked, compiled
from .._promotion import is_complex
from .._reduction_helpers import squares
from .._triangles import diagonal_of
from ._matrices import (
    adjoint,
    as_inexact,
    broadcast_batch,
    check_square,
    checked_matrices,
    eye_like,
    joint_batch,
    product,
    scaled_columns,
    scaled_rows,
)


def solve_factored(factors: Any, order: Any, b: Any, adjoint_of: bool = False) -> Any:
    """Solution of ``a @ x = b`` from the factors of ``lax.linalg.lu``; with ``adjoint_of`` of
    ``a^H @ x = b``.
    """

    def triangular(b: Any, *, lower: bool) -> Any:
        return lax.linalg.triangular_solve(
            factors, b, left_side=True, lower=lower, unit_diagonal=lower,
            transpose_a=adjoint_of, conjugate_a=adjoint_of and is_complex(factors),
        )  # fmt: skip

    if not adjoint_of:
        return triangular(triangular(_rows(b, order), lower=True), lower=False)
    places = lax.broadcasted_iota(np.int32, typeof(order).shape, typeof(order).ndim - 1)
    _, inverse_order = lax.sort_key_val(order, places, typeof(order).ndim - 1)
    return _rows(triangular(triangular(b, lower=False), lower=True), inverse_order)


def _rows(x: Any, order: Any) -> Any:
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
    index = lax.expand_dims(order, (n - 1,))
    sizes = (1,) * (n - 1) + typeof(x).shape[-1:]
    return lax.gather(
        x, index, numbers, sizes, unique_indices=True,
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )  # fmt: skip


def _check_system(a: Any, b: Any) -> None:
    check_square("solve", a)
    check_arrays("linalg.solve", b)
    x, y = typeof(a).shape, typeof(b).shape
    if not y or (y[0] if len(y) == 1 else y[-2]) != x[-1]:
        hint = ""
        if len(y) > 1 and y[-1] == x[-1]:
            hint = ". For a batch of vectors use solve(a, b[..., None])[..., 0]"
        raise ValueError(f"Invalid shapes for solve: {x}, {y}{hint}")
    if len(y) > 1:
        joint_batch("solve", a, b, 2, 2)


@checked(_check_system)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solution ``x`` of ``a @ x = b``.

    Args:
      a: ``number[..., n, n]``; integers become floats.
      b: ``number[n]`` or ``number[..., n, k]``; leading axes broadcast.

    Returns:
      ``x``, of the shape of ``b`` except for broadcast leading axes; inf or NaN for singular ``a``.

    Raises:
      ValueError: if shapes do not match.
      TypeError: if the dtype is a 16-bit float.

    >>> solve(np.float32([[2, 0], [0, 4]]), np.float32([2, 2])).tolist()
    [1.0, 0.5]
    """
    a, b = promoted("solve", a, b, inexact)
    vector = typeof(b).ndim == 1
    if vector:
        b = lax.expand_dims(b, (1,))
    batch = joint_batch("solve", a, b, 2, 2)
    x = _solved(a, broadcast_batch(b, batch, 2), batch)
    return lax.squeeze(x, (typeof(x).ndim - 1,)) if vector else x


def _solved(a, b, batch):
    """Solution by one LU factorization, which derivatives reuse."""
    if 0 in typeof(b).shape:
        return b
    factors, _, order = lax.linalg.lu(lax.stop_gradient(a))
    factors, order = broadcast_batch(factors, batch, 2), broadcast_batch(order, batch, 1)
    a = broadcast_batch(a, batch, 2)
    # The transpose of the linear map has no conjugation.
    return lax.custom_linear_solve(
        lambda x: product(a, x),
        b,
        lambda _, y: solve_factored(factors, order, y),
        lambda _, y: (
            lax.conj(solve_factored(factors, order, lax.conj(y), True))
            if is_complex(factors)
            else solve_factored(factors, order, y, True)
        ),
    )


@checked(partial(check_square, "inv"))
def inv(a: ArrayLike) -> Array:
    """Inverses of square matrices; inf or NaN for singular ones.

    Args:
      a: ``number[..., n, n]``; integers become floats.

    Returns:
      An array of the shape of ``a``.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if the dtype is a 16-bit float.

    Use :func:`solve` for products with the inverse: it is faster and more accurate.

    >>> np.asarray(inv(np.float32([[2, 0], [0, 4]]))).round(3).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    a = as_inexact(a)
    return _solved(a, eye_like(a), typeof(a).shape[:-2])


@one_call("n")
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Powers of square matrices, by repeated squaring.

    Args:
      a: ``number[..., n, n]``.
      n: a concrete integer. A negative exponent applies to the inverse; 0 gives identity matrices.

    Returns:
      An array of the shape of ``a``.

    Raises:
      TypeError: if ``n`` is not an integer.
      ValueError: if the matrices are not square.

    >>> matrix_power(np.array([[1, 1], [0, 1]]), 3).tolist()
    [[1, 3], [0, 1]]
    >>> matrix_power(np.float32([[2, 0], [0, 4]]), -1).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    check_square("matrix_power", a)
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"linalg.matrix_power: exponent must be an integer, got {n}") from None
    return _matrix_power(a, n=n)


@compiled("n")
def _matrix_power(a, *, n):
    if n < 0:
        a, n = inv(a), -n
    out = None
    while n:
        if n % 2:
            out = a if out is None else product(out, a)
        n //= 2
        if n:
            a = product(a, a)
    return eye_like(a) if out is None else out


@one_call("hermitian")
def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """Moore-Penrose pseudo-inverses.

    Args:
      a: ``number[..., m, n]``; integers become floats.
      rtol: cutoff of singular values relative to the largest one; a number or ``[...]``. By
        default ten times ``max(m, n)`` times the machine epsilon.
      hermitian: the matrices are Hermitian, which permits a faster algorithm.
      rcond: a synonym of ``rtol``.

    Returns:
      ``[..., n, m]``. The derivative assumes a constant rank: Golub and Pereyra, SIAM J. Numer.
      Anal. 10 (1973).

    Raises:
      ValueError: if there are fewer than two axes, or both ``rtol`` and ``rcond`` are specified.
    """
    checked_matrices("pinv", a)
    if hermitian:
        check_square("pinv with hermitian=True", a)
    if rtol is not None and rcond is not None:
        raise ValueError("linalg.pinv: only one of rtol and rcond may be specified.")
    limit = rcond if rtol is None else rtol
    m, n = typeof(a).shape[-2:]
    if limit is None:
        dtype = inexact(typeof(a).dtype, False)[0]
        limit = np.asarray(10 * max(m, n) * dtypes.finfo(dtype).eps, dtypes.finfo(dtype).dtype)
    return _pinv(a, limit, hermitian=bool(hermitian))


@compiled("hermitian")
def _pinv(a, limit, *, hermitian):
    return _pseudo_inverse(as_inexact(a), lax.stop_gradient(limit), hermitian)


@custom_jvp
def _inverted(a, limit):
    u, s, vh = lax.linalg.svd(a, full_matrices=False)
    return product(adjoint(vh), adjoint(scaled_columns(u, _reciprocals(s, s, limit))))


@custom_jvp
def _inverted_hermitian(a, limit):
    v, w = lax.linalg.eigh(a)
    return product(v, adjoint(scaled_columns(v, _reciprocals(w, lax.abs(w), limit))))


def _reciprocals(w, size, limit):
    """``1 / w``, or zero if the magnitude is below the relative cutoff."""
    n = typeof(w).ndim
    if typeof(w).shape[-1] == 0:
        return w
    top = lax.reduce_max(size, (n - 1,))
    limit = lax.mul(top, lax.broadcast_in_dim(lax.convert_element_type(limit, typeof(w).dtype),
                    typeof(top).shape, _trailing(limit, top)))  # fmt: skip
    keep = lax.gt(size, lax.broadcast_in_dim(limit, typeof(w).shape, tuple(range(n - 1))))
    one = lax.full_like(w, 1)
    return lax.select(keep, lax.div(one, lax.select(keep, w, one)), lax.full_like(w, 0))


def _trailing(x, like):
    n = typeof(like).ndim
    return tuple(range(n - typeof(x).ndim, n))


def _pseudo_inverse(a, limit, hermitian):
    if 0 in typeof(a).shape:
        return adjoint(a)
    return (_inverted_hermitian if hermitian else _inverted)(a, limit)


def _inverse_tangent(fun, primals, tangents):
    """``dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P``."""
    a, limit = primals
    t = tangents[0]
    p = fun(a, limit)
    ph, th = adjoint(p), adjoint(t)
    one = lax.neg(product(product(p, t), p))
    wide = product(th, product(ph, p))
    tall = product(product(p, ph), th)
    out = lax.add(one, lax.sub(wide, product(p, product(a, wide))))
    return p, lax.add(out, lax.sub(tall, product(product(tall, a), p)))


_inverted.defjvp(lambda p, t: _inverse_tangent(_inverted, p, t))
_inverted_hermitian.defjvp(lambda p, t: _inverse_tangent(_inverted_hermitian, p, t))


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: ArrayLike | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Least squares: the ``x`` of minimum norm that minimizes ``|a @ x - b|``.

    Args:
      a: ``number[m, n]``.
      b: ``number[m]`` or ``number[m, k]``.
      rcond: cutoff of singular values relative to the largest one, by default ``max(m, n)`` times
        the machine epsilon; a negative number means the machine epsilon.
      numpy_resid: return empty residuals in the cases where NumPy does: for ``m <= n`` or
        deficient rank. This needs concrete values.

    Returns:
      ``x``, the sum of squared residuals of each column, the rank of ``a``, its singular values.

    Raises:
      ValueError: if shapes do not match.
    """
    check_arrays("linalg.lstsq", a, b)
    x, y = typeof(a), typeof(b)
    if x.ndim != 2 or y.ndim not in (1, 2):
        raise ValueError(
            f"linalg.lstsq needs a matrix and a vector or matrix, got shapes {x.shape}, {y.shape}"
        )
    if x.shape[0] != y.shape[0]:
        raise ValueError(
            f"linalg.lstsq: Leading dimensions of input arrays must match: {x.shape}, {y.shape}"
        )
    limit = -1.0 if rcond is None else rcond
    out, residuals, rank, s = _lstsq(a, b, limit, default=rcond is None)
    if numpy_resid and (x.shape[0] <= x.shape[1] or int(rank) < x.shape[1]):
        residuals = lax.full((0,), 0, residuals.dtype)
    return out, residuals, rank, s


@compiled("default")
def _lstsq(a, b, rcond, *, default):
    a, b = promoted("lstsq", a, b, inexact)
    a, b = (lax.convert_element_type(v, typeof(v).dtype) for v in (a, b))
    vector = typeof(b).ndim == 1
    if vector:
        b = lax.expand_dims(b, (1,))
    m, n = typeof(a).shape
    info = dtypes.finfo(typeof(a).dtype)
    zero = np.zeros((), info.dtype)[()]
    if default:
        limit = np.asarray(max(m, n) * info.eps, info.dtype)[()]
    else:
        limit = lax.convert_element_type(rcond, info.dtype)
        limit = lax.select(lax.lt(limit, zero), np.asarray(info.eps, info.dtype)[()], limit)
    if 0 in (m, n):
        x = lax.full((n, typeof(b).shape[1]), 0, typeof(a).dtype)
        rank, s = np.int32(0), lax.full((0,), 0, info.dtype)
    else:
        x, s = _shortest(a, b, lax.stop_gradient(limit))
        top = lax.reduce_max(s, (0,))
        large = lax.gt(s, lax.broadcast_in_dim(lax.mul(limit, top), typeof(s).shape, ()))
        rank = lax.reduce_sum(lax.convert_element_type(large, np.int32), (0,))
    gap = lax.sub(product(a, x), b)
    residuals = lax.reduce_sum(squares(gap), (0,))
    rank = lax.convert_element_type(rank, dtypes.default_int())
    return (lax.squeeze(x, (1,)) if vector else x), residuals, rank, s


@custom_jvp
def _shortest(a, b, limit):
    """``pinv(a) @ b`` and the singular values, from one decomposition."""
    u, s, vh = lax.linalg.svd(a, full_matrices=False)
    parts = scaled_rows(product(adjoint(u), b), _reciprocals(s, s, limit))
    return product(adjoint(vh), parts), s


@_shortest.defjvp
def _shortest_jvp(primals, tangents):
    a, b, limit = primals
    ta, tb, _ = tangents
    u, s, vh = lax.linalg.svd(a, full_matrices=False)
    inverse = product(adjoint(vh), adjoint(scaled_columns(u, _reciprocals(s, s, limit))))
    x = product(inverse, b)
    # The tangent of the pseudo-inverse is applied to b and not materialized.
    th, ph = adjoint(ta), adjoint(inverse)
    gap = lax.sub(b, product(a, x))
    near = product(th, product(ph, x))
    tx = lax.add(
        lax.sub(product(inverse, tb), product(inverse, product(ta, x))),
        lax.add(
            product(inverse, product(ph, product(th, gap))),
            lax.sub(near, product(inverse, product(a, near))),
        ),
    )
    ts = diagonal_of(product(product(adjoint(u), ta), adjoint(vh)), 0, (-2, -1))
    return (x, s), (tx, lax.real(ts) if is_complex(ts) else ts)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Inverse of a tensor as a linear map from its last axes to its first ``ind`` axes.

    Args:
      a: an array; the product of its first ``ind`` sizes equals that of the others.
      ind: the number of axes in the first group.

    Returns:
      An array of shape ``a.shape[ind:] + a.shape[:ind]``.

    Raises:
      ValueError: if ``ind`` is not positive, or the two groups of axes differ in size.

    The product ``tensordot(tensorinv(a, ind), a, ind)`` is an identity map.

    >>> tensorinv(np.eye(6, dtype=np.float32).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    check_arrays("linalg.tensorinv", a)
    ind = operator.index(ind)
    shape = typeof(a).shape
    if ind <= 0:
        raise ValueError(f"linalg.tensorinv: ind must be a positive integer; got {ind=}")
    size, other = math.prod(shape[:ind]), math.prod(shape[ind:])
    if size != other:
        raise ValueError(
            "linalg.tensorinv: the first `ind` axes must have as many elements as the others, got "
            f"shape {shape} with {ind=}"
        )
    return _tensorinv(a, ind=ind)


@compiled("ind")
def _tensorinv(a, *, ind):
    shape = typeof(a).shape
    flat = lax.reshape(a, (math.prod(shape[:ind]), math.prod(shape[ind:])))
    return lax.reshape(inv(flat), (*shape[ind:], *shape[:ind]))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Solution ``x`` of ``tensordot(a, x, x.ndim) = b``.

    Args:
      a: an array of shape ``b.shape + x.shape``.
      b: an array or a number.
      axes: axes of ``a`` to move to its end first.

    Returns:
      An array of the shape of ``x``.

    Raises:
      ValueError: if the shapes do not match.

    >>> a = 2 * np.eye(6, dtype=np.float32).reshape(2, 3, 6)
    >>> np.asarray(tensorsolve(a, np.ones((2, 3), np.float32))).round(3).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    """
    check_arrays("linalg.tensorsolve", a, b)
    n = typeof(a).ndim
    moved = [one_axis(i, n) for i in axes or ()]
    order = tuple([i for i in range(n) if i not in moved] + moved)
    shape = tuple([typeof(a).shape[i] for i in order])
    b_shape = typeof(b).shape
    rest = shape[len(b_shape) :]
    if shape[: len(b_shape)] != b_shape or math.prod(rest) != math.prod(b_shape):
        raise ValueError(
            "linalg.tensorsolve: after moving axes to the end, a must have the shape of b followed "
            f"by as many elements; got {shape} and {b_shape}"
        )
    return _tensorsolve(a, b, order=order)


@compiled("order")
def _tensorsolve(a, b, *, order):
    a = lax.transpose(a, order)
    size = typeof(b).size
    rest = typeof(a).shape[typeof(b).ndim :]
    x = solve(lax.reshape(a, (size, size)), lax.reshape(b, (size,)))
    return lax.reshape(x, rest)
