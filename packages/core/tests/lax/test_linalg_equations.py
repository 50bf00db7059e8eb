"""Triangular and tridiagonal systems, reflections, updates and polar decompositions."""

from __future__ import annotations

import importlib
import itertools
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from matrices import matrix

import primax_core as px
from primax_core import lax
from primax_core._base.config import enable_x64
from primax_core.lax import linalg
from test_support import assert_close, check_derivatives

householder, qr, tridiagonal = (
    importlib.import_module(f"primax_core.lax.linalg.{n}")
    for n in ("householder", "qr", "tridiagonal")
)


@pytest.fixture(autouse=True)
def double():
    with enable_x64(True):
        yield


def dominant(*shape, dtype=np.float64):
    return matrix(*shape, dtype=dtype) + 4 * np.eye(shape[-1], dtype=dtype)


close = partial(assert_close, rtol=1e-11)


def operator(a, lower, transpose_a, conjugate_a, unit_diagonal):
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        n = a.shape[-1]
        a = a * (1 - np.eye(n)) + np.eye(n)
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    return a.conj() if conjugate_a else a


@pytest.mark.parametrize(
    "stack, n, k, dtype",
    [
        ((2,), 3, 2, np.float64),
        ((2,), 2, 1, np.float64),
        ((), 3, 2, np.complex128),
        ((3,), 2, 1, np.complex128),
    ],
)
def test_triangular_solve(stack, n, k, dtype):
    """All flags; stacks of tiny matrices and larger matrices use different algorithms."""
    a = dominant(*stack, n, n, dtype=dtype)
    for left, *flags in itertools.product((True, False), repeat=5):
        b = matrix(*stack, *((n, k) if left else (k, n)), dtype=dtype, seed=1)
        names = ("lower", "transpose_a", "conjugate_a", "unit_diagonal")
        actual = linalg.triangular_solve(a, b, left_side=left, **dict(zip(names, flags)))
        actual, op = np.asarray(actual), operator(a, *flags)
        close(op @ actual if left else actual @ op, b)


def test_triangular_solve_of_vectors_and_narrow_floats():
    a = np.array([[2.0, 0.0], [1.0, 1.0]])
    assert linalg.triangular_solve(a, a[0], left_side=True, lower=True).tolist() == [1, -1]
    assert linalg.triangular_solve(a.T, a[0]).tolist() == [1, -1]
    stack = np.stack([a, 2 * a])
    actual = linalg.triangular_solve(stack, a, left_side=True, lower=True)
    assert actual.tolist() == [[1, -1], [0.25, 0.25]]
    narrow = a.astype(ml_dtypes.bfloat16)
    actual = linalg.triangular_solve(narrow, narrow, left_side=True, lower=True)
    assert actual.dtype == ml_dtypes.bfloat16 and np.asarray(actual).astype(float).tolist() == [
        [1, 0], [0, 1],
    ]  # fmt: skip


def test_triangular_solve_of_one_matrix_and_many_right_sides():
    a = dominant(3, 3)
    for left, axis in itertools.product((True, False), (0, 1, 2)):

        def solve(b, left=left):
            return linalg.triangular_solve(a, b, left_side=left)

        b = np.moveaxis(matrix(5, 3, 2) if left else matrix(5, 2, 3), 0, axis)
        actual = np.asarray(px.vmap(solve, axis)(b))
        for i in range(5):
            close(actual[i], solve(np.take(b, i, axis)))


def test_triangular_solve_refuses():
    a = np.eye(3)
    with pytest.raises(ValueError, match="must be a square matrix"):
        linalg.triangular_solve(a[:2], a)
    with pytest.raises(ValueError, match="Incompatible shapes"):
        linalg.triangular_solve(a, a[:, :2])
    with pytest.raises(TypeError, match="same dtypes"):
        linalg.triangular_solve(a, a.astype(np.float32))
    with pytest.raises(TypeError, match="does not accept dtype int64"):
        linalg.triangular_solve(a.astype(int), a.astype(int))
    with pytest.raises(ValueError, match="same batch dimensions"):
        linalg.triangular_solve(np.ones((2, 3, 3)), np.ones((4, 3, 3)))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_tridiagonal_solve(n, dtype):
    dl, d, du = matrix(3, 2, n, dtype=dtype)
    d = d + 6
    b = matrix(2, n, 3, dtype=dtype, seed=1)
    full = np.stack(
        [np.diag(d[i]) + np.diag(dl[i, 1:], -1) + np.diag(du[i, :-1], 1) for i in range(2)]
    )
    for perturb in (True, False):
        actual = np.asarray(linalg.tridiagonal_solve(dl, d, du, b, perturb_singular=perturb))
        close(full @ actual, b)
        close(tridiagonal._thomas(*map(px.device_put, (dl, d, du, b)), perturb), actual)


def test_singular_tridiagonal_matrices():
    z, b = np.zeros(3), np.ones((3, 1))
    assert np.isnan(np.asarray(linalg.tridiagonal_solve(z, z, z, b))).all()
    actual = linalg.tridiagonal_solve(z, z, z, b, perturb_singular=True)
    assert np.isfinite(np.asarray(actual)).all()
    d = np.array([0.0, 0.0])  # requires pivoting
    assert linalg.tridiagonal_solve(d + 1, d, d + 1, np.array([[2.0], [3.0]])).tolist() == [
        [3], [2],
    ]  # fmt: skip
    with pytest.raises(TypeError, match="same shape"):
        linalg.tridiagonal_solve(z[:2], z, z, b)
    with pytest.raises(TypeError, match="leading ndim-1 dimensions of b"):
        linalg.tridiagonal_solve(z, z, z, b[:2])


# Reflections


def reflections(m, k, dtype=np.float64):
    a, taus = qr.geqrf(matrix(m, k, dtype=dtype))
    return np.asarray(a), np.asarray(taus)


def product_of(a, taus):
    m = a.shape[0]
    q = np.eye(m, dtype=a.dtype)
    for i, tau in enumerate(taus):
        v = np.concatenate([np.zeros(i), [1], a[i + 1 :, i]])
        q = q @ (np.eye(m) - tau * np.outer(v, v.conj()))
    return q


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("k", [3, 2, 0])
def test_reflections(k, dtype):
    a, taus = reflections(4, 3, dtype)
    taus = taus[:k]
    q = product_of(a, taus)
    close(linalg.householder_product(a, taus), q[:, :3])
    on_device = [px.device_put(x) for x in (a, taus)]
    close(householder._product(*on_device), q[:, :3])
    c = matrix(4, 4, dtype=dtype, seed=1)
    for left, transpose in itertools.product((True, False), repeat=2):
        op = q.conj().T if transpose else q
        expected = op @ c if left else c @ op
        close(linalg.ormqr(a, taus, c, left=left, transpose=transpose), expected)
        close(householder._multiplied(*on_device, px.device_put(c), left, transpose), expected)


def test_reflections_by_zero():
    """The derivative is finite if a factor is zero, which excludes formulas that divide by it."""
    a, taus = reflections(4, 3)
    taus = taus * np.array([1.0, 0.0, 1.0])
    check_derivatives(linalg.householder_product, a, taus)
    check_derivatives(linalg.ormqr, a, taus, matrix(4, 2))


def test_reflections_refuse():
    a, taus = reflections(4, 3)
    with pytest.raises(ValueError, match="at least as many rows as columns"):
        linalg.householder_product(a.T, taus)
    with pytest.raises(ValueError, match="must not have more rows"):
        linalg.householder_product(a[:, :2], taus)
    with pytest.raises(ValueError, match="same number of rows"):
        linalg.ormqr(a, taus, np.ones((3, 3)))
    with pytest.raises(ValueError, match="same number of columns"):
        linalg.ormqr(a, taus, np.ones((4, 3)), left=False)
    with pytest.raises(ValueError, match="at most as many taus"):
        linalg.ormqr(a[:, :2], taus, np.ones((4, 3)))


def test_hessenberg_and_tridiagonal_forms():
    for dtype in (np.float64, np.complex128):
        x = matrix(4, 4, dtype=dtype)
        out, taus = (np.asarray(o) for o in linalg.hessenberg(x))
        h = np.triu(out, -1)
        q = np.eye(4, dtype=dtype)
        q[1:, 1:] = linalg.householder_product(out[1:, :-1], taus)
        close(q @ h @ q.conj().T, x)
        s = x + x.conj().T
        for lower in (True, False):
            _, d, e, taus = (np.asarray(o) for o in linalg.tridiagonal(s, lower=lower))
            assert d.dtype == e.dtype == np.float64 and taus.dtype == dtype
            t = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
            close(np.linalg.eigvalsh(t), np.linalg.eigvalsh(s))
    assert linalg.hessenberg(np.ones((1, 1)))[1].shape == (0,)
    assert linalg.hessenberg(np.ones((0, 0)))[1].shape == (0,)
    assert linalg.tridiagonal(np.ones((1, 1)))[2].shape == (0,)


@pytest.mark.parametrize(
    "pivots, size, expected",
    [
        ([2, 1], 3, [2, 1, 0]),
        ([2, 1, 4], 5, [2, 1, 4, 3, 0]),
        ([1, 1], 2, [1, 0]),
        ([], 2, [0, 1]),
        ([[1, 1], [0, 1]], 2, [[1, 0], [0, 1]]),
    ],
)
def test_pivots(pivots, size, expected):
    pivots = np.array(pivots, np.int32)
    assert linalg.lu_pivots_to_permutation(pivots, size).tolist() == expected


def test_pivots_refuse():
    with pytest.raises(ValueError, match="permutation size 1 has to exceed"):
        linalg.lu_pivots_to_permutation(np.zeros(2, np.int32), 1)
    with pytest.raises(TypeError, match="does not accept dtype int64"):
        linalg.lu_pivots_to_permutation(np.zeros(2, np.int64), 2)
    with pytest.raises(TypeError, match="rank at least 1"):
        linalg.lu_pivots_to_permutation(np.int32(0), 2)


# Updates and products


def test_cholesky_update():
    r, w = np.triu(dominant(4, 4)), matrix(4)
    actual = np.asarray(linalg.cholesky_update(r, w))
    close(actual.T @ actual, r.T @ r + np.outer(w, w))
    assert not np.tril(actual, -1).any() and (np.diagonal(actual) > 0).all()
    assert linalg.cholesky_update(np.zeros((2, 2)), np.zeros(2)).tolist() == [[0, 0], [0, 0]]
    stack = np.stack([r, 2 * r])
    actual = np.asarray(px.vmap(linalg.cholesky_update, (0, None))(stack, w))
    close(actual[1], linalg.cholesky_update(2 * r, w))
    with pytest.raises(TypeError, match="does not accept dtype complex128"):
        linalg.cholesky_update(r + 0j, w + 0j)
    with pytest.raises(TypeError, match="rank of exactly 2"):
        linalg.cholesky_update(stack, w)
    with pytest.raises(ValueError, match="vector of the same size"):
        linalg.cholesky_update(r, w[:2])


def test_symmetric_product():
    a, c = matrix(3, 2), matrix(3, 3)
    close(linalg.symmetric_product(a, c), a @ a.T)
    close(linalg.symmetric_product(a, np.full((3, 3), np.nan)), a @ a.T)
    plain = 2 * a @ a.T + 3 * c
    close(linalg.symmetric_product(a, c, alpha=2, beta=3), plain)
    symmetric = linalg.symmetric_product(a, c, alpha=2, beta=3, symmetrize_output=True)
    close(symmetric, np.tril(plain) + np.tril(plain, -1).T)
    with pytest.raises(ValueError, match="symmetric_update expects"):
        linalg.symmetric_product(a, c[:2, :2])


# Polar decompositions


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_polar(dtype):
    x = matrix(5, 3, dtype=dtype)
    u, h, n, converged = linalg.qdwh(x)
    assert bool(converged) and 1 <= int(n) <= 10 and n.weak_type
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    left, s, vh = np.linalg.svd(x, full_matrices=False)
    close(u, left @ vh, rtol=tolerance)
    close(h, (vh.conj().T * s) @ vh, rtol=10 * tolerance)


def test_polar_of_difficult_matrices():
    x = np.diag([1.0, 1e-8, 1e-15])
    u, h, _, converged = linalg.qdwh(x)
    assert bool(converged)
    close(np.asarray(u) @ np.asarray(h), x)
    close(u, np.eye(3), rtol=1e-6)
    u, h, _, _ = linalg.qdwh(np.zeros((2, 2)))
    assert not np.asarray(u).any() and not np.asarray(h).any()
    assert not bool(linalg.qdwh(x, max_iterations=2)[3])
    assert int(linalg.qdwh(x, max_iterations=2)[2]) == 2


def test_polar_of_a_part():
    x = matrix(4, 4)
    u, h, _, _ = px.jit(lambda x, n: linalg.qdwh(x, dynamic_shape=(n, 2)))(x, 3)
    expected = linalg.qdwh(x[:3, :2])
    close(np.asarray(u)[:3, :2], expected[0])
    close(np.asarray(h)[:2, :2], expected[1])
    assert not np.asarray(u)[3:].any() and not np.asarray(h)[:, 2:].any()
    s = x + x.T
    u = np.asarray(linalg.qdwh(s, is_hermitian=True)[0])
    close(u, u.T)
    with pytest.raises(ValueError, match="M >= N"):
        linalg.qdwh(x[:2])
    with pytest.raises(ValueError, match="one matrix"):
        linalg.qdwh(x[0])
    with pytest.raises(ValueError, match="eps must be positive"):
        linalg.qdwh(x, eps=0.0)


def test_polar_supports_forward_mode():
    check_derivatives(lambda x: linalg.qdwh(x)[0], matrix(4, 3), modes=("fwd",), atol=1e-7)


def test_lowered_functions_are_inlined_and_checked():
    x = dominant(3, 3)

    def solve(x):
        factors, _, order = linalg.lu(x)
        return lax.reduce_sum(factors, (0, 1)), order

    text = str(px.make_jaxpr(solve)(x))
    assert " = lu b" in text or " = lu a" in text
