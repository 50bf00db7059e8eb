"""Linear algebra: errors, degenerate matrices, and identities of decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import enable_x64, grad, jit, vmap
from primax_core.extend import dtypes
from primax_numpy import linalg

x, q = np.ones((2, 3), np.float32), np.eye(3, dtype=np.float32)
SQUARE = ["cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"]


@pytest.mark.parametrize("name", [*SQUARE, "matrix_power", "solve"])
def test_matrices_must_be_square(name: str) -> None:
    more = {"matrix_power": (2,), "solve": (x,)}.get(name, ())
    text = rf"Argument to linalg\.{name} must have shape \[\.\.\., n, n\], got \(2, 3\)"
    with pytest.raises(ValueError, match=text):
        getattr(linalg, name)(x, *more)
    with pytest.raises(TypeError, match=rf"linalg\.{name} requires ndarray .*list"):
        getattr(linalg, name)([[1.0]], *more)


@pytest.mark.parametrize("name", ["cholesky", "eig", "eigh", "inv", "qr", "svd"])
def test_16_bit_floats_raise_errors(name: str) -> None:
    with pytest.raises(TypeError, match="bfloat16"):
        getattr(linalg, name)(q.astype(dtypes.bf16))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linalg.svd(q[0]), ValueError, r"must be matrices, .* got \(3,\)"),
        (lambda: linalg.qr(q, mode="all"), ValueError, "mode must be"),
        (lambda: linalg.eigh(q, UPLO="X"), ValueError, "UPLO must be one of"),
        (lambda: linalg.svd(x, hermitian=True), ValueError, r"\[\.\.\., n, n\]"),
        (lambda: linalg.svd(q, subset_by_index=(0, 1)), ValueError, "cannot both be set"),
        (lambda: linalg.slogdet(q, method="x"), ValueError, "Unknown slogdet method 'x'"),
        (lambda: linalg.solve(q, np.ones(4)), ValueError, r"Invalid shapes .*\(3, 3\), \(4,\)"),
        (
            lambda: linalg.solve(np.ones((2, 3, 3)), np.ones((2, 3))),
            ValueError,
            r"solve\(a, b\[\.\.\., None\]\)",
        ),
        (lambda: linalg.matrix_power(q, 1.5), TypeError, "exponent must be an integer, got 1.5"),
        (lambda: linalg.pinv(q, rtol=0.1, rcond=0.1), ValueError, "only one of rtol and rcond"),
        (lambda: linalg.matrix_rank(q, rtol=0.1, tol=0.1), ValueError, "only one of rtol and tol"),
        (lambda: linalg.lstsq(q, np.ones(4)), ValueError, "Leading dimensions .* must match"),
        (lambda: linalg.lstsq(np.ones((2, 3, 3)), q), ValueError, "a matrix and a vector"),
        (lambda: linalg.norm(q, ord="bad"), ValueError, "Invalid order 'bad' for matrix norm"),
        (lambda: linalg.norm(q[0], ord="fro"), ValueError, "Invalid order 'fro' for vector norm"),
        (lambda: linalg.norm(np.ones((2, 2, 2)), ord=2), ValueError, "Improper number of axes"),
        (lambda: linalg.norm(q, axis=5), ValueError, "axis 5 is out of bounds"),
        (lambda: linalg.cond(q[0]), ValueError, "at least 2D"),
        (lambda: linalg.cond(q[:0, :0]), ValueError, "must not be empty"),
        (lambda: linalg.cond(x, 1), ValueError, "array must be square"),
        (lambda: linalg.multi_dot([q]), ValueError, "at least two arrays"),
        (lambda: linalg.multi_dot([x, x]), ValueError, r"\[\(2, 3\), \(2, 3\)\]"),
        (lambda: linalg.multi_dot([q, q[0], q]), ValueError, "may be one-dimensional"),
        (lambda: linalg.tensorinv(q, ind=0), ValueError, "must be a positive integer"),
        (lambda: linalg.tensorinv(x, ind=1), ValueError, "as many elements"),
        (lambda: linalg.tensorsolve(q, np.ones(2)), ValueError, "after moving axes"),
        (lambda: linalg.outer(x, x), ValueError, "must be one-dimensional"),
        (lambda: linalg.cross(x, x, axis=0), ValueError, "3-dimensional vectors"),
        (lambda: linalg.matrix_transpose(q[0]), ValueError, "must be matrices"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_results_have_names() -> None:
    assert linalg.svd(q)._fields == ("U", "S", "Vh")
    assert linalg.eigh(q)._fields == linalg.eig(q)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.qr(q)._fields == ("Q", "R")
    assert linalg.slogdet(q)._fields == ("sign", "logabsdet")
    assert type(jit(linalg.svd)(q)) is type(linalg.svd(q))


def cofactors(a: np.ndarray) -> np.ndarray:
    """Cofactors: signed determinants of minors."""
    n = len(a)
    return np.array(
        [
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)]
            for i in range(n)
        ]
    )


@pytest.mark.parametrize(
    "a",
    [
        np.diag([1.0, 2, 0, 3]),
        np.diag([1.0, 2, 3, 0]),
        np.diag([1.0, 0, 0, 3]),
        np.zeros((5, 5)),
        np.arange(16.0).reshape(4, 4),
        np.outer([1.0, 2], [3, 4]),
        np.ones((3, 3)) + np.diag([0, 0, 1.0]),
    ],
)
def test_derivative_of_determinants_of_singular_matrices(a: np.ndarray) -> None:
    with enable_x64(True):
        np.testing.assert_allclose(grad(linalg.det)(a), cofactors(a), atol=1e-9)
        both = np.stack([a, a + np.eye(len(a))])
        actual = vmap(grad(linalg.det))(both)
        np.testing.assert_allclose(actual[1], cofactors(both[1]), atol=1e-8)


def test_singular_systems() -> None:
    zero = np.zeros((2, 2), np.float32)
    assert not np.isfinite(linalg.inv(zero)).any()
    assert linalg.slogdet(zero).sign == 0 and linalg.slogdet(zero).logabsdet == -np.inf
    assert linalg.cond(zero) == np.inf and np.isnan(linalg.cond(zero * np.nan))
    assert np.isnan(linalg.cholesky(-q)).any()


def test_derivatives_reuse_the_factors() -> None:
    from primax_core import make_jaxpr

    a, b = 2 * q, np.ones(3, np.float32)
    program = str(make_jaxpr(grad(lambda a: linalg.solve(a, b).sum()))(a))
    assert program.count(" lu ") == 1


def test_least_squares_of_deficient_rank() -> None:
    a = np.float32([[1, 1], [1, 1], [1, 1]])
    actual = linalg.lstsq(a, np.float32([1, 2, 3]))
    np.testing.assert_allclose(actual[0], [1, 1], 1e-5)
    assert int(actual[2]) == 1 and actual[1].shape == (1,)
    assert linalg.lstsq(a, np.ones(3, np.float32), numpy_resid=True)[1].shape == (0,)


def test_rank_with_relative_and_absolute_tolerances() -> None:
    a = np.diag(np.float32([10, 0.1]))
    assert int(linalg.matrix_rank(a, rtol=0.02)) == 1 == int(linalg.matrix_rank(a, tol=0.2))
    assert int(linalg.matrix_rank(a, rtol=0.005)) == 2 == int(linalg.matrix_rank(a, tol=0.05))


def test_complex_hermitian_pseudo_inverse() -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((3, 2)) + 1j * rng.standard_normal((3, 2))
    a = (z @ z.conj().T).astype(np.complex64)
    actual = linalg.pinv(a, hermitian=True, rtol=1e-4)
    np.testing.assert_allclose(actual, np.linalg.pinv(a, rcond=1e-4), atol=1e-4)


def test_large_results_of_slogdet() -> None:
    a = 1e10 * np.eye(20, dtype=np.float32)
    assert linalg.det(a) == np.inf
    np.testing.assert_allclose(linalg.slogdet(a).logabsdet, 20 * np.log(1e10), 1e-5)


def test_linalg_is_a_module_of_the_package() -> None:
    assert pnp.linalg is linalg and "linalg" in dir(pnp)
