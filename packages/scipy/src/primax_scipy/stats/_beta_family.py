"""Distributions whose CDF is an incomplete beta function: beta, Student's t, F."""

from __future__ import annotations

import math
from typing import Any, Final

from primax_core import jvp, lax
from primax_numpy import random

from .. import _double_words as double_words
from .._elementary import choose, is_double
from ..special import betaln, ndtr, xlogy
from ..special._operands import differentiable
from ._beta_tails import below_mean, beta_part
from ._continuous import Continuous, functions
from ._curves import beta_curve, f_curve
from ._domains import POSITIVE
from ._first_quantiles import of_beta
from ._inversion import implicit
from ._log_tails import log_beta_tail
from ._logarithms import log_beta_density, log_one_plus_square
from ._powers import power
from ._t_quantiles import t_quantile


def _beta_entropy(a: Any, b: Any) -> Any:
    return (
        betaln(a, b) - (a - 1) * lax.digamma(a) - (b - 1) * lax.digamma(b)
        + (a + b - 2) * lax.digamma(a + b)
    )  # fmt: skip


def _beta_sf_slope(x: Any, a: Any, b: Any, _: Any) -> Any:
    return -lax.exp(log_beta_density(x, a, b))


def _beta_sf_by_first(x: Any, a: Any, b: Any, _: Any) -> Any:
    return -jvp(lambda c: lax.betainc(c, b, x), (a,), (lax.full_like(a, 1),))[1]


def _beta_sf_by_second(x: Any, a: Any, b: Any, _: Any) -> Any:
    return -jvp(lambda c: lax.betainc(a, c, x), (b,), (lax.full_like(b, 1),))[1]


@differentiable(_beta_sf_slope, _beta_sf_by_first, _beta_sf_by_second)
def beta_sf(x: Any, a: Any, b: Any) -> Any:
    """The upper tail; below the mean it is large, and ``1 - x`` would lose digits."""
    low = below_mean(a, b, x)
    y, error = double_words.total(-x, lax.full_like(x, 1))
    zero = lax.full_like(x, 0)
    part = beta_part(
        choose(low, a, b), choose(low, b, a),
        (choose(low, x, y), choose(low, zero, error)),
        (choose(low, y, x), choose(low, error, zero)),
    )  # fmt: skip
    return choose(low, 1 - part, part)


beta: Final = functions(
    Continuous(
        name="beta",
        title="beta distribution on ``[loc, loc + scale]``",
        shapes={"a": POSITIVE, "b": POSITIVE},
        support=(0.0, 1.0),
        logpdf=log_beta_density,
        pdf_at_ends=lambda x, a, b: power(x, a - 1) * power(1 - x, b - 1) * lax.exp(-betaln(a, b)),
        cdf=lambda x, a, b: lax.betainc(a, b, x),
        sf=beta_sf,
        logcdf=lambda x, a, b: log_beta_tail(a, b, x, 1 - x),
        logsf=lambda x, a, b: log_beta_tail(b, a, 1 - x, x),
        guess=of_beta,
        curve=beta_curve,
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


def _shares(top: double_words.Pair, bottom: Any) -> tuple[double_words.Pair, double_words.Pair]:
    """``top / (top + bottom)`` and ``bottom / (top + bottom)``."""
    less, one = top[0] < bottom, lax.full_like(bottom, 1)
    left, right = double_words.quotient(top, bottom), double_words.quotient((bottom, 0.0), *top)
    ratio, lost = choose(less, left[0], right[0]), choose(less, left[1], right[1])
    denominator, error = double_words.total(ratio, one)
    small = double_words.quotient((ratio, lost), denominator, error + lost)
    large = double_words.quotient((one, 0.0), denominator, error + lost)
    first = choose(less, small[0], large[0]), choose(less, small[1], large[1])
    return first, (choose(less, large[0], small[0]), choose(less, large[1], small[1]))


def _t_cdf_by_freedom(z: Any, df: Any, _: Any) -> Any:
    """Derivative of the lower tail, which far out is a power of ``z``."""
    size = lax.abs(z)
    some = (size > 1e-10) & (df < math.inf)  # elsewhere it is 0, nearly
    freedom = choose(some, df, 1.0)
    limit = 2.0**20 * lax.sqrt(freedom)
    at = -choose(some, lax.min(size, limit), 1.0)
    ratio = choose(size > limit, limit / size, 1.0)
    one = lax.full_like(df, 1)
    tail, change = jvp(lambda n: _plain_t_cdf(at, n), (freedom,), (one,))
    change = lax.pow(ratio, freedom) * (change + tail * lax.log(ratio))
    return choose(some, choose(z < 0, change, -change), 0.0)


def _nearly_normal_tail(z: Any, df: Any) -> Any:
    """The lower tail at ``-z`` for many degrees of freedom: the first terms of G. Hill, "Algorithm
    395: Student's t-distribution", 1970, with the argument of the normal tail as a pair."""
    # Beyond, the tail is less than all numbers.
    z = lax.min(z, lax.min(0.15 * lax.sqrt(df), lax.full_like(z, 60.0)))
    head, rest = double_words.ordered_total(*double_words.product(z, z))
    ratio = head / df
    series: Any = 0.0
    for n in reversed(range(2, 12)):
        series = series * ratio + (-1) ** (n - 1) / n
    size = df - 0.5
    # size log1p(z² / df) - z²
    change = head * (series * ratio - 0.5 / df * (1 + series * ratio))
    some = head > 0
    sum_of_both = double_words.ordered_total(choose(some, head, 1.0), rest + change)
    root, error = double_words.sqrt(sum_of_both)
    root, error = choose(some, root, 0.0), choose(some, error, 0.0)
    b, w = (48 * size) * size, root * root
    second = ((4 * w + 33) * w + 240) * w + 855
    error = error + root * (w + 3 - second / b * (0.1 / (1 + (0.8 * w * w + 100) / b))) / b
    return ndtr(-root) - error * lax.exp(-0.5 * root * root) * (1 / math.sqrt(2 * math.pi))


@differentiable(lambda z, df, _: lax.exp(_log_t_density(z, df)), _t_cdf_by_freedom)
def _t_cdf(z: Any, df: Any) -> Any:
    """The lower tail; near 0 one half less the central probability. The arguments of the incomplete
    beta function are corrected."""
    many = df > (1e5 if is_double(z) else 1e4)
    freedom = choose(many, 1.0, df)
    size = lax.abs(z)
    # Farther out the tail is a power of z.
    limit = 2.0**30 * lax.sqrt(freedom)
    power = lax.pow(choose(size > limit, limit / size, 1.0), freedom)
    inner = lax.min(size, limit)
    square = double_words.ordered_total(*double_words.product(inner, inner))
    y, x = _shares(square, freedom)
    half, other = lax.full_like(df, 0.5), 0.5 * freedom
    near = below_mean(half, other, y[0])
    part = beta_part(
        choose(near, half, other), choose(near, other, half),
        (choose(near, y[0], x[0]), choose(near, y[1], x[1])),
        (choose(near, x[0], y[0]), choose(near, x[1], y[1])),
    )  # fmt: skip
    normal = _nearly_normal_tail(choose(many, size, 1.0), choose(many, df, 1e4))
    tail = choose(many, normal, 0.5 * choose(near, 1 - part, part) * power)
    return choose(z < 0, tail, 1 - tail)


def _plain_t_cdf(z: Any, df: Any) -> Any:
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
        ppf=implicit(t_quantile, _t_cdf, _log_t_density),
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


def _f_density_at_zero(x: Any, dfn: Any, dfd: Any) -> Any:
    a, b, ratio = 0.5 * dfn, 0.5 * dfd, dfn / dfd
    smooth = a * lax.log(ratio) - betaln(a, b) - (a + b) * lax.log1p(ratio * x)
    return power(x, a - 1) * lax.exp(smooth)


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


_FAR: Final = 2.0**60
"""Odds from which on a tail is a power of the odds."""


def _f_tail(x: Any, dfn: Any, dfd: Any, lower: bool) -> Any:
    """A tail, by that incomplete beta function whose argument is below the mean."""
    a, b, middle = 0.5 * dfn, 0.5 * dfd, dfd / dfn
    first, last = middle / _FAR, middle * _FAR
    left = lax.pow(choose(x < first, x / first, 1.0), a)
    right = lax.pow(choose(x > last, last / x, 1.0), b)
    product = double_words.product(lax.max(lax.min(x, last), first), dfn)
    u, v = _shares(double_words.ordered_total(*product), dfd)
    low = below_mean(a, b, u[0])
    part = beta_part(
        choose(low, a, b), choose(low, b, a),
        (choose(low, u[0], v[0]), choose(low, u[1], v[1])),
        (choose(low, v[0], u[0]), choose(low, v[1], u[1])),
    )  # fmt: skip
    part = part * choose(low, left, right)
    return choose(low == lower, part, 1 - part)


def _f_density(x: Any, dfn: Any, dfd: Any, _: Any) -> Any:
    return lax.exp(_log_f_density(x, dfn, dfd))


def _f_by_first(x: Any, dfn: Any, dfd: Any, _: Any) -> Any:
    return _f_slope(x, dfn, dfd, True)


def _f_by_second(x: Any, dfn: Any, dfd: Any, _: Any) -> Any:
    return _f_slope(x, dfn, dfd, False)


def _f_slope(x: Any, dfn: Any, dfd: Any, first: bool) -> Any:
    """Derivative of the lower tail with respect to a parameter, with the powers of `_f_tail`."""
    middle = dfd / dfn
    low, high = middle * 1e-10, middle * 1e10
    at = lax.max(lax.min(x, high), low)
    left, right = choose(x < low, x / low, 1.0), choose(x > high, high / x, 1.0)
    one = lax.full_like(x, 1)
    if first:
        change = jvp(lambda m: _plain_f_cdf(at, m, dfd), (dfn,), (one,))[1]
        tail, log = choose(x < low, _plain_f_cdf(at, dfn, dfd), 0.0), lax.log(left)
    else:
        change = jvp(lambda n: _plain_f_cdf(at, dfn, n), (dfd,), (one,))[1]
        tail, log = choose(x > high, -_plain_f_sf(at, dfn, dfd), 0.0), lax.log(right)
    power = lax.pow(left, 0.5 * dfn) * lax.pow(right, 0.5 * dfd)
    return power * (change + 0.5 * tail * log)


def _plain_f_sf(x: Any, dfn: Any, dfd: Any) -> Any:
    return _beta_tail(0.5 * dfd, 0.5 * dfn, *_share(x, dfn, dfd)[::-1])


def _plain_f_cdf(x: Any, dfn: Any, dfd: Any) -> Any:
    return _beta_tail(0.5 * dfn, 0.5 * dfd, *_share(x, dfn, dfd))


@differentiable(_f_density, _f_by_first, _f_by_second)
def _f_cdf(x: Any, dfn: Any, dfd: Any) -> Any:
    return _f_tail(x, dfn, dfd, True)


@differentiable(
    lambda *args: -_f_density(*args),
    lambda *args: -_f_by_first(*args),
    lambda *args: -_f_by_second(*args),
)
def _f_sf(x: Any, dfn: Any, dfd: Any) -> Any:
    return _f_tail(x, dfn, dfd, False)


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
        pdf_at_ends=_f_density_at_zero,
        cdf=_f_cdf,
        sf=_f_sf,
        logcdf=lambda x, m, n: log_beta_tail(0.5 * m, 0.5 * n, *_share(x, m, n)),
        logsf=lambda x, m, n: log_beta_tail(0.5 * n, 0.5 * m, *_share(x, m, n)[::-1]),
        guess=lambda p, lower, m, n: of_beta(p, lower, 0.5 * m, 0.5 * n),
        curve=f_curve,
        mean=_f_mean,
        var=_f_variance,
        entropy=_f_entropy,
        sample=lambda key, shape, dtype, dfn, dfd: random.f(key, dfn, dfd, shape, dtype),
    )
)
