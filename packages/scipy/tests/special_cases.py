"""Test cases: calls of special functions, one line for each.

A case specifies intervals of its operands. The tests of the wheel compare with SciPy in
double precision; the integration tests compare the same cases with the reference.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np


class Interval(NamedTuple):
    """Numbers from ``low`` to ``high``, optionally integral; complex ones are from a square."""

    low: float
    high: float
    kind: str = "f"

    def draw(self, rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
        if self.kind == "i":
            return rng.integers(int(self.low), int(self.high) + 1, shape).astype(np.int32)
        x = rng.uniform(self.low, self.high, shape)
        if self.kind == "n":  # integral numbers as floats
            x = np.floor(x)
        if self.kind == "c":
            x = x + 1j * rng.uniform(self.low, self.high, shape)
            return x.astype(np.result_type(dtype, np.complex64))
        return x.astype(dtype)


class Case(NamedTuple):
    """One call, with arguments drawn from intervals.

    Attributes:
      name: the function.
      args: an :class:`Interval` for each argument.
      params: further arguments by name.
      by: the differentiated arguments.
      tolerance: the errors allowed, in units of the dtype's precision.
      differs: the reason if the reference differs.
      derivative_differs: the reason if the derivative of the reference differs.
    """

    name: str
    args: tuple[Interval, ...]
    params: dict[str, Any] = {}
    by: tuple[int, ...] = ()
    tolerance: float = 64.0
    differs: str = ""
    derivative_differs: str = ""

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{a.low}..{a.high}{a.kind}' for a in self.args)})"

    def draw(self, dtype: Any, shape: tuple[int, ...] = (40,)) -> list[np.ndarray]:
        """Arguments, the same in every run."""
        rng = np.random.default_rng(zlib.crc32(repr(self).encode()))
        return [a.draw(rng, dtype, shape) for a in self.args]


def F(low: float, high: float) -> Interval:
    """Real numbers."""
    return Interval(low, high)


def N(low: float, high: float) -> Interval:
    """Integral numbers as floats."""
    return Interval(low, high + 0.5, "n")


def Z(low: float, high: float) -> Interval:
    """Complex numbers."""
    return Interval(low, high, "c")


def case(name: str, *args: Interval, **options: Any) -> Case:
    """A case that is differentiated with respect to all arguments by default."""
    params = {k: options.pop(k) for k in list(options) if k not in Case._fields}
    by = options.pop("by", tuple([i for i, a in enumerate(args) if a.kind in "fc"]))
    return Case(name, args, params, by, **options)


CASES = [
    case("erf", F(-3, 3)),
    case("erf", F(-1e-3, 1e-3)),
    case("erfc", F(-3, 8)),
    case("erfinv", F(-0.99, 0.99)),
    case("erfcinv", F(0.001, 1.999)),
    case("erfcinv", F(1e-30, 1e-20)),
    case("erfcx", F(-4, 4)),
    case("erfcx", F(4, 1000)),
    case("erfcx", Z(-3, 3), tolerance=300),
    case("dawsn", F(-4, 4)),
    case("dawsn", F(4, 100)),
    case("dawsn", F(-1e-3, 1e-3)),
    case("wofz", Z(-4, 4), tolerance=300),
    case("wofz", Z(0, 30), tolerance=300),
    case("ndtr", F(-5, 5)),
    case("ndtr", F(-12, -5), tolerance=200),
    case("ndtri", F(0.01, 0.99)),
    case("ndtri", F(1e-30, 1e-20)),
    case("log_ndtr", F(-5, 5)),
    case("log_ndtr", F(-300, -20)),
    case("log_ndtr", F(5, 9), tolerance=3000),
    case("gammaln", F(0.1, 40)),
    case("gammaln", F(-5.9, -5.1)),
    case("loggamma", F(0.1, 40)),
    case("loggamma", Z(-6, 6), tolerance=400, derivative_differs="has no reverse mode"),
    case("gamma", F(0.1, 20), tolerance=200),
    case("gamma", F(-5.9, -5.1), tolerance=200),
    case("gamma", Z(-4, 4), tolerance=400),
    case("gammasgn", F(-9, 9), by=()),
    case("factorial", N(0, 30), by=(0,), tolerance=200),
    case("factorial", F(0, 20), tolerance=200),
    case("poch", F(0.5, 5), F(0.5, 5), tolerance=200),
    case("poch", F(-5.9, -5.1), N(1, 4), by=(0,), tolerance=200),
    case("comb", N(5, 20), N(0, 5), by=(), tolerance=0),
    case("comb", F(6, 20), F(1, 5), tolerance=200),
    case("comb", N(1, 9), N(0, 5), by=(), repetition=True, tolerance=0),
    case("beta", F(0.2, 9), F(0.2, 9), tolerance=200),
    case("betaln", F(0.2, 9), F(9, 1e6), tolerance=1e6),
    case("betaln", F(20, 1e4), F(20, 1e4), tolerance=3000),
    case("betainc", F(0.5, 5), F(0.5, 5), F(0.05, 0.95), by=(2,), tolerance=200),
    case("gammainc", F(0.5, 9), F(0.1, 9), tolerance=200),
    case("gammaincc", F(0.5, 9), F(0.1, 9), tolerance=200),
    case("digamma", F(0.1, 30), tolerance=200),
    case("polygamma", Interval(0, 4, "i"), F(0.3, 9), tolerance=200),
    case("zeta", F(1.5, 9), F(0.5, 5), by=(1,)),
    case("multigammaln", F(3, 20), d=4, tolerance=200),
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
    case("expit", Z(-3, 3)),
    case("boxcox", F(0.1, 5), F(-2, 2)),
    case("boxcox1p", F(-0.5, 5), F(-2, 2)),
    case(
        "boxcox", F(0.1, 5), F(-1e-4, 1e-4), tolerance=300, derivative_differs="has lost its digits"
    ),
    case("i0", F(-9, 9)),
    case("i0e", F(-30, 30)),
    case("i1", F(-9, 9)),
    case("i1e", F(-30, 30)),
    case("expi", F(0.5, 40)),
    case("expi", F(-9, -0.1)),
    case("exp1", F(0.05, 30)),
    case("expn", N(0, 9), F(0.1, 1.9), tolerance=200),
    case("expn", N(1, 9), F(2, 40), tolerance=200),
    case("sici", F(-6, 6), tolerance=2000),
    case("sici", F(6, 50), tolerance=2000),
    case("fresnel", F(-2, 2)),
    case("fresnel", F(2, 20), tolerance=300),
    case("spence", F(0.01, 9), derivative_differs="is NaN between some of its cases"),
    case("owens_t", F(-4, 4), F(-1, 1), tolerance=1000),
    case("owens_t", F(-4, 4), F(1, 5)),
    case("hyp1f1", F(0.5, 3), F(0.5, 3), F(-20, 20), tolerance=2000),
    case("hyp2f1", F(0.5, 2), F(0.5, 2), F(2, 4), F(-0.9, 0.85), tolerance=500),
    case("hyp2f1", F(0.5, 2), F(0.5, 2), F(2, 4), F(-9, -1), tolerance=500, differs="diverges"),
]  # fmt: skip
