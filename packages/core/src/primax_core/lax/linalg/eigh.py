"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from ..._engine.jit_cache import library_function
from ..._ir.primitive import Primitive, abstract, jvp, lower
from ..._ir.samples import Sample, c64, f32, samples
from ..._trace.array import Array
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..._transform.zeros import Zero
from ..arithmetic import add, div, mul, sub
from ..conversion import convert
from ..elementwise import full_like
from ..selection import select_n
from . import cusolver, lapack
from .cholesky import symmetrized
from .matrices import (
    adjoint,
    as_column,
    as_row,
    batched_in_front,
    check_operands,
    columns,
    diagonal,
    eye_mask,
    matmul,
    nan_where_failed,
    real_dtype,
    real_part,
    scale_columns,
)

eigh_p: Final = Primitive("eigh", multiple_results=True)


class EighImplementation(enum.Enum):
    """Algorithms for Hermitian eigenvalue problems.

    CPUs support ``QR``: LAPACK's routine, a divide-and-conquer method. NVIDIA GPUs support ``QR``
    and ``JACOBI``, and choose one by the size of the matrices.
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


@partial(
    library_function,
    static_argnames=(
        "lower", "symmetrize_input", "sort_eigenvalues", "subset_by_index", "implementation",
    ),
)  # fmt: skip
def _eigh(x, *, lower, symmetrize_input, sort_eigenvalues, subset_by_index, implementation):
    x = symmetrized("eigh", x) if symmetrize_input else x
    vectors, values = eigh_p.bind(
        x, lower=lower, sort_eigenvalues=sort_eigenvalues, subset_by_index=subset_by_index,
        algorithm=implementation,
    )  # fmt: skip
    return vectors, values


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Eigenvectors ``v`` and eigenvalues ``w`` of Hermitian matrices: ``x @ v = v @ diag(w)``.

    Args:
      x: ``number[..., n, n]``; with ``symmetrize_input``, integers become floats.
      lower: if True, the lower triangle is read, otherwise the upper triangle.
      symmetrize_input: use ``(x + x^H) / 2`` instead of ``x``.
      sort_eigenvalues: sort in ascending order; on CPUs and GPUs they are always sorted.
      subset_by_index: ``(start, stop)``: only these eigenvalues, in ascending order.
      implementation: the algorithm; on the CPU ``None`` or ``EighImplementation.QR``, on NVIDIA
        GPUs also ``JACOBI``.

    Returns:
      ``v[..., n, k]``, with orthonormal columns, and real ``w[..., k]``, where ``k`` is ``n`` or
      the number of eigenvalues in the subset. NaN if the algorithm does not converge.

    Raises:
      ValueError: if the matrices are not square, or the subset is out of range.
      TypeError: if the dtype is narrower than 32 bits.
      NotImplementedError: if the platform does not support the algorithm.

    The derivative is that for Hermitian perturbations of ``x``. If eigenvalues are equal, their
    derivative is valid for symmetric functions of them, such as their sum; the derivative of their
    eigenvectors is not finite, because the eigenvectors are not unique.

    >>> v, w = eigh(np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w.tolist()
    [1.0, 2.0]
    """
    if subset_by_index is not None:
        start, stop = subset_by_index
        subset_by_index = operator.index(start), operator.index(stop)
    return _eigh(
        x, lower=bool(lower), symmetrize_input=bool(symmetrize_input),
        sort_eigenvalues=bool(sort_eigenvalues), subset_by_index=subset_by_index,
        implementation=None if implementation is None else EighImplementation(implementation),
    )  # fmt: skip


@eigh_p.rule(abstract)
def _abstract(x, *, subset_by_index, **_):
    check_operands("eigh", (x,), (2,))
    *stack, m, n = x.shape
    if m != n:
        raise ValueError(
            f"The input to linalg.eigh must have shape [..., n, n], got shape {x.shape}"
        )
    k = subset_size(subset_by_index, n)
    values = x.update(shape=(*stack, k), dtype=real_dtype(x.dtype))
    return [x.update(shape=(*stack, n, k)), values]


def subset_size(subset: tuple[int, int] | None, n: int) -> int:
    """The number of values in a subset.

    Raises:
      ValueError: if the subset is out of range.
    """
    if subset is None:
        return n
    start, stop = subset
    if not 0 <= start <= stop <= n:
        raise ValueError(
            f"subset_by_index={subset} is not a range of {n} values: it must be (start, stop) with "
            f"0 <= start <= stop <= {n}"
        )
    return stop - start


lapack.only_with_solvers(eigh_p)


@eigh_p.rule(lower.on("cpu"))
def _lower_cpu(ctx, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    if algorithm not in (None, EighImplementation.QR):
        raise NotImplementedError(
            f"eigh has no algorithm {algorithm.name} on the CPU: use EighImplementation.QR or None"
        )
    call = partial(lapack.call, ctx, "syevd", mode="V", uplo="L" if lower else "U")
    return _by_native_function(ctx, x, subset_by_index, call)


@eigh_p.rule(lower.on("cuda"))
def _lower_cuda(ctx, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    number = _NUMBERS_IN_CUSOLVER.get(algorithm)
    if number is None:
        raise NotImplementedError(
            f"eigh has no algorithm {algorithm.name} on NVIDIA GPUs: use EighImplementation.QR, "
            "JACOBI or None"
        )
    call = partial(cusolver.call, "cusolver_syevd", algorithm=number, lower=lower)
    return _by_native_function(ctx, x, subset_by_index, call)


_NUMBERS_IN_CUSOLVER: Final = {
    None: np.uint8(0),
    EighImplementation.QR: np.uint8(1),
    EighImplementation.JACOBI: np.uint8(2),
}


def _by_native_function(
    ctx: Any, x: Any, subset_by_index: tuple[int, int] | None, call: Callable[..., list[Any]]
) -> list[Any]:
    empty = lapack.empties(ctx)
    if empty is not None:
        return empty
    (aval,) = ctx.in_avals
    values = aval.update(shape=aval.shape[:-1], dtype=real_dtype(aval.dtype))
    types = [aval, values, lapack.info_of(aval.shape[:-2])]
    results = call([(x, aval)], types, {0: 0})

    def finish(vectors, values, info):
        outs = nan_where_failed(info, vectors, values)
        return [_subset(o, subset_by_index) for o in outs]

    return ctx.call(finish, *results, in_avals=types)


def _subset(x: Any, subset: tuple[int, int] | None) -> Any:
    return x if subset in (None, (0, typeof(x).shape[-1])) else columns(x, *subset)


@eigh_p.rule(jvp)
def _jvp(primals, tangents, *, subset_by_index, **params):
    (t,) = tangents
    vectors, values = eigh_p.bind(*primals, subset_by_index=None, **params)
    outs = [_subset(vectors, subset_by_index), _subset(values, subset_by_index)]
    if type(t) is Zero:
        return outs, [Zero.like(o) for o in outs]
    inside = matmul(adjoint(vectors), matmul(t, vectors))
    turn = mul(convert(inverse_gaps(values), typeof(vectors).dtype), inside)
    changes = [matmul(vectors, turn), real_part(diagonal(inside))]
    return outs, [_subset(c, subset_by_index) for c in changes]


def inverse_gaps(w: ArrayLike) -> Any:
    """``1 / (w[j] - w[i])`` at row ``i`` and column ``j``, zero on the diagonal."""
    gaps = sub(as_row(w), as_column(w))
    here = eye_mask(typeof(gaps).shape)
    one = full_like(gaps, 1)
    return select_n(here, div(one, select_n(here, gaps, one)), full_like(gaps, 0))


batched_in_front(eigh_p)


def _hermitian(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    x = x + np.swapaxes(x.conj(), -1, -2)
    return x + np.diag(10.0 * np.arange(shape[-1]))


def _symmetric(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return _hermitian(rng, shape).real


@eigh_p.rule(samples)
def _samples():
    plain = {"lower": True, "sort_eigenvalues": True, "algorithm": None}

    def call(subset=None):
        # The derivative is that for Hermitian perturbations.
        return lambda x: eigh_p.bind(
            mul(add(x, adjoint(x)), full_like(x, 0.5)), subset_by_index=subset, **plain
        )

    def free_of_gauge(outs):
        v, w = outs
        return [w, matmul(scale_columns(v, w), adjoint(v))]

    for operand in (f32(3, 3, make=_symmetric), f32(2, 2, 2, make=_symmetric), f32(0, 0),
                    c64(3, 3, make=_hermitian)):  # fmt: skip
        yield Sample(operand).set(call=call(), observe=free_of_gauge)
    yield Sample(f32(3, 3, make=_symmetric)).set(call=call((1, 3)), observe=free_of_gauge)
