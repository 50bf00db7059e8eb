"""Reduction to tridiagonal matrices, and tridiagonal linear systems."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..._ir.primitive import Primitive, abstract, jvp, lower, transpose
from ..._ir.samples import Sample, c64, f32, samples
from ..._trace.array import Array
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..._transform.zeros import Zero, add_tangents, is_linear, zeros
from ..arithmetic import div, mul, neg, sub
from ..comparison import eq
from ..control.scan import scan
from ..elementwise import full_like, to_shape, weak
from ..permuting import transpose as transpose_axes
from ..selection import select_n
from ..slicing import pad
from . import cusolver, lapack
from .matrices import (
    as_column,
    batched_in_front,
    check_batches,
    check_operands,
    nan_where_failed,
    real_dtype,
)

tridiagonal_p: Final = Primitive("tridiagonal", multiple_results=True)
tridiagonal_solve_p: Final = Primitive("tridiagonal_solve")
_SMALLEST_OF_CUSPARSE: Final = 3


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Reduce Hermitian matrices to real tridiagonal matrices: ``a = q @ t @ q^H``.

    Args:
      a: ``inexact[..., n, n]`` of at least 32 bits, Hermitian.
      lower: if True, the lower triangle is read, otherwise the upper triangle.

    Returns:
      ``[a_out, d, e, taus]``: a matrix with, outside its tridiagonal part, the vectors of the
      Householder reflections whose product is ``q``; the real diagonal ``d[..., n]`` and
      off-diagonal ``e[..., n - 1]`` of ``t``; the factors of the reflections ``[..., n - 1]``.

    Raises:
      TypeError: for other dtypes, or fewer than two axes.
      ValueError: if the matrices are not square, or empty.

    The function has no derivative.

    >>> [x.tolist() for x in tridiagonal(np.array([[1.0, 2.0], [2.0, 3.0]]))[1:3]]
    [[1.0, 3.0], [2.0]]
    """
    return tridiagonal_p.bind(a, lower=bool(lower))


@tridiagonal_p.rule(abstract)
def _tridiagonal_abstract(a, *, lower):
    check_operands("tridiagonal", (a,), (2,))
    *stack, m, n = a.shape
    if m != n or not n:
        raise ValueError(f"The input to tridiagonal must be a square matrix. Got shape {a.shape}.")
    real = real_dtype(a.dtype)
    d = a.update(shape=(*stack, n), dtype=real)
    taus = a.update(shape=(*stack, n - 1))
    return [a, d, taus.update(dtype=real), taus]


lapack.only_with_solvers(tridiagonal_p)


@tridiagonal_p.rule(lower.on("cpu"))
def _tridiagonal_lower_cpu(ctx, a, *, lower):
    empty = lapack.empties(ctx)
    if empty is not None:
        return empty
    info = lapack.info_of(ctx.in_avals[0].shape[:-2])
    types = [*ctx.out_avals, info]
    uplo = "L" if lower else "U"
    *outs, failed = lapack.call(ctx, "sytrd", [(a, ctx.in_avals[0])], types, {0: 0}, uplo=uplo)
    return ctx.call(nan_where_failed, failed, *outs, in_avals=[info, *ctx.out_avals])


@tridiagonal_p.rule(lower.on("cuda"))
def _tridiagonal_lower_cuda(ctx, a, *, lower):
    empty = lapack.empties(ctx)
    if empty is not None:
        return empty
    info = lapack.info_of(ctx.in_avals[0].shape[:-2])
    types = [*ctx.out_avals, info]
    *outs, failed = cusolver.call(
        "cusolver_sytrd", [(a, ctx.in_avals[0])], types, {0: 0}, lower=lower
    )
    return ctx.call(nan_where_failed, failed, *outs, in_avals=[info, *ctx.out_avals])


tridiagonal_p.unsupported(jvp, "the derivative of a tridiagonal reduction is not defined here")
batched_in_front(tridiagonal_p)


@tridiagonal_p.rule(samples)
def _tridiagonal_samples():
    yield Sample(f32(3, 3), lower=True)
    yield Sample(c64(2, 3, 3), lower=False)
    yield Sample(f32(1, 1), lower=True)


# Equations


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solve ``t @ x = b`` for tridiagonal matrices ``t``.

    Args:
      dl: the subdiagonal, ``inexact[..., n]``: element ``i`` is in row ``i``, and the first element
        is ignored.
      d: the main diagonal, ``[..., n]``.
      du: the superdiagonal, ``[..., n]``; the last element is ignored.
      b: ``[..., n, k]``.
      perturb_singular: replace zero pivots by tiny numbers.

    Returns:
      ``[..., n, k]``; on the CPU NaN for singular matrices.

    Raises:
      TypeError: if dtypes, shapes or ranks are incompatible.

    On CPUs and NVIDIA GPUs rows are pivoted for stability. Other platforms use the Thomas
    algorithm, without pivoting.

    >>> d = np.array([2.0, 2.0])
    >>> tridiagonal_solve(d * 0, d, d * 0, np.array([[2.0], [4.0]])).tolist()
    [[1.0], [2.0]]
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))


@tridiagonal_solve_p.rule(abstract)
def _tridiagonal_solve_abstract(dl, d, du, b, *, perturb_singular):
    avals, ranks = (dl, d, du, b), (1, 1, 1, 2)
    check_operands("tridiagonal_solve", avals, ranks)
    check_batches("tridiagonal_solve", avals, ranks)
    if dl.shape != d.shape or du.shape != d.shape:
        raise TypeError(
            "tridiagonal_solve requires that all diagonal arguments have the same shape."
        )
    if b.shape[:-1] != d.shape:
        raise TypeError(
            "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal the "
            "dimensions of the diagonal arguments."
        )
    return b.update(weak_type=weak(avals))


def _down(x: Any, axis: int) -> Any:
    """Elements shifted forward by one along an axis, with a zero first."""
    return _moved(x, axis, 1)


def _up(x: Any, axis: int) -> Any:
    """Elements shifted backward by one along an axis, with a zero last."""
    return _moved(x, axis, -1)


def _moved(x: Any, axis: int, by: int) -> Any:
    if not typeof(x).shape[axis]:
        return x
    config = [(0, 0, 0)] * typeof(x).ndim
    config[axis] = (by, -by, 0)
    return pad(x, np.zeros((), typeof(x).dtype)[()], config)


def _thomas(dl: Any, d: Any, du: Any, b: Any, perturb: bool) -> Array:
    """The Thomas algorithm: forward elimination and back substitution, without pivoting."""
    n = typeof(d).ndim - 1
    order = (n, *range(n))
    low, main, high = (as_column(transpose_axes(x, order)) for x in (_down(_up(dl, n), n), d, du))
    right = transpose_axes(b, (*order, n + 1))
    tiny = np.finfo(typeof(d).dtype).tiny

    def eliminate(above, row):
        ratio, x = above
        low, main, high, right = row
        pivot = sub(main, mul(low, ratio))
        if perturb:
            pivot = select_n(eq(pivot, full_like(pivot, 0)), pivot, full_like(pivot, tiny))
        shape = typeof(right).shape
        above = div(high, pivot), div(sub(right, mul(low, x)), to_shape(pivot, shape))
        return above, above

    def substitute(below, row):
        ratio, x = row
        x = sub(x, mul(ratio, below))
        return x, x

    last = zeros(typeof(right).without_axis(0))
    first = zeros(typeof(main).without_axis(0))
    _, rows = scan(eliminate, (first, last), (low, main, high, right))
    _, x = scan(substitute, last, rows, reverse=True)
    return transpose_axes(x, (*range(1, n + 1), 0, n + 1))


@tridiagonal_solve_p.rule(lower)
def _tridiagonal_solve_lower(ctx, dl, d, du, b, *, perturb_singular):
    return ctx.call(lambda *args: _thomas(*args, perturb_singular), dl, d, du, b)


@tridiagonal_solve_p.rule(lower.on("cpu"))
def _tridiagonal_solve_lower_cpu(ctx, *values, perturb_singular):
    if not ctx.out_avals[0].size:
        return values[3]
    avals = list(ctx.in_avals)
    operands = list(zip(values, avals))
    if perturb_singular:
        target = "tridiagonal_solve_perturbed_ffi"
        return lapack.call_target(ctx, target, operands, ctx.out_avals)[0]
    info = lapack.info_of(avals[1].shape[:-1])
    aliases = {i: i for i in range(4)}
    *_, out, failed = lapack.call(ctx, "gtsv", operands, [*avals, info], aliases)
    return ctx.call(nan_where_failed, failed, out, in_avals=[info, avals[3]])[0]


@tridiagonal_solve_p.rule(lower.on("cuda"))
def _tridiagonal_solve_lower_cuda(ctx, *values, perturb_singular):
    b = ctx.out_avals[0]
    operands = list(zip(values, ctx.in_avals))
    if perturb_singular and b.size:
        return cusolver.call("cu_tridiagonal_solve_perturbed", operands, ctx.out_avals)[0]
    if b.size and b.shape[-2] >= _SMALLEST_OF_CUSPARSE:
        return cusolver.call("cusparse_gtsv2", operands, ctx.out_avals, {3: 0})[0]
    return _tridiagonal_solve_lower(ctx, *values, perturb_singular=perturb_singular)


@tridiagonal_solve_p.rule(jvp)
def _tridiagonal_solve_jvp(primals, tangents, **params):
    dl, d, du, b = primals
    out = tridiagonal_solve_p.bind(dl, d, du, b, **params)
    axis = typeof(out).ndim - 2
    change: Any = tangents[3]
    for t, x in zip(tangents, (_down(out, axis), out, _up(out, axis))):
        if type(t) is not Zero:
            change = add_tangents(change, neg(mul(as_column(t), x)))
    if type(change) is Zero:
        return out, Zero.like(out)
    return out, tridiagonal_solve_p.bind(dl, d, du, change, **params)


@tridiagonal_solve_p.rule(transpose)
def _tridiagonal_solve_transpose(ct, dl, d, du, b, **params):
    assert is_linear(b)
    if type(ct) is Zero:
        return [None] * 4
    axis = typeof(d).ndim - 1
    solution = tridiagonal_solve_p.bind(_down(du, axis), d, _up(dl, axis), ct, **params)
    return [None, None, None, solution]


batched_in_front(tridiagonal_solve_p)


def _dominant(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return 5 + rng.standard_normal(shape)


@tridiagonal_solve_p.rule(samples)
def _tridiagonal_solve_samples():
    plain = {"perturb_singular": False}
    yield Sample(f32(3), f32(3, make=_dominant), f32(3), f32(3, 2), **plain)
    yield Sample(f32(2, 4), f32(2, 4, make=_dominant), f32(2, 4), f32(2, 4, 1), **plain)
    yield Sample(c64(3), c64(3, make=_dominant), c64(3), c64(3, 2), **plain)
    yield Sample(f32(3), f32(3, make=_dominant), f32(3), f32(3, 2), perturb_singular=True)
    yield Sample(f32(0), f32(0), f32(0), f32(0, 2), **plain)
