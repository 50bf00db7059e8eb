"""Systems of linear equations, inverses and least squares."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import numpy as np

from primax_core import custom_jvp, lax
from primax_core.extend import Array, dtypes, inexact, promoted, typeof

from .._checks import check_arrays, one_axis
from .._functions import checked, compiled
from .._promotion import is_complex
from .._reducing import squares
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
    """``x`` in ``a @ x = b`` for ``a`` given by ``lax.linalg.lu``; or in ``a^H @ x = b``."""

    def triangular(b: Any, *, lower: bool) -> Any:
        return lax.linalg.triangular_solve(
            factors, b, left_side=True, lower=lower, unit_diagonal=lower,
            transpose_a=adjoint_of, conjugate_a=adjoint_of and is_complex(factors),
        )  # fmt: skip

    if not adjoint_of:
        return triangular(triangular(_rows(b, order), lower=True), lower=False)
    places = lax.broadcasted_iota(np.int32, typeof(order).shape, typeof(order).ndim - 1)
    _, back = lax.sort_key_val(order, places, typeof(order).ndim - 1)
    return _rows(triangular(triangular(b, lower=False), lower=True), back)


def _rows(x: Any, order: Any) -> Any:
    """Rows in an order, for each matrix."""
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
def solve(a: Any, b: Any) -> Array:
    """``x`` in ``a @ x = b``.

    Args:
      a: ``number[..., n, n]``; integers become floats.
      b: ``number[n]`` or ``number[..., n, k]``; leading axes broadcast.

    Returns:
      ``x``, of the shape of ``b`` but for the leading axes; inf or NaN where ``a`` is singular.

    Raises:
      ValueError: for other shapes.
      TypeError: for 16-bit floats.

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
    """Factored once; derivatives reuse the factors."""
    if 0 in typeof(b).shape:
        return b
    factors, _, order = lax.linalg.lu(lax.stop_gradient(a))
    factors, order = broadcast_batch(factors, batch, 2), broadcast_batch(order, batch, 1)
    a = broadcast_batch(a, batch, 2)
    # What is transposed is the linear map, without conjugation.
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
def inv(a: Any) -> Array:
    """Inverses of square matrices ``number[..., n, n]``; inf or NaN where they are singular.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: for 16-bit floats.
    """
    a = as_inexact(a)
    return _solved(a, eye_like(a), typeof(a).shape[:-2])


def matrix_power(a: Any, n: Any) -> Array:
    """Square matrices times themselves ``n`` times; of the inverse for negative ``n``.

    Raises:
      TypeError: if ``n`` is not an integer.
      ValueError: if the matrices are not square.
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


def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Array:
    """Moore-Penrose inverses.

    Args:
      a: ``number[..., m, n]``; integers become floats.
      rtol: singular values below this part of the largest one count as zero; a number or
        ``[...]``. By default ten times ``max(m, n)`` times the dtype's precision.
      hermitian: whether the matrices are Hermitian, which takes a faster way.
      rcond: another name of ``rtol``.

    Returns:
      ``[..., n, m]``. The derivative is that at constant rank: Golub and Pereyra, SIAM J. Numer.
      Anal. 10 (1973).

    Raises:
      ValueError: for less than two axes, or if both ``rtol`` and ``rcond`` are given.
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
    """``1 / w``, or zero where the size is below a part of the largest one."""
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
    a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Least squares: the shortest ``x`` that makes ``|a @ x - b|`` smallest.

    Args:
      a: ``number[m, n]``.
      b: ``number[m]`` or ``number[m, k]``.
      rcond: singular values below this part of the largest one count as zero, by default
        ``max(m, n)`` times the dtype's precision; negative for none.
      numpy_resid: give no residuals where NumPy gives none: for ``m <= n`` or deficient rank. This
        needs known values.

    Returns:
      ``x``, the sums of squared residuals of each column, the rank of ``a``, its singular values.

    Raises:
      ValueError: for other shapes.
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
def _(primals, tangents):
    a, b, limit = primals
    ta, tb, _ = tangents
    u, s, vh = lax.linalg.svd(a, full_matrices=False)
    inverse = product(adjoint(vh), adjoint(scaled_columns(u, _reciprocals(s, s, limit))))
    x = product(inverse, b)
    # The tangent of the inverse, applied to b without forming it.
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


def tensorinv(a: Any, ind: int = 2) -> Array:
    """The inverse of a tensor as a map from its last axes to its first ``ind``.

    Raises:
      ValueError: if ``ind`` is not positive, or both groups of axes differ in size.
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


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    """``x`` in ``tensordot(a, x, x.ndim) = b``.

    Args:
      a: of shape ``b.shape + x.shape``.
      axes: axes of ``a`` that are moved to its end first.

    Raises:
      ValueError: if the shapes do not fit.
    """
    check_arrays("linalg.tensorsolve", a, b)
    n = typeof(a).ndim
    moved = [one_axis(i, n) for i in axes or ()]
    order = tuple([i for i in range(n) if i not in moved] + moved)
    shape = tuple([typeof(a).shape[i] for i in order])
    wanted = typeof(b).shape
    rest = shape[len(wanted) :]
    if shape[: len(wanted)] != wanted or math.prod(rest) != math.prod(wanted):
        raise ValueError(
            "linalg.tensorsolve: after moving axes to the end, a must have the shape of b followed "
            f"by as many elements; got {shape} and {wanted}"
        )
    return _tensorsolve(a, b, order=order)


@compiled("order")
def _tensorsolve(a, b, *, order):
    a = lax.transpose(a, order)
    size = typeof(b).size
    rest = typeof(a).shape[typeof(b).ndim :]
    x = solve(lax.reshape(a, (size, size)), lax.reshape(b, (size,)))
    return lax.reshape(x, rest)
