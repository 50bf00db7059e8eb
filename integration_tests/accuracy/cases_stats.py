"""Distributions: density, tails and quantiles, with arguments from the middle and both tails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from scipy import stats

from .case import Case
from .exact_distributions import EXACT
from .points import Draw, around, linear, natural, scaled

PROBABILITIES: Final = (linear(0, 1), scaled(1e-25, 0.5), around(1.0, 0.5, side=-1))
POSITIVE: Final = scaled(0.3, 30)
CHANCE: Final = linear(0.01, 0.99)


def _below(random: np.random.Generator, n: int) -> np.ndarray:
    return random.uniform(-3, 0.5, n)


def _above(random: np.random.Generator, n: int) -> np.ndarray:
    return random.uniform(0.6, 3, n)


SHAPES: Final[dict[str, tuple[Draw, ...]]] = {
    "norm": (), "lognorm": (scaled(0.2, 3),), "halfnorm": (), "skewnorm": (linear(-5, 5),),
    "truncnorm": (_below, _above), "invgauss": (scaled(0.1, 10),),
    "gamma": (POSITIVE,), "chi2": (POSITIVE,), "invgamma": (POSITIVE,),
    "gennorm": (scaled(0.5, 5),),
    "beta": (POSITIVE, POSITIVE), "t": (POSITIVE,), "f": (POSITIVE, POSITIVE),
    "expon": (), "laplace": (), "logistic": (), "triang": (CHANCE,),
    "loguniform": (scaled(0.01, 1), scaled(2, 100)),
    "pareto": (POSITIVE,), "cauchy": (), "halfcauchy": (),
    "gumbel_r": (), "gumbel_l": (), "weibull_min": (scaled(0.5, 5),),
    "weibull_max": (scaled(0.5, 5),), "rayleigh": (),
    "vonmises": (scaled(0.1, 20),), "wrapcauchy": (linear(0.05, 0.9),),
    "bernoulli": (CHANCE,), "binom": (natural(5, 60), CHANCE), "nbinom": (POSITIVE, CHANCE),
    "geom": (CHANCE,), "poisson": (POSITIVE,), "zipf": (linear(1.5, 6),),
    "betabinom": (natural(5, 30), scaled(0.5, 10), scaled(0.5, 10)),
    "hypergeom": (natural(60, 80), natural(20, 40), natural(10, 30)),
    "skellam": (scaled(0.5, 10), scaled(0.5, 10)),
}  # fmt: skip
"""Draws of the shape parameters."""

FUNCTIONS: Final = {
    "norm": "logpdf cdf ppf logcdf",
    "lognorm": "logpdf cdf sf ppf",
    "halfnorm": "logpdf cdf sf ppf",
    "skewnorm": "logpdf ppf",
    "truncnorm": "logpdf cdf sf ppf",
    "invgauss": "logpdf cdf sf ppf",
    "gamma": "logpdf cdf sf ppf logsf",
    "chi2": "cdf sf ppf logsf",
    "invgamma": "logpdf cdf sf ppf",
    "gennorm": "logpdf cdf ppf",
    "beta": "logpdf cdf sf ppf logcdf",
    "t": "logpdf cdf ppf",
    "f": "logpdf cdf sf ppf",
    "expon": "cdf",
    "laplace": "cdf",
    "logistic": "cdf ppf",
    "triang": "cdf ppf",
    "loguniform": "cdf ppf",
    "pareto": "cdf ppf",
    "halfcauchy": "logpdf cdf",
    "gumbel_r": "logpdf cdf sf",
    "gumbel_l": "logpdf cdf sf",
    "weibull_min": "logpdf cdf sf",
    "weibull_max": "logpdf cdf sf",
    "rayleigh": "logpdf cdf sf",
    "vonmises": "logpdf",
    "wrapcauchy": "cdf",
    "bernoulli": "cdf",
    "binom": "cdf",
    "nbinom": "logpmf cdf sf",
    "geom": "logpmf cdf sf",
    "cauchy": "logpdf cdf ppf",
    "poisson": "logpmf cdf sf logsf",
    "betabinom": "logpmf cdf",
    "hypergeom": "logpmf cdf",
    "skellam": "logpmf cdf",
}
"""Functions of each distribution that are measured."""

METHODS: Final = {
    "logpdf": "log_density", "logpmf": "log_density", "cdf": "cdf", "sf": "sf",
    "ppf": "quantile", "logcdf": "log_cdf", "logsf": "log_sf",
}  # fmt: skip
"""Methods with the exact values."""

LOG_TAILS: Final[dict[str, tuple[Draw, ...]]] = {
    "gamma": (scaled(50, 1e4), POSITIVE),
    "chi2": (scaled(100, 2e4), POSITIVE),
    "beta": (scaled(1e-20, 1e-2), scaled(5, 30), POSITIVE),
    "poisson": (natural(60, 1000), scaled(0.3, 10)),
    "binom": (natural(40, 49), natural(50, 60), scaled(1e-6, 0.1)),
    "skewnorm": (linear(-30, -5), linear(0.5, 5)),
    "norm": (linear(-100, -5),),
}
"""Draws of the argument and the shapes for logarithms of tails, most of which underflow."""


def _arguments(name: str, probability: Draw, *shapes: Draw, upper: bool = False) -> Draw:
    """Quantiles of random probabilities by SciPy, and random shape parameters."""

    def draw(random: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
        values = [shape(random, n) for shape in shapes]
        q = probability(random, n)
        peer = getattr(stats, name)
        with np.errstate(all="ignore"):
            x = np.asarray((peer.isf if upper else peer.ppf)(q, *values), float)
            usual = np.asarray(peer.ppf(0.5, *values), float)
        return np.where(np.abs(x) < 1e30, x, usual), *values

    return draw


def _together(*draws: Draw) -> Draw:
    return lambda random, n: tuple(draw(random, n) for draw in draws)


def _cases(name: str, functions: str) -> Iterator[Case]:
    exact, shapes = EXACT[name], SHAPES[name]
    tail = PROBABILITIES[1]
    middle = [_arguments(name, p, *shapes) for p in PROBABILITIES[:2]]
    inner = (*middle, _arguments(name, tail, *shapes, upper=True))
    outer = tuple(_together(p, *shapes) for p in PROBABILITIES)
    for function in functions.split():
        if function in ("logcdf", "logsf"):
            ranges = (_together(*LOG_TAILS[name]),)
        else:
            ranges = outer if function == "ppf" else inner
        fun: Any = getattr(exact, METHODS[function])
        yield Case(f"scipy.stats.{name}.{function}", fun, ranges, slow=True)


DISTRIBUTIONS: Final = [case for pair in FUNCTIONS.items() for case in _cases(*pair)]
