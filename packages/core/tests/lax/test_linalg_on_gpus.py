"""Decompositions on NVIDIA GPUs: the lowering rules, run on a CPU with LAPACK for cuSOLVER.

``integration_tests/oracle`` compares the calls with those of jax.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._ir.primitive import lower
from primax_core._lower.lazy import hlo
from primax_core._lower.module import lower_module
from primax_core._runtime import plugin_start as _provides_cuda_hybrid  # noqa: F401
from primax_core.lax import linalg
from primax_core.lax.linalg import cusolver, lapack
from primax_core.lax.linalg.cholesky import cholesky_p
from primax_core.lax.linalg.eig import eig_p
from primax_core.lax.linalg.eigh import eigh_p
from primax_core.lax.linalg.householder import householder_product_p, ormqr_p
from primax_core.lax.linalg.lu import lu_p
from primax_core.lax.linalg.qr import geqp3_p, geqrf_p
from primax_core.lax.linalg.svd import SvdAlgorithm, svd_p
from primax_core.lax.linalg.tridiagonal import tridiagonal_p, tridiagonal_solve_p

PRIMITIVES = (
    cholesky_p,
    lu_p, geqrf_p, geqp3_p, householder_product_p, ormqr_p, eigh_p, eig_p, svd_p, tridiagonal_p,
    tridiagonal_solve_p,
)  # fmt: skip


def letter(dtype: np.dtype) -> str:
    return {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}[dtype.name]


class Lapack:
    """LAPACK's routines under the names of cuSOLVER."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict]] = []

    def __call__(self, target, operands, out_avals, aliases=None, **attributes):
        self.calls.append((target, attributes))
        name = target.removeprefix("cusolver_").removeprefix("cuhybrid_").removeprefix("cusparse_")
        return getattr(self, name)(operands, out_avals, aliases, **attributes)

    def _call(self, routine, operands, out_avals, aliases=None, **attributes):
        complex_names = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}
        dtype = operands[0][1].dtype
        if dtype.kind == "c":
            routine = complex_names.get(routine, routine)
        letters = {k: np.uint8(ord(v)) if isinstance(v, str) else v for k, v in attributes.items()}
        target = f"lapack_{letter(dtype)}{routine}_ffi"
        return lapack.call_on_columns(target, operands, out_avals, aliases, letters)

    def getrf(self, *args):
        return self._call("getrf", *args)

    def potrf(self, *args, lower):
        return self._call("potrf", *args, uplo="L" if lower else "U")

    def geqrf(self, *args):
        return self._call("geqrf", *args)

    def geqp3(self, *args, magma):
        assert magma == "auto"
        return self._call("geqp3", *args)

    def orgqr(self, *args):
        return self._call("orgqr", *args)

    def ormqr(self, *args, left, transpose):
        return self._call("ormqr", *args, left=left, transpose=transpose)

    def syevd(self, *args, algorithm, lower):
        assert algorithm.dtype == np.uint8
        return self._call("syevd", *args, mode="V", uplo="L" if lower else "U")

    def eig_real(self, *args, left, right, magma):
        sides = {"compute_left": "V" if left else "N", "compute_right": "V" if right else "N"}
        return self._call("geev", *args, **sides)

    eig_comp = eig_real

    def sytrd(self, *args, lower):
        return self._call("sytrd", *args, uplo="L" if lower else "U")

    def gtsv2(self, operands, out_avals, aliases):
        assert aliases == {3: 0}
        avals = [a for _, a in operands]
        info = lapack.info_of(avals[1].shape[:-1])
        same = {i: i for i in range(4)}
        return [self._call("gtsv", operands, [*avals, info], same)[3]]

    def gesvd(self, operands, out_avals, aliases, compute_uv, full_matrices, transposed):
        x, s, u, vh, info = out_avals
        *stack, m, n = x.shape
        assert m >= n and not transposed, "cuSOLVER needs at least as many rows as columns"
        mode = "N" if not compute_uv else "A" if full_matrices else "S"
        if not compute_uv:
            assert u.shape == vh.shape == ()
            u, vh = x.update(shape=(*stack, m, n)), x.update(shape=(*stack, n, n))
        return self._call("gesvd", operands, [x, s, u, vh, info], aliases, mode=mode)

    def gesvdj(self, operands, out_avals, aliases, compute_uv, full_matrices):
        x, s, u, v, info = out_avals
        *stack, n, k = v.shape
        mode = "N" if not compute_uv else "A" if full_matrices else "S"
        types = [x, s, u, x.update(shape=(*stack, k, n)), info]
        outs = self._call("gesvd", operands, types, aliases, mode=mode)
        outs[3], _ = lapack.transposed(outs[3], types[3])
        if x.dtype.kind == "c":
            outs[3] = hlo.complex(hlo.real(outs[3]), hlo.negate(hlo.imag(outs[3])))
        return outs

    gesvdp = gesvdj


@contextmanager
def on_gpu():
    """The rules for CUDA in the place of those for the CPU; records the calls of cuSOLVER."""
    px.block_until_ready(linalg.lu(np.eye(2, dtype=np.float32)))  # registers LAPACK
    substitute = Lapack()
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(cusolver, "call", substitute)
        for primitive in PRIMITIVES:
            rule = primitive.require(lower.on("cuda"))
            stack.enter_context(primitive.override(lower.on("cpu"), rule))
        px.clear_caches()
        yield substitute
    px.clear_caches()


@pytest.fixture
def gpu():
    with on_gpu() as calls:
        yield calls


def values(*shape, dtype=np.float32):
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return np.swapaxes(np.conj(x), -1, -2)


def close(x, y):
    np.testing.assert_allclose(x, y, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5)], ids=str)
def test_products_of_factors(gpu, shape, dtype):
    x = values(*shape, dtype=dtype)
    m, n = shape[-2:]
    factors, _, order = map(np.asarray, linalg.lu(x))
    k = min(m, n)
    low = np.tril(factors[..., :k], -1) + np.eye(m, k)
    close(low @ np.triu(factors[..., :k, :]), np.take_along_axis(x, order[..., None], -2))
    for full in (False, True):
        q, r = map(np.asarray, linalg.qr(x, full_matrices=full))
        close(q @ r, x)
        close(
            adjoint(q) @ q,
            np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *q.shape[-1:] * 2)),
        )
    q, r, order = map(np.asarray, linalg.qr(x, pivoting=True, full_matrices=False))
    close(q @ r, np.take_along_axis(x, order[..., None, :], -1))
    assert {name for name, _ in gpu.calls} == {
        "cusolver_getrf", "cusolver_geqrf", "cusolver_orgqr", "cuhybrid_geqp3",
    }  # fmt: skip


@pytest.mark.parametrize("full, dtype", [(False, np.complex64), (True, np.float32)])
@pytest.mark.parametrize("algorithm", [None, SvdAlgorithm.QR, SvdAlgorithm.POLAR], ids=str)
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5), (40, 36)], ids=str)
def test_singular_values(gpu, shape, algorithm, full, dtype):
    x = values(*shape, dtype=dtype)
    u, s, vh = map(np.asarray, linalg.svd(x, full_matrices=full, algorithm=algorithm))
    k = min(shape[-2:])
    assert u.shape[-1] == (shape[-2] if full else k) and vh.shape[-2] == (shape[-1] if full else k)
    close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
    close(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], *u.shape[-1:] * 2)))
    alone = linalg.svd(x, full_matrices=full, compute_uv=False, algorithm=algorithm)
    close(alone, s)
    name = {None: "gesvdj", SvdAlgorithm.QR: "gesvd", SvdAlgorithm.POLAR: "gesvdp"}[algorithm]
    assert {target for target, _ in gpu.calls} == {f"cusolver_{name}"}


def test_large_matrices_have_another_algorithm(gpu):
    x = values(1025, 2)
    close(linalg.svd(x, full_matrices=False)[1], np.linalg.svd(x)[1])
    assert [target for target, _ in gpu.calls] == ["cusolver_gesvd"]


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_eigenvalues(gpu, dtype):
    x = values(2, 4, 4, dtype=dtype)
    hermitian = x + adjoint(x)
    v, w = map(np.asarray, linalg.eigh(hermitian))
    close(hermitian @ v, v * w[..., None, :])
    jacobi = linalg.EighImplementation.JACOBI
    close(linalg.eigh(hermitian, subset_by_index=(1, 3), implementation=jacobi)[1], w[:, 1:3])
    assert [int(a["algorithm"]) for _, a in gpu.calls] == [0, 2]
    w, vr = map(np.asarray, linalg.eig(x, compute_left_eigenvectors=False))
    close(x @ vr, vr * w[..., None, :])
    d = np.asarray(linalg.tridiagonal(hermitian)[1])
    trace = np.trace(hermitian, axis1=-2, axis2=-1).real
    close(d.sum(-1), trace)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_triangular_factors(gpu, dtype):
    x = values(2, 4, 4, dtype=dtype)
    positive = x @ adjoint(x) + 4 * np.eye(4, dtype=dtype)
    factor = np.tril(linalg.cholesky(positive))
    close(factor @ adjoint(factor), positive)
    failed = np.asarray(linalg.cholesky(-positive))
    assert np.isnan(failed[..., np.tril(np.ones((4, 4), bool))]).all()
    assert {target for target, _ in gpu.calls} == {"cusolver_potrf"}


def test_tridiagonal_systems(gpu):
    dl, d, du, b = values(2, 4), values(2, 4) + 5, values(2, 4), values(2, 4, 3)
    x = np.asarray(linalg.tridiagonal_solve(dl, d, du, b))
    matrix = np.stack(
        [np.diag(m) + np.diag(l[1:], -1) + np.diag(u[:-1], 1) for l, m, u in zip(dl, d, du)]
    )
    close(matrix @ x, b)
    close(linalg.tridiagonal_solve(dl[0, :2], d[0, :2], du[0, :2], b[0, :2]),
          np.linalg.solve(matrix[0, :2, :2], b[0, :2]))  # fmt: skip
    assert [target for target, _ in gpu.calls] == ["cusparse_gtsv2"]


def test_derivatives_and_batches_are_those_of_the_cpu():
    x = values(3, 4, 4)

    def f(x):
        q, r = linalg.qr(x)
        s = linalg.svd(x, compute_uv=False)
        return lax.reduce_sum(q * r + linalg.lu(x)[0], (0, 1)) + lax.reduce_sum(s, (0,))

    expected = px.vmap(px.grad(f))(x)
    with on_gpu() as gpu:
        close(px.vmap(px.grad(f))(x), expected)
        assert gpu.calls


def test_operations_on_householder_reflections(gpu):
    x = values(2, 5, 3)
    factors, taus = geqrf_p.bind(x)
    whole = np.broadcast_to(np.eye(5, dtype=np.float32), (2, 5, 5))
    q = np.asarray(linalg.ormqr(factors, taus, whole))
    close(adjoint(q) @ q, whole)
    c = values(2, 5, 4)
    close(linalg.ormqr(factors, taus, c, transpose=True), adjoint(q) @ c)


def call_of(fun, *args, **options) -> str:
    module = lower_module(px.make_jaxpr(lambda *a: fun(*a, **options))(*args), "f", "cuda")
    assert not module.needs or "cuhybrid" in str(module.module)
    return str(module.module)


def test_permutations_are_computed_by_one_kernel():
    text = call_of(linalg.lu, values(2, 3, 3))
    assert "@cu_lu_pivots_to_permutation" in text and "stablehlo.while" not in text
    assert "custom_call" not in call_of(linalg.lu, values(0, 3))


@pytest.mark.parametrize("magma, word", [(None, "auto"), (True, "on"), (False, "off")])
def test_magma_is_an_attribute(magma, word):
    text = call_of(linalg.qr, values(3, 3), pivoting=True, use_magma=magma)
    assert f'magma = "{word}"' in text


@pytest.mark.parametrize(
    "fun, options, message",
    [
        (linalg.eigh, {"implementation": linalg.EighImplementation.QDWH},
         "eigh has no algorithm QDWH on NVIDIA GPUs: use EighImplementation.QR, JACOBI or None"),
        (linalg.svd, {"algorithm": SvdAlgorithm.DIVIDE_AND_CONQUER},
         "svd has no algorithm DIVIDE_AND_CONQUER on NVIDIA GPUs"),
        (linalg.eig, {"implementation": linalg.EigImplementation.CUSOLVER},
         "eig has no implementation CUSOLVER on NVIDIA GPUs: use EigImplementation.MAGMA"),
    ],
)  # fmt: skip
def test_algorithms_that_gpus_lack(fun, options, message):
    with pytest.raises(NotImplementedError, match=message):
        call_of(fun, values(3, 3), **options)
