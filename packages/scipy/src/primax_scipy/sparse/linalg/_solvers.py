"""Krylov solvers: conjugate gradient, BiCGSTAB, GMRES."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax, tree
from primax_core.extend import dtypes, is_operand, typeof
from primax_core.typing import ArrayLike, PyTree
from primax_numpy.declaring import as_inexact, is_complex

from ._operators import OperatorLike, is_matrix, square_operator
from ._vectors import (
    Operator,
    chosen,
    length,
    minus,
    plus,
    product,
    square,
    times,
)

_Method = Callable[[Operator, Any, Any, Operator], Any]


def _as_operator(a: Any) -> Operator:
    """The product with a matrix, or the function itself.

    Raises:
      TypeError: if the argument is neither a matrix nor a function.
      ValueError: if the matrix is not square.
    """
    if callable(a):
        return a
    if is_matrix(a) and not is_operand(a):
        a = square_operator("a solver", a)
        return a.matvec
    if not is_operand(a) or not typeof(a).shape:
        raise TypeError(f"linear operator must be either a function or ndarray: {a}")
    shape = typeof(a).shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"linear operator must be a square matrix, but has shape: {shape}")

    def product_with(x: Any) -> Any:
        if not is_operand(x):
            raise TypeError(
                f"a matrix multiplies one vector, not a {type(x).__name__}: pass a function of the "
                "pytree instead"
            )
        return pnp.matmul(a, x, precision=lax.Precision.HIGHEST)

    return product_with


def _shapes(x: Any) -> list[tuple[int, ...]]:
    return [typeof(leaf).shape for leaf in tree.leaves(x)]


def _like(x: Any, b: Any) -> Any:
    return tree.map(lambda u, v: lax.convert_element_type(u, typeof(v).dtype), x, b)


def _solve(
    method: Callable[..., _Method], a: Any, b: Any, x0: Any, tol: Any, atol: Any, maxiter: Any,
    m: Any, symmetric: bool,
) -> Any:  # fmt: skip
    """Check the arguments, and solve with implicit differentiation."""
    apply = _as_operator(a)
    precondition: Operator = (lambda x: x) if m is None else _as_operator(m)
    b = tree.map(lambda v: lax.convert_element_type(as_inexact(v), _wide(v)), b)
    x0 = tree.map(pnp.zeros_like, b) if x0 is None else x0
    if tree.structure(x0) != tree.structure(b):
        raise ValueError(
            "x0 and b must have matching tree structure: "
            f"{tree.structure(x0)} vs {tree.structure(b)}"
        )
    if _shapes(x0) != _shapes(b):
        raise ValueError(
            f"arrays in x0 and b must have matching shapes: {_shapes(x0)} vs {_shapes(b)}"
        )
    x0 = _like(x0, b)
    if maxiter is None:
        maxiter = 10 * sum(typeof(leaf).size for leaf in tree.leaves(b))

    def run(guess: Any, matvec: Operator, right: Any) -> Any:
        limit = lax.max(
            lax.square(_number(tol, right)) * square(right), lax.square(_number(atol, right))
        )
        return method(limit=limit, maxiter=maxiter)(
            lambda x: _like(matvec(x), right), right, guess, precondition
        )

    def transposed(vecmat: Operator, right: Any) -> Any:
        return run(tree.map(pnp.zeros_like, right), vecmat, right)

    real = not any(is_complex(leaf) for leaf in tree.leaves(b))
    mirrored = symmetric and real  # a Hermitian matrix is not its own transpose
    return lax.custom_linear_solve(
        lambda x: _like(apply(x), b), b, lambda f, y: run(x0, f, y),
        transpose_solve=None if mirrored else transposed, symmetric=mirrored,
    )  # fmt: skip


def _wide(x: Any) -> Any:
    """The dtype of a right-hand side; floats for integers."""
    return typeof(as_inexact(x)).dtype


def _number(x: Any, b: Any) -> Any:
    """A tolerance in the dtype of squared norms."""
    return lax.convert_element_type(x, typeof(square(b)).dtype)


def _cg(limit: Any, maxiter: Any) -> _Method:
    def method(matvec: Operator, b: Any, x0: Any, precondition: Operator) -> Any:
        def going(state: Any) -> Any:
            _, r, *_, k = state
            return (square(r) > limit) & (k < maxiter)

        def step(state: Any) -> Any:
            x, r, gamma, p, k = state
            ap = matvec(p)
            alpha = gamma / product(p, ap)
            x, r = plus(x, times(alpha, p)), minus(r, times(alpha, ap))
            z = precondition(r)
            new = product(r, z)
            return x, r, new, plus(z, times(new / gamma, p)), k + 1

        r0 = minus(b, matvec(x0))
        z0 = precondition(r0)
        return lax.while_loop(going, step, (x0, r0, product(r0, z0), z0, 0))[0]

    return method


def _bicgstab(limit: Any, maxiter: Any) -> _Method:
    def method(matvec: Operator, b: Any, x0: Any, precondition: Operator) -> Any:
        def going(state: Any) -> Any:
            _, r, *_, k = state
            return (square(r) > limit) & (k < maxiter) & (k >= 0)

        def step(state: Any) -> Any:
            x, r, r_first, alpha, omega, rho, p, q, k = state
            new = product(r_first, r)
            beta = new / rho * alpha / omega
            p = plus(r, times(beta, minus(p, times(omega, q))))
            ready = precondition(p)
            q = matvec(ready)
            alpha = new / product(r_first, q)
            s = minus(r, times(alpha, q))
            done = square(s) < limit
            z = precondition(s)
            t = matvec(z)
            omega = product(t, s) / product(t, t)
            half = plus(x, times(alpha, ready))
            x = chosen(done, half, plus(half, times(omega, z)))
            r = chosen(done, s, minus(s, times(omega, t)))
            stuck = (omega == 0) | (alpha == 0) | (new == 0)
            return x, r, r_first, alpha, omega, new, p, q, pnp.where(stuck & ~done, -11, k + 1)

        r0 = minus(b, matvec(x0))
        one = product(b, b) * 0 + 1
        return lax.while_loop(going, step, (x0, r0, r0, one, one, one, r0, r0, 0))[0]

    return method


def cg(
    A: OperatorLike | Callable[[Any], Any], b: PyTree, x0: PyTree = None, *, tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0, maxiter: ArrayLike | None = None,
    M: OperatorLike | Callable[[Any], Any] | None = None,
) -> tuple[Any, None]:  # fmt: skip
    """Solution ``x`` of ``A @ x = b`` by conjugate gradients, for Hermitian positive definite
    ``A``.

    Args:
      A: a matrix ``[n, n]``, dense or sparse, a :class:`LinearOperator`, or a function that
        computes the product with a matrix.
      b: an array, or a pytree of arrays for a function ``A`` of such pytrees.
      x0: the initial guess, zeros by default.
      tol, atol: the tolerance of the residual norm: ``max(tol * |b|, atol)``.
      maxiter: the maximum number of steps, by default ten times the size of ``b``.
      M: a preconditioner: a matrix or function that approximates the inverse of ``A``, also
        Hermitian positive definite.

    Returns:
      ``x`` and ``None``. Derivatives of any order solve further systems with the same tolerance.

    Raises:
      TypeError: if ``A`` is neither a matrix nor a function.
      ValueError: if the shapes do not match.

    >>> x, _ = cg(np.float32([[4, 1], [1, 3]]), np.float32([1, 2]))
    >>> [round(float(v), 4) for v in x]
    [0.0909, 0.6364]
    """
    return _solve(_cg, A, b, x0, tol, atol, maxiter, M, True), None


def bicgstab(
    A: OperatorLike | Callable[[Any], Any], b: PyTree, x0: PyTree = None, *, tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0, maxiter: ArrayLike | None = None,
    M: OperatorLike | Callable[[Any], Any] | None = None,
) -> tuple[Any, None]:  # fmt: skip
    """Solution ``x`` of ``A @ x = b`` by stabilized biconjugate gradients, for any invertible
    ``A``.

    Arguments, results and errors are those of :func:`cg`; ``M`` need not be Hermitian. The
    algorithm is that of van der Vorst (SIAM J. Sci. Stat. Comput. 13, 1992). If it breaks down,
    the last ``x`` is returned.
    """
    return _solve(_bicgstab, A, b, x0, tol, atol, maxiter, M, False), None


# GMRES


def _flat(x: Any, dtype: Any) -> Any:
    parts = [lax.convert_element_type(pnp.ravel(leaf), dtype) for leaf in tree.leaves(x)]
    return pnp.concatenate(parts)


def _unflat(flat: Any, b: Any) -> Any:
    leaves, start = [], 0
    for leaf in tree.leaves(b):
        aval = typeof(leaf)
        part = lax.reshape(flat[start : start + aval.size], aval.shape)
        leaves.append(
            lax.convert_element_type(
                part if is_complex(leaf) or not is_complex(part) else lax.real(part), aval.dtype
            )
        )
        start += aval.size
    return tree.unflatten(tree.structure(b), leaves)


def _arnoldi(apply: Operator, first: Any, restart: int) -> tuple[Any, Any]:
    """An orthonormal basis ``[restart + 1, n]`` of the Krylov space, and the Hessenberg matrix
    ``[restart + 1, restart]`` of the operator. Rows beyond an invariant subspace are zero."""
    n, dtype = typeof(first).size, typeof(first).dtype
    exact = partial(pnp.matmul, precision=lax.Precision.HIGHEST)

    def step(k: Any, state: Any) -> Any:
        basis, h = state
        w = apply(basis[k])
        size = pnp.linalg.norm(w)
        # Gram-Schmidt orthogonalization, twice
        once = exact(pnp.conj(basis), w)
        w = w - exact(once, basis)
        again = exact(pnp.conj(basis), w)
        w = w - exact(again, basis)
        rest = pnp.linalg.norm(w)
        more = rest > size * dtypes.finfo(dtype).eps * 4
        basis = basis.at[k + 1].set(pnp.where(more, w / pnp.where(more, rest, 1), 0))
        column = (once + again).at[k + 1].set(pnp.where(more, rest, 0))
        return basis, h.at[:, k].set(column)

    basis = pnp.zeros((restart + 1, n), dtype).at[0].set(first)
    h = pnp.zeros((restart + 1, restart), dtype)
    return lax.fori_loop(0, restart, step, (basis, h))


def _gmres(limit: Any, maxiter: Any, restart: int) -> _Method:
    def method(matvec: Operator, b: Any, x0: Any, precondition: Operator) -> Any:
        dtype = np.result_type(*[typeof(leaf).dtype for leaf in tree.leaves(b)])

        def residual(x: Any) -> Any:
            return _flat(precondition(minus(b, matvec(_unflat(x, b)))), dtype)

        def apply(v: Any) -> Any:
            return _flat(precondition(matvec(_unflat(v, b))), dtype)

        def going(state: Any) -> Any:
            x, r, k, improved = state
            plain = square(minus(b, matvec(_unflat(x, b))))
            return (k < maxiter) & (plain > limit) & improved & (pnp.linalg.norm(r) > 0)

        def step(state: Any) -> Any:
            x, r, k, _ = state
            size = pnp.linalg.norm(r)
            basis, h = _arnoldi(apply, r / size, restart)
            right = pnp.zeros(restart + 1, dtype).at[0].set(size)
            y = _least_squares(h, right)
            x_new = x + pnp.matmul(y, basis[:restart], precision=lax.Precision.HIGHEST)
            r_new = residual(x_new)
            better = pnp.linalg.norm(r_new) < size
            return (
                pnp.where(better, x_new, x), pnp.where(better, r_new, r), k + 1, better,
            )  # fmt: skip

        x = _flat(x0, dtype)
        return _unflat(lax.while_loop(going, step, (x, residual(x), 0, True))[0], b)

    return method


def _least_squares(h: Any, right: Any) -> Any:
    """Least-squares solution ``y`` of ``h @ y = right``, with zeros for zero columns."""
    q, r = lax.linalg.qr(h, full_matrices=False)
    y = pnp.matmul(pnp.conj(q.T), right)
    diagonal = pnp.diagonal(r)
    largest = pnp.max(pnp.abs(diagonal))
    dead = pnp.abs(diagonal) <= largest * dtypes.finfo(typeof(r).dtype).eps
    r = pnp.where(dead[:, None], pnp.eye(len(diagonal), dtype=typeof(r).dtype), r)
    y = pnp.where(dead, 0, y)
    return lax.linalg.triangular_solve(r, y[:, None], left_side=True)[:, 0]


_GMRES_METHODS = ("batched", "incremental")


def gmres(
    A: OperatorLike | Callable[[Any], Any], b: PyTree, x0: PyTree = None, *, tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0, restart: int = 20, maxiter: ArrayLike | None = None,
    M: OperatorLike | Callable[[Any], Any] | None = None, solve_method: str = "batched",
) -> tuple[Any, Any]:  # fmt: skip
    """Solution ``x`` of ``A @ x = b`` by GMRES, for any invertible ``A``.

    Args:
      A, b, x0, tol, atol: as for :func:`cg`.
      restart: the dimension of the Krylov space at which the method restarts.
      maxiter: the maximum number of restarts, by default ten times the size of ``b``.
      M: a left preconditioner: a matrix or function that approximates the inverse of ``A``.
      solve_method: ``"batched"`` or ``"incremental"``, which are equivalent.

    Returns:
      ``x``, and 0, or -1 if ``x`` is not finite. The iteration ends early if a restart does not
      reduce the residual. The algorithm is that of Saad and Schultz, SIAM J. Sci. Stat. Comput. 7
      (1986).

    Raises:
      ValueError: if ``solve_method`` is unknown, or shapes do not match.
      TypeError: if ``A`` is neither a matrix nor a function.
    """
    if solve_method not in _GMRES_METHODS:
        raise ValueError(
            f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'"
        )
    size = sum(typeof(leaf).size for leaf in tree.leaves(b))
    method = partial(_gmres, restart=max(1, min(operator.index(restart), size)))
    x = _solve(method, A, b, x0, tol, atol, maxiter, M, False)
    failed = ~pnp.isfinite(length(x))
    return x, pnp.where(failed, -1, 0)
