"""Functions with their exact values and the arguments that they are tried with."""

from __future__ import annotations

from typing import Any, Final

import mpmath as mp

from .case import Case
from .cases_scipy import SCIPY
from .cases_stats import DISTRIBUTIONS
from .exact_values import (
    ei,
    erfc_inverse,
    kl_divergence,
    log_add,
    log_beta,
    log_lower_tail,
    lower_gamma,
    regularized_beta,
    upper_gamma,
)
from .points import (
    Draw,
    around,
    linear,
    natural,
    near_each_other,
    pair,
    rows,
    scaled,
    sums_near_one,
    whole,
)

# Arguments. Results that overflow or are subnormal are left out.

ALL: Final = scaled(1e-30, 1e30, 0)
POSITIVE: Final = scaled(1e-30, 1e30)
SMALL: Final = scaled(1e-6, 1, 0)
UNIT: Final = linear(-1, 1)
EXPONENTS: Final = linear(-87, 88)
DOUBLE_EXPONENTS: Final = linear(-700, 700)
TURNS: Final = linear(-20, 20)
NEAR_ONE: Final = around(1.0, 0.5)
SHARES: Final = (linear(0, 1), scaled(1e-30, 0.5), around(0.5, 0.1), around(1.0, 0.1, side=-1))


def _numpy(name: str, exact: Any, *ranges: Draw, **options: Any) -> Case:
    return Case(f"numpy.{name}", exact, ranges, **options)


def _special(name: str, exact: Any, *ranges: Draw, **options: Any) -> Case:
    return Case(f"scipy.special.{name}", exact, ranges, **options)


def _nn(name: str, exact: Any, *ranges: Draw, **options: Any) -> Case:
    return Case(f"nn.{name}", exact, ranges, peer=False, **options)


ELEMENTARY: Final = [
    _numpy("exp", mp.exp, EXPONENTS, SMALL, double=(DOUBLE_EXPONENTS,)),
    _numpy("exp2", lambda x: mp.mpf(2) ** x, linear(-126, 127), SMALL, double=(linear(-1e3, 1e3),)),
    _numpy("expm1", mp.expm1, EXPONENTS, SMALL, linear(-2, 2)),
    _numpy("log", mp.log, POSITIVE, NEAR_ONE),
    _numpy("log2", lambda x: mp.log(x) / mp.log(2), POSITIVE, NEAR_ONE),
    _numpy("log10", mp.log10, POSITIVE, NEAR_ONE),
    _numpy("log1p", mp.log1p, POSITIVE, SMALL, around(-1.0, 0.5, side=1)),
    _numpy("sqrt", mp.sqrt, POSITIVE),
    _numpy("cbrt", lambda x: mp.sign(x) * mp.cbrt(abs(x)), ALL),
    _numpy("power", mp.power, pair(scaled(1e-3, 1e3), linear(-10, 10)), pair(NEAR_ONE, TURNS)),
    _numpy("hypot", mp.hypot, pair(ALL, ALL), pair(UNIT, UNIT)),
    _numpy("logaddexp", log_add(mp.e), pair(TURNS, TURNS), pair(linear(-2, 0), linear(-2, 0))),
    _numpy("logaddexp2", log_add(2), pair(TURNS, TURNS), pair(linear(-3, 0), linear(-3, 0))),
]

CIRCULAR: Final = [
    _numpy("sin", mp.sin, TURNS, SMALL, around(3.141592653589793), linear(-1e4, 1e4)),
    _numpy("cos", mp.cos, TURNS, SMALL, around(1.5707963267948966), linear(-1e4, 1e4)),
    _numpy("tan", mp.tan, TURNS, SMALL, around(1.5707963267948966)),
    _numpy("arcsin", mp.asin, UNIT, SMALL, around(1.0, 0.1, side=-1)),
    _numpy("arccos", mp.acos, UNIT, SMALL, around(1.0, 0.1, side=-1)),
    _numpy("arctan", mp.atan, ALL, linear(-3, 3)),
    _numpy("arctan2", mp.atan2, pair(ALL, ALL), pair(UNIT, UNIT)),
    _numpy("sinh", mp.sinh, linear(-89, 89), SMALL, linear(-2, 2), double=(DOUBLE_EXPONENTS,)),
    _numpy("cosh", mp.cosh, linear(-89, 89), SMALL, linear(-2, 2), double=(DOUBLE_EXPONENTS,)),
    _numpy("tanh", mp.tanh, linear(-10, 10), SMALL),
    _numpy("arcsinh", mp.asinh, ALL, linear(-3, 3)),
    _numpy("arccosh", mp.acosh, scaled(1.0, 1e30), around(1.0, 0.5, side=1)),
    _numpy("arctanh", mp.atanh, UNIT, SMALL, around(1.0, 0.1, side=-1)),
    _numpy("sinc", mp.sincpi, linear(-6, 6), SMALL, around(1.0, 0.3), linear(-0.5, 0.5)),
]

ERRORS: Final = [
    _special("erf", mp.erf, linear(-4, 4), SMALL),
    _special("erfc", mp.erfc, linear(-4, 9), SMALL, double=(linear(9, 26),)),
    _special("erfinv", mp.erfinv, UNIT, SMALL, around(1.0, 0.1, side=-1)),
    _special("erfcinv", erfc_inverse, linear(0, 2), scaled(1e-30, 0.5), around(1.0)),
    _special("erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), linear(-5, 5), scaled(1e-3, 1e6)),
    _special(
        "dawsn", lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
        linear(-5, 5), scaled(1e-6, 100, 0),
    ),
    _special("ndtr", mp.ncdf, linear(-12, 6), SMALL, double=(linear(-37, -12),)),
    _special("ndtri", lambda p: -mp.sqrt(2) * erfc_inverse(2 * p), *SHARES),
    _special("log_ndtr", log_lower_tail, linear(-40, 5), SMALL, scaled(1, 1e4, -1)),
]  # fmt: skip

GAMMAS: Final = [
    _special("gamma", mp.gamma, linear(0, 34), linear(-8, 0), scaled(1e-6, 1),
             double=(linear(34, 170),)),
    _special("gammaln", lambda x: mp.log(abs(mp.gamma(x))), linear(0, 30), scaled(1e-6, 1e6),
             around(1.0), around(2.0), linear(-8, 0)),
    _special("digamma", mp.digamma, linear(0, 30), scaled(1e-6, 1e6), linear(-8, 0),
             around(1.4616321449683623)),
    _special("polygamma", lambda n, x: mp.polygamma(int(n), x), pair(whole(1, 4), linear(0.1, 30))),
    _special("beta", mp.beta, pair(linear(0.1, 10), linear(0.1, 10))),
    _special("betaln", log_beta, pair(linear(0, 30), linear(0, 30)),
             pair(scaled(1e-3, 1e6), scaled(1e-3, 1e6)), pair(linear(0, 2), linear(0, 2)),
             near_each_other(around(1.0, 0.5))),
    _special("betainc", regularized_beta, pair(scaled(0.1, 50), scaled(0.1, 50), linear(0, 1))),
    _special("gammainc", lower_gamma, pair(scaled(0.1, 50), scaled(0.1, 60))),
    _special("gammaincc", upper_gamma, pair(scaled(0.1, 50), scaled(0.1, 60))),
    _special("zeta", mp.zeta, pair(linear(1.1, 20), scaled(0.1, 50))),
    _special("factorial", mp.factorial, natural(0, 33)),
    _special("comb", mp.binomial, pair(natural(20, 60), natural(0, 20))),
    _special("poch", mp.rf, pair(linear(0.1, 10), linear(0.1, 10))),
]  # fmt: skip

OTHERS: Final = [
    _special("i0", lambda x: mp.besseli(0, x), linear(-20, 20), SMALL),
    _special("i0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), linear(-20, 20), SMALL),
    _special("i1", lambda x: mp.besseli(1, x), linear(-20, 20), SMALL),
    _special("i1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), linear(-20, 20), SMALL),
    _special("expi", ei, linear(-20, 40), scaled(1e-6, 1, 0), around(0.3725074107813666),
             linear(-2, -1.5)),
    _special("exp1", mp.e1, linear(0, 40), scaled(1e-6, 1), linear(0.5, 2.5)),
    _special("expn", mp.expint, pair(natural(1, 5), linear(0, 20)),
             pair(natural(1, 5), linear(0.5, 3))),
    _special("sici", mp.si, linear(-20, 20), SMALL, pick=0),
    _special("sici", mp.ci, linear(0.1, 20), around(0.6165054856207162), pick=1),
    _special("fresnel", mp.fresnels, linear(-6, 6), SMALL, pick=0),
    _special("fresnel", mp.fresnelc, linear(-6, 6), SMALL, pick=1),
    _special("spence", lambda x: mp.polylog(2, 1 - x), linear(0, 10), scaled(1e-6, 1e6),
             around(1.0, 0.3)),
    _special("entr", lambda x: -x * mp.log(x), POSITIVE, NEAR_ONE),
    _special("rel_entr", lambda p, q: p * mp.log(p / q), pair(linear(0, 1), linear(0, 1)),
             near_each_other(linear(0, 1))),
    _special("kl_div", kl_divergence, pair(linear(0, 1), linear(0, 1)),
             near_each_other(linear(0, 1))),
    _special("xlogy", lambda x, y: x * mp.log(y), pair(ALL, NEAR_ONE), pair(UNIT, POSITIVE)),
    _special("xlog1py", lambda x, y: x * mp.log1p(y), pair(UNIT, SMALL), pair(UNIT, POSITIVE)),
    _special("logit", lambda p: mp.log(p / (1 - p)), *SHARES),
    _special("expit", lambda x: 1 / (1 + mp.exp(-x)), EXPONENTS, SMALL),
    _special("boxcox", lambda x, c: mp.expm1(c * mp.log(x)) / c, pair(scaled(1e-3, 1e3), UNIT)),
    _special("boxcox1p", lambda x, c: mp.expm1(c * mp.log1p(x)) / c, pair(scaled(1e-3, 9), UNIT)),
    _special("hyp1f1", mp.hyp1f1, pair(linear(0.5, 5), linear(0.5, 5), linear(-5, 10))),
    _special("hyp2f1", mp.hyp2f1, pair(linear(0.5, 3), linear(0.5, 3), linear(3, 6), UNIT)),
    _special("logsumexp", lambda x: mp.log(mp.fsum(map(mp.exp, x))), rows(linear(-20, 20), 10),
             sums_near_one(10), keywords={"axis": -1}),
    _nn("softplus", lambda x: mp.log1p(mp.exp(x)), EXPONENTS, linear(-5, 5)),
    _nn("sigmoid", lambda x: 1 / (1 + mp.exp(-x)), EXPONENTS, linear(-5, 5)),
    _nn("log_sigmoid", lambda x: -mp.log1p(mp.exp(-x)), EXPONENTS, linear(-5, 5)),
    _nn("silu", lambda x: x / (1 + mp.exp(-x)), linear(-80, 88), linear(-5, 5)),
]  # fmt: skip

CASES: Final = [*ELEMENTARY, *CIRCULAR, *ERRORS, *GAMMAS, *OTHERS, *SCIPY, *DISTRIBUTIONS]
