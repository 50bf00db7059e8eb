"""Linear algebra: defining properties, derivatives, patterns against SciPy, errors."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.linalg as theirs

from primax_core import enable_x64, jit, vmap
from primax_core.testing import check_grads
from primax_scipy import linalg
from test_support import assert_close

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32)
C = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)
B = RNG.normal(size=(2, 4, 3)).astype(np.float32)
b = RNG.normal(size=4).astype(np.float32)
MATRICES = [pytest.param(A, id="real"), pytest.param(C, id="complex")]


def adjoint(x):
    return np.swapaxes(np.conj(x), -1, -2)


def positive(a):
    return (a @ adjoint(a) + 4 * np.eye(4)).astype(a.dtype)


close = partial(assert_close, rtol=2e-4)


@pytest.mark.parametrize("a", MATRICES)
def test_systems(a) -> None:
    h = positive(a)
    for kind in ("gen", "sym", "her", "pos"):
        close(h @ linalg.solve(h, B, assume_a=kind), B)
        close(
            h @ np.asarray(linalg.solve(h, b, lower=True, assume_a=kind))[..., None],
            b[:, None] + 0 * B[..., :1],
        )
    for trans, matrix in ((0, a), ("T", np.swapaxes(a, -1, -2)), ("C", adjoint(a))):
        lower = (
            np.tril(a)
            if trans == 0
            else np.swapaxes(np.tril(a), -1, -2)
            if trans == "T"
            else adjoint(np.tril(a))
        )
        actual = linalg.solve_triangular(a, B, trans, lower=True)
        close(lower @ actual, B, rtol=2e-3)
        number = {0: 0, "T": 1, "C": 2}[trans]
        close(matrix @ linalg.lu_solve(linalg.lu_factor(a), B, number), B, rtol=2e-3)
    close(h @ linalg.cho_solve(linalg.cho_factor(h, lower=True), B), B)
    close(h @ linalg.cho_solve(linalg.cho_factor(h), B), B)
    vectors = linalg.solve_triangular(h, b + np.zeros((2, 1), np.float32))
    assert vectors.shape == (2, 4)
    close(linalg.inv(h) @ h, np.eye(4) + 0 * h)
    close(linalg.det(h), np.linalg.det(h), rtol=1e-3)


@pytest.mark.parametrize("a", MATRICES)
def test_factors(a) -> None:
    for m in (a, a[:, :2], a[:, :, :2]):
        p, l, u = map(np.asarray, linalg.lu(m))
        close(p @ l @ u, m)
        assert p.dtype == np.float32
        pl, u = map(np.asarray, linalg.lu(m, permute_l=True))
        close(pl @ u, m)
        for mode in ("full", "economic"):
            q, r, order = map(np.asarray, linalg.qr(m, mode=mode, pivoting=True))
            close(q @ r, np.take_along_axis(m, order[:, None], -1))
            q, r = map(np.asarray, linalg.qr(m, mode=mode))
            close(q @ r, m)
        (only,) = linalg.qr(m, mode="r")
        assert only.shape == m.shape
        s, _ = linalg.svd(m, compute_uv=False), None
        u, t, vh = map(np.asarray, linalg.svd(m, full_matrices=False))
        close((u * t[:, None]) @ vh, m)
        close(s, t)
    h = positive(a)
    u = np.asarray(linalg.cholesky(h))
    close(adjoint(u) @ u, h, rtol=1e-3)
    hess, q = map(np.asarray, linalg.hessenberg(a, calc_q=True))
    close(q @ hess @ adjoint(q), a)
    close(linalg.hessenberg(a), hess)
    assert np.abs(np.tril(hess, -2)).max() == 0
    product, r = linalg.qr_multiply(a[0], b, mode="right")
    q, r2 = map(np.asarray, linalg.qr(a[0]))
    close(product, b @ q)
    close(r, r2)
    close(linalg.qr_multiply(a[0], B[0], mode="left")[0], q @ B[0])


@pytest.mark.parametrize("a", MATRICES)
def test_eigenvalues(a) -> None:
    g, h = positive(a), positive(a[::-1].copy())
    w, v = map(np.asarray, linalg.eigh(h))
    close(h @ v, v * w[:, None], rtol=1e-3)
    close(linalg.eigh(2 * np.tril(h, -1) + np.tril(np.triu(h)), eigvals_only=True), w, rtol=1e-3)
    equations = {
        1: (lambda v: h @ v, lambda v: g @ v),
        2: (lambda v: h @ (g @ v), lambda v: v),
        3: (lambda v: g @ (h @ v), lambda v: v),
    }
    for kind, (left, right) in equations.items():
        w, v = map(np.asarray, linalg.eigh(h, g, type=kind))
        close(left(v) / 50, right(v) * w[:, None] / 50, rtol=5e-3)
        expected = [theirs.eigh(x, y, type=kind, eigvals_only=True) for x, y in zip(h, g)]
        close(w, expected, rtol=2e-3)


@pytest.mark.parametrize("a", MATRICES)
def test_matrix_functions(a) -> None:
    for scale in (0.01, 0.5, 3.0):
        expected = np.stack([theirs.expm(scale * x.astype(np.complex128)) for x in a])
        size = np.abs(expected).max()
        close(
            np.asarray(linalg.expm((scale * a).astype(a.dtype))) / size, expected / size, rtol=1e-4
        )
    with enable_x64(True):
        x = a[0].astype(np.result_type(a.dtype, np.float64))
        close(linalg.expm(x), theirs.expm(x), rtol=1e-12)
        close(linalg.expm(np.triu(x), upper_triangular=True), theirs.expm(np.triu(x)), rtol=1e-12)
        for f, e in zip(linalg.expm_frechet(x, x.T), theirs.expm_frechet(x, x.T)):
            close(f, e, rtol=1e-11)
        root = np.asarray(linalg.sqrtm(x))
        close(root @ root, x, rtol=1e-11)
        close(linalg.sqrtm(x @ adjoint(x)), theirs.sqrtm(x @ adjoint(x)), rtol=1e-9)
        close(linalg.funm(x, lambda w: w * w + 1), x @ x + np.eye(4), rtol=1e-9)
        t, z = map(np.asarray, linalg.schur(x))
        close(z @ t @ adjoint(z), x, rtol=1e-12)
        t, z = map(np.asarray, linalg.rsf2csf(t, z))
        close(z @ t @ adjoint(z), x, rtol=1e-12)
        assert np.abs(np.tril(t, -1)).max() == 0
        y = a[1].astype(x.dtype)
        c = np.asarray(x[:, :3])
        s = np.asarray(linalg.solve_sylvester(x, y[:3, :3], c))
        close(x @ s + s @ y[:3, :3], c, rtol=1e-10)
        for m, side in ((x, "right"), (x[:, :2], "right"), (x[:2], "left")):
            for f, e in zip(linalg.polar(m, side), theirs.polar(m, side)):
                close(f, e, rtol=1e-10)
        _, error = linalg.funm(x, lambda w: w, disp=False)
        assert 0 < float(error) < 1e-10
    assert np.isnan(np.asarray(linalg.expm(1e9 * a, max_squarings=2))).all()


@pytest.mark.rotate(every=4, whole=True)
def test_derivatives() -> None:
    with enable_x64(True):
        a = A[0].astype(np.float64) + 4 * np.eye(4)
        z = C[0].astype(np.complex128) + 4 * np.eye(4)
        r = B[0].astype(np.float64)
        for m in (a, z):
            check_grads(lambda x: linalg.solve(gram(x), r, assume_a="pos"), (m,), 2, rtol=1e-4)
            check_grads(lambda x: linalg.solve_triangular(x, r), (m,), 1, rtol=1e-4)
            check_grads(lambda x: linalg.lu_solve(linalg.lu_factor(x), r, 2), (m,), 1, rtol=1e-4)
            solved = lambda x: linalg.cho_solve(linalg.cho_factor(gram(x)), r)
            check_grads(solved, (m,), 1, rtol=1e-3)
            check_grads(lambda x: linalg.expm(0.3 * x), (m,), 1, rtol=1e-4)
            check_grads(lambda x: linalg.qr(x, mode="economic"), (m,), 1, rtol=1e-3)


def gram(x):
    return x @ x.conj().T


def test_tridiagonal_matrices() -> None:
    d, e = b, b[1:] + 1
    for options in ({}, {"select": "i", "select_range": (1, 2)}):
        w, v = map(np.asarray, linalg.eigh_tridiagonal(d, e, **options))
        close(w, theirs.eigh_tridiagonal(d, e, eigvals_only=True, **options), rtol=1e-5)
        close((np.diag(d) + np.diag(e, 1) + np.diag(e, -1)) @ v, v * w, rtol=1e-5)
        close(linalg.eigh_tridiagonal(d, e, eigvals_only=True, **options), w, rtol=1e-5)
    with enable_x64(True):
        values = lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True)
        check_grads(values, (d.astype(np.float64), e.astype(np.float64)), 1)
    for bad, match in (({"select": "x"}, "'a' or 'i'"), ({"select": "i"}, "needs select_range"),
                       ({"select": "i", "select_range": (0, 9)}, "is invalid for")):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            linalg.eigh_tridiagonal(d, e, **bad)
    with pytest.raises(NotImplementedError, match="select='v'"):
        linalg.eigh_tridiagonal(d, e, select="v")
    with pytest.raises(ValueError, match="one element less"):
        linalg.eigh_tridiagonal(d, d)


PATTERNS = ["toeplitz", "hankel", "circulant", "companion", "fiedler"]


@pytest.mark.parametrize("name", PATTERNS)
def test_structured_matrices(name) -> None:
    for x in (b, b[:2], (b + 1j * b[::-1]).astype(np.complex64)):
        close(getattr(linalg, name)(x), getattr(theirs, name)(x), rtol=1e-6)
    many = getattr(linalg, name)(A)
    assert many.shape[:2] == (2, 4)
    close(vmap(vmap(getattr(linalg, name)))(A), many, rtol=1e-6)
    if name in ("toeplitz", "hankel"):
        close(getattr(linalg, name)(b, b[:2]), getattr(theirs, name)(b, b[:2]), rtol=1e-6)


def test_more_structured_matrices() -> None:
    for n in (1, 2, 3, 4, 7):
        for name in ("hilbert", "invhilbert", "pascal", "invpascal", "dft"):
            close(getattr(linalg, name)(n), getattr(theirs, name)(n), rtol=1e-6)
        for full in (False, True):
            close(linalg.helmert(n, full), theirs.helmert(n, full), rtol=1e-6)
        for kind in ("lower", "upper"):
            close(linalg.pascal(n, kind), theirs.pascal(n, kind), rtol=0)
            close(linalg.invpascal(n, kind), theirs.invpascal(n, kind), rtol=0)
        for scale in ("n", "sqrtn"):
            close(linalg.dft(n, scale), theirs.dft(n, scale), rtol=1e-6)
        x = RNG.normal(size=n + 1).astype(np.float32)
        close(linalg.fiedler_companion(x), theirs.fiedler_companion(x), rtol=1e-5)
        close(linalg.leslie(x, x[1:]), theirs.leslie(x, x[1:]), rtol=0)
        for mode in ("full", "same", "valid"):
            for m in (1, 2, 5):
                close(
                    linalg.convolution_matrix(x, m, mode),
                    theirs.convolution_matrix(x, m, mode),
                    rtol=0,
                )
    close(linalg.hadamard(8), theirs.hadamard(8), rtol=0)
    close(linalg.block_diag(A[0], b, 2.0), theirs.block_diag(A[0], b, 2.0), rtol=0)
    assert linalg.block_diag().shape == (1, 0)
    assert jit(linalg.block_diag)(np.int32([[1]]), 2.5).dtype == np.float32


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda: linalg.solve(A, B, assume_a="x"), ValueError, "Expected assume_a"),
        (lambda: linalg.solve(A[:, :2], B), ValueError, "solve needs square matrices"),
        (lambda: linalg.solve(A, B[:, :2]), ValueError, "does not match b of shape"),
        (lambda: linalg.solve_triangular(A, B, "x"), ValueError, "Invalid 'trans' value x"),
        (lambda: linalg.lu_solve(linalg.lu_factor(A), B, 3), ValueError, "must be 0, 1, or 2"),
        (lambda: linalg.qr(A, mode="raw"), ValueError, "Unsupported QR"),
        (lambda: linalg.qr(b), ValueError, "at least two axes"),
        (lambda: linalg.eigh(A, eigvals=(0, 1)), NotImplementedError, "eigvals=None"),
        (lambda: linalg.eigh(A, A, type=4), ValueError, "type must be"),
        (lambda: linalg.schur(A, "x"), ValueError, "'real' or 'complex'"),
        (lambda: linalg.sqrtm(A), ValueError, "use vmap"),
        (lambda: linalg.sqrtm(A[0], 2), NotImplementedError, "blocksize"),
        (lambda: linalg.polar(A, "x"), ValueError, "side"),
        (lambda: linalg.hadamard(3), ValueError, "power of 2"),
        (lambda: linalg.dft(3, "x"), ValueError, "scale must be"),
        (lambda: linalg.pascal(3, "x"), ValueError, "kind"),
        (lambda: linalg.block_diag(A), ValueError, "at most 2 dimensions"),
        (lambda: linalg.companion(b[:1]), ValueError, "two coefficients"),
        (lambda: linalg.leslie(b, b), ValueError, "one element more"),
        (lambda: linalg.cholesky([[1.0]]), TypeError, "ndarray or scalar"),
    ],
)  # fmt: skip
def test_errors(call, error, match) -> None:
    with pytest.raises(error, match=match):
        call()
