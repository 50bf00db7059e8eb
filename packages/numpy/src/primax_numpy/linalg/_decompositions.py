"""Decompositions of matrices."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import Array, typeof

from .._functions import checked, compiled
from .._taking import take_along_axis
from ._matrices import (
    adjoint,
    as_inexact,
    check_square,
    checked_matrices,
    scaled_columns,
    transposed,
)


class EigResult(NamedTuple):
    """Eigenvalues ``[..., n]`` and, in columns, eigenvectors ``[..., n, n]``."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues ``[..., n]``, ascending, and, in columns, eigenvectors ``[..., n, n]``."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns ``Q`` and triangular ``R``."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """``U @ diag(S) @ Vh``, with ``S`` descending."""

    U: Array
    S: Array
    Vh: Array


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The triangular factor of positive definite matrices: ``a = L @ L^H``.

    Args:
      a: ``number[..., n, n]``, Hermitian; integers become floats.
      upper: give ``U = L^H`` instead, so that ``a = U^H @ U``.
      symmetrize_input: factor ``(a + a^H) / 2``; if not, only the lower triangle is read.

    Returns:
      The factor; NaN where a matrix is not positive definite.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: for 16-bit floats.

    >>> cholesky(np.float32([[4, 2], [2, 5]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    check_square("cholesky", a)
    return _cholesky(a, upper=bool(upper), symmetrize=bool(symmetrize_input))


@compiled("upper", "symmetrize")
def _cholesky(a, *, upper, symmetrize):
    a = as_inexact(a)
    if upper and not symmetrize:
        a = adjoint(a)
    factor = lax.linalg.cholesky(a, symmetrize_input=symmetrize)
    return adjoint(factor) if upper else factor


def qr(a: Any, mode: str = "reduced") -> Any:
    """QR decomposition: ``a = Q @ R`` with orthonormal columns of ``Q`` and triangular ``R``.

    Args:
      a: ``number[..., m, n]``; integers become floats.
      mode: ``"reduced"`` gives ``Q[..., m, k]`` and ``R[..., k, n]`` with ``k = min(m, n)``;
        ``"complete"`` (or ``"full"``) ``Q[..., m, m]`` and ``R[..., m, n]``; ``"r"`` the reduced
        ``R`` alone; ``"raw"`` LAPACK's reflections, transposed, and their factors.

    Raises:
      ValueError: for other modes, or less than two axes.
      TypeError: for 16-bit floats.
    """
    checked_matrices("qr", a)
    if mode not in ("reduced", "complete", "r", "full", "raw"):
        raise ValueError(
            f"linalg.qr: mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}"
        )
    q, r = _qr(a, mode=mode)
    return r if mode == "r" else QRResult(q, r)


@compiled("mode")
def _qr(a, *, mode):
    a = as_inexact(a)
    if mode == "raw":
        reflections, factors = lax.linalg.geqrf(a)
        return transposed(reflections), factors
    return tuple(lax.linalg.qr(a, full_matrices=mode == "complete"))


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:  # fmt: skip
    """Singular value decomposition: ``a = U @ diag(S) @ Vh``.

    Args:
      a: ``number[..., m, n]``; integers become floats.
      full_matrices: whether ``U`` and ``Vh`` are square, or hold ``k = min(m, n)`` vectors each.
      compute_uv: whether to give singular vectors; if not, ``S`` alone is the result.
      hermitian: whether the matrices are Hermitian, which takes a faster way.
      subset_by_index: ``(start, stop)``: only these singular values.

    Raises:
      ValueError: for less than two axes, or ``hermitian`` matrices that are not square.
      TypeError: for 16-bit floats.

    Vectors of equal singular values are not unique and have no derivative.
    """
    checked_matrices("svd", a)
    if hermitian:
        check_square("svd with hermitian=True", a)
        if subset_by_index is not None:
            raise ValueError("linalg.svd: subset_by_index does not go with hermitian=True")
    subset = None if subset_by_index is None else tuple(subset_by_index)
    if subset is not None and full_matrices and compute_uv:
        raise ValueError("linalg.svd: full_matrices and subset_by_index cannot both be set")
    if hermitian:
        out = _hermitian_svd(a, vectors=bool(compute_uv))
    else:
        out = _svd(a, full=bool(full_matrices), vectors=bool(compute_uv), subset=subset)
    return SVDResult(*out) if compute_uv else out


@compiled("full", "vectors", "subset")
def _svd(a, *, full, vectors, subset):
    out = lax.linalg.svd(
        as_inexact(a), full_matrices=full, compute_uv=vectors, subset_by_index=subset
    )
    return tuple(out) if vectors else out


@compiled("vectors", name="svd")
def _hermitian_svd(a, *, vectors):
    v, w = lax.linalg.eigh(as_inexact(a))
    size = lax.abs(w)
    if not vectors:
        last = typeof(w).ndim - 1
        return lax.rev(lax.sort(size, last), (last,))
    # Sort by size, descending, and let the signs go with one side.
    last = typeof(w).ndim - 1
    places = lax.broadcasted_iota(np.int32, typeof(w).shape, last)
    _, order = lax.sort_key_val(lax.neg(size), places, last)
    s, w = (take_along_axis(x, order, mode="promise_in_bounds") for x in (size, w))
    columns = lax.expand_dims(order, (last,))
    u = take_along_axis(v, columns, mode="promise_in_bounds")
    signs = lax.select(lax.lt(w, lax.full_like(w, 0)), lax.full_like(w, -1), lax.full_like(w, 1))
    return u, s, adjoint(scaled_columns(u, signs))


def svdvals(x: Any, /) -> Array:
    """Singular values of ``number[..., m, n]``, descending: ``[..., min(m, n)]``."""
    out: Array = svd(x, compute_uv=False)
    return out


@checked(partial(check_square, "eig"))
def eig(a: Any) -> EigResult:
    """Eigenvalues and right eigenvectors of square matrices, complex always.

    Args:
      a: ``number[..., n, n]``.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: for 16-bit floats.

    Eigenvalues have derivatives; those of the eigenvectors are an option of ``lax.linalg.eig``.
    """
    w, v = lax.linalg.eig(as_inexact(a), compute_left_eigenvectors=False)
    return EigResult(w, v)


@checked(partial(check_square, "eigvals"))
def eigvals(a: Any) -> Array:
    """Eigenvalues ``complex[..., n]`` of ``number[..., n, n]``, in no particular order."""
    (w,) = lax.linalg.eig(
        as_inexact(a), compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )
    return w


def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    Args:
      a: ``number[..., n, n]``; integers become floats.
      UPLO: ``"L"`` (the default) or ``"U"``: the triangle that is read without
        ``symmetrize_input``.
      symmetrize_input: take ``(a + a^H) / 2`` in place of ``a``.

    Raises:
      ValueError: for other shapes or triangles.
      TypeError: for 16-bit floats.

    Vectors of equal eigenvalues are not unique and have no derivative.
    """
    check_square("eigh", a)
    return EighResult(*_eigh(a, lower=_lower(UPLO), symmetrize=bool(symmetrize_input)))


def _lower(UPLO: str | None) -> bool:
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO!r}")
    return UPLO != "U"


@compiled("lower", "symmetrize")
def _eigh(a, *, lower, symmetrize):
    v, w = lax.linalg.eigh(as_inexact(a), lower=lower, symmetrize_input=symmetrize)
    return w, v


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Eigenvalues of Hermitian matrices, ascending; arguments as :func:`eigh`."""
    check_square("eigvalsh", a)
    w, _ = _eigh(a, lower=_lower(UPLO), symmetrize=bool(symmetrize_input))
    return w
