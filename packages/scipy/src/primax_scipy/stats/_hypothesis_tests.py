"""Tests of hypotheses: of means, of ranks and of frequencies."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled

from ._alternatives import (
    check_alternative,
    check_choice,
    check_pairs,
    check_size,
    symmetric_pvalue,
    two_samples,
)
from ._moments import sample
from ._pairs import TtestResult
from ._policies import check_policy
from ._ranks import rankdata, runs
from .chi2 import sf as _chi2_sf
from .norm import sf as _normal_sf
from .t import sf as _t_sf


class Power_divergenceResult(NamedTuple):
    """Result of :func:`chisquare`: the statistic, and its p-value."""

    statistic: Array
    pvalue: Array


class MannwhitneyuResult(NamedTuple):
    """Result of :func:`mannwhitneyu`: the statistic of the first sample, and its p-value."""

    statistic: Array
    pvalue: Array


# Means


def _variance(x: Any) -> Any:
    """Unbiased variance along the last axis."""
    return pnp.var(x, -1, ddof=1)


def _t_result(difference: Any, error: Any, df: Any, alternative: str) -> tuple[Any, Any, Any]:
    t = difference / error
    df = pnp.broadcast_to(pnp.asarray(df, t.dtype), t.shape)
    return t, symmetric_pvalue(_t_sf, t, alternative, df), df


@compiled("alternative", name="ttest_1samp")
def _ttest_1samp(x, mean, *, alternative):
    n = x.shape[-1]
    difference = pnp.mean(x, -1) - mean
    return _t_result(difference, pnp.sqrt(_variance(x) / n), n - 1, alternative)


def ttest_1samp(
    a: ArrayLike,
    popmean: ArrayLike,
    axis: int | None = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
) -> TtestResult:
    """Student's test whether a sample has a mean.

    Source: Student, "The probable error of a mean", Biometrika 6, 1908.

    Args:
      a: real numbers.
      popmean: the mean of the hypothesis: a number, or an array of the shape of ``a`` without the
        axis or with size 1 along it.
      axis: an axis, or None for all elements.
      nan_policy: ``"propagate"``.
      alternative: ``"two-sided"``, ``"less"`` (the mean is less than ``popmean``) or ``"greater"``.

    Returns:
      A :class:`TtestResult` of floats without the axis, differentiable; NaN if all elements equal
      the mean.

    Raises:
      ValueError: for an unknown alternative, or fewer than two elements.
      NotImplementedError: for the policies ``"omit"`` and ``"raise"``.

    >>> import numpy as np
    >>> t, p = ttest_1samp(np.float32([1, 2, 3, 4]), 1.0)
    >>> round(float(t), 4), round(float(p), 4)
    (2.3238, 0.1027)
    """
    check_alternative("ttest_1samp", alternative)
    check_policy("ttest_1samp", nan_policy)
    check_arrays("ttest_1samp", popmean)
    x, place = sample("ttest_1samp", a, axis)
    check_size("ttest_1samp", x.shape[place], 2)
    mean = pnp.asarray(popmean).astype(x.dtype)
    if mean.ndim and mean.ndim == x.ndim:
        mean = pnp.squeeze(mean, place)
    x = pnp.moveaxis(x, place, -1)
    return TtestResult(*_ttest_1samp(x, mean, alternative=alternative))


@compiled("alternative", name="ttest_rel")
def _ttest_rel(x, y, *, alternative):
    n = x.shape[-1]
    gaps = x - y
    return _t_result(pnp.mean(gaps, -1), pnp.sqrt(_variance(gaps) / n), n - 1, alternative)


def ttest_rel(
    a: ArrayLike,
    b: ArrayLike,
    axis: int | None = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
) -> TtestResult:
    """Student's test whether paired samples have equal means.

    It is that of one sample, the differences of pairs (see :func:`ttest_1samp`).

    Args:
      a, b: real numbers, paired along the axis; other axes broadcast.
      axis: an axis, or None for all elements.
      nan_policy: ``"propagate"``.
      alternative: ``"two-sided"``, ``"less"`` (the mean of ``a`` is less) or ``"greater"``.

    Returns:
      A :class:`TtestResult` of floats without the axis, differentiable.

    Raises:
      ValueError: for an unknown alternative, samples of different sizes, or fewer than two pairs.
      NotImplementedError: for the policies ``"omit"`` and ``"raise"``.

    >>> import numpy as np
    >>> t, p = ttest_rel(np.float32([1, 2, 3, 4]), np.float32([1, 3, 5, 7]))
    >>> round(float(t), 4), round(float(p), 4)
    (-2.3238, 0.1027)
    """
    check_alternative("ttest_rel", alternative)
    check_policy("ttest_rel", nan_policy)
    x, y = two_samples("ttest_rel", a, b, axis)
    check_pairs("ttest_rel", x, y, 2)
    return TtestResult(*_ttest_rel(x, y, alternative=alternative))


@compiled("equal", "alternative", name="ttest_ind")
def _ttest_ind(x, y, *, equal, alternative):
    n, m = x.shape[-1], y.shape[-1]
    difference = pnp.mean(x, -1) - pnp.mean(y, -1)
    if equal:
        df = n + m - 2
        sums = [pnp.sum(lax.square(v - pnp.mean(v, -1, keepdims=True)), -1) for v in (x, y)]
        pooled = (sums[0] + sums[1]) / df
        return _t_result(difference, pnp.sqrt(pooled * (1 / n + 1 / m)), df, alternative)
    one, two = _variance(x) / n, _variance(y) / m
    total = one + two
    df = lax.square(total) / (lax.square(one) / (n - 1) + lax.square(two) / (m - 1))
    return _t_result(difference, pnp.sqrt(total), df, alternative)


def ttest_ind(
    a: ArrayLike,
    b: ArrayLike,
    *,
    axis: int | None = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
) -> TtestResult:
    """Test whether independent samples have equal means: Student's, or Welch's.

    Source: B. L. Welch, "The generalization of Student's problem when several different population
    variances are involved", Biometrika 34, 1947.

    Args:
      a, b: real numbers; axes other than that of elements broadcast.
      axis: an axis, or None for all elements.
      equal_var: True if the variances are assumed to be equal; False for Welch's test.
      nan_policy: ``"propagate"``.
      alternative: ``"two-sided"``, ``"less"`` (the mean of ``a`` is less) or ``"greater"``.

    Returns:
      A :class:`TtestResult` of floats without the axis, differentiable.

    Raises:
      ValueError: for an unknown alternative, or too few elements: each sample has one or more, and
        both have three or more; two or more each for Welch's test.
      NotImplementedError: for the policies ``"omit"`` and ``"raise"``.

    >>> import numpy as np
    >>> t, p = ttest_ind(np.float32([1, 2, 3, 4]), np.float32([3, 4, 5]), equal_var=False)
    >>> round(float(t), 4), round(float(p), 4)
    (-1.7321, 0.1443)
    """
    check_alternative("ttest_ind", alternative)
    check_policy("ttest_ind", nan_policy)
    x, y = two_samples("ttest_ind", a, b, axis)
    for part in (x, y):
        check_size("ttest_ind", part.shape[-1], 1 if equal_var else 2)
    if x.shape[-1] + y.shape[-1] < 3:
        raise ValueError("ttest_ind: samples of one element have no variance: pass more elements.")
    return TtestResult(*_ttest_ind(x, y, equal=bool(equal_var), alternative=alternative))


# Frequencies


@compiled("ddof", "checked", name="chisquare")
def _chisquare(observed, expected, *, ddof, checked):
    terms = lax.square(observed - expected) / expected
    statistic = pnp.sum(terms, -1)
    p = _chi2_sf(statistic, observed.shape[-1] - 1 - ddof)
    if checked:
        total, other = pnp.sum(observed, -1), pnp.sum(expected, -1)
        limit = math.sqrt(float(np.finfo(observed.dtype).eps))
        agree = lax.abs(total - other) <= limit * pnp.minimum(lax.abs(total), lax.abs(other))
        statistic, p = (pnp.where(agree, v, pnp.full_like(v, np.nan)) for v in (statistic, p))
    return statistic, p


def chisquare(
    f_obs: ArrayLike,
    f_exp: ArrayLike | None = None,
    ddof: int = 0,
    axis: int | None = 0,
    *,
    sum_check: bool = True,
) -> Power_divergenceResult:
    """Pearson's chi-squared test whether frequencies are those expected.

    Source: K. Pearson, "On the criterion that a given system of deviations ...", Philosophical
    Magazine 50, 1900.

    Args:
      f_obs: frequencies, 0 or positive.
      f_exp: expected frequencies, positive; by default the mean of those observed.
      ddof: the number of parameters estimated from the data: there are ``n - 1 - ddof`` degrees of
        freedom.
      axis: an axis, or None for all elements.
      sum_check: True for NaN if the sums of both frequencies differ by more than the square root
        of the rounding error; False to compute the statistic for any sums.

    Returns:
      A named tuple of floats without the axis, differentiable.

    Raises:
      ValueError: if the numbers of frequencies differ, or no degrees of freedom remain.

    >>> import numpy as np
    >>> result = chisquare(np.float32([16, 18, 16, 14, 12, 12]))
    >>> round(float(result.statistic), 4), round(float(result.pvalue), 4)
    (2.0, 0.8491)
    """
    if f_exp is None:
        x, place = sample("chisquare", f_obs, axis)
        x = pnp.moveaxis(x, place, -1)
        check_size("chisquare", x.shape[-1], 1)
        other, checked = pnp.broadcast_to(pnp.mean(x, -1, keepdims=True), x.shape), False
    else:
        x, other = two_samples("chisquare", f_obs, f_exp, axis)
        checked = bool(sum_check)
        check_pairs("chisquare", x, other, 1)
    freedom = x.shape[-1] - 1 - ddof
    if freedom < 1:
        raise ValueError(
            f"chisquare: {x.shape[-1]} frequencies with ddof={ddof} have {freedom} degrees of "
            "freedom: pass more frequencies or a smaller ddof."
        )
    return Power_divergenceResult(*_chisquare(x, other, ddof=ddof, checked=checked))


# Ranks


@cache
def _rank_sum_tails(n: int, m: int) -> np.ndarray:
    """Probabilities of a statistic of at least ``u`` of samples of ``n`` and ``m`` elements.

    Their numbers are the coefficients of the Gaussian binomial ``[n + m, n]`` (Mann and Whitney,
    1947), the product of ``(1 - q^(m + i)) / (1 - q^i)``; integers are exact.
    """
    n, m = min(n, m), max(n, m)
    size = n * m + 1
    counts = np.zeros(size, object)
    counts[0] = 1
    for i in range(1, n + 1):
        counts[m + i :] -= counts[: size - m - i].copy() if size > m + i else 0
        for j in range(i, size):
            counts[j] += counts[j - i]
    tails = np.cumsum(counts[::-1])[::-1]
    whole = math.comb(n + m, n)
    return np.array([int(v) / whole for v in tails] + [0.0])


@compiled("continuity", "alternative", "method", name="mannwhitneyu")
def _mannwhitneyu(x, y, *, continuity, alternative, method):
    n, m = x.shape[-1], y.shape[-1]
    both = pnp.concatenate([x, y], -1)
    ranks = rankdata(both, axis=-1)
    _, start, stop = runs(pnp.sort(both, -1))
    # Each element of a run of t contributes t² - 1, and so the run t³ - t.
    sizes = lax.convert_element_type(stop - start + 1, x.dtype)
    ties = pnp.sum(lax.square(sizes) - 1, -1)
    first = pnp.sum(ranks[..., :n], -1) - 0.5 * n * (n + 1)
    second = n * m - first
    if alternative == "two-sided":
        u, factor = pnp.maximum(first, second), 2.0
    else:
        u, factor = first if alternative == "greater" else second, 1.0
    total = n + m
    deviation = pnp.sqrt(n * m / 12 * ((total + 1) - ties / (total * (total - 1))))
    gap = u - 0.5 * n * m - (0.5 if continuity else 0.0)
    some = deviation > 0
    p = _normal_sf(gap / pnp.where(some, deviation, pnp.ones_like(u)))
    p = pnp.where(some, p, pnp.ones_like(p))
    if method == "exact" or (method == "auto" and min(n, m) <= 8):
        table = pnp.asarray(_rank_sum_tails(n, m), x.dtype)
        at = lax.convert_element_type(pnp.ceil(pnp.clip(u, 0, n * m)), np.int32)
        p = table[at] if method == "exact" else pnp.where(ties == 0, table[at], p)
    p = pnp.minimum(factor * p, pnp.ones_like(p))
    return first, pnp.where(first == first, p, first)


def mannwhitneyu(
    x: ArrayLike,
    y: ArrayLike,
    use_continuity: bool = True,
    alternative: str = "two-sided",
    axis: int | None = 0,
    method: str = "auto",
) -> MannwhitneyuResult:
    """Mann and Whitney's test whether independent samples have one distribution, by ranks.

    Source: H. B. Mann and D. R. Whitney, "On a test of whether one of two random variables is
    stochastically larger than the other", Annals of Mathematical Statistics 18, 1947.

    Args:
      x, y: real numbers; axes other than that of elements broadcast.
      use_continuity: True to move the statistic of the asymptotic method by 1/2 towards its mean.
      alternative: ``"two-sided"``, ``"less"`` (``x`` is stochastically less) or ``"greater"``.
      axis: an axis, or None for all elements.
      method: ``"exact"``, the distribution without equal elements; ``"asymptotic"``, normal with a
        correction for equal elements; or ``"auto"``, exact without equal elements if a sample has
        at most 8.

    Returns:
      A named tuple of floats without the axis: the statistic is the number of pairs in which the
      element of ``x`` is greater, equal ones counted half. Derivatives are zero, because ranks are
      piecewise constant.

    Raises:
      ValueError: for an unknown alternative or method, or an empty sample.

    >>> import numpy as np
    >>> result = mannwhitneyu(np.float32([1, 2, 5]), np.float32([3, 4, 6, 7]))
    >>> round(float(result.statistic), 4), round(float(result.pvalue), 4)
    (2.0, 0.2286)
    """
    check_alternative("mannwhitneyu", alternative)
    check_choice("mannwhitneyu", "method", method, ("auto", "asymptotic", "exact"))
    one, two = two_samples("mannwhitneyu", x, y, axis)
    for part in (one, two):
        check_size("mannwhitneyu", part.shape[-1], 1)
    options = {"alternative": alternative, "method": method}
    return MannwhitneyuResult(*_mannwhitneyu(one, two, continuity=bool(use_continuity), **options))
