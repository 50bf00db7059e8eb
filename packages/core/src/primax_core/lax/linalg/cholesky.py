"""Cholesky decompositions."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from ..._engine.jit_cache import library_function
from ..._ir.primitive import Primitive, abstract, batch, jvp, lower
from ..._ir.samples import Sample, c64, f32, samples
from ..._lower.lazy import hlo, ir
from ..._trace.array import Array
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..._transform.batching import batch_of
from ..._transform.zeros import Zero, instantiate
from ..arithmetic import add, div, mul, sub
from ..broadcasting import full_like
from ..comparison import eq
from ..control.scan import scan
from ..elementwise import scalar_like
from ..exponential import sqrt
from ..promotion import cast, inexact
from ..reshaping import reshape
from ..selection import select
from . import cusolver, lapack
from .matrices import (
    REAL,
    adjoint,
    as_column,
    as_row,
    batched_in_front,
    check_operands,
    eye_like,
    matmul,
    nan_where_failed,
    transposed,
    tril,
    triu,
)
from .triangular import triangular_solve

cholesky_p: Final = Primitive("cholesky")
cholesky_update_p: Final = Primitive("cholesky_update")


@partial(library_function, static_argnames=("symmetrize_input",))
def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular factor ``L`` of positive definite matrices: ``x = L @ L^H``.

    Args:
      x: ``number[..., n, n]``, Hermitian and positive definite; integers become floats.
      symmetrize_input: use ``(x + x^H) / 2`` instead of ``x``. If False, only the lower triangle is
        read.

    Returns:
      ``[..., n, n]``; all elements of the lower triangle are NaN for a matrix that is not positive
      definite.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if the dtype is narrower than 32 bits.

    The derivative is that of I. Murray, "Differentiation of the Cholesky decomposition", 2016.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    x = symmetrized("cholesky", x) if symmetrize_input else x
    return tril(cholesky_p.bind(x))


def symmetrized(name: str, x: ArrayLike) -> Any:
    """The Hermitian part of square matrices, as floats or complex numbers."""
    aval = typeof(x)
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise ValueError(
            f"The input to linalg.{name} must have shape [..., n, n], got shape {aval.shape}"
        )
    twice = add(x, adjoint(x))
    twice = cast(twice, typeof(twice), *inexact(aval.dtype, aval.weak_type))
    return div(twice, scalar_like(twice, 2))


@cholesky_p.rule(abstract)
def _cholesky_abstract(x):
    check_operands("cholesky", (x,), (2,))
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"The input to linalg.cholesky must have shape [..., n, n], got shape {x.shape}"
        )
    return x


@cholesky_p.rule(lower)
def _cholesky_lower(ctx, x):
    return hlo.cholesky(x, lower=ir.BoolAttr.get(True))


@cholesky_p.rule(lower.on("cpu"))
def _cholesky_lower_cpu(ctx, x):
    empty = lapack.empties(ctx)
    if empty is not None:
        return empty[0]
    (aval,) = ctx.in_avals
    out_avals = [aval, lapack.info_of(aval.shape[:-2])]
    # The transposes are factored in place: LAPACK's columns are rows here.
    flipped = lapack.transposed(x, aval)
    out, info = lapack.call(ctx, "potrf", [flipped], out_avals, {0: 0}, uplo="U")
    out, _ = lapack.transposed(out, aval)
    return ctx.call(nan_where_failed, info, out, in_avals=out_avals[::-1])[0]


@cholesky_p.rule(lower.on("cuda"))
def _cholesky_lower_cuda(ctx, x):
    empty = lapack.empties(ctx)
    if empty is not None:
        return empty[0]
    (aval,) = ctx.in_avals
    out_avals = [aval, lapack.info_of(aval.shape[:-2])]
    # XLA's own operation becomes a loop over columns.
    out, info = cusolver.call("cusolver_potrf", [(x, aval)], out_avals, {0: 0}, lower=True)
    return ctx.call(nan_where_failed, info, out, in_avals=out_avals[::-1])[0]


@cholesky_p.rule(jvp)
def _cholesky_jvp(primals, tangents):
    out = cholesky_p.bind(*primals)
    if type(tangents[0]) is Zero:
        return out, Zero.like(out)
    factor, half = tril(out), half_diagonal(tril(tangents[0]))
    inside = whitened(factor, add(half, adjoint(half)))
    return out, matmul(factor, half_diagonal(tril(inside)))


def whitened(factor: ArrayLike, x: ArrayLike) -> Any:
    """``L^-1 x L^-H`` for a lower triangular ``L``."""
    x = triangular_solve(factor, x, left_side=True, lower=True)
    return triangular_solve(
        factor, x, left_side=False, lower=True, transpose_a=True, conjugate_a=True
    )


def half_diagonal(x: ArrayLike) -> Any:
    """The matrix with its diagonal halved."""
    return sub(x, mul(x, mul(eye_like(x), full_like(x, 0.5))))


batched_in_front(cholesky_p)


def _positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return x @ np.swapaxes(x.conj(), -1, -2) + 2 * np.eye(shape[-1])


def _real_positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return _positive(rng, shape).real


@cholesky_p.rule(samples)
def _cholesky_samples():
    # The result is undefined outside the lower triangle.
    def lower_triangle(outs):
        return [tril(outs[0])]

    yield Sample(f32(3, 3, make=_real_positive)).set(observe=lower_triangle)
    yield Sample(f32(2, 2, 2, make=_real_positive)).set(observe=lower_triangle)
    yield Sample(c64(3, 3, make=_positive)).set(call=lambda x: cholesky(x))
    yield Sample(f32(0, 2, 2)).set(observe=lower_triangle)
    yield Sample(f32(0, 0)).set(observe=lower_triangle)


# Updates


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular factor of ``R^T R + w w^T``.

    Args:
      r_matrix: ``float[n, n]``, upper triangular.
      w_vector: ``float[n]``.

    Returns:
      An upper triangular matrix of the shape and dtype of ``r_matrix``.

    Raises:
      TypeError: if the operands are not a matrix and a vector of one real dtype.
      ValueError: if the sizes are incompatible.

    Computed by Givens rotations, row by row: Golub and Van Loan, "Matrix Computations", section
    6.5.4.

    >>> cholesky_update(np.array([[3.0]]), np.array([4.0])).tolist()
    [[5.0]]
    """
    return cholesky_update_p.bind(r_matrix, w_vector)


@cholesky_update_p.rule(abstract)
def _cholesky_update_abstract(r, w):
    check_operands("cholesky_update", (r, w), (2, 1), REAL)
    for i, (aval, rank) in enumerate(((r, 2), (w, 1))):
        if aval.ndim != rank:
            raise TypeError(
                f"Input {i} to cholesky_update must have a rank of exactly {rank}, but got "
                f"shape={aval.shape}"
            )
    if r.shape != (*w.shape, *w.shape):
        raise ValueError(
            "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the "
            f"same size as input. Got shapes {r.shape} and {w.shape} instead"
        )
    return r


def _updated(r: Any, w: Any) -> Any:
    n = typeof(w).shape[0]
    if not n:
        return r
    at_row = eye_like(r)

    def rotate(w, row_and_index):
        row, index = row_and_index
        x, y = _dot(row, index), _dot(w, index)
        length = sqrt(add(mul(x, x), mul(y, y)))
        still = eq(length, full_like(length, 0))
        safe = select(still, full_like(length, 1), length)
        c = select(still, full_like(x, 1), div(x, safe))
        s = div(y, safe)
        return sub(mul(w, c), mul(row, s)), add(mul(row, c), mul(w, s))

    # Elements below the diagonal are rounding errors.
    return triu(scan(rotate, w, (r, at_row))[1])


def _dot(x: Any, y: Any) -> Any:
    row, column = as_row(x), as_column(y)
    return reshape(matmul(row, column), ())


@cholesky_update_p.rule(lower)
def _cholesky_update_lower(ctx, r, w):
    return ctx.call(_updated, r, w)


@cholesky_update_p.rule(jvp)
def _cholesky_update_jvp(primals, tangents):
    """Derivative of the Cholesky decomposition of the updated matrix."""
    (r, w), (tr, tw) = primals, [instantiate(t) for t in tangents]
    out = cholesky_update_p.bind(r, w)
    half = add(matmul(transposed(r), triu(tr)), mul(as_column(w), as_row(tw)))
    factor = transposed(triu(out))
    inside = whitened(factor, add(half, transposed(half)))
    return out, transposed(matmul(factor, half_diagonal(tril(inside))))


@cholesky_update_p.rule(batch)
def _cholesky_update_batch(axis, args, dims):
    (out,), (dim,) = batch_of(lambda *a: [_updated(*a)], args, dims, axis)
    return out, dim


@cholesky_update_p.rule(samples)
def _cholesky_update_samples():
    def triangular(rng, shape):
        return np.triu(rng.standard_normal(shape)) + 3 * np.eye(shape[-1])

    def call(r, w):
        return cholesky_update(triu(r), w)

    yield Sample(f32(3, 3, make=triangular), f32(3)).set(call=call)
    yield Sample(f32(1, 1, make=triangular), f32(1)).set(call=call)
    yield Sample(f32(0, 0), f32(0)).set(call=call)
