"""Matrix decompositions."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import Array, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

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
    """Eigenvalues ``[..., n]`` and eigenvectors ``[..., n, n]`` in columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Ascending eigenvalues ``[..., n]`` and eigenvectors ``[..., n, n]`` in columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """``Q`` with orthonormal columns and upper triangular ``R``."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """``U @ diag(S) @ Vh``, with descending ``S``."""

    U: Array
    S: Array
    Vh: Array


@one_call("upper", "symmetrize_input")
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Cholesky factor of positive definite matrices: ``a = L @ L^H``.

    Args:
      a: ``number[..., n, n]``, Hermitian; integers become floats.
      upper: return ``U = L^H`` instead, so that ``a = U^H @ U``.
      symmetrize_input: factor ``(a + a^H) / 2``; otherwise only the lower triangle is read.

    Returns:
      The factor; NaN for a matrix that is not positive definite.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if the dtype is a 16-bit float.

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


@one_call("mode")
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """QR decomposition: ``a = Q @ R`` with orthonormal columns of ``Q`` and triangular ``R``.

    Args:
      a: ``number[..., m, n]``; integers become floats.
      mode: ``"reduced"`` gives ``Q[..., m, k]`` and ``R[..., k, n]`` with ``k = min(m, n)``;
        ``"complete"`` (or ``"full"``) ``Q[..., m, m]`` and ``R[..., m, n]``; ``"r"`` the reduced
        ``R`` alone; ``"raw"`` LAPACK's Householder reflectors, transposed, and their scalar
        factors.

    Returns:
      The named tuple ``(Q, R)``, except in the modes ``"r"`` and ``"raw"``.

    Raises:
      ValueError: if the mode is unknown, or there are fewer than two axes.
      TypeError: if the dtype is a 16-bit float.

    >>> q, r = qr(np.float32([[3, 0], [4, 5]]))
    >>> np.abs(np.asarray(q @ r)).round(3).tolist()
    [[3.0, 0.0], [4.0, 5.0]]
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


@one_call("full_matrices", "compute_uv", "hermitian")
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:  # fmt: skip
    """Singular value decomposition: ``a = U @ diag(S) @ Vh``.

    Args:
      a: ``number[..., m, n]``; integers become floats.
      full_matrices: return square ``U`` and ``Vh``, otherwise ``k = min(m, n)`` vectors each.
      compute_uv: return singular vectors; otherwise ``S`` alone is the result.
      hermitian: the matrices are Hermitian, which permits a faster algorithm.
      subset_by_index: ``(start, stop)``: the range of singular values to compute.

    Returns:
      The named tuple ``(U, S, Vh)``, or ``S``: descending nonnegative numbers ``[..., k]``.

    Raises:
      ValueError: if there are fewer than two axes, or ``hermitian`` matrices are not square.
      TypeError: if the dtype is a 16-bit float.

    Singular vectors of repeated singular values are not unique and not differentiable.

    >>> svd(np.float32([[3, 0], [0, 4]])).S.tolist()
    [4.0, 3.0]
    """
    checked_matrices("svd", a)
    if hermitian:
        check_square("svd with hermitian=True", a)
        if subset_by_index is not None:
            raise ValueError("linalg.svd: subset_by_index is not supported with hermitian=True")
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
    # Sort by descending magnitude; the signs are part of the right singular vectors.
    last = typeof(w).ndim - 1
    places = lax.broadcasted_iota(np.int32, typeof(w).shape, last)
    _, order = lax.sort_key_val(lax.neg(size), places, last)
    s, w = (take_along_axis(x, order, mode="promise_in_bounds") for x in (size, w))
    columns = lax.expand_dims(order, (last,))
    u = take_along_axis(v, columns, mode="promise_in_bounds")
    signs = lax.select(lax.lt(w, lax.full_like(w, 0)), lax.full_like(w, -1), lax.full_like(w, 1))
    return u, s, adjoint(scaled_columns(u, signs))


@one_call()
def svdvals(x: ArrayLike, /) -> Array:
    """Singular values of matrices, in descending order.

    Args:
      x: ``number[..., m, n]``; integers become floats.

    Returns:
      Nonnegative real numbers ``[..., min(m, n)]``.

    Raises:
      ValueError: if there are fewer than two axes.
      TypeError: if the dtype is a 16-bit float.

    The values are differentiable where they are distinct. See :func:`svd` for singular vectors.

    >>> svdvals(np.float32([[3, 0], [0, 4]])).tolist()
    [4.0, 3.0]
    """
    out: Array = svd(x, compute_uv=False)
    return out


@checked(partial(check_square, "eig"))
def eig(a: ArrayLike) -> EigResult:
    """Complex eigenvalues and right eigenvectors of square matrices.

    Args:
      a: ``number[..., n, n]``; integers become floats.

    Returns:
      The named tuple ``(eigenvalues, eigenvectors)``: ``complex[..., n]`` in unspecified order,
      and ``complex[..., n, n]`` with the vectors as columns.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if the dtype is a 16-bit float.

    Eigenvalues are differentiable; derivatives of eigenvectors are an option of
    ``lax.linalg.eig``. Use :func:`eigh` for Hermitian matrices.

    >>> values, vectors = eig(np.float32([[2, 0], [0, 3]]))
    >>> sorted(np.asarray(values).real.round(3).tolist())
    [2.0, 3.0]
    """
    w, v = lax.linalg.eig(as_inexact(a), compute_left_eigenvectors=False)
    return EigResult(w, v)


@checked(partial(check_square, "eigvals"))
def eigvals(a: ArrayLike) -> Array:
    """Complex eigenvalues of square matrices.

    Args:
      a: ``number[..., n, n]``; integers become floats.

    Returns:
      ``complex[..., n]``, in unspecified order.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if the dtype is a 16-bit float.

    Eigenvalues are differentiable where they are distinct.

    >>> values = eigvals(np.float32([[0, 1], [-1, 0]]))
    >>> sorted(np.asarray(values).imag.round(3).tolist())
    [-1.0, 1.0]
    """
    (w,) = lax.linalg.eig(
        as_inexact(a), compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )
    return w


@one_call("UPLO", "symmetrize_input")
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Ascending eigenvalues, and eigenvectors of Hermitian matrices.

    Args:
      a: ``number[..., n, n]``; integers become floats.
      UPLO: ``"L"`` (the default) or ``"U"``: the triangle that is read without
        ``symmetrize_input``.
      symmetrize_input: use ``(a + a^H) / 2`` instead of ``a``.

    Returns:
      The named tuple ``(eigenvalues, eigenvectors)``: real numbers ``[..., n]``, and ``number[...,
      n, n]`` with the orthonormal vectors as columns.

    Raises:
      ValueError: if the matrices are not square, or ``UPLO`` is invalid.
      TypeError: if the dtype is a 16-bit float.

    Eigenvectors of repeated eigenvalues are not unique and not differentiable.

    >>> values, vectors = eigh(np.float32([[2, 1], [1, 2]]))
    >>> np.asarray(values).round(3).tolist()
    [1.0, 3.0]
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


@one_call("UPLO", "symmetrize_input")
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Ascending eigenvalues of Hermitian matrices.

    Args:
      a: ``number[..., n, n]``; integers become floats.
      UPLO: ``"L"`` (the default) or ``"U"``: the triangle that is read without
        ``symmetrize_input``.
      symmetrize_input: use ``(a + a^H) / 2`` instead of ``a``.

    Returns:
      Real numbers ``[..., n]``.

    Raises:
      ValueError: if the matrices are not square, or ``UPLO`` is invalid.
      TypeError: if the dtype is a 16-bit float.

    >>> np.asarray(eigvalsh(np.float32([[2, 1], [1, 2]]))).round(3).tolist()
    [1.0, 3.0]
    """
    check_square("eigvalsh", a)
    w, _ = _eigh(a, lower=_lower(UPLO), symmetrize=bool(symmetrize_input))
    return w
