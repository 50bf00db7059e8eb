"""Distributions on the circle: von Mises and wrapped Cauchy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import typeof
from primax_numpy import random

from .._elementary import choose, is_double
from ..special import i0e, i1e, spence
from ..special._operands import differentiable
from ._continuous import Continuous, functions
from ._domains import FRACTION, NONNEGATIVE


def _log_von_mises(x: Any, kappa: Any) -> Any:
    return -2 * kappa * lax.square(lax.sin(0.5 * x)) - lax.log((2 * math.pi) * i0e(kappa))


def _integral(low: Any, high: Any, kappa: Any, factor: Callable[[Any], Any] | None = None) -> Any:
    """Integral of the density, times a function, by a Gauss-Legendre rule.

    The interval is at most 9 standard deviations of a concentrated distribution, for which the rule
    has enough nodes.
    """
    nodes, weights = np.polynomial.legendre.leggauss(64 if is_double(low) else 32)
    dtype = typeof(low).dtype
    table = [lax.full((len(v),), 0, dtype) + v.astype(dtype) for v in (nodes, weights)]
    half, middle = 0.5 * (high - low), 0.5 * (high + low)

    def add(i: Any, total: Any) -> Any:
        node, weight = (lax.dynamic_index_in_dim(v, i, 0, False) for v in table)
        x = middle + half * node
        value = lax.exp(-2 * kappa * lax.square(lax.sin(0.5 * x)))
        return total + weight * (value if factor is None else value * factor(x))

    total = lax.fori_loop(0, len(nodes), add, lax.full_like(low, 0))
    return total * half / ((2 * math.pi) * i0e(kappa))


def _extent(kappa: Any) -> Any:
    """Nine standard deviations of a concentrated distribution."""
    return 9 / lax.sqrt(choose(kappa > 1, kappa, 1.0))


def _lower_tail(x: Any, kappa: Any, factor: Callable[[Any], Any] | None = None) -> Any:
    """The CDF for ``x <= 0``, or the integral of the density times a function."""
    low = x - _extent(kappa)
    return _integral(choose(low > -math.pi, low, -math.pi), x, kappa, factor)


def _von_mises_density(x: Any, kappa: Any, _: Any) -> Any:
    return lax.exp(_log_von_mises(x, kappa))


def _von_mises_cdf_by_kappa(x: Any, kappa: Any, _: Any) -> Any:
    """The integral of the density's derivative, whose factor is ``cos(t) - I1(kappa) / I0(kappa)``;
    ``2 sin²(t/2)`` for ``1 - cos(t)`` keeps the digits of a concentrated distribution."""
    end = -lax.abs(x)
    rest = (i0e(kappa) - i1e(kappa)) / i0e(kappa)
    change = _lower_tail(end, kappa, lambda t: rest - 2 * lax.square(lax.sin(0.5 * t)))
    return choose(x < 0, change, -change)


@differentiable(_von_mises_density, _von_mises_cdf_by_kappa)
def _von_mises_cdf(x: Any, kappa: Any) -> Any:
    tail = _lower_tail(-lax.abs(x), kappa)
    return choose(x < 0, tail, 1 - tail)


def _von_mises_variance(kappa: Any) -> Any:
    extent = _extent(kappa)
    high = choose(extent < math.pi, extent, math.pi)
    return 2 * _integral(0 * high, high, kappa, lax.square)


def _sample_von_mises(key: Any, shape: Any, dtype: Any, kappa: Any) -> Any:
    """Rejection with a wrapped Cauchy envelope: D. J. Best and N. I. Fisher, "Efficient simulation
    of the von Mises distribution", 1979. Below 1e-3 and above 1e5 ``kappa`` is nearly uniform or
    normal, and the envelope would lose digits."""
    valid = kappa >= 0
    safe = choose(valid, kappa, 1.0)
    middle = lax.clamp(lax.full_like(safe, 1e-3), safe, lax.full_like(safe, 1e5))
    tau = 1 + lax.sqrt(1 + 4 * middle * middle)
    rho = (tau - lax.sqrt(2 * tau)) / (2 * middle)
    r = (1 + rho * rho) / (2 * rho)

    def draw(state: Any) -> Any:
        key, angle, done = state
        key, first, second, third = random.split(key, 4)
        z = lax.cos(math.pi * random.uniform(first, shape, dtype))
        f = (1 + r * z) / (r + z)
        c = middle * (r - f)
        u = random.uniform(second, shape, dtype, minval=float(np.finfo(dtype).tiny))
        accepted = (c * (2 - c) > u) | (lax.log(c / u) + 1 - c >= 0)
        sign = choose(random.bernoulli(third, 0.5, shape), 1.0, -lax.full_like(f, 1))
        proposal = sign * lax.acos(lax.clamp(lax.full_like(f, -1), f, lax.full_like(f, 1)))
        return key, choose(accepted & ~done, proposal, angle), done | accepted

    def unfinished(state: Any) -> Any:
        return ~lax.reduce_and(state[2], tuple(range(len(shape))))

    first, second, third = random.split(key, 3)
    start = (first, lax.full_like(safe, 0), lax.full_like(safe, False, np.bool_))
    angle = lax.while_loop(unfinished, draw, start)[1]
    flat = math.pi * (2 * random.uniform(second, shape, dtype) - 1)
    steep = random.normal(third, shape, dtype) / lax.sqrt(choose(safe > 1, safe, 1.0))
    return choose(safe < 1e-3, flat, choose(safe > 1e5, steep, angle))


vonmises: Final = functions(
    Continuous(
        name="vonmises",
        title="von Mises distribution, whose density has the period 2π; other functions are those "
        "of one period around ``loc``",
        shapes={"kappa": NONNEGATIVE},
        support=(-math.pi, math.pi),
        periodic=True,
        symmetric=True,
        logpdf=_log_von_mises,
        cdf=_von_mises_cdf,
        mean=lambda kappa: 0 * kappa,
        var=_von_mises_variance,
        entropy=lambda kappa: (
            lax.log((2 * math.pi) * i0e(kappa)) + kappa * (1 - i1e(kappa) / i0e(kappa))
        ),
        sample=_sample_von_mises,
    )
)


def _log_wrapped_cauchy(x: Any, c: Any) -> Any:
    below = lax.square(1 - c) + 4 * c * lax.square(lax.sin(0.5 * x))
    return lax.log1p(-c * c) - math.log(2 * math.pi) - lax.log(below)


def _wrapped_cauchy_tail(x: Any, c: Any) -> Any:
    """The probability of ``[0, x]`` for ``x <= π``."""
    ratio = (1 + c) / (1 - c)
    return lax.atan2(ratio * lax.sin(0.5 * x), lax.cos(0.5 * x)) * (1 / math.pi)


def _wrapped_cauchy_cdf(x: Any, c: Any) -> Any:
    near = x < math.pi
    tail = _wrapped_cauchy_tail(choose(near, x, 2 * math.pi - x), c)
    return choose(near, tail, 1 - tail)


def _wrapped_cauchy_quantile(q: Any, c: Any) -> Any:
    near = q < 0.5
    angle = math.pi * choose(near, q, 1 - q)
    value = 2 * lax.atan2((1 - c) * lax.sin(angle), (1 + c) * lax.cos(angle))
    return choose(near, value, 2 * math.pi - value)


wrapcauchy: Final = functions(
    Continuous(
        name="wrapcauchy",
        title="wrapped Cauchy distribution on ``[loc, loc + 2π scale]``",
        shapes={"c": FRACTION},
        support=(0.0, 2 * math.pi),
        logpdf=_log_wrapped_cauchy,
        cdf=_wrapped_cauchy_cdf,
        sf=lambda x, c: _wrapped_cauchy_cdf(2 * math.pi - x, c),
        ppf=_wrapped_cauchy_quantile,
        isf=lambda q, c: 2 * math.pi - _wrapped_cauchy_quantile(q, c),
        mean=lambda c: math.pi + 0 * c,
        var=lambda c: math.pi**2 / 3 + 4 * spence(1 - c),
        entropy=lambda c: math.log(2 * math.pi) + lax.log1p(-c * c),
    )
)
