"""Extreme eigenvalues by the locally optimal block preconditioned conjugate gradient method."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact

from ._eigenpairs import with_derivatives
from ._operators import LinearOperator, OperatorLike, frozen, square_operator

_Product = Callable[[Any], Any]
_exact = partial(pnp.matmul, precision=lax.Precision.HIGHEST)


def _norms(x: Any) -> Any:
    return pnp.sqrt(pnp.sum(pnp.real(x * pnp.conj(x)), axis=0))


def _unit(x: Any) -> Any:
    """Columns of norm 1, or 0."""
    size = _norms(x)
    return x / pnp.where(size > 0, size, 1).astype(typeof(x).dtype)


def _ritz(
    apply: _Product, metric: _Product | None, basis: Any, k: int, largest: bool
) -> tuple[Any, Any]:
    """The ``k`` extreme Ritz values, and the coefficients of their vectors in an orthonormal
    basis."""
    adjoint = pnp.conj(basis.T)
    small = _exact(adjoint, apply(basis))
    small = (small + pnp.conj(small.T)) / 2
    if metric is None:
        values, vectors = pnp.linalg.eigh(small)
    else:
        gram = _exact(adjoint, metric(basis))
        factor = pnp.linalg.cholesky((gram + pnp.conj(gram.T)) / 2)
        solve = partial(lax.linalg.triangular_solve, factor, left_side=True, lower=True)
        reduced = solve(small)
        reduced = pnp.conj(solve(pnp.conj(reduced.T)).T)
        values, vectors = pnp.linalg.eigh((reduced + pnp.conj(reduced.T)) / 2)
        vectors = solve(vectors, transpose_a=True, conjugate_a=True)
    if largest:
        return values[::-1][:k], vectors[:, ::-1][:, :k]
    return values[:k], vectors[:, :k]


def block_iteration(
    apply: _Product,
    X: Any,
    *,
    steps: Any,
    tol: Any = None,
    limit: Callable[[Any, Any], Any] | None = None,
    largest: bool = True,
    metric: _Product | None = None,
    precondition: _Product | None = None,
    constraints: Any = None,
) -> tuple[Any, Any, Any]:
    """Extreme eigenvalues, eigenvectors, and the number of steps.

    Args:
      apply, metric, precondition: products with matrices ``[n, j]``.
      X: initial vectors ``[n, k]``.
      limit: the required residual norms for eigenvalues and products ``A v``; by default
        ``10 tol n (|w| + |A v|)``.
      constraints: a matrix ``B Y`` to whose columns the eigenvectors are orthogonal.

    The basis of each step is orthonormalized by Householder reflections, so that dependent columns
    become arbitrary further directions. The method is that of Knyazev (SIAM J. Sci. Comput. 23,
    2001) with the basis of Hetmaniuk and Lehoucq (J. Comput. Phys. 218, 2006).
    """
    apply, X = frozen(apply), lax.stop_gradient(X)
    metric = None if metric is None else frozen(metric)
    precondition = None if precondition is None else frozen(precondition)
    constraints = None if constraints is None else lax.stop_gradient(constraints)
    n, k = typeof(X).shape
    dtype = typeof(X).dtype
    tol = dtypes.finfo(dtype).eps if tol is None else tol
    fixed = pnp.zeros((n, 0), dtype) if constraints is None else constraints
    count = typeof(fixed).shape[1]

    def orthonormal(*blocks: Any) -> Any:
        q, _ = pnp.linalg.qr(pnp.concatenate([fixed, *blocks], axis=1))
        return q[:, count:]

    def required(w: Any, ax: Any) -> Any:
        if limit is not None:
            return limit(w, ax)
        sizes = pnp.abs(w) + _norms(ax)
        return lax.convert_element_type(tol, typeof(sizes).dtype) * 10 * n * sizes

    def residual(x: Any, w: Any) -> tuple[Any, Any]:
        ax = apply(x)
        bx = x if metric is None else metric(x)
        r = ax - bx * w.astype(dtype)
        return r, pnp.all(_norms(r) <= required(w, ax))

    def going(state: Any) -> Any:
        *_, done, step = state
        return ~done & (step < steps)

    def advance(state: Any) -> Any:
        x, _, p, r, _, step = state
        r = r if precondition is None else precondition(r)
        basis = orthonormal(x, _unit(r), _unit(p))
        w, c = _ritz(apply, metric, basis, k, largest)
        x, p = _exact(basis, c), _exact(basis[:, k:], c[k:])
        r, done = residual(x, w)
        return x, w, p, r, done, step + 1

    basis = orthonormal(X)
    w, c = _ritz(apply, metric, basis, k, largest)
    x = _exact(basis, c)
    r, done = residual(x, w)
    state = x, w, pnp.zeros_like(x), r, done, pnp.zeros((), np.int32)
    x, w, *_, step = lax.while_loop(going, advance, state)
    return w, x, step


def lobpcg(
    A: OperatorLike, X: ArrayLike, B: OperatorLike | None = None, M: OperatorLike | None = None,
    Y: ArrayLike | None = None, tol: ArrayLike | None = None, maxiter: int | None = None,
    largest: bool = True,
) -> tuple[Any, Any]:  # fmt: skip
    """Extreme eigenvalues of ``A v = w B v``, and their eigenvectors, by LOBPCG.

    Args:
      A: a Hermitian matrix ``[n, n]``, dense or sparse, or a :class:`LinearOperator`.
      X: initial vectors ``[n, k]``, linearly independent.
      B: a Hermitian positive definite matrix or operator, by default the identity.
      M: a preconditioner: a matrix or operator that approximates the inverse of ``A``.
      Y: vectors ``[n, j]``; the eigenvectors are those in the space with ``Y^H B v = 0``.
      tol: the tolerance of the residual norms ``|A v - w B v|``, by default the square root of the
        machine epsilon times ``n``.
      maxiter: the maximum number of steps, 20 by default.
      largest: compute the largest eigenvalues instead of the smallest ones.

    Returns:
      The eigenvalues ``[k]``, in descending order for ``largest`` and ascending order otherwise,
      and the eigenvectors ``[n, k]``, with ``v^H B v = 1``.

    Raises:
      ValueError: if shapes do not match.
      TypeError: if an operator is neither a matrix nor a :class:`LinearOperator`.

    The derivative is implicit, for eigenvalues of multiplicity 1 and without ``Y``. If ``3 k``
    vectors and ``Y`` exceed the dimension, the problem is solved as a dense one. The method is that
    of Knyazev (SIAM J. Sci. Comput. 23, 2001).

    >>> import primax_numpy as pnp
    >>> w, v = lobpcg(pnp.diag(pnp.arange(1.0, 13.0)), pnp.eye(12, 2) + 0.1, largest=False)
    >>> [round(float(x), 3) for x in w]
    [1.0, 2.0]
    """
    a = square_operator("lobpcg", A)
    X = pnp.asarray(X)
    if X.ndim != 2 or X.shape[0] != a.shape[0] or not X.shape[1]:
        raise ValueError(
            f"X must be a matrix of k vectors of size {a.shape[0]}, k > 0, got shape {X.shape}"
        )
    dtype = pnp.promote_types(a.dtype, typeof(as_inexact(X)).dtype)
    X = X.astype(dtype)
    b = None if B is None else square_operator("lobpcg", B)
    m = None if M is None else square_operator("lobpcg", M)
    fixed = None if Y is None else pnp.asarray(Y).astype(dtype)
    n, k = X.shape
    used = k + (0 if fixed is None else fixed.shape[1])
    if used > n:
        raise ValueError(f"{used} vectors of X and Y are more than the dimension {n}")
    if fixed is not None and b is not None:
        fixed = b.matmat(fixed)
    products = lambda op: None if op is None else lambda x: op.matmat(x).astype(dtype)
    eps = dtypes.finfo(dtype).eps
    tol = np.sqrt(eps) * n if tol is None else tol
    if 2 * k + used > n:
        w, v = _small(products(a), products(b), X, fixed, largest)
    else:
        w, v, _ = block_iteration(
            products(a), X, steps=20 if maxiter is None else operator.index(maxiter),
            limit=lambda w, _: lax.convert_element_type(tol, typeof(w).dtype), largest=largest,
            metric=products(b), precondition=products(m), constraints=fixed,
        )  # fmt: skip
    if fixed is not None:
        return w, v
    return with_derivatives(vector_product(a, dtype), w, v, vector_product(b, dtype))


def _small(
    apply: _Product, metric: _Product | None, X: Any, fixed: Any, largest: bool
) -> tuple[Any, Any]:
    """Eigenpairs in the whole space, or in the space orthogonal to the constraints."""
    n, k = typeof(X).shape
    whole = pnp.eye(n, dtype=typeof(X).dtype)
    if fixed is not None:
        q, _ = pnp.linalg.qr(pnp.concatenate([fixed, whole], axis=1), mode="complete")
        whole = q[:, typeof(fixed).shape[1] :]
    w, c = _ritz(apply, metric, whole, k, largest)
    return w, _exact(whole, c)


def vector_product(a: LinearOperator | None, dtype: Any) -> _Product | None:
    """The product of an operator with a vector, in a dtype."""
    return None if a is None else lambda x: a.matvec(x).astype(dtype)
