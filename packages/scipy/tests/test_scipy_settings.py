"""Matrices, distributions and sparse arrays under the settings that refuse implicit promotion, and
under checked jaxprs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sparse_cases import stored

from primax_core import lax
from primax_scipy import linalg, stats
from primax_scipy.experimental import sparse
from test_support import check_call

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32)
B = RNG.normal(size=(2, 4, 3)).astype(np.float32)
b = RNG.normal(size=4).astype(np.float32)
SPD = (A @ np.swapaxes(A, -1, -2) + 4 * np.eye(4)).astype(np.float32)

# Arguments and parameters of the functions of matrices

LINALG: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("solve", (A, B), {}),
    ("solve", (A[0], b), {}),
    ("solve", (SPD, B), {"assume_a": "pos"}),
    ("solve_triangular", (A, B), {"trans": "T", "lower": True}),
    ("lu", (A,), {}),
    ("lu", (A[:, :2],), {"permute_l": True}),
    ("lu_factor", (A,), {}),
    ("lu_factor", (np.int32([[1, 2], [3, 4]]),), {}),
    ("cholesky", (SPD,), {"lower": True}),
    ("cho_factor", (SPD,), {}),
    ("qr", (A,), {"mode": "economic"}),
    ("qr", (A[0],), {"pivoting": True}),
    ("qr_multiply", (A[0], B[0]), {"mode": "left"}),
    ("svd", (A,), {}),
    ("eigh", (SPD, SPD[::-1].copy()), {"eigvals_only": True}),
    ("eigh_tridiagonal", (b, b[1:]), {"eigvals_only": True}),
    ("det", (A,), {}),
    ("inv", (SPD,), {}),
    ("expm", (A,), {}),
    ("expm_frechet", (A[0], A[1]), {}),
    ("hessenberg", (A,), {"calc_q": True}),
    ("schur", (A[0],), {}),
    ("schur", (A[0],), {"output": "complex"}),
    ("rsf2csf", (A[0], A[1]), {}),
    ("rsf2csf", (A[0].astype(np.complex64), A[1].astype(np.complex64)), {}),
    ("polar", (A[0],), {}),
    ("sqrtm", (SPD[0],), {}),
    ("funm", (A[0], lax.sin), {}),
    ("solve_sylvester", (A[0], A[1], A[0]), {}),
    ("toeplitz", (b, b[:2]), {}),
    ("toeplitz", (A[0],), {}),
    ("hankel", (b,), {}),
    ("circulant", (b,), {}),
    ("companion", (b,), {}),
    ("fiedler", (b,), {}),
    ("fiedler_companion", (b,), {}),
    ("leslie", (b, b[1:]), {}),
    ("leslie", (A[0], A[0, :, 1:]), {}),
    ("block_diag", (A[0], B[0]), {}),
    ("convolution_matrix", (b, 3), {"mode": "same"}),
    ("hadamard", (4,), {}),
    ("hilbert", (3,), {}),
    ("invhilbert", (3,), {}),
    ("helmert", (3,), {}),
    ("dft", (3,), {"scale": "n"}),
    ("pascal", (4,), {}),
    ("invpascal", (4,), {"kind": "upper"}),
]


@pytest.mark.parametrize(
    ("name", "args", "params"), LINALG, ids=[f"{n}-{c[0]}" for n, c in enumerate(LINALG)]
)
def test_matrices(name: str, args: Any, params: Any) -> None:
    by = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]

    def call(*arrays: Any) -> Any:
        full = list(args)
        for i, x in zip(by, arrays, strict=True):
            full[i] = x
        out = getattr(linalg, name)(*full, **params)
        return [x for x in out if not isinstance(x, bool)] if isinstance(out, tuple) else out

    check_call(call, *[args[i] for i in by])


DISTRIBUTIONS: dict[str, tuple[float, ...]] = {
    "norm": (0.3, 2.0), "uniform": (0.3, 2.0), "logistic": (0.3, 2.0), "expon": (0.3, 2.0),
    "laplace": (0.3, 2.0), "cauchy": (0.3, 2.0), "gamma": (1.5,), "beta": (1.5, 0.7), "t": (3.0,),
    "bernoulli": (0.3,), "poisson": (2.5,),
}  # fmt: skip
FUNCTIONS = ["pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"]
CALLS = [(d, f) for d in DISTRIBUTIONS for f in FUNCTIONS if hasattr(getattr(stats, d), f)]


@pytest.mark.parametrize(("name", "function"), CALLS)
def test_distributions(name: str, function: str) -> None:
    call = getattr(getattr(stats, name), function)
    check_call(call, np.float32([0.2, 0.5]), *DISTRIBUTIONS[name])
    shapes = [np.full((2, 1), p, np.float32) for p in DISTRIBUTIONS[name]]
    check_call(call, np.float32([[0.2, 0.5]]), *shapes)


def test_vectors_of_normal_distributions() -> None:
    pdf = stats.multivariate_normal.logpdf
    check_call(pdf, A[0], B[:1, :, 0], SPD[0])
    check_call(pdf, A[0], A[1], np.float32(2.0))


# Sparse arrays

OPERATIONS: dict[str, Any] = {
    "todense": lambda m: m.todense(),
    "sum_duplicates": lambda m: m.sum_duplicates(nse=2).data,
    "sort": lambda m: m.sort_indices().data,
    "sum": lambda m: sparse.bcoo_reduce_sum(m, axes=(1,)).todense(),
    "transpose": lambda m: m.T.todense(),
    "extract": lambda m: sparse.bcoo_extract(m, m.todense()).data,
    "rev": lambda m: sparse.bcoo_rev(m, (0, 1)).todense(),
    "slice": lambda m: m[:, 1:].todense(),
    "dynamic slice": lambda m: sparse.bcoo_dynamic_slice(m, (0, 1), (2, 2)).todense(),
    "reshape": lambda m: m.reshape(3, 2).todense(),
    "broadcast": lambda m: sparse.bcoo_broadcast_in_dim(
        m, shape=(2, 2, 3), broadcast_dimensions=(0, 2)
    ).todense(),
    "concatenate": lambda m: sparse.bcoo_concatenate([m, m], dimension=1).todense(),
    "concatenate rows": lambda m: sparse.bcoo_concatenate([m, m], dimension=0).todense(),
    "layout": lambda m: m.update_layout(n_batch=1, on_inefficient=None).todense(),
    "fewer batches": lambda m: m.update_layout(n_batch=0, on_inefficient=None).todense(),
    "square": lambda m: (m**2).todense(),
    "times dense": lambda m: (m * np.ones((2, 3), np.float32)).todense(),
    "times row": lambda m: (m * np.ones((1, 3), np.float32)).todense(),
    "times sparse": lambda m: sparse.bcoo_multiply_sparse(m, m).todense(),
    "times matrix": lambda m: m @ np.ones((3, 2), np.float32),
    "matrix times": lambda m: np.ones((4, 2), np.float32) @ m,
    "product": lambda m: (m @ m.T).todense(),
    "sparsify": lambda m: sparse.sparsify(lambda x: (x * 2 + x)[:, 1:].sum())(m),
}

UNBATCHED = {"transpose", "reshape", "product"}  # these would move or split the batch axis
LAYOUTS = [(name, n) for name in OPERATIONS for n in (0, 1) if not (n and name in UNBATCHED)]


@pytest.mark.parametrize(("name", "n_batch"), LAYOUTS)
def test_sparse_arrays(name: str, n_batch: int) -> None:
    m = stored(np.random.default_rng(2), (2, 3), n_batch, 0, np.float32, nse=4).sparse
    check_call(lambda data: OPERATIONS[name](m.like(data)), m.data)
