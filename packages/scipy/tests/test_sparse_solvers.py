"""Direct solution, least squares, eigenvalues and singular values of large matrices, operators."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg as theirs

import primax_core as px
import primax_numpy as pnp
import primax_scipy.experimental.sparse as sparse
from primax_core.testing import check_grads
from primax_scipy.experimental.sparse import (
    _factorization as factorization,
    linalg as sparse_linalg,
)
from primax_scipy.sparse import linalg

RNG = np.random.default_rng(0)
close = np.testing.assert_allclose


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with px.enable_x64(True):
        yield


def rotated(eigenvalues: np.ndarray, complex_: bool = False) -> np.ndarray:
    n = len(eigenvalues)
    basis = RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if complex_ else 0)
    q = np.linalg.qr(basis)[0]
    out = (q * eigenvalues) @ q.conj().T
    return (out + out.conj().T) / 2


# Direct solution


def system(n: int = 20, dtype: Any = np.float64) -> Any:
    mat = scipy.sparse.random(n, n, 0.2, random_state=0) + 3 * scipy.sparse.eye(n)
    return mat.astype(dtype).tocsr()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.float16])
@pytest.mark.parametrize("reorder", [0, 1, 2, 3])
def test_spsolve(dtype: Any, reorder: int) -> None:
    mat, b = system(), RNG.normal(size=20)
    data = mat.data * (1 + 1j) if np.dtype(dtype).kind == "c" else mat.data
    x = sparse_linalg.spsolve(
        data.astype(dtype), mat.indices, mat.indptr, b.astype(dtype), reorder=reorder
    )
    dense = scipy.sparse.csr_matrix((data, mat.indices, mat.indptr)).toarray()
    assert x.dtype == dtype
    tolerance = {np.float16: 5e-3, np.float32: 1e-5}.get(dtype, 1e-12)
    close(np.asarray(x), np.linalg.solve(dense, b), tolerance, tolerance)


def test_transformations_of_spsolve() -> None:
    mat, bs = system(12), RNG.normal(size=(3, 12))
    solve = lambda d, b: sparse_linalg.spsolve(d, mat.indices, mat.indptr, b)
    expected = np.linalg.solve(mat.toarray(), bs.T).T
    check_grads(solve, (mat.data, bs[0]), 2, rtol=1e-4, atol=1e-4)
    close(px.vmap(solve, (None, 0))(mat.data, bs), expected)
    scales = np.array([1.0, 2.0, 4.0])[:, None]
    close(px.jit(px.vmap(solve))(scales * mat.data, bs), expected / scales)
    both = px.vmap(px.grad(lambda d, b: solve(d, b).sum(), (0, 1)), (None, 0))(mat.data, bs)
    one = px.grad(lambda d, b: solve(d, b).sum(), (0, 1))(mat.data, bs[1])
    close(both[0][1], one[0]), close(both[1][1], one[1])
    nested = px.vmap(px.vmap(solve, (None, 0)), (0, None))(scales * mat.data, bs)
    close(nested, expected / scales[..., None])
    hessian = px.hessian(lambda b: (solve(mat.data, b) ** 2).sum())(bs[0])
    inverse = np.linalg.inv(mat.toarray())
    close(hessian, 2 * inverse.T @ inverse)


def test_spsolve_with_padding_duplicates_and_singular_matrices() -> None:
    mat, b = np.array([[4.0, 1.0], [0.0, 2.0]]), np.array([6.0, 4.0])
    x = sparse.CSR.fromdense(mat, nse=6)
    close(sparse_linalg.spsolve(x.data, x.indices, x.indptr, b), [1, 2])
    twice = np.repeat(mat[mat != 0] / 2, 2)
    indices, indptr = np.int32([0, 0, 1, 1, 1, 1]), np.int32([0, 4, 6])
    close(sparse_linalg.spsolve(twice, indices, indptr, b), [1, 2])
    assert np.isnan(sparse_linalg.spsolve(0 * twice, indices, indptr, b)).all()


def test_errors_of_spsolve() -> None:
    mat, b = system(), np.ones(20)
    parts = mat.data, mat.indices, mat.indptr
    calls: list[tuple[Any, Any, str]] = [
        ((*parts, b[:, None]), ValueError, "needs vectors, got data"),
        ((*parts, b[:3]), ValueError, "not those of a CSR matrix with the 3 rows"),
        ((*parts, b.astype("f")), ValueError, "same dtype, got float64 and float32"),
        ((parts[0], parts[1] * 1.0, parts[2], b), TypeError, "indices of spsolve must be integers"),
        ((parts[0].astype(int), *parts[1:], b.astype(int)), TypeError, "real or complex elements"),
        ((*parts, b, 1e-6, 7), ValueError, "reorder=7 is not one of 0, 1, 2, 3"),
    ]
    for args, error, text in calls:
        with pytest.raises(error, match=text):
            sparse_linalg.spsolve(*args)


BANDS = scipy.sparse.diags([1.0, -3.0, 0.5, 0.3], [-1, 0, 1, 2], shape=(60, 60))
GRID = scipy.sparse.kronsum(*[scipy.sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(8, 8))] * 2)
SHUFFLED = BANDS.tocsr()[RNG.permutation(60)]  # needs pivots
FACTORIZED = {"band": BANDS, "grid": GRID, "shuffled": SHUFFLED, "random": system(30)}


@pytest.mark.parametrize("reorder", [0, 1])
@pytest.mark.parametrize("name", FACTORIZED)
def test_factorization_without_scipy(name: str, reorder: int, monkeypatch: Any) -> None:
    mat = FACTORIZED[name].tocsr()
    b = RNG.normal(size=mat.shape[0])
    find_spec = factorization.importlib.util.find_spec
    monkeypatch.setattr(
        factorization.importlib.util,
        "find_spec",
        lambda name: None if name == "scipy" else find_spec(name),
    )
    x = sparse_linalg.spsolve(mat.data, mat.indices, mat.indptr, b, reorder=reorder)
    close(mat @ np.asarray(x), b, 1e-9, 1e-9)
    zeros = sparse_linalg.spsolve(0 * mat.data, mat.indices, mat.indptr, b, reorder=reorder)
    assert np.isnan(zeros).all()


def test_cuthill_mckee_order_narrows_the_band() -> None:
    shuffle = RNG.permutation(64)
    mat = GRID.tocsr()[shuffle][:, shuffle].tocoo()
    order = factorization.cuthill_mckee(mat.row, mat.col, 64)
    assert sorted(order.tolist()) == list(range(64))
    position = np.argsort(order)
    assert np.abs(position[mat.row] - position[mat.col]).max() <= 12


# Operators


def test_linear_operators() -> None:
    a = RNG.normal(size=(4, 3)) + 1j * RNG.normal(size=(4, 3))
    b = RNG.normal(size=(4, 3))
    x, y, many = RNG.normal(size=3), RNG.normal(size=4), RNG.normal(size=(3, 2))
    op = linalg.LinearOperator((4, 3), lambda v: a @ v)  # the adjoint by transposition
    other = linalg.aslinearoperator(sparse.BCOO.fromdense(b))
    assert repr(op) == "LinearOperator(complex128[4, 3])" and op.ndim == 2
    for actual, expected in [
        (op, a), (other, b), (op.H, a.conj().T), (op.T, a.T), (op + other, a + b),
        (op - other, a - b), (2j * op, 2j * a), (op * 3, 3 * a), (-op, -a),
        (op @ other.H, a @ b.T), ((op.H @ op) ** 2, np.linalg.matrix_power(a.conj().T @ a, 2)),
    ]:  # fmt: skip
        m, n = expected.shape
        v, w, block = (x, y)[n == 4], (x, y)[m == 4], RNG.normal(size=(n, 2))
        close(actual @ v, expected @ v, 1e-10)
        close(actual.rmatvec(w), expected.conj().T @ w, 1e-10)
        close(actual.matmat(block), expected @ block, 1e-10)
        close(actual.rmatmat(np.stack([w, 2 * w], 1))[:, 1], 2 * expected.conj().T @ w, 1e-10)
    close(op.matvec(x[:, None]), a @ x[:, None])
    close(linalg.aslinearoperator(b) @ many, b @ many)
    assert linalg.aslinearoperator(op) is op
    spd = b.T @ b + np.eye(3)
    for matrix in (sparse.BCSR.fromdense(spd), linalg.aslinearoperator(spd)):
        close(linalg.cg(matrix, x, tol=1e-12)[0], np.linalg.solve(spd, x), 1e-8)
        close(linalg.gmres(matrix, x, tol=1e-12)[0], np.linalg.solve(spd, x), 1e-8)


def test_errors_of_operators() -> None:
    op = linalg.LinearOperator((2, 3), lambda v: v[:2])
    calls: list[tuple[Any, Any, str]] = [
        (lambda: linalg.LinearOperator((2,), lambda v: v), ValueError, r"the shape \(m, n\)"),
        (lambda: op @ np.ones(2), ValueError, "needs a vector with 3 rows, got shape"),
        (lambda: op.rmatmat(np.ones((3, 2))), ValueError, "needs a matrix with 2 rows"),
        (lambda: op @ op, ValueError, "cannot be multiplied"),
        (lambda: op + op.T, ValueError, "cannot be added"),
        (lambda: op @ 2, ValueError, "by \\*, not @"),
        (lambda: op**2, ValueError, "not negative"),
        (lambda: linalg.aslinearoperator(len), TypeError, "LinearOperator\\(shape, function\\)"),
        (lambda: linalg.aslinearoperator(np.ones(2)), ValueError, "is a matrix, got an array"),
        (lambda: linalg.eigsh(op, 1), ValueError, "eigsh needs a square matrix, got shape"),
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()


# Least squares

SHAPES = [(12, 5), (5, 12), (7, 7)]


@pytest.mark.parametrize("damp", [0.0, 0.7])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
def test_least_squares_against_scipy(name: str, shape: tuple[int, int], damp: float) -> None:
    a = RNG.normal(size=shape) + 2 * np.eye(*shape)
    b, x0 = RNG.normal(size=shape[0]), RNG.normal(size=shape[1])
    limit = {"iter_lim" if name == "lsqr" else "maxiter": 100}
    options = {"atol": 1e-11, "btol": 1e-11, **limit}
    if name == "lsqr":
        options["calc_var"] = True
    for guess in (None, x0):
        actual = getattr(linalg, name)(a, b, damp, x0=guess, **options)
        expected = getattr(theirs, name)(a, b, damp, x0=guess, **options)
        close(actual.x, expected[0], 1e-8, 1e-8)
        assert int(actual.istop) == expected[1] and abs(int(actual.itn) - expected[2]) <= 1
        if guess is None:
            for mine, their in zip(actual[3:], expected[3:]):
                close(mine, their, 2e-2, 1e-6)
    as_sparse = getattr(linalg, name)(sparse.BCOO.fromdense(a), b, damp, **options).x
    close(as_sparse, getattr(linalg, name)(a, b, damp, **options).x, 1e-8)


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives_of_least_squares(shape: tuple[int, int]) -> None:
    a, b = RNG.normal(size=shape) + 2 * np.eye(*shape), RNG.normal(size=shape[0])
    solve = lambda a, b: linalg.lsqr(a, b, 0.0, 1e-14, 1e-14, 0, 100).x
    check_grads(solve, (a, b), 1, rtol=1e-4, atol=1e-4)
    damped = lambda b, d: linalg.lsmr(a, b, d, 1e-14, 1e-14, 0, 100).x
    check_grads(damped, (b, 0.5), 1, rtol=1e-4, atol=1e-4)
    many = px.jit(px.vmap(lambda b: linalg.lsqr(a, b, atol=1e-12, btol=1e-12).x))(
        np.stack([b, 2 * b])
    )
    close(many[1], 2 * np.linalg.lstsq(a, b)[0], 1e-6, 1e-8)


def test_least_squares_of_complex_numbers_and_trivial_systems() -> None:
    a = RNG.normal(size=(6, 6)) + 1j * RNG.normal(size=(6, 6)) + 3 * np.eye(6)
    b = RNG.normal(size=6) + 1j
    for solve in (linalg.lsqr, linalg.lsmr):
        close(solve(a, b, atol=1e-13, btol=1e-13).x, np.linalg.solve(a, b), 1e-8)
        nothing = solve(a, 0 * b)
        assert int(nothing.istop) == int(nothing.itn) == 0 and not np.any(nothing.x)
        assert solve(np.eye(3, dtype="f"), np.ones(3, "f")).x.dtype == np.float32
        with pytest.raises(ValueError, match=r"needs b of shape \(6,\), got \(2,\)"):
            solve(a, b[:2])
        with pytest.raises(ValueError, match=r"x0 of \w+ must have the shape \(6,\)"):
            solve(a, b, x0=b[:2])


# Eigenvalues

N = 40
H = rotated(np.linspace(-15.3, 50, N))
METRIC = rotated(np.linspace(1, 2, N))


@pytest.mark.parametrize("which", ["LM", "SM", "LA", "SA", "BE"])
def test_eigsh(which: str) -> None:
    w, v = linalg.eigsh(H, 4, which=which)
    close(w, np.sort(theirs.eigsh(H, 4, which=which)[0]), 1e-9)
    close(H @ np.asarray(v), np.asarray(v) * np.asarray(w), 0, 1e-9)
    close(np.asarray(v).T @ np.asarray(v), np.eye(4), 0, 1e-9)


@pytest.mark.rotate(every=4, whole=True)
def test_options_of_eigsh() -> None:
    expected = scipy.linalg.eigh(H, METRIC)[0]
    w, v = linalg.eigsh(H, 3, METRIC, Minv=np.linalg.inv(METRIC))
    close(w, expected[-3:], 1e-9)
    close(np.asarray(v).T @ METRIC @ np.asarray(v), np.eye(3), 0, 1e-9)
    near = np.sort(expected[np.argsort(np.abs(expected - 3))[:3]])
    inverse = np.linalg.inv(H - 3 * METRIC)
    op = linalg.aslinearoperator
    for args in ((H, 3, METRIC, 3.0), (sparse.BCOO.fromdense(H), 3, METRIC, 3.0)):
        close(linalg.eigsh(*args, return_eigenvectors=False), near, 1e-9)
    close(linalg.eigsh(op(H), 3, op(METRIC), 3.0, OPinv=inverse)[0], near, 1e-9)
    hermitian = rotated(np.arange(30.0), complex_=True)
    close(linalg.eigsh(hermitian, 2, ncv=12, v0=np.ones(30))[0], [28, 29], 1e-9)
    single = linalg.eigsh(H.astype("f"), 2)
    assert single[0].dtype == single[1].dtype == np.float32
    close(single[0], np.linalg.eigvalsh(H)[-2:], 1e-5)
    close(linalg.eigsh(np.eye(9), 2)[0], [1, 1])  # every space is invariant
    close(linalg.eigsh(np.zeros((9, 9)), 2)[0], [0, 0], atol=1e-12)
    assert np.isnan(linalg.eigsh(H, 4, which="SM", maxiter=0)[0]).any()
    both = px.jit(px.vmap(lambda h: linalg.eigsh(h, 2)[0]))(np.stack([H, 2 * H]))
    close(both[1], 2 * both[0], 1e-9)


def test_errors_of_eigsh_and_svds() -> None:
    op = linalg.aslinearoperator(H)
    calls: list[tuple[Any, str]] = [
        (lambda: linalg.eigsh(H, N), "0 < k < 40, got k=40; use linalg.eigh"),
        (lambda: linalg.eigsh(H, which="XX"), "'XX' is not one of LM, SM, LA, SA, BE"),
        (lambda: linalg.eigsh(H, 3, METRIC), "needs Minv"),
        (lambda: linalg.eigsh(op, 3, sigma=1.0), "needs OPinv"),
        (lambda: linalg.eigsh(H, 3, ncv=3), "ncv=3 must be greater than k=3"),
        (lambda: linalg.svds(H, 0), "0 < k < 40, got k=0; use linalg.svd"),
        (lambda: linalg.svds(H, which="LA"), "'LA' is not one of LM, SM"),
        (lambda: linalg.lobpcg(H, np.ones(N)), "X must be a matrix of k vectors of size 40"),
        (lambda: linalg.lobpcg(H, np.eye(N), Y=np.eye(N, 1)), "41 vectors of X and Y are more"),
    ]
    for call, text in calls:
        with pytest.raises(ValueError, match=text):
            call()


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_derivatives_of_eigenvalues(kind: str) -> None:
    mat = rotated(np.arange(12.0) ** 1.5, kind == "complex")
    start = RNG.normal(size=(12, 2)).astype(mat.dtype)
    symmetric = lambda h: (h + pnp.conj(h.T)) / 2

    def invariants(pairs: Any) -> Any:
        w, v = pairs
        return w, pnp.abs(v[:4]) ** 2

    check_grads(
        lambda h: invariants(linalg.eigsh(symmetric(h), 2)), (mat,), 1, rtol=1e-3, atol=1e-3
    )
    by_lobpcg = lambda h: linalg.lobpcg(symmetric(h), start, tol=1e-10, maxiter=200)
    check_grads(lambda h: invariants(by_lobpcg(h)), (mat,), 1, rtol=1e-3, atol=1e-3)


def test_second_derivative_of_an_eigenvalue() -> None:
    mat = rotated(np.arange(8.0) ** 1.5)
    largest = lambda t: linalg.eigsh(mat + t * pnp.diag(pnp.arange(8.0)), 1, ncv=8)[0][0]
    w, v = np.linalg.eigh(mat)
    coupling = v.T @ np.diag(np.arange(8.0)) @ v[:, -1]
    close(px.grad(largest)(0.0), coupling[-1], 1e-7)
    second = 2 * np.sum(coupling[:-1] ** 2 / (w[-1] - w[:-1]))
    close(px.grad(px.grad(largest))(0.0), second, 1e-6)


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("shape", [(15, 25), (25, 15)])
def test_svds(shape: tuple[int, int]) -> None:
    for a in (RNG.normal(size=shape), RNG.normal(size=shape) + 1j * RNG.normal(size=shape)):
        u, s, vh = linalg.svds(a, 3)
        every = np.linalg.svd(a)
        close(s, every[1][:3][::-1], 1e-9)
        best = (every[0][:, :3] * every[1][:3]) @ every[2][:3]
        close((np.asarray(u) * np.asarray(s)) @ np.asarray(vh), best, 0, 1e-8)
    smallest = linalg.svds(sparse.BCOO.fromdense(a), 2, which="SM", return_singular_vectors=False)
    close(smallest, every[1][-2:][::-1], 1e-6)


@pytest.mark.rotate(every=4, whole=True)
def test_derivatives_of_singular_values() -> None:
    def part(a: Any) -> Any:
        u, s, vh = linalg.svds(a, 2, ncv=9)
        return s, (u[:3] * s) @ vh[:, :3]

    check_grads(part, (RNG.normal(size=(9, 11)),), 1, rtol=1e-3, atol=1e-3)


# Blocks of eigenvectors


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg(largest: bool) -> None:
    start = RNG.normal(size=(N, 2))
    options = {"largest": largest, "maxiter": 300, "tol": 1e-9}
    order = lambda w: w[::-1][:2] if largest else w[:2]
    w, v = linalg.lobpcg(H, start, **options)
    every, vectors = np.linalg.eigh(H)
    close(w, order(every), 1e-9)
    close(H @ np.asarray(v), np.asarray(v) * np.asarray(w), 0, 1e-6)
    w, v = linalg.lobpcg(H, start, METRIC, **options)
    close(w, order(scipy.linalg.eigh(H, METRIC)[0]), 1e-8)
    close(np.asarray(v).T @ METRIC @ np.asarray(v), np.eye(2), 0, 1e-8)
    known = vectors[:, -2:] if largest else vectors[:, :2]
    w, _ = linalg.lobpcg(H, start, Y=known, **options)
    close(w, order(every[:-2] if largest else every[2:]), 1e-8)
    w, _ = linalg.lobpcg(sparse.BCSR.fromdense(H[:5, :5]), start[:5], largest=largest)
    close(w, order(np.linalg.eigvalsh(H[:5, :5])), 1e-8)  # a dense problem
    shifted = H + 20 * np.eye(N)
    plain = linalg.lobpcg(shifted, start, M=np.linalg.inv(shifted), largest=False, tol=1e-8)
    close(plain[0], every[:2] + 20, 1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
def test_lobpcg_standard(dtype: Any) -> None:
    mat = rotated(np.linspace(1, 50, 40), np.dtype(dtype).kind == "c").astype(dtype)
    start = RNG.normal(size=(40, 3)).astype(dtype)
    run = px.jit(sparse_linalg.lobpcg_standard, static_argnames="m")
    w, v, steps = run(mat, start)
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    close(w, np.linalg.eigvalsh(mat)[::-1][:3], tolerance)
    close(mat @ np.asarray(v), np.asarray(v) * np.asarray(w), 0, 100 * tolerance)
    assert v.dtype == dtype and 0 < int(steps) < 100
    assert int(run(mat, start, m=3)[2]) == 3
    close(sparse_linalg.lobpcg_standard(lambda x: mat @ x, start)[0], w, tolerance)
    close(sparse_linalg.lobpcg_standard(sparse.BCOO.fromdense(mat), start)[0], w, tolerance)
    many = px.vmap(lambda x: sparse_linalg.lobpcg_standard(mat, x)[0])(np.stack([start, start]))
    close(many[1], w, tolerance)


def test_errors_of_lobpcg_standard() -> None:
    start = np.ones((N, 2))
    calls: list[tuple[Any, str]] = [
        (lambda f: f(H, start[:, :0]), "at least one vector, got shape"),
        (lambda f: f(H, np.ones((N, 8))), "needs 5 \\* k < n, got k=8"),
        (lambda f: f(H, start[:30]), r"A must be a matrix of shape \(30, 30\)"),
        (lambda f: f(H, start[0]), r"vectors \[n, k\], got shape \(2,\)"),
        (lambda f: f(H, start.astype("f")), "must have its shape and dtype, got float64"),
    ]
    for call, text in calls:
        with pytest.raises(ValueError, match=text):
            call(sparse_linalg.lobpcg_standard)


def test_the_solvers_need_no_import_of_their_own() -> None:
    code = "import primax_scipy.experimental.sparse as sparse; sparse.linalg.spsolve"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
