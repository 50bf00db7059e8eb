"""Distributions whose CDF is an incomplete gamma function."""

from __future__ import annotations

import math
from typing import Any, Final

from primax_core import jvp, lax
from primax_numpy import random

from .. import _double_words as double_words
from .._elementary import choose
from ..special._operands import differentiable
from ._continuous import Continuous, functions
from ._curves import chi2_curve, gamma_curve
from ._domains import POSITIVE
from ._first_quantiles import of_gamma
from ._log_tails import log_lower_gamma, log_upper_gamma
from ._logarithms import log_gamma_density
from ._powers import power


def _gamma_density_at_zero(x: Any, a: Any) -> Any:
    return power(x, a - 1) * lax.exp(-x - lax.lgamma(a))


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


_GAMMA: Final = Continuous(
    name="gamma",
    title="gamma distribution with density ``x^(a - 1) exp(-x) / Γ(a)``",
    shapes={"a": POSITIVE},
    support=(0.0, math.inf),
    logpdf=log_gamma_density,
    pdf_at_ends=_gamma_density_at_zero,
    cdf=lambda x, a: lax.igamma(a, x),
    sf=lambda x, a: lax.igammac(a, x),
    logcdf=lambda x, a: log_lower_gamma(a, x),
    logsf=lambda x, a: log_upper_gamma(a, x),
    guess=of_gamma,
    curve=gamma_curve,
    mean=lambda a: a,
    var=lambda a: a,
    entropy=_gamma_entropy,
    sample=_sample_gamma,
)
gamma: Final = functions(_GAMMA)
_GAMMA_KERNELS: Final = _GAMMA.declared_kernels()


chi2: Final = functions(
    Continuous(
        name="chi2",
        title="chi-squared distribution with ``df`` degrees of freedom",
        shapes={"df": POSITIVE},
        support=(0.0, math.inf),
        logpdf=lambda x, df: log_gamma_density(0.5 * x, 0.5 * df) - math.log(2),
        pdf_at_ends=lambda x, df: 0.5 * _gamma_density_at_zero(0.5 * x, 0.5 * df),
        cdf=lambda x, df: lax.igamma(0.5 * df, 0.5 * x),
        sf=lambda x, df: lax.igammac(0.5 * df, 0.5 * x),
        logcdf=lambda x, df: log_lower_gamma(0.5 * df, 0.5 * x),
        logsf=lambda x, df: log_upper_gamma(0.5 * df, 0.5 * x),
        guess=lambda p, lower, df: of_gamma(p, lower, 0.5 * df),
        curve=chi2_curve,
        mean=lambda df: df,
        var=lambda df: 2 * df,
        entropy=lambda df: _gamma_entropy(0.5 * df) + math.log(2),
        sample=lambda key, shape, dtype, df: 2 * _sample_gamma(key, shape, dtype, 0.5 * df),
    )
)


def _log_inverse_gamma_density(x: Any, a: Any) -> Any:
    return log_gamma_density(1 / x, a) - 2 * lax.log(x)


def _inverse_gamma_density(x: Any, a: Any, _: Any) -> Any:
    return lax.exp(_log_inverse_gamma_density(x, a))


def _moved(tail: Any, y: Any, error: Any, a: Any) -> Any:
    """A regularized incomplete gamma function, for the sum of ``y`` and an error."""
    change = error * lax.exp(log_gamma_density(y, a))
    change = choose((lax.abs(error) < 1) & (change < 1), change, 0.0)
    return tail(a, y) + (change if tail is lax.igamma else -change)


def _of_inverse(tail: Any, x: Any, a: Any) -> Any:
    y = 1 / x
    head, rest = double_words.product(x, y)
    error = choose((y < 1e6) & (y > 1e-6), ((1 - head) - rest) * y, 0.0)
    return _moved(tail, y, lax.stop_gradient(error), a)


@differentiable(_inverse_gamma_density, None)
def _inverse_gamma_cdf(x: Any, a: Any) -> Any:
    return _of_inverse(lax.igammac, x, a)


@differentiable(lambda *args: -_inverse_gamma_density(*args), None)
def _inverse_gamma_sf(x: Any, a: Any) -> Any:
    return _of_inverse(lax.igamma, x, a)


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
        cdf=_inverse_gamma_cdf,
        sf=_inverse_gamma_sf,
        logcdf=lambda x, a: log_upper_gamma(a, 1 / x),
        logsf=lambda x, a: log_lower_gamma(a, 1 / x),
        ppf=lambda q, a: 1 / _GAMMA_KERNELS["isf"](q, a),
        isf=lambda q, a: 1 / _GAMMA_KERNELS["ppf"](q, a),
        mean=lambda a: _over_powers(a, 1),
        var=_inverse_gamma_variance,
        entropy=lambda a: a + lax.lgamma(a) - (1 + a) * lax.digamma(a),
        sample=lambda key, shape, dtype, a: 1 / _sample_gamma(key, shape, dtype, a),
    )
)


def _log_generalized_normal_density(x: Any, beta: Any) -> Any:
    return lax.log(0.5 * beta) - lax.lgamma(1 / beta) - lax.pow(lax.abs(x), beta)


def _plain_generalized_normal_cdf(z: Any, beta: Any) -> Any:
    tail = 0.5 * lax.igammac(1 / beta, lax.pow(lax.abs(z), beta))
    return choose(z < 0, tail, 1 - tail)


def _by_power(z: Any, beta: Any, _: Any) -> Any:
    y = lax.pow(lax.abs(z), beta)
    inner = (y > 1e-30) & (y < 1e3)  # elsewhere the derivative is 0, nearly
    at = choose(inner, z, 1.0)
    change = jvp(lambda p: _plain_generalized_normal_cdf(at, p), (beta,), (0 * beta + 1,))[1]
    return choose(inner, change, 0.0)


@differentiable(lambda z, beta, _: lax.exp(_log_generalized_normal_density(z, beta)), _by_power)
def _generalized_normal_cdf(z: Any, beta: Any) -> Any:
    y = lax.pow(lax.abs(z), beta)
    inner = (y > 1e-3) & (y < 1e3)
    # The logarithms of the power and of its rounded value
    log, error = double_words.times(double_words.log(choose(inner, lax.abs(z), 1.0)), beta)
    other, lost = double_words.log(choose(inner, y, 1.0))
    error = choose(inner, y * ((log - other) + (error - lost)), 0.0)
    tail = 0.5 * _moved(lax.igammac, y, error, 1 / beta)
    return choose(z < 0, tail, 1 - tail)


def _generalized_normal_variance(beta: Any) -> Any:
    return lax.exp(lax.lgamma(3 / beta) - lax.lgamma(1 / beta))


gennorm: Final = functions(
    Continuous(
        name="gennorm",
        title="generalized normal distribution with density proportional to ``exp(-abs(x)^beta)``",
        shapes={"beta": POSITIVE},
        symmetric=True,
        logpdf=_log_generalized_normal_density,
        cdf=_generalized_normal_cdf,
        mean=lambda beta: 0 * beta,
        var=_generalized_normal_variance,
        entropy=lambda beta: 1 / beta - lax.log(0.5 * beta) + lax.lgamma(1 / beta),
        sample=lambda key, shape, dtype, beta: random.generalized_normal(key, beta, shape, dtype),
    )
)
