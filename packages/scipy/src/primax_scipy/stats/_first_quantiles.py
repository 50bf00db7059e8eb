"""First values for the iterations of `_inversion`, on the real line to which the support is mapped.

Each function takes the probability ``p`` of the smaller tail, a condition that it is the lower one,
and the parameters.
"""

from __future__ import annotations

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

    The complement of the share with the smaller parameter is the exponential of a gamma variable
    (Wise, "The incomplete beta function as a contour integral and a quickly converging series for
    its inverse", Biometrika 37, 1950). If both parameters are less than 1, the leading powers at
    both ends.
    """
    swapped = a > b
    few, many = choose(swapped, b, a), choose(swapped, a, b)
    large = many > 1
    few_lower = lower != swapped
    gamma = lax.exp(of_gamma(p, few_lower, few))
    odds = lax.log(lax.expm1(gamma / (choose(large, many, 1.0) + 0.5 * (few - 1))))
    # Far from 0 the expression above would overflow or be infinite.
    powers = _by_powers(p, few_lower, few, many)
    out = choose(large & (lax.abs(odds) < 80), odds, powers)
    return choose(swapped, -out, out)


def _by_powers(p: Any, lower: Any, a: Any, b: Any) -> Any:
    """Logarithm of the odds by the leading powers at both ends."""
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
    return choose(from_left, odds, -odds)


def _below_zero(log: Any) -> Any:
    """The logarithm of a share, less than 0."""
    return lax.min(log, lax.full_like(log, -0.01))
