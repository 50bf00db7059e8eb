"""Correlations of pairs: linear, of ranks, and of orders."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax, vmap
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled, one_axis

from .._functions import floats
from ..special import betainc
from ._alternatives import (
    check_alternative,
    check_choice,
    check_pairs,
    check_size,
    symmetric_pvalue,
    two_samples,
)
from ._policies import check_policy
from ._ranks import rankdata, runs
from .norm import sf as _normal_sf
from .t import sf as _t_sf


class PearsonRResult(NamedTuple):
    """Result of :func:`pearsonr`: the correlation, and its p-value."""

    statistic: Array
    pvalue: Array

    @property
    def correlation(self) -> Array:
        """The statistic, under its other name."""
        return self.statistic


class SignificanceResult(NamedTuple):
    """Result of :func:`spearmanr` and :func:`kendalltau`: the correlation, and its p-value."""

    statistic: Array
    pvalue: Array

    @property
    def correlation(self) -> Array:
        """The statistic, under its other name."""
        return self.statistic


# Linear correlation


def _unit(x: Any) -> Any:
    """Differences from the mean along the last axis, divided by their norm; NaN if all are 0."""
    gaps = x - pnp.mean(x, -1, keepdims=True)
    # Without this division squares of large or small numbers would overflow or vanish.
    largest = lax.stop_gradient(pnp.max(lax.abs(gaps), -1, keepdims=True))
    rounding = float(np.finfo(x.dtype).eps) * pnp.max(lax.abs(x), -1, keepdims=True)
    constant = ~(largest > rounding)
    gaps = gaps / pnp.where(constant, pnp.ones_like(largest), largest)
    norm = pnp.sqrt(pnp.sum(lax.square(gaps), -1, keepdims=True) + constant)
    return pnp.where(constant, pnp.full_like(gaps, np.nan), gaps / norm)


def _bounded(r: Any) -> Any:
    return pnp.clip(r, -1, 1)


@compiled("alternative", name="pearsonr")
def _pearsonr(x, y, *, alternative):
    r = _bounded(pnp.sum(_unit(x) * _unit(y), -1))
    half = pnp.full_like(r, 0.5 * x.shape[-1] - 1)
    if x.shape[-1] == 2:
        return r, pnp.where(r == r, pnp.ones_like(r), r)
    return r, symmetric_pvalue(lambda v: betainc(half, half, 0.5 * (1 - v)), r, alternative)


def pearsonr(
    x: ArrayLike, y: ArrayLike, *, alternative: str = "two-sided", axis: int | None = 0
) -> PearsonRResult:
    """Pearson's coefficient of linear correlation, and its p-value.

    The p-value is the probability of a correlation at least as far from 0 for independent normal
    samples, ``(1 + r) / 2`` of which has a beta distribution (R. A. Fisher, "Frequency
    distribution of the values of the correlation coefficient", Biometrika 10, 1915). It is 1 for
    two pairs.

    Args:
      x, y: real numbers, paired along the axis; other axes broadcast.
      alternative: ``"two-sided"``, ``"less"`` (a negative correlation) or ``"greater"``.
      axis: an axis, or None for all elements.

    Returns:
      A named tuple of floats without the axis; NaN if one sample is constant. Both are
      differentiable.

    Raises:
      ValueError: for an unknown alternative, samples of different sizes, or fewer than two pairs.

    >>> import numpy as np
    >>> result = pearsonr(np.float32([1, 2, 3, 4]), np.float32([1, 3, 2, 4]))
    >>> round(float(result.statistic), 4), round(float(result.pvalue), 4)
    (0.8, 0.2)
    """
    check_alternative("pearsonr", alternative)
    x, y = two_samples("pearsonr", x, y, axis)
    check_pairs("pearsonr", x, y, 2)
    return PearsonRResult(*_pearsonr(x, y, alternative=alternative))


# Correlation of ranks


@compiled("alternative", name="spearmanr")
def _spearmanr(columns, *, alternative):
    unit = _unit(rankdata(columns, axis=-1))
    r = _bounded(pnp.matmul(unit, unit.T, precision=lax.Precision.HIGHEST))
    freedom = columns.shape[-1] - 2
    if len(columns) == 2:
        r = r[0, 1]
    bottom = (1 - r) * (1 + r)
    some = bottom > 0
    t = r * pnp.sqrt(freedom / pnp.where(some, bottom, pnp.ones_like(r)))
    t = pnp.where(some | (r != r), t, pnp.copysign(pnp.full_like(r, np.inf), r))
    p = symmetric_pvalue(_t_sf, t, alternative, freedom)
    return r, p if freedom else pnp.where(r == r, pnp.ones_like(r), r)


def spearmanr(
    a: ArrayLike,
    b: ArrayLike | None = None,
    axis: int | None = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
) -> SignificanceResult:
    """Spearman's correlation of ranks, and its p-value.

    Equal elements have the mean of their ranks. The p-value is that of Student's distribution with
    ``n - 2`` degrees of freedom, an approximation (M. G. Kendall, "Rank correlation methods",
    1970, section 4.14).

    Args:
      a, b: samples. A matrix contains several variables, each along the axis; without ``b``, the
        variables are those of ``a``.
      axis: the axis of observations, 0 or 1, or None for all elements of ``a`` and of ``b``.
      nan_policy: ``"propagate"``.
      alternative: ``"two-sided"``, ``"less"`` (a negative correlation) or ``"greater"``.

    Returns:
      A named tuple of numbers for two variables, and of matrices of the correlations of all pairs
      for more. NaN for constant variables. Derivatives are zero, because ranks are piecewise
      constant.

    Raises:
      ValueError: for an unknown alternative, one variable, more than two dimensions, samples of
        different sizes, or fewer than two observations.
      NotImplementedError: for the policies ``"omit"`` and ``"raise"``.

    >>> import numpy as np
    >>> result = spearmanr(np.float32([1, 2, 3, 4]), np.float32([1, 3, 2, 9]))
    >>> round(float(result.statistic), 4), round(float(result.pvalue), 4)
    (0.8, 0.2)
    """
    check_alternative("spearmanr", alternative)
    check_policy("spearmanr", nan_policy)
    samples = [a] if b is None else [a, b]
    check_arrays("spearmanr", *samples)
    parts = []
    for part in samples:
        x = pnp.asarray(part)
        if axis is None or x.ndim < 2:
            parts.append(pnp.ravel(x)[None])
        elif x.ndim == 2:
            parts.append(pnp.moveaxis(x, one_axis(axis, 2), -1))
        else:
            raise ValueError(
                f"spearmanr: a sample of shape {x.shape} has more than two dimensions: use vmap."
            )
    parts = floats("spearmanr", *parts)
    if len(parts) == 2:
        check_pairs("spearmanr", parts[0], parts[1], 2)
    columns = pnp.concatenate(parts)
    if len(columns) < 2:
        raise ValueError("spearmanr: there is one variable: pass b, or a matrix of variables.")
    check_size("spearmanr", columns.shape[-1], 2)
    return SignificanceResult(*_spearmanr(columns, alternative=alternative))


# Correlation of orders


def _counts_of_runs(ordered: Any) -> Any:
    """Along the last axis of sorted values: the size of each run at its first element, else 0."""
    begins, start, stop = runs(ordered)
    return lax.convert_element_type(begins * (stop - start + 1), ordered.dtype)


def _tie_sums(ordered: Any) -> tuple[Any, Any, Any]:
    """Sums over runs of ``t`` equal values: of pairs, ``t(t-1)(t-2)`` and ``t(t-1)(2t+5)``."""
    t = _counts_of_runs(ordered)
    pairs = t * (t - 1)
    # Positions between runs have t = 0.
    ties, triples = pnp.sum(0.5 * pairs, -1), pnp.sum(pairs * (t - 2), -1)
    return ties, triples, pnp.sum(pairs * (2 * t + 5), -1)


def _inversions(ranks: Any, floating: Any) -> Any:
    """The number of pairs of a vector whose first rank is greater than the second.

    Ranks are partitioned by their binary digits, from the highest one on: a pair is inverted if the
    digit at which they first differ is 1 in the first rank.
    """
    n = ranks.shape[-1]
    bits = max(1, (n - 1).bit_length())

    def step(i: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        r, total = state
        shift = lax.full_like(r, bits - 1) - lax.convert_element_type(i, r.dtype)
        head = lax.shift_right_logical(r, shift)
        digit = head & 1
        before = pnp.cumsum(digit, dtype=r.dtype) - digit
        group = head >> 1
        first = pnp.concatenate([pnp.ones((1,), bool), group[1:] != group[:-1]])
        at_start = lax.cummax(pnp.where(first, before, pnp.zeros_like(before)))
        ahead = pnp.where(digit == 0, before - at_start, pnp.zeros_like(before))
        total = total + pnp.sum(lax.convert_element_type(ahead, floating))
        return r[pnp.argsort(head, stable=True)], total

    return lax.fori_loop(0, bits, step, (ranks, pnp.zeros((), floating)))[1]


@cache
def _inversion_tails(n: int) -> np.ndarray:
    """Probabilities of at most ``k`` inversions in a random permutation of ``n`` elements.

    The distribution is a sum of independent uniform ones on ``0 .. i - 1`` (Knuth, TAOCP 5.1.1).
    """
    mass = np.ones(1)
    for size in range(2, n + 1):
        sums = np.cumsum(np.concatenate([mass, np.zeros(size - 1)]))
        sums[size:] -= sums[:-size].copy()
        mass = sums / size
    return np.minimum(np.cumsum(mass), 1.0)


def _exact_tau(discordant: Any, n: int, alternative: str) -> Any:
    total = n * (n - 1) // 2
    table = pnp.asarray(_inversion_tails(n), discordant.dtype)
    position = lax.convert_element_type(discordant, np.int32)
    if alternative == "less":
        position = total - position
    elif alternative == "two-sided":
        position = pnp.minimum(position, total - position)
    p = table[pnp.clip(position, 0, total)]
    return p if alternative != "two-sided" else pnp.minimum(2 * p, pnp.ones_like(p))


def _extreme_tau(discordant: Any, n: int, p: Any, alternative: str) -> Any:
    """The exact p-value of at most one inversion or of at most one pair in order, else ``p``."""
    total = n * (n - 1) / 2
    one = math.exp(math.log(n) - math.lgamma(n + 1))
    none = math.exp(-math.lgamma(n + 1))
    sides = {"greater": (none, one, 1 - none, 1.0), "less": (1.0, 1 - none, one, none)}
    chances = sides.get(alternative, (2 * none, 2 * one, 2 * one, 2 * none))
    for place, chance in zip((0, 1, total - 1, total), chances, strict=True):
        p = pnp.where(discordant == place, pnp.full_like(p, chance), p)
    return p


def _one_tau(x: Any, y: Any, method: str, variant: str, alternative: str) -> tuple[Any, Any]:
    n = x.shape[-1]
    order = pnp.lexsort((y, x))
    x, y = x[order], y[order]
    x_ties, x_triples, x_weights = _tie_sums(x)
    ordered = pnp.sort(y)
    y_ties, y_triples, y_weights = _tie_sums(ordered)
    # Runs of equal pairs: both elements equal their neighbours.
    pair_starts = pnp.concatenate([
        pnp.ones((1,), bool), (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    ])  # fmt: skip
    both = pnp.cumsum(pair_starts).astype(x.dtype)
    both_ties = _tie_sums(both)[0]
    ranks = lax.convert_element_type(rankdata(y, "min", axis=0) - 1, np.int32)
    discordant = _inversions(ranks, x.dtype)
    total = 0.5 * n * (n - 1)
    balance = total - x_ties - y_ties + both_ties - 2 * discordant
    if variant == "b":
        tau = balance / pnp.sqrt(total - x_ties) / pnp.sqrt(total - y_ties)
    else:
        distinct = pnp.minimum(*(pnp.sum(runs(v)[0]).astype(x.dtype) for v in (x, ordered)))
        tau = 2 * balance / (n * n * (distinct - 1) / distinct)
    ordered_pairs = n * (n - 1.0)
    variance = (ordered_pairs * (2 * n + 5) - x_weights - y_weights) / 18
    variance = variance + 2 * x_ties * y_ties / ordered_pairs
    if n > 2:
        variance = variance + x_triples * y_triples / (9 * ordered_pairs * (n - 2))
    p = symmetric_pvalue(_normal_sf, balance / pnp.sqrt(variance), alternative)
    untied = (x_ties == 0) & (y_ties == 0)
    if method == "exact":
        exact = _exact_tau(discordant, n, alternative)
        p = pnp.where(untied, exact, pnp.full_like(p, np.nan))
    elif method == "auto":
        short = n <= 33
        exact = (
            _exact_tau(discordant, n, alternative)
            if short
            else _extreme_tau(discordant, n, p, alternative)
        )
        p = pnp.where(untied, exact, p)
    missing = pnp.isnan(x).any() | pnp.isnan(y).any() | pnp.isnan(tau)
    tau, p = (pnp.where(missing, pnp.full_like(v, np.nan), _bounded(v)) for v in (tau, p))
    return tau, p


@compiled("method", "variant", "alternative", name="kendalltau")
def _kendalltau(x, y, *, method, variant, alternative):
    batch = x.shape[:-1]
    rows = [pnp.reshape(v, (math.prod(batch), v.shape[-1])) for v in (x, y)]
    outs = vmap(lambda u, v: _one_tau(u, v, method, variant, alternative))(*rows)
    return tuple(pnp.reshape(v, batch) for v in outs)


def kendalltau(
    x: ArrayLike,
    y: ArrayLike,
    *,
    nan_policy: str = "propagate",
    method: str = "auto",
    variant: str = "b",
    alternative: str = "two-sided",
    axis: int | None = None,
) -> SignificanceResult:
    """Kendall's tau: concordant less discordant pairs, relative to all; and its p-value.

    Discordant pairs are counted by partitions, in time ``n log(n)²``. The asymptotic p-value is
    normal with the variance for ties of M. G. Kendall, "Rank correlation methods" (1970), section
    4.4; the exact one is that of the number of inversions of a random permutation.

    Args:
      x, y: real numbers, paired.
      nan_policy: ``"propagate"``.
      method: ``"exact"``, which needs samples without equal elements and is NaN otherwise;
        ``"asymptotic"``; or ``"auto"``, exact without equal elements for up to 33 pairs or if at
        most one pair is discordant or concordant.
      variant: ``"b"``, for which equal elements are not counted, or ``"c"`` (Stuart's), for tables
        with unequal numbers of rows and columns.
      alternative: ``"two-sided"``, ``"less"`` (a negative correlation) or ``"greater"``.
      axis: an axis, or None for all elements.

    Returns:
      A named tuple of floats without the axis; NaN for constant samples. Derivatives are zero,
      because the order is piecewise constant.

    Raises:
      ValueError: for an unknown method, variant or alternative, samples of different sizes, or
        fewer than two pairs.
      NotImplementedError: for the policies ``"omit"`` and ``"raise"``.

    >>> import numpy as np
    >>> result = kendalltau(np.float32([1, 2, 3, 4]), np.float32([1, 3, 2, 9]))
    >>> round(float(result.statistic), 4), round(float(result.pvalue), 4)
    (0.6667, 0.3333)
    """
    check_alternative("kendalltau", alternative)
    check_policy("kendalltau", nan_policy)
    check_choice("kendalltau", "method", method, ("auto", "exact", "asymptotic"))
    check_choice("kendalltau", "variant", variant, ("b", "c"))
    x, y = two_samples("kendalltau", x, y, axis)
    check_pairs("kendalltau", x, y, 2)
    options = {"method": method, "variant": variant, "alternative": alternative}
    return SignificanceResult(*_kendalltau(x, y, **options))
