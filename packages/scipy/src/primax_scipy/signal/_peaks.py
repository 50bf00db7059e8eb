"""Peaks of signals and their properties.

Neighbouring greater elements are found by binary descent in tables of maxima of powers of two:
Bender and Farach-Colton, The LCA problem revisited (2000).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, Tracer, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled, is_complex

from .._layout import single_at_least


def _bounds(name: str, value: Any) -> tuple[Any, Any]:
    """The least and greatest permitted values; None for no bound."""
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise ValueError(f"find_peaks: {name} must be a number or a pair, got {value!r}")
        return tuple(value)  # type: ignore[return-value]
    return value, None


def find_peaks(
    x: ArrayLike, height: ArrayLike | Sequence[ArrayLike | None] | None = None,
    threshold: ArrayLike | Sequence[ArrayLike | None] | None = None,
    distance: ArrayLike | None = None,
    prominence: ArrayLike | Sequence[ArrayLike | None] | None = None,
    width: ArrayLike | Sequence[ArrayLike | None] | None = None, wlen: int | None = None,
    rel_height: float = 0.5, plateau_size: ArrayLike | Sequence[ArrayLike | None] | None = None, *,
    size: int | None = None,
) -> tuple[Array, dict[str, Array]]:  # fmt: skip
    """Local maxima that fulfil conditions.

    A condition is None, the least value, or a pair of the least and greatest value. The maximum of
    a plateau is in its middle. Of equal peaks that are too close, the last one stays.

    Args:
      x: a real vector.
      height: heights of peaks.
      threshold: differences to both neighbours.
      distance: the least distance; smaller peaks are removed first.
      prominence: heights above the higher one of the lowest points towards greater elements.
      width: widths at a height, in samples.
      wlen: accepted only as None: prominences use the whole signal.
      rel_height: the height of widths, as a fraction of the prominence below the peak.
      plateau_size: lengths of plateaus.
      size: the number of results. It is needed under a transformation. Surplus positions contain -1
        for indices and NaN for properties; surplus peaks are dropped from the end.

    Returns:
      indices, and a dictionary of the properties for which there is a condition.

    Raises:
      ValueError: if ``x`` is not a real vector, or an option is invalid.
      TypeError: if ``x`` is traced and ``size`` is None.

    >>> peaks, properties = find_peaks(np.float32([0, 2, 1, 3, 0, 1, 0]), height=1.5)
    >>> peaks.tolist(), properties["peak_heights"].tolist()
    ([1, 3], [2.0, 3.0])
    """
    check_arrays("find_peaks", x)
    if typeof(x).ndim != 1 or is_complex(x):
        raise ValueError(f"find_peaks: x must be a real vector, got shape {typeof(x).shape}")
    if wlen is not None:
        raise ValueError("find_peaks: wlen is not available: prominences use the whole signal")
    if distance is not None and not distance >= 1:
        raise ValueError(f"find_peaks: distance must be at least 1, got {distance}")
    if size is None and isinstance(x, Tracer):
        raise TypeError(
            "find_peaks: the number of peaks depends on the data, which is not possible under a "
            "transformation: pass size=, the number of results."
        )
    conditions = {
        "plateau_size": plateau_size, "height": height, "threshold": threshold,
        "prominence": prominence, "width": width,
    }  # fmt: skip
    used = tuple(k for k, v in conditions.items() if v is not None)
    bounds = {k: _bounds(k, conditions[k]) for k in used}
    gap = None if distance is None else int(np.ceil(distance))
    if typeof(x).shape[0] < 3:
        mask, properties = pnp.zeros(typeof(x).shape, bool), {}
    else:
        mask, properties = _peaks(x, bounds, float(rel_height), gap=gap)
    n = int(mask.sum()) if size is None else operator.index(size)
    if n < 0:
        raise ValueError(f"find_peaks: size must not be negative, got {n}")
    out: tuple[Array, dict[str, Array]] = _collected(mask, properties, size=n)
    return out


@compiled("size", name="find_peaks")
def _collected(mask, properties, *, size):
    index = pnp.nonzero(mask, size=size, fill_value=-1)[0]
    missing = index < 0
    out = {}
    for name, values in properties.items():
        taken = pnp.take(values, index, axis=0, mode="clip")
        if typeof(values).dtype.kind == "i":
            out[name] = pnp.where(missing, lax.full_like(taken, -1), taken)
        else:
            out[name] = pnp.where(missing, lax.full_like(taken, np.nan), taken)
    return index, out


@compiled("gap", name="find_peaks")
def _peaks(x, bounds, rel_height, *, gap):
    if typeof(x).dtype.kind in "iub":
        x = lax.convert_element_type(x, np.float32)
    x = single_at_least(x)
    mask, left, right = _maxima(x)
    properties: dict[str, Any] = {}
    n = typeof(x).shape[0]
    index = lax.iota(np.int32, n)
    if "plateau_size" in bounds:
        lengths = right - left + 1
        mask = mask & _within(lax.convert_element_type(lengths, typeof(x).dtype),
                              bounds["plateau_size"])  # fmt: skip
        properties |= {"plateau_sizes": lengths, "left_edges": left, "right_edges": right}
    if "height" in bounds:
        mask = mask & _within(x, bounds["height"])
        properties["peak_heights"] = x
    if "threshold" in bounds:
        before = x - pnp.concatenate([x[:1], x[:-1]])
        after = x - pnp.concatenate([x[1:], x[-1:]])
        low, high = bounds["threshold"]
        mask = mask & _within(lax.min(before, after), (low, None))
        mask = mask & _within(lax.max(before, after), (None, high))
        properties |= {"left_thresholds": before, "right_thresholds": after}
    if gap is not None and gap > 1:
        mask = _separated(x, mask, gap)
    if "prominence" in bounds or "width" in bounds:
        values, bases = _prominences(x, index)
        properties |= {"prominences": values, "left_bases": bases[0], "right_bases": bases[1]}
        if "prominence" in bounds:
            mask = mask & _within(values, bounds["prominence"])
    if "width" in bounds:
        level = x - values * lax.convert_element_type(rel_height, typeof(x).dtype)
        ends = _crossings(x, index, level, bases)
        widths = ends[1] - ends[0]
        mask = mask & _within(widths, bounds["width"])
        properties |= {"widths": widths, "width_heights": level, "left_ips": ends[0],
                       "right_ips": ends[1]}  # fmt: skip
    return mask, properties


def _within(values, bounds):
    low, high = bounds
    out = lax.full(typeof(values).shape, True, np.bool_)
    if low is not None:
        out = out & (values >= lax.convert_element_type(low, typeof(values).dtype))
    if high is not None:
        out = out & (values <= lax.convert_element_type(high, typeof(values).dtype))
    return out


def _maxima(x):
    """The middles of maximal plateaus, and the edges of the plateau for each element."""
    n = typeof(x).shape[0]
    index = lax.iota(np.int32, n)
    differs = x[1:] != x[:-1]
    true = lax.full((1,), True, np.bool_)
    begins = pnp.concatenate([true, differs])
    ends = pnp.concatenate([differs, true])
    left = lax.cummax(pnp.where(begins, index, lax.full_like(index, 0)), 0)
    right = lax.cummin(pnp.where(ends, index, lax.full_like(index, n - 1)), 0, reverse=True)
    before = pnp.take(x, lax.max(left - 1, lax.full_like(left, 0)), axis=0)
    after = pnp.take(x, lax.min(right + 1, lax.full_like(right, n - 1)), axis=0)
    peak = (left > 0) & (right < n - 1) & (before < x) & (after < x)
    return peak & (index == (left + right) // 2), left, right


def _table(x, combine, fill):
    """Levels ``k`` of ``combine`` of ``2^k`` elements from each position on."""
    n = typeof(x).shape[0]
    levels = [x]
    width = 1
    while width < n:
        last = levels[-1]
        shifted = lax.pad(last, lax.full((), fill, typeof(x).dtype), [(-width, width, 0)])
        levels.append(combine(last, shifted))
        width *= 2
    return levels


def _reach(levels, index, passes, step):
    """The farthest position in a direction up to which all elements pass.

    Args:
      levels: tables from each position in the direction of ``step``.
    """
    n = typeof(index).shape[0]
    here = index
    for k in range(len(levels) - 1, -1, -1):
        width = 1 << k
        start = here + step
        end = start + step * (width - 1)
        inside = (end >= 0) & (end < n) & (start >= 0) & (start < n)
        first = start if step > 0 else end
        value = pnp.take(levels[k], lax.clamp(np.int32(0), first, np.int32(n - 1)), axis=0)
        here = lax.select(inside & passes(value), end, here)
    return here


def _prominences(x, index):
    """Prominences, and the lowest points between each element and the next greater ones."""
    largest, smallest = _table(x, lax.max, -np.inf), _table(x, lax.min, np.inf)
    bases, lows = [], []
    for step in (-1, 1):
        end = _reach(largest, index, lambda v: v <= x, step)
        low = _range(smallest, lax.min(index, end), lax.max(index, end), lax.min)
        # The base is the lowest point nearest to the peak.
        clear = _reach(smallest, index, lambda v, low=low: v > low, step)
        n = typeof(x).shape[0]
        base = lax.clamp(np.int32(0), clear + np.int32(step), np.int32(n - 1))
        bases.append(lax.select(x == low, index, base))
        lows.append(low)
    return x - lax.max(*lows), tuple(bases)


def _range(levels, first, last, combine):
    """``combine`` of the elements from ``first`` to ``last``."""
    length = last - first + 1
    level = np.int32(31) - lax.clz(length)
    flat = pnp.concatenate(levels)
    n = typeof(levels[0]).shape[0]
    start = pnp.take(flat, level * np.int32(n) + first, axis=0)
    width = lax.shift_left(lax.full_like(level, 1), level)
    end = pnp.take(flat, level * np.int32(n) + (last - width + 1), axis=0)
    return combine(start, end)


def _crossings(x, index, level, bases):
    """Interpolated positions at which the signal falls to a level on both sides."""
    smallest = _table(x, lax.min, np.inf)
    n = typeof(x).shape[0]
    out = []
    for step, base in zip((-1, 1), bases):
        above = _reach(smallest, index, lambda v: v > level, step)
        here = above + np.int32(step)
        here = lax.max(here, base) if step < 0 else lax.min(here, base)
        here = lax.clamp(np.int32(0), here, np.int32(n - 1))
        inner = lax.clamp(np.int32(0), here - np.int32(step), np.int32(n - 1))
        low, high = pnp.take(x, here, axis=0), pnp.take(x, inner, axis=0)
        rise = high - low
        below = (low < level) & (rise != 0)
        share = (level - low) / lax.select(rise != 0, rise, lax.full_like(rise, 1))
        share = lax.select(below, share, lax.full_like(share, 0))
        out.append(lax.convert_element_type(here, typeof(x).dtype) - float(step) * share)
    return out


def _separated(x, mask, gap):
    """Peaks without those that have a higher peak nearer than a distance."""
    n = typeof(x).shape[0]
    index = lax.iota(np.int32, n)
    order = pnp.argsort(x, stable=True)
    rank = pnp.zeros_like(index).at[order].set(index + 1)
    first = lax.max(index - np.int32(gap - 1), lax.full_like(index, 0))
    last = lax.min(index + np.int32(gap - 1), lax.full_like(index, n - 1))

    def highest(ranks):
        return _range(_table(ranks, lax.max, 0), first, last, lax.max)

    def open_(state):
        return pnp.any(state[1])

    def decide(state):
        peaks, undecided = state
        ranks = lax.select(undecided, rank, lax.full_like(rank, 0))
        winners = undecided & (highest(ranks) == rank)
        near = highest(lax.convert_element_type(winners, np.int32)) > 0
        return peaks | winners, undecided & ~near

    peaks, _ = lax.while_loop(open_, decide, (pnp.zeros_like(mask), mask))
    return peaks
