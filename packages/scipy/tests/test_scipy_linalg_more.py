"""Linear algebra: derivatives of matrix functions, matrix equations, batches."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as theirs

import primax_numpy as pnp
from primax_core import enable_x64, grad, jacfwd, jit, vmap
from primax_core.testing import check_grads
from primax_scipy import linalg

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
B = RNG.normal(size=(3, 3)) + 2 * np.eye(3)
C = RNG.normal(size=(4, 3))
Q = RNG.normal(size=(4, 4))


def test_derivatives_of_sqrtm_and_sylvester() -> None:
    with enable_x64(True):
        check_grads(lambda a: pnp.real(linalg.sqrtm(a)), (A,), 1, rtol=1e-4, atol=1e-5)
        check_grads(linalg.solve_sylvester, (A, B, C), 1, rtol=1e-4, atol=1e-5)
        check_grads(
            lambda c: linalg.solve_sylvester(A, B + 1j * np.eye(3), c + 0j), (C,), 1, rtol=1e-4,
            atol=1e-5,
        )  # fmt: skip
        second = jit(grad(grad(lambda t: pnp.real(linalg.sqrtm(t * A)).sum())))(2.0)
        expected = -0.25 * 2**-1.5 * theirs.sqrtm(A).real.sum()
        np.testing.assert_allclose(second, expected, 1e-8)
    solved = vmap(linalg.solve_sylvester, (None, None, 0))(A, B, np.stack([C, 2 * C]))
    np.testing.assert_allclose(solved[1], 2 * solved[0], 1e-4, 1e-5)


def test_derivative_of_funm() -> None:
    with enable_x64(True):
        value = lambda a: pnp.real(linalg.funm(a, pnp.exp))
        np.testing.assert_allclose(value(A), theirs.expm(A), 1e-8)
        derivative = jacfwd(lambda t: value(A + t * Q))(0.0)
        expected = theirs.expm_frechet(A, Q, compute_expm=False)
        np.testing.assert_allclose(derivative, expected, 1e-8, 1e-8)
        gradient = grad(lambda a: value(a).sum())(A)
        np.testing.assert_allclose((gradient * Q).sum(), expected.sum(), 1e-8)


@pytest.mark.parametrize("complex_", [False, True])
def test_equations(complex_) -> None:
    a, q = ((A, Q) if not complex_ else (A + 1j * Q, Q + 1j * A))  # fmt: skip
    with enable_x64(True):
        ours = linalg.solve_continuous_lyapunov(a, q)
        np.testing.assert_allclose(ours, theirs.solve_continuous_lyapunov(a, q), 1e-8, 1e-10)
        for method in (None, "direct", "bilinear"):
            ours = linalg.solve_discrete_lyapunov(a / 9, q, method)
            np.testing.assert_allclose(ours, theirs.solve_discrete_lyapunov(a / 9, q), 1e-8, 1e-10)
        column, row = a[0] + 9 * np.eye(4)[0], a[1]
        for right in (q, q[0]):
            for args in (column, (column, row)):
                ours = linalg.solve_toeplitz(args, right)
                expected = theirs.solve_toeplitz(args, right)
                np.testing.assert_allclose(ours, expected, 1e-8, 1e-10)
        h = (q @ q.conj().T)[:, :2] @ (q @ q.conj().T)[:, :2].conj().T
        for lower in (True, False):
            half = np.tril(h) if lower else np.triu(h)
            ours, rank = linalg.pinvh(half, lower=lower, return_rank=True, rtol=1e-10)
            np.testing.assert_allclose(ours, theirs.pinvh(h, rtol=1e-10), 1e-6, 1e-10)
            assert int(rank) == 2
        tilted = a[:, :2] + 1e-9 * q[:, :2]
        for x, y in ((a[:, :3], q[:, :2]), (a[:, :1], q[:, :2]), (a[:, :2], tilted)):
            ours = linalg.subspace_angles(x, y)
            np.testing.assert_allclose(ours, theirs.subspace_angles(x, y), 1e-6, 1e-13)


def test_batches() -> None:
    with enable_x64(True):
        t, z = linalg.schur(np.stack([Q, Q.T]))
        batched = linalg.rsf2csf(t, z)
        for k in range(2):
            for ours, single in zip(batched, linalg.rsf2csf(t[k], z[k])):
                np.testing.assert_allclose(ours[k], single, 1e-12, 1e-12)
        companions = linalg.fiedler_companion(Q)
        for k in range(4):
            np.testing.assert_allclose(companions[k], theirs.fiedler_companion(Q[k]), 1e-12)
        gradient = grad(lambda a: linalg.solve_discrete_lyapunov(a, Q).sum())(A / 9)
        step = 1e-6 * C[0, 0] * Q
        fun = lambda a: theirs.solve_discrete_lyapunov(a, Q).sum()
        expected = (fun(A / 9 + step) - fun(A / 9 - step)) / 2
        np.testing.assert_allclose((gradient * step).sum(), expected, 1e-5)


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"a of shape \(4, 4\) and q of shape \(3, 3\) differ"):
        linalg.solve_continuous_lyapunov(A, B)
    with pytest.raises(ValueError, match="must be None, 'direct' or 'bilinear', got 'x'"):
        linalg.solve_discrete_lyapunov(A, Q, "x")
    with pytest.raises(ValueError, match=r"do not match: \[n\], \[n\] and \[n\] or"):
        linalg.solve_toeplitz(A[0], np.ones(3))
    with pytest.raises(ValueError, match="matrices of equal rows"):
        linalg.subspace_angles(A, B)
    with pytest.raises(ValueError, match="pass both results of schur"):
        linalg.rsf2csf(A, B)
