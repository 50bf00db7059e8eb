"""Indices and interpolation weights of quantiles in sorted elements.

A quantile is ``(1 - w) x[i] + w x[i + 1]`` of sorted elements. The methods differ in ``i`` and
``w``: they are the nine of Hyndman and Fan ("Sample quantiles in statistical packages", The
    American Statistician 50, 1996; the comments below give their numbers), and four that select
    one or both of the elements next to ``(n - 1) q``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, typeof

# alpha and beta of the continuous methods.
_CONTINUOUS: Final[dict[str, tuple[float, float]]] = {
    "interpolated_inverted_cdf": (0.0, 1.0),  # 4
    "hazen": (0.5, 0.5),  # 5
    "weibull": (0.0, 0.0),  # 6
    "linear": (1.0, 1.0),  # 7
    "median_unbiased": (1 / 3, 1 / 3),  # 8
    "normal_unbiased": (3 / 8, 3 / 8),  # 9
}
_DISCRETE: Final = (
    "inverted_cdf",  # 1
    "averaged_inverted_cdf",  # 2
    "closest_observation",  # 3
    "lower", "higher", "midpoint", "nearest",
)  # fmt: skip
METHODS: Final[tuple[str, ...]] = (*_CONTINUOUS, *_DISCRETE)


def known_places(q: np.ndarray, n: int, method: str) -> tuple[np.ndarray, np.ndarray]:
    """``i`` and ``w`` of concrete quantiles of ``n`` elements, in double precision."""
    i, w = _places(_Known, np.asarray(q, np.float64), np.float64(n), method)
    i, w = np.broadcast_arrays(i, w)
    last = n - 1
    w = np.where((i < 0) | (i >= last), np.where(np.isnan(w), w, 0.0), w)
    i = np.where(np.isnan(i), 0, np.clip(i, 0, last))
    return i.astype(np.int32), w


def traced_places(q: Any, n: Any, method: str) -> tuple[Array, Array]:
    """``i`` and ``w`` of quantiles of ``n`` elements; both are arrays of one shape and dtype."""
    i, w = _places(_Traced, q, n, method)
    zero = lax.full_like(i, 0)
    last = lax.max(lax.sub(n, lax.full_like(n, 1)), zero)
    outside = lax.bitwise_or(lax.lt(i, zero), lax.ge(i, last))
    number = lax.eq(w, w)
    w = lax.select(lax.bitwise_and(outside, number), zero, w)
    return lax.convert_element_type(lax.clamp(zero, i, last), np.int32), w


class _Known:
    """Operations on NumPy arrays."""

    floor: Final[Callable[..., Any]] = np.floor
    ceil: Final[Callable[..., Any]] = np.ceil
    where: Final[Callable[..., Any]] = np.where


class _Traced:
    """Operations on arrays that may be traced."""

    floor: Final[Callable[..., Any]] = lax.floor
    ceil: Final[Callable[..., Any]] = lax.ceil

    @staticmethod
    def where(mask: Any, x: Any, y: Any) -> Any:
        """Elements of two arrays or numbers."""
        like = next(v for v in (x, y) if not isinstance(v, float))
        return lax.select(
            mask, *[lax.full_like(like, v) if isinstance(v, float) else v for v in (x, y)]
        )


def _places(ops: Any, q: Any, n: Any, method: str) -> tuple[Any, Any]:
    """Indices before they are clamped to the range of elements, and weights."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        v = (
            q * (n - 1.0)
            if alpha == beta == 1.0
            else n * q + (alpha + q * (1 - alpha - beta)) - 1.0
        )
        i = ops.floor(v)
        return i, v - i
    if method == "inverted_cdf":
        i = ops.ceil(n * q) - 1.0
        return i, i - i
    if method == "averaged_inverted_cdf":
        v = n * q - 1.0
        i = ops.floor(v)
        whole = v == i
        return ops.where(whole, i, i + 1.0), ops.where(whole, 0.5, v - v)
    if method == "closest_observation":
        v = n * q - 1.5
        i = ops.floor(v)
        odd = i - 2.0 * ops.floor(i * 0.5)
        i = ops.where((v == i) & (odd == 1.0), i, i + 1.0)
        return i, v - v
    v = q * (n - 1.0)
    i = ops.floor(v)
    if method == "lower":
        return i, v - v
    if method == "higher":
        return ops.ceil(v), v - v
    if method == "midpoint":
        return i, ops.where(v == i, v - v, 0.5)
    odd = i - 2.0 * ops.floor(i * 0.5)
    up = (v - i > 0.5) | ((v - i == 0.5) & (odd == 1.0))
    return ops.where(up, i + 1.0, i), v - v


def between(low: Any, high: Any, w: Any) -> Any:
    """``(1 - w) low + w high``; an infinite ``high`` is ignored where ``w`` is zero."""
    relevant = lax.bitwise_or(lax.ne(w, lax.full_like(w, 0)), lax.is_finite(high))
    high = lax.select(relevant, high, lax.full_like(high, 0))
    return lax.add(lax.mul(low, lax.sub(lax.full_like(w, 1), w)), lax.mul(high, w))


def at_places(x: Any, i: Any) -> Array:
    """Gather along the last axis at indices in bounds: ``[..., n]`` at ``[q]``, or at ``[..., q]``
    with separate indices for each row, gives ``[..., q]``."""
    shape = typeof(x).shape
    rank = len(shape)
    index = lax.expand_dims(i, (typeof(i).ndim,))
    if typeof(i).ndim > 1:
        rows = tuple(range(rank - 1))
        numbers = lax.GatherDimensionNumbers((), (rank - 1,), (rank - 1,), rows, rows)
        sizes = tuple(min(1, n) for n in shape)
    else:
        numbers = lax.GatherDimensionNumbers(tuple(range(rank - 1)), (rank - 1,), (rank - 1,))
        sizes = (*shape[:-1], min(1, shape[-1]))
    return lax.gather(x, index, numbers, sizes, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)
