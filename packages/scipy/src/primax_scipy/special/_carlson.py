"""Carlson's symmetric elliptic integrals of real numbers.

Duplication brings the arguments together, and a power series of seventh order finishes: Carlson,
*Numerical computation of real or complex elliptic integrals*, Numer. Algorithms 10 (1995); DLMF
19.36.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import elementwise

from .._elementary import choose
from ._operands import _own, called, differentiable, in_blocks


def _root(x: Any) -> Any:
    """The square root, with the derivative 0 at 0: other arguments have finite derivatives there,
    and those with respect to ``x`` are replaced by `_infinite_at_zero`."""
    zero = x == 0
    return choose(zero, 0.0, lax.sqrt(choose(zero, 1.0, x)))


def _infinite_at_zero(fun: Any, i: int, sign: Any = None) -> Any:
    """The derivative of a function's operations with respect to one operand, infinite where this is
    0: negative, or with the sign of a function of the operands."""

    def partial(*args: Any) -> Any:
        xs = args[:-1]
        infinity = lax.full_like(xs[i], -np.inf) if sign is None else sign(*xs) * np.inf
        infinity = choose(args[-1] == args[-1], infinity, np.nan)
        return choose(xs[i] == 0, infinity, _own(fun, i, xs))

    return partial


def _duplicated(xs: tuple[Any, ...], add: Any, extra: Any, active: Any) -> Any:
    """Arguments after enough duplications; ``add(xs, roots, scale, extra)`` accumulates a sum.

    Args:
      xs: nonnegative arguments; the last two of two stand for three with the last one twice.

    Returns:
      Arguments, the power of 1/4, and the sum.
    """
    eps = float(dtypes.finfo(typeof(xs[0]).dtype).eps)
    close = (eps / 4) ** (1 / 8)

    def spread(xs: Any) -> Any:
        high, low = xs[0], xs[0]
        for x in xs[1:]:
            high, low = lax.max(high, x), lax.min(low, x)
        return active & (high - low > close * low)

    def going(state: Any) -> Any:
        i, xs, *_ = state
        far = spread(xs)
        return (i < 40) & lax.reduce_or(far, tuple(range(far.ndim)))

    def step(state: Any, root: Any = lax.sqrt) -> Any:
        i, xs, scale, total = state
        roots = tuple(map(root, xs))
        a, b, c = roots[0], roots[1], roots[2] if len(xs) > 2 else roots[1]
        mean = a * b + b * c + c * a
        total = add(xs, roots, mean, scale, total)
        return i + 1, tuple(0.25 * (x + mean) for x in xs), 0.25 * scale, total

    # The first step is outside of the loop, because the derivative of sqrt at 0 is infinite, and
    # in the loop also constant arguments have (zero) tangents.
    start = step((0, tuple(xs), lax.full_like(xs[0], 1.0), extra), _root)
    return lax.while_loop(going, step, start)[1:]


def _no_sum(xs: Any, roots: Any, mean: Any, scale: Any, total: Any) -> Any:
    return total


def _series_of_first_kind(x: Any, y: Any, z: Any) -> Any:
    mean = (x + y + z) / 3
    a, b = (mean - x) / mean, (mean - y) / mean
    c = -a - b
    e2, e3 = a * b - c * c, a * b * c
    tail = e2 * (-1 / 10 + e2 * (1 / 24 - e2 * (5 / 208)))
    tail = tail + e3 * (1 / 14 - e2 * (3 / 44) + e3 * (3 / 104) + e2 * e2 * (1 / 16))
    return (1 + tail) / lax.sqrt(mean)


def _series_of_third_kind(mean: Any, e2: Any, e3: Any, e4: Any, e5: Any) -> Any:
    tail = e2 * (-3 / 14 + e2 * (9 / 88 - e2 * (1 / 16)) - e3 * (9 / 52) + e4 * (3 / 20))
    tail = tail + e3 * (1 / 6 + e3 * (3 / 40) + e2 * e2 * (45 / 272)) - e4 * (3 / 22)
    tail = tail + e5 * (3 / 26) - (e3 * e4 + e2 * e5) * (9 / 68)
    return (1 + tail) / (mean * lax.sqrt(mean))


def _first_kind(x: Any, y: Any, z: Any) -> Any:
    zeros = [v == 0 for v in (x, y, z)]
    two = (zeros[0] & zeros[1]) | (zeros[1] & zeros[2]) | (zeros[2] & zeros[0])
    infinite = (x == np.inf) | (y == np.inf) | (z == np.inf)
    plain = (x >= 0) & (y >= 0) & (z >= 0) & ~two & ~infinite
    xs = tuple(choose(plain, v, 1.0) for v in (x, y, z))
    xs, _, _ = _duplicated(xs, _no_sum, (), plain)
    bad = (x < 0) | (y < 0) | (z < 0) | (x != x) | (y != y) | (z != z)
    out = choose(plain, _series_of_first_kind(*xs), choose(infinite, 0.0, lax.full_like(x, np.inf)))
    return choose(bad, np.nan, out)


first_kind = differentiable(
    lambda x, y, z, _: -second_kind(y, z, x) / 6,
    lambda x, y, z, _: -second_kind(x, z, y) / 6,
    lambda x, y, z, _: -second_kind(x, y, z) / 6,
)(in_blocks(_first_kind))


@in_blocks
def _second_kind(x: Any, y: Any, z: Any) -> Any:
    """``R_D``: DLMF 19.36.2."""
    infinite = ((x == np.inf) | (y == np.inf) | (z == np.inf)) & (z != 0)
    plain = (x >= 0) & (y >= 0) & (z > 0) & ((x > 0) | (y > 0)) & ~infinite

    def add(xs: Any, roots: Any, mean: Any, scale: Any, total: Any) -> Any:
        return total + scale / (roots[2] * (xs[2] + mean))

    xs = tuple(choose(plain, v, 1.0) for v in (x, y, z))
    (u, v, w), scale, total = _duplicated(xs, add, lax.full_like(x, 0.0), plain)
    mean = 0.2 * (u + v + 3 * w)
    a, b = (mean - u) / mean, (mean - v) / mean
    c = -(a + b) / 3
    ab, cc = a * b, c * c
    series = _series_of_third_kind(
        mean, ab - 6 * cc, (3 * ab - 8 * cc) * c, 3 * (ab - cc) * cc, ab * cc * c
    )
    value = scale * series + 3 * total
    bad = (x < 0) | (y < 0) | (z < 0) | (x != x) | (y != y) | (z != z)
    out = choose(plain, value, choose(infinite, 0.0, lax.full_like(x, np.inf)))
    return choose(bad, np.nan, out)


second_kind = differentiable(
    _infinite_at_zero(_second_kind, 0), _infinite_at_zero(_second_kind, 1), None
)(_second_kind)


def _degenerate(x: Any, y: Any, active: Any) -> Any:
    """``R_C`` for ``y > 0``."""
    xs = choose(active, x, 1.0), choose(active, y, 1.0)
    (u, v), _, _ = _duplicated(xs, _no_sum, (), active)
    mean = (u + 2 * v) / 3
    s = (v - mean) / mean
    tail = 1 / 7 + s * (3 / 8 + s * (9 / 22 + s * (159 / 208 + s * (9 / 8))))
    return (1 + s * s * (3 / 10 + s * tail)) / lax.sqrt(mean)


@in_blocks
def _degenerate_of_both_signs(x: Any, y: Any) -> Any:
    """``R_C``, the principal value for negative ``y``: DLMF 19.2.20."""
    inside = (x >= 0) & (y != 0) & (x < np.inf) & (lax.abs(y) < np.inf)
    left = inside & (y < 0)
    u, v = choose(left, x - y, x), choose(left, -y, y)
    factor = choose(left, _root(choose(left, x / choose(left, u, 1.0), 1.0)), 1.0)
    value = factor * _degenerate(u, v, inside)
    infinite = (x >= 0) & (y != 0) & (((x == np.inf) & (y > 0)) | (lax.abs(y) == np.inf))
    return choose(inside, value, choose(infinite, 0.0, lax.full_like(x, np.nan)))


degenerate = differentiable(
    _infinite_at_zero(_degenerate_of_both_signs, 0, lambda x, y: -lax.sign(y)), None
)(_degenerate_of_both_signs)


def _inverse_tangent_ratio(e: Any) -> Any:
    """``R_C(1, 1 + e)`` for ``e > -1``."""
    near = lax.abs(e) < 0.02
    low = choose(near, e, 0.0)
    series: Any = 0.0
    for k in reversed(range(10)):
        series = (-1) ** k / (2 * k + 1) + low * series
    positive = e > 0
    root = lax.sqrt(choose(near, 1.0, lax.abs(e)))
    half = choose(positive | near, 0.5, root)
    far = choose(positive, lax.atan(root), lax.atanh(half)) / root
    return choose(near, series, far)


def _third_kind_of_positive(x: Any, y: Any, z: Any, p: Any, active: Any) -> Any:
    x, y, z, p = (choose(active, v, 1.0) for v in (x, y, z, p))
    delta = (p - x) * (p - y) * (p - z)

    def add(xs: Any, roots: Any, mean: Any, scale: Any, total: Any) -> Any:
        a, b, c, r = roots
        d = (r + a) * (r + b) * (r + c)
        e = scale * scale * scale * delta / (d * d)
        return total + scale / d * _inverse_tangent_ratio(e)

    xs, scale, total = _duplicated((x, y, z, p), add, lax.full_like(x, 0.0), active)
    u, v, w, r = xs
    mean = 0.2 * (u + v + w + 2 * r)
    a, b, c = (mean - u) / mean, (mean - v) / mean, (mean - w) / mean
    q = -0.5 * (a + b + c)
    abc = a * b * c
    e2 = a * b + b * c + c * a - 3 * q * q
    e3 = abc + 2 * e2 * q + 4 * q * q * q
    e4 = (2 * abc + e2 * q + 3 * q * q * q) * q
    return scale * _series_of_third_kind(mean, e2, e3, e4, abc * q * q) + 6 * total


def _sorted(x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
    x, y = lax.min(x, y), lax.max(x, y)
    y, z = lax.min(y, z), lax.max(y, z)
    x, y = lax.min(x, y), lax.max(x, y)
    return x, y, z


@in_blocks
def _third_kind(x: Any, y: Any, z: Any, p: Any) -> Any:
    """``R_J``, the principal value for negative ``p``: DLMF 19.36.2 and 19.20.14."""
    x, y, z = _sorted(x, y, z)
    inside = (x >= 0) & (y > 0) & (z < np.inf) & (p != 0) & (lax.abs(p) < np.inf)
    left = inside & (p < 0)
    q = choose(left, -p, 1.0)
    u, v, w = (choose(inside, t, 1.0) for t in (x, y, z))
    moved = (w * (u + v + q) - u * v) / (w + q)
    r = choose(left, moved, p)
    value = _third_kind_of_positive(x, y, z, r, inside)
    product = u * v + moved * q
    c = choose(left, _root(u * v * w / product), 1.0) * _degenerate(product, moved * q, left)
    f = _first_kind(u, v, w)
    principal = ((moved - w) * value - 3 * f + 3 * c) / (w + q)
    bad = (x < 0) | (x != x) | (y != y) | (z != z) | (p != p)
    infinite = (x >= 0) & (y > 0) & ((z == np.inf) | (lax.abs(p) == np.inf))
    out = choose(inside, choose(left, principal, value), lax.full_like(x, np.inf))
    return choose(bad, np.nan, choose(infinite, 0.0, out))


third_kind = differentiable(
    *[_infinite_at_zero(_third_kind, i, lambda x, y, z, p: -lax.sign(p)) for i in range(3)], None
)(_third_kind)


@in_blocks
def _area(x: Any, y: Any, z: Any) -> Any:
    """``R_G``: DLMF 19.21.10 with the middle argument last, so that no terms cancel."""
    low, middle, high = _sorted(x, y, z)
    inside = (low >= 0) & (middle > 0) & (high < np.inf)
    a, b, c = (choose(inside, v, 1.0) for v in (low, high, middle))
    value = 0.5 * (
        c * _first_kind(a, b, c) - (a - c) * (b - c) * _second_kind(a, b, c) / 3
        + _root(a) * lax.sqrt(b) / lax.sqrt(c)
    )  # fmt: skip
    ends = choose(low >= 0, 0.5 * lax.sqrt(lax.abs(high)), np.nan)
    out = choose(inside, value, choose(high == np.inf, np.inf, ends))
    bad = (x < 0) | (y < 0) | (z < 0) | (x != x) | (y != y) | (z != z)
    return choose(bad, np.nan, out)


area = differentiable(
    *[_infinite_at_zero(_area, i, lambda x, y, z: lax.full_like(x, 1.0)) for i in range(3)]
)(_area)


@elementwise
def elliprf(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's symmetric elliptic integral of the first kind.

    Args:
      x, y, z: nonnegative real numbers, of which at most one is 0. Two zeros give infinity, and
        negative numbers NaN.

    Derivatives of two orders in both modes, of more in forward mode.

    Raises:
      ValueError: if an argument is complex.

    >>> round(float(elliprf(0.0, 1.0, 2.0)), 5)
    1.31103
    """
    return called("elliprf", first_kind, x, y, z)


@elementwise
def elliprd(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's symmetric elliptic integral of the second kind, ``R_J(x, y, z, z)``.

    Args:
      x, y: nonnegative real numbers that are not both 0; negative ones give NaN.
      z: positive real numbers.

    Derivatives: one in reverse mode, more in forward mode.

    Raises:
      ValueError: if an argument is complex.

    >>> round(float(elliprd(0.0, 2.0, 1.0)), 5)
    1.79721
    """
    return called("elliprd", second_kind, x, y, z)


@elementwise
def elliprc(x: ArrayLike, y: ArrayLike) -> Array:
    """Carlson's degenerate elliptic integral ``R_F(x, y, y)``.

    Args:
      x: nonnegative real numbers; negative ones give NaN.
      y: real numbers; the principal value for negative ones, NaN for 0.

    Derivatives: one in reverse mode, more in forward mode.

    Raises:
      ValueError: if an argument is complex.

    >>> round(float(elliprc(0.0, 0.25)), 5)
    3.14159
    """
    return called("elliprc", degenerate, x, y)


@elementwise
def elliprj(x: ArrayLike, y: ArrayLike, z: ArrayLike, p: ArrayLike) -> Array:
    """Carlson's symmetric elliptic integral of the third kind.

    Args:
      x, y, z: nonnegative real numbers, of which at most one is 0; negative ones give NaN.
      p: real numbers; the principal value for negative ones, infinite for 0.

    Derivatives: one in reverse mode, more in forward mode.

    Raises:
      ValueError: if an argument is complex.

    >>> round(float(elliprj(2.0, 3.0, 4.0, 5.0)), 5)
    0.14298
    """
    return called("elliprj", third_kind, x, y, z, p)


@elementwise
def elliprg(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's completely symmetric elliptic integral of the second kind.

    Args:
      x, y, z: nonnegative real numbers; negative ones give NaN.

    Derivatives: one in reverse mode, more in forward mode.

    Raises:
      ValueError: if an argument is complex.

    >>> round(float(elliprg(0.0, 16.0, 16.0)), 5)
    3.14159
    """
    return called("elliprg", area, x, y, z)
