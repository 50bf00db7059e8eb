"""Test cases of the special functions, one line for each, with intervals of their operands.

The tests of the wheel compare with SciPy in double precision; the integration tests compare the
same cases with the reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from primax_core.extend import Operand, i32
from test_support import Case


def F(low: float, high: float) -> Operand:
    """Real numbers."""
    return Operand(np.float32, (), low, high)


def N(low: float, high: float) -> Operand:
    """Integral numbers as floats."""
    end = high + 0.5
    integral = lambda rng, shape: np.floor(rng.uniform(low, end, shape))
    return Operand(np.float32, (), low, end, make=integral)


def Z(low: float, high: float) -> Operand:
    """Complex numbers."""
    return Operand(np.complex64, (), low, high)


def case(name: str, *args: Operand, **params: Any) -> Case:
    """A case whose values are selected by its intervals, because all operands are scalars."""
    kinds = ["n" if a.make else a.dtype.kind for a in args]
    intervals = [f"{a.low}..{a.high}{kind}" for a, kind in zip(args, kinds)]
    return Case(name, args, params, seed=f"{name}({', '.join(intervals)})")


CASES = [
    case("erf", F(-3, 3)),
    case("erf", F(-1e-3, 1e-3)),
    case("erfc", F(-3, 8)),
    case("erfinv", F(-0.99, 0.99)),
    case("erfcinv", F(0.001, 1.999)),
    case("erfcinv", F(1e-30, 1e-20)),
    case("erfcx", F(-4, 4)),
    case("erfcx", F(4, 1000)),
    case("erfcx", Z(-3, 3)).set(ulps=300),
    case("dawsn", F(-4, 4)),
    case("dawsn", F(4, 100)),
    case("dawsn", F(-1e-3, 1e-3)),
    case("wofz", Z(-4, 4)).set(ulps=300),
    case("wofz", Z(0, 30)).set(ulps=300),
    case("ndtr", F(-5, 5)),
    case("ndtr", F(-12, -5)).set(ulps=200),
    case("ndtri", F(0.01, 0.99)),
    case("ndtri", F(1e-30, 1e-20)),
    case("log_ndtr", F(-5, 5)),
    case("log_ndtr", F(-300, -20)),
    case("log_ndtr", F(5, 9)).set(ulps=3000),
    case("gammaln", F(0.1, 40)),
    case("gammaln", F(-5.9, -5.1)),
    case("loggamma", F(0.1, 40)),
    case("loggamma", Z(-6, 6)).set(ulps=400, derivative_differs="the reference refuses vjp"),
    case("gamma", F(0.1, 20)).set(ulps=200),
    case("gamma", F(-5.9, -5.1)).set(ulps=200),
    case("gamma", Z(-4, 4)).set(ulps=400),
    case("gammasgn", F(-9, 9)).set(order=0),
    case("factorial", N(0, 30)).set(by=(0,), ulps=200),
    case("factorial", F(0, 20)).set(ulps=200),
    case("poch", F(0.5, 5), F(0.5, 5)).set(ulps=200),
    case("poch", F(-5.9, -5.1), N(1, 4)).set(by=(0,), ulps=200),
    case("comb", N(5, 20), N(0, 5)).set(order=0, ulps=0),
    case("comb", F(6, 20), F(1, 5)).set(ulps=200),
    case("comb", N(1, 9), N(0, 5), repetition=True).set(order=0, ulps=0),
    case("beta", F(0.2, 9), F(0.2, 9)).set(ulps=200),
    case("betaln", F(0.2, 9), F(9, 1e6)).set(ulps=1e6),
    case("betaln", F(20, 1e4), F(20, 1e4)).set(ulps=3000),
    case("betainc", F(0.5, 5), F(0.5, 5), F(0.05, 0.95)).set(by=(2,), ulps=200),
    case("gammainc", F(0.5, 9), F(0.1, 9)).set(ulps=200),
    case("gammaincc", F(0.5, 9), F(0.1, 9)).set(ulps=200),
    case("digamma", F(0.1, 30)).set(ulps=200),
    case("polygamma", i32(low=0, high=4), F(0.3, 9)).set(
        expected=lambda n, x: special.polygamma(n.astype(int), x), ulps=200
    ),
    case("zeta", F(1.5, 9), F(0.5, 5)).set(by=(1,)),
    case("multigammaln", F(3, 20), d=4).set(
        expected=lambda x, d: np.array([special.multigammaln(v, d) for v in x]), ulps=200
    ),
    case("entr", F(0.01, 5)),
    case("rel_entr", F(0.1, 5), F(0.1, 5)),
    case("kl_div", F(0.1, 0.5), F(1, 5)),
    case("xlogy", F(-3, 3), F(0.1, 5)),
    case("xlogy", Z(-3, 3), Z(0.1, 5)),
    case("xlog1py", F(-3, 3), F(-0.9, 5)),
    case("xlog1py", F(-3, 3), F(-1e-4, 1e-4)),
    case("logit", F(0.01, 0.99)),
    case("logit", F(0.49, 0.51)),
    case("expit", F(-30, 30)),
    case("expit", Z(-3, 3)).set(expected=lambda z: 1 / (1 + np.exp(-z))),
    case("boxcox", F(0.1, 5), F(-2, 2)),
    case("boxcox1p", F(-0.5, 5), F(-2, 2)),
    case("boxcox", F(0.1, 5), F(-1e-4, 1e-4)).set(
        ulps=300, derivative_differs="the reference has lost its digits"
    ),
    case("i0", F(-9, 9)),
    case("i0e", F(-30, 30)),
    case("i1", F(-9, 9)),
    case("i1e", F(-30, 30)),
    case("expi", F(0.5, 40)),
    case("expi", F(-9, -0.1)),
    case("exp1", F(0.05, 30)),
    case("expn", N(0, 9), F(0.1, 1.9)).set(by=(1,), ulps=200),
    case("expn", N(1, 9), F(2, 40)).set(by=(1,), ulps=200),
    case("sici", F(-6, 6)).set(ulps=2000),
    case("sici", F(6, 50)).set(ulps=2000),
    case("fresnel", F(-2, 2)),
    case("fresnel", F(2, 20)).set(ulps=300),
    case("spence", F(0.01, 9)).set(derivative_differs="the reference is NaN where two cases meet"),
    case("owens_t", F(-4, 4), F(-1, 1)).set(ulps=1000),
    case("owens_t", F(-4, 4), F(1, 5)),
    case("hyp1f1", F(0.5, 3), F(0.5, 3), F(-20, 20)).set(ulps=2000),
    case("hyp2f1", F(0.5, 2), F(0.5, 2), F(2, 4), F(-0.9, 0.85)).set(ulps=500),
    case("hyp2f1", F(0.5, 2), F(0.5, 2), F(2, 4), F(-9, -1)).set(
        ulps=500, differs="the reference diverges"
    ),
]  # fmt: skip
