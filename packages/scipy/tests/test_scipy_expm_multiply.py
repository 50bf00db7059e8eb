"""Exponentials times vectors, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import primax_numpy as pnp
from primax_core import enable_x64, grad, jacfwd, jacrev, jit, vmap
from primax_scipy.experimental import sparse
from primax_scipy.sparse.linalg import LinearOperator, expm_multiply
from test_support import assert_close, check_call, check_derivatives

RNG = np.random.default_rng(5)
A = RNG.normal(size=(5, 5))
B = RNG.normal(size=(5, 2))
STIFF = 60 * (A - 3 * np.eye(5))
"""Its norm needs many stages, and its exponential is small."""

KINDS = {
    "dense": lambda a: a,
    "sparse": lambda a: sparse.BCOO.fromdense(a),
    "rows": lambda a: sparse.BCSR.fromdense(a),
    "operator": lambda a: LinearOperator((5, 5), lambda x: a @ x, dtype=a.dtype),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_matrices(kind: str) -> None:
    with enable_x64(True):
        for a in (A, 1e-9 * A, STIFF, 0 * A):
            for b in (B, B[:, 0]):
                expected = scipy.linalg.expm(a) @ b
                actual = expm_multiply(KINDS[kind](a), b)
                assert_close(actual, expected, atol=1e-11 * abs(expected).max())


def test_complex_matrices_and_traces() -> None:
    a = A + 1j * A.T
    with enable_x64(True):
        for matrix, b in ((a, B), (A, B + 1j), (a, B[:, 0] * 1j)):
            expected = scipy.linalg.expm(matrix) @ b
            assert_close(expm_multiply(matrix, b), expected, rtol=1e-12)
        op = LinearOperator((5, 5), lambda x: A @ x, dtype=A.dtype)
        for trace in (None, A.trace(), A.trace() + 1j, 3.0):
            expected = scipy.linalg.expm(A) @ B
            assert_close(expm_multiply(op, B, traceA=trace), expected, rtol=1e-12)


def test_matrices_whose_powers_are_smaller() -> None:
    """The norm of a matrix that is far from normal would require many products."""
    a = np.triu(RNG.normal(size=(5, 5)), 1) * 200 + np.diag(np.arange(5) - 2.0)
    with enable_x64(True):
        expected = scipy.linalg.expm(a) @ B
        assert_close(expm_multiply(a, B), expected, rtol=1e-9)


TIMES: dict[str, tuple[Any, ...]] = {
    "default": (0, 2), "from-zero": (0.0, 1.5, 4), "without-end": (0.5, 2.0, 5, False),
    "backwards": (1.0, -1.0, 3), "one": (0.5, 2.0, 1),
}  # fmt: skip


@pytest.mark.parametrize("case", TIMES)
def test_times(case: str) -> None:
    times = TIMES[case]
    with enable_x64(True):
        for b in (B, B[:, 0]):
            points = np.linspace(*times) if len(times) > 2 else np.linspace(*times, 50)
            expected = [scipy.linalg.expm(t * A) @ b for t in points]
            assert_close(expm_multiply(A, b, *times), expected, rtol=1e-10, atol=1e-12)


def test_dtypes_and_settings() -> None:
    call = lambda a, b: expm_multiply(a, b, 0.0, 1.0, num=2)
    check_call(call, A.astype(np.float32), B.astype(np.float32))
    for dtype, result in ((np.float32, np.float32), (np.float16, np.float16), (int, np.float32)):
        a, b = A.astype(dtype), B.astype(dtype)
        actual = expm_multiply(a, b)
        expected = scipy.linalg.expm(a.astype(float)) @ b
        assert actual.dtype == result
        assert_close(actual, expected, rtol=3e-3 if dtype == np.float16 else 3e-5)
    assert expm_multiply(np.zeros((0, 0)), np.zeros((0, 2))).shape == (0, 2)
    assert expm_multiply(A, B[:, :0], 0, 1, num=3).shape == (3, 5, 0)


LIMITS: dict[str, Any] = {"rtol": 1e-5, "step": None, "value_rtol": 1e-9}


def test_derivatives() -> None:
    check_derivatives(lambda a, b: expm_multiply(a, b), A, B[:, 0], **LIMITS)
    # Many stages: states are stored at some positions and computed again
    check_derivatives(lambda a: expm_multiply(a, B[:, 0]), 150 * (A - 4 * np.eye(5)), **LIMITS)


def test_derivatives_in_times() -> None:
    call = lambda a, start, stop: expm_multiply(a, B[:, 0], start, stop, num=3)
    check_derivatives(call, A, 0.3, 1.1, **LIMITS)


def test_derivatives_through_many_stages() -> None:
    """More than 1024 stages, with the exact derivative of rotations."""
    turn = np.array([[0.0, -1], [1, 0]])
    with enable_x64(True):
        for angle in (3.0, 2.0e3, 3.0e4):
            value = lambda t: expm_multiply(t * turn, np.array([1.0, 0]))
            assert_close(jacrev(value)(angle), [-np.sin(angle), np.cos(angle)], atol=1e-7)


def test_derivatives_of_sparse_matrices_and_operators() -> None:
    mask = A > 0
    a, b = np.where(mask, A, 0.0), B[:, 0]

    def dense(a: Any) -> Any:
        return pnp.sum(expm_multiply(a, b) ** 2)

    def stored(data: Any) -> Any:
        matrix = sparse.BCOO((data, np.argwhere(mask)), shape=(5, 5))
        return pnp.sum(expm_multiply(matrix, b) ** 2)

    def closed_over(a: Any) -> Any:
        return dense(LinearOperator((5, 5), lambda x: a @ x, dtype=a.dtype))

    with enable_x64(True):
        expected = np.asarray(grad(dense)(a))
        assert_close(jit(grad(stored))(a[mask]), expected[mask], rtol=1e-10)
        assert_close(jit(grad(closed_over))(a), expected, rtol=1e-10)


def test_second_derivatives() -> None:
    value = lambda t: pnp.sum(expm_multiply(t * A, B[:, 0]))
    expected = np.sum(A @ A @ scipy.linalg.expm(0.7 * A) @ B[:, 0])
    with enable_x64(True):
        for second in (jacfwd(grad(value)), grad(jacfwd(value))):
            assert_close(jit(second)(0.7), expected, rtol=1e-9)


def test_maps() -> None:
    many, right = np.stack([A, STIFF, 0 * A]), np.stack([B, B + 1, -B])
    with enable_x64(True):
        expected = [scipy.linalg.expm(a) @ b for a, b in zip(many, right)]
        assert_close(jit(vmap(expm_multiply))(many, right), expected, atol=1e-12)
        slopes = jit(vmap(grad(lambda a: pnp.sum(expm_multiply(a, B)))))(many)
        bar = np.ones((5, 2)) @ B.T
        for a, slope in zip(many, slopes, strict=True):
            expected = scipy.linalg.expm_frechet(a.T, bar, compute_expm=False)
            assert_close(slope, expected, rtol=1e-10)


ERRORS: dict[str, tuple[Any, str]] = {
    "square": (lambda: expm_multiply(B, B), "expm_multiply needs a square matrix"),
    "shape": (lambda: expm_multiply(A, B.T), "B of shape (2, 5) does not match A of shape (5, 5)"),
    "stop": (lambda: expm_multiply(A, B, 0.0), "start=0.0 and stop=None: pass both"),
    "num": (lambda: expm_multiply(A, B, 0, 1, num=0), "num=0 is the number of times: pass at"),
    "time": (lambda: expm_multiply(A, B, 0, 1j), "stop must be a real number"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, text = ERRORS[case]
    with pytest.raises((ValueError, TypeError)) as info:
        call()
    assert text in str(info.value)
