"""Quantiles of Student's t distribution.

The share ``df / (df + t²)`` is a beta variable, which `_series_inversion` inverts for the
probability of both tails, or for that of the interval between them where it is smaller: near the
median this is known to all digits. Far out the tail is a power; for many degrees of freedom the
quantile is a series in ``1 / df`` of the normal one (Abramowitz and Stegun 26.7.5; the fifth term:
H. Goldberg and H. Levine, "Approximate formulas for the percentage points and normalization of t
and chi-squared", Ann. Math. Stat. 17, 1946).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import typeof

from .. import _double_words as double_words
from .._elementary import ROOT_PI, choose, is_double
from ..special import ndtri
from ..special._operands import if_any, in_blocks, level
from ._curves import beta_curve
from ._first_quantiles import of_beta
from ._series_inversion import solve

_SERIES: Final = (
    ((1, 1), 4),
    ((3, 16, 5), 96),
    ((-15, 17, 19, 3), 384),
    ((-945, -1920, 1482, 776, 79), 92160),
    ((17955, -765, -1782, 930, 339, 27), 368640),
)
"""For each power of ``1 / df`` the coefficients of ``z``, ``z³``, ..., and their denominator."""


def _of_many(z: Any, df: Any) -> Any:
    """The quantile for many degrees of freedom from the normal one."""
    square, inverse = z * z, 1 / df
    total: Any = 0.0
    for coefficients, denominator in reversed(_SERIES):
        polynomial: Any = 0.0
        for c in reversed(coefficients):
            polynomial = polynomial * square + c / denominator
        total = inverse * (total + polynomial)
    return z + z * total


def _log_constant(df: Any) -> Any:
    """The logarithm of ``a B(a, 1/2)`` for ``a = df / 2``: far out, the probability of both tails
    divided by it is the power ``a`` of the share."""
    half = 0.5 * df
    return lax.lgamma(1 + half) - (lax.lgamma(half + 0.5) - math.log(ROOT_PI))


def _far(p: Any, df: Any) -> Any:
    """The quantile of the probability ``p`` of both tails far out."""
    exponent, error = double_words.quotient(double_words.log(p), df)
    scale = lax.exp(-_log_constant(df) / df)
    return lax.sqrt(df) * scale * double_words.exp((-exponent, -error))


def _cases(q: Any, df: Any) -> tuple[Any, Any, Any, Any]:
    """The smaller of the probabilities of both tails and of the interval between them, with a
    condition that it is the first one, and the conditions of `_of_many` and `_far`."""
    size = choose(q < 0.5, q, 1 - q)
    outer = size < 0.25
    p = choose(outer, 2 * size, lax.abs(2 * q - 1))
    log = lax.log(choose(outer, p, 1.0))
    # The squared normal quantile is at most -2 log(p).
    least, slope = (500.0, 70.0) if is_double(df) else (100.0, 3.0)
    many = df > least - (2 * slope) * log
    eps = float(np.finfo(typeof(q).dtype).eps)
    freedom = choose(many, 1.0, df)
    log_share = 2 * (log + _log_constant(freedom))
    return p, outer, many, outer & ~many & (log_share < math.log(0.25 * eps) * freedom)


def _work(q: Any, df: Any) -> Any:
    """Blocks of one case and tail do not compute the others."""
    _, outer, many, far = _cases(q, df)
    size = lax.log(choose(df > 1e-9, df, 1e-9))
    inner = choose(outer, 15.5, lax.full_like(q, 47.5)) + size
    return level(choose(many | far, 63.0, inner))


@partial(in_blocks, work=_work)
def t_quantile(q: Any, df: Any) -> Any:
    """The quantile for probabilities in (0, 1), without derivatives."""
    p, outer, many, far = _cases(q, df)
    special = many | far | (p == 0)
    freedom = choose(many, 1.0, df)
    half, other = 0.5 * choose(special, 1.0, freedom), lax.full_like(q, 0.5)
    some = choose(special, 0.5, p)
    curve = beta_curve(half, other)

    def value(shares: Any) -> Any:
        return lax.sqrt(2 * half * (shares[1] / shares[0]))

    curve = curve._replace(
        value=value, moved=lambda shares, growth: value(shares) / lax.sqrt(1 + growth)
    )
    out = solve(curve, outer, some, of_beta(some, outer, half, other))
    (beyond,) = if_any(far, 1, lambda p, n: (_far(p, n),), choose(far, p, 0.5), freedom)
    (normal,) = if_any(many, 1, lambda q, n: (_of_many(ndtri(q), n),), q, choose(many, df, 1e4))
    out = choose(p == 0, 0.0, choose(far, beyond, out))
    return choose(many, normal, choose(q < 0.5, -out, out))
