"""Test cases of the special functions that only SciPy has, one line for each."""

from __future__ import annotations

from scipy import special
from special_cases import F, N, case

from primax_core.extend import i32

CASES = [
    case("j0", F(-9, 9)).set(ulps=300), case("j1", F(0.01, 3)), case("y0", F(1, 40)).set(ulps=2000),
    case("y1", F(0.01, 2)), case("k0", F(0.01, 9)), case("k1", F(0.01, 9)), case("k0e", F(0.1, 90)),
    case("k1e", F(0.1, 90)),
    case("jv", F(0.1, 9), F(0.5, 2)).set(ulps=1000),
    case("jv", F(-4.9, 4.9), F(3, 40)).set(ulps=1e5),
    case("jv", F(20, 30), F(1, 20)).set(ulps=1000),
    case("jve", N(0, 5), F(-9, 9)).set(by=(1,), ulps=1e5),
    case("yv", F(-2.9, 0.4), F(0.2, 0.8)).set(ulps=3000),
    case("yv", F(0.1, 15), F(3, 40)).set(ulps=1e5), case("yve", F(5, 9), F(0.5, 4)).set(ulps=1000),
    case("iv", F(0.1, 15), F(0.2, 9)).set(ulps=1000),
    case("iv", F(-4.9, 0), F(0.2, 9)).set(ulps=3000),
    case("ive", F(20, 60), F(9, 90)).set(ulps=2000),
    case("ive", F(0.1, 3), F(9, 900)).set(ulps=1000),
    case("kv", F(-4.9, 9), F(0.1, 9)).set(ulps=1000),
    case("kve", F(0.1, 9), F(1, 900)).set(ulps=500),
    case("spherical_jn", i32(low=0, high=9), F(0.5, 9)).set(ulps=1e4),
    case("spherical_yn", i32(low=0, high=9), F(0.5, 9)).set(ulps=1e5),
    case("spherical_in", i32(low=0, high=9), F(0.5, 9)).set(ulps=1000),
    case("spherical_kn", i32(low=0, high=9), F(0.5, 9)).set(ulps=1000),
    case("spherical_jn", i32(low=0, high=9), F(0.5, 9), derivative=True).set(ulps=1e5),
    case("airy", F(-2, 5)).set(ulps=1e4), case("airy", F(-9, -3)).set(ulps=1e5),
    case("airye", F(0.1, 90)).set(ulps=1000),
    case("ellipk", F(-3, 0.99)), case("ellipkm1", F(1e-9, 1e-6)).set(order=0),
    case("ellipe", F(-3, 0.99)).set(ulps=200),
    case("ellipkinc", F(-5, 5), F(-3, 0.9)).set(ulps=200),
    case("ellipeinc", F(-5, 5), F(-3, 0.9)).set(ulps=200),
    case("ellipj", F(-3, 3), F(0.05, 0.95)).set(ulps=1e4),
    case("elliprc", F(0.1, 5), F(0.1, 5)), case("elliprc", F(0.1, 5), F(-5, -0.1)),
    case("elliprf", F(0.1, 5), F(0.1, 5), F(0.1, 5)),
    case("elliprd", F(0.1, 5), F(0.1, 5), F(0.1, 5)),
    case("elliprg", F(0.1, 5), F(0.1, 5), F(0.1, 5)).set(ulps=200),
    case("elliprj", F(0.1, 5), F(0.1, 5), F(0.1, 5), F(0.1, 5)).set(ulps=1000),
    case("elliprj", F(0.1, 5), F(0.1, 5), F(0.1, 5), F(-5, -0.1)).set(ulps=1e5),
    case("eval_legendre", i32(low=0, high=9), F(-1, 1)).set(ulps=3000),
    case("eval_chebyt", i32(low=0, high=9), F(-1, 1)).set(ulps=3000),
    case("eval_chebyu", i32(low=0, high=9), F(-1, 1)).set(ulps=3000),
    case("eval_hermite", i32(low=0, high=6), F(-3, 3)).set(ulps=3000),
    case("eval_hermitenorm", i32(low=0, high=6), F(-3, 3)).set(ulps=3000),
    case("eval_laguerre", i32(low=0, high=6), F(0, 9)).set(ulps=3e4),
    case("eval_genlaguerre", i32(low=0, high=6), F(-0.5, 3), F(0, 9)).set(ulps=3e4),
    case("eval_gegenbauer", i32(low=0, high=6), F(0.2, 3), F(-1, 1)).set(ulps=3e4),
    case("eval_jacobi", i32(low=0, high=6), F(-0.5, 3), F(-0.5, 3), F(-1, 1)).set(ulps=3e4),
    case("voigt_profile", F(-5, 5), F(0.1, 3), F(0.1, 3)).set(ulps=300),
    case("shichi", F(0.6, 9)).set(ulps=200), case("shichi", F(-30, -9)).set(ulps=200),
    case("lambertw", F(-0.36, 9)).set(
        expected=lambda z: special.lambertw(z), observe=lambda _, w: w.real, ulps=1000
    ),
    case("lambertw", F(-0.3, -0.01), k=-1).set(
        expected=lambda z, k: special.lambertw(z, k), observe=lambda _, w: w.real, ulps=300
    ),
    case("huber", F(0.1, 2), F(-5, 5)).set(order=1), case("pseudo_huber", F(0.1, 2), F(-5, 5)),
    case("pseudo_huber", F(0.1, 2), F(-1e-3, 1e-3)).set(order=0),
    case("exprel", F(-9, 9)), case("exprel", F(-1e-3, 1e-3)), case("cosm1", F(-3, 3)),
    case("cosm1", F(-1e-3, 1e-3)), case("log_expit", F(-30, 30)).set(ulps=300),
    case("inv_boxcox", F(-0.3, 0.4), F(-2, 2)).set(ulps=200),
    case("inv_boxcox", F(0.1, 5), F(-1e-4, 1e-4)).set(ulps=500),
    case("inv_boxcox1p", F(-0.3, 0.4), F(-2, 2)).set(ulps=200),
    case("ndtri_exp", F(-1e3, -3)), case("ndtri_exp", F(-2.5, -0.01)).set(ulps=3000),
    case("perm", N(9, 20), N(0, 9)).set(order=0),
    case("perm", F(9, 20), F(1, 5)).set(ulps=200),
]  # fmt: skip
