"""Sparse formats and sparse linear algebra, compared with the reference."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import sparse as their_sparse
from jax.experimental.sparse import linalg as their_linalg

import primax as px
from primax.experimental import sparse
from primax.experimental.sparse import linalg

MAT = np.float32([[0, 1, 0, -2], [3, 0, 0, 0], [0, 0, 4, 5]])
BATCH = np.stack([MAT, MAT * (MAT > 1)])
FORMATS = ["BCSR", "COO", "CSR", "CSC"]


def leaves(lib: Any, x: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in lib.tree_util.tree_leaves(x)]


def agree(mine: Any, theirs: Any) -> None:
    assert repr(mine).split("(")[0] == repr(theirs).split("(")[0]
    for a, b in zip(leaves(px, mine), leaves(jax, theirs), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str) -> None:
    mine, theirs = (getattr(s, name).fromdense(MAT) for s in (sparse, their_sparse))
    assert repr(mine) == repr(theirs)
    agree(mine, theirs)
    right = np.arange(8, dtype=np.float32).reshape(4, 2)
    agree(mine @ right, theirs @ right)
    agree(mine @ right[:, 0], theirs @ right[:, 0])
    if name != "BCSR":
        agree(mine.T, theirs.T)
        agree(mine.T @ right[:3], theirs.T @ right[:3])
    loss = lambda lib: lambda m: lib.numpy.sum((m @ right) ** 2)
    agree(sparse.grad(loss(px))(mine), their_sparse.grad(loss(jax))(theirs))
    narrow = [getattr(s, name).fromdense(MAT, nse=3) for s in (sparse, their_sparse)]
    agree(*narrow)
    agree(*[s.empty((2, 3), sparse_format=name.lower()) for s in (sparse, their_sparse)])
    if name != "BCSR":
        agree(*[s.eye(3, 4, 1, sparse_format=name.lower()) for s in (sparse, their_sparse)])


def test_batches_of_compressed_rows() -> None:
    mine, theirs = (s.BCSR.fromdense(BATCH, n_batch=1) for s in (sparse, their_sparse))
    agree(mine, theirs)
    agree(mine.to_bcoo(), theirs.to_bcoo())
    agree(mine[:, None], theirs[:, None])
    for s, x, out in ((sparse, mine, []), (their_sparse, theirs, [])):
        out += [s.bcsr_concatenate([x, x], dimension=d) for d in (0, 1, 2)]
        out.append(s.bcsr_extract(x.indices, x.indptr, BATCH))
        out.append(s.bcsr_dot_general(x, BATCH, dimension_numbers=(((2,), (2,)), ((0,), (0,)))))
        if s is sparse:
            first = out
    for a, b in zip(first, out, strict=True):
        agree(a.todense() if hasattr(a, "todense") else a, b.todense() if hasattr(b, "nse") else b)
    agree(px.vmap(lambda m: m @ MAT[0])(mine), jax.vmap(lambda m: m @ MAT[0])(theirs))


@pytest.mark.parametrize("name", ["coo", "csr"])
@pytest.mark.parametrize("transpose", [False, True])
def test_products_of_matrices(name: str, transpose: bool) -> None:
    other = np.arange(6 if transpose else 8, dtype=np.float32).reshape(-1, 2)
    results = []
    for s in (sparse, their_sparse):
        x = getattr(s, f"{name}_fromdense")(MAT)
        results.append([
            getattr(s, f"{name}_matvec")(x, other[:, 0], transpose=transpose),
            getattr(s, f"{name}_matmat")(x, other, transpose=transpose),
            getattr(s, f"{name}_todense")(x),
        ])  # fmt: skip
    for a, b in zip(*results, strict=True):
        agree(a, b)


def test_convolution() -> None:
    x, k = np.float32([[[0, 1, 0, 2, 0, 3]]]), np.float32([[[1, 0, -1]]])
    options = {"window_strides": (1,), "padding": [(2, 1)]}
    for pair in ((True, True), (True, False), (False, True)):
        results = []
        for s in (sparse, their_sparse):
            args = [s.BCOO.fromdense(v) if c else v for v, c in zip((x, k), pair)]
            results.append(s.bcoo_conv_general_dilated(*args, **options))
        assert results[0].n_batch == results[1].n_batch == 2
        agree(*(np.asarray(r.todense()) for r in results))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_spsolve(dtype: Any) -> None:
    mat = np.array([[4, 1, 0], [1, 3, 0], [0, 2, 5]], dtype)
    x = their_sparse.CSR.fromdense(mat)
    parts = [np.asarray(part) for part in (x.data, x.indices, x.indptr)]
    b = np.arange(1, 4).astype(dtype)
    agree(linalg.spsolve(*parts, b), their_linalg.spsolve(*parts, b))
    for lib, module, out in ((px, linalg, []), (jax, their_linalg, [])):
        solve = lambda d, b, m=module: m.spsolve(d, *parts[1:], b)
        out += list(lib.jvp(solve, (parts[0], b), (parts[0] * 2, b)))
        out += list(lib.vjp(solve, parts[0], b)[1](b))
        if lib is px:
            mine = out
    for a, c in zip(mine, out, strict=True):
        agree(a, c)


def test_lobpcg_standard() -> None:
    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    mat, start = ((q * np.linspace(1, 50, 40)) @ q.T).astype("f"), rng.normal(size=(40, 3))
    start = start.astype("f")
    mine, theirs = (m.lobpcg_standard(mat, start) for m in (linalg, their_linalg))
    np.testing.assert_allclose(mine[0], theirs[0], 1e-4)
    np.testing.assert_allclose(np.abs(mine[1]), np.abs(theirs[1]), 0, 1e-2)


def test_sign() -> None:
    agree(*(
        s.sparsify(lib.numpy.sign)(s.BCOO.fromdense(MAT))
        for s, lib in ((sparse, px), (their_sparse, jax))
    ))  # fmt: skip
