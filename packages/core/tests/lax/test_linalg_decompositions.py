"""Decompositions: reconstruction of the matrix, failures, and derivatives at special matrices."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from matrices import matrix

import primax_core as px
from primax_core import lax
from primax_core._base.config import enable_x64
from primax_core.lax import linalg
from test_support import assert_close, check_derivatives

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
EMPTY = [(0, 0), (0, 3, 3), (2, 0, 0)]


@pytest.fixture(autouse=True)
def double():
    with enable_x64(True):
        yield


def adjoint(x):
    return np.swapaxes(np.conj(x), -1, -2)


def positive(*shape, dtype=np.float64):
    x = matrix(*shape, dtype=dtype)
    return x @ adjoint(x) + np.eye(shape[-1], dtype=dtype)


close = partial(assert_close, rtol={"float32": 2e-4, "float64": 1e-11})


def host(outs):
    return [np.asarray(o) for o in outs]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 4, 4)])
def test_square_matrices_are_reconstructed(shape, dtype):
    x, s = matrix(*shape, dtype=dtype), positive(*shape, dtype=dtype)
    factor = np.asarray(linalg.cholesky(s))
    assert factor.dtype == dtype and not np.triu(factor, 1).any()
    close(factor @ adjoint(factor), s)
    v, w = host(linalg.eigh(s))
    assert w.dtype == np.zeros(0, dtype).real.dtype and (np.diff(w) >= 0).all()
    close(v * w[..., None, :] @ adjoint(v), s)
    w, vl, vr = host(linalg.eig(x))
    assert w.dtype.kind == "c" and w.dtype == vl.dtype == vr.dtype
    close(vr * w[..., None, :], x @ vr)
    close(w[..., :, None] * adjoint(vl), adjoint(vl) @ x)
    t, z = host(linalg.schur(x))
    close(z @ t @ adjoint(z), x)
    assert not np.tril(t, -2 if np.dtype(dtype).kind == "f" else -1).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 4, 3), (1, 3)])
def test_matrices_are_reconstructed(shape, dtype):
    x = matrix(*shape, dtype=dtype)
    k = min(shape[-2:])
    factors, pivots, order = host(linalg.lu(x))
    below = np.tril(factors[..., :k], -1) + np.eye(shape[-2], k, dtype=dtype)
    taken = np.take_along_axis(x, order[..., None], -2)
    close(below @ np.triu(factors[..., :k, :]), taken)
    assert pivots.dtype == order.dtype == np.int32
    for full in (True, False):
        q, r = host(linalg.qr(x, full_matrices=full))
        assert q.shape[-1] == r.shape[-2] == (shape[-2] if full else k)
        close(q @ r, x)
        close(
            adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *[q.shape[-1]] * 2))
        )
        q, r, p = host(linalg.qr(x, full_matrices=full, pivoting=True))
        close(q @ r, np.take_along_axis(x, p[..., None, :], -1))
        assert (np.diff(np.abs(np.diagonal(r, 0, -2, -1))) <= 1e-5).all()
        u, s, vh = host(linalg.svd(x, full_matrices=full))
        assert u.shape[-1] == (shape[-2] if full else k) and vh.shape[-1] == shape[-1]
        close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x)
    close(linalg.svd(x, compute_uv=False), s)
    close(linalg.svd(x, algorithm=linalg.SvdAlgorithm.QR)[1], s)


def test_symmetrized_integers_become_floats():
    x = np.array([[4, 2], [2, 2]])
    assert linalg.cholesky(x.astype(np.int32)).tolist() == [[2, 0], [1, 1]]
    assert linalg.eigh(x.astype(np.int32))[1].dtype == np.float32


def test_only_the_selected_triangle_is_read():
    s = positive(3, 3)
    low, high = np.tril(s) + np.triu(np.full((3, 3), np.nan), 1), np.triu(s)
    close(linalg.cholesky(low, symmetrize_input=False), linalg.cholesky(s))
    for x, lower in ((low, True), (high, False)):
        close(linalg.eigh(x, lower=lower, symmetrize_input=False)[1], np.linalg.eigvalsh(s))
    x = matrix(3, 3)
    close(linalg.cholesky(x + 9 * np.eye(3)), np.linalg.cholesky((x + x.T) / 2 + 9 * np.eye(3)))


def test_subsets():
    s = positive(4, 4)
    v, w = host(linalg.eigh(s))
    some, values = host(linalg.eigh(s, subset_by_index=(1, 3)))
    close(values, w[1:3])
    close(np.abs(some), np.abs(v[:, 1:3]))
    u, values, vh = host(linalg.svd(s, full_matrices=False, subset_by_index=(0, 2)))
    assert u.shape == (4, 2) and vh.shape == (2, 4)
    close(values, np.linalg.svd(s)[1][:2])
    only = linalg.svd(s, full_matrices=False, compute_uv=False, subset_by_index=(1, 2))
    close(only, np.linalg.svd(s)[1][1:2])
    with pytest.raises(ValueError, match="not a range of 4 values"):
        linalg.eigh(s, subset_by_index=(3, 1))
    with pytest.raises(ValueError, match="cannot both be set"):
        linalg.svd(s, subset_by_index=(0, 2))


@pytest.mark.parametrize("shape", EMPTY)
def test_empty_squares(shape):
    x = np.zeros(shape)
    for fun in (linalg.cholesky, linalg.eigh, linalg.eig, linalg.schur, linalg.hessenberg):
        outs = fun(x)
        for out in outs if isinstance(outs, (list, tuple)) else [outs]:
            assert out.size == 0 and out.shape[:-2] in (shape[:-2], shape[:-3])


@pytest.mark.parametrize("shape", [*EMPTY, (3, 0), (0, 3), (2, 3, 0)])
def test_empty_matrices(shape):
    x = np.zeros(shape)
    m, n = shape[-2:]
    for outs in (linalg.qr(x), linalg.qr(x, pivoting=True), linalg.svd(x)):
        basis = np.asarray(outs[0])
        assert basis.shape == (*shape[:-2], m, m)
        close(basis, np.broadcast_to(np.eye(m), basis.shape))
    assert linalg.svd(x)[2].shape == (*shape[:-2], n, n)
    assert linalg.svd(x, full_matrices=False)[0].shape == (*shape[:-2], m, 0 if 0 in (m, n) else m)
    order = linalg.lu(x)[2]
    assert order.tolist() == np.broadcast_to(np.arange(m), order.shape).tolist()


def test_failures_are_nan():
    stack = np.stack([np.eye(2), -np.eye(2), np.ones((2, 2))])
    actual = np.asarray(linalg.cholesky(stack))
    close(actual[0], np.eye(2))
    nan = np.array([[True, False], [True, True]])
    assert (np.isnan(actual[1:]) == nan).all()
    bad = np.full((2, 2), np.nan)
    for fun in (linalg.eigh, linalg.eig, linalg.svd, linalg.schur):
        for out in fun(bad):
            assert np.isnan(np.asarray(out)).any(), fun
    factors, _, order = host(linalg.lu(np.array([[1.0, 2.0], [2.0, 4.0]])))
    assert factors.tolist() == [[2, 4], [0.5, 0]] and order.tolist() == [1, 0]


@pytest.mark.parametrize(
    "fun", [linalg.lu, linalg.qr, linalg.svd, linalg.eig, linalg.schur, linalg.hessenberg]
)
def test_bad_operands(fun):
    name = fun.__name__
    with pytest.raises(TypeError, match=f"{name} does not accept dtype int32 at position 0"):
        fun(np.eye(2, dtype=np.int32))
    with pytest.raises(TypeError, match=f"{name} does not accept dtype float16"):
        fun(np.eye(2, dtype=np.float16))
    with pytest.raises(TypeError, match=f"Input 0 to {name} must have rank at least 2"):
        fun(np.ones(2))


@pytest.mark.parametrize("fun", [linalg.cholesky, linalg.eigh, linalg.eig, linalg.schur,
                                 linalg.hessenberg, linalg.tridiagonal])  # fmt: skip
def test_matrices_that_are_not_square(fun):
    with pytest.raises(ValueError, match=r"square|\[\.\.\., n, n\]"):
        fun(np.ones((2, 3)))
    with pytest.raises((TypeError, ValueError)):
        fun(np.ones(3))


def test_algorithms_that_the_cpu_does_not_support():
    x = np.eye(2)
    with pytest.raises(NotImplementedError, match="eigh has no algorithm JACOBI on the CPU"):
        linalg.eigh(x, implementation=linalg.EighImplementation.JACOBI)
    with pytest.raises(NotImplementedError, match="svd has no algorithm POLAR on the CPU"):
        linalg.svd(x, algorithm=linalg.SvdAlgorithm.POLAR)
    with pytest.raises(ValueError, match="Only the lapack implementation"):
        linalg.eig(x, implementation=linalg.EigImplementation.CUSOLVER)
    with pytest.warns(DeprecationWarning, match="use_magma"):
        linalg.eig(x, use_magma=False)
    with pytest.raises(NotImplementedError, match="does not sort"):
        linalg.schur(x, sort_eig_vals=True)


# Derivatives


def test_equal_eigenvalues():
    """Symmetric functions of equal eigenvalues have a derivative, their vectors have none."""

    def trace_of_square(x):
        w = linalg.eigh(x)[1]
        return lax.reduce_sum(lax.mul(w, w), (0,))

    x = np.diag([1.0, 1.0, 3.0])
    close(px.grad(trace_of_square)(x), 2 * x)
    vectors = px.jvp(lambda x: linalg.eigh(x)[0], (x,), (np.ones((3, 3)),))[1]
    assert not np.isfinite(np.asarray(vectors)).all()


def test_equal_and_zero_singular_values():
    def nuclear(x):
        return lax.reduce_sum(linalg.svd(x, full_matrices=False)[1], (0,))

    x = np.array([[0.0, 2.0], [-2.0, 0.0]])
    close(px.grad(nuclear)(x), x / 2)
    # One zero singular value of a square matrix: its vectors are unique except for signs.
    singular = np.diag([3.0, 1.0, 0.0])

    def product(x):
        u, s, vh = linalg.svd(x)
        return lax.dot(lax.mul(u, lax.expand_dims(s, (0,))), vh)

    tangent = matrix(3, 3)
    close(px.jvp(product, (singular,), (tangent,))[1], tangent)


def test_derivatives_of_completed_bases():
    """A square basis of a tall matrix: the span of its additional columns; for QR, the columns."""
    x = matrix(4, 2)

    def complement(x):
        u = linalg.svd(x)[0]
        rest = lax.slice_in_dim(u, 2, 4, axis=1)
        return lax.dot_general(rest, rest, (((1,), (1,)), ((), ())))

    check_derivatives(complement, x)
    check_derivatives(lambda x: linalg.qr(x)[0], x)
    check_derivatives(lambda x: linalg.qr(x, pivoting=True)[1], matrix(2, 3))


def test_derivative_of_the_triangle_that_cholesky_reads():
    check_derivatives(lambda x: linalg.cholesky(x, symmetrize_input=False), positive(3, 3))


def test_derivatives_of_eigenvectors_require_the_option():
    x = matrix(3, 3)
    with pytest.raises(NotImplementedError, match="enable_eigvec_derivs=True"):
        px.jvp(lambda x: linalg.eig(x)[0], (x,), (x,))

    def values(x):
        return linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]

    def vectors(x):
        return lax.real(linalg.eig(x, enable_eigvec_derivs=True)[2])

    check_derivatives(lambda x: lax.real(values(x)), x)
    check_derivatives(vectors, x)


@pytest.mark.parametrize("name", ["schur", "hessenberg", "tridiagonal"])
def test_no_derivatives(name):
    x = positive(3, 3)
    with pytest.raises(NotImplementedError, match=f"primitive {name} does not support"):
        px.jvp(getattr(linalg, name), (x,), (x,))


def test_batches_are_loops():
    x = positive(2, 3, 4, 4)
    for fun in (linalg.cholesky, linalg.lu, linalg.qr, linalg.eigh, linalg.svd, linalg.hessenberg):
        actual = px.vmap(px.vmap(fun), 1)(x)
        expected = fun(np.swapaxes(x, 0, 1))
        for f, e in zip(*(o if isinstance(o, (list, tuple)) else [o] for o in (actual, expected))):
            np.testing.assert_array_equal(np.asarray(f), np.asarray(e))
