"""Special functions of SciPy that jax lacks, with their exact values and arguments."""

from __future__ import annotations

from typing import Any, Final

import mpmath as mp

from .case import Case
from .exact_values import erfc_inverse, owens_t, voigt
from .points import Draw, around, linear, pair, scaled, whole

ORDERS: Final = linear(0, 20)
WIDE: Final = scaled(0.05, 80)
PARAMETER: Final = linear(-3, 1)
LENGTHS: Final = scaled(0.01, 100)
UNIT: Final = linear(-1, 1)
DEGREES: Final = whole(0, 20)


def _special(name: str, exact: Any, *ranges: Draw, **options: Any) -> Case:
    return Case(f"scipy.special.{name}", exact, ranges, slow=True, **options)


def _integral(fun: Any) -> Any:
    """A function whose first argument is an integer."""
    return lambda n, *xs: fun(int(n), *xs)


BESSEL: Final = [
    _special("j0", lambda x: mp.besselj(0, x), linear(-40, 40), scaled(1e-3, 1)),
    _special("j1", lambda x: mp.besselj(1, x), linear(-40, 40), scaled(1e-3, 1)),
    _special("y0", lambda x: mp.bessely(0, x), linear(0, 40), scaled(1e-3, 1)),
    _special("y1", lambda x: mp.bessely(1, x), linear(0, 40), scaled(1e-3, 1)),
    _special("k0", lambda x: mp.besselk(0, x), linear(0, 60), scaled(1e-3, 1)),
    _special("k0e", lambda x: mp.besselk(0, x) * mp.exp(x), linear(0, 60), scaled(1e-3, 1)),
    _special("k1", lambda x: mp.besselk(1, x), linear(0, 60), scaled(1e-3, 1)),
    _special("k1e", lambda x: mp.besselk(1, x) * mp.exp(x), linear(0, 60), scaled(1e-3, 1)),
    _special("jv", mp.besselj, pair(ORDERS, WIDE), pair(linear(0, 3), linear(0, 30))),
    _special("yv", mp.bessely, pair(ORDERS, WIDE), pair(linear(0, 3), linear(0, 30))),
    _special("iv", mp.besseli, pair(ORDERS, WIDE), pair(linear(0, 3), linear(0, 30))),
    _special("ive", lambda v, x: mp.besseli(v, x) * mp.exp(-x), pair(ORDERS, WIDE)),
    _special("kv", mp.besselk, pair(ORDERS, WIDE), pair(linear(0, 3), linear(0, 30))),
    _special("kve", lambda v, x: mp.besselk(v, x) * mp.exp(x), pair(ORDERS, WIDE)),
    *(
        _special("airy", lambda x, _fun=fun, _n=n: _fun(x, derivative=_n), linear(-12, 12), UNIT,
                 pick=i)
        for i, (fun, n) in enumerate(
            [(mp.airyai, 0), (mp.airyai, 1), (mp.airybi, 0), (mp.airybi, 1)]
        )
    ),
]  # fmt: skip


def _jacobi(kind: str) -> Any:
    return lambda u, m: mp.ellipfun(kind, u=u, m=m)


ELLIPTIC: Final = [
    _special("ellipk", mp.ellipk, PARAMETER, scaled(1e-6, 1, 0), around(1.0, 0.5, side=-1)),
    _special("ellipkm1", lambda p: mp.ellipk(1 - p), scaled(1e-30, 1), linear(0, 3)),
    _special("ellipe", mp.ellipe, PARAMETER, scaled(1e-6, 1, 0), around(1.0, 0.5, side=-1)),
    _special("ellipkinc", mp.ellipf, pair(linear(-1.5, 1.5), PARAMETER), pair(WIDE, PARAMETER)),
    _special("ellipeinc", mp.ellipe, pair(linear(-1.5, 1.5), PARAMETER), pair(WIDE, PARAMETER)),
    *(
        _special("ellipj", _jacobi(kind), pair(linear(-3, 3), linear(0, 1)), pick=i)
        for i, kind in enumerate(("sn", "cn", "dn"))
    ),
    _special("elliprc", mp.elliprc, pair(LENGTHS, LENGTHS)),
    _special("elliprd", mp.elliprd, pair(LENGTHS, LENGTHS, LENGTHS)),
    _special("elliprf", mp.elliprf, pair(LENGTHS, LENGTHS, LENGTHS)),
    _special("elliprg", mp.elliprg, pair(LENGTHS, LENGTHS, LENGTHS)),
    _special("elliprj", mp.elliprj, pair(LENGTHS, LENGTHS, LENGTHS, LENGTHS)),
]

POLYNOMIALS: Final = [
    _special("eval_legendre", _integral(mp.legendre), pair(DEGREES, UNIT)),
    _special("eval_chebyt", _integral(mp.chebyt), pair(DEGREES, UNIT)),
    _special("eval_chebyu", _integral(mp.chebyu), pair(DEGREES, UNIT)),
    _special("eval_hermite", _integral(mp.hermite), pair(DEGREES, linear(-5, 5))),
    _special(
        "eval_hermitenorm",
        lambda n, x: mp.hermite(int(n), x / mp.sqrt(2)) / mp.mpf(2) ** (n / 2),
        pair(DEGREES, linear(-5, 5)),
    ),
    _special("eval_laguerre", lambda n, x: mp.laguerre(int(n), 0, x), pair(DEGREES, linear(0, 20))),
    _special(
        "eval_genlaguerre", _integral(mp.laguerre), pair(DEGREES, linear(0, 4), linear(0, 20))
    ),
    _special("eval_gegenbauer", _integral(mp.gegenbauer), pair(DEGREES, linear(0.1, 4), UNIT)),
    _special("eval_jacobi", _integral(mp.jacobi), pair(DEGREES, linear(0, 4), linear(0, 4), UNIT)),
]

RARE: Final = [
    _special("lambertw", mp.lambertw, scaled(1e-6, 1e6), linear(-0.3, 3), around(-0.3, 0.06)),
    _special("owens_t", owens_t, pair(linear(-4, 4), linear(-3, 3)), pair(linear(0, 7), UNIT)),
    _special("shichi", mp.shi, linear(-30, 30), scaled(1e-6, 1), pick=0),
    _special("shichi", mp.chi, linear(0, 30), scaled(1e-6, 1), pick=1),
    _special("voigt_profile", voigt, pair(linear(-10, 10), scaled(0.01, 10), scaled(0.01, 10))),
    _special(
        "ndtri_exp", lambda y: -mp.sqrt(2) * erfc_inverse(2 * mp.exp(y)),
        linear(-30, 0), scaled(1, 1e4, -1), scaled(1e-12, 1, -1),
    ),
    _special("log_expit", lambda x: -mp.log1p(mp.exp(-x)), linear(-80, 80), linear(-5, 5)),
    _special("exprel", lambda x: mp.expm1(x) / x, linear(-80, 80), scaled(1e-9, 1, 0)),
    _special("cosm1", lambda x: -2 * mp.sin(x / 2) ** 2, linear(-10, 10), scaled(1e-6, 1, 0)),
]  # fmt: skip

SCIPY: Final = [*BESSEL, *ELLIPTIC, *POLYNOMIALS, *RARE]
