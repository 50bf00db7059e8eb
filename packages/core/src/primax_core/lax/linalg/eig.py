"""Eigenvalues and eigenvectors of square matrices."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from ..._ir.primitive import Primitive, abstract, jvp, lower
from ..._ir.samples import Sample, c64, f32, samples
from ..._trace.array import Array
from ..._trace.core import typeof
from ..._trace.typing import ArrayLike
from ..._transform.zeros import Zero
from ..arithmetic import add, div, mul, sub
from ..broadcasting import broadcasted_iota
from ..comparison import eq
from ..conversion import convert
from ..elementwise import full_like, to_shape
from ..magnitude import complex, conj, imag, real
from ..reducing import argmax, reduce_sum
from ..selection import select_n
from . import cusolver, lapack
from .eigh import inverse_gaps
from .lu import solve_square
from .matrices import (
    adjoint,
    as_row,
    batched_in_front,
    check_operands,
    check_square,
    complex_dtype,
    diagonal,
    is_complex,
    matmul,
    nan_where_failed,
    scale_columns,
)

eig_p: Final = Primitive("eig", multiple_results=True)


class EigImplementation(enum.Enum):
    """Algorithms for eigenvalue problems.

    CPUs support ``LAPACK``. On NVIDIA GPUs ``LAPACK`` computes on the host, and ``MAGMA`` needs
    that library.
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues ``w`` and eigenvectors of matrices: ``x @ vr = vr @ diag(w)``.

    Args:
      x: ``inexact[..., n, n]`` of at least 32 bits.
      compute_left_eigenvectors: return ``vl``, with ``vl^H @ x = diag(w) @ vl^H``.
      compute_right_eigenvectors: return ``vr``.
      enable_eigvec_derivs: permit derivatives of eigenvectors. They are valid only if the
        eigenvalues are distinct, and the function does not depend on the phases of the
        eigenvectors.
      implementation: on the CPU ``None`` or ``EigImplementation.LAPACK``; on NVIDIA GPUs also
        ``MAGMA``, the default for large matrices if the library is installed.
      use_magma: deprecated; ``True`` means ``EigImplementation.MAGMA``.

    Returns:
      ``[w, vl, vr]``, complex, or the requested ones of these: ``w[..., n]``, in no order, and
      ``[..., n, n]`` with columns of norm 1, whose largest element is real. NaN if the algorithm
      does not converge.

    Raises:
      TypeError: for other dtypes, or fewer than two axes.
      ValueError: if the matrices are not square.

    The derivative of the eigenvalues requires ``n`` independent eigenvectors.

    >>> w, vl, vr = eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> sorted(np.imag(w).tolist())
    [-1.0, 1.0]
    """
    if use_magma is not None:
        warnings.warn(
            "use_magma is deprecated: pass implementation=EigImplementation.MAGMA instead",
            DeprecationWarning,
            stacklevel=2,
        )
        if use_magma:
            implementation = EigImplementation.MAGMA
    return eig_p.bind(
        x, compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=None if implementation is None else EigImplementation(implementation),
    )  # fmt: skip


@eig_p.rule(abstract)
def _abstract(x, *, compute_left_eigenvectors, compute_right_eigenvectors, **_):
    check_operands("eig", (x,), (2,))
    check_square("eig", x)
    out = x.update(dtype=complex_dtype(x.dtype))
    vectors = compute_left_eigenvectors + compute_right_eigenvectors
    return [out.update(shape=x.shape[:-1]), *[out] * vectors]


lapack.only_with_solvers(eig_p)


@eig_p.rule(lower.on("cpu"))
def _lower_cpu(
    ctx, x, *, compute_left_eigenvectors, compute_right_eigenvectors, implementation, **_
):
    if implementation not in (None, EigImplementation.LAPACK):
        raise ValueError(
            "Only the lapack implementation is supported on CPU: eig got "
            f"implementation={implementation}"
        )
    vectors = (compute_left_eigenvectors, compute_right_eigenvectors)
    left, right = ("V" if v else "N" for v in vectors)
    call = partial(lapack.call, ctx, "geev", compute_left=left, compute_right=right)
    return _by_native_function(ctx, x, vectors, call)


@eig_p.rule(lower.on("cuda"))
def _lower_cuda(
    ctx, x, *, compute_left_eigenvectors, compute_right_eigenvectors, implementation, **_
):
    if implementation is EigImplementation.CUSOLVER:
        raise NotImplementedError(
            "eig has no implementation CUSOLVER on NVIDIA GPUs: use EigImplementation.MAGMA, "
            "LAPACK or None"
        )
    vectors = (compute_left_eigenvectors, compute_right_eigenvectors)
    use_magma = None if implementation is None else implementation is EigImplementation.MAGMA
    ctx.needs.add("cuda_hybrid")
    kind = "comp" if is_complex(ctx.in_avals[0].dtype) else "real"
    call = partial(
        cusolver.call, f"cuhybrid_eig_{kind}", left=vectors[0], right=vectors[1],
        magma=cusolver.magma(use_magma),
    )  # fmt: skip
    return _by_native_function(ctx, x, vectors, call)


def _by_native_function(
    ctx: Any, x: Any, vectors: tuple[bool, bool], call: Callable[..., list[Any]]
) -> list[Any]:
    empty = lapack.empties(ctx)
    if empty is not None:
        return empty
    (aval,) = ctx.in_avals
    is_real = not is_complex(aval.dtype)
    out = aval.update(dtype=complex_dtype(aval.dtype))
    values = [aval.update(shape=aval.shape[:-1])] * (1 + is_real)
    types = [*values, out, out, lapack.info_of(aval.shape[:-2])]
    results = call([(x, aval)], types, None)

    def finish(*results):
        *w, vl, vr, info = results
        outs = [complex(*w) if is_real else w[0]]
        outs += [vl] * vectors[0] + [vr] * vectors[1]
        return nan_where_failed(info, *outs)

    return ctx.call(finish, *results, in_avals=types)


@eig_p.rule(jvp)
def _jvp(primals, tangents, **params):
    left, right = params["compute_left_eigenvectors"], params["compute_right_eigenvectors"]
    (t,) = tangents
    if (left or right) and not params["enable_eigvec_derivs"]:
        raise NotImplementedError(
            "Derivatives of non-symmetric eigenvectors are only valid under assumptions on the "
            "input that cannot be checked: the eigenvalues differ, and the function does not "
            "depend on the phases of the eigenvectors. If so, pass enable_eigvec_derivs=True to "
            "lax.linalg.eig; or differentiate eigenvalues alone, with "
            "compute_left_eigenvectors=False and compute_right_eigenvectors=False."
        )
    # Second derivatives of eigenvalues need first derivatives of eigenvectors, of any phase.
    needed = {"compute_right_eigenvectors": True, "enable_eigvec_derivs": True}
    w, *vectors = eig_p.bind(*primals, **{**params, **needed})
    vr = vectors[-1]
    outs = [w, *(vectors if right else vectors[:-1])]
    if type(t) is Zero or not typeof(vr).size:
        return outs, [Zero.like(o) for o in outs]
    t = convert(t, typeof(w).dtype)
    inside = solve_square(vr, matmul(t, vr))
    changes = [diagonal(inside)]
    if left:
        from_left = solve_square(vectors[0], matmul(adjoint(t), vectors[0]))
        changes.append(_vector_tangent(vectors[0], conj(w), from_left))
    if right:
        changes.append(_vector_tangent(vr, w, inside))
    return outs, changes


def _vector_tangent(v: Any, w: Any, inside: Any) -> Array:
    """Tangent of eigenvectors with constant norm and real largest element.

    Args:
      inside: ``V^-1 dA V``.
    """
    change = matmul(v, mul(inverse_gaps(w), inside))
    axis = typeof(v).ndim - 2
    along = real(reduce_sum(mul(conj(v), change), (axis,)))
    size = add(mul(real(v), real(v)), mul(imag(v), imag(v)))
    largest_row = as_row(argmax(size, axis, np.int32))
    rows = broadcasted_iota(np.int32, typeof(v).shape, axis)
    largest = eq(rows, to_shape(largest_row, typeof(v).shape))

    def at_largest(x):
        return reduce_sum(select_n(largest, full_like(x, 0), x), (axis,))

    turn = div(at_largest(imag(change)), at_largest(real(v)))
    return sub(change, scale_columns(v, complex(along, turn)))


batched_in_front(eig_p)


def _well_separated(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return x + np.diag(8.0 * np.arange(shape[-1]))


def _real_well_separated(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return _well_separated(rng, shape).real


@eig_p.rule(samples)
def _samples():
    values = {
        "compute_left_eigenvectors": False, "compute_right_eigenvectors": False,
        "enable_eigvec_derivs": False, "implementation": None,
    }  # fmt: skip
    all_of_it = {
        "compute_left_eigenvectors": True, "compute_right_eigenvectors": True,
        "enable_eigvec_derivs": True, "implementation": None,
    }  # fmt: skip
    yield Sample(f32(3, 3, make=_real_well_separated), **values)
    yield Sample(c64(2, 2, 2, make=_well_separated), **values)
    yield Sample(c64(3, 3, make=_well_separated), **all_of_it)
    yield Sample(f32(3, 3, make=_real_well_separated), **all_of_it)
    yield Sample(f32(0, 0), **values)
