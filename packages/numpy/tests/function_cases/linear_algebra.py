"""Linear algebra. Vectors unique up to a sign are compared by their products."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import c64, f32, i32
from test_support import Case, case


def dominant(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Well-conditioned matrices with separated eigenvalues and singular values."""
    m, n = shape[-2:]
    return 0.3 * rng.standard_normal(shape) + np.eye(m, n) * (1 + np.arange(n))


def complex_dominant(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return dominant(rng, shape) + 0.2j * rng.standard_normal(shape)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Positive definite matrices."""
    x = dominant(rng, shape)
    return x @ np.swapaxes(x, -1, -2)


def complex_positive(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    x = complex_dominant(rng, shape)
    return x @ np.conj(np.swapaxes(x, -1, -2))


def of_rank_one(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.outer(1 + rng.random(shape[0]), 1 + rng.random(shape[1]))


def square(*shape: int) -> Any:
    return f32(*shape, make=dominant)


def complex_square(*shape: int) -> Any:
    return c64(*shape, make=complex_dominant)


def symmetric(m: Any, x: Any) -> Any:
    """A symmetric matrix from the elements of any matrix."""
    return (x + m.conj(m.swapaxes(x, -1, -2))) / 2


def rebuilt(m: Any, parts: Any) -> Any:
    """The unique parts of a decomposition: the product, and parts without a free sign."""
    if len(parts) == 2:
        w, v = parts
        return w, m.matmul(v * w[..., None, :].astype(v.dtype), m.conj(m.swapaxes(v, -1, -2)))
    u, s, vh = parts
    scaled = u[..., : s.shape[-1]] * s[..., None, :].astype(u.dtype)
    return s, m.matmul(scaled, vh[..., : s.shape[-1], :])


def sorted_values(m: Any, w: Any) -> Any:
    return m.sum(w, -1), m.sum(w * w, -1), m.sum(w * w * w, -1)


def eigen_residue(m: Any, parts: Any) -> Any:
    return sorted_values(m, parts[0])


def hermitian(name: str, operand: Any, **params: Any) -> Case:
    return case(f"linalg.{name}", operand, **params).set(
        call=lambda m, x, **kw: getattr(m.linalg, name)(symmetric(m, x), **kw), vary=False
    )


CASES = [
    hermitian("cholesky", f32(3, 3, make=positive)),
    hermitian("cholesky", c64(2, 3, 3, make=complex_positive), upper=True),
    case("linalg.cholesky", f32(2, 2, make=positive), symmetrize_input=False).set(
        expected=lambda x, symmetrize_input: np.linalg.cholesky(x), order=0
    ),
    case("linalg.cholesky", f32(0, 0)).set(order=0),
    case("linalg.qr", square(4, 3)),
    case("linalg.qr", complex_square(3, 3), mode="complete"),
    case("linalg.qr", square(2, 3, 2), mode="r"),
    case("linalg.qr", square(3, 2), mode="raw").set(order=0),
    case("linalg.svd", square(3, 3)).set(observe=rebuilt),
    case("linalg.svd", square(2, 4), full_matrices=False).set(observe=rebuilt),
    case("linalg.svd", complex_square(3, 2), full_matrices=False).set(observe=rebuilt),
    case("linalg.svd", square(2, 3, 2), compute_uv=False),
    hermitian("svd", square(3, 3), hermitian=True).set(observe=rebuilt),
    hermitian("svd", square(3, 3), hermitian=True, compute_uv=False),
    case("linalg.svdvals", square(2, 3)),
    case("linalg.eig", square(3, 3)).set(observe=eigen_residue, order=0),
    case("linalg.eigvals", square(3, 3)).set(observe=sorted_values),
    case("linalg.eigvals", complex_square(2, 2, 2)).set(observe=sorted_values, order=1),
    hermitian("eigh", square(3, 3)).set(observe=rebuilt),
    hermitian("eigh", complex_square(2, 2, 2), UPLO="U").set(observe=rebuilt),
    case("linalg.eigh", f32(3, 3), UPLO="U", symmetrize_input=False).set(
        order=0, observe=rebuilt, expected=lambda x, UPLO, symmetrize_input: np.linalg.eigh(x, UPLO)
    ),
    hermitian("eigvalsh", square(3, 3)),
    case("linalg.det", f32(3, 3)),
    case("linalg.det", c64(2, 2, 2)),
    case("linalg.det", f32(5, 4, 4)).set(order=1),
    case("linalg.det", square(4, 4)),
    case("linalg.det", f32(1, 1)),
    case("linalg.det", f32(0, 0)).set(order=0),
    case("linalg.det", i32(2, 2)),
    case("linalg.slogdet", square(3, 3)),
    case("linalg.slogdet", complex_square(2, 3, 3)),
    case("linalg.slogdet", complex_square(3, 3), method="qr").set(
        expected=lambda a, method: np.linalg.slogdet(a),
        differs="the reference refuses complex matrices",
    ),
    case("linalg.slogdet", f32(4, 4), method="qr").set(
        expected=lambda a, method: np.linalg.slogdet(a)
    ),
    case("linalg.slogdet", np.zeros((2, 2), np.float32)),
    case("linalg.solve", square(3, 3), f32(3)),
    case("linalg.solve", square(2, 3, 3), f32(3, 2)),
    case("linalg.solve", complex_square(2, 2), f32(4, 2, 3)),
    case("linalg.solve", square(2, 3, 3), f32(3)).set(expected=lambda a, b: np.linalg.inv(a) @ b),
    case("linalg.inv", square(3, 3)),
    case("linalg.inv", complex_square(2, 2, 2)),
    case("linalg.inv", f32(0, 0)).set(order=0),
    case("linalg.matrix_power", f32(2, 2), 3),
    case("linalg.matrix_power", square(2, 2, 2), -2),
    case("linalg.matrix_power", i32(2, 2), 0),
    case("linalg.matrix_power", i32(2, 2), 5),
    case("linalg.pinv", square(4, 2)),
    case("linalg.pinv", complex_square(2, 3)),
    case("linalg.pinv", f32(3, 2, make=of_rank_one), rtol=np.float32(0.1)),
    case("linalg.pinv", f32(3, 4), rcond=0.1).set(order=1),
    hermitian("pinv", square(3, 3), hermitian=True),
    case("linalg.lstsq", square(4, 2), f32(4)).set(order=1),
    case("linalg.lstsq", square(4, 2), f32(4, 3)).set(order=1),
    case("linalg.lstsq", square(2, 3), f32(2)).set(
        order=1, observe=lambda m, out: (out[0], out[2], out[3])
    ),
    case("linalg.matrix_rank", np.diag(np.float32([1, 1e-9, 2]))),
    case("linalg.matrix_rank", f32(2, 3, 3), rtol=0.3).set(
        order=0, differs="the reference takes rtol as absolute"
    ),
    case("linalg.matrix_rank", f32(2, 3, 3), tol=0.8).set(order=0),
    case("linalg.matrix_rank", f32(3)).set(order=0),
    hermitian("matrix_rank", f32(3, 3), hermitian=True).set(order=0),
    *[
        case("linalg.norm", f32(5), ord=order, keepdims=True)
        for order in (None, 1, 2, -1, -2, 3, 0.5, np.inf, -np.inf)
    ],
    case("linalg.norm", f32(5), ord=0).set(order=0),
    *[
        case("linalg.norm", square(3, 2), ord=order)
        for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    ],
    case("linalg.norm", f32(2, 3, 4)),
    case("linalg.norm", c64(2, 3), axis=0, ord=3),
    case("linalg.norm", f32(3, 2, 3), axis=(2, 0), ord=1, keepdims=True),
    case("linalg.norm", f32(3, 2, 3), axis=(-1, 0), ord=np.inf),
    case("linalg.norm", f32(3, 2, 3), axis=(0, 2), ord="nuc", keepdims=True).set(order=1),
    case("linalg.norm", i32(3), ord=1),
    case("linalg.vector_norm", f32(2, 3)),
    case("linalg.vector_norm", c64(2, 3), axis=(0, 1), keepdims=True, ord=1),
    case("linalg.matrix_norm", f32(2, 3, 3)),
    case("linalg.matrix_norm", f32(3, 3), ord=-1, keepdims=True),
    *[case("linalg.cond", square(3, 3), p) for p in (None, 1, 2, -2, "fro", "nuc", np.inf)],
    case("linalg.cond", square(2, 3, 2)),
    case("linalg.tensorinv", f32(4, 2, 2), ind=1),
    case("linalg.tensorsolve", f32(2, 3, 6), f32(2, 3)).set(tolerance=1e-3, vary=False),
    case("linalg.tensorsolve", f32(6, 2, 3), f32(2, 3), axes=(0,)).set(tolerance=1e-3, vary=False),
    case("linalg.matmul", f32(2, 3), f32(3, 2)),
    case("linalg.tensordot", f32(2, 3), f32(3, 2), axes=1),
    case("linalg.vecdot", c64(2, 3), c64(3)),
    case("linalg.outer", f32(2), f32(3)),
    case("linalg.cross", f32(2, 3), f32(3)),
    case("linalg.cross", f32(3, 2), f32(3, 2), axis=0),
    case("linalg.matrix_transpose", f32(2, 3, 4)),
    case("linalg.diagonal", f32(2, 3, 4)),
    case("linalg.diagonal", f32(3, 4), offset=-2),
    case("linalg.diagonal", f32(3, 4), offset=7),
    case("linalg.trace", f32(2, 3, 4), offset=1),
    case("linalg.trace", i32(3, 3), dtype=np.float32),
    case("linalg.multi_dot", [f32(2, 3), f32(3, 4), f32(4, 2)]),
    case("linalg.multi_dot", [f32(3), f32(3, 4), f32(4)]),
]  # fmt: skip
