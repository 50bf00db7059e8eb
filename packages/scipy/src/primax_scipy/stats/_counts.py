"""Distributions of counts with closed tails: Bernoulli, binomial, geometric, Poisson, Zipf."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from primax_core import jvp, lax
from primax_core.extend import typeof
from primax_numpy import random

from .. import _double_words as double_words
from .._elementary import bounded, choose, is_double
from ..special import xlog1py, xlogy
from ._beta_family import beta_sf
from ._discrete import Discrete, functions
from ._domains import ABOVE_ONE, CHANCE, NONNEGATIVE, POSITIVE, PROBABILITY, WHOLE
from ._log_tails import log_beta_tail, log_lower_gamma, log_upper_gamma
from ._logarithms import log_binomial, log_poisson
from ._powers import power


def _entropy_of_two(p: Any) -> Any:
    return -xlogy(p, p) - xlog1py(1 - p, -p)


bernoulli: Final = functions(
    Discrete(
        name="bernoulli",
        title="Bernoulli distribution: 1 with probability ``p``, otherwise 0",
        shapes={"p": PROBABILITY},
        support=(0.0, 1.0),
        whole=False,
        logpmf=lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
        cdf=lambda k, p: 1 - p,
        sf=lambda k, p: p,
        ppf=lambda q, p: choose(q <= 1 - p, 0 * q, 1.0),
        isf=lambda q, p: choose(q >= p, 0 * q, 1.0),
        mean=lambda p: p,
        var=lambda p: p * (1 - p),
        entropy=_entropy_of_two,
        sample=lambda key, shape, dtype, p: lax.convert_element_type(
            random.bernoulli(key, p, shape), dtype
        ),
    )
)


def _ways(n: Any, k: Any) -> Any:
    """The binomial coefficient."""
    return lax.exp(lax.lgamma(n + 1) - lax.lgamma(k + 1) - lax.lgamma(n - k + 1))


def _binomial_arguments(k: Any, n: Any, p: Any) -> tuple[Any, Any, Any]:
    below = k < n
    return choose(below, n - k, 1.0), choose(below, k + 1, 1.0), p


def _binomial_cdf(k: Any, n: Any, p: Any) -> Any:
    rest, up, p = _binomial_arguments(k, n, p)
    return beta_sf(p, up, rest)


def _binomial_sf(k: Any, n: Any, p: Any) -> Any:
    rest, up, p = _binomial_arguments(k, n, p)
    return lax.betainc(up, rest, p)


def _log_binomial_cdf(k: Any, n: Any, p: Any) -> Any:
    rest, up, p = _binomial_arguments(k, n, p)
    return log_beta_tail(rest, up, 1 - p, p)


def _log_binomial_sf(k: Any, n: Any, p: Any) -> Any:
    rest, up, p = _binomial_arguments(k, n, p)
    return log_beta_tail(up, rest, p, 1 - p)


binom: Final = functions(
    Discrete(
        name="binom",
        title="binomial distribution of successes in ``n`` trials with probability ``p``",
        shapes={"n": WHOLE, "p": PROBABILITY},
        support=lambda n, p: (0.0, n),
        logpmf=lambda k, n, p: log_binomial(k, n, p, 1 - p, small=False),
        pmf_at_ends=lambda k, n, p: _ways(n, k) * power(p, k) * power(1 - p, n - k),
        cdf=_binomial_cdf,
        sf=_binomial_sf,
        logcdf=_log_binomial_cdf,
        logsf=_log_binomial_sf,
        mean=lambda n, p: n * p,
        var=lambda n, p: n * p * (1 - p),
        sample=lambda key, shape, dtype, n, p: random.binomial(key, n, p, shape, dtype),
    )
)


def _negative_binomial(k: Any, n: Any, p: Any) -> Any:
    return log_binomial(n, n + k, p, 1 - p) + lax.log(n / (n + k))


def _certain(k: Any, n: Any, p: Any) -> tuple[Any, Any, Any]:
    """A condition that ``p`` is 1, the CDF there, and ``p`` where it is not."""
    certain = p == 1
    return certain, choose(k == 0, lax.pow(p, n), 1.0), choose(certain, 0.5, p)


def _negative_binomial_cdf(k: Any, n: Any, p: Any) -> Any:
    certain, end, p = _certain(k, n, p)
    return choose(certain, end, lax.betainc(n, k + 1, p))


def _negative_binomial_sf(k: Any, n: Any, p: Any) -> Any:
    certain, end, p = _certain(k, n, p)
    return choose(certain, 1 - end, beta_sf(p, n, k + 1))


def _sample_negative_binomial(key: Any, shape: Any, dtype: Any, n: Any, p: Any) -> Any:
    first, second = random.split(key)
    rate = random.gamma(first, n, shape, dtype) * (1 - p) / p
    return lax.convert_element_type(random.poisson(second, rate, shape), dtype)


nbinom: Final = functions(
    Discrete(
        name="nbinom",
        title="negative binomial distribution of failures before ``n`` successes",
        shapes={"n": POSITIVE, "p": CHANCE},
        logpmf=_negative_binomial,
        pmf_at_ends=lambda k, n, p: _ways(n + k - 1, k) * power(p, n) * power(1 - p, k),
        cdf=_negative_binomial_cdf,
        sf=_negative_binomial_sf,
        logcdf=lambda k, n, p: log_beta_tail(n, k + 1, p, 1 - p),
        logsf=lambda k, n, p: log_beta_tail(k + 1, n, 1 - p, p),
        mean=lambda n, p: n * (1 - p) / p,
        var=lambda n, p: n * (1 - p) / (p * p),
        sample=_sample_negative_binomial,
    )
)


def _geometric_quantile(log: Any, p: Any) -> Any:
    """The smallest ``k`` for which ``k log(1 - p) <= log``; rounding may have raised it by 1."""
    step = lax.log1p(-p)
    certain = p >= 1
    k = lax.ceil(log / choose(certain, -1.0, step))
    fewer = (k - 1) * step <= log
    return choose(certain, 1.0, choose(fewer & (k > 1), k - 1, choose(k < 1, 1.0, k)))


def _geometric_tail(k: Any, p: Any) -> Any:
    """``(1 - p)**k``, whose exponent is corrected for its rounding error."""
    usual = p < 1
    inner = choose(usual, p, 0.5)
    exponent = k * lax.log1p(-inner)
    rest, lost = double_words.total(-inner, lax.full_like(p, 1.0))
    head, error = double_words.log(rest)
    head, error = double_words.times((head, error + lost / rest), k)
    tail = double_words.exp_with(exponent, (head - exponent) + error)
    return choose(usual, tail, choose(k == 1, 1 - p, 0.0))


geom: Final = functions(
    Discrete(
        name="geom",
        title="geometric distribution of the number of trials up to the first success",
        shapes={"p": CHANCE},
        support=(1.0, math.inf),
        logpmf=lambda k, p: xlog1py(k - 1, -p) + lax.log(p),
        pmf_at_ends=lambda k, p: p * power(1 - p, k - 1),
        sf=_geometric_tail,
        logsf=lambda k, p: k * lax.log1p(-p),
        ppf=lambda q, p: lax.stop_gradient(_geometric_quantile(lax.log1p(-q), p)),
        isf=lambda q, p: lax.stop_gradient(_geometric_quantile(lax.log(q), p)),
        mean=lambda p: 1 / p,
        var=lambda p: (1 - p) / (p * p),
        entropy=lambda p: _entropy_of_two(p) / p,
        sample=lambda key, shape, dtype, p: lax.convert_element_type(
            random.geometric(key, p, shape), dtype
        ),
    )
)


def _poisson_entropy(mu: Any) -> Any:
    """The sum over all probable values up to a mean of 20 (300 in double precision), and an
    asymptotic series beyond."""
    most, values = (300, 600) if is_double(mu) else (20, 64)
    few = bounded(mu, 0.0, most)

    def add(i: Any, total: Any) -> Any:
        k = lax.convert_element_type(i, typeof(few).dtype)
        log = xlogy(lax.full_like(few, 1) * k, few) - lax.lgamma(k + 1) - few
        return total - lax.select(log > -80, lax.exp(log) * log, lax.full_like(log, 0))

    summed = lax.fori_loop(0, values, add, lax.full_like(few, 0))
    large = lax.select(mu > most, mu, lax.full_like(mu, most))
    inverse = 1 / large
    series = inverse * (1 / 12 + inverse * (1 / 24 + inverse * (19 / 360 + inverse * (9 / 80))))
    far = 0.5 * (lax.log(large) + np.log(2 * np.pi * np.e)) - series
    return lax.select(mu > most, far, summed)


poisson: Final = functions(
    Discrete(
        name="poisson",
        title="Poisson distribution with mean ``mu``",
        shapes={"mu": NONNEGATIVE},
        logpmf=log_poisson,
        cdf=lambda k, mu: lax.igammac(k + 1, mu),
        sf=lambda k, mu: lax.igamma(k + 1, mu),
        logcdf=lambda k, mu: log_upper_gamma(k + 1, mu),
        logsf=lambda k, mu: log_lower_gamma(k + 1, mu),
        mean=lambda mu: mu,
        var=lambda mu: mu,
        entropy=_poisson_entropy,
        sample=lambda key, shape, dtype, mu: lax.convert_element_type(
            random.poisson(key, mu, shape), dtype
        ),
    )
)


# The Zipf distribution


def _zeta(a: Any) -> Any:
    """Riemann's zeta function for ``a > 1``, by the Euler-Maclaurin formula, which has derivatives
    with respect to ``a``."""
    n = 12.0
    total: Any = 1.0
    for k in range(2, int(n)):
        total = total + lax.exp(-math.log(k) * a)
    power = lax.exp(-math.log(n) * a)
    total = total + power * n / (a - 1) + 0.5 * power
    # B_2k / (2k)!
    coefficients = (
        1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    )  # fmt: skip
    factor = a * power / n
    for k, c in enumerate(coefficients):
        total = total + c * factor
        factor = factor * (a + (2 * k + 1)) * (a + (2 * k + 2)) / (n * n)
    return total


def _zeta_ratio(a: Any, order: int) -> Any:
    """``zeta(a - order) / zeta(a)``, infinite where the moment is."""
    finite = a > order + 1
    at = choose(finite, a, order + 2.0)
    return choose(finite, _zeta(at - order) / _zeta(at), math.inf)


def _zipf_variance(a: Any) -> Any:
    finite = a > 3
    at = choose(finite, a, 4.0)
    return choose(finite, _zeta_ratio(at, 2) - lax.square(_zeta_ratio(at, 1)), math.inf)


def _zipf_entropy(a: Any) -> Any:
    value, change = jvp(_zeta, (a,), (lax.full_like(a, 1),))
    return lax.log(value) - a * change / value


zipf: Final = functions(
    Discrete(
        name="zipf",
        title="Zipf (zeta) distribution with probability proportional to ``k^-a``",
        shapes={"a": ABOVE_ONE},
        support=(1.0, math.inf),
        logpmf=lambda k, a: -a * lax.log(k) - lax.log(_zeta(a)),
        cdf=lambda k, a: 1 - lax.zeta(a, k + 1) / _zeta(a),
        sf=lambda k, a: lax.zeta(a, k + 1) / _zeta(a),
        mean=lambda a: _zeta_ratio(a, 1),
        var=_zipf_variance,
        entropy=_zipf_entropy,
    )
)
