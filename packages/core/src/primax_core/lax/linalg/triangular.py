"""Triangular linear systems."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from ..._ir.samples import Sample, bf16, c64, f32, samples
from ..._ir.symbolic_dims import is_static
from ..._lower.lazy import hlo, ir, mlir
from ..._trace.array import Array
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..._transform.batching import move_axis
from ..._transform.zeros import Zero, add_tangents, is_linear
from ..arithmetic import neg
from ..elementwise import broadcast_in_dim, check_dtypes, weak
from ..reshaping import reshape, squeeze
from . import lapack
from .matrices import (
    NUMBERS,
    check_batches,
    check_rank,
    check_square,
    conjugate,
    is_complex,
    matmul,
    transposed,
    tril,
    triu,
)

triangular_solve_p: Final = Primitive("triangular_solve")


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve ``op(a) @ x = b`` or ``x @ op(a) = b`` for triangular matrices ``a``.

    Args:
      a: ``inexact[..., n, n]``; only one triangle is read.
      b: ``[..., n, k]`` with ``left_side``, otherwise ``[..., k, n]``, of the dtype of ``a``; or
        vectors ``[..., n]``, with one axis less than ``a``.
      left_side: solve ``op(a) @ x = b`` if True, otherwise ``x @ op(a) = b``.
      lower: if True, the lower triangle is read, otherwise the upper triangle.
      transpose_a, conjugate_a: ``op`` is the transpose, the complex conjugate, or both.
      unit_diagonal: assume that the diagonal is one, without reading it.

    Returns:
      ``x``, of the shape of ``b``; infinite or NaN if a diagonal element is zero.

    Raises:
      TypeError: if the dtypes differ or are not inexact, or the ranks are incompatible.
      ValueError: if the sizes are incompatible.

    >>> a = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> triangular_solve(a, np.array([2.0, 3.0]), left_side=True, lower=True).tolist()
    [1.0, 2.0]
    """
    vector = typeof(b).ndim == typeof(a).ndim - 1 and typeof(b).ndim > 0
    if vector:
        shape = typeof(b).shape
        at = len(shape) if left_side else len(shape) - 1
        other_axes = tuple(i for i in range(len(shape) + 1) if i != at)
        b = broadcast_in_dim(b, (*shape[:at], 1, *shape[at:]), other_axes)
    conjugate_a = bool(conjugate_a) and is_complex(typeof(a).dtype)
    out = triangular_solve_p.bind(
        a, b, left_side=bool(left_side), lower=bool(lower), transpose_a=bool(transpose_a),
        conjugate_a=conjugate_a, unit_diagonal=bool(unit_diagonal),
    )  # fmt: skip
    return squeeze(out, (at,)) if vector else out


@triangular_solve_p.rule(abstract)
def _abstract(a, b, *, left_side, **_):
    check_dtypes("triangular_solve", (a, b), ("float", "complex"))
    check_rank("triangular_solve", a, 2)
    check_rank("triangular_solve", b, 2, 1)
    n = check_square("triangular_solve", a, "first input")
    check_batches("triangular_solve", (a, b), (2, 2))
    if b.shape[-2 if left_side else -1] != n:
        raise ValueError(
            f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}."
        )
    return b.update(weak_type=weak((a, b)))


@triangular_solve_p.rule(lower)
def _by_xla(ctx, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    aval = ctx.in_avals[0]
    if aval.dtype.itemsize < 4:
        avals = [x.update(dtype=np.dtype(np.float32)) for x in ctx.in_avals]
        a, b = (hlo.convert(mlir.type_of(w), v) for w, v in zip(avals, (a, b)))
    if conjugate_a and not transpose_a:
        a = ctx.call(conjugate, a, in_avals=(aval,))
    kind = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
    flags = (ir.BoolAttr.get(v) for v in (left_side, lower, unit_diagonal))
    out = hlo.triangular_solve(a, b, *flags, hlo.TransposeAttr.get(kind))
    return out if aval.dtype.itemsize >= 4 else hlo.convert(mlir.type_of(ctx.out_avals[0]), out)


# XLA's blocked algorithm is faster than LAPACK for stacks of tiny matrices, and for large matrices
# with many right-hand sides.
_TINY: Final = 2
_LARGE: Final = 1024


@triangular_solve_p.rule(lower.on("cpu"))
def _lower_cpu(ctx, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    a_aval, b_aval = ctx.in_avals
    n, suits_xla = a_aval.shape[-1], False
    if is_static(a_aval.shape) and is_static(b_aval.shape):
        suits_xla = n <= _TINY if a_aval.size > n**2 else min(b_aval.shape) >= _LARGE
    if suits_xla or b_aval.size == 0 or a_aval.dtype not in NUMBERS:
        return _by_xla(
            ctx, a, b, left_side=left_side, lower=lower, transpose_a=transpose_a,
            conjugate_a=conjugate_a, unit_diagonal=unit_diagonal,
        )  # fmt: skip
    if conjugate_a and not transpose_a:
        a = ctx.call(conjugate, a, in_avals=(a_aval,))
    kind = "N" if not transpose_a else "C" if conjugate_a else "T"
    # The transposed equations are solved in place: LAPACK's columns are rows here.
    flipped = [lapack.transposed(v, x) for v, x in ((a, a_aval), (b, b_aval))]
    (out,) = lapack.call(
        ctx, "trsm", flipped, [flipped[1][1]], {1: 0}, side="R" if left_side else "L",
        uplo="U" if lower else "L", trans_x=kind, diag="U" if unit_diagonal else "N",
    )  # fmt: skip
    return lapack.transposed(out, flipped[1][1])[0]


@triangular_solve_p.rule(jvp)
def _jvp(primals, tangents, **params):
    (a, b), (ta, tb) = primals, tangents
    out = triangular_solve_p.bind(a, b, **params)
    total: Any = Zero.like(out)
    if type(tb) is not Zero:
        total = triangular_solve_p.bind(a, tb, **params)
    if type(ta) is not Zero:
        change = _operator(ta, **params)
        change = matmul(change, out) if params["left_side"] else matmul(out, change)
        total = add_tangents(total, triangular_solve_p.bind(a, neg(change), **params))
    return out, total


def _operator(a, *, lower, transpose_a, conjugate_a, unit_diagonal, **_):
    """The coefficient matrix, from the triangle of ``a`` that is read."""
    a = tril(a, -unit_diagonal) if lower else triu(a, unit_diagonal)
    a = transposed(a) if transpose_a else a
    return conjugate(a) if conjugate_a else a


@triangular_solve_p.rule(transpose)
def _transpose(ct, a, b, *, transpose_a, **params):
    if not is_linear(b) or is_linear(a):
        raise TypeError("triangular_solve is linear in its second operand only")
    if type(ct) is Zero:
        return [None, None]
    return [None, triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **params)]


@triangular_solve_p.rule(batch)
def _batch(axis, args, dims, *, left_side, **params):
    (a, b), (da, db) = args, dims
    if da is None:  # one matrix: the examples become additional columns
        return _more_columns(a, b, db, left_side, params)
    a = move_axis(a, da, 0, axis.size)
    b = move_axis(b, db, 0, axis.size)
    return triangular_solve_p.bind(a, b, left_side=left_side, **params), 0


def _more_columns(a, b, dim, left_side, params):
    rank = typeof(b).ndim
    target = rank - 1 if left_side else rank - 2
    b = move_axis(b, dim, target, typeof(b).shape[dim])
    shape = typeof(b).shape
    # With left_side, columns (..., n, k, size); otherwise rows (..., k, size, n).
    if left_side:
        flat = (*shape[:-2], shape[-2] * shape[-1])
    else:
        flat = (*shape[:-3], shape[-3] * shape[-2], shape[-1])
    out = triangular_solve_p.bind(a, reshape(b, flat), left_side=left_side, **params)
    return reshape(out, shape), target


def _dominant(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Matrices with well-conditioned triangles."""
    return rng.uniform(-1, 1, shape) / shape[-1] + 2 * np.eye(shape[-1])


@triangular_solve_p.rule(samples)
def _samples():
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")

    def flags(letters: str) -> dict[str, bool]:
        return {name: letter in letters for name, letter in zip(names, "SLTCU")}

    yield Sample(f32(3, 3, make=_dominant), f32(3, 2), **flags("SL"))
    yield Sample(f32(2, 3, 3, make=_dominant), f32(2, 2, 3), **flags("T"))
    yield Sample(f32(3, 3, make=_dominant), f32(3, 3), **flags("SLTU"))
    yield Sample(c64(3, 3, make=_dominant), c64(3, 2), **flags("STC"))
    yield Sample(c64(3, 3, make=_dominant), c64(2, 3), **flags("LC"))
    yield Sample(f32(0, 0), f32(0, 2), **flags("S"))
    yield Sample(bf16(2, 2, make=_dominant), bf16(2, 2), **flags("S"))
