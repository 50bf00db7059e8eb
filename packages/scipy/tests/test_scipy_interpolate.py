"""Interpolants against SciPy; as arguments of transformed functions; error texts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.interpolate as theirs

from primax_core import enable_x64, grad, jit, vmap
from primax_scipy import interpolate
from test_support import assert_close, check_call, check_derivatives

RNG = np.random.default_rng(4)
POINTS = np.linspace(-1, 5, 37)
KNOTS = {n: np.cumsum(RNG.uniform(0.3, 1, n)) for n in (2, 3, 4, 9)}
VALUES = {n: RNG.normal(size=(n, 2)) for n in KNOTS}
GRID = (np.cumsum(RNG.uniform(0.3, 1, 6)), -np.cumsum(RNG.uniform(0.3, 1, 7)))
TABLE = RNG.normal(size=(6, 7, 2))


def compare(fun: Any, tolerance: float = 1e-8) -> None:
    with enable_x64(True):
        actual = fun(interpolate)
    assert_close(actual, fun(theirs), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("bc", [
    "not-a-knot", "natural", "clamped", "periodic", ((1, [0.5, 1.0]), (2, [0.0, 1.0])),
    ("not-a-knot", "natural"),
], ids=["knots", "natural", "clamped", "periodic", "values", "mixed"])  # fmt: skip
def test_cubic_splines(bc: Any) -> None:
    for n, x in KNOTS.items():
        y = VALUES[n].copy()
        if bc == "periodic":
            y[-1] = y[0]
        for nu in (0, 1, 3, 4):
            compare(lambda m: m.CubicSpline(x, y, bc_type=bc)(POINTS, nu))  # noqa: B023
        compare(lambda m: m.CubicSpline(x, y, bc_type=bc, extrapolate=True).integrate(0.3, 2.0))  # noqa: B023


@pytest.mark.parametrize("n", list(KNOTS))
def test_other_cubics(n: int) -> None:
    x, y, steps = KNOTS[n], VALUES[n], np.arange(n) // 3
    for values in (y, steps.astype(float)):
        compare(lambda m: m.PchipInterpolator(x, values)(POINTS))  # noqa: B023
        compare(lambda m: m.Akima1DInterpolator(x, values)(POINTS))  # noqa: B023
        compare(lambda m: m.Akima1DInterpolator(
            x, values, method="makima", extrapolate=True)(POINTS))  # noqa: B023  # fmt: skip
    compare(lambda m: m.CubicHermiteSpline(x, y, y[::-1]).derivative()(POINTS))
    compare(lambda m: m.CubicHermiteSpline(x, y, y[::-1]).antiderivative(2)(POINTS))
    compare(lambda m: m.CubicSpline(x, y.T, axis=1, extrapolate=False)(POINTS[:, None]))


@pytest.mark.parametrize("k", range(6))
def test_interpolating_splines(k: int) -> None:
    x, y = KNOTS[9], VALUES[9]
    compare(lambda m: m.make_interp_spline(x, y, k)(POINTS), 1e-6)
    if k == 3:
        for bc in ("natural", "clamped", ([(1, [1.0, 2.0])], [(2, [0.0, 0.5])])):
            compare(lambda m: m.make_interp_spline(x, y, 3, bc_type=bc)(POINTS), 1e-7)  # noqa: B023


def test_interpolating_splines_of_many_points_and_other_knots() -> None:
    x = np.cumsum(RNG.uniform(0.1, 1.0, 20_000))
    y = RNG.normal(size=x.shape)
    compare(lambda m: m.make_interp_spline(x, y).c, 1e-9)
    compare(lambda m: m.make_interp_spline(x[:20], y[:20], 5, bc_type=(
        [(1, 0.5), (2, 0.0)], [(1, 0.0), (4, 2.0)])).c, 1e-9)  # fmt: skip
    x, y = x[:9], y[:9]
    t = np.concatenate([[x[0]] * 4, x[[2, 3, 4, 6, 6]], [x[-1]] * 4])
    compare(lambda m: m.make_interp_spline(x, y, 3, t).c, 1e-9)
    t[4:9] = np.linspace(x[0], x[1], 7)[1:-1]  # five knots between two points
    assert np.isnan(interpolate.make_interp_spline(x, y, 3, t).c).all()


@pytest.mark.parametrize("k", range(4))
def test_b_splines(k: int) -> None:
    t, c = np.cumsum(RNG.uniform(0.1, 0.5, 12)), RNG.normal(size=(11 - k, 2))
    points = np.concatenate([POINTS, t]) if k else POINTS + 0.01
    for extrapolate in (True, False, "periodic") if k else (True, False):
        for nu in (0, 1):
            p = POINTS + 0.01 if extrapolate == "periodic" else points
            compare(lambda m: m.BSpline(t, c, k, extrapolate)(p, nu), 1e-7)  # noqa: B023
    if k:
        compare(lambda m: m.BSpline(t, c, k).derivative()(points), 1e-7)
    compare(lambda m: m.BSpline(t, c, k).antiderivative(2)(points), 1e-7)
    for extrapolate in (True, False):
        compare(lambda m: m.BSpline(t, c, k).integrate(-1.0, 3.0, extrapolate), 1e-7)  # noqa: B023
    inside = points[(points >= t[k]) & (points <= t[-k - 1])]
    dense = theirs.BSpline.design_matrix(inside, t, k).toarray()
    with enable_x64(True):
        assert_close(interpolate.BSpline.design_matrix(inside, t, k), dense, atol=1e-9)
    compare(lambda m: m.BSpline.basis_element(t[: k + 2], False)(points))


@pytest.mark.parametrize("kind", [
    "linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic",
])  # fmt: skip
def test_one_dimension(kind: str) -> None:
    x, y = KNOTS[9][::-1], VALUES[9]
    points = np.concatenate([POINTS, x, (x[1:] + x[:-1]) / 2])
    for fill in (np.nan, (1.0, 2.0), "extrapolate"):
        if kind == "zero" and fill == "extrapolate":
            continue  # SciPy has NaN below the first point, and the last value above
        compare(lambda m: m.interp1d(x, y, kind, 0, bounds_error=False, fill_value=fill)(points),  # noqa: B023
                1e-7)  # fmt: skip


@pytest.mark.parametrize("method", ["linear", "nearest", "slinear", "quintic"])
def test_regular_grids(method: str) -> None:
    xi = np.stack([RNG.uniform(0, 5, (4, 10)), RNG.uniform(-5, 0, (4, 10))], -1)
    xi[0, 0, 0] = np.nan
    xi[1, :6, 0] = GRID[0]
    for fill in (np.nan, None, 3.0):
        tolerance = 1e-3 if method == "quintic" else 1e-9  # SciPy's solver is iterative
        compare(
            lambda m: m.RegularGridInterpolator(GRID, TABLE, method, False, fill)(xi),  # noqa: B023
            tolerance,
        )
    compare(lambda m: m.interpn(GRID, TABLE, xi, "linear", False, None))


def test_cubic_grids() -> None:
    """SciPy's solver for cubic grids is iterative; its bivariate splines are exact."""
    x, y = GRID[0], GRID[1][::-1]
    table = TABLE[:, ::-1, 0]
    xi = np.stack([RNG.uniform(x[0], x[-1], 20), RNG.uniform(y[0], y[-1], 20)], -1)
    expected = theirs.RectBivariateSpline(x, y, table)(xi[:, 0], xi[:, 1], grid=False)
    with enable_x64(True):
        grid = interpolate.RegularGridInterpolator((x, y), table, "cubic")
        assert_close(grid(xi), expected, rtol=1e-8, atol=1e-8)
        assert_close(grid((xi[:, 0], xi[:, 1])), expected, rtol=1e-8, atol=1e-8)
        assert_close(jit(lambda g, p: g(p))(grid, xi), expected, rtol=1e-8, atol=1e-8)


def test_interpolants_are_pytrees() -> None:
    x, y = KNOTS[9].astype(np.float32), VALUES[9].astype(np.float32)
    p = POINTS.astype(np.float32)
    for make in (
        interpolate.CubicSpline, interpolate.PchipInterpolator, interpolate.Akima1DInterpolator,
        interpolate.make_interp_spline, lambda x, y: interpolate.interp1d(x, y, axis=0),
    ):  # fmt: skip
        f = make(x, y)
        out = jit(lambda f, p: f(p))(f, p)
        assert out.dtype == np.float32
        assert_close(out, f(p), atol=1e-5)
        if make is interpolate.CubicSpline:
            assert type(jit(make)(x, y)) is type(f)
        mapped = vmap(lambda y, make=make: make(x, y)(p))(np.stack([y, -y]))
        assert_close(mapped[1], -np.asarray(mapped[0]), atol=1e-5)


@pytest.mark.rotate(every=4, whole=True)
def test_derivatives() -> None:
    x, y, p = KNOTS[4], VALUES[4][:, 0], np.array([0.9, 1.3])
    loose = {"atol": 1e-4, "value_rtol": 1e-11}
    check_derivatives(lambda *v: interpolate.CubicSpline(*v[:2])(v[2]), x, y, p, order=2, **loose)
    check_derivatives(lambda *v: interpolate.PchipInterpolator(*v[:2])(v[2]), x, y, p, **loose)
    check_derivatives(lambda *v: interpolate.Akima1DInterpolator(*v[:2])(v[2]), x, y, p, **loose)
    check_derivatives(lambda *v: interpolate.make_interp_spline(*v[:2])(v[2]), x, y, p, **loose)
    check_derivatives(
        lambda t, p: interpolate.RegularGridInterpolator(GRID, t, "cubic")(p),
        TABLE, np.array([[1.3, -1.2]]), **loose,
    )  # fmt: skip
    f = interpolate.CubicSpline(x.astype(np.float32), y.astype(np.float32))
    assert_close(grad(f)(1.25), f(1.25, 1), rtol=1e-3)


def test_settings() -> None:
    x, y, p = KNOTS[9].astype(np.float32), VALUES[9].astype(np.float32), POINTS.astype(np.float32)
    for make in (
        interpolate.CubicSpline, interpolate.PchipInterpolator, interpolate.Akima1DInterpolator,
        interpolate.make_interp_spline, lambda x, y: interpolate.interp1d(x, y, axis=0),
    ):  # fmt: skip
        check_call(lambda y, p, make=make: make(x, y)(p), y, p)
    grid = [g.astype(np.float32) for g in GRID]
    for method in ("linear", "nearest", "cubic"):
        check_call(
            lambda t, p, m=method: interpolate.RegularGridInterpolator(grid, t, m)(p),
            TABLE.astype(np.float32), np.ones((3, 2), np.float32),
        )  # fmt: skip


def test_errors() -> None:
    x, y = np.float32([0, 1, 2]), np.float32([0, 1, 4])
    grid = interpolate.RegularGridInterpolator
    cases: list[tuple[Any, str]] = [
        (lambda: interpolate.CubicSpline(x[::-1], y), "x must be strictly increasing"),
        (lambda: interpolate.CubicSpline(x, y[:2]), "y has 2 values along axis 0 for 3 points"),
        (lambda: interpolate.CubicSpline(x, y, bc_type="free"), "bc_type must be one of"),
        (
            lambda: interpolate.CubicSpline(x, y, bc_type="periodic"),
            "periodic spline must be equal",
        ),
        (lambda: interpolate.PchipInterpolator(x, y + 0j), "y must be real"),
        (lambda: interpolate.Akima1DInterpolator(x, y, method="x"), "method must be one of"),
        (lambda: interpolate.BSpline(x, y, 3), "degree 3 needs a vector of at least 8 knots"),
        (lambda: interpolate.BSpline(x[::-1], y, 0), "the knots must not decrease"),
        (lambda: interpolate.make_interp_spline(x, y, 5), "degree 5 needs 6 points"),
        (lambda: interpolate.interp1d(x, y, "sextic"), "kind must be one of"),
        (lambda: interpolate.interp1d(x, y, bounds_error=True)(3.0), "points are out of bounds"),
        (lambda: interpolate.PPoly(y[None], x), "c must have shape (k, 2, ...)"),
        (lambda: grid((x,), y, "cubic"), "method 'cubic' needs at least 4 points"),
        (lambda: grid((x, x), y), "2 vectors of points for values of 1 dimensions"),
        (lambda: grid((x[:2],), y), "points[0] must have shape (3,), got (2,)"),
        (lambda: grid((x,), y, bounds_error=True)(3.0), "out of bounds in dimension 0"),
        (lambda: grid((x, x), np.ones((3, 3)))(x), "the last axis of xi must have size 2"),
        (lambda: jit(grid((x,), y, bounds_error=True))(x), "cannot be checked for traced"),
    ]
    for call, text in cases:
        with pytest.raises(ValueError, match=re.escape(text)):
            call()
