"""Linear algebra: banded systems, bases of subspaces, Riccati equations, logarithms, and the
derivative of the Schur form."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as theirs

import primax_numpy as pnp
from primax_core import enable_x64, jit, jvp, tree, vjp, vmap
from primax_scipy import linalg
from test_support import assert_close, check_derivatives

RNG = np.random.default_rng(3)
A = RNG.normal(size=(4, 4))
C = A + 1j * RNG.normal(size=(4, 4))
MATRICES = [pytest.param(A, id="real"), pytest.param(C, id="complex")]


def band(lower: int, upper: int, n: int, complex_: bool = False) -> np.ndarray:
    out = RNG.normal(size=(lower + upper + 1, n))
    return out + 1j * RNG.normal(size=out.shape) if complex_ else out


def definite(u: int, n: int, complex_: bool) -> np.ndarray:
    """Lower diagonals of a definite matrix."""
    ab = band(0, u, n, complex_)
    ab[0] = 3 * u + 3
    return ab


@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize(
    "sizes", [(1, 1, 6), (2, 1, 7), (0, 2, 5), (2, 0, 5), (0, 0, 3), (3, 4, 4)]
)
def test_solve_banded(sizes, complex_) -> None:
    l, u, n = sizes
    ab = band(l, u, n, complex_)
    with enable_x64(True):
        for b in (RNG.normal(size=n), RNG.normal(size=(n, 2))):
            assert_close(
                linalg.solve_banded((l, u), ab, b), theirs.solve_banded((l, u), ab, b), rtol=1e-9
            )


def test_derivatives_and_batches_of_solve_banded() -> None:
    ab, b = band(2, 1, 5), RNG.normal(size=5)
    ab[1] += 4
    check_derivatives(
        lambda ab, b: linalg.solve_banded((2, 1), ab, b), ab, b, order=2, rtol=1e-4, step=None,
        value_rtol=1e-10,
    )  # fmt: skip
    with enable_x64(True):
        many, right = np.stack([ab, 2 * ab]), np.stack([b, b + 1])
        expected = np.stack([theirs.solve_banded((2, 1), *p) for p in zip(many, right)])
        assert_close(linalg.solve_banded((2, 1), many, right), expected, rtol=1e-9)
        solve = lambda ab, b: linalg.solve_banded((2, 1), ab, b)
        assert_close(jit(vmap(solve))(many, right), expected, rtol=1e-9)
        columns = np.stack([right.T, right.T])
        assert linalg.solve_banded((2, 1), many, columns).shape == (2, 5, 2)


@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("u", [0, 1, 3])
def test_banded_definite_systems(u, complex_) -> None:
    n = 6
    low = definite(u, n, complex_)
    high = np.zeros_like(low)
    for d in range(u + 1):
        high[u - d, d:] = low[d, : n - d].conj()
    b = RNG.normal(size=(n, 2))
    inside = np.arange(u + 1)[:, None] + np.arange(n)[None] < n
    with enable_x64(True):
        for lower, ab in ((True, low), (False, high)):
            mask = inside if lower else inside[::-1, ::-1]
            factor = linalg.cholesky_banded(ab, lower=lower)
            expected = theirs.cholesky_banded(ab, lower=lower)
            assert_close(factor, np.where(mask, expected, 0), rtol=1e-10)
            expected = theirs.solveh_banded(ab, b, lower=lower)
            assert_close(linalg.solveh_banded(ab, b, lower=lower), expected, rtol=1e-10)
            assert_close(linalg.cho_solve_banded((factor, lower), b), expected, rtol=1e-10)
        batch = linalg.solveh_banded(np.stack([low, 2 * low]), b[:, 0], lower=True)
        assert_close(batch[0], 2 * batch[1], rtol=1e-10)


@pytest.mark.rotate(every=4, whole=True)
def test_derivatives_of_banded_definite_systems() -> None:
    ab, b = definite(2, 5, False), RNG.normal(size=5)
    limits = {"order": 2, "rtol": 1e-4, "step": None, "value_rtol": 1e-10}
    check_derivatives(lambda ab, b: linalg.solveh_banded(ab, b, lower=True), ab, b, **limits)
    check_derivatives(linalg.cholesky_banded, ab[::-1].copy(), **limits)
    with enable_x64(True):
        assert np.isnan(np.asarray(linalg.cholesky_banded(-ab, lower=True))).any()


@pytest.mark.parametrize("a", MATRICES)
def test_bases_of_subspaces(a) -> None:
    flat = a[:, :2] @ a[:2]
    with enable_x64(True):
        for m in (flat, a[:2], a[:, :2], np.zeros((2, 3))):
            null, image = linalg.null_space(m), linalg.orth(m)
            expected = theirs.null_space(m), theirs.orth(m)
            for ours, reference in zip((null, image), expected):
                assert ours.shape == reference.shape
                project = lambda v: np.asarray(v) @ np.asarray(v).conj().T
                assert_close(project(ours), project(reference), atol=1e-10)
        both = linalg.null_space(np.stack([flat, flat]), rank=2)
        assert_close(np.abs(flat @ np.asarray(both[1])), np.zeros((4, 2)), atol=1e-10)
        assert jit(lambda m: linalg.orth(m, rank=2))(flat).shape == (4, 2)
        assert vmap(lambda m: linalg.null_space(m, rank=3))(np.stack([flat] * 3)).shape == (3, 4, 1)


def test_derivative_of_orth() -> None:
    def projection(m):
        q = linalg.orth(m, rank=2)
        return q @ pnp.conj(q.T)

    check_derivatives(projection, A[:, :2], order=1, rtol=1e-4, step=None, value_rtol=1e-10)


@pytest.mark.parametrize("a", MATRICES)
def test_riccati_equations(a) -> None:
    b, s = a[:, 1:3] + 1, 0.1 * a[:, :2]
    q, r, e = a @ a.conj().T, np.eye(2) + 0.5, np.eye(4) + 0.1 * a
    with enable_x64(True):
        for more in ({}, {"s": s}):
            ours = linalg.solve_continuous_are(a, b, q, r, **more)
            assert_close(ours, theirs.solve_continuous_are(a, b, q, r, **more), rtol=1e-7)
        # SciPy does not solve the complex equation with e: the residual
        x = np.asarray(linalg.solve_continuous_are(a, b, q, r, e, s))
        gain = np.linalg.solve(r, b.conj().T @ x @ e + s.conj().T)
        left = a.conj().T @ x @ e
        residual = left + left.conj().T - (e.conj().T @ x @ b + s) @ gain + q
        assert_close(residual, np.zeros((4, 4)), atol=1e-9)
        closed = np.linalg.eigvals(np.linalg.solve(e, a - b @ gain))
        assert closed.real.max() < 0


def test_derivatives_of_riccati_equations() -> None:
    a, b, q = A[:2, :2], A[:2, 2:3], np.eye(2)
    check_derivatives(
        lambda a, b, q, r: linalg.solve_continuous_are(a, b, q + q.T, r), a, b, q, np.eye(1),
        order=1, rtol=1e-3, atol=1e-3, step=None, value_rtol=1e-8,
    )  # fmt: skip


@pytest.mark.parametrize("a", MATRICES)
def test_logarithm(a) -> None:
    with enable_x64(True):
        for m in (a @ a.conj().T + np.eye(4), np.triu(a) + 5 * np.eye(4), theirs.expm(a)):
            assert_close(linalg.logm(m), theirs.logm(m), rtol=1e-9, atol=1e-10)
        m = a @ a.conj().T
        assert_close(linalg.expm(linalg.logm(m)), m + 0j, rtol=1e-8)
    check_derivatives(
        lambda x: pnp.real(linalg.logm(x + 4 * np.eye(4))), A, order=1, rtol=1e-4, step=None,
        value_rtol=1e-10,
    )  # fmt: skip


def test_derivative_of_the_schur_form() -> None:
    real = np.diag([6.0, 3, 1, -2]) + 0.2 * A
    assert np.isreal(np.linalg.eigvals(real)).all()
    limits = {"order": 1, "rtol": 1e-4, "step": None, "value_rtol": 1e-10}
    check_derivatives(lambda a: linalg.schur(a), real, **limits)
    check_derivatives(lambda a: linalg.schur(a), np.stack([real, real.T]), **limits)

    def invariant(re, im):
        t, z = linalg.schur(re + 1j * im, output="complex")
        # Quantities that do not depend on the phases of the columns
        return pnp.abs(t), pnp.abs(z), pnp.real(pnp.diagonal(t)), pnp.imag(pnp.diagonal(t))

    check_derivatives(invariant, C.real, C.imag, **limits)


def test_derivative_of_blocks_of_the_schur_form() -> None:
    """The equal diagonals of blocks determine both factors.

    LAPACK's signs of columns depend on rounding, so that differences of its results have jumps: the
    derivatives are checked by the equations that determine them.
    """
    first, second = np.array([[1.0, 3], [-0.5, 1]]), np.array([[-1, -2], [0.7, -1]])
    a = theirs.block_diag(first, second, 4) + 0.1 * RNG.normal(size=(5, 5))
    assert np.iscomplex(np.linalg.eigvals(a)).sum() == 4
    e, bars = RNG.normal(size=(5, 5)), tuple(RNG.normal(size=(2, 5, 5)))
    with enable_x64(True):
        (t, z), (dt, dz) = jit(lambda a, e: jvp(linalg.schur, (a,), (e,)))(a, e)
        t, z, dt, dz = map(np.asarray, (t, z, dt, dz))
        assert_close(dz @ t @ z.T + z @ dt @ z.T + z @ t @ dz.T, e, atol=1e-11)
        assert_close(z.T @ dz + dz.T @ z, np.zeros((5, 5)), atol=1e-11)
        assert_close(np.where(t == 0, dt, 0), np.zeros((5, 5)))
        pairs = np.flatnonzero(np.diagonal(t, -1))
        assert len(pairs) == 2
        assert_close(dt[pairs, pairs], dt[pairs + 1, pairs + 1], atol=1e-11)
        (bar,) = jit(lambda a: vjp(linalg.schur, a)[1](bars))(a)
        assert_close(np.sum(bar * e), np.sum(bars[0] * dt) + np.sum(bars[1] * dz), rtol=1e-10)
    with enable_x64(True):
        turn = np.array([[0.0, -1], [1, 0]])
        _, (change, _) = jvp(linalg.schur, (turn,), (A[:2, :2],))
        assert not np.isfinite(change).all()


def test_batches_of_logarithms_and_riccati_equations() -> None:
    many = np.stack([theirs.expm(A), A @ A.T + np.eye(4), np.eye(4)])
    b, q = np.stack([A[:, :2], C.real[:, 1:3]])[:, None], many[1:]
    with enable_x64(True):
        expected = [theirs.logm(m) for m in many]
        assert_close(linalg.logm(many), np.array(expected), rtol=1e-9, atol=1e-10)
        assert_close(jit(linalg.logm)(many[None])[0], np.array(expected), rtol=1e-9, atol=1e-10)
        actual = linalg.solve_continuous_are(A, b, q, np.eye(2))
        for i in np.ndindex(2, 2):
            one = theirs.solve_continuous_are(A, b[i[0], 0], q[i[1]], np.eye(2))
            assert_close(actual[i], one, rtol=1e-7)


def test_errors_of_the_rest() -> None:
    with pytest.raises(ValueError, match=r"must have the shape \[\.\.\., 3, n\], got \(2, 4\)"):
        linalg.solve_banded((1, 1), np.ones((2, 4)), np.ones(4))
    with pytest.raises(ValueError, match="must not be negative, got"):
        linalg.solve_banded((-1, 1), np.ones((1, 4)), np.ones(4))
    with pytest.raises(ValueError, match="does not match b of shape"):
        linalg.solveh_banded(np.ones((2, 4)), np.ones(3))
    with pytest.raises(ValueError, match="pass rank, the rank of the matrix"):
        jit(linalg.null_space)(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="may have different ranks"):
        linalg.orth(np.ones((2, 2, 3), np.float32))
    with pytest.raises(ValueError, match="rank 4 is not from 0 to 2"):
        linalg.orth(np.ones((2, 3), np.float32), rank=4)
    with pytest.raises(ValueError, match=r"b of shape \(2, 2\) does not match a of shape \(3, 3\)"):
        linalg.solve_continuous_are(np.eye(3), np.ones((2, 2)), np.eye(3), np.eye(2))
    with pytest.raises(ValueError, match="needs square matrices"):
        linalg.logm(np.ones((2, 3)))


class Converting:
    """An object with a method ``__jax_array__``."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return pnp.asarray(self.value)


@pytest.mark.parametrize(
    "name", ["det", "inv", "cholesky", "lu", "qr", "eigh", "svd", "expm", "polar", "schur"]
)
def test_objects_that_convert_themselves(name):
    function = getattr(linalg, name)
    a = (A @ A.T + np.eye(4)).astype(np.float32)
    for call in (lambda x: function(Converting(x)), jit(lambda x: function(Converting(x)))):
        tree.map(lambda x, y: assert_close(x, y, rtol=1e-5, atol=1e-5), call(a), function(a))
    x = linalg.solve(Converting(a), Converting(a[0]))
    assert_close(x, linalg.solve(a, a[0]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("solve_continuous_lyapunov", 2),
        ("solve_discrete_lyapunov", 2),
        ("solve_continuous_are", 4),
        ("fiedler_companion", 1),
    ],
)
def test_equations_of_objects_that_convert_themselves(name, operands):
    function = getattr(linalg, name)
    a = (A @ A.T + np.eye(4)).astype(np.float32)
    expected = function(*[a] * operands)

    def call(x):
        return function(*[Converting(x)] * operands)

    assert_close(call(a), expected, rtol=1e-5, atol=1e-5)
    assert_close(jit(call)(a), expected, rtol=1e-5, atol=1e-5)
