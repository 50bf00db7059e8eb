"""SciPy functions against the reference.

The wheel's test cases with derivatives, types of all dtypes, distributions, linear algebra,
solvers, minimization.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.scipy as theirs
import jax.scipy.fft
import jax.scipy.optimize
import jax.scipy.sparse.linalg
import jax.scipy.stats
import ml_dtypes
import numpy as np
import pytest
from special_cases import CASES

import primax_core as px
import primax_scipy as ours
from primax_core.extend import dtypes
from test_support import Case, assert_close, fixing, numbered

NAMES = numbered(CASES)
DTYPES = [np.bool_, np.int8, np.int32, np.float16, ml_dtypes.bfloat16, np.float32, np.complex64]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def types(x: Any) -> list[Any]:
    return [(v.shape, v.dtype, bool(v.weak_type)) for v in jax.tree.leaves(x)]


def same(actual: Any, expected: Any, what: str, tolerance: float = 1e-4) -> None:
    assert types(actual) == types(expected), what
    leaves = jax.tree.leaves(actual), jax.tree.leaves(expected)
    assert_close(*leaves, rtol=tolerance, scaled=True, err_msg=what)


# The reference loses digits, or has another derivative
LOOSE = {"poch", "comb", "log_ndtr", "hyp1f1", "hyp2f1", "erfcinv", "wofz", "erfcx"}


@pytest.mark.rotate()
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_values_and_derivatives(case: Case) -> None:
    args = case.draw(shape=(40,))
    tolerance = 2e-3 if case.name in LOOSE else 2e-4
    if not case.differs:
        actual, expected = (case.on(m.special)(*args) for m in (ours, theirs))
        same(actual, expected, repr(case), tolerance)
    by = [] if case.name in ("factorial", "comb", "poch") else case.differentiated()
    if not by or case.differs or case.derivative_differs:
        return

    def derivatives(module: Any, fun: Any) -> Any:
        out = jax.tree.map(np.asarray, fun(*args))
        pulled = module.vjp(fixing(fun, args, by), *[args[i] for i in by])[1]
        return pulled(jax.tree.map(np.ones_like, out))

    actual, expected = (
        derivatives(api, case.on(m.special)) for api, m in ((px, ours), (jax, theirs))
    )
    same(actual, expected, repr(case), 10 * tolerance)


ARITY = {
    "entr": 1, "erf": 1, "erfc": 1, "erfcinv": 1, "erfinv": 1, "erfcx": 1, "dawsn": 1, "exp1": 1,
    "expi": 1, "expit": 1, "digamma": 1, "factorial": 1, "fresnel": 1, "gamma": 1, "gammaln": 1,
    "gammasgn": 1, "i0": 1, "i0e": 1, "i1": 1, "i1e": 1, "log_ndtr": 1, "logit": 1, "loggamma": 1,
    "ndtr": 1, "ndtri": 1, "sici": 1, "spence": 1, "wofz": 1, "logsumexp": 1, "softmax": 1,
    "log_softmax": 1, "beta": 2, "betaln": 2, "betainc": 3, "boxcox": 2, "boxcox1p": 2, "comb": 2,
    "expn": 2, "gammainc": 2, "gammaincc": 2, "hyp1f1": 3, "hyp2f1": 4, "kl_div": 2, "poch": 2,
    "polygamma": 2, "rel_entr": 2, "xlog1py": 2, "xlogy": 2, "zeta": 2,
}  # fmt: skip


COMPLEX_HERE = {"erf", "erfc", "dawsn", "exp1", "expi", "digamma", "spence"}
"""Functions of complex numbers that the reference refuses."""


@pytest.mark.rotate(every=10, whole=True)
@pytest.mark.parametrize("name", ARITY)
def test_types(name: str) -> None:
    """Both give the same dtype and weak type for operands of all dtypes, or both raise."""
    values = [np.ones(2).astype(d) for d in DTYPES] + [0.5, 1]
    for x in values:
        actual = expected = None
        try:
            expected = getattr(theirs.special, name)(*[x] * ARITY[name])
        except (TypeError, ValueError, NotImplementedError):
            if name in COMPLEX_HERE and np.iscomplexobj(x):
                assert getattr(ours.special, name)(x).dtype == x.dtype
                continue
            with pytest.raises((TypeError, ValueError, NotImplementedError)):
                getattr(ours.special, name)(*[x] * ARITY[name])
            continue
        actual = getattr(ours.special, name)(*[x] * ARITY[name])
        assert types(actual) == types(expected), f"{name} of {x!r}"


DISTRIBUTIONS = {
    "norm": (), "uniform": (), "logistic": (), "expon": (), "laplace": (), "cauchy": (),
    "gamma": (1.5,), "beta": (1.5, 0.7), "t": (3.0,), "bernoulli": (0.3,), "poisson": (2.5,),
}  # fmt: skip
FUNCTIONS = ["pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"]
CALLS = [
    (d, f) for d in DISTRIBUTIONS for f in FUNCTIONS if hasattr(getattr(theirs.stats, d), f)
]  # fmt: skip


@pytest.mark.parametrize("name, function", CALLS)
def test_distributions(name: str, function: str) -> None:
    args = DISTRIBUTIONS[name]
    f, g = (getattr(getattr(m.stats, name), function) for m in (ours, theirs))
    x = np.float32([0.2, 0.5, 0.9]) if function in ("ppf", "isf") else np.float32([0, 0.6, 1, 3])
    same(f(x, *args), g(x, *args), f"{name}.{function}")
    assert types(f(0.25, *args)) == types(g(0.25, *args))
    if name not in ("poisson", "bernoulli"):
        inner = np.float32([0.2, 0.6])
        derivative = px.vmap(px.grad(lambda x: f(x, *args)))(inner)
        same(derivative, jax.vmap(jax.grad(lambda x: g(x, *args)))(inner), name, 1e-3)


RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 4)).astype(np.float32)
B = RNG.normal(size=(2, 4, 3)).astype(np.float32)
b = RNG.normal(size=4).astype(np.float32)
SPD = (A @ np.swapaxes(A, -1, -2) + 4 * np.eye(4)).astype(np.float32)
LINALG: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("solve", (A, B), {}),
    ("solve", (A, b), {}),
    ("solve", (SPD, B), {"assume_a": "pos"}),
    ("solve", (SPD, B), {"assume_a": "pos", "lower": True}),
    ("solve", (SPD, B), {"assume_a": "sym"}),
    ("solve_triangular", (A, B), {"trans": "T", "lower": True}),
    ("solve_triangular", (A[0], b), {"unit_diagonal": True}),
    ("solve_triangular", (A, b[None] + 0 * B[:, :, 0]), {}),
    ("lu", (A,), {}),
    ("lu", (A[:, :2],), {"permute_l": True}),
    ("lu_factor", (A,), {}),
    ("cholesky", (SPD,), {}),
    ("cholesky", (SPD,), {"lower": True}),
    ("cho_factor", (SPD,), {}),
    ("qr", (A,), {"mode": "economic"}),
    ("qr", (A[0],), {"mode": "r"}),
    ("svd", (A,), {"compute_uv": False}),
    ("eigh", (SPD,), {"eigvals_only": True}),
    ("eigh", (A[0],), {"eigvals_only": True}),
    ("eigh", (SPD, SPD[::-1].copy()), {"eigvals_only": True}),
    ("det", (A,), {}),
    ("inv", (SPD,), {}),
    ("expm", (A,), {}),
    ("expm_frechet", (A[0], A[1]), {}),
    ("toeplitz", (b, b[:2]), {}),
    ("toeplitz", (A[0],), {}),
    ("hankel", (b,), {}),
    ("circulant", (b,), {}),
    ("companion", (b,), {}),
    ("fiedler", (b,), {}),
    ("fiedler_companion", (b,), {}),
    ("leslie", (b, b[1:]), {}),
    ("block_diag", (A[0], b), {}),
    ("convolution_matrix", (b, 3), {"mode": "same"}),
]  # fmt: skip
NO_GRADIENT = [
    ("eigh_tridiagonal", (b, b[1:]), {"eigvals_only": True}),
    ("hessenberg", (A,), {}),
    ("hessenberg", (A,), {"calc_q": True}),
    ("schur", (A[0],), {}),
    ("polar", (A[0],), {}),
    ("sqrtm", (SPD[0],), {}),
    ("solve_sylvester", (A[0], A[1], A[0]), {}),
    ("qr_multiply", (A[0], b), {}),
    ("qr_multiply", (A[0], B[0]), {"mode": "left", "pivoting": True}),
    ("qr", (A[0],), {"pivoting": True}),
    ("hadamard", (4,), {}),
    ("hilbert", (3,), {}),
    ("invhilbert", (3,), {}),
    ("helmert", (3,), {}),
    ("dft", (3,), {"scale": "n"}),
    ("pascal", (4,), {}),
    ("invpascal", (4,), {"kind": "upper"}),
    ("toeplitz", (2.0,), {}),
    ("block_diag", (), {}),
    ("lu_factor", (np.int32([[1, 2], [3, 4]]),), {}),
]  # fmt: skip


@pytest.mark.parametrize("name, args, params", LINALG + NO_GRADIENT)
def test_linear_algebra(name: str, args: Any, params: Any) -> None:
    f, g = (getattr(m.linalg, name) for m in (ours, theirs))
    arrays = lambda out: [x for x in jax.tree.leaves(out) if not isinstance(x, bool)]
    same(arrays(f(*args, **params)), arrays(g(*args, **params)), name, 5e-4)
    if not any((name, params) == (n, p) and args is a for n, a, p in LINALG):
        return
    by = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]

    def derivatives(module: Any, fun: Any) -> Any:
        def total(*xs: Any) -> Any:
            outs = arrays(fixing(lambda *all: fun(*all, **params), args, by)(*xs))
            return sum(
                (x * np.arange(1, x.size + 1).reshape(x.shape)).sum()
                for x in outs if dtypes.issubdtype(x.dtype, np.inexact)
            )  # fmt: skip

        return module.grad(total, tuple(range(len(by))))(*[args[i] for i in by])

    same(derivatives(px, f), derivatives(jax, g), name, 5e-3)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_solvers(name: str) -> None:
    f, g = (getattr(m.sparse.linalg, name) for m in (ours, theirs))
    a = SPD[0]
    same(f(a, b, tol=1e-6)[0], g(a, b, tol=1e-6)[0], name)

    def derivatives(module: Any, solve: Any) -> Any:
        return module.grad(lambda m, r: (solve(m, r, tol=1e-7)[0] ** 2).sum(), (0, 1))(a, b)

    same(derivatives(px, f), derivatives(jax, g), name, 1e-3)


def test_minimize() -> None:
    bowl = lambda x: ((x - 1) ** 4 + (x - 1) ** 2).sum()
    x = np.zeros(3, np.float32)
    actual, expected = (m.optimize.minimize(bowl, x, method="BFGS") for m in (ours, theirs))
    assert actual._fields == expected._fields
    np.testing.assert_allclose(actual.x, expected.x, 1e-4)
    assert types(actual) == types(expected)


@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms(name: str, norm: Any) -> None:
    f, g = (getattr(m.fft, name) for m in (ours, theirs))
    for x in (A[0], A[0, :, :3], A[0].astype(np.float16), np.int32([1, 2, 3]), A[0] + 1j * A[1]):
        same(f(x, norm=norm), g(x, norm=norm), name, 1e-3)
