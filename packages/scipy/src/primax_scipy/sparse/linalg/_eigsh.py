"""A few eigenvalues or singular values of large matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import is_operand, typeof
from primax_core.typing import ArrayLike

from ._eigenpairs import ordered, with_derivatives
from ._lanczos import hermitian_pairs, start_vector
from ._lobpcg import vector_product
from ._operators import LinearOperator, OperatorLike, aslinearoperator, square_operator

_Product = Callable[[Any], Any]


def _both_ends(values: Any) -> Any:
    """Alternately the largest and the smallest, from values in ascending order."""
    n = typeof(values).shape[0]
    order = np.empty(n, np.int32)
    order[::2], order[1::2] = np.arange(n)[::-1][: (n + 1) // 2], np.arange(n)[: n // 2]
    return order


_RANKS: Final[dict[str, Callable[[Any], Any]]] = {
    "LM": lambda w: pnp.argsort(-pnp.abs(w)),
    "SM": lambda w: pnp.argsort(pnp.abs(w)),
    "LA": lambda w: np.arange(len(w))[::-1],
    "SA": lambda w: np.arange(len(w)),
    "BE": _both_ends,
}


def _krylov_size(k: int, n: int, ncv: Any) -> int:
    size = min(n, max(2 * k + 1, 20)) if ncv is None else operator.index(ncv)
    if not k < size <= n:
        raise ValueError(f"ncv={size} must be greater than k={k} and at most {n}")
    return size


def _shifted_inverse(
    a: LinearOperator, A: Any, M: Any, sigma: Any, OPinv: Any, dtype: Any
) -> _Product:
    """The product with the inverse of ``A - sigma M``."""
    if OPinv is not None:
        product = vector_product(square_operator("eigsh", OPinv), dtype)
        assert product is not None
        return product
    if isinstance(A, LinearOperator) or isinstance(M, LinearOperator):
        raise ValueError(
            "eigsh with sigma needs OPinv, the inverse of A - sigma * M, if A or M is a "
            "LinearOperator"
        )
    dense = lambda x: pnp.asarray(x) if is_operand(x) else x.todense()
    shift = pnp.eye(a.shape[0], dtype=dtype) if M is None else dense(M).astype(dtype)
    shifted = dense(A).astype(dtype) - pnp.asarray(sigma).astype(dtype) * shift
    lu, _, permutation = lax.linalg.lu(shifted)
    solve = partial(lax.linalg.triangular_solve, lu, left_side=True)

    def inverse(x: Any) -> Any:
        y = solve(x[permutation][:, None], lower=True, unit_diagonal=True)
        return solve(y, lower=False)[:, 0]

    return inverse


def eigsh(
    A: OperatorLike, k: int = 6, M: OperatorLike | None = None, sigma: ArrayLike | None = None,
    which: str = "LM", v0: ArrayLike | None = None, ncv: int | None = None,
    maxiter: int | None = None, tol: ArrayLike = 0, return_eigenvectors: bool = True,
    Minv: OperatorLike | None = None, OPinv: OperatorLike | None = None,
) -> Any:  # fmt: skip
    """A few eigenvalues of ``A v = w M v``, and their eigenvectors, for Hermitian ``A``.

    Args:
      A: a matrix ``[n, n]``, dense or sparse, or a :class:`LinearOperator`.
      k: the number of eigenvalues, less than ``n``.
      M: a Hermitian positive definite matrix or operator; the identity by default. Without
        ``sigma`` it needs ``Minv``.
      sigma: compute eigenvalues near this number, by iteration with the inverse of
        ``A - sigma M``; ``which`` then applies to ``1 / (w - sigma)``.
      which: ``"LM"`` and ``"SM"`` for largest and smallest magnitude, ``"LA"`` and ``"SA"`` for
        largest and smallest values, ``"BE"`` for both ends.
      v0: the initial vector ``[n]``, by default a fixed random one.
      ncv: the dimension of the Krylov space, by default ``max(2 k + 1, 20)``, at most ``n``.
      maxiter: the maximum number of restarts, by default ``10 n``.
      tol: the relative tolerance of eigenvalues; 0 for the machine epsilon.
      return_eigenvectors: return the eigenvectors too.
      Minv: the inverse of ``M``: a matrix or operator.
      OPinv: the inverse of ``A - sigma M``: a matrix or operator. By default the dense matrix is
        factorized.

    Returns:
      The eigenvalues ``[k]`` in ascending order, and the eigenvectors ``[n, k]`` with
      ``v^H M v = 1``, if requested. Eigenvalues that did not converge are NaN.

    Raises:
      ValueError: if shapes do not match, or options are unknown or missing.
      TypeError: if an operator is neither a matrix nor a :class:`LinearOperator`.

    The derivative is implicit, for eigenvalues of multiplicity 1. The algorithm is the
    thick-restart Lanczos method of Wu and Simon (SIAM J. Matrix Anal. Appl. 22, 2000).

    >>> import primax_numpy as pnp
    >>> w, v = eigsh(pnp.diag(pnp.arange(1.0, 31.0)), k=2)
    >>> [round(float(x), 3) for x in w], v.shape
    ([29.0, 30.0], (30, 2))
    """
    a, k = square_operator("eigsh", A), operator.index(k)
    n = a.shape[0]
    if which not in _RANKS:
        raise ValueError(f"which={which!r} is not one of {', '.join(_RANKS)}")
    if not 0 < k < n:
        raise ValueError(f"eigsh needs 0 < k < {n}, got k={k}; use linalg.eigh for all eigenvalues")
    m = None if M is None else square_operator("eigsh", M)
    if m is not None and Minv is None and sigma is None:
        raise ValueError("eigsh with M needs Minv, its inverse, unless sigma is passed")
    dtype = a.dtype if m is None else pnp.promote_types(a.dtype, m.dtype)
    v0 = start_vector(n, dtype) if v0 is None else pnp.asarray(v0).astype(dtype)
    product, metric = vector_product(a, dtype), vector_product(m, dtype)
    assert product is not None
    inner: _Product = metric or (lambda x: x)
    if sigma is not None:
        inverse = _shifted_inverse(a, A, M, sigma, OPinv, dtype)
        apply: _Product = lambda x: inverse(inner(x))
    elif m is not None:
        minv = vector_product(square_operator("eigsh", Minv), dtype)
        apply = lambda x: minv(product(x))  # type: ignore[misc]
    else:
        apply = product
    w, v = hermitian_pairs(
        apply, inner, v0, k=k, size=_krylov_size(k, n, ncv), rank=_RANKS[which], tol=tol,
        restarts=10 * n if maxiter is None else maxiter,
    )  # fmt: skip
    if sigma is not None:
        w = sigma + 1 / w
    w, v = with_derivatives(product, *ordered(w, v, pnp.argsort(w)), metric)
    return (w, v) if return_eigenvectors else w


def svds(
    A: OperatorLike, k: int = 6, ncv: int | None = None, tol: ArrayLike = 0, which: str = "LM",
    v0: ArrayLike | None = None, maxiter: int | None = None,
    return_singular_vectors: bool | str = True,
) -> Any:  # fmt: skip
    """A few singular values of a matrix, and their singular vectors.

    Args:
      A: a matrix ``[m, n]``, dense or sparse, or a :class:`LinearOperator`.
      k: the number of singular values, less than ``min(m, n)``.
      ncv, tol, v0, maxiter: as for :func:`eigsh`, of which they are options; ``v0`` has the size
        ``min(m, n)``.
      which: ``"LM"`` for the largest, ``"SM"`` for the smallest singular values.
      return_singular_vectors: return the vectors; ``False`` for the values only.

    Returns:
      ``u`` ``[m, k]``, the singular values ``[k]`` in ascending order, and ``vh`` ``[k, n]``. They
      are NaN if the iteration did not converge.

    Raises:
      ValueError: if ``k`` or ``which`` is not one of the supported values.
      TypeError: if ``A`` is neither a matrix nor a :class:`LinearOperator`.

    The vectors are eigenvectors of ``A^H A`` or ``A A^H``, so singular values below the square root
    of the machine epsilon times the largest one are inaccurate. The derivative is implicit, for
    singular values that are distinct and not 0.

    >>> import primax_numpy as pnp
    >>> u, s, vh = svds(pnp.diag(pnp.arange(1.0, 31.0)), k=2)
    >>> [round(float(x), 3) for x in s], u.shape, vh.shape
    ([29.0, 30.0], (30, 2), (2, 30))
    """
    a, k = aslinearoperator(A), operator.index(k)
    m, n = a.shape
    if which not in ("LM", "SM"):
        raise ValueError(f"which={which!r} is not one of LM, SM")
    if not 0 < k < min(m, n):
        raise ValueError(
            f"svds needs 0 < k < {min(m, n)}, got k={k}; use linalg.svd for all values"
        )
    wide = m < n
    factor = a.H if wide else a
    size, dtype = min(m, n), a.dtype
    gram: _Product = lambda x: factor.rmatvec(factor.matvec(x)).astype(dtype)
    v0 = start_vector(size, dtype) if v0 is None else pnp.asarray(v0).astype(dtype)
    w, v = hermitian_pairs(
        gram, lambda x: x, v0, k=k, size=_krylov_size(k, size, ncv), rank=_RANKS[which[0] + "A"],
        tol=tol, restarts=10 * size if maxiter is None else maxiter,
    )  # fmt: skip
    w, v = with_derivatives(gram, *ordered(w, v, pnp.argsort(w)))
    left = factor.matmat(v)
    s = pnp.sqrt(pnp.sum(pnp.real(left * pnp.conj(left)), axis=0))
    s = pnp.where(pnp.isnan(w), w, s)
    if not return_singular_vectors:
        return s
    left = left / pnp.where(s > 0, s, 1).astype(dtype)
    u, right = (v, left) if wide else (left, v)
    return u, s, pnp.conj(right.T)
