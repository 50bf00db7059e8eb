"""Kolmogorov-Smirnov tests of one sample, and the distributions of their statistics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax, vmap
from primax_core.typing import ArrayLike

from .._elementary import is_double
from ._alternatives import check_alternative, check_choice, check_size
from ._moments import sample
from ._pairs import KstestResult
from ._policies import check_policy

# The largest sample for which the exact distribution is computed by "auto"
_LARGE: Final = 10_000
# From these values of n d² on, the probability that distances of both signs exceed d is below
# rounding of that of one: it is exp(-6 n d²) relative to it.
_FAR: Final = {True: 6.0, False: 2.5}


def _one_sided(d: Any, n: int) -> Any:
    """The probability of a distance of one sign of at least ``d``, for a vector of ``d``.

    It is the sum of Birnbaum and Tingey, "One-sided confidence contours for probability
    distribution functions", Annals of Mathematical Statistics 22, 1951, all of whose terms are
    positive; they are computed from their logarithms.
    """
    j = np.arange(n)
    log_choose = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in j]
    d = d[:, None]
    inside = (d > 0) & (d < 1)
    at = pnp.where(inside, d, pnp.full_like(d, 0.5))
    up = at + pnp.asarray(j / n, d.dtype)
    down = 1 - up
    some = down > 0
    down = pnp.where(some, down, pnp.ones_like(down))
    counts = pnp.asarray(j, d.dtype)
    logs = pnp.asarray(np.array(log_choose), d.dtype)
    logs = logs + (n - counts) * pnp.log(down) + (counts - 1) * pnp.log(up)
    total = at[:, 0] * pnp.sum(pnp.where(some, pnp.exp(logs), pnp.zeros_like(logs)), -1)
    d = d[:, 0]
    total = pnp.where(d <= 0, pnp.ones_like(d), pnp.where(d >= 1, pnp.zeros_like(d), total))
    return pnp.minimum(total, pnp.ones_like(d))


def _transfer(d: Any, n: int, size: int) -> tuple[Any, Any]:
    """The matrix of Marsaglia, Tsang and Wang for one distance, in the corner of a larger one; and
    the position of the element of its power."""
    k = pnp.floor(n * lax.stop_gradient(d)) + 1
    h = pnp.maximum(k - n * d, pnp.full_like(d, 1e-30))
    m = 2 * k - 1
    i = pnp.arange(size, dtype=d.dtype)
    row, column = i[:, None], i[None, :]
    steps = np.arange(size)[:, None] - np.arange(size)[None, :] + 1
    factorials = np.array([math.exp(-math.lgamma(s + 1)) for s in range(size + 2)])
    inverse = np.where(steps >= 0, factorials[np.maximum(steps, 0)], 0.0)
    scale = pnp.asarray(inverse, d.dtype)
    ones = pnp.asarray(np.where(steps >= 0, 1.0, 0.0), d.dtype)
    powers = h ** (i + 1)
    first = pnp.where(column == 0, powers[:, None], pnp.zeros_like(ones))
    # Element (m - 1, j) is reduced by h^(m - j).
    exponent = pnp.maximum(m - column, pnp.ones_like(column))
    last = pnp.where((row == m - 1) & (column < m), h**exponent, pnp.zeros_like(ones))
    excess = pnp.maximum(2 * h - 1, pnp.zeros_like(h))
    some = excess > 0
    corner = pnp.where(some, pnp.where(some, excess, pnp.ones_like(h)) ** m, pnp.zeros_like(h))
    corner = pnp.where((row == m - 1) & (column == 0), corner, pnp.zeros_like(ones))
    matrix = (ones - first - last + corner) * scale
    inside = (row < m) & (column < m)
    return pnp.where(inside, matrix, pnp.zeros_like(matrix)), k - 1


def _two_sided_near(d: Any, n: int, far: float) -> Any:
    """The probability of an absolute distance of at least ``d``, a number, if ``n d² <= far``.

    G. Marsaglia, W. W. Tsang and J. Wang, "Evaluating Kolmogorov's distribution", Journal of
    Statistical Software 8, 2003: the probability of less is ``n! / n^n`` times an element of the
    power ``n`` of a matrix. A vector is multiplied by it ``n`` times instead.
    """
    size = 2 * (min(n, math.ceil(math.sqrt(far * n))) + 1) - 1
    matrix, place = _transfer(d, n, size)
    start = (pnp.arange(size, dtype=d.dtype) == place).astype(d.dtype)

    def step(v: Any, _: None) -> tuple[Any, None]:
        return pnp.matmul(matrix, v, precision=lax.Precision.HIGHEST) * math.exp(-1), None

    end, _ = lax.scan(step, start, None, length=n)
    factor = math.exp(math.lgamma(n + 1) - n * math.log(n) + n)
    below = factor * pnp.sum(end * start)
    return pnp.clip(1 - below, 0, 1)


def _two_sided(d: Any, n: int) -> Any:
    far_from = _FAR[is_double(d)]
    far = pnp.minimum(2 * _one_sided(d, n), pnp.ones_like(d))
    # From 1/2 on, both signs exclude each other.
    is_far = (n * lax.square(d) > far_from) | (d >= 0.5)
    least = 0.5 / n
    near = pnp.where(is_far | (d <= least), pnp.full_like(d, min(0.5, least * 1.5)), d)
    value = vmap(lambda v: _two_sided_near(v, n, far_from))(near)
    value = pnp.where(is_far, far, value)
    return pnp.where(d <= least, pnp.ones_like(d), value)


def _limit(x: Any) -> Any:
    """Kolmogorov's limit of the probability that ``sqrt(n) d`` is at least ``x``.

    Two series of the theta function, one for large and one for small numbers (W. Feller, "On the
    Kolmogorov-Smirnov limit theorems", Annals of Mathematical Statistics 19, 1948).
    """
    large = x > 1
    some = x > 0.04
    high = pnp.where(large, x, pnp.ones_like(x))
    low = pnp.where(large | ~some, pnp.ones_like(x), x)
    upper: Any = 0.0
    lower: Any = 0.0
    for k in range(1, 6):
        upper = upper - 2 * (-1) ** k * pnp.exp(-2 * k * k * lax.square(high))
        lower = lower + pnp.exp(-((2 * k - 1) ** 2) * math.pi**2 / (8 * lax.square(low)))
    lower = 1 - math.sqrt(2 * math.pi) / low * lower
    return pnp.where(large, upper, pnp.where(some, lower, pnp.ones_like(x)))


def _pvalue(d: Any, n: int, alternative: str, method: str) -> Any:
    if alternative != "two-sided":
        return _one_sided(d, n)
    root = math.sqrt(n)
    if method == "approx":
        return pnp.minimum(2 * _one_sided(d, n), pnp.ones_like(d))
    if method == "exact" or (method == "auto" and n <= _LARGE):
        return _two_sided(d, n)
    x = root * d
    if method == "auto":
        x = x + 1 / (6 * root) + (x - 1) / (4 * n)
    return _limit(x)


def two_sided_tail(d: Any, n: int) -> Any:
    """The probability of absolute distances of at least ``d``, a vector, of ``n`` elements."""
    return _pvalue(d, n, "two-sided", "auto")


def ks_1samp(
    x: ArrayLike,
    cdf: Callable[..., Any],
    args: tuple[Any, ...] = (),
    alternative: str = "two-sided",
    method: str = "auto",
    *,
    axis: int | None = 0,
    nan_policy: str = "propagate",
) -> KstestResult:
    """Kolmogorov and Smirnov's test whether a sample has a continuous distribution.

    The statistic is the largest distance of the empirical distribution function from the other one.
    Distances of one sign have the exact distribution of Birnbaum and Tingey (1951), absolute
    distances that of Marsaglia, Tsang and Wang (2003), or twice that of one sign where the
    difference is below rounding.

    Args:
      x: real numbers.
      cdf: a distribution function ``cdf(x, *args)`` of arrays.
      args: its parameters, which broadcast against ``x``.
      alternative: ``"two-sided"``; ``"less"``, the distribution function of the sample is below
        ``cdf``, or ``"greater"``, above it.
      method: ``"exact"``; ``"approx"``, twice the probability of one sign; ``"asymp"``, the limit
        of large samples; or ``"auto"``, exact for up to 10000 elements and otherwise the limit with
        the correction of J. Vrbik ("Small-sample corrections to Kolmogorov-Smirnov test statistic",
        Pioneer Journal of Theoretical and Applied Statistics 15, 2018). Probabilities of
        ``"less"`` and ``"greater"`` are exact for each of them.
      axis: an axis, or None for all elements.
      nan_policy: ``"propagate"``.

    Returns:
      A :class:`KstestResult` of floats without the axis, differentiable where elements are distinct
      and one distance is the largest. The exact method takes time ``n²`` and memory ``n``.

    Raises:
      ValueError: for an unknown alternative or method, or an empty sample.
      TypeError: if ``cdf`` is not a function.
      NotImplementedError: for the policies ``"omit"`` and ``"raise"``.

    >>> import numpy as np
    >>> from primax_scipy.stats import norm
    >>> d, p = ks_1samp(np.float32([-1, 0.2, 0.4, 2]), norm.cdf)
    >>> round(float(d), 4), round(float(p), 4)
    (0.3293, 0.6758)
    """
    check_alternative("ks_1samp", alternative)
    check_policy("ks_1samp", nan_policy)
    check_choice("ks_1samp", "method", method, ("auto", "exact", "approx", "asymp"))
    if not callable(cdf):
        raise TypeError(
            f"ks_1samp: cdf={cdf!r} is not a function: pass one of arrays, such as stats.norm.cdf."
        )
    data, place = sample("ks_1samp", x, axis)
    n = data.shape[place]
    check_size("ks_1samp", n, 1)
    data = pnp.sort(pnp.moveaxis(data, place, -1), -1)
    values = cdf(data, *args).astype(data.dtype)
    steps = np.arange(n + 1) / n
    first, last = (
        pnp.broadcast_to(pnp.asarray(v, data.dtype), data.shape) for v in (steps[:-1], steps[1:])
    )
    up, down = (_largest(v, data) for v in (last - values, values - first))
    if alternative == "two-sided":
        upper = up[0] > down[0]
        d, at = (pnp.where(upper, a, b) for a, b in zip(up, down, strict=True))
    else:
        upper = pnp.full(up[0].shape, alternative == "greater")
        d, at = up if alternative == "greater" else down
    sign = pnp.where(upper, 1, -1)
    p = pnp.reshape(_pvalue(pnp.ravel(d), n, alternative, method), d.shape)
    missing = pnp.isnan(d)
    return KstestResult(d, pnp.where(missing, d, p), at, sign)


def _largest(distances: Any, x: Any) -> tuple[Any, Any]:
    """The largest distance along the last axis, and the element of the sample there."""
    at = pnp.argmax(lax.stop_gradient(distances), -1, keepdims=True)
    largest, element = (pnp.take_along_axis(v, at, -1)[..., 0] for v in (distances, x))
    return largest, element
