"""Distributions whose CDF is an incomplete beta function: beta, Student's t, F."""

from __future__ import annotations

import math
from typing import Any, Final

from primax_core import lax
from primax_numpy import random

from .._elementary import choose
from ..special import betaln, xlogy
from ._continuous import Continuous, functions
from ._domains import POSITIVE
from ._first_quantiles import of_beta, of_f
from ._log_tails import log_beta_tail
from ._logarithms import log_beta_density, log_one_plus_square


def _beta_entropy(a: Any, b: Any) -> Any:
    return (
        betaln(a, b) - (a - 1) * lax.digamma(a) - (b - 1) * lax.digamma(b)
        + (a + b - 2) * lax.digamma(a + b)
    )  # fmt: skip


def _beta_sf(x: Any, a: Any, b: Any) -> Any:
    """The upper tail; below the mean it is large, and ``1 - x`` would lose digits."""
    low = x * (a + b) < a
    part = lax.betainc(choose(low, a, b), choose(low, b, a), choose(low, x, 1 - x))
    return choose(low, 1 - part, part)


beta: Final = functions(
    Continuous(
        name="beta",
        title="beta distribution on ``[loc, loc + scale]``",
        shapes={"a": POSITIVE, "b": POSITIVE},
        support=(0.0, 1.0),
        logpdf=log_beta_density,
        cdf=lambda x, a, b: lax.betainc(a, b, x),
        sf=_beta_sf,
        logcdf=lambda x, a, b: log_beta_tail(a, b, x, 1 - x),
        logsf=lambda x, a, b: log_beta_tail(b, a, 1 - x, x),
        guess=of_beta,
        mean=lambda a, b: a / (a + b),
        var=lambda a, b: a / (a + b) * (b / (a + b)) / (a + b + 1),
        entropy=_beta_entropy,
        sample=lambda key, shape, dtype, a, b: random.beta(key, a, b, shape, dtype),
    )
)


def _log_t_density(z: Any, df: Any) -> Any:
    # gamma((df + 1) / 2) / (sqrt(π df) gamma(df / 2)) is 1 / (sqrt(df) B(1/2, df / 2)).
    constant = -betaln(lax.full_like(df, 0.5), 0.5 * df) - 0.5 * lax.log(df)
    return constant - 0.5 * (df + 1) * log_one_plus_square(z / lax.sqrt(df))


def _t_cdf(z: Any, df: Any) -> Any:
    """The lower tail; near 0 one half less the central probability."""
    ratio = z / lax.sqrt(df)
    near = lax.abs(ratio) < 1
    # z² / df near 0, and df / z² elsewhere, which does not overflow
    small = lax.square(choose(near, ratio, 1 / choose(near, 1.0, ratio)))
    half, other = lax.full_like(df, 0.5), 0.5 * df
    part = lax.betainc(
        choose(near, half, other), choose(near, other, half), small / (1 + small)
    )  # fmt: skip
    tail = 0.5 * choose(near, 1 - part, part)
    return choose(z < 0, tail, 1 - tail)


def _log_t_cdf(z: Any, df: Any) -> Any:
    left = z < 0
    ratio = choose(left, z, -1.0) / lax.sqrt(df)
    near = ratio > -1
    small = lax.square(choose(near, ratio, 1 / choose(near, -1.0, ratio)))
    one, two = small / (1 + small), 1 / (1 + small)
    x, y = choose(near, two, one), choose(near, one, two)
    tail = log_beta_tail(0.5 * df, lax.full_like(df, 0.5), x, y) - math.log(2)
    return choose(left, tail, lax.log1p(-_t_cdf(choose(left, -1.0, -z), df)))


def _t_variance(df: Any) -> Any:
    finite = df > 2
    at = choose(finite, df, 3.0)
    return choose(finite, at / (at - 2), choose(df > 1, math.inf, math.nan + 0 * df))


def _t_entropy(df: Any) -> Any:
    half = 0.5 * (df + 1)
    log = betaln(0.5 * df, lax.full_like(df, 0.5)) + 0.5 * lax.log(df)
    return half * (lax.digamma(half) - lax.digamma(0.5 * df)) + log


t: Final = functions(
    Continuous(
        name="t",
        title="Student's t distribution with ``df`` degrees of freedom",
        shapes={"df": POSITIVE},
        symmetric=True,
        logpdf=_log_t_density,
        cdf=_t_cdf,
        logcdf=_log_t_cdf,
        mean=lambda df: choose(df > 1, 0 * df, math.inf),  # as in SciPy
        var=_t_variance,
        entropy=_t_entropy,
        sample=lambda key, shape, dtype, df: random.t(key, df, shape, dtype),
    )
)


# The F distribution: x dfn / dfd has the odds of a beta variable


def _log_f_density(x: Any, dfn: Any, dfd: Any) -> Any:
    a, b = 0.5 * dfn, 0.5 * dfd
    ratio = dfn / dfd
    return xlogy(a - 1, x) + a * lax.log(ratio) - betaln(a, b) - (a + b) * lax.log1p(ratio * x)


def _share(x: Any, dfn: Any, dfd: Any) -> tuple[Any, Any]:
    """The variable of the incomplete beta function, and its complement."""
    odds = x * (dfn / dfd)
    large = odds > 1
    small = choose(large, 1 / choose(large, odds, 1.0), odds)
    one, two = small / (1 + small), 1 / (1 + small)
    return choose(large, two, one), choose(large, one, two)


def _beta_tail(a: Any, b: Any, x: Any, y: Any) -> Any:
    """The incomplete beta function of ``x``, where ``y = 1 - x``; above the mean by that of ``y``,
    which has digits that ``x`` near 1 has not."""
    low = x * (a + b) < a
    part = lax.betainc(choose(low, a, b), choose(low, b, a), choose(low, x, y))
    return choose(low, part, 1 - part)


def _f_cdf(x: Any, dfn: Any, dfd: Any) -> Any:
    return _beta_tail(0.5 * dfn, 0.5 * dfd, *_share(x, dfn, dfd))


def _f_sf(x: Any, dfn: Any, dfd: Any) -> Any:
    return _beta_tail(0.5 * dfd, 0.5 * dfn, *_share(x, dfn, dfd)[::-1])


def _f_mean(dfn: Any, dfd: Any) -> Any:
    finite = dfd > 2
    at = choose(finite, dfd, 3.0)
    return choose(finite, at / (at - 2), math.inf)


def _f_variance(dfn: Any, dfd: Any) -> Any:
    finite = dfd > 4
    at = choose(finite, dfd, 5.0)
    value = 2 * lax.square(at / (at - 2)) * (dfn + at - 2) / (dfn * (at - 4))
    return choose(finite, value, choose(dfd > 2, math.inf, math.nan + 0 * dfd))


def _f_entropy(dfn: Any, dfd: Any) -> Any:
    a, b = 0.5 * dfn, 0.5 * dfd
    return (
        lax.log(dfd / dfn) + betaln(a, b) + (1 - a) * lax.digamma(a) - (1 + b) * lax.digamma(b)
        + (a + b) * lax.digamma(a + b)
    )  # fmt: skip


f: Final = functions(
    Continuous(
        name="f",
        title="F distribution with ``dfn`` and ``dfd`` degrees of freedom",
        shapes={"dfn": POSITIVE, "dfd": POSITIVE},
        support=(0.0, math.inf),
        logpdf=_log_f_density,
        cdf=_f_cdf,
        sf=_f_sf,
        logcdf=lambda x, m, n: log_beta_tail(0.5 * m, 0.5 * n, *_share(x, m, n)),
        logsf=lambda x, m, n: log_beta_tail(0.5 * n, 0.5 * m, *_share(x, m, n)[::-1]),
        guess=of_f,
        mean=_f_mean,
        var=_f_variance,
        entropy=_f_entropy,
        sample=lambda key, shape, dtype, dfn, dfd: random.f(key, dfn, dfd, shape, dtype),
    )
)
