"""First values for the iterations of `_inversion`, on the real line to which the support is mapped.

Each function takes the probability ``p`` of the smaller tail, a condition that it is the lower one,
and the parameters.
"""

from __future__ import annotations

import math
from typing import Any

from primax_core import lax

from .._elementary import choose


def _score(p: Any, lower: Any) -> Any:
    """Quantile of the normal distribution with three digits: Abramowitz and Stegun 26.2.23."""
    s = lax.sqrt(-2 * lax.log(p))
    top = 2.515517 + s * (0.802853 + s * 0.010328)
    bottom = 1 + s * (1.432788 + s * (0.189269 + s * 0.001308))
    size = s - top / bottom
    return choose(lower, -size, size)


def of_gamma(p: Any, lower: Any, a: Any) -> Any:
    """Logarithm of the quantile of a gamma distribution.

    The cube of a normal variable (Wilson and Hilferty, Proc. Natl. Acad. Sci. 17, 1931), or the
    leading term of the power series, where this is small.
    """
    root = 1 / (9 * a)
    cube = 1 - root + _score(p, lower) * lax.sqrt(root)
    normal = lax.log(a) + 3 * lax.log(choose(cube > 0.05, cube, 0.05))
    log_lower = choose(lower, lax.log(p), lax.log1p(-p))
    leading = (log_lower + lax.lgamma(1 + a)) / a
    # The next term of the series multiplies by exp(x / (a + 1)).
    near = leading < lax.log(0.3 * (a + 1))
    corrected = leading + lax.exp(choose(near, leading, 0.0)) / (a + 1)
    return choose(near, corrected, normal)


def of_beta(p: Any, lower: Any, a: Any, b: Any) -> Any:
    """Logarithm of the odds of the quantile of a beta distribution.

    Abramowitz and Stegun 26.5.22, or where a parameter is at most 1 the leading powers at both
    ends.
    """
    large = (a > 1) & (b > 1)
    c, d = (1 / (2 * choose(large, v, 2.0) - 1) for v in (a, b))
    y = -_score(p, lower)
    curve = (y * y - 3) / 6
    mean = 2 / (c + d)
    root = lax.sqrt(lax.max(mean + curve, lax.full_like(mean, 0.0)))
    w = y * root / mean - (d - c) * (curve + 5 / 6 - 2 / (3 * mean))
    normal = lax.log(a / b) - 2 * w
    total = a + b
    log_left, log_right = a * lax.log(a / total), b * lax.log(b / total)
    left, right = lax.exp(log_left) / a, lax.exp(log_right) / b
    log_lower = choose(lower, lax.log(p), lax.log1p(-p))
    log_upper = choose(lower, lax.log1p(-p), lax.log(p))
    whole = lax.log(left + right)
    at_left = (lax.log(a) + whole + log_lower) / a
    at_right = (lax.log(b) + whole + log_upper) / b
    from_left = log_lower < lax.log(left) - whole
    log = _below_zero(choose(from_left, at_left, at_right))
    odds = log - lax.log(-lax.expm1(log))
    return choose(large, normal, choose(from_left, odds, -odds))


def _below_zero(log: Any) -> Any:
    """The logarithm of a share, less than 0."""
    return lax.min(log, lax.full_like(log, -0.01))


def of_f(p: Any, lower: Any, dfn: Any, dfd: Any) -> Any:
    """Logarithm of the quantile of an F distribution."""
    return of_beta(p, lower, 0.5 * dfn, 0.5 * dfd) + lax.log(dfd / dfn)


def of_chi2(p: Any, lower: Any, df: Any) -> Any:
    """Logarithm of the quantile of a chi-squared distribution."""
    return of_gamma(p, lower, 0.5 * df) + math.log(2)


def of_inverse_gamma(p: Any, lower: Any, a: Any) -> Any:
    """Logarithm of the quantile of an inverse gamma distribution."""
    return -of_gamma(p, ~lower, a)
