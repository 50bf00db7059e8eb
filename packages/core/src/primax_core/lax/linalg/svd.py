"""Singular value decompositions."""

from __future__ import annotations

import enum
import operator
from typing import Any, Final

import numpy as np

from ..._ir.primitive import Primitive, abstract, jvp, lower
from ..._ir.samples import Sample, c64, f32, samples
from ..._ir.symbolic_dims import min_dim
from ..._lower.lazy import mlir, shaped
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..._transform.zeros import Zero
from ..arithmetic import add, div, mul, neg, sub
from ..conversion import convert
from ..elementwise import full_like
from ..joining import concatenate
from ..magnitude import conj
from ..selection import select_n
from . import cusolver, lapack
from .eigh import inverse_gaps, subset_size
from .matrices import (
    adjoint,
    as_column,
    as_row,
    batched_in_front,
    check_operands,
    columns,
    diagonal,
    eye_mask,
    is_complex,
    matmul,
    nan_where_failed,
    real_dtype,
    real_part,
    rows,
    scale_columns,
)

svd_p: Final = Primitive("svd", multiple_results=True)


class SvdAlgorithm(enum.Enum):
    """Algorithms for singular value decompositions.

    CPUs support LAPACK's ``DIVIDE_AND_CONQUER``, the default, and ``QR``. NVIDIA GPUs support
    ``JACOBI``, ``QR`` and ``POLAR``; the default is ``JACOBI`` for matrices of at most 1024 rows
    and columns, and ``QR`` for others.
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Singular value decomposition: ``x = u @ diag(s) @ vh``.

    Args:
      x: ``inexact[..., m, n]`` of at least 32 bits.
      full_matrices: if True, ``u`` and ``vh`` are square, otherwise they have ``k = min(m, n)``
        vectors each.
      compute_uv: return singular vectors.
      subset_by_index: ``(start, stop)``: only these singular values, in descending order, and their
        vectors.
      algorithm: on CPUs ``DEFAULT``, ``QR`` or ``DIVIDE_AND_CONQUER``; on NVIDIA GPUs ``DEFAULT``,
        ``JACOBI``, ``QR`` or ``POLAR``.

    Returns:
      ``(u[..., m, m or k], s[..., k], vh[..., n or k, n])``, or ``s`` alone; ``s`` is real,
      nonnegative and descending. NaN if the algorithm does not converge.

    Raises:
      TypeError: for other dtypes, or fewer than two axes.
      ValueError: if the subset is out of range, or combined with ``full_matrices``.
      NotImplementedError: if the platform does not support the algorithm.

    If singular values are equal, their derivative is valid for symmetric functions of them. The
    derivative of singular vectors is not finite if their singular values are equal, or zero in a
    matrix that is not square. Vectors after the first ``k`` are assumed not to rotate among
    themselves.

    >>> svd(np.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False).tolist()
    [2.0, 1.0]
    """
    if subset_by_index is not None:
        start, stop = subset_by_index
        subset_by_index = operator.index(start), operator.index(stop)
        k = min(typeof(x).shape[-2:], default=0)
        if full_matrices and subset_by_index != (0, k):
            raise ValueError("full_matrices and subset_by_index cannot both be set")
    outs = svd_p.bind(
        x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv),
        subset_by_index=subset_by_index,
        algorithm=None if algorithm is None else SvdAlgorithm(algorithm),
    )  # fmt: skip
    if not compute_uv:
        return outs[0]
    s, u, vh = outs
    return u, s, vh


@svd_p.rule(abstract)
def _abstract(x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    check_operands("svd", (x,), (2,))
    *stack, m, n = x.shape
    k = min_dim(m, n)
    size = subset_size(subset_by_index, k)
    s = x.update(shape=(*stack, size), dtype=real_dtype(x.dtype))
    if not compute_uv:
        return [s]
    square_bases = full_matrices and size == k
    u = x.update(shape=(*stack, m, m if square_bases else size))
    return [s, u, x.update(shape=(*stack, n if square_bases else size, n))]


lapack.only_with_solvers(svd_p)
_ROUTINES: Final = {
    None: "gesdd",
    SvdAlgorithm.DEFAULT: "gesdd",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    SvdAlgorithm.QR: "gesvd",
}


@svd_p.rule(lower.on("cpu"))
def _lower_cpu(ctx, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    routine = _ROUTINES.get(algorithm)
    if routine is None:
        raise NotImplementedError(
            f"svd has no algorithm {algorithm.name} on the CPU: use SvdAlgorithm.DEFAULT, QR or "
            "DIVIDE_AND_CONQUER"
        )
    (aval,) = ctx.in_avals
    *stack, m, n = aval.shape
    if not aval.size:
        return _of_empty(ctx)
    k = min_dim(m, n)
    mu, nv = (m, n) if full_matrices else (k, k)
    types = [
        aval,
        aval.update(shape=(*stack, k), dtype=real_dtype(aval.dtype)),
        aval.update(shape=(*stack, m, mu)),
        aval.update(shape=(*stack, nv, n)),
        lapack.info_of(tuple(stack)),
    ]
    mode = "N" if not compute_uv else "A" if full_matrices else "S"
    results = lapack.call(ctx, routine, [(x, aval)], types, {0: 0}, mode=mode)

    def finish(s, u, vh, info):
        outs = nan_where_failed(info, *((s, u, vh) if compute_uv else (s,)))
        return _subsets(outs, subset_by_index)

    return ctx.call(finish, *results[1:], in_avals=types[1:])


_JACOBI_UP_TO: Final = 1024
_SMALL: Final = 32  # routines for many small matrices compute square bases


@svd_p.rule(lower.on("cuda"))
def _lower_cuda(ctx, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    (aval,) = ctx.in_avals
    m, n = aval.shape[-2:]
    if not aval.size:
        return _of_empty(ctx)
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        small = max(m, n) <= _JACOBI_UP_TO
        algorithm = SvdAlgorithm.JACOBI if small else SvdAlgorithm.QR
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER:
        raise NotImplementedError(
            "svd has no algorithm DIVIDE_AND_CONQUER on NVIDIA GPUs: use SvdAlgorithm.DEFAULT, "
            "JACOBI, QR or POLAR"
        )
    if algorithm is SvdAlgorithm.QR:
        s, u, vh, info = _by_qr_on_gpu(ctx, x, full_matrices, compute_uv)
    else:
        s, u, vh, info = _by_rotations_on_gpu(ctx, x, full_matrices, compute_uv, algorithm)

    def finish(s, u, vh, info):
        if not compute_uv:
            bases = []
        elif full_matrices:
            bases = [u, vh]
        else:
            k = min_dim(m, n)
            bases = [columns(u, 0, k), rows(vh, 0, k)]
        return _subsets(nan_where_failed(info, s, *bases), subset_by_index)

    values, types = zip(s, u, vh, info)
    return ctx.call(finish, *values, in_avals=types)


def _by_qr_on_gpu(ctx: Any, x: Any, full_matrices: bool, compute_uv: bool) -> list[tuple]:
    """``s``, ``u``, ``vh`` and the status, with types. cuSOLVER takes at least as many rows as
    columns, so the transposed matrix is decomposed otherwise."""
    operand = (x, ctx.in_avals[0])
    wide = operand[1].shape[-2] < operand[1].shape[-1]
    operand = lapack.transposed(*operand) if wide else operand
    aval = operand[1]
    *stack, m, n = aval.shape
    types = [
        aval,
        aval.update(shape=(*stack, n), dtype=real_dtype(aval.dtype)),
        aval.update(shape=(*stack, m, m if full_matrices else n) if compute_uv else ()),
        aval.update(shape=(*stack, n, n) if compute_uv else ()),
        lapack.info_of(tuple(stack)),
    ]
    results = cusolver.call(
        "cusolver_gesvd", [operand], types, {0: 0}, compute_uv=compute_uv,
        full_matrices=full_matrices, transposed=False,
    )  # fmt: skip
    _, s, u, vh, info = zip(results, types)
    if wide and compute_uv:
        u, vh = lapack.transposed(*vh), lapack.transposed(*u)
    return [s, u, vh, info]


def _by_rotations_on_gpu(
    ctx: Any, x: Any, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm
) -> list[tuple]:
    """``s``, ``u``, ``vh`` and the status, with types; the routines return ``v``."""
    (aval,) = ctx.in_avals
    *stack, m, n = aval.shape
    k = min_dim(m, n)
    square = (full_matrices and compute_uv) or (algorithm is SvdAlgorithm.JACOBI and k <= _SMALL)
    types = [
        aval,
        aval.update(shape=(*stack, k), dtype=real_dtype(aval.dtype)),
        aval.update(shape=(*stack, m, m if square else k)),
        aval.update(shape=(*stack, n, n if square else k)),
        lapack.info_of(tuple(stack)),
    ]
    name = "gesvdj" if algorithm is SvdAlgorithm.JACOBI else "gesvdp"
    results = cusolver.call(
        f"cusolver_{name}", [(x, aval)], types, {0: 0}, compute_uv=compute_uv,
        full_matrices=square,
    )  # fmt: skip
    _, s, u, v, info = zip(results, types)
    vh, vh_type = lapack.transposed(*v)
    if is_complex(aval.dtype):
        vh = ctx.call(conj, vh, in_avals=[vh_type])
    return [s, u, (vh, vh_type), info]


def _of_empty(ctx) -> list:
    """Results for empty matrices: the bases are arbitrary, here the identity."""
    return [
        shaped.zeros_of(a)
        if i == 0
        else mlir.constant(np.broadcast_to(np.eye(*a.shape[-2:], dtype=a.dtype), a.shape))
        for i, a in enumerate(ctx.out_avals)
    ]


def _subsets(outs: list, subset: tuple[int, int] | None) -> list:
    if subset in (None, (0, typeof(outs[0]).shape[-1])):
        return list(outs)
    return [f(x, *subset) for f, x in zip((columns, columns, rows), outs)]


@svd_p.rule(jvp)
def _jvp(primals, tangents, *, full_matrices, compute_uv, subset_by_index, algorithm):
    (x,), (t,) = primals, tangents
    s, u, vh = svd_p.bind(
        x, full_matrices=full_matrices and compute_uv, compute_uv=True, subset_by_index=None,
        algorithm=algorithm,
    )  # fmt: skip
    outs = _subsets([s, u, vh] if compute_uv else [s], subset_by_index)
    if type(t) is Zero:
        return outs, [Zero.like(o) for o in outs]
    k, v = typeof(s).shape[-1], adjoint(vh)
    inside = matmul(adjoint(columns(u, 0, k)), matmul(t, columns(v, 0, k)))
    changes = [real_part(diagonal(inside))]
    if compute_uv:
        left, right = _rotations(inside, s)
        changes.append(_basis_tangent(u, matmul(t, columns(v, 0, k)), left, s))
        tv = _basis_tangent(v, matmul(adjoint(t), columns(u, 0, k)), right, s)
        changes.append(adjoint(tv))
    return outs, _subsets(changes, subset_by_index)


def _rotations(inside: Any, s: Any) -> tuple[Any, Any]:
    """``U^H dU`` and ``V^H dV``, skew-Hermitian, from ``U^H dA V``.

    ``U^H dA V = (U^H dU) S + dS - S (V^H dV)`` determines them, except for a common phase of the
    vectors of each pair, which is assigned to ``U``: the Hermitian part of the left side is divided
    by differences of singular values, the other part by sums.
    """
    dtype = typeof(inside).dtype
    half = full_like(inside, 0.5)
    even = mul(add(inside, adjoint(inside)), half)
    odd = mul(sub(inside, adjoint(inside)), half)
    even = mul(even, convert(inverse_gaps(s), dtype))
    sums = add(as_row(s), as_column(s))
    # A zero divisor on the diagonal has a zero dividend, unless the matrix is complex.
    here = eye_mask(typeof(sums).shape)
    if not is_complex(dtype):
        sums = select_n(here, sums, full_like(sums, 1))
    odd = div(odd, convert(sums, dtype))
    left, right = add(even, odd), sub(even, odd)
    if is_complex(dtype):
        phase = select_n(here, full_like(odd, 0), odd)
        return add(left, phase), add(right, phase)
    return left, right


def _basis_tangent(basis: Any, image: Any, turn: Any, s: Any) -> Any:
    """Tangent of singular vectors on one side.

    Args:
      basis: all requested vectors, ``[..., d, k]`` or ``[..., d, d]``.
      image: ``dA V``, or for the other side ``dA^H U``.
      turn: the rotation of the first ``k`` vectors among themselves.
    """
    d, k = typeof(basis).shape[-2], typeof(s).shape[-1]
    first = columns(basis, 0, k)
    out = matmul(first, turn)
    if d == k:
        return out
    outside = sub(image, matmul(first, matmul(adjoint(first), image)))
    outside = scale_columns(outside, div(full_like(s, 1), s))
    out = add(out, outside)
    if typeof(basis).shape[-1] == k:
        return out
    rest = columns(basis, k, d)
    others = matmul(first, adjoint(matmul(adjoint(rest), outside)))
    return concatenate([out, neg(others)], typeof(out).ndim - 1)


batched_in_front(svd_p)


def _well_separated(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Matrices with well-separated singular values."""
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return x + np.eye(*shape[-2:]) * (6.0 * np.arange(1, shape[-1] + 1))


@svd_p.rule(samples)
def _samples():
    plain = {"algorithm": None, "subset_by_index": None, "compute_uv": True}

    def real(*shape):
        return f32(*shape, make=lambda rng, shape: _well_separated(rng, shape).real)

    def free_of_gauge(outs):
        s, u, vh = outs
        k = typeof(s).shape[-1]
        u, vh = columns(u, 0, k), rows(vh, 0, k)
        weighted = scale_columns(u, mul(s, s))
        return [s, matmul(weighted, vh), matmul(scale_columns(u, s), adjoint(u))]

    def free_of_gauge_full(outs):
        s, u, vh = outs
        k = typeof(s).shape[-1]
        spaces = [columns(u, k, typeof(u).shape[-1]), columns(adjoint(vh), k, typeof(vh).shape[-1])]
        return [*free_of_gauge(outs), *(matmul(b, adjoint(b)) for b in spaces)]

    yield Sample(real(3, 3), full_matrices=False, **plain).set(observe=free_of_gauge)
    yield Sample(real(2, 4, 2), full_matrices=False, **plain).set(observe=free_of_gauge)
    yield Sample(real(2, 3), full_matrices=True, **plain).set(observe=free_of_gauge_full)
    yield Sample(real(3, 2), full_matrices=True, **plain).set(observe=free_of_gauge_full)
    complex_one = c64(3, 2, make=_well_separated)
    yield Sample(complex_one, full_matrices=False, **plain).set(observe=free_of_gauge)
    yield Sample(f32(0, 2), full_matrices=True, **plain)
    yield Sample(real(3, 2), full_matrices=False, **{**plain, "compute_uv": False})
    yield Sample(real(3, 3), full_matrices=False, **{**plain, "subset_by_index": (0, 2)}).set(
        observe=free_of_gauge
    )
