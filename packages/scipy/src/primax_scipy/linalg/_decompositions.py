"""Matrix decompositions: QR, singular values, eigenvalues.

Arguments about memory and checks are ignored.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, inexact, promoted
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, check_arrays, compiled, is_complex

from ._matrices import adjoint, check_matrices, check_square

_QR_MODES = ("full", "r", "economic")


@compiled("mode", "pivoting", name="qr")
def _qr(a, *, mode, pivoting):
    outs = lax.linalg.qr(as_inexact(a), pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(outs[1:] if mode == "r" else outs)


def qr(
    a: ArrayLike, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full",
    pivoting: bool = False, check_finite: bool = True,
) -> tuple[Array, ...]:  # fmt: skip
    """QR decomposition, ``a = Q @ R``.

    Args:
      a: ``number[..., m, n]``.
      overwrite_a, lwork, check_finite: ignored.
      mode: ``"full"``; ``"economic"`` with ``min(m, n)`` columns of ``Q``; ``"r"`` for ``R`` alone.
      pivoting: permute the columns so that the diagonal of ``R`` decreases; also return the
        permutation as ``int32``: ``a[:, p] = Q @ R``.

    Returns:
      A tuple of ``Q`` (unless ``mode="r"``), ``R`` and, with ``pivoting``, the permutation.

    Raises:
      ValueError: if the mode is unknown.

    >>> import numpy as np
    >>> [round(abs(float(v)), 4) for v in qr(np.float32([[3, 0], [4, 5]]))[1][0]]
    [5.0, 4.0]
    """
    check_matrices("qr", a)
    if mode not in _QR_MODES:
        raise ValueError(f"Unsupported QR decomposition mode '{mode}': one of {list(_QR_MODES)}")
    out: tuple[Array, ...] = _qr(a, mode=mode, pivoting=bool(pivoting))
    return out


@compiled("full_matrices", "compute_uv", name="svd")
def _svd(a, *, full_matrices, compute_uv):
    a = as_inexact(a)
    out = lax.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(out) if compute_uv else out


def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
    check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Any:  # fmt: skip
    """Singular value decomposition, ``a = U @ diag(s) @ Vh``.

    Args:
      a: ``number[..., m, n]``.
      full_matrices: return square ``U`` and ``Vh``, otherwise ``k = min(m, n)`` columns and rows.
      compute_uv: return singular vectors; otherwise ``s`` alone is the result.
      overwrite_a, check_finite, lapack_driver: ignored.

    Returns:
      ``U``, ``s[..., k]`` in descending order, ``Vh``; or ``s``.

    Raises:
      ValueError: if ``a`` has fewer than two axes.
      TypeError: if ``a`` is not an array. Lists are not converted.

    The decomposition is differentiable if the singular values are distinct.

    >>> import numpy as np
    >>> [round(float(v), 4) for v in svd(np.float32([[2, 1], [1, 3]]), compute_uv=False)]
    [3.618, 1.382]
    """
    check_matrices("svd", a)
    return _svd(a, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv))


@compiled("lower", "eigvals_only", name="eigh")
def _eigh(a, *, lower, eigvals_only):
    a = as_inexact(a)
    vectors, values = lax.linalg.eigh(a, lower=lower)
    return values if eigvals_only else (values, vectors)


@compiled("eigvals_only", "kind", name="eigh_generalized")
def _eigh_generalized(a, b, *, eigvals_only, kind):
    a, b = promoted("eigh", a, b, inexact)
    a, b = (0.5 * (x + adjoint(x)) for x in (a, b))
    factor = lax.linalg.cholesky(b, symmetrize_input=False)  # b = factor @ factor^H

    def solved(x: Any, transposed: bool = False) -> Any:
        return lax.linalg.triangular_solve(
            factor, x, left_side=True, lower=True,
            transpose_a=transposed, conjugate_a=transposed and is_complex(factor),
        )  # fmt: skip

    if kind == 1:  # a v = w b v
        inner = solved(adjoint(solved(adjoint(a))))
    else:  # a b v = w v and b a v = w v
        inner = pnp.matmul(adjoint(factor), pnp.matmul(a, factor))
    vectors, values = lax.linalg.eigh(inner, lower=True)
    if eigvals_only:
        return values
    return values, (pnp.matmul(factor, vectors) if kind == 3 else solved(vectors, True))


def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False,
    overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True, eigvals: None = None,
    type: int = 1, check_finite: bool = True,
) -> Any:  # fmt: skip
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Args:
      a: ``number[..., n, n]``. It is replaced by the mean of it and its conjugate transpose.
      b: Hermitian positive definite matrices of a generalized eigenvalue problem.
      lower: read the lower triangle of that mean, otherwise the upper.
      eigvals_only: return the eigenvalues alone.
      overwrite_a, overwrite_b, turbo, check_finite: ignored.
      eigvals: unsupported.
      type: the generalized problem: 1 is ``a v = w b v``, 2 is ``a b v = w v``, 3 is
        ``b a v = w v``.

    Returns:
      Eigenvalues ``[..., n]`` in ascending order and, in columns, eigenvectors ``[..., n, n]``;
      with ``b`` they are orthonormal with respect to ``b`` (type 3: to its inverse).

    Raises:
      NotImplementedError: if ``eigvals`` is specified.
      ValueError: if ``type`` is unknown, or sizes do not match.

    >>> import numpy as np
    >>> [round(float(v), 4) for v in eigh(np.float32([[2, 1], [1, 2]]), eigvals_only=True)]
    [1.0, 3.0]
    """
    if eigvals is not None:
        raise NotImplementedError(
            "Only the eigvals=None case of eigh is implemented: take a slice of all eigenvalues."
        )
    if type not in (1, 2, 3):
        raise ValueError(f"linalg.eigh: type must be 1, 2 or 3, got {type}")
    check_square("eigh", a)
    static = {"lower": bool(lower), "eigvals_only": bool(eigvals_only)}
    if b is None:
        return _eigh(a, **static)
    check_square("eigh", b)
    if typeof(a).shape[-1] != typeof(b).shape[-1]:
        raise ValueError(f"linalg.eigh: shapes {typeof(a).shape} and {typeof(b).shape} differ")
    return _eigh_generalized(a, b, kind=type, eigvals_only=bool(eigvals_only))


@compiled("calc_q", name="hessenberg")
def _hessenberg(a, *, calc_q):
    reduced, taus = lax.linalg.hessenberg(as_inexact(a))
    h = pnp.triu(reduced, -1)
    if not calc_q:
        return h
    n = typeof(a).shape[-1]
    if n < 2:
        return h, pnp.broadcast_to(pnp.eye(n, dtype=typeof(h).dtype), typeof(h).shape)
    inner = lax.linalg.householder_product(reduced[..., 1:, : n - 1], taus)
    widths = [(0, 0)] * (typeof(h).ndim - 2) + [(1, 0), (1, 0)]
    corner = lax.full_like(h, 0).at[..., 0, 0].set(1)
    return h, pnp.pad(inner, widths) + corner


def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Hessenberg form, ``a = Q @ H @ Q^H``, with zeros below the first subdiagonal of ``H``.

    Args:
      a: ``number[..., n, n]``.
      calc_q: return ``H`` and ``Q`` instead of ``H`` alone.
      overwrite_a, check_finite: ignored.

    Returns:
      ``H[..., n, n]``, or ``H`` and the unitary ``Q[..., n, n]``.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if ``a`` is not an array. Lists are not converted.

    It is not differentiable. Leading axes are a batch.

    >>> import numpy as np
    >>> hessenberg(np.float32([[2, 1], [1, 3]])).tolist()
    [[2.0, 1.0], [1.0, 3.0]]
    """
    check_square("hessenberg", a)
    return _hessenberg(a, calc_q=bool(calc_q))


@compiled("mode", "pivoting", "conjugate", name="qr_multiply")
def _qr_multiply(a, c, *, mode, pivoting, conjugate):
    a, c = promoted("qr_multiply", a, c, inexact)
    q, r, *order = lax.linalg.qr(a, pivoting=pivoting, full_matrices=False)
    if conjugate and is_complex(q):
        q = lax.conj(q)
    return (pnp.matmul(q, c) if mode == "left" else pnp.matmul(c, q)), r, *order


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """The product of a matrix or vector with ``Q`` of the QR decomposition of ``a``.

    Args:
      a: ``number[m, n]``.
      c: the factor multiplied by ``Q``, which has ``k = min(m, n)`` columns.
      mode: ``"right"`` for ``c @ Q``, ``"left"`` for ``Q @ c``.
      pivoting: permute the columns of ``a``, as :func:`qr` does.
      conjugate: use the conjugate of ``Q``.
      overwrite_a, overwrite_c: ignored.

    Returns:
      The product, ``R`` and, with ``pivoting``, the permutation of columns.

    Raises:
      ValueError: if the mode is unknown.
    """
    if mode not in ("left", "right"):
        raise ValueError(f"linalg.qr_multiply: mode must be 'left' or 'right', got {mode!r}")
    check_matrices("qr_multiply", a)
    check_arrays("linalg.qr_multiply", c)
    out: tuple[Array, ...] = _qr_multiply(
        a, c, mode=mode, pivoting=bool(pivoting), conjugate=bool(conjugate)
    )
    return out


@compiled("chosen", "eigvals_only", name="eigh_tridiagonal")
def _eigh_tridiagonal(d, e, *, chosen, eigvals_only):
    d, e = promoted("eigh_tridiagonal", d, e, inexact)
    matrix = pnp.diag(d) + pnp.diag(e, -1) + pnp.diag(pnp.conj(e), 1)
    subset = None if chosen is None else (chosen[0], chosen[1] + 1)
    vectors, values = lax.linalg.eigh(matrix, subset_by_index=subset)
    return values if eigvals_only else (values, vectors)


def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
    select_range: Sequence[int] | None = None, tol: float | None = None,
    key: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """Eigenvalues and eigenvectors of a Hermitian tridiagonal matrix, by the dense algorithm.

    Args:
      d: the real diagonal ``[n]``.
      e: the subdiagonal ``[n - 1]``.
      eigvals_only: return the eigenvalues alone.
      select: ``"a"`` for all; ``"i"`` for those from the first to the last index of
        ``select_range``, inclusive.
      select_range: two integers.
      tol, key: ignored.

    Returns:
      Eigenvalues ``[k]`` in ascending order and, in columns, eigenvectors ``[n, k]``.

    Raises:
      NotImplementedError: for ``select="v"``.
      ValueError: if ``select`` is unknown, the range is invalid, or sizes do not match.

    >>> import numpy as np
    >>> d, e = np.float32([2, 2]), np.float32([1])
    >>> [round(float(v), 4) for v in eigh_tridiagonal(d, e, eigvals_only=True)]
    [1.0, 3.0]
    """
    check_arrays("linalg.eigh_tridiagonal", d, e)
    x, y = typeof(d).shape, typeof(e).shape
    if len(x) != 1 or len(y) != 1 or not x[0] or y[0] != x[0] - 1:
        raise ValueError(
            f"linalg.eigh_tridiagonal: e has one element less than d, got shapes {x} and {y}"
        )
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal(..., select='v') is not implemented: the number of results depends "
            "on values"
        )
    if select not in ("a", "i"):
        raise ValueError(f"linalg.eigh_tridiagonal: select must be 'a' or 'i', got {select!r}")
    chosen = None
    if select == "i":
        if select_range is None:
            raise ValueError("linalg.eigh_tridiagonal: select='i' needs select_range")
        first, last = (operator.index(v) for v in select_range)
        if not 0 <= first <= last < x[0]:
            raise ValueError(
                f"linalg.eigh_tridiagonal: select_range {(first, last)} is invalid for "
                f"{x[0]} values"
            )
        chosen = (first, last)
    return _eigh_tridiagonal(d, e, chosen=chosen, eigvals_only=bool(eigvals_only))
