"""Gamma, beta and related distributions as functions of a real variable, for quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primax_core import lax

from .._elementary import LOG_ROOT_TAU, choose, is_double
from ..special._operands import if_any
from ._beta_tails import below_mean
from ._logarithms import stirling_error
from ._series_inversion import Curve


def gamma_curve(a: Any) -> Curve:
    """The gamma distribution as a function of the logarithm of its variable."""
    log_a = lax.log(a)
    constant = 0.5 * log_a - LOG_ROOT_TAU - stirling_error(a)

    def tail(lower: Any, p: Any, x: Any) -> Any:
        del p
        (left,) = if_any(lower, 1, lambda a, x: (lax.igamma(a, x),), a, x)
        (right,) = if_any(~lower, 1, lambda a, x: (lax.igammac(a, x),), a, x)
        return choose(lower, left, right)

    def log_slope(t: Any, x: Any) -> Any:
        distance = (x - a) / a
        near = lax.abs(distance) < 0.5
        log_ratio = choose(near, lax.log1p(choose(near, distance, 0.0)), t - log_a)
        return a * (log_ratio - distance) + constant

    return Curve(
        place=lax.exp,
        value=lambda x: x,
        moved=lambda x, growth: x + x * growth,
        tail=tail,
        log_slope=log_slope,
        bends=lambda x: (a - x, -x, -x),
    )


def chi2_curve(df: Any) -> Curve:
    """The chi-squared distribution; the variable is that of :func:`gamma_curve`."""
    half = gamma_curve(0.5 * df)
    return half._replace(value=lambda x: 2 * x, moved=lambda x, growth: 2 * half.moved(x, growth))


def _tail_of_shares(p: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """The incomplete beta function of ``x``, where ``y = 1 - x``, if it is about ``p``.

    It is the complement of that of ``y`` above the mean, and where ``y`` is small and has digits
    that ``x`` near 1 has not; but not far below the mean, where the complement is small.
    """
    small = (y < (1e-3 if is_double(x) else 0.25)) & (p > 0.1) & (y * (a + b) < 3 * b)
    other = small | ~below_mean(a, b, x)
    part = lax.betainc(choose(other, b, a), choose(other, a, b), choose(other, y, x))
    return choose(other, 1 - part, part)


def beta_curve(a: Any, b: Any) -> Curve:
    """The beta distribution as a function of the logarithm of the odds ``x / (1 - x)``."""
    total = a + b
    log_left, log_right = lax.log(a / total), lax.log(b / total)
    parts = [lax.expand_dims(v, (0,)) for v in (total, a, b)]
    whole, one, two = stirling_error(lax.concatenate(parts, 0))
    constant = 0.5 * (log_left + lax.log(b)) - LOG_ROOT_TAU + (whole - one - two)

    def place(t: Any) -> tuple[Any, Any]:
        e = lax.exp(-lax.abs(t))
        large = 1 / (1 + e)
        right = t > 0
        return choose(right, large, e * large), choose(right, e * large, large)

    def tail(lower: Any, p: Any, shares: Any) -> Any:
        x, y = shares
        return _tail_of_shares(
            p, choose(lower, a, b), choose(lower, b, a), choose(lower, x, y), choose(lower, y, x)
        )

    def log_slope(t: Any, shares: Any) -> Any:
        del shares
        far = lax.log1p(lax.exp(-lax.abs(t)))
        log_x, log_y = (
            lax.min(t, lax.full_like(t, 0.0)) - far,
            lax.min(-t, lax.full_like(t, 0.0)) - far,
        )
        return a * (log_x - log_left) + b * (log_y - log_right) + constant

    def bends(shares: Any) -> tuple[Any, Any, Any]:
        x, y = shares
        first = -total * (x * y)
        return a * y - b * x, first, first * (y - x)

    return Curve(
        place=place,
        value=lambda shares: shares[0],
        moved=lambda shares, growth: _moved_share(*shares, growth),
        tail=tail,
        log_slope=log_slope,
        bends=bends,
    )


def _moved_share(x: Any, y: Any, growth: Any) -> Any:
    """The share after the odds have grown by a factor ``1 + growth``."""
    return x + x * (y * growth) / (1 + x * growth)


def f_curve(dfn: Any, dfd: Any) -> Curve:
    """The F distribution; the variable is that of :func:`beta_curve`."""
    ratio = dfd / dfn
    odds: Callable[[Any], Any] = lambda shares: ratio * (shares[0] / shares[1])
    return beta_curve(0.5 * dfn, 0.5 * dfd)._replace(
        value=odds, moved=lambda shares, growth: odds(shares) * (1 + growth)
    )
