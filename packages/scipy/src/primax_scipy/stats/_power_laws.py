"""Distributions whose tails are powers: Pareto, Cauchy, half-Cauchy."""

from __future__ import annotations

import math
from typing import Any, Final

from primax_core import lax
from primax_numpy import random

from .._elementary import choose
from ._continuous import Continuous, functions
from ._domains import POSITIVE
from ._logarithms import log_one_plus_square


def _pareto_variance(b: Any) -> Any:
    finite = b > 2
    at = choose(finite, b, 3.0)
    return choose(finite, at / (lax.square(at - 1) * (at - 2)), math.inf)


pareto: Final = functions(
    Continuous(
        name="pareto",
        title="Pareto distribution on ``[loc + scale, inf)`` with density ``b x^-(b + 1)``",
        shapes={"b": POSITIVE},
        support=(1.0, math.inf),
        logpdf=lambda x, b: lax.log(b) - (b + 1) * lax.log(x),
        logsf=lambda x, b: -b * lax.log(x),
        quantile_of_log=lambda log, b: lax.exp(-log / b),
        mean=lambda b: choose(b > 1, b / choose(b > 1, b - 1, 1.0), math.inf),
        var=_pareto_variance,
        entropy=lambda b: 1 + 1 / b - lax.log(b),
        sample=lambda key, shape, dtype, b: random.pareto(key, b, shape, dtype),
    )
)


def _cauchy_cdf(z: Any) -> Any:
    """The CDF, accurate in the lower tail, where it is the angle of ``1 / -z``."""
    return lax.atan2(lax.full_like(z, 1), -z) * (1 / math.pi)


def _cauchy_quantile(q: Any) -> Any:
    """The quantile, computed per half so that both tails are accurate."""
    middle = lax.abs(q - 0.5) < 0.25
    near = lax.tan(math.pi * (choose(middle, q, 0.5) - 0.5))
    side = choose(middle, 0.25, choose(q < 0.5, q, 1 - q))
    far = 1 / lax.tan(math.pi * side)
    return choose(middle, near, choose(q < 0.5, -far, far))


cauchy: Final = functions(
    Continuous(
        name="cauchy",
        title="Cauchy distribution",
        symmetric=True,
        logpdf=lambda z: -math.log(math.pi) - log_one_plus_square(z),
        cdf=_cauchy_cdf,
        ppf=_cauchy_quantile,
        mean=lambda one: math.nan,
        var=lambda one: math.nan,
        entropy=lambda one: math.log(4 * math.pi),
        sample=random.cauchy,
    )
)


def _half_cauchy_quantile(q: Any) -> Any:
    left = q < 0.5
    angle = (0.5 * math.pi) * choose(left, q, 1 - q)
    return choose(left, lax.tan(angle), 1 / lax.tan(angle))


halfcauchy: Final = functions(
    Continuous(
        name="halfcauchy",
        title="half-Cauchy distribution, of the absolute value of a Cauchy variable",
        support=(0.0, math.inf),
        logpdf=lambda x: math.log(2 / math.pi) - log_one_plus_square(x),
        cdf=lambda x: lax.atan2(x, lax.full_like(x, 1)) * (2 / math.pi),
        sf=lambda x: lax.atan2(lax.full_like(x, 1), x) * (2 / math.pi),
        ppf=_half_cauchy_quantile,
        isf=lambda q: 1 / _half_cauchy_quantile(q),
        mean=lambda one: math.inf,
        var=lambda one: math.inf,
        entropy=lambda one: math.log(2 * math.pi),
        sample=lambda key, shape, dtype: lax.abs(random.cauchy(key, shape, dtype)),
    )
)
