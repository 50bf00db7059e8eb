"""Schur decompositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..._ir.primitive import Primitive, abstract, jvp, lower
from ..._ir.samples import Sample, c64, f32, samples
from ..._trace.array import Array
from ..._trace.typing import ArrayLike
from . import lapack
from .matrices import batched_in_front, check_operands, check_square, is_complex, nan_where_failed

schur_p: Final = Primitive("schur", multiple_results=True)


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Array]:
    """Schur decomposition: ``x = z @ t @ z^H`` with orthonormal columns of ``z``.

    Args:
      x: ``inexact[..., n, n]`` of at least 32 bits.
      compute_schur_vectors: return ``z``.
      sort_eig_vals, select_callable: sorting is not supported.

    Returns:
      ``[t, z]``, of the shape of ``x``, or ``[t]``. ``t`` is upper triangular; for a real matrix it
      has 2x2 diagonal blocks for pairs of complex eigenvalues. NaN if the algorithm does not
      converge.

    Raises:
      TypeError: for other dtypes, or fewer than two axes.
      ValueError: if the matrices are not square.
      NotImplementedError: if sorting is requested.

    The function has no derivative.

    >>> import numpy as np
    >>> t, z = schur(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t.tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    return schur_p.bind(
        x, compute_schur_vectors=bool(compute_schur_vectors), sort_eig_vals=bool(sort_eig_vals),
        select_callable=select_callable,
    )  # fmt: skip


@schur_p.rule(abstract)
def _abstract(x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    check_operands("schur", (x,), (2,))
    check_square("schur", x)
    if sort_eig_vals:
        raise NotImplementedError(
            "schur does not sort eigenvalues: leave sort_eig_vals=False and reorder the result"
        )
    return [x] * (1 + compute_schur_vectors)


lapack.only_on_cpu(schur_p)


@schur_p.rule(lower.on("cpu"))
def _lower_cpu(ctx, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    empty = lapack.empties(ctx)
    if empty is not None:
        return empty
    (aval,) = ctx.in_avals
    values = [aval.update(shape=aval.shape[:-1])] * (1 if is_complex(aval.dtype) else 2)
    info = lapack.info_of(aval.shape[:-2])
    types = [aval, aval, *values, info, info]
    mode = "V" if compute_schur_vectors else "N"
    t, z, *_, info_value = lapack.call(ctx, "gees", [(x, aval)], types, {0: 0}, mode=mode, sort="N")
    outs = [t, z] if compute_schur_vectors else [t]
    return ctx.call(nan_where_failed, info_value, *outs, in_avals=[info, *ctx.out_avals])


schur_p.unsupported(jvp, "the derivative of a Schur decomposition is not defined here")
batched_in_front(schur_p)


@schur_p.rule(samples)
def _samples():
    plain = {"sort_eig_vals": False, "select_callable": None}
    yield Sample(f32(3, 3), compute_schur_vectors=True, **plain)
    yield Sample(c64(2, 2, 2), compute_schur_vectors=False, **plain)
    yield Sample(f32(0, 0), compute_schur_vectors=True, **plain)
