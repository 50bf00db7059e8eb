"""Products of Householder reflections ``I - tau v v^H``.

A product ``H_1 ... H_k`` is ``I - V T V^H``, with the reflections' vectors in the columns of ``V``
and an upper triangular ``T`` with ``T^-1 = diag(1/tau) + U``, where ``U`` is the strict upper
triangle of ``V^H V``: T. Joffrain et al., "Accumulating Householder transformations, revisited",
ACM TOMS 32, 2006. The rules use ``T = (I + D U)^-1 D`` with ``D = diag(tau)``, which is also valid
for ``tau = 0``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ..._ir.primitive import Primitive, abstract, jvp, lower, transpose
from ..._ir.samples import Sample, c64, f32, samples
from ..._ir.symbolic_dims import min_dim
from ..._trace.array import Array
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..._transform.jvp import jvp_of
from ..._transform.zeros import Zero, is_linear
from ..arithmetic import add, mul, sub
from ..conversion import convert
from ..elementwise import weak
from . import cusolver, lapack
from .matrices import (
    adjoint,
    as_column,
    batched_in_front,
    check_batches,
    check_operands,
    columns,
    conjugate,
    eye_like,
    eye_mask,
    matmul,
    rows,
    tril,
    triu,
)
from .triangular import triangular_solve

householder_product_p: Final = Primitive("householder_product")
ormqr_p: Final = Primitive("ormqr")


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of a product of Householder reflections ``H_1 @ ... @ H_k``.

    Args:
      a: ``inexact[..., m, n]`` with ``m >= n``. The elements of column ``i`` below the diagonal are
        the vector of reflection ``i``. Its diagonal element is one, the elements above are zero.
      taus: ``[..., k]`` with ``k <= n``; reflection ``i`` is ``I - taus[i] v v^H``.

    Returns:
      ``[..., m, n]``.

    Raises:
      TypeError: for other dtypes or numbers of axes.
      ValueError: if the sizes do not fit.

    >>> import numpy as np
    >>> householder_product(np.zeros((2, 1)), np.array([2.0])).tolist()
    [[-1.0], [-0.0]]
    """
    return householder_product_p.bind(a, taus)


@householder_product_p.rule(abstract)
def _householder_product_abstract(a, taus):
    check_operands("householder_product", (a, taus), (2, 1))
    check_batches("householder_product", (a, taus), (2, 1))
    m, n = a.shape[-2:]
    if m < n:
        raise ValueError(
            "The first argument to householder_product must have at least as many rows as "
            f"columns, got shape {a.shape}"
        )
    if taus.shape[-1] > n:
        raise ValueError(
            "The second argument to householder_product must not have more rows than the minimum "
            "of the first argument's rows and columns."
        )
    return a.update(weak_type=weak((a, taus)))


def _product(a: Any, taus: Any) -> Array:
    n = typeof(a).shape[-1]
    vectors, triangle = _compact(a, taus)
    inner = triangle(adjoint(rows(vectors, 0, n)), False)
    return sub(convert(eye_mask(typeof(a).shape), typeof(a).dtype), matmul(vectors, inner))


def _compact(a: Any, taus: Any):
    """``V``, and a function that multiplies a matrix by ``T`` (or by ``T^H``)."""
    k = typeof(taus).shape[-1]
    a = columns(a, 0, k)
    vectors = add(tril(a, -1), eye_like(a))
    scale = as_column(taus)
    inverse = mul(triu(matmul(adjoint(vectors), vectors), 1), scale)

    def triangle(x, is_adjoint):
        if is_adjoint:
            x = triangular_solve(
                inverse, x, left_side=True, transpose_a=True, conjugate_a=True, unit_diagonal=True
            )
            return mul(x, conjugate(scale))
        return triangular_solve(inverse, mul(x, scale), left_side=True, unit_diagonal=True)

    return vectors, triangle


@householder_product_p.rule(lower)
def _householder_product_lower(ctx, a, taus):
    return ctx.call(_product, a, taus)


@householder_product_p.rule(lower.on("cpu"))
def _householder_product_lower_cpu(ctx, a, taus):
    if any(v.size == 0 for v in ctx.in_avals):
        return ctx.call(_product, a, taus)
    operands = list(zip((a, taus), ctx.in_avals))
    return lapack.call(ctx, "orgqr", operands, ctx.out_avals, {0: 0})[0]


@householder_product_p.rule(lower.on("cuda"))
def _householder_product_lower_cuda(ctx, a, taus):
    if any(v.size == 0 for v in ctx.in_avals):
        return ctx.call(_product, a, taus)
    operands = list(zip((a, taus), ctx.in_avals))
    return cusolver.call("cusolver_orgqr", operands, ctx.out_avals, {0: 0})[0]


@householder_product_p.rule(jvp)
def _householder_product_jvp(primals, tangents):
    out = householder_product_p.bind(*primals)
    in_tangents = [None if type(t) is Zero else t for t in tangents]
    return out, jvp_of(lambda *args: [_product(*args)], primals, in_tangents)[1][0]


batched_in_front(householder_product_p)


@householder_product_p.rule(samples)
def _householder_product_samples():
    yield Sample(f32(3, 2), f32(2))
    yield Sample(f32(2, 3, 3), f32(2, 1))
    yield Sample(f32(2, 0), f32(0))
    yield Sample(c64(3, 2), c64(2))


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Product of Householder reflections ``Q`` and a matrix, without forming ``Q``.

    Args:
      a, taus: the reflections, ``[..., r, n]`` and ``[..., k]``; see :func:`householder_product`.
      c: ``[..., m, n]``, with ``m = r`` if ``left``, otherwise ``n = r``.
      left: compute ``Q @ c`` if True, otherwise ``c @ Q``.
      transpose: use the conjugate transpose of ``Q``.

    Returns:
      ``[..., m, n]``.

    Raises:
      TypeError: for other dtypes or numbers of axes.
      ValueError: if the sizes do not fit.

    >>> import numpy as np
    >>> ormqr(np.zeros((2, 1)), np.array([2.0]), np.ones((2, 2))).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """
    return ormqr_p.bind(a, taus, c, left=bool(left), transpose=bool(transpose))


@ormqr_p.rule(abstract)
def _ormqr_abstract(a, taus, c, *, left, transpose):
    check_operands("ormqr", (a, taus, c), (2, 1, 2))
    check_batches("ormqr", (a, taus, c), (2, 1, 2))
    r = a.shape[-2]
    if left and c.shape[-2] != r:
        raise ValueError(
            "ormqr with left=True expects c to have the same number of rows as the Householder "
            f"matrix a. Got a shape {a.shape} and c shape {c.shape}."
        )
    if not left and c.shape[-1] != r:
        raise ValueError(
            "ormqr with left=False expects c to have the same number of columns as the "
            f"Householder matrix a has rows. Got a shape {a.shape} and c shape {c.shape}."
        )
    if taus.shape[-1] > min_dim(*a.shape[-2:]):
        raise ValueError(
            "ormqr expects at most as many taus as the Householder matrix a has rows and columns. "
            f"Got a shape {a.shape} and taus shape {taus.shape}."
        )
    return c.update(weak_type=weak((a, taus, c)))


def _multiplied(a: Any, taus: Any, c: Any, left: bool, transpose: bool) -> Array:
    vectors, triangle = _compact(a, taus)
    if left:
        return sub(c, matmul(vectors, triangle(matmul(adjoint(vectors), c), transpose)))
    # C V T V^H is the adjoint of V T^H V^H C^H.
    inner = triangle(matmul(adjoint(vectors), adjoint(c)), not transpose)
    return sub(c, adjoint(matmul(vectors, inner)))


@ormqr_p.rule(lower)
def _ormqr_by_products(ctx, a, taus, c, *, left, transpose):
    return ctx.call(lambda *args: _multiplied(*args, left, transpose), a, taus, c)


@ormqr_p.rule(lower.on("cpu"))
def _ormqr_lower_cpu(ctx, a, taus, c, *, left, transpose):
    call = partial(lapack.call, ctx, "ormqr")
    return _ormqr_by_native_function(ctx, a, taus, c, left, transpose, call)


@ormqr_p.rule(lower.on("cuda"))
def _ormqr_lower_cuda(ctx, a, taus, c, *, left, transpose):
    call = partial(cusolver.call, "cusolver_ormqr")
    return _ormqr_by_native_function(ctx, a, taus, c, left, transpose, call)


def _ormqr_by_native_function(
    ctx: Any, a: Any, taus: Any, c: Any, left: bool, transpose: bool, call: Callable[..., list[Any]]
) -> Any:
    if any(v.size == 0 for v in ctx.in_avals):
        return _ormqr_by_products(ctx, a, taus, c, left=left, transpose=transpose)
    k = ctx.in_avals[1].shape[-1]
    a_aval = ctx.in_avals[0].update(shape=(*ctx.in_avals[0].shape[:-1], k))
    # The routines derive the number of reflections from the number of columns.
    a = ctx.call(lambda a: columns(a, 0, k), a, in_avals=ctx.in_avals[:1])
    operands = [(a, a_aval), *list(zip((taus, c), ctx.in_avals[1:]))]
    return call(operands, ctx.out_avals, {2: 0}, left=left, transpose=transpose)[0]


@ormqr_p.rule(jvp)
def _ormqr_jvp(primals, tangents, *, left, transpose):
    a, taus, c = primals
    out = ormqr_p.bind(a, taus, c, left=left, transpose=transpose)
    in_tangents = [None if type(t) is Zero else t for t in tangents]
    if in_tangents[0] is None and in_tangents[1] is None:
        return out, ormqr_p.bind(a, taus, tangents[2], left=left, transpose=transpose)
    out_tangents = jvp_of(lambda *args: [_multiplied(*args, left, transpose)], primals, in_tangents)
    return out, out_tangents[1][0]


@ormqr_p.rule(transpose)
def _ormqr_transpose(ct, a, taus, c, *, left, transpose):
    assert is_linear(c)
    if type(ct) is Zero:
        return [None, None, None]
    product = ormqr_p.bind(a, taus, conjugate(ct), left=left, transpose=not transpose)
    return [None, None, conjugate(product)]


batched_in_front(ormqr_p)


@ormqr_p.rule(samples)
def _ormqr_samples():
    yield Sample(f32(3, 2), f32(2), f32(3, 4), left=True, transpose=False)
    yield Sample(f32(2, 3, 3), f32(2, 2), f32(2, 4, 3), left=False, transpose=True)
    yield Sample(f32(3, 2), f32(2), f32(3, 0), left=True, transpose=True)
    yield Sample(c64(3, 2), c64(2), c64(3, 3), left=False, transpose=False)
