"""Means, moments and other descriptions of data along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, axes_of, check_arrays, compiled, one_axis

from .._functions import floats
from ..special import entr, rel_entr
from ._policies import check_policy


def sample(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """Data in floats, and the axis; all elements along axis 0 if the axis is ``None``."""
    check_arrays(name, a)
    (a,) = floats(name, pnp.asarray(a))
    if axis is None or not a.ndim:
        return pnp.ravel(a), 0
    return a, one_axis(axis, a.ndim)


@compiled("axes", "ddof", "keepdims", "omit", name="sem")
def _sem(a, *, axes, ddof, keepdims, omit):
    a = as_inexact(a)
    deviation = (pnp.nanstd if omit else pnp.std)(a, axes, ddof=ddof, keepdims=keepdims)
    if omit:
        count = pnp.sum(a == a, axes, keepdims=keepdims).astype(deviation.dtype)
    else:
        count = pnp.full_like(deviation, math.prod(a.shape[i] for i in axes))
    return deviation / pnp.sqrt(count)


def sem(
    a: ArrayLike,
    axis: int | Sequence[int] | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Standard error of the mean: the standard deviation divided by the root of the number.

    Args:
      a: numbers.
      axis: an axis, several, or ``None`` for all elements.
      ddof: the number that is subtracted from that of elements in the variance.
      nan_policy: ``"propagate"`` or ``"omit"``.
      keepdims: whether axes are kept with size 1.

    Raises:
      NotImplementedError: for the policy ``"raise"``.
      ValueError: for an unknown policy.

    >>> import numpy as np
    >>> round(float(sem(np.float32([1, 2, 3, 4]))), 4)
    0.6455
    """
    check_arrays("sem", a)
    check_policy("sem", nan_policy, ("propagate", "omit"))
    axes = axes_of(axis, typeof(a).ndim)
    out: Array = _sem(a, axes=axes, ddof=ddof, keepdims=keepdims, omit=nan_policy == "omit")
    return out


def _centred(a: Any, axis: int) -> tuple[Any, Any]:
    """The mean, with the axis kept, and differences from it; those of equal elements are 0."""
    mean = pnp.mean(a, axis, keepdims=True)
    return mean, a - mean


def _standardized(a: Any, axis: int, order: int) -> tuple[Any, Any]:
    """The moment of an order divided by that power of the deviation, and a condition: whether the
    deviation is more than rounding."""
    mean, gaps = _centred(a, axis)
    variance = pnp.mean(lax.square(gaps), axis)
    eps = float(np.finfo(a.dtype).eps)
    some = variance > lax.square(eps * pnp.squeeze(mean, axis))
    safe = pnp.where(some, variance, pnp.ones_like(variance))
    moment = pnp.mean(lax.integer_pow(gaps, order), axis)
    return moment / (safe * pnp.sqrt(safe) if order == 3 else lax.square(safe)), some


@compiled("axis", "bias", name="skew")
def _skew(a, *, axis, bias):
    value, some = _standardized(a, axis, 3)
    n = a.shape[axis]
    if not bias and n > 2:
        value = value * (math.sqrt(n * (n - 1)) / (n - 2))
    return pnp.where(some, value, pnp.full_like(value, np.nan))


def skew(a: ArrayLike, axis: int | None = 0, bias: bool = True) -> Array:
    """Skewness: the third central moment divided by the cube of the standard deviation.

    Args:
      a: real numbers.
      axis: an axis, or ``None`` for all elements.
      bias: False to correct the bias of small samples.

    Returns:
      Floats without the axis; NaN for equal elements.

    >>> import numpy as np
    >>> round(float(skew(np.float32([1, 1, 4]))), 4)
    0.7071
    """
    a, place = sample("skew", a, axis)
    out: Array = _skew(a, axis=place, bias=bias)
    return out


@compiled("axis", "fisher", "bias", name="kurtosis")
def _kurtosis(a, *, axis, fisher, bias):
    value, some = _standardized(a, axis, 4)
    n = a.shape[axis]
    if not bias and n > 3:
        value = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * value - 3 * (n - 1)) + 3
    value = value - 3 if fisher else value
    return pnp.where(some, value, pnp.full_like(value, np.nan))


def kurtosis(a: ArrayLike, axis: int | None = 0, fisher: bool = True, bias: bool = True) -> Array:
    """Kurtosis: the fourth central moment divided by the square of the variance.

    Args:
      a: real numbers.
      axis: an axis, or ``None`` for all elements.
      fisher: True to subtract 3, the kurtosis of the normal distribution.
      bias: False to correct the bias of small samples.

    Returns:
      Floats without the axis; NaN for equal elements.

    >>> import numpy as np
    >>> round(float(kurtosis(np.float32([1, 2, 3, 4]))), 4)
    -1.36
    """
    a, place = sample("kurtosis", a, axis)
    out: Array = _kurtosis(a, axis=place, fisher=fisher, bias=bias)
    return out


@compiled("axis", "ddof", name="zscore")
def _zscore(a, *, axis, ddof):
    _, gaps = _centred(a, axis)
    return gaps / pnp.std(a, axis, ddof=ddof, keepdims=True)


def zscore(a: ArrayLike, axis: int | None = 0, ddof: int = 0) -> Array:
    """Elements less the mean, divided by the standard deviation.

    Args:
      a: real numbers.
      axis: an axis, or ``None`` for mean and deviation of all elements.
      ddof: the number that is subtracted from that of elements in the variance.

    Returns:
      Floats of the shape of ``a``; NaN for equal elements.

    >>> import numpy as np
    >>> print(zscore(np.float32([1, 3])))
    [-1.  1.]
    """
    shape = pnp.shape(a)
    x, place = sample("zscore", a, axis)
    return pnp.reshape(_zscore(x, axis=place, ddof=ddof), shape)


def zmap(scores: ArrayLike, compare: ArrayLike, axis: int | None = 0, ddof: int = 0) -> Array:
    """Elements less the mean of other data, divided by the standard deviation of these.

    Args:
      scores: real numbers.
      compare: data with a mean and a deviation; its shape without the axis broadcasts against that
        of ``scores``.
      axis: the axis of means and deviations, or ``None`` for those of all elements.
      ddof: the number that is subtracted from that of elements in the variance.

    Returns:
      Floats; NaN if elements of ``compare`` are equal.

    >>> import numpy as np
    >>> print(zmap(np.float32([5, 2]), np.float32([1, 3])))
    [3. 0.]
    """
    check_arrays("zmap", scores, compare)
    x, data = floats("zmap", pnp.asarray(scores), pnp.asarray(compare))
    place = None if axis is None else one_axis(axis, data.ndim)
    mean = pnp.mean(data, place, keepdims=True)
    deviation = pnp.std(data, place, ddof=ddof, keepdims=True)
    if place is None:
        mean, deviation = (pnp.reshape(v, (1,) * x.ndim) for v in (mean, deviation))
    return (x - mean) / deviation


class DescribeResult(NamedTuple):
    """Result of :func:`describe`."""

    nobs: int
    minmax: tuple[Array, Array]
    mean: Array
    variance: Array
    skewness: Array
    kurtosis: Array


def describe(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, bias: bool = True
) -> DescribeResult:
    """Number, extremes, mean, variance, skewness and kurtosis of data.

    Args:
      a: real numbers.
      axis: an axis, or ``None`` for all elements.
      ddof: as in the variance of ``jnp.var``.
      bias: False to correct the bias of skewness and kurtosis.

    >>> import numpy as np
    >>> result = describe(np.float32([1, 2, 3, 6]))
    >>> result.nobs, float(result.mean)
    (4, 3.0)
    """
    x, place = sample("describe", a, axis)
    extremes = pnp.min(x, place), pnp.max(x, place)
    variance = pnp.var(x, place, ddof=ddof)
    moments = skew(x, place, bias), kurtosis(x, place, True, bias)
    return DescribeResult(x.shape[place], extremes, pnp.mean(x, place), variance, *moments)


def iqr(a: ArrayLike, axis: int | None = None, rng: tuple[float, float] = (25, 75)) -> Array:
    """Interquartile range: the difference of two percentiles.

    Args:
      a: real numbers.
      axis: an axis, or ``None`` for all elements.
      rng: the percentiles, increasing numbers in [0, 100].

    Raises:
      ValueError: for other percentiles.

    >>> import numpy as np
    >>> float(iqr(np.float32([1, 2, 3, 4, 5])))
    2.0
    """
    low, high = rng
    if not 0 <= low <= high <= 100:
        raise ValueError(f"iqr: rng={rng} are not increasing percentiles in [0, 100].")
    x, place = sample("iqr", a, axis)
    ends = pnp.percentile(x, pnp.asarray([low, high], x.dtype), axis=place)
    return ends[1] - ends[0]


def _weights(name: str, x: Any, weights: Any) -> Any:
    if weights is None:
        return None
    check_arrays(name, weights)
    return pnp.broadcast_to(lax.convert_element_type(pnp.asarray(weights), x.dtype), x.shape)


def _mean(x: Any, axis: int, weights: Any) -> Any:
    if weights is None:
        return pnp.mean(x, axis)
    return pnp.sum(x * weights, axis) / pnp.sum(weights, axis)


def gmean(a: ArrayLike, axis: int | None = 0, weights: ArrayLike | None = None) -> Array:
    """Geometric mean; NaN for negative elements.

    Args:
      a: numbers, 0 or positive.
      axis: an axis, or ``None`` for all elements.
      weights: weights of the shape of ``a``.

    >>> import numpy as np
    >>> round(float(gmean(np.float32([1, 4]))), 4)
    2.0
    """
    x, place = sample("gmean", a, axis)
    return pnp.exp(_mean(pnp.log(x), place, _weights("gmean", x, weights)))


def hmean(a: ArrayLike, axis: int | None = 0, weights: ArrayLike | None = None) -> Array:
    """Harmonic mean; NaN for negative elements, 0 if an element is 0.

    Args:
      a: numbers, 0 or positive.
      axis: an axis, or ``None`` for all elements.
      weights: weights of the shape of ``a``.

    >>> import numpy as np
    >>> round(float(hmean(np.float32([1, 3]))), 4)
    1.5
    """
    x, place = sample("hmean", a, axis)
    value = 1 / _mean(1 / x, place, _weights("hmean", x, weights))
    return pnp.where(pnp.any(x < 0, place), pnp.full_like(value, np.nan), value)


def entropy(
    pk: ArrayLike, qk: ArrayLike | None = None, base: float | None = None, axis: int = 0
) -> Array:
    """Entropy of probabilities, or their relative entropy with respect to others.

    Args:
      pk: numbers, 0 or positive; they are divided by their sum.
      qk: others of the same shape, for the relative entropy (Kullback-Leibler divergence).
      base: the base of the logarithm, by default ``e``.
      axis: an axis.

    Raises:
      ValueError: if ``base`` is not positive.

    >>> import numpy as np
    >>> float(entropy(np.float32([1, 1]), base=2))
    1.0
    """
    if base is not None and base <= 0:
        raise ValueError(f"entropy: base={base} is not positive.")
    p, place = sample("entropy", pk, axis)
    p = p / pnp.sum(p, place, keepdims=True)
    if qk is None:
        terms = entr(p)
    else:
        q, _ = sample("entropy", qk, axis)
        q = q / pnp.sum(q, place, keepdims=True)
        p, q = pnp.broadcast_arrays(p, q)
        terms = rel_entr(p, q)
    total = pnp.sum(terms, place)
    return total if base is None else total / math.log(base)


# Directions


def _directions(
    name: str, samples: Any, high: float, low: float, axis: int | None
) -> tuple[Any, Any, Any]:
    """Mean sine and cosine of angles, and the unit of angles."""
    x, place = sample(name, samples, axis)
    angles = (x - low) * (2 * math.pi / (high - low))
    return pnp.mean(pnp.sin(angles), place), pnp.mean(pnp.cos(angles), place), x


def circmean(
    samples: ArrayLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None
) -> Array:
    """Mean of angles: the direction of the sum of their unit vectors, in ``[low, high)``.

    Args:
      samples: real numbers.
      high, low: numbers; angles are periodic with their difference.
      axis: an axis, or ``None`` for all elements.

    >>> import numpy as np
    >>> round(float(circmean(np.float32([350, 20]), high=360)), 2)
    5.0
    """
    sine, cosine, _ = _directions("circmean", samples, high, low, axis)
    angle = pnp.arctan2(sine, cosine)
    angle = pnp.where(angle < 0, angle + 2 * math.pi, angle)
    return angle * ((high - low) / (2 * math.pi)) + low


def _resultant(name: str, samples: Any, high: float, low: float, axis: int | None) -> Any:
    """The length of the mean vector, at most 1."""
    sine, cosine, _ = _directions(name, samples, high, low, axis)
    size = pnp.hypot(sine, cosine)
    return pnp.minimum(size, pnp.ones_like(size))


def circvar(
    samples: ArrayLike, high: float = 2 * math.pi, low: float = 0, axis: int | None = None
) -> Array:
    """Variance of angles: 1 less the length of the mean of their unit vectors.

    Args:
      samples, high, low, axis: as for :func:`circmean`.

    >>> import numpy as np
    >>> round(float(circvar(np.float32([0, np.pi]))), 4)
    1.0
    """
    return 1 - _resultant("circvar", samples, high, low, axis)


def circstd(
    samples: ArrayLike,
    high: float = 2 * math.pi,
    low: float = 0,
    axis: int | None = None,
    *,
    normalize: bool = False,
) -> Array:
    """Standard deviation of angles: ``sqrt(-2 log(R))`` with the length ``R`` of the mean vector.

    Args:
      samples, high, low, axis: as for :func:`circmean`.
      normalize: True for radians, also if the period is another.

    >>> import numpy as np
    >>> round(float(circstd(np.float32([0, 0.2]))), 3)
    0.1
    """
    size = _resultant("circstd", samples, high, low, axis)
    positive = size < 1
    root = pnp.sqrt(-2 * pnp.log(pnp.where(positive, size, pnp.full_like(size, 0.5))))
    deviation = pnp.where(positive, root, pnp.zeros_like(root))
    return deviation if normalize else deviation * ((high - low) / (2 * math.pi))
