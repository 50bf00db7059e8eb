"""Special functions that only SciPy has: ends of domains, branches, quadrature rules, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special as theirs

from primax_core import enable_x64, grad, jit
from primax_scipy import special
from test_support import assert_close

NAN, INF = np.nan, np.inf

EDGES = {
    "j0": [0.0, -8, 8, NAN], "j1": [0.0, -8, 8, NAN], "y0": [0, -1, 8, NAN], "y1": [0, -1, 8, NAN],
    "k0": [0, -1, 2, 800, INF, NAN], "k1": [0, -1, 2, 800, INF, NAN], "k1e": [0, -1, 2, 800, NAN],
    "ellipk": [0, 1, 2, -1, -INF, NAN], "ellipe": [0, 1, 2, -1, -INF, NAN],
    "ellipkm1": [0, 1, -1, INF, NAN], "exprel": [0, 1e-20, 720, INF, -INF, NAN],
    "cosm1": [0, 1e-9, NAN], "log_expit": [0, -800, 800, -INF, INF, NAN],
    "ndtri_exp": [-INF, -1e300, -1e20, -2, -0.5, -1e-20, 0, 1, NAN],
    "shichi": [0, INF, -INF, 800, NAN], "airye": [0, 200, NAN],
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_ends_of_domains(name) -> None:
    x = np.array(EDGES[name], np.float64)
    with enable_x64(True), np.errstate(all="ignore"):
        ours, expected = getattr(special, name)(x), getattr(theirs, name)(x)
        assert_close(np.asarray(ours), np.asarray(expected), rtol=1e-12)


PAIRS = {
    "jv": ([0, 1, -2, 0.5, -0.5, 1.5], [0, -1, 2.0, NAN]),
    "yv": ([0, 1, 0.5, -1], [-1, 2.0, NAN]), "kv": ([0, 1, -0.5], [0, -1, 2.0, INF, NAN]),
    "iv": ([0, 1, -2, 0.5, -0.5], [0, -1, 2.0, NAN]),
    "ellipkinc": ([0, 1, 7, INF, NAN], [0, 0.5, 1, 1.5, NAN]),
    "ellipeinc": ([0, 1, 7, INF, NAN], [0, 0.5, 1, 1.5, -INF, NAN]),
    "elliprc": ([0, 1, -1], [0, 1, -1, NAN]), "huber": ([-1, 0, 1], [0, 2, -0.5, INF, NAN]),
    "pseudo_huber": ([-1, 0, 1], [0, 2, -0.5, INF, NAN]),
    "inv_boxcox": ([-1, 0, 0.5, 2, NAN], [0, 1, -1, 2]),
    "inv_boxcox1p": ([-1, 0, 0.5, 2, NAN], [0, 1, -1, 2]),
    "perm": ([5, 5.5, -1, 3], [0, 2, 4, -1]),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_ends_of_domains_of_pairs(name) -> None:
    x, y = (v.ravel() for v in np.meshgrid(*[np.array(v, np.float64) for v in PAIRS[name]]))
    with enable_x64(True), np.errstate(all="ignore"):
        ours, expected = getattr(special, name)(x, y), getattr(theirs, name)(x, y)
        assert_close(np.asarray(ours), expected, rtol=1e-12, atol=1e-300)


def test_limits_that_scipy_does_not_return() -> None:
    with enable_x64(True):
        assert float(special.jv(0.5, INF)) == float(special.yv(1, INF)) == 0.0
        assert float(special.iv(1, -INF)) == -INF and float(special.kve(2, INF)) == 0.0
        assert [float(v) for v in special.airy(INF)][::2] == [0.0, INF]
    assert np.isnan(float(special.jv(np.float32(1e7), 1.0)))


def test_orders_and_arguments_of_many_blocks() -> None:
    rng = np.random.default_rng(0)
    v, x = rng.uniform(0, 3, (3, 1500)), rng.uniform(0.1, 20, (3, 1500))
    with enable_x64(True):
        assert_close(special.jv(v, x), theirs.jv(v, x), rtol=1e-9, atol=1e-13)
        assert_close(special.kv(v[:0], x[:0]), np.zeros((0, 1500)))


def test_derivatives_at_zero() -> None:
    assert float(grad(special.jv, 1)(1.0, 0.0)) == 0.5
    assert float(grad(grad(special.jv, 1), 1)(0.0, 0.0)) == -0.5
    assert float(grad(grad(special.j0))(0.0)) == -0.5
    assert float(grad(special.exprel)(0.0)) == 0.5
    assert float(grad(lambda x: special.shichi(x)[0])(0.0)) == 1.0
    assert_close(grad(special.ellipk)(0.0), math.pi / 8, rtol=1e-5)
    assert_close(grad(special.inv_boxcox, 1)(1.0, 0.0), -0.5 * math.e, rtol=1e-5)
    # dJ/dv = π/2 Y at order 0: DLMF 10.2.4
    assert_close(grad(special.jv)(0.0, 1.0), 0.5 * math.pi * theirs.y0(1.0), rtol=1e-5)


def test_branches_of_lambertw() -> None:
    rng = np.random.default_rng(1)
    z = 3 * (rng.normal(size=200) + 1j * rng.normal(size=200)) * 10 ** rng.uniform(-3, 3, 200)
    with enable_x64(True):
        for k in (-2, -1, 0, 1, 5):
            assert_close(special.lambertw(z, k), theirs.lambertw(z, k), rtol=1e-11)
        w = special.lambertw(np.array([0, NAN, INF, -INF]), 1)
        expected = theirs.lambertw(np.array([0, NAN, INF]), 1)
        np.testing.assert_array_equal(w[:3], expected)
        near = -math.exp(-1) + 10.0 ** -np.arange(2.0, 16)
        w = np.asarray(special.lambertw(near))
        assert_close(w * np.exp(w), near + 0j, rtol=1e-15 * 4)
        assert np.all(w.imag == 0)
        assert_close(grad(lambda x: special.lambertw(x).real)(0.0), 1.0)
    with pytest.raises(TypeError, match="k must be integers, the number of the branch"):
        special.lambertw(1.0, 0.5)


RULES = {
    "legendre": (), "chebyt": (), "chebyu": (), "hermite": (), "hermitenorm": (), "laguerre": (),
    "genlaguerre": (0.5,), "gegenbauer": (1.2,), "jacobi": (0.3, -0.6),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_quadrature_rules(name) -> None:
    parameters = RULES[name]
    with enable_x64(True):
        for n in (1, 2, 5, 20, 60):
            ours = getattr(special, f"roots_{name}")(n, *parameters, True)
            expected = getattr(theirs, f"roots_{name}")(n, *parameters, True)
            assert_close(ours[0], expected[0], rtol=1e-12, atol=1e-14)
            assert_close(ours[1], expected[1], rtol=1e-10)
            assert_close(ours[2], expected[2], rtol=1e-13)
        # Exact for polynomials of a high degree
        x, w = special.roots_legendre(150)
        assert_close((w * x**200).sum(), 2 / 201, rtol=1e-13)


def test_errors_of_quadrature_rules() -> None:
    with pytest.raises(ValueError, match="roots_legendre: n must be positive, got 0"):
        special.roots_legendre(0)
    with pytest.raises(ValueError, match="alpha must be greater than -1, got -1"):
        special.roots_jacobi(3, -1.0, 0.0)
    with pytest.raises(TypeError, match="n must be a Python integer"):
        jit(special.roots_hermite)(3)
    with pytest.raises(TypeError, match="alpha must be a number that is not traced"):
        jit(lambda a: special.roots_genlaguerre(3, a))(0.5)


def test_degrees_outside_of_the_usual_range() -> None:
    n, x = np.arange(-4, 2), np.float64(0.3)
    with enable_x64(True):
        for name in ("legendre", "chebyt", "chebyu", "hermite", "hermitenorm", "laguerre"):
            fun = f"eval_{name}"
            ours, expected = getattr(special, fun)(n, x), getattr(theirs, fun)(n, x)
            assert_close(ours, expected, rtol=1e-13, atol=1e-15)
        many = np.arange(0, 300, 7)
        expected = theirs.eval_legendre(many, x)
        assert_close(special.eval_legendre(many, x), expected, rtol=1e-12, atol=1e-13)
    with pytest.raises(TypeError, match="eval_legendre: degrees must be integers, got float"):
        special.eval_legendre(0.5, 0.5)


def test_numbers_of_stirling_and_permutations() -> None:
    n, k = np.meshgrid(np.arange(12), np.arange(12))
    with enable_x64(True):
        assert_close(special.stirling2(n, k), theirs.stirling2(n, k), rtol=1e-15)
    assert special.stirling2(100, 50, exact=True) == theirs.stirling2(100, 50, exact=True)
    assert float(special.stirling2(400, 100)) == INF
    assert special.perm(7, 9, exact=True) == 0
    with pytest.raises(TypeError, match="N must not be traced"):
        jit(special.stirling2)(3, 2)
    with pytest.raises(TypeError, match="must be integers, got float64"):
        special.stirling2(3.0, 2)
    with pytest.raises(TypeError, match="exact=True is for two Python integers"):
        special.stirling2(np.arange(3), 2, exact=True)
    with pytest.raises(TypeError, match="k must be a Python integer with exact=True, got float"):
        special.perm(3, 2.0, exact=True)


def test_errors_of_orders() -> None:
    with pytest.raises(TypeError, match="kn: orders must be integers, got float"):
        special.kn(0.5, 1.0)
    with pytest.raises(TypeError, match="spherical_jn: degrees must be integers"):
        special.spherical_jn(0.5, 1.0)
    with pytest.raises(ValueError, match="jv does not support complex-valued orders: "):
        special.jv(1j, 1.0)


def test_voigt_profile_of_one_width() -> None:
    x = np.array([0.0, 1, -2, INF, NAN])
    with enable_x64(True):
        for widths in ((0.0, 0.5), (1.0, 0.0), (0.0, 0.0), (1.0, NAN)):
            ours, expected = special.voigt_profile(x, *widths), theirs.voigt_profile(x, *widths)
            assert_close(ours, expected, rtol=1e-13)
