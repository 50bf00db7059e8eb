"""Distributions whose CDF is an incomplete gamma function."""

from __future__ import annotations

import math
from typing import Any, Final

from primax_core import lax
from primax_numpy import random

from .._elementary import choose
from ._continuous import Continuous, functions
from ._domains import POSITIVE
from ._first_quantiles import of_chi2, of_gamma, of_inverse_gamma
from ._log_tails import log_lower_gamma, log_upper_gamma
from ._logarithms import log_gamma_density


def _gamma_entropy(a: Any) -> Any:
    """``a + lgamma(a) + (1 - a) digamma(a)``, by its asymptotic series for large ``a``."""
    large = a > 300
    small = choose(large, 1.0, a)
    near = small + lax.lgamma(small) + (1 - small) * lax.digamma(small)
    big = choose(large, a, 300.0)
    y = 1 / big
    far = (
        0.5 * (math.log(2 * math.pi) + 1) + 0.5 * lax.log(big)
        - y * (1 / 3 + y * (1 / 12 + y * (1 / 90 - y * (1 / 120))))
    )  # fmt: skip
    return choose(large, far, near)


def _sample_gamma(key: Any, shape: Any, dtype: Any, a: Any) -> Any:
    return random.gamma(key, a, shape, dtype)


gamma: Final = functions(
    Continuous(
        name="gamma",
        title="gamma distribution with density ``x^(a - 1) exp(-x) / Γ(a)``",
        shapes={"a": POSITIVE},
        support=(0.0, math.inf),
        logpdf=log_gamma_density,
        cdf=lambda x, a: lax.igamma(a, x),
        sf=lambda x, a: lax.igammac(a, x),
        logcdf=lambda x, a: log_lower_gamma(a, x),
        logsf=lambda x, a: log_upper_gamma(a, x),
        guess=of_gamma,
        mean=lambda a: a,
        var=lambda a: a,
        entropy=_gamma_entropy,
        sample=_sample_gamma,
    )
)

chi2: Final = functions(
    Continuous(
        name="chi2",
        title="chi-squared distribution with ``df`` degrees of freedom",
        shapes={"df": POSITIVE},
        support=(0.0, math.inf),
        logpdf=lambda x, df: log_gamma_density(0.5 * x, 0.5 * df) - math.log(2),
        cdf=lambda x, df: lax.igamma(0.5 * df, 0.5 * x),
        sf=lambda x, df: lax.igammac(0.5 * df, 0.5 * x),
        logcdf=lambda x, df: log_lower_gamma(0.5 * df, 0.5 * x),
        logsf=lambda x, df: log_upper_gamma(0.5 * df, 0.5 * x),
        guess=of_chi2,
        mean=lambda df: df,
        var=lambda df: 2 * df,
        entropy=lambda df: _gamma_entropy(0.5 * df) + math.log(2),
        sample=lambda key, shape, dtype, df: 2 * _sample_gamma(key, shape, dtype, 0.5 * df),
    )
)


def _log_inverse_gamma_density(x: Any, a: Any) -> Any:
    return log_gamma_density(1 / x, a) - 2 * lax.log(x)


def _over_powers(a: Any, order: int) -> Any:
    """``1 / ((a - 1) ... (a - order))``, infinite where the moment is."""
    finite = a > order
    at = choose(finite, a, order + 1.0)
    product: Any = at - 1
    for k in range(2, order + 1):
        product = product * (at - k)
    return choose(finite, 1 / product, math.inf)


def _inverse_gamma_variance(a: Any) -> Any:
    finite = a > 2
    at = choose(finite, a, 3.0)
    return choose(finite, _over_powers(at, 2) / (at - 1), math.inf)


invgamma: Final = functions(
    Continuous(
        name="invgamma",
        title="inverse gamma distribution, of the inverse of a gamma variable",
        shapes={"a": POSITIVE},
        support=(0.0, math.inf),
        closed=False,
        logpdf=_log_inverse_gamma_density,
        cdf=lambda x, a: lax.igammac(a, 1 / x),
        sf=lambda x, a: lax.igamma(a, 1 / x),
        logcdf=lambda x, a: log_upper_gamma(a, 1 / x),
        logsf=lambda x, a: log_lower_gamma(a, 1 / x),
        guess=of_inverse_gamma,
        mean=lambda a: _over_powers(a, 1),
        var=_inverse_gamma_variance,
        entropy=lambda a: a + lax.lgamma(a) - (1 + a) * lax.digamma(a),
        sample=lambda key, shape, dtype, a: 1 / _sample_gamma(key, shape, dtype, a),
    )
)


def _generalized_normal_cdf(z: Any, beta: Any) -> Any:
    tail = 0.5 * lax.igammac(1 / beta, lax.pow(lax.abs(z), beta))
    return choose(z < 0, tail, 1 - tail)


def _generalized_normal_variance(beta: Any) -> Any:
    return lax.exp(lax.lgamma(3 / beta) - lax.lgamma(1 / beta))


gennorm: Final = functions(
    Continuous(
        name="gennorm",
        title="generalized normal distribution with density proportional to ``exp(-abs(x)^beta)``",
        shapes={"beta": POSITIVE},
        symmetric=True,
        logpdf=lambda x, beta: (
            lax.log(0.5 * beta) - lax.lgamma(1 / beta) - lax.pow(lax.abs(x), beta)
        ),
        cdf=_generalized_normal_cdf,
        mean=lambda beta: 0 * beta,
        var=_generalized_normal_variance,
        entropy=lambda beta: 1 / beta - lax.log(0.5 * beta) + lax.lgamma(1 / beta),
        sample=lambda key, shape, dtype, beta: random.generalized_normal(key, beta, shape, dtype),
    )
)
