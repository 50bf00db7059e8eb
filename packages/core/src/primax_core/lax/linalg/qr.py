"""QR decompositions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from ..._ir.avals import ShapedArray
from ..._ir.primitive import Primitive, abstract, jvp, lower
from ..._ir.samples import Sample, c64, f32, samples
from ..._ir.symbolic_dims import decided, min_dim
from ..._lower.lazy import hlo, shaped
from ..._trace.array import Array
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..._transform.zeros import Zero
from ..arithmetic import add, mul, sub
from ..elementwise import full_like
from ..joining import concatenate
from ..magnitude import complex, imag
from . import cusolver, lapack
from .householder import householder_product
from .lu import solve_square
from .matrices import (
    adjoint,
    batched_in_front,
    check_operands,
    columns,
    eye_like,
    is_complex,
    matmul,
    padded,
    rows,
    taken_rows,
    transposed,
    tril,
    triu,
)
from .triangular import triangular_solve

qr_p: Final = Primitive("qr", multiple_results=True)
geqrf_p: Final = Primitive("geqrf", multiple_results=True)
geqp3_p: Final = Primitive("geqp3", multiple_results=True)
_I32: Final = np.dtype(np.int32)


def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, ...]:
    """QR decomposition: ``x = Q @ R`` with orthonormal columns of ``Q`` and triangular ``R``.

    Args:
      x: ``inexact[..., m, n]`` of at least 32 bits.
      pivoting: order the columns so that the diagonal of ``R`` decreases in size.
      full_matrices: if True, ``Q`` is square, otherwise it has ``k = min(m, n)`` columns.
      use_magma: with ``pivoting`` on an NVIDIA GPU: use MAGMA, or (if False) the host. By default
        MAGMA if it is installed and the matrices are large. Without effect elsewhere.

    Returns:
      ``Q[..., m, m or k]`` and ``R[..., m or k, n]``; with ``pivoting`` also the order of the
      columns ``p[..., n]``, int32: ``x[:, p] = Q @ R``.

    Raises:
      TypeError: for other dtypes, or fewer than two axes.

    Derivatives exist if the first ``k`` columns are independent. The derivatives of the other
    columns of ``Q`` are those of a product of Householder reflections.

    >>> q, r = qr(np.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> abs(r).tolist()
    [[2.0, 3.0], [0.0, 1.0]]
    """
    outs = qr_p.bind(
        x, pivoting=bool(pivoting), full_matrices=bool(full_matrices), use_magma=use_magma
    )
    return tuple(outs)


@qr_p.rule(abstract)
def _qr_abstract(x, *, pivoting, full_matrices, use_magma):
    check_operands("qr", (x,), (2,))
    *stack, m, n = x.shape
    k = m if full_matrices else min_dim(m, n)
    outs = [x.update(shape=(*stack, m, k)), x.update(shape=(*stack, k, n))]
    return [*outs, x.update(shape=(*stack, n), dtype=_I32)] if pivoting else outs


@qr_p.rule(lower)
def _qr_lower(ctx, x, *, pivoting, full_matrices, use_magma):
    def decompose(x):
        m, n = typeof(x).shape[-2:]
        factors, *order, taus = (
            geqp3_p.bind(x, use_magma=use_magma) if pivoting else geqrf_p.bind(x)
        )
        k = m if full_matrices else min_dim(m, n)
        reflections = padded(columns(factors, 0, min_dim(n, k)), m, k)
        r = padded(triu(rows(factors, 0, min_dim(m, k))), k, n)
        return [householder_product(reflections, taus), r, *order]

    return ctx.call(decompose, x)


@qr_p.rule(jvp)
def _qr_jvp(primals, tangents, *, pivoting, full_matrices, use_magma):
    """``Q^H dA R^-1`` is ``Q^H dQ``, which is skew-Hermitian, plus an upper triangular matrix.

    If there are more columns than rows, this applies to the first columns, and implies ``dR``.
    """
    outs = qr_p.bind(*primals, pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma)
    (t,) = tangents
    if type(t) is Zero:
        return outs, [Zero.like(o) for o in outs]
    q, r, *order = outs
    if order:
        t = transposed(taken_rows(transposed(t), order[0]))
    m, n = typeof(t).shape[-2:]
    k, size = min_dim(m, n), typeof(q).shape[-1]
    thin, top = columns(q, 0, k), rows(r, 0, k)
    right = triangular_solve(columns(top, 0, k), columns(t, 0, k))
    inside = matmul(adjoint(thin), right)
    turn = _skew(inside)
    tq = matmul(thin, turn)
    if decided(lambda: k < m, True):
        tq = add(tq, sub(right, matmul(thin, inside)))
    tr = triu(sub(matmul(adjoint(thin), t), matmul(turn, top)))
    if decided(lambda: size > k, True):
        tq = concatenate([tq, _completion_tangent(thin, tq)], typeof(tq).ndim - 1)
    return outs, [tq, padded(tr, size, n), *(Zero.like(o) for o in order)]


def _skew(x: Any) -> Any:
    """The skew-Hermitian matrix with the elements of ``x`` below the diagonal."""
    below = tril(x, -1)
    turn = sub(below, adjoint(below))
    if not is_complex(typeof(x).dtype):
        return turn
    part = imag(x)
    return add(turn, complex(full_like(part, 0), mul(part, eye_like(part))))


def _completion_tangent(q: Any, tq: Any) -> Any:
    """Tangent of the additional columns that extend ``Q`` to a square matrix.

    A product of reflections with first columns ``Q`` is ``I + Y Y_1^-H Y^H``, where ``Y`` is ``Q``
    minus the identity, and ``Y_1`` its square upper part. This follows from ``I - V T V^H``.
    """
    m, k = typeof(q).shape[-2:]
    y = sub(q, eye_like(q))
    head, ty_head = rows(y, 0, k), rows(tq, 0, k)
    tail, ty_tail = rows(y, k, m), rows(tq, k, m)
    solved = solve_square(adjoint(head), adjoint(tail))
    change = sub(adjoint(ty_tail), matmul(adjoint(ty_head), solved))
    return add(matmul(tq, solved), matmul(y, solve_square(adjoint(head), change)))


batched_in_front(qr_p)


@qr_p.rule(samples)
def _qr_samples():
    plain = {"pivoting": False, "use_magma": None}
    yield Sample(f32(3, 3), full_matrices=False, **plain)
    yield Sample(f32(2, 4, 2), full_matrices=True, **plain)
    yield Sample(f32(2, 3), full_matrices=False, **plain)
    yield Sample(f32(3, 0), full_matrices=True, **plain)
    yield Sample(f32(3, 3), full_matrices=False, pivoting=True, use_magma=None)
    yield Sample(c64(4, 3), full_matrices=False, **plain)


# LAPACK's factored form: reflections that represent Q


def geqrf(a: ArrayLike) -> list[Array]:
    """QR factorization in the form of LAPACK: ``R`` and Householder vectors in one matrix.

    Args:
      a: ``inexact[..., m, n]``, of 32 or 64 bits.

    Returns:
      A list of a matrix of this shape, with ``R`` on and above the diagonal and Householder
      vectors below it, and ``taus[..., min(m, n)]``: the arguments of
      :func:`householder_product`.

    Raises:
      TypeError: if the operand has fewer than two axes or another dtype.

    The function has no derivative; :func:`qr` has one. Under ``vmap`` the mapped axis is a
    leading axis.

    >>> packed, taus = geqrf(np.array([[3.0], [4.0]]))
    >>> packed.tolist()
    [[-5.0], [0.5]]
    >>> print(np.asarray(taus).round(4))
    [1.6]
    """
    return geqrf_p.bind(a)


def geqp3(a: ArrayLike, *, use_magma: bool | None = None) -> list[Array]:
    """:func:`geqrf` with pivoting: the matrix, the order of the columns, and the factors.

    Args:
      a: ``inexact[..., m, n]``.
      use_magma: see :func:`qr`.
    """
    return geqp3_p.bind(a, use_magma=use_magma)


def _factored(x: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    *stack, m, n = x.shape
    return x, x.update(shape=(*stack, min_dim(m, n)))


@geqrf_p.rule(abstract)
def _geqrf_abstract(x):
    check_operands("geqrf", (x,), (2,))
    return list(_factored(x))


@geqp3_p.rule(abstract)
def _geqp3_abstract(x, *, use_magma):
    check_operands("geqp3", (x,), (2,))
    out, taus = _factored(x)
    return [out, x.update(shape=(*x.shape[:-2], x.shape[-1]), dtype=_I32), taus]


@geqrf_p.rule(lower.on("cpu"))
def _geqrf_lower_cpu(ctx, x):
    if not ctx.out_avals[0].size:
        return lapack.empties(ctx)
    return lapack.call(ctx, "geqrf", [(x, ctx.in_avals[0])], ctx.out_avals, {0: 0})


@geqrf_p.rule(lower.on("cuda"))
def _geqrf_lower_cuda(ctx, x):
    if not ctx.out_avals[0].size:
        return lapack.empties(ctx)
    return cusolver.call("cusolver_geqrf", [(x, ctx.in_avals[0])], ctx.out_avals, {0: 0})


@geqp3_p.rule(lower.on("cpu"))
def _geqp3_lower_cpu(ctx, x, *, use_magma):
    return _geqp3_by_native_function(ctx, x, partial(lapack.call, ctx, "geqp3"))


@geqp3_p.rule(lower.on("cuda"))
def _geqp3_lower_cuda(ctx, x, *, use_magma):
    ctx.needs.add("cuda_hybrid")
    call = partial(cusolver.call, "cuhybrid_geqp3", magma=cusolver.magma(use_magma))
    return _geqp3_by_native_function(ctx, x, call)


def _geqp3_by_native_function(ctx: Any, x: Any, call: Callable[..., list[Any]]) -> list[Any]:
    out, order, _ = ctx.out_avals
    if not out.size:
        return [shaped.zeros_of(a) for a in ctx.out_avals]
    free = shaped.zeros_of(order)
    operands = [(x, ctx.in_avals[0]), (free, order)]
    outs = call(operands, ctx.out_avals, {0: 0, 1: 1})
    outs[1] = hlo.subtract(outs[1], shaped.full(np.int32(1), order.shape))
    return outs


for _prim in (geqrf_p, geqp3_p):
    lapack.only_with_solvers(_prim)
    batched_in_front(_prim)
    _prim.unsupported(
        jvp, f"the derivative of {_prim.name} is not defined; that of lax.linalg.qr is"
    )

    @_prim.rule(samples)
    def _prim_samples(params={} if _prim is geqrf_p else {"use_magma": None}):
        yield Sample(f32(3, 2), **params)
        yield Sample(c64(2, 2, 3), **params)
        yield Sample(f32(0, 3), **params)
