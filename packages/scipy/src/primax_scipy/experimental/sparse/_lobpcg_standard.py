"""Largest eigenvalues by LOBPCG, with the reference's interface."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import primax_numpy as pnp
from primax_core import Array
from primax_core.extend import is_operand, typeof
from primax_core.typing import ArrayLike

from ...sparse.linalg._lobpcg import block_iteration
from ._base import JAXSparse


def lobpcg_standard(
    A: ArrayLike | JAXSparse | Callable[[Any], Any],
    X: ArrayLike,
    m: int = 100,
    tol: ArrayLike | None = None,
) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a Hermitian matrix, and their eigenvectors.

    Args:
      A: a matrix ``[n, n]``, dense or sparse, or a function that multiplies by it a matrix
        ``[n, j]``.
      X: initial vectors ``[n, k]`` with the dtype of ``A``, linearly independent, ``5 k < n``.
      m: the maximum number of steps.
      tol: the tolerance: an eigenpair has converged if its residual norm is below
        ``10 tol n (|w| + |A v|)``. The default is the machine epsilon.

    Returns:
      The eigenvalues ``[k]`` in descending order, the eigenvectors ``[n, k]``, and the number of
      steps, an integer. For derivatives use :func:`primax.scipy.sparse.linalg.lobpcg`, which also
      computes smallest eigenvalues.

    Raises:
      ValueError: if shapes or dtypes do not match, or ``k`` is too large, or 0.

    >>> import primax_numpy as pnp
    >>> w, v, _ = lobpcg_standard(pnp.diag(pnp.arange(12.0)), pnp.eye(12, 2) + 0.1)
    >>> [round(float(x), 3) for x in w]
    [11.0, 10.0]
    """
    X = pnp.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix of k vectors [n, k], got shape {X.shape}")
    n, k = X.shape
    if k == 0:
        raise ValueError(f"X must contain at least one vector, got shape {X.shape}")
    if 5 * k >= n:
        raise ValueError(
            f"lobpcg_standard needs 5 * k < n, got k={k} vectors of size n={n}: use "
            "linalg.eigh for so many eigenvalues"
        )
    if not callable(A):
        A = pnp.asarray(A) if is_operand(A) else A
        if A.shape != (n, n):
            raise ValueError(f"A must be a matrix of shape {(n, n)} for X {X.shape}, got {A.shape}")
    apply = A if callable(A) else lambda x: A @ x
    out = typeof(apply(X[:, :1]))
    if out.shape != (n, 1) or out.dtype != X.dtype:
        raise ValueError(
            f"the product of A and a matrix {X.dtype.name}{[n, 1]} must have its shape and dtype, "
            f"got {out.dtype.name}{list(out.shape)}"
        )
    w, v, steps = block_iteration(apply, X, steps=operator.index(m), tol=tol)
    return w, v, steps
