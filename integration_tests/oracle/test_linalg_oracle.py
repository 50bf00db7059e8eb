"""Linear algebra against the reference: values, types, jaxprs, derivatives, errors."""

import warnings
from functools import partial

import jax
import ml_dtypes
import numpy as np
import pytest
from agreement import same, same_text, values
from jax.lax import linalg as theirs

import primax_core as px
from primax_core.lax import linalg as ours

CALLS = {
    "cholesky": {},
    "cholesky of one triangle": {"symmetrize_input": False},
    "lu": {},
    "qr": {},
    "qr thin": {"full_matrices": False},
    "qr pivoting": {"pivoting": True, "full_matrices": False},
    "eigh": {},
    "eigh upper": {"lower": False},
    "eig": {"enable_eigvec_derivs": True},
    "eig right": {"compute_left_eigenvectors": False, "enable_eigvec_derivs": True},
    "eig values": {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False},
    "svd": {},
    "svd thin": {"full_matrices": False},
    "svd values": {"compute_uv": False},
    "schur": {},
    "schur values": {"compute_schur_vectors": False},
    "hessenberg": {},
    "tridiagonal": {},
    "tridiagonal upper": {"lower": False},
}
NO_DERIVATIVE = {"schur", "hessenberg", "tridiagonal"}


def _sides(call):
    name, options = call.split()[0], CALLS[call]
    return tuple(partial(_call, getattr(side, name), options) for side in (ours, theirs))


def _call(fun, options, *args):
    return fun(*args, **options)


def _operand(name, shape, dtype, seed=0):
    x = values(shape, dtype, seed)
    if name in ("cholesky", "eigh"):
        x = x @ np.swapaxes(x.conj(), -1, -2) + np.diag(np.arange(1, shape[-1] + 1)).astype(dtype)
    return x


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_square_matrices(call, dtype):
    name = call.split()[0]
    f, g = _sides(call)
    for shape in ((3, 3), (2, 2, 2)):
        x = _operand(name, shape, dtype)
        same(f(x), g(x), "value", 2e-4)
    same_text(px.make_jaxpr(f)(x), jax.make_jaxpr(g)(x))
    for seed, axis in ((1, 0), (2, 1)):
        stack = np.moveaxis(_operand(name, (2, 3, 3), dtype, seed), 0, axis)
        same(px.vmap(f, axis)(stack), jax.vmap(g, axis)(stack), "vmap", 2e-4)
    if name in NO_DERIVATIVE:
        return
    x, t = _operand(name, (3, 3), dtype), values((3, 3), dtype, 5)
    same(px.jvp(f, (x,), (t,)), jax.jvp(g, (x,), (t,)), "jvp", 2e-3)
    outs, back = jax.vjp(g, x)
    cts = jax.tree.map(
        lambda o: (
            values(o.shape, o.dtype, 6)
            if o.dtype.kind in "fc"
            else np.zeros(o.shape, jax.dtypes.float0)
        ),
        outs,
    )
    same(px.vjp(f, x)[1](cts), back(cts), "vjp", 2e-3)


@pytest.mark.parametrize("call", ["lu", "qr", "qr thin", "svd", "svd thin", "svd values"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 3), (2, 3, 2), (0, 2), (2, 0), (0, 2, 3)])
def test_rectangular_matrices(call, shape):
    f, g = _sides(call)
    x, t = values(shape, np.float32), values(shape, np.float32, 1)
    same(f(x), g(x), "value", 2e-4)
    if call != "svd":  # the reference has no derivative of the orthogonal complements
        same(px.jvp(f, (x,), (t,)), jax.jvp(g, (x,), (t,)), "jvp", 2e-3)


@pytest.mark.parametrize("call", ["cholesky", "lu", "qr", "eigh", "eig", "svd", "schur"])
def test_failures(call):
    f, g = _sides(call)
    for x in (np.full((3, 3), np.nan, np.float32), -np.eye(2, dtype=np.float32),
              np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)):  # fmt: skip
        same(f(x), g(x), str(x), 1e-4)


@pytest.mark.parametrize("call", CALLS)
def test_weak_types(call):
    f, g = _sides(call)
    ours_in, theirs_in = px.lax.full((2, 2), 2.0), jax.lax.full((2, 2), 2.0)
    actual, expected = px.eval_shape(f, ours_in), jax.eval_shape(g, theirs_in)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)


FLAGS = [
    {"left_side": True, "lower": True},
    {"transpose_a": True},
    {"left_side": True, "transpose_a": True, "conjugate_a": True, "unit_diagonal": True},
    {"lower": True, "conjugate_a": True},
]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_triangular_solve(flags, dtype):
    a = (values((2, 3, 3), dtype) + 3 * np.eye(3)).astype(dtype)
    b = values((2, 3, 3), dtype, 1)

    def f(a, b):
        return ours.triangular_solve(a, b, **flags)

    def g(a, b):
        return theirs.triangular_solve(a, b, **flags)

    same(f(a, b), g(a, b), "value")
    same_text(px.make_jaxpr(f)(a, b), jax.make_jaxpr(g)(a, b))
    ts = values(a.shape, dtype, 2), values(b.shape, dtype, 3)
    same(px.jvp(f, (a, b), ts), jax.jvp(g, (a, b), ts), "jvp", 2e-4)
    same(px.vjp(f, a, b)[1](ts[1]), jax.vjp(g, a, b)[1](ts[1]), "vjp", 2e-4)
    for axes in ((0, 0), (None, 1), (2, None)):
        args = [x[0] if d is None else np.moveaxis(x, 0, d) for x, d in zip((a, b), axes)]
        same(px.vmap(f, axes)(*args), jax.vmap(g, axes)(*args), f"vmap {axes}")


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_tridiagonal_solve(dtype):
    dl, d, du = values((3, 2, 4), dtype)
    args = (dl, (d + 5).astype(dtype), du, values((2, 4, 3), dtype, 1))
    for perturb in (True, False):
        options = {"perturb_singular": perturb}
        f, g = (partial(_call, side.tridiagonal_solve, options) for side in (ours, theirs))
        same(f(*args), g(*args), "value")
        same(px.vjp(f, *args)[1](args[3]), jax.vjp(g, *args)[1](args[3]), "vjp", 1e-4)


def test_reflections():
    a, taus = (np.asarray(x) for x in theirs.hessenberg(values((4, 4), np.float32)))
    a = a[1:, :-1]
    same(ours.householder_product(a, taus), theirs.householder_product(a, taus))
    for left, transpose in ((True, False), (False, True)):
        c = values((3, 2) if left else (2, 3), np.float32)
        options = {"left": left, "transpose": transpose}
        f, g = (partial(_call, side.ormqr, options) for side in (ours, theirs))
        same(f(a, taus, c), g(a, taus, c))
        same_text(px.make_jaxpr(f)(a, taus, c), jax.make_jaxpr(g)(a, taus, c))


def test_updates_and_products():
    r, w = (
        np.triu(values((3, 3), np.float32)) + 3 * np.eye(3, dtype=np.float32),
        values((3,), np.float32),
    )
    same(ours.cholesky_update(r, w), theirs.cholesky_update(r, w))
    for options in ({}, {"alpha": 2.0, "beta": -1.0}, {"beta": 0.5, "symmetrize_output": True}):
        same(ours.symmetric_product(r[:, :2], r, **options),
             theirs.symmetric_product(r[:, :2], r, **options))  # fmt: skip
    pivots = np.array([[2, 1], [1, 3]], np.int32)
    same(ours.lu_pivots_to_permutation(pivots, 4), theirs.lu_pivots_to_permutation(pivots, 4))


@pytest.mark.rotate(every=5, whole=True)
@pytest.mark.parametrize(
    "options",
    [{}, {"eps": 1e-3}, {"eps": 0.5}, {"max_iterations": 3}, {"max_iterations": 0},
     {"eps": 1e-6, "max_iterations": 20}, {"dynamic_shape": (3, 2)}],
)  # fmt: skip
def test_polar(options):
    for dtype in (np.float32, np.complex64):
        x, t = values((4, 3), dtype), values((4, 3), dtype, 1)
        f, g = (partial(_call, side.qdwh, options) for side in (ours, theirs))
        same(f(x), g(x), "value", 1e-4)
    if "dynamic_shape" not in options:
        same(px.jvp(f, (x,), (t,))[1][:2], jax.jvp(g, (x,), (t,))[1][:2], "jvp", 1e-3)
    for x in (np.zeros((2, 2), np.float32), values((3, 3), np.float32)):
        x = x + x.T
        same(ours.qdwh(x, is_hermitian=True), theirs.qdwh(x, is_hermitian=True), "hermitian", 1e-4)


def _error(fun, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((TypeError, ValueError, NotImplementedError)) as e:
            fun(*args, **kwargs)
    return type(e.value), str(e.value)


X = np.ones((3, 3), np.float32)
BAD = [
    ("cholesky", (X[0],), {}),
    ("cholesky", (X[:2],), {}),
    ("eigh", (X[:2],), {}),
    ("eig", (X[0],), {}),
    ("eig", (X[:2],), {}),
    ("schur", (X[:2],), {}),
    ("hessenberg", (X[:2],), {}),
    ("tridiagonal", (X[:2],), {}),
    ("tridiagonal", (X[:0, :0],), {}),
    ("lu", (X[0],), {}),
    ("qr", (X[0],), {}),
    ("svd", (X[0],), {}),
    ("svd", (X,), {"subset_by_index": (0, 2)}),
    ("triangular_solve", (X[:2], X), {}),
    ("triangular_solve", (X, X[:, :2]), {}),
    ("triangular_solve", (X.astype(int), X.astype(int)), {}),
    ("householder_product", (X[:2], X[0]), {}),
    ("householder_product", (X[:, :2], X[0]), {}),
    ("ormqr", (X, X[0], X[:2]), {}),
    ("ormqr", (X, X[0], X[:, :2]), {"left": False}),
    ("ormqr", (X, X[0], np.ones((2, 3, 3), np.float32)), {}),
    ("tridiagonal_solve", (X[0], X[0], X[0], X[:2]), {}),
    ("tridiagonal_solve", (X[0], X[0, :2], X[0], X), {}),
    ("tridiagonal_solve", (X[0], X[0], X[0], X[0]), {}),
    ("symmetric_product", (X, X[:2]), {}),
    ("cholesky_update", (X, X[0, :2]), {}),
    ("cholesky_update", (X, X), {}),
    ("cholesky_update", (X[:2], X[0]), {}),
    ("lu_pivots_to_permutation", (np.zeros(3, np.int32), 2), {}),
    ("lu_pivots_to_permutation", (np.zeros(3, np.uint32), 3), {}),
    ("qdwh", (X[:2],), {}),
]


@pytest.mark.parametrize("name, args, kwargs", BAD)
def test_errors(name, args, kwargs):
    assert _error(getattr(ours, name), *args, **kwargs) == _error(
        getattr(theirs, name), *args, **kwargs
    )


@pytest.mark.parametrize("name", ["cholesky", "lu", "qr", "eigh", "eig", "svd", "schur"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_invalid_dtypes(name, dtype):
    """Messages match, except for the order in which the reference lists the accepted dtypes."""
    (kind, text), (their_kind, their_text) = (
        _error(getattr(side, name), X.astype(dtype)) for side in (ours, theirs)
    )
    assert kind is their_kind
    assert text.split("Accepted")[0] == their_text.split("Accepted")[0]


def test_names():
    assert {n for n in dir(theirs) if not n.startswith("_")} <= set(dir(ours))
    for name in ("EighImplementation", "EigImplementation", "SvdAlgorithm"):
        pairs = [[(m.name, m.value) for m in getattr(side, name)] for side in (ours, theirs)]
        assert pairs[0] == pairs[1]
