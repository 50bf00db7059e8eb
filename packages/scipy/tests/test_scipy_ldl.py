"""Factorization of indefinite matrices, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as theirs

import primax_numpy as pnp
from primax_core import enable_x64, jit, jvp, vmap
from primax_scipy import linalg
from test_support import assert_close, check_derivatives

KINDS = {"real": (False, True), "symmetric": (True, False), "hermitian": (True, True)}


def matrix(n: int, kind: str, seed: int = 0) -> np.ndarray:
    """An indefinite matrix with a small diagonal, which needs pivots of two rows."""
    rng = np.random.default_rng(seed)
    complex_, hermitian = KINDS[kind]
    a = rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if complex_ else 0)
    a = a + (a.conj().T if hermitian else a.T)
    return a - 0.9 * np.diag(np.diag(a))


@pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
@pytest.mark.parametrize("kind", KINDS)
def test_factors_are_those_of_lapack(kind: str, lower: bool) -> None:
    hermitian = KINDS[kind][1]
    with enable_x64(True):
        for seed in range(4):
            a = matrix(6, kind, seed)
            # Only one triangle is read.
            passed = np.tril(a) if lower else np.triu(a)
            actual = linalg.ldl(passed, lower, hermitian)
            expected = theirs.ldl(passed, lower, hermitian)
            for ours, reference in zip(actual, expected, strict=True):
                assert_close(ours, reference, rtol=1e-9, atol=1e-9)
            lu, d, perm = map(np.asarray, actual)
            back = lu @ d @ (lu.conj().T if hermitian else lu.T)
            assert_close(back, a, rtol=1e-10, atol=1e-10)
            triangle = lu[perm]
            assert_close(triangle, np.tril(triangle) if lower else np.triu(triangle))


@pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
def test_special_matrices(lower: bool) -> None:
    """Ties, zeros and integers have the pivots of LAPACK."""
    table = np.array([[2, -1, 3, 0], [-1, 2, 0, 1], [3, 0, 1, 3], [0, 1, 3, 3]])
    cases = [
        np.zeros((4, 4)), np.eye(4), np.ones((4, 4)), 1 - np.eye(4), np.eye(4)[::-1],
        np.diag([1.0, 0, 2, 0]), table,
    ]  # fmt: skip
    with enable_x64(True):
        for a in cases:
            for ours, reference in zip(linalg.ldl(a, lower), theirs.ldl(a, lower), strict=True):
                assert_close(ours, reference, rtol=1e-12, atol=1e-12)


def test_dtypes_and_empty_matrices() -> None:
    lu, d, perm = linalg.ldl(np.full((1, 1), 3))
    assert (lu.dtype, d.dtype, perm.dtype) == (np.float32, np.float32, np.int32)
    assert (float(lu[0, 0]), float(d[0, 0]), int(perm[0])) == (1.0, 3.0, 0)
    shapes = [v.shape for v in linalg.ldl(np.zeros((2, 0, 0), np.float32))]
    assert shapes == [(2, 0, 0), (2, 0, 0), (2, 0)]
    assert np.isnan(linalg.ldl(np.full((1, 1), np.nan, np.float32))[1]).any()


def test_batches_and_maps() -> None:
    many = np.stack([matrix(4, "hermitian", s) for s in range(4)]).reshape(2, 2, 4, 4)
    with enable_x64(True):
        actual = jit(linalg.ldl)(many)
        mapped = jit(vmap(vmap(linalg.ldl)))(many)
        for i in np.ndindex(2, 2):
            for ours, other, reference in zip(actual, mapped, theirs.ldl(many[i]), strict=True):
                assert_close(ours[i], reference, rtol=1e-10, atol=1e-10)
                assert_close(other[i], reference, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
def test_derivatives_hold_the_pivots(lower: bool) -> None:
    a = matrix(4, "real", 4)
    assert np.count_nonzero(theirs.ldl(a, lower)[1]) > 4
    check_derivatives(
        lambda a: linalg.ldl(a, lower)[:2], a, order=2, rtol=1e-4, atol=1e-4, step=None,
        value_rtol=1e-10,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["symmetric", "hermitian"])
def test_derivatives_of_complex_matrices(kind: str) -> None:
    a, e, h = matrix(4, kind, 1), matrix(4, kind, 2), 1e-6
    call = lambda a: linalg.ldl(a, hermitian=KINDS[kind][1])[:2]
    with enable_x64(True):
        _, slopes = jit(lambda a, e: jvp(call, (a,), (e,)))(a, e)
        for slope, up, down in zip(slopes, call(a + h * e), call(a - h * e), strict=True):
            assert_close(slope, (up - down) / (2 * h), rtol=1e-6, atol=1e-7)
        solved = lambda a: pnp.linalg.slogdet(call(a)[1])[1]
        _, slope = jvp(solved, (a,), (e,))
        assert_close(slope, np.trace(np.linalg.solve(a, e)).real, rtol=1e-9)


def test_errors_of_ldl() -> None:
    with pytest.raises(ValueError, match=r"linalg\.ldl needs square matrices, got shape \(2, 3\)"):
        linalg.ldl(np.ones((2, 3)))
    with pytest.raises(TypeError, match=r"linalg\.ldl"):
        linalg.ldl([[1.0]])
