"""Least-squares solutions of linear systems by Golub-Kahan bidiagonalization: LSQR and LSMR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact

from ._operators import LinearOperator, OperatorLike, aslinearoperator, frozen
from ._solvers import cg
from ._vectors import length


class _Products(NamedTuple):
    """The products of a matrix and of its adjoint with vectors."""

    forward: Callable[[Any], Any]
    adjoint: Callable[[Any], Any]


def _safe(x: Any) -> Any:
    return pnp.where(x != 0, x, 1)


def _normalized(x: Any) -> tuple[Any, Any]:
    size = length(x)
    return x / _safe(size).astype(typeof(x).dtype), size


def _reduced(
    f: Callable[[Any], Any], w: Any, previous: Any, beta: Any, dtype: Any
) -> tuple[Any, Any]:
    """One half of a step of the bidiagonalization."""
    return _normalized(f(w) - beta.astype(dtype) * previous)


def _rotation(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """The plane rotation ``c, s, r`` with ``c a + s b = r``."""
    r = pnp.hypot(a, b)
    safe = _safe(r)
    return pnp.where(r != 0, a / safe, 1), pnp.where(r != 0, b / safe, 0), r


class _Norms(NamedTuple):
    """Estimates at the solution."""

    residual: Any
    damped_residual: Any
    matrix: Any
    condition: Any
    gradient: Any
    solution: Any


def _status(norms: _Norms, size: Any, tol: tuple[Any, Any, Any], step: Any, steps: Any) -> Any:
    """SciPy's reason to stop, or 0 to go on."""
    atol, btol, conlim = tol
    eps = dtypes.finfo(typeof(size).dtype).eps
    relative = norms.damped_residual / _safe(size)
    scaled = norms.gradient / _safe(norms.matrix * norms.damped_residual)
    limit = btol + atol * norms.matrix * norms.solution / _safe(size)
    inverse = 1 / _safe(norms.condition)
    tests = [
        (relative <= limit, 1), (scaled <= atol, 2),
        ((conlim > 0) & (inverse <= 1 / _safe(conlim)), 3),
        (1 + relative / (1 + norms.matrix * norms.solution / _safe(size)) <= 1, 4),
        (1 + scaled <= 1, 5), (inverse <= eps, 6), (step >= steps, 7),
    ]  # fmt: skip
    out = pnp.zeros((), np.int32)
    for condition, code in reversed(tests):
        out = pnp.where(condition, np.int32(code), out)
    return out


def _lsqr(op: _Products, b: Any, damp: Any, tol: Any, steps: Any, n: int) -> Any:
    """The iteration of Paige and Saunders (ACM Trans. Math. Softw. 8, 1982)."""
    dtype = typeof(b).dtype
    u, beta = _normalized(b)
    v, alpha = _normalized(op.adjoint(u))
    zero = pnp.zeros_like(beta)
    x, variance = pnp.zeros(n, dtype), pnp.zeros(n, typeof(beta).dtype)
    size = beta
    norms = _Norms(beta, beta, zero, zero, alpha * beta, zero)

    def step(s: Any) -> Any:
        x, u, v, w, variance, alpha, rho_bar, phi_bar, anorm2, dnorm2, psi2, k, status, norms = s
        u, beta = _reduced(op.forward, v, u, alpha, dtype)
        anorm2 = anorm2 + alpha**2 + beta**2 + damp**2
        v, alpha = _reduced(op.adjoint, u, v, beta, dtype)
        c1, s1, rho1 = _rotation(rho_bar, damp)
        psi2 = psi2 + (s1 * phi_bar) ** 2
        phi1 = c1 * phi_bar
        c, sine, rho = _rotation(rho1, beta)
        theta, rho_bar = sine * alpha, -c * alpha
        phi, phi_bar = c * phi1, sine * phi1
        rho = _safe(rho)
        direction = w / rho.astype(dtype)
        dnorm2 = dnorm2 + length(direction) ** 2
        variance = variance + pnp.real(direction * pnp.conj(direction))
        x = x + (phi / rho).astype(dtype) * w
        w = v - (theta / rho).astype(dtype) * w
        damped = pnp.sqrt(phi_bar**2 + psi2)
        plain2 = damped**2 - damp**2 * length(x) ** 2
        matrix = pnp.sqrt(anorm2)
        norms = _Norms(
            pnp.sqrt(pnp.maximum(plain2, 0)), damped, matrix, matrix * pnp.sqrt(dnorm2),
            alpha * pnp.abs(c * phi_bar), length(x),
        )  # fmt: skip
        status = _status(norms, size, tol, k + 1, steps)
        return (
            x,
            u,
            v,
            w,
            variance,
            alpha,
            rho_bar,
            phi_bar,
            anorm2,
            dnorm2,
            psi2,
            k + 1,
            status,
            norms,
        )

    state = (
        x,
        u,
        v,
        v,
        variance,
        alpha,
        alpha,
        beta,
        zero,
        zero,
        zero,
        np.int32(0),
        np.int32(0),
        norms,
    )
    start = norms.gradient == 0
    out = lax.while_loop(lambda s: (s[-2] == 0) & (s[-3] < steps) & ~start, step, state)
    return out[0], out[4], out[-3], out[-2], out[-1]


def _lsmr(op: _Products, b: Any, damp: Any, tol: Any, steps: Any, n: int) -> Any:
    """The iteration of Fong and Saunders (SIAM J. Sci. Comput. 33, 2011)."""
    dtype = typeof(b).dtype
    u, beta = _normalized(b)
    v, alpha = _normalized(op.adjoint(u))
    zero, one = pnp.zeros_like(beta), pnp.ones_like(beta)
    size = beta
    norms = _Norms(beta, beta, alpha, one, alpha * beta, zero)

    def step(s: Any) -> Any:
        (x, u, v, h, h_bar, alpha, alpha_bar, zeta, zeta_bar, rho, rho_bar, c_bar, s_bar, r, anorm2,
         largest, smallest, k, _, norms) = s  # fmt: skip
        old_zeta = zeta
        u, beta = _reduced(op.forward, v, u, alpha, dtype)
        anorm2 = anorm2 + beta**2
        v, new_alpha = _reduced(op.adjoint, u, v, beta, dtype)
        c_hat, s_hat, alpha_hat = _rotation(alpha_bar, damp)
        old_rho, old_rho_bar = rho, rho_bar
        c, sine, rho = _rotation(alpha_hat, beta)
        theta_new, alpha_bar = sine * new_alpha, c * new_alpha
        theta_bar, rho_temp = s_bar * rho, c_bar * rho
        c_bar, s_bar, rho_bar = _rotation(rho_temp, theta_new)
        zeta, zeta_bar = c_bar * zeta_bar, -s_bar * zeta_bar
        ratio = theta_bar * rho / _safe(old_rho * old_rho_bar)
        h_bar = h - ratio.astype(dtype) * h_bar
        x = x + (zeta / _safe(rho * rho_bar)).astype(dtype) * h_bar
        h = v - (theta_new / _safe(rho)).astype(dtype) * h
        residual, r = _residual_of_lsmr(
            r, c_hat, s_hat, c, sine, rho_bar, theta_bar, old_zeta, zeta
        )
        anorm = pnp.sqrt(anorm2)
        anorm2 = anorm2 + new_alpha**2
        largest = pnp.maximum(largest, old_rho_bar)
        smallest = pnp.where(k > 0, pnp.minimum(smallest, old_rho_bar), smallest)
        high = pnp.maximum(largest, rho_temp)
        low = pnp.minimum(smallest, rho_temp)
        norms = _Norms(residual, residual, anorm, high / _safe(low), pnp.abs(zeta_bar), length(x))
        status = _status(norms, size, tol, k + 1, steps)
        return (x, u, v, h, h_bar, new_alpha, alpha_bar, zeta, zeta_bar, rho, rho_bar, c_bar,
                s_bar, r, anorm2, largest, smallest, k + 1, status, norms)  # fmt: skip

    x = pnp.zeros(n, dtype)
    first = (beta, zero, one, zero, zero, zero)
    huge = pnp.full_like(beta, dtypes.finfo(typeof(beta).dtype).max / 4)
    state = (x, u, v, v, x, alpha, alpha, zero, alpha * beta, one, one, one, zero, first, alpha**2,
             zero, huge, np.int32(0), np.int32(0), norms)  # fmt: skip
    start = norms.gradient == 0
    out = lax.while_loop(lambda s: (s[-2] == 0) & (s[-3] < steps) & ~start, step, state)
    return out[0], None, out[-3], out[-2], out[-1]


def _residual_of_lsmr(
    r: Any, c_hat: Any, s_hat: Any, c: Any, s: Any, rho_bar: Any, theta_bar: Any, old_zeta: Any,
    zeta: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """The residual norm by the recurrences of section 5 of the paper, and their state."""
    beta_dd, beta_d, rho_d, tau, theta_tilde, d = r
    beta_acute, beta_check = c_hat * beta_dd, -s_hat * beta_dd
    beta_hat, beta_dd = c * beta_acute, -s * beta_acute
    c_tilde, s_tilde, rho_tilde = _rotation(rho_d, theta_bar)
    tau = (old_zeta - theta_tilde * tau) / _safe(rho_tilde)
    theta_tilde, rho_d = s_tilde * rho_bar, c_tilde * rho_bar
    beta_d = -s_tilde * beta_d + c_tilde * beta_hat
    tau_d = (zeta - theta_tilde * tau) / _safe(rho_d)
    d = d + beta_check**2
    norm = pnp.sqrt(d + (beta_d - tau_d) ** 2 + beta_dd**2)
    return norm, (beta_dd, beta_d, rho_d, tau, theta_tilde, d)


# The public functions


class _Problem(NamedTuple):
    """A system: products, right-hand side, initial guess, and options in the real dtype."""

    products: _Products
    right: Any
    x0: Any
    damp: Any
    tol: tuple[Any, Any, Any]
    shape: tuple[int, int]


def _problem(
    name: str, A: Any, b: Any, damp: Any, atol: Any, btol: Any, conlim: Any, x0: Any
) -> _Problem:
    op: LinearOperator = aslinearoperator(A)
    b = as_inexact(b)
    if pnp.ndim(b) == 2 and pnp.shape(b)[1] == 1:
        b = b[:, 0]
    m, n = op.shape
    if pnp.shape(b) != (m,):
        raise ValueError(
            f"{name} with a matrix of shape {op.shape} needs b of shape {(m,)}, got {pnp.shape(b)}"
        )
    dtype = pnp.promote_types(op.dtype, typeof(b).dtype)
    products = _Products(
        lambda x: op.matvec(x).astype(dtype), lambda y: op.rmatvec(y).astype(dtype)
    )
    b = b.astype(dtype)
    if x0 is not None:
        x0 = pnp.asarray(x0)
        if x0.shape != (n,):
            raise ValueError(f"x0 of {name} must have the shape {(n,)}, got {x0.shape}")
        x0 = x0.astype(dtype)
        b = b - products.forward(x0)
    real = typeof(pnp.real(b)).dtype
    damp, atol, btol, conlim = (pnp.asarray(v).astype(real) for v in (damp, atol, btol, conlim))
    return _Problem(products, b, x0, damp, (atol, btol, conlim), (m, n))


def _solution(problem: _Problem, iteration: Callable[..., Any], steps: Any) -> tuple[Any, Any]:
    """The solution with its derivative, and the results of the iteration."""
    m, n = problem.shape
    real, dtype = typeof(problem.damp).dtype, typeof(problem.right).dtype
    forward, adjoint = problem.products
    fixed = _Products(frozen(forward), frozen(adjoint))
    stop = lax.stop_gradient
    steps = pnp.asarray(steps).astype(np.int32)
    b, damp = stop(problem.right), stop(problem.damp)
    out = iteration(fixed, b, damp, problem.tol, steps, n)
    tolerance = float(dtypes.finfo(real).eps) ** 0.75
    penalty = (problem.damp**2).astype(dtype)

    def solve(linear: Any, right: Any) -> Any:
        return cg(lambda v: -linear(v), -right, tol=tolerance)[0]

    if m >= n:
        stationary = lambda x: adjoint(problem.right - forward(x)) - penalty * x
        x = lax.custom_root(stationary, out[0], lambda _, x: x, solve)
    else:
        # The solution is A^H y, also if it is the one of minimum norm.
        flipped = _Products(fixed.adjoint, fixed.forward)
        y = iteration(flipped, out[0], 0 * damp, problem.tol, steps, m)[0]
        residual = lambda y: problem.right - forward(adjoint(y)) - penalty * y
        x = adjoint(lax.custom_root(residual, y, lambda _, y: y, solve))
        x = x + stop(out[0] - x)
    return (x if problem.x0 is None else problem.x0 + x), out


class LSQRResult(NamedTuple):
    """Result of :func:`lsqr`."""

    x: Any
    istop: Any
    itn: Any
    r1norm: Any
    r2norm: Any
    anorm: Any
    acond: Any
    arnorm: Any
    xnorm: Any
    var: Any


def lsqr(
    A: OperatorLike, b: ArrayLike, damp: ArrayLike = 0.0, atol: ArrayLike = 1e-6,
    btol: ArrayLike = 1e-6, conlim: ArrayLike = 1e8, iter_lim: ArrayLike | None = None,
    calc_var: bool = False, x0: ArrayLike | None = None,
) -> LSQRResult:  # fmt: skip
    """Least-squares solution of ``A x = b`` by LSQR: ``x`` minimizes ``|b - A x|^2 + damp^2
    |x - x0|^2``; of several minima, it is the one closest to ``x0``.

    Args:
      A: a matrix ``[m, n]``, dense or sparse, or a :class:`LinearOperator`.
      b: a vector ``[m]``.
      damp: the damping.
      atol, btol: the relative errors of ``A`` and ``b``: the iteration ends if the residual is
        smaller than those that they explain.
      conlim: the iteration ends if the estimated condition number exceeds this limit; 0 for none.
      iter_lim: the maximum number of steps, by default ``2 n``.
      calc_var: estimate the diagonal of the inverse of ``A^H A + damp^2``.
      x0: the initial guess ``[n]``, zeros by default.

    Returns:
      A named tuple: ``x`` ``[n]``; ``istop``, the reason to stop (0: ``x0`` is the solution; 1: an
      approximate solution; 2: an approximate least-squares solution; 3: ``conlim``; 4, 5, 6: as 1,
      2, 3 at machine precision; 7: ``iter_lim``); ``itn``, the number of steps; ``r1norm``,
      ``|b - A x|``; ``r2norm``, which includes the damping; ``anorm``, ``acond``, estimates of the
      Frobenius norm of the matrix and of its condition number; ``arnorm``, an estimate of the norm
      of the gradient; ``xnorm``; ``var`` ``[n]``, zeros unless ``calc_var``.

    Raises:
      ValueError: if shapes do not match.
      TypeError: if ``A`` is neither a matrix nor a :class:`LinearOperator`.

    ``x`` has implicit derivatives of any order, for matrices of full rank or with damping. With
    fewer rows than columns a second iteration computes what the derivative needs. The algorithm is
    that of Paige and Saunders (ACM Trans. Math. Softw. 8, 1982).

    >>> import primax_numpy as pnp
    >>> out = lsqr(pnp.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), pnp.array([1.0, 0.0, -1.0]))
    >>> [round(float(v), 3) for v in out.x], int(out.istop)
    ([1.0, -1.0], 1)
    """
    problem = _problem("lsqr", A, b, damp, atol, btol, conlim, x0)
    steps = 2 * problem.shape[1] if iter_lim is None else iter_lim
    x, (_, variance, itn, status, norms) = _solution(problem, _lsqr, steps)
    variance = variance if calc_var else pnp.zeros_like(variance)
    return LSQRResult(
        x, status, itn, norms.residual, norms.damped_residual, norms.matrix, norms.condition,
        norms.gradient, norms.solution, variance,
    )  # fmt: skip


class LSMRResult(NamedTuple):
    """Result of :func:`lsmr`."""

    x: Any
    istop: Any
    itn: Any
    normr: Any
    normar: Any
    norma: Any
    conda: Any
    normx: Any


def lsmr(
    A: OperatorLike, b: ArrayLike, damp: ArrayLike = 0.0, atol: ArrayLike = 1e-6,
    btol: ArrayLike = 1e-6, conlim: ArrayLike = 1e8, maxiter: ArrayLike | None = None,
    x0: ArrayLike | None = None,
) -> LSMRResult:  # fmt: skip
    """Least-squares solution of ``A x = b`` by LSMR, which reduces the gradient in each step.

    Arguments are those of :func:`lsqr`; ``maxiter`` is the maximum number of steps, by default
    ``min(m, n)``.

    Returns:
      A named tuple: ``x``, ``istop`` and ``itn`` as for :func:`lsqr`; ``normr``, the norm of the
      residual including the damping; ``normar``, that of the gradient; ``norma`` and ``conda``,
      estimates of the norm of the matrix and of its condition number; ``normx``, the norm of ``x``.

    Raises:
      ValueError, TypeError: as :func:`lsqr`, with the same derivatives. The algorithm is that of
        Fong and Saunders (SIAM J. Sci. Comput. 33, 2011).

    >>> import primax_numpy as pnp
    >>> out = lsmr(pnp.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), pnp.array([1.0, 0.0, -1.0]))
    >>> [round(float(v), 3) for v in out.x]
    [1.0, -1.0]
    """
    problem = _problem("lsmr", A, b, damp, atol, btol, conlim, x0)
    steps = min(problem.shape) if maxiter is None else maxiter
    x, (_, _, itn, status, norms) = _solution(problem, _lsmr, steps)
    return LSMRResult(
        x, status, itn, norms.damped_residual, norms.gradient, norms.matrix, norms.condition,
        norms.solution,
    )  # fmt: skip
