"""Lambert's W function."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled, strong

from .._elementary import choose
from ._operands import differentiable, same_shape


def _series_coefficients(n: int) -> list[float]:
    """Coefficients of ``W`` in ``p = sqrt(2 (e z + 1))``: Corless et al., *On the Lambert W
    function*, Adv. Comput. Math. 5 (1996), equations 4.23 and 4.24."""
    mu, alpha = [Fraction(-1), Fraction(1)], [Fraction(2), Fraction(-1)]
    for k in range(2, n):
        alpha.append(sum((mu[j] * mu[k + 1 - j] for j in range(2, k)), Fraction(0)))
        head = Fraction(k - 1, k + 1) * (mu[k - 2] / 2 + alpha[k - 2] / 4)
        mu.append(head - alpha[k] / 2 - mu[k - 1] / (k + 1))
    return [float(c) for c in mu]


_AT_BRANCH_POINT: Final = tuple(_series_coefficients(20))
_MINUS_INVERSE_E: Final = (-0.36787944117144233, 1.2428753672788363e-17)
"""``-1/e`` as the sum of two numbers of ``float64``."""


def _from_branch_point(z: Any) -> Any:
    """``p² = 2 (e z + 1)``, accurate near the branch point."""
    head, tail = _MINUS_INVERSE_E
    if typeof(z).dtype == np.complex64:
        rounded = float(np.float32(head))
        head, tail = rounded, head - rounded
    gap = (lax.real(z) - head) / -head - tail / -head
    return lax.complex(2 * gap, lax.imag(z) * (2 * math.e))


def _first_guess(z: Any, k: Any, sheet: Any) -> Any:
    """Logarithms far from 0 and from the branch point; a rational function near 0."""
    log = lax.log(choose(z == 0, lax.full_like(z, 1), z)) + sheet
    small = lax.abs(log) < 1
    inner = choose(small, lax.full_like(z, 2), log)
    guess = log - lax.log(inner)
    # On the real part of branch -1, log(-z) - log(-log(-z)) is real.
    below = (k == -1) & (lax.real(z) < 0) & (lax.imag(z) == 0) & (lax.real(z) > -0.4)
    real_log = lax.log(choose(below, -lax.real(z), 0.1))
    real_guess = real_log - lax.log(-real_log)
    guess = choose(below, lax.complex(real_guess, lax.full_like(real_guess, 0)), guess)
    near_zero = (k == 0) & (lax.abs(z) < 10) & (lax.real(z) > -2)
    inside = choose(near_zero, z, lax.full_like(z, 1))
    # The Padé approximant at 0, and an approximation by logarithms (Iacono and Boyd, 2017)
    pade = inside * (1 + (4 / 3) * inside) / (1 + inside * (7 / 3 + (5 / 6) * inside))
    root = lax.log(1 + inside)
    far = root * (1 - lax.log(1 + root) / (2 + root))
    return choose(near_zero, choose(lax.abs(z) < 0.4, pade, far), guess)


def _on_the_line(z: Any, k: Any) -> Any:
    """True for real numbers whose value is real, and for NaN."""
    x = lax.real(z)
    real = (lax.imag(z) == 0) & (lax.real(_from_branch_point(z)) >= 0)
    return (real & ((k == 0) | ((k == -1) & (x <= 0)))) | (x != x)


def _real(z: Any, k: Any) -> Any:
    """`_complex` where `_on_the_line` is true, in real arithmetic."""
    x, upper = lax.real(z), k == 0
    square = lax.real(_from_branch_point(z))
    p = lax.sqrt(choose(square > 0, square, 0.0))
    signed = choose(upper, p, -p)
    near = p < 0.35
    plain = ~near & (lax.abs(x) < np.inf) & (x != 0)
    y = choose(plain, x, 1.0)
    start = choose(upper, _upper_guess(y), _lower_guess(choose(upper, -0.1, y)))
    middle = (p < 1) | (upper & (x < -0.3))
    start = choose(middle & plain, -1 + signed / (1 + signed * (1 / 3 - signed / 24)), start)
    start = choose(plain, start, 0.5671432904097838)

    def step(_: Any, w: Any) -> Any:
        rest = lax.log(y / w) - w
        above = 1 + w
        q = 2 * above * (above + (2 / 3) * rest)
        return w * (1 + (rest / above) * ((q - rest) / (q - 2 * rest)))

    w = lax.fori_loop(0, 3, step, start)
    q = choose(near, signed, 0.0)
    series: Any = lax.full_like(x, 0)
    for c in reversed(_AT_BRANCH_POINT):
        series = series * q + c
    out = choose(near, series, w)
    out = choose(x == 0, choose(upper, x, -np.inf), choose(x == np.inf, x, out))
    return lax.complex(choose(x != x, x, out), lax.full_like(x, 0.0))


def _upper_guess(x: Any) -> Any:
    """Branch 0: the Padé approximant at 0, and an approximation by logarithms (Iacono and Boyd,
    *New approximations to the principal real-valued branch of the Lambert W-function*, 2017)."""
    small = lax.abs(x) < 0.4
    pade = x * (1 + (4 / 3) * x) / (1 + x * (7 / 3 + (5 / 6) * x))
    root = lax.log(1 + choose(x > -0.4, x, 1.0))
    return choose(small, pade, root * (1 - lax.log(1 + root) / (2 + root)))


def _lower_guess(x: Any) -> Any:
    """Branch -1: ``log(-x) - log(-log(-x))``."""
    log = lax.log(-choose(x < 0, x, -0.1))
    return log - lax.log(-log)


def _lambert_slope(z: Any, k: Any, w: Any) -> Any:
    return lax.exp(-w) / (1 + w)


@differentiable(_lambert_slope, lambda z, k, w: lax.full_like(z, np.nan))
def _lambert(z: Any, k: Any) -> Any:
    line = _on_the_line(z, k)
    return lax.cond(lax.reduce_and(line, tuple(range(typeof(k).ndim))), _real, _complex, z, k)


def _complex(z: Any, k: Any) -> Any:
    """Fritsch's iteration of fourth order (Fritsch, Shafer, Crowley, *Algorithm 443*, CACM 16,
    1973), and near the branch point the series in ``sqrt(2 (e z + 1))``."""
    zero_imag = lax.full_like(k, 0.0)
    sheet = lax.complex(zero_imag, 2 * math.pi * k)
    square = _from_branch_point(z)
    p = lax.sqrt(square)
    # Branch -1 is next to branch 0 above the cut, and branch 1 below it.
    up = lax.imag(z) >= 0
    other = ((k == -1) & up) | ((k == 1) & ~up)
    near = (lax.abs(p) < 0.35) & ((k == 0) | other)
    safe = near | (z == 0) | ~(lax.abs(z) < np.inf)
    y = choose(safe, lax.full_like(z, 1), z)
    start = _first_guess(y, k, sheet)
    middle = ((lax.abs(p) < 1) & other) | ((lax.abs(p) < 3.5) & (lax.real(z) < -0.3) & (k == 0))
    signed = choose(other, -p, p)
    start = choose(middle & ~safe, -1 + signed / (1 + signed * (1 / 3 - signed / 24)), start)

    def step(_: Any, w: Any) -> Any:
        rest = lax.log(y / w) - w
        turns = lax.floor(lax.imag(rest) * (0.5 / math.pi) + 0.5)
        rest = rest - lax.complex(lax.full_like(turns, 0.0), turns * (2 * math.pi))
        above = 1 + w
        q = 2 * above * (above + (2 / 3) * rest)
        return w * (1 + (rest / above) * ((q - rest) / (q - 2 * rest)))

    w = lax.fori_loop(0, 3, step, start)
    q = choose(near, signed, lax.full_like(z, 0))
    series: Any = lax.full_like(z, 0)
    for c in reversed(_AT_BRANCH_POINT):
        series = series * q + c
    out = choose(near, series, w)
    origin = lax.full_like(z, complex(-np.inf, 0))
    out = choose(z == 0, choose(k == 0, z, origin), out)
    # log(z) + 2πik at infinity
    huge = lax.abs(z) == np.inf
    angle = lax.atan2(lax.imag(z), lax.real(z)) + 2 * math.pi * k
    far = lax.complex(lax.full_like(angle, np.inf), angle)
    return choose(z != z, z, choose(huge, far, out))


@compiled(name="lambertw")
def _lambertw(z, k):
    z = strong(z)
    wide = lax.convert_element_type(z, np.promote_types(typeof(z).dtype, np.complex64))
    k = lax.convert_element_type(k, typeof(lax.real(wide)).dtype)
    return _lambert(*same_shape(wide, k))


def lambertw(z: ArrayLike, k: ArrayLike = 0, tol: float = 1e-8) -> Array:
    """Lambert's W function: the solution ``w`` of ``w exp(w) = z`` on branch ``k``.

    Args:
      z: real or complex numbers.
      k: integers, the branch; 0 is the principal branch, which is real from ``-1/e`` on. Branch -1
        is real between ``-1/e`` and 0.
      tol: accepted for compatibility; the result is always accurate to rounding.

    Returns:
      Complex numbers of the shape that ``z`` and ``k`` broadcast to: ``complex128`` for operands of
      64 bits, ``complex64`` otherwise. At 0 it is 0 on the principal branch and ``-inf`` on others.

    Raises:
      TypeError: if ``k`` does not have integers.

    >>> round(float(lambertw(1.0).real), 5)
    0.56714
    """
    check_arrays("lambertw", z, k)
    if typeof(k).dtype.kind not in "iu":
        raise TypeError(
            f"lambertw: k must be integers, the number of the branch, got {typeof(k).dtype.name}"
        )
    out: Array = _lambertw(z, k)
    return out
