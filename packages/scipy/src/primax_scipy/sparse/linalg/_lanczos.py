"""Lanczos iteration with thick restarts for Hermitian operators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import dtypes, typeof
from primax_numpy import random

from ._operators import frozen

_Product = Callable[[Any], Any]
_exact = partial(pnp.matmul, precision=lax.Precision.HIGHEST)


def start_vector(n: int, dtype: Any) -> Any:
    """A fixed random vector."""
    return _random(random.key(0), n, dtype)


def _random(key: Any, n: int, dtype: Any) -> Any:
    return random.normal(key, (n,), dtype)


def _extend(apply: _Product, metric: _Product, basis: Any, h: Any, j: Any) -> tuple[Any, Any, Any]:
    """One step: the basis with a vector more, the projected matrix with column ``j``, and the norm
    of the new vector before normalization.

    The new vector is orthogonalized twice against the whole basis. In an invariant subspace it is
    replaced by a random one.
    """
    n, dtype = typeof(basis).shape[1], typeof(basis).dtype
    adjoint = pnp.conj(basis)

    def orthogonalized(w: Any) -> tuple[Any, Any]:
        once = _exact(adjoint, metric(w))
        w = w - _exact(once, basis)
        again = _exact(adjoint, metric(w))
        return w - _exact(again, basis), once + again

    def norm(w: Any) -> Any:
        return pnp.sqrt(pnp.maximum(pnp.real(pnp.vdot(w, metric(w))), 0))

    def another() -> Any:
        w, _ = orthogonalized(_random(random.fold_in(random.key(1), j), n, dtype))
        size = norm(w)
        exhausted = size <= 100 * n * dtypes.finfo(dtype).eps
        return pnp.where(exhausted, 0, w / pnp.where(exhausted, 1, size).astype(dtype))

    w = apply(basis[j])
    whole = norm(w)
    w, column = orthogonalized(w)
    beta = norm(w)
    more = beta > 4 * dtypes.finfo(dtype).eps * pnp.maximum(whole, pnp.max(pnp.abs(h)))
    beta = pnp.where(more, beta, 0)
    new = lax.cond(more, lambda: w / pnp.where(more, beta, 1).astype(dtype), another)
    size = typeof(h).shape[0]
    return basis.at[j + 1].set(new), h.at[:, j].set(column[:size]), beta


def hermitian_pairs(
    apply: _Product,
    metric: _Product,
    first: Any,
    *,
    k: int,
    size: int,
    rank: Callable[[Any], Any],
    tol: Any,
    restarts: Any,
) -> tuple[Any, Any]:
    """Eigenpairs of an operator that is Hermitian in the inner product of ``metric``.

    Args:
      apply, metric: products with vectors ``[n]``.
      first: the first vector of the Krylov space.
      k: the number of eigenvalues.
      size: the dimension of the Krylov space, above ``k``.
      rank: the order of eigenvalues ``[size]`` by preference, as indices.
      tol: the relative tolerance; at least the machine epsilon.
      restarts: the maximum number of restarts.

    Returns:
      The eigenvalues ``[k]`` in this order, NaN where the iteration did not converge, and the
      eigenvectors ``[n, k]``. The algorithm is that of Wu and Simon (SIAM J. Matrix Anal. Appl. 22,
      2000).
    """
    apply, metric, first = frozen(apply), frozen(metric), lax.stop_gradient(first)
    n, dtype = typeof(first).shape[0], typeof(first).dtype
    eps = float(dtypes.finfo(dtype).eps)
    saved = min(k + (size - k) // 2, size - 1)
    real = typeof(pnp.real(first)).dtype

    def extended(start: Any, state: Any) -> Any:
        step = lambda j, s: _extend(apply, metric, s[0], s[1], j)
        return lax.fori_loop(start, size, step, state)

    def pairs(basis: Any, h: Any, beta: Any) -> tuple[Any, Any, Any]:
        upper = pnp.triu(h, 1)
        whole = upper + pnp.conj(upper.T) + pnp.diag(pnp.real(pnp.diagonal(h)).astype(dtype))
        values, vectors = pnp.linalg.eigh(whole)
        order = rank(values)
        values, vectors = values[order], vectors[:, order]
        errors = pnp.abs(beta * vectors[-1])
        scale = pnp.maximum(pnp.abs(values), eps ** (2 / 3))
        rounding = 4 * eps * pnp.max(pnp.abs(values))
        limit = pnp.maximum(pnp.maximum(tol, eps).astype(real) * scale, rounding)
        return values, vectors, errors <= limit

    def going(state: Any) -> Any:
        *_, converged, step = state
        return ~pnp.all(converged[:k]) & (step < restarts)

    def restart(state: Any) -> Any:
        basis, values, vectors, beta, _, step = state
        ritz = _exact(vectors[:, :saved].T, basis[:size])
        basis = pnp.zeros_like(basis).at[:saved].set(ritz).at[saved].set(basis[size])
        index = np.arange(saved)
        h = pnp.zeros((size, size), dtype).at[index, index].set(values[:saved].astype(dtype))
        basis, h, beta = extended(saved, (basis, h, beta))
        values, vectors, converged = pairs(basis, h, beta)
        return basis, values, vectors, beta, converged, step + 1

    length = pnp.sqrt(pnp.real(pnp.vdot(first, metric(first)))).astype(dtype)
    basis = pnp.zeros((size + 1, n), dtype).at[0].set(first / length)
    state = basis, pnp.zeros((size, size), dtype), pnp.zeros((), real)
    basis, h, beta = extended(0, state)
    values, vectors, converged = pairs(basis, h, beta)
    state = basis, values, vectors, beta, converged, pnp.zeros((), np.int32)
    basis, values, vectors, _, converged, _ = lax.while_loop(going, restart, state)
    v = _exact(vectors[:, :k].T, basis[:size]).T
    return pnp.where(converged[:k], values[:k], np.nan), v
