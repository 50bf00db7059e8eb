"""Iterative solvers, minimization, cosine transforms, and the wheel as a whole."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.fft as their_fft

import primax_numpy as pnp
from primax_core import enable_x64, grad, jit, vmap
from primax_core.testing import check_grads
from primax_scipy import fft, integrate, linalg, optimize, special, stats
from primax_scipy.sparse import linalg as sparse

RNG = np.random.default_rng(0)
N = 6
A = RNG.normal(size=(N, N)).astype(np.float32)
C = (A + 1j * RNG.normal(size=(N, N))).astype(np.complex64)
b = RNG.normal(size=N).astype(np.float32)
SPD = (A @ A.T + 3 * np.eye(N)).astype(np.float32)
HPD = (C @ C.conj().T + 3 * np.eye(N)).astype(np.complex64)
GENERAL = [(A + 4 * np.eye(N)).astype(np.float32), (C + 5 * np.eye(N)).astype(np.complex64)]
SHIFTED = [(m - 4 * np.eye(N)).astype(m.dtype) for m in (SPD, HPD)]  # indefinite
CALLS = [
    ("cg", SPD),
    ("cg", HPD),
    *[("minres", m) for m in SHIFTED],
    *[(n, m) for n in ("bicgstab", "gmres") for m in GENERAL],
]


@pytest.mark.parametrize("name, a", CALLS)
def test_solvers(name, a) -> None:
    solve = getattr(sparse, name)
    right = (b * (1 + 1j)).astype(a.dtype) if a.dtype.kind == "c" else b
    x, info = solve(a, right, tol=1e-6)
    np.testing.assert_allclose(a @ np.asarray(x), right, 0, 1e-4)
    assert x.dtype == a.dtype and (info is None or int(info) == 0)
    diagonal = np.abs(np.diag(a)).astype(a.dtype) if name == "minres" else np.diag(a)
    tree, _ = solve(lambda v: {"x": pnp.matmul(a, v["x"])}, {"x": right}, tol=1e-6,
                    M=lambda v: {"x": v["x"] / diagonal})  # fmt: skip
    np.testing.assert_allclose(tree["x"], x, 0, 1e-4)
    guessed, _ = solve(a, right, x, tol=1e-3, maxiter=0)
    np.testing.assert_allclose(guessed, x)
    many = vmap(jit(lambda r: solve(a, r, tol=1e-6)[0]))(np.stack([right, 2 * right]))
    np.testing.assert_allclose(many[1], 2 * x, 0, 1e-4)


@pytest.mark.parametrize("name, a", CALLS)
def test_derivatives_of_solvers(name, a) -> None:
    with enable_x64(True):
        a = a.astype(np.result_type(a.dtype, np.float64))
        right = b.astype(a.dtype)
        full = {"cg": lambda m: m @ m.conj().T, "minres": lambda m: 0.5 * (m + m.conj().T)}.get(
            name, lambda m: m
        )
        run = lambda m, r: getattr(sparse, name)(full(m), r, tol=1e-12)[0]
        check_grads(run, (a / 4 if name == "cg" else a, right), 1, rtol=1e-4, atol=1e-4)


def test_gmres_restarts() -> None:
    for a in GENERAL:
        x, info = sparse.gmres(a, b.astype(a.dtype), restart=2, tol=1e-5, maxiter=100)
        np.testing.assert_allclose(a @ np.asarray(x), b, 0, 1e-4)
        assert int(info) == 0
    x, _ = sparse.gmres(np.eye(N, dtype=np.float32), b)  # the Krylov space is invariant at once
    np.testing.assert_allclose(x, b, 1e-6)
    x, _ = sparse.gmres(SPD, 0 * b)
    assert np.asarray(x).tolist() == [0.0] * N


def test_errors_of_solvers() -> None:
    with pytest.raises(TypeError, match="either a function or ndarray"):
        sparse.cg(3, b)
    with pytest.raises(ValueError, match="square matrix"):
        sparse.cg(A[:2], b)
    with pytest.raises(ValueError, match="matching shapes"):
        sparse.cg(A, b, b[:2])
    with pytest.raises(ValueError, match="tree structure"):
        sparse.bicgstab(A, b, {"x": b})
    with pytest.raises(TypeError, match="function of the pytree"):
        sparse.gmres(A, {"x": b})
    with pytest.raises(ValueError, match="invalid solve_method"):
        sparse.gmres(A, b, solve_method="x")


def rosenbrock(x, np_like=pnp):
    return np_like.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_minimize() -> None:
    for n in (2, 5):
        actual = optimize.minimize(rosenbrock, np.zeros(n, np.float32), method="BFGS", tol=1e-3)
        np.testing.assert_allclose(actual.x, np.ones(n), 1e-3)
        assert bool(actual.success) and int(actual.status) == 0
        with enable_x64(True):
            actual = optimize.minimize(rosenbrock, np.zeros(n), method="bfgs")
            assert bool(actual.success) and float(actual.fun) < 1e-12 and int(actual.nit) < 60
            assert int(actual.nfev) == int(actual.njev) >= int(actual.nit)
    hilly = lambda x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2
    solve = lambda x: optimize.minimize(hilly, x, method="BFGS", tol=1e-2)
    far = solve(np.float32([-50, 50]))
    assert bool(far.success) and float(far.fun) < 1e-5
    many = vmap(lambda x: solve(x).fun)(np.float32([[0, 0], [5, 5]]))
    np.testing.assert_allclose(many, 0, atol=1e-5)
    moved = jit(
        lambda a: (
            optimize.minimize(
                lambda x, a: ((x - a) ** 2).sum(), np.zeros(2, np.float32), (a,), method="BFGS"
            ).x
        )
    )
    np.testing.assert_allclose(moved(3.0), [3, 3], 1e-5)
    short = optimize.minimize(
        rosenbrock, np.zeros(3, np.float32), method="BFGS", options={"maxiter": 2}
    )
    assert not bool(short.success) and int(short.status) == 1 and int(short.nit) == 2
    wrong = optimize.minimize(lambda x: (x * np.nan).sum(), np.ones(2, np.float32), method="BFGS")
    assert not bool(wrong.success)


def test_errors_of_minimize() -> None:
    x = np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="not recognized"):
        optimize.minimize(rosenbrock, x, method="x")
    with pytest.raises(ValueError, match="not recognized"):
        optimize.minimize(rosenbrock, x, method=x)
    with pytest.raises(TypeError, match="must be a tuple"):
        optimize.minimize(rosenbrock, x, 1, method="BFGS")
    with pytest.raises(TypeError, match="no option 'q'"):
        optimize.minimize(rosenbrock, x, method="BFGS", options={"q": 1})
    for bad in (np.zeros((2, 1), np.float32), np.zeros(2, np.int32), np.zeros(2, np.complex64)):
        with pytest.raises(TypeError, match="vector of floats"):
            optimize.minimize(rosenbrock, bad, method="BFGS")


@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms(name, norm) -> None:
    ours, theirs = getattr(fft, name), getattr(their_fft, name)
    for n in (1, 2, 3, 8):
        x = RNG.normal(size=(3, n)).astype(np.float32)
        options = [{"axis": 0}, {}] if name[-1] == "t" else [{"axes": 0}, {}, {"s": (2, 4)}]
        for option in options:
            actual = ours(x, norm=norm, **option)
            np.testing.assert_allclose(actual, theirs(x, norm=norm, **option), 1e-4, 1e-4)
            assert actual.dtype == np.float32
    with pytest.raises(ValueError, match="type must be 1, 2, 3 or 4, got 5"):
        ours(x, type=5)
    with pytest.raises(ValueError, match=r"norm must be None, .* got 'other'"):
        ours(x, norm="other")
    check_grads(lambda x: ours(x, norm=norm), (x,), 1, modes=("fwd", "rev"), atol=1e-1, rtol=1e-1)


def test_trapezoid() -> None:
    assert float(integrate.trapezoid(np.float32([0, 1, 2]), dx=0.5)) == 1.0


MODULES = [fft, integrate, linalg, optimize, sparse, special, stats, stats.norm]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_public_names_are_documented(module) -> None:
    assert module.__doc__
    for name in dir(module):
        value = getattr(module, name)
        if not name.startswith("_") and callable(value):
            assert inspect.getdoc(value), f"{module.__name__}.{name} has no docstring"


def public_modules() -> list[str]:
    package = importlib.import_module("primax_scipy")
    names = [m.name for m in pkgutil.walk_packages(package.__path__, "primax_scipy.")]
    return ["primax_scipy", *(n for n in names if not any(p[0] == "_" for p in n.split(".")))]


@pytest.mark.parametrize("name", public_modules())
def test_nothing_but_public_names_is_visible(name) -> None:
    """A visible name is a submodule, is re-exported (``from x import y as y``, ``y = x.y``), or has
    a declared type."""
    module = importlib.import_module(name)
    tree = ast.parse(inspect.getsource(module))
    imported = {
        alias.asname
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            imported |= {t.id for t in node.targets if getattr(t, "id", "") == node.value.attr}
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            imported.add(node.target.id)
    imported |= set(getattr(module, "__all__", ()))
    submodules = {m.name for m in pkgutil.iter_modules(getattr(module, "__path__", []))}
    visible = {n for n in dir(module) if not n.startswith("_")}
    assert visible <= imported | submodules
    assert not {"annotations", "Any", "Array", "lax", "np", "math"} & visible
    assert not {n for n in visible if getattr(getattr(module, n), "__name__", n).startswith("_")}


def test_modules_are_imported_on_first_use() -> None:
    code = (
        "import sys, primax_scipy as ps; assert 'special' in dir(ps);"
        "assert not any(m.startswith('primax_scipy.s') for m in sys.modules);"
        "ps.special.erf(0.5); ps.stats.norm.cdf(0.5); assert 'scipy' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    import primax_scipy

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        primax_scipy.nothing


def test_derivatives_of_library_functions_are_inlined() -> None:
    assert float(grad(lambda x: special.logsumexp(pnp.stack([x, x])))(1.0)) == 1.0
