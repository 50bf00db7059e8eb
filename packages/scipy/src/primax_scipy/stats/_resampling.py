"""Confidence intervals and p-values by random resamples of data."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax, tree, vmap
from primax_core.extend import Array
from primax_core.typing import ArrayLike
from primax_numpy import random
from primax_numpy.declaring import check_arrays, one_axis

from .._functions import floats
from ..special import ndtr, ndtri
from ._alternatives import check_alternative, check_choice, check_size

_AT_ONCE = 2**22
"""Elements of resamples that are computed at once by default."""


class ConfidenceInterval(NamedTuple):
    """Both ends of a confidence interval."""

    low: Array
    high: Array


class BootstrapResult(NamedTuple):
    """Result of :func:`bootstrap`.

    Attributes:
      confidence_interval: its ends ``low`` and ``high``.
      bootstrap_distribution: the statistic of each resample, along the last axis.
      standard_error: the standard deviation of this distribution.
    """

    confidence_interval: ConfidenceInterval
    bootstrap_distribution: Array
    standard_error: Array


class PermutationTestResult(NamedTuple):
    """Result of :func:`permutation_test`.

    Attributes:
      statistic: the statistic of the data.
      pvalue: its p-value.
      null_distribution: the statistic of each permutation, along the first axis.
    """

    statistic: Array
    pvalue: Array
    null_distribution: Array


# Arguments


def _samples(name: str, data: Any, axis: int) -> list[Any]:
    """The samples, in floats of one dtype and with elements along the last axis."""
    if not isinstance(data, (tuple, list)) or not data:
        raise TypeError(
            f"{name}: data is a {type(data).__name__}: pass a sequence of samples, such as (x,)."
        )
    check_arrays(name, *data)
    samples = floats(name, *[pnp.atleast_1d(pnp.asarray(x)) for x in data])
    samples = [pnp.moveaxis(x, one_axis(axis, x.ndim), -1) for x in samples]
    batch = lax.broadcast_shapes(*[x.shape[:-1] for x in samples])
    return [pnp.broadcast_to(x, (*batch, x.shape[-1])) for x in samples]


def _check_equal_sizes(name: str, samples: Sequence[Any], reason: str) -> None:
    sizes = [x.shape[-1] for x in samples]
    if len(set(sizes)) != 1:
        raise ValueError(
            f"{name}: samples have {', '.join(map(str, sizes))} elements: {reason} needs equal "
            "numbers."
        )


def _check_key(name: str, key: Any) -> None:
    if key is None:
        raise ValueError(f"{name}: resamples are drawn: pass a random key, key=random.key(0).")


def _count(name: str, n_resamples: Any, least: int) -> int:
    count = operator.index(n_resamples)
    if count < least:
        raise ValueError(f"{name}: n_resamples={count} is too few: pass at least {least}.")
    return count


def _of_rows(statistic: Any, vectorized: bool | None, batch: int) -> Callable[..., Any]:
    """The statistic of samples along the last axis."""
    if not callable(statistic):
        raise TypeError(f"statistic={statistic!r} is not a function of samples.")

    def one(*rows: Any) -> Any:
        out = statistic(*rows, axis=-1) if vectorized else statistic(*rows)
        out = pnp.asarray(out)
        if out.ndim:
            raise ValueError(
                f"the statistic of samples of one axis has shape {out.shape}: return a number."
            )
        return out.astype(rows[0].dtype)

    for _ in range(batch):
        one = vmap(one)
    return one


def _each(fun: Callable[[Any], Any], xs: Any, samples: Sequence[Any], batch: Any) -> Any:
    """The function mapped over the first axis, of which ``batch`` elements are computed at once."""
    elements = sum(math.prod(x.shape) for x in samples)
    size = max(1, _AT_ONCE // max(elements, 1)) if batch is None else operator.index(batch)
    if size < 1:
        raise ValueError(f"batch={size} is the number of resamples at once: pass at least 1.")
    count = tree.leaves(xs)[0].shape[0]
    return lax.map(fun, xs, batch_size=min(size, count))


# The bootstrap


def _acceleration(fun: Any, samples: Sequence[Any], batch: Any, paired: bool) -> Any:
    """The acceleration of an interval, from statistics without one element of the samples (Efron
    and Tibshirani, *An Introduction to the Bootstrap*, 1993, equation 14.15)."""
    cubes: Any = 0.0
    squares: Any = 0.0
    every = range(len(samples))
    for group in [tuple(every)] if paired else [(k,) for k in every]:
        n = samples[group[0]].shape[-1]
        check_size("bootstrap: method='BCa'", n, 2)

        def without(i: Any, group: tuple[int, ...] = group, n: int = n) -> Any:
            rest = pnp.arange(n - 1)
            at = rest + (rest >= i)
            return fun(*[x[..., at] if k in group else x for k, x in enumerate(samples)])

        values = _each(without, pnp.arange(n), samples, batch)
        gaps = (n - 1) * (pnp.mean(values, 0) - values)
        cubes = cubes + pnp.sum(gaps**3, 0) / n**3
        squares = squares + pnp.sum(lax.square(gaps), 0) / n**2
    return cubes / (6 * squares**1.5)


def _levels(spread: Any, value: Any, acceleration: Any, tails: Any) -> Any:
    """Levels of quantiles with correction of bias and acceleration (Efron, "Better bootstrap
    confidence intervals", Journal of the American Statistical Association 82, 1987)."""
    below = (spread < value[..., None]).astype(value.dtype) + (spread <= value[..., None])
    bias = ndtri(0.5 * pnp.mean(below, -1))
    levels = []
    for tail in tails:
        moved = bias + ndtri(pnp.full_like(bias, tail))
        levels.append(ndtr(bias + moved / (1 - acceleration * moved)))
    return levels


def _quantiles(spread: Any, levels: Any) -> Any:
    """Quantiles along the last axis at levels for each row."""
    one = lambda row, level: pnp.quantile(row, level)
    for _ in spread.shape[:-1]:
        one = vmap(one)
    return one(spread, levels)


def bootstrap(
    data: Sequence[ArrayLike],
    statistic: Callable[..., Any],
    *,
    n_resamples: int = 9999,
    batch: int | None = None,
    vectorized: bool | None = None,
    paired: bool = False,
    axis: int = 0,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    method: str = "BCa",
    bootstrap_result: BootstrapResult | None = None,
    key: ArrayLike | None = None,
) -> BootstrapResult:
    """Confidence interval of a statistic, from samples drawn from the data with replacement.

    Args:
      data: a sequence of samples, arrays of real numbers, whose other axes broadcast.
      statistic: a function of as many samples, arrays with one axis, that returns a number. It is
        mapped over resamples.
      n_resamples: the number of resamples.
      batch: the number of resamples at once; by default what fits in 2²² elements.
      vectorized: True to pass ``axis=-1`` to the statistic.
      paired: draw the same positions of all samples.
      axis: the axis of elements.
      confidence_level: the probability that the interval contains the statistic.
      alternative: ``"two-sided"``; ``"less"`` or ``"greater"`` for an interval with the lower end
        ``-inf`` or the upper end ``inf``.
      method: ``"percentile"``; ``"basic"``, the percentiles reflected at the statistic; or
        ``"BCa"``, with correction of bias and acceleration (Efron, 1987), which computes the
        statistic without each element.
      bootstrap_result: an earlier result, whose distribution is extended; ``n_resamples`` may be 0.
      key: a random key.

    Returns:
      A :class:`BootstrapResult`. It is differentiable in the data if the statistic is, with the
      drawn positions held. All slices of arrays with more axes have the same positions.

    Raises:
      ValueError: without a key, for unknown options, empty samples, samples of different sizes with
        ``paired``, or a statistic that is not a number.
      TypeError: if ``data`` is not a sequence of arrays.

    >>> import numpy as np
    >>> import primax_numpy as jnp
    >>> from primax_numpy import random
    >>> x = np.float32([1, 2, 3, 4, 5, 6, 7, 8])
    >>> out = bootstrap((x,), jnp.mean, n_resamples=2000, method="basic", key=random.key(0))
    >>> 2.5 < float(out.confidence_interval.low) < 3.5
    True
    """
    check_alternative("bootstrap", alternative)
    check_choice("bootstrap", "method", method, ("percentile", "basic", "BCa"))
    if not 0 < confidence_level < 1:
        raise ValueError(f"bootstrap: confidence_level={confidence_level} is not between 0 and 1.")
    samples = _samples("bootstrap", data, axis)
    check_size("bootstrap", min(x.shape[-1] for x in samples), 1)
    if paired:
        _check_equal_sizes("bootstrap", samples, "paired=True")
    count = _count("bootstrap", n_resamples, 1 if bootstrap_result is None else 0)
    fun = _of_rows(statistic, vectorized, samples[0].ndim - 1)
    spread = None if bootstrap_result is None else bootstrap_result.bootstrap_distribution
    if count:
        _check_key("bootstrap", key)

        def drawn(key: Any) -> Any:
            keys = [key] * len(samples) if paired else random.split(key, len(samples))
            sizes = [x.shape[-1] for x in samples]
            at = [random.randint(k, (n,), 0, n) for k, n in zip(keys, sizes, strict=True)]
            return fun(*[x[..., i] for x, i in zip(samples, at, strict=True)])

        more = pnp.moveaxis(_each(drawn, random.split(key, count), samples, batch), 0, -1)
        spread = more if spread is None else pnp.concatenate([spread, more], -1)
    value = fun(*samples)
    rest = 1 - confidence_level
    low = 0.5 * rest if alternative == "two-sided" else rest
    if method == "BCa":
        acceleration = _acceleration(fun, samples, batch, paired)
        levels = _levels(spread, value, acceleration, (low, 1 - low))
    else:
        levels = [pnp.full_like(value, v) for v in (low, 1 - low)]
    ends = [_quantiles(spread, level) for level in levels]
    if method == "basic":
        ends = [2 * value - ends[1], 2 * value - ends[0]]
    if alternative != "two-sided":
        at = 0 if alternative == "less" else 1
        ends[at] = pnp.full_like(value, -np.inf if at == 0 else np.inf)
    return BootstrapResult(ConfidenceInterval(*ends), spread, pnp.std(spread, -1, ddof=1))


# Permutations


def _partitions(sizes: Sequence[int]) -> np.ndarray:
    """All ways to divide positions between samples, ``[ways, total]``."""
    first, rest = sizes[0], sizes[1:]
    total = sum(sizes)
    if not rest:
        return np.arange(total)[None]
    inner = _partitions(rest)
    rows = []
    for chosen in itertools.combinations(range(total), first):
        others = np.setdiff1d(np.arange(total), chosen)
        for order in inner:
            rows.append(np.concatenate([chosen, others[order]]))
    return np.array(rows, np.int64)


def _all_permutations(kind: str, sizes: Sequence[int], limit: int) -> np.ndarray | None:
    """Positions of elements in the samples for each permutation; None if they are too many."""
    n, k = sizes[0], len(sizes)
    if kind == "independent":
        ways = math.factorial(sum(sizes))
        for size in sizes:
            ways //= math.factorial(size)
        return _partitions(sizes) if ways <= limit else None
    if kind == "samples":
        if max(2, math.factorial(k)) ** n > limit:
            return None
        orders = list(itertools.permutations(range(max(k, 2))))
        return np.array(list(itertools.product(orders, repeat=n)))
    if math.factorial(n) ** k > limit:
        return None
    return np.array(list(itertools.product(itertools.permutations(range(n)), repeat=k)))


def _random_permutation(kind: str, key: Any, sizes: Sequence[int]) -> Any:
    """As a row of `_all_permutations`, at random."""
    n, k = sizes[0], len(sizes)
    if kind == "independent":
        return random.permutation(key, sum(sizes))
    if kind == "samples":
        return vmap(lambda s: random.permutation(s, max(k, 2)))(random.split(key, n))
    return vmap(lambda s: random.permutation(s, n))(random.split(key, k))


def _permuted(kind: str, samples: Sequence[Any], order: Any) -> list[Any]:
    if kind == "independent":
        both = pnp.concatenate(samples, -1)[..., order]
        ends = np.cumsum([0, *[x.shape[-1] for x in samples]])
        return [both[..., a:b] for a, b in itertools.pairwise(ends)]
    if kind == "samples":
        stack = [*samples, -samples[0]] if len(samples) == 1 else list(samples)
        table = pnp.stack(stack, -1)
        index = pnp.broadcast_to(order, table.shape)
        moved = pnp.take_along_axis(table, index, -1)
        return [moved[..., i] for i in range(len(samples))]
    return [x[..., order[i]] for i, x in enumerate(samples)]


def permutation_test(
    data: Sequence[ArrayLike],
    statistic: Callable[..., Any],
    *,
    permutation_type: str = "independent",
    vectorized: bool | None = None,
    n_resamples: int = 9999,
    batch: int | None = None,
    alternative: str = "two-sided",
    axis: int = 0,
    key: ArrayLike | None = None,
) -> PermutationTestResult:
    """P-value of a statistic, from permutations of the data.

    Args:
      data: a sequence of samples, arrays of real numbers, whose other axes broadcast.
      statistic: a function of as many samples, arrays with one axis, that returns a number. It is
        mapped over permutations.
      permutation_type: ``"independent"``, elements are exchanged between samples; ``"samples"``,
        between those of one position, or the signs of one sample change; ``"pairings"``, each
        sample is reordered.
      vectorized: True to pass ``axis=-1`` to the statistic.
      n_resamples: the number of random permutations. All permutations are computed instead if they
        are not more; this needs no key.
      batch: the number of permutations at once; by default what fits in 2²² elements.
      alternative: ``"two-sided"``, twice the smaller of the others; ``"less"`` or ``"greater"``,
        the share of permutations whose statistic is at most, or at least, that of the data.
      axis: the axis of elements.
      key: a random key.

    Returns:
      A :class:`PermutationTestResult`. The p-value of random permutations counts the data as one
      more, so that it is not 0. Its derivatives are zero.

    Raises:
      ValueError: without a key, for unknown options, empty samples, one sample for
        ``"independent"``, samples of different sizes for the other types, or a statistic that is
        not a number.
      TypeError: if ``data`` is not a sequence of arrays.

    >>> import numpy as np
    >>> x, y = np.float32([1, 2, 3]), np.float32([4, 5, 7, 8])
    >>> out = permutation_test((x, y), lambda x, y: x.mean() - y.mean(), alternative="less")
    >>> round(float(out.pvalue), 4)
    0.0286
    """
    name = "permutation_test"
    check_alternative(name, alternative)
    kinds = ("independent", "samples", "pairings")
    check_choice(name, "permutation_type", permutation_type, kinds)
    samples = _samples(name, data, axis)
    sizes = [x.shape[-1] for x in samples]
    check_size(name, min(sizes), 1)
    if permutation_type != "independent":
        _check_equal_sizes(name, samples, f"permutation_type={permutation_type!r}")
    elif len(samples) < 2:
        raise ValueError(f"{name}: one sample has no other to exchange elements with: pass two.")
    count = _count(name, n_resamples, 1)
    fun = _of_rows(statistic, vectorized, samples[0].ndim - 1)
    value = fun(*samples)
    complete = _all_permutations(permutation_type, sizes, count)
    if complete is not None:
        orders = pnp.asarray(complete.astype(np.int32))
        null = _each(
            lambda o: fun(*_permuted(permutation_type, samples, o)), orders, samples, batch
        )
    else:
        _check_key(name, key)

        def at_random(key: Any) -> Any:
            order = _random_permutation(permutation_type, key, sizes)
            return fun(*_permuted(permutation_type, samples, order))

        null = _each(at_random, random.split(key, count), samples, batch)
    # Equal statistics differ by rounding.
    margin = lax.abs(value) * (100 * float(np.finfo(value.dtype).eps))
    extra = 0 if complete is not None else 1
    total = null.shape[0] + extra
    counts = [pnp.sum(null <= value + margin, 0), pnp.sum(null >= value - margin, 0)]
    less, greater = ((c + extra).astype(value.dtype) / total for c in counts)
    p = {"less": less, "greater": greater}.get(alternative, 2 * pnp.minimum(less, greater))
    p = pnp.minimum(p, pnp.ones_like(p))
    return PermutationTestResult(value, pnp.where(value == value, p, value), null)
