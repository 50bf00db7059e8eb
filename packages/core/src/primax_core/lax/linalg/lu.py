"""LU decompositions with partial pivoting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from ..._ir.avals import ShapedArray
from ..._ir.primitive import Primitive, abstract, jvp, lower
from ..._ir.samples import Sample, c64, f32, samples
from ..._ir.symbolic_dims import index, min_dim
from ..._lower.lazy import mlir, native, shaped
from ..._trace.array import Array
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..._transform.zeros import Zero
from ..arithmetic import add, sub
from ..broadcasting import broadcasted_iota
from ..comparison import eq
from ..control.loops import fori_loop
from ..conversion import convert
from ..dynamic_slicing import dynamic_index_in_dim
from ..elementwise import full_like, no_derivative, to_shape
from ..reducing import reduce_sum
from ..reshaping import expand_dims
from ..selection import select_n
from . import cusolver, lapack
from .matrices import (
    batched_in_front,
    check_operands,
    check_rank,
    columns,
    eye_like,
    matmul,
    padded,
    rows,
    taken_rows,
    tril,
    triu,
)
from .triangular import triangular_solve

lu_p: Final = Primitive("lu", multiple_results=True)
lu_pivots_to_permutation_p: Final = Primitive("lu_pivots_to_permutation")
_I32: Final = np.dtype(np.int32)


def lu(x: ArrayLike) -> list[Array]:
    """LU decomposition with partial pivoting: ``x[permutation] = L @ U``.

    Args:
      x: ``inexact[..., m, n]`` of at least 32 bits.

    Returns:
      ``lu[..., m, n]``, with ``U`` on and above the diagonal and ``L`` below it (the diagonal of
      ``L`` is one); ``pivots[..., k]`` with ``k = min(m, n)``, int32: row ``i`` was swapped with
      row ``pivots[i]``, in order; ``permutation[..., m]``, int32.

    Raises:
      TypeError: for other dtypes, or fewer than two axes.

    A singular matrix has zeros on the diagonal of ``U``; its derivative is not finite.

    >>> factors, pivots, permutation = lu(np.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors.tolist(), permutation.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 0])
    """
    return lu_p.bind(x)


@lu_p.rule(abstract)
def _lu_abstract(x):
    check_operands("lu", (x,), (2,))
    *stack, m, n = x.shape
    return [
        x,
        x.update(shape=(*stack, min_dim(m, n)), dtype=_I32),
        x.update(shape=(*stack, m), dtype=_I32),
    ]


lapack.only_with_solvers(lu_p)


@lu_p.rule(lower.on("cpu"))
def _lu_lower_cpu(ctx, x):
    return _by_native_function(ctx, x, partial(lapack.call, ctx, "getrf"))


@lu_p.rule(lower.on("cuda"))
def _lu_lower_cuda(ctx, x):
    return _by_native_function(ctx, x, partial(cusolver.call, "cusolver_getrf"))


def _by_native_function(ctx: Any, x: Any, call: Callable[..., list[Any]]) -> list[Any]:
    out, pivots, order = ctx.out_avals
    *stack, m, _ = out.shape
    if not out.size:
        row_indices = np.broadcast_to(np.arange(m, dtype=_I32), order.shape)
        return [x, shaped.zeros_of(pivots), mlir.constant(row_indices)]
    types = [out, pivots, lapack.info_of(tuple(stack))]
    # A singular matrix (info > 0) is not an error: U has zeros on its diagonal.
    factors, pivots_from_one, _ = call([(x, ctx.in_avals[0])], types, {0: 0})

    def finish(pivots):
        pivots = sub(pivots, full_like(pivots, 1))
        return [pivots, lu_pivots_to_permutation(pivots, m)]

    return [factors, *ctx.call(finish, pivots_from_one, in_avals=(pivots,))]


@lu_p.rule(jvp)
def _lu_jvp(primals, tangents):
    """With ``P A = L U``: ``L^-1 P dA U^-1`` is ``L^-1 dL`` below the diagonal, ``dU U^-1`` above.

    Factors that are not square are extended by the identity, which preserves this.
    """
    outs = lu_p.bind(*primals)
    (t,) = tangents
    zeros = [Zero.like(o) for o in outs]
    if type(t) is Zero:
        return outs, zeros
    factors, _, order = outs
    m, n = typeof(factors).shape[-2:]
    k = min_dim(m, n)
    below = padded(tril(columns(factors, 0, k), -1), m, m)
    right = padded(triu(rows(factors, 0, k)), n, n)
    if n > k:
        right = add(right, sub(eye_like(right), padded(rows(eye_like(right), 0, k), n, n)))
    inside = triangular_solve(
        below, taken_rows(t, order), left_side=True, lower=True, unit_diagonal=True
    )
    inside = triangular_solve(right, inside)
    strict = tril(inside, -1)
    total = add(strict, matmul(below, strict))
    return outs, [add(total, matmul(triu(inside), right)), *zeros[1:]]


batched_in_front(lu_p)


@lu_p.rule(samples)
def _lu_samples():
    yield Sample(f32(3, 3))
    yield Sample(f32(2, 4, 2))
    yield Sample(f32(2, 3))
    yield Sample(f32(0, 3))
    yield Sample(c64(3, 3))


def solve_square(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve ``a @ x = b`` for invertible matrices ``a``."""
    factors, _, order = lu_p.bind(a)
    x = triangular_solve(
        factors, taken_rows(b, order), left_side=True, lower=True, unit_diagonal=True
    )
    return triangular_solve(factors, x, left_side=True)


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that results from swapping row ``i`` with row ``pivots[i]``, in order.

    Args:
      pivots: ``int32[..., k]``, zero-based.
      permutation_size: the number of rows ``m``, at least ``k``.

    Returns:
      ``int32[..., m]``: the source of each row of the result.

    Raises:
      TypeError: if the pivots are not of dtype int32.
      ValueError: if there are more pivots than rows.

    >>> lu_pivots_to_permutation(np.array([2, 1], np.int32), 3).tolist()
    [2, 1, 0]
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=index(permutation_size))


@lu_pivots_to_permutation_p.rule(abstract)
def _lu_pivots_to_permutation_abstract(pivots, *, permutation_size):
    if pivots.dtype != _I32:
        raise TypeError(
            f"lu_pivots_to_permutation does not accept dtype {pivots.dtype.name} at position 0. "
            "Accepted dtypes at position 0 are subtypes of int32."
        )
    check_rank("lu_pivots_to_permutation", pivots, 1)
    if permutation_size < pivots.shape[-1]:
        raise ValueError(
            f"Output permutation size {permutation_size} has to exceed the trailing dimension of "
            f"the pivots. Got pivots size {pivots.shape[-1]}"
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), _I32)


@lu_pivots_to_permutation_p.rule(lower)
def _lu_pivots_to_permutation_lower(ctx, pivots, *, permutation_size):
    (aval,) = ctx.in_avals
    last, shape = aval.ndim - 1, (*aval.shape[:-1], permutation_size)

    def permutation(pivots):
        row_indices = broadcasted_iota(_I32, shape, last)

        def exchange(i, order):
            i = convert(i, _I32)
            j = dynamic_index_in_dim(pivots, i, last)
            here, there = eq(row_indices, i), eq(row_indices, j)
            x = dynamic_index_in_dim(order, i, last)
            y = reduce_sum(select_n(there, full_like(order, 0), order), (last,))
            order = select_n(there, order, to_shape(x, shape))
            return select_n(here, order, to_shape(expand_dims(y, (last,)), shape))

        return (
            fori_loop(0, aval.shape[-1], exchange, row_indices) if aval.shape[-1] else row_indices
        )

    return ctx.call(permutation, pivots)


@lu_pivots_to_permutation_p.rule(lower.on("cuda"))
def _lu_pivots_to_permutation_lower_cuda(ctx, pivots, *, permutation_size):
    (aval,) = ctx.in_avals
    if not aval.size:
        return _lu_pivots_to_permutation_lower(ctx, pivots, permutation_size=permutation_size)
    # Row-major: the vectors of a stack one after another
    layout = native.row_major(aval.ndim)
    return native.custom_call(
        "cu_lu_pivots_to_permutation", [pivots], ctx.out_avals,
        operand_layouts=[layout], result_layouts=[layout],
    )[0]  # fmt: skip


no_derivative(lu_pivots_to_permutation_p)
batched_in_front(lu_pivots_to_permutation_p)


@lu_pivots_to_permutation_p.rule(samples)
def _lu_pivots_to_permutation_samples():
    yield Sample(np.array([[1, 2], [0, 1]], np.int32), permutation_size=3)
    yield Sample(np.zeros((2, 0), np.int32), permutation_size=2)
