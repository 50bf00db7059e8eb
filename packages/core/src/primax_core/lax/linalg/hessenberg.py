"""Reduction of square matrices to Hessenberg form."""

from __future__ import annotations

from typing import Final

from ..._ir.primitive import Primitive, abstract, jvp, lower
from ..._ir.samples import Sample, c64, f32, samples
from ..._lower.lazy import mlir, shaped
from ..._trace.array import Array
from ..._trace.typing import ArrayLike
from . import lapack
from .matrices import batched_in_front, check_operands, nan_where_failed

hessenberg_p: Final = Primitive("hessenberg", multiple_results=True)


def hessenberg(a: ArrayLike) -> list[Array]:
    """Hessenberg form: ``a = q @ h @ q^H`` with zeros of ``h`` below the first subdiagonal.

    Args:
      a: ``inexact[..., n, n]`` of at least 32 bits.

    Returns:
      A matrix ``[..., n, n]`` with ``h`` on and above its first subdiagonal, and below it the
      vectors of the Householder reflections whose product is ``q``; and their factors
      ``taus[..., n - 1]``. Without the first row and the last column, these are the arguments of
      :func:`householder_product`.

    Raises:
      TypeError: for other dtypes, or fewer than two axes.
      ValueError: if the matrices are not square.

    The function has no derivative.

    >>> import numpy as np
    >>> h, taus = hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> h.tolist(), taus.tolist()
    ([[1.0, 2.0], [3.0, 4.0]], [0.0])
    """
    return hessenberg_p.bind(a)


@hessenberg_p.rule(abstract)
def _abstract(a):
    check_operands("hessenberg", (a,), (2,))
    *stack, m, n = a.shape
    if m != n:
        raise ValueError(
            f"Argument to Hessenberg reduction must have shape [..., n, n], got shape {a.shape}"
        )
    return [a, a.update(shape=(*stack, max(n - 1, 0)))]


lapack.only_on_cpu(hessenberg_p)


@hessenberg_p.rule(lower.on("cpu"))
def _lower_cpu(ctx, a):
    out, taus = ctx.out_avals
    if not taus.size:  # at most one row
        return [a, shaped.zeros_of(taus)]
    types = [out, taus, lapack.info_of(out.shape[:-2])]
    bounds = {"low": mlir.i32(1), "high": mlir.i32(out.shape[-1])}
    h, t, info = lapack.call(ctx, "gehrd", [(a, ctx.in_avals[0])], types, {0: 0}, **bounds)
    return ctx.call(nan_where_failed, info, h, t, in_avals=[types[2], *types[:2]])


hessenberg_p.unsupported(jvp, "the derivative of a Hessenberg reduction is not defined here")
batched_in_front(hessenberg_p)


@hessenberg_p.rule(samples)
def _samples():
    yield Sample(f32(3, 3))
    yield Sample(c64(2, 4, 4))
    yield Sample(f32(1, 1))
    yield Sample(f32(0, 0))
