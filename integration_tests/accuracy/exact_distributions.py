"""Exact tails, densities and quantiles of distributions in standard form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import mpmath as mp
from scipy import stats

from .exact_values import lower_gamma, regularized_beta, upper_gamma

Function = Callable[..., Any]


def _one_minus(fun: Function) -> Function:
    def complement(x: Any, *shapes: Any) -> Any:
        with mp.workdps(100):
            return 1 - fun(x, *shapes)

    return complement


@dataclass(frozen=True)
class Distribution:
    """Functions of one argument and the shape parameters; a tail is the complement by default."""

    name: str
    density: Function
    cdf: Function
    sf: Function
    whole: bool = False

    def quantile(self, q: Any, *shapes: Any) -> Any:
        """The quantile: Newton's method for the logarithm of the smaller tail, from SciPy's value.

        Raises:
          ValueError: if SciPy's value is not finite, or the iteration does not converge.
        """
        peer = getattr(stats, self.name)
        x = mp.mpf(float(peer.ppf(float(q), *map(float, shapes))))
        if not mp.isfinite(x):
            raise ValueError("no finite first value")
        if self.whole:
            return self._first_integer(x, q, shapes)
        lower = q <= 0.5
        tail, target = (self.cdf, q) if lower else (self.sf, 1 - q)
        for _ in range(12):
            value = tail(x, *shapes)
            if not 0 < value < 1:
                raise ValueError("outside of the support")
            step = mp.log(value / target) * value / self.density(x, *shapes)
            x = x - step if lower else x + step
            if abs(step) < abs(x) * mp.mpf(10) ** -18:  # the next step would be its square
                return x
        raise ValueError("no convergence")

    def _first_integer(self, k: Any, q: Any, shapes: Any) -> Any:
        while self.cdf(k, *shapes) < q:
            k += 1
        while k > 0 and self.cdf(k - 1, *shapes) >= q:
            k -= 1
        return k

    def log_density(self, x: Any, *shapes: Any) -> Any:
        """Logarithm of the density or probability."""
        return mp.log(self.density(x, *shapes))

    def log_cdf(self, x: Any, *shapes: Any) -> Any:
        """Logarithm of the lower tail."""
        return mp.log(self.cdf(x, *shapes))

    def log_sf(self, x: Any, *shapes: Any) -> Any:
        """Logarithm of the upper tail."""
        return mp.log(self.sf(x, *shapes))


EXACT: Final[dict[str, Distribution]] = {}


def _add(
    name: str, density: Function, cdf: Function | None, sf: Function | None, whole: bool = False
) -> None:
    lower, upper = cdf or _one_minus(sf), sf or _one_minus(cdf)  # type: ignore[arg-type]
    EXACT[name] = Distribution(name, density, lower, upper, whole)


def _normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _mass(a: Any, b: Any) -> Any:
    return _normal(b) - _normal(a)


def _bell(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def _gamma_density(x: Any, a: Any) -> Any:
    return x ** (a - 1) * mp.exp(-x) / mp.gamma(a)


def _beta_density(x: Any, a: Any, b: Any) -> Any:
    return x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)


def _upper_beta(a: Any, b: Any, x: Any) -> Any:
    return regularized_beta(b, a, 1 - x)


def _t_cdf(x: Any, df: Any) -> Any:
    tail = regularized_beta(df / 2, mp.mpf(0.5), df / (df + x * x)) / 2
    return tail if x < 0 else 1 - tail


def _t_density(x: Any, df: Any) -> Any:
    return (1 + x * x / df) ** (-(df + 1) / 2) / (mp.sqrt(df) * mp.beta(df / 2, mp.mpf(0.5)))


def _f_density(x: Any, m: Any, n: Any) -> Any:
    ratio = m / n
    return (
        x ** (m / 2 - 1)
        * ratio ** (m / 2)
        * (1 + ratio * x) ** (-(m + n) / 2)
        / mp.beta(m / 2, n / 2)
    )


def _skew_density(x: Any, a: Any) -> Any:
    return 2 * _bell(x) * _normal(a * x)


def _skew_cdf(x: Any, a: Any) -> Any:
    if a < 0:
        return 1 - _skew_cdf(-x, -a)
    if x > 0:
        return _skew_cdf(-x, a) + mp.erf(x / mp.sqrt(2))
    with mp.workdps(25):
        rate = mp.sqrt(1 + a * a)
        last = 140 / (rate * (mp.sqrt(x * x * rate**2 + 140) - x * rate))
        peak = _skew_density(x, a)  # quadrature ends at a small absolute error
        return peak * mp.quad(lambda t: _skew_density(x - t, a) / peak, mp.linspace(0, last, 5))


def _generalized_cdf(x: Any, beta: Any) -> Any:
    tail = upper_gamma(1 / beta, abs(x) ** beta) / 2
    return tail if x < 0 else 1 - tail


def _inverse_gaussian_cdf(x: Any, mu: Any) -> Any:
    root = mp.sqrt(x)
    return _normal((x / mu - 1) / root) + mp.exp(2 / mu) * _normal(-(x / mu + 1) / root)


def _circular_cdf(x: Any, kappa: Any) -> Any:
    with mp.workdps(30):
        peak = kappa * mp.cos(x)
        area = mp.quad(lambda t: mp.exp(kappa * mp.cos(t) - peak), mp.linspace(-mp.pi, x, 5))
        return area * mp.exp(peak) / (2 * mp.pi * mp.besseli(0, kappa))


def _wrapped_cdf(x: Any, c: Any) -> Any:
    ratio = (1 + c) / (1 - c)
    if x < mp.pi:
        return mp.atan(ratio * mp.tan(x / 2)) / mp.pi
    return 1 - mp.atan(ratio * mp.tan(mp.pi - x / 2)) / mp.pi


def _triangular_cdf(x: Any, c: Any) -> Any:
    return x * x / c if x < c else 1 - (1 - x) ** 2 / (1 - c)


def _cauchy_cdf(x: Any) -> Any:
    return mp.atan2(mp.mpf(1), -x) / mp.pi


_add("norm", _bell, _normal, lambda x: _normal(-x))
_add(
    "lognorm", lambda x, s: _bell(mp.log(x) / s) / (s * x),
    lambda x, s: _normal(mp.log(x) / s), lambda x, s: _normal(-mp.log(x) / s),
)  # fmt: skip
_add(
    "halfnorm", lambda x: 2 * _bell(x), lambda x: mp.erf(x / mp.sqrt(2)), lambda x: 2 * _normal(-x)
)
_add("skewnorm", _skew_density, _skew_cdf, lambda x, a: _skew_cdf(-x, -a))
_add(
    "truncnorm", lambda x, a, b: _bell(x) / _mass(a, b) if a < x < b else mp.nan,
    lambda x, a, b: _mass(a, x) / _mass(a, b), lambda x, a, b: _mass(x, b) / _mass(a, b),
)  # fmt: skip
_add(
    "invgauss",
    lambda x, mu: mp.exp(-((x / mu - 1) ** 2) / (2 * x)) / mp.sqrt(2 * mp.pi * x**3),
    _inverse_gaussian_cdf, None,
)  # fmt: skip
_add("gamma", _gamma_density, lambda x, a: lower_gamma(a, x), lambda x, a: upper_gamma(a, x))
_add(
    "chi2", lambda x, df: _gamma_density(x / 2, df / 2) / 2,
    lambda x, df: lower_gamma(df / 2, x / 2), lambda x, df: upper_gamma(df / 2, x / 2),
)  # fmt: skip
_add(
    "invgamma", lambda x, a: _gamma_density(1 / x, a) / x**2,
    lambda x, a: upper_gamma(a, 1 / x), lambda x, a: lower_gamma(a, 1 / x),
)  # fmt: skip
_add(
    "gennorm", lambda x, b: b * mp.exp(-(abs(x) ** b)) / (2 * mp.gamma(1 / b)),
    _generalized_cdf, lambda x, b: _generalized_cdf(-x, b),
)  # fmt: skip
_add(
    "beta", _beta_density, lambda x, a, b: regularized_beta(a, b, x),
    lambda x, a, b: _upper_beta(a, b, x),
)  # fmt: skip
_add("t", _t_density, _t_cdf, lambda x, df: _t_cdf(-x, df))
_add(
    "f", _f_density, lambda x, m, n: regularized_beta(m / 2, n / 2, m * x / (m * x + n)),
    lambda x, m, n: regularized_beta(n / 2, m / 2, n / (m * x + n)),
)  # fmt: skip
_add("expon", lambda x: mp.exp(-x), lambda x: -mp.expm1(-x), lambda x: mp.exp(-x))
_add(
    "laplace", lambda x: mp.exp(-abs(x)) / 2,
    lambda x: mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2,
    lambda x: mp.exp(-x) / 2 if x > 0 else 1 - mp.exp(x) / 2,
)  # fmt: skip
_add(
    "logistic", lambda x: mp.exp(-x) / (1 + mp.exp(-x)) ** 2,
    lambda x: 1 / (1 + mp.exp(-x)), lambda x: 1 / (1 + mp.exp(x)),
)  # fmt: skip
_add("triang", lambda x, c: 2 * (x / c if x < c else (1 - x) / (1 - c)), _triangular_cdf, None)
_add(
    "loguniform", lambda x, a, b: 1 / (x * mp.log(b / a)),
    lambda x, a, b: mp.log(x / a) / mp.log(b / a), lambda x, a, b: mp.log(b / x) / mp.log(b / a),
)  # fmt: skip
_add("pareto", lambda x, b: b * x ** (-b - 1), None, lambda x, b: x**-b)
_add("cauchy", lambda x: 1 / (mp.pi * (1 + x * x)), _cauchy_cdf, lambda x: _cauchy_cdf(-x))
_add(
    "halfcauchy", lambda x: 2 / (mp.pi * (1 + x * x)), lambda x: 2 * mp.atan(x) / mp.pi,
    lambda x: 2 * mp.atan(1 / x) / mp.pi,
)  # fmt: skip
_add("gumbel_r", lambda x: mp.exp(-x - mp.exp(-x)), lambda x: mp.exp(-mp.exp(-x)), None)
_add("gumbel_l", lambda x: mp.exp(x - mp.exp(x)), None, lambda x: mp.exp(-mp.exp(x)))
_add("weibull_min", lambda x, c: c * x ** (c - 1) * mp.exp(-(x**c)), None,
     lambda x, c: mp.exp(-(x**c)))  # fmt: skip
_add("weibull_max", lambda x, c: c * (-x) ** (c - 1) * mp.exp(-((-x) ** c)),
     lambda x, c: mp.exp(-((-x) ** c)), None)  # fmt: skip
_add("rayleigh", lambda x: x * mp.exp(-x * x / 2), None, lambda x: mp.exp(-x * x / 2))
_add(
    "vonmises", lambda x, k: mp.exp(k * mp.cos(x)) / (2 * mp.pi * mp.besseli(0, k)),
    _circular_cdf, lambda x, k: _circular_cdf(-x, k),
)  # fmt: skip
_add(
    "wrapcauchy", lambda x, c: (1 - c * c) / (2 * mp.pi * (1 + c * c - 2 * c * mp.cos(x))),
    _wrapped_cdf, lambda x, c: _wrapped_cdf(2 * mp.pi - x, c),
)  # fmt: skip

# Discrete distributions


def _zipf_sf(k: Any, a: Any) -> Any:
    return mp.zeta(a, k + 1) / mp.zeta(a)


def _beta_binomial(k: Any, n: Any, a: Any, b: Any) -> Any:
    return mp.binomial(n, k) * mp.beta(k + a, n - k + b) / mp.beta(a, b)


def _hypergeometric(k: Any, m: Any, n: Any, draws: Any) -> Any:
    return mp.binomial(n, k) * mp.binomial(m - n, draws - k) / mp.binomial(m, draws)


def _skellam(k: Any, m: Any, n: Any) -> Any:
    return mp.exp(-m - n) * mp.sqrt(m / n) ** k * mp.besseli(abs(k), 2 * mp.sqrt(m * n))


def _sums(density: Function, low: Function, high: Function) -> tuple[Function, Function]:
    def added(first: int, last: int, shapes: Any) -> Any:
        with mp.workdps(30):
            return mp.fsum(density(mp.mpf(j), *shapes) for j in range(first, last + 1))

    return (
        lambda k, *s: added(int(low(k, *s)), int(k), s),
        lambda k, *s: added(int(k) + 1, int(high(k, *s)), s),
    )


_add("bernoulli", lambda k, p: p if k else 1 - p, lambda k, p: 1 - p if k < 1 else mp.mpf(1),
     lambda k, p: p if k < 1 else mp.mpf(0), True)  # fmt: skip
_add(
    "binom", lambda k, n, p: mp.binomial(n, k) * p**k * (1 - p) ** (n - k),
    lambda k, n, p: regularized_beta(n - k, k + 1, 1 - p) if k < n else mp.mpf(1),
    lambda k, n, p: regularized_beta(k + 1, n - k, p) if k < n else mp.mpf(0), True,
)  # fmt: skip
_add(
    "nbinom", lambda k, n, p: mp.binomial(n + k - 1, k) * p**n * (1 - p) ** k,
    lambda k, n, p: regularized_beta(n, k + 1, p),
    lambda k, n, p: regularized_beta(k + 1, n, 1 - p), True,
)  # fmt: skip
_add("geom", lambda k, p: p * (1 - p) ** (k - 1), None, lambda k, p: (1 - p) ** k, True)
_add(
    "poisson", lambda k, mu: mu**k * mp.exp(-mu) / mp.factorial(k),
    lambda k, mu: upper_gamma(k + 1, mu), lambda k, mu: lower_gamma(k + 1, mu), True,
)  # fmt: skip
_add("zipf", lambda k, a: k**-a / mp.zeta(a), None, _zipf_sf, True)
_add("betabinom", _beta_binomial, *_sums(_beta_binomial, lambda *_: 0, lambda k, n, a, b: n), True)
_add(
    "hypergeom", _hypergeometric,
    *_sums(
        _hypergeometric,
        lambda k, m, n, draws: max(0, draws - m + n),
        lambda k, m, n, draws: min(n, draws),
    ),
    True,
)  # fmt: skip
_add("skellam", _skellam, *_sums(_skellam, lambda k, m, n: min(k, 0) - 100 - 4 * int(n),
                                 lambda k, m, n: max(k, 0) + 100 + 4 * int(m)), True)  # fmt: skip
