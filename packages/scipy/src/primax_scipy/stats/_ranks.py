"""Ranks and modes, by sorting."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, check_arrays, compiled, one_axis

from ._policies import check_policy

_METHODS = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """Result of :func:`mode`: the most frequent values, and how often they occur."""

    mode: Array
    count: Array


def runs(ordered: Any) -> tuple[Any, Any, Any]:
    """Of sorted values along the last axis: whether a run of equal ones begins, and the positions
    of its first and last element."""
    n = ordered.shape[-1]
    first = ordered[..., 1:] != ordered[..., :-1]
    edge = pnp.ones((*ordered.shape[:-1], 1), bool)
    begins = pnp.concatenate([edge, first], -1)
    ends = pnp.concatenate([first, edge], -1)
    at = pnp.broadcast_to(pnp.arange(n), ordered.shape)
    start = lax.cummax(pnp.where(begins, at, 0), ordered.ndim - 1)
    stop = lax.cummin(pnp.where(ends, at, n), ordered.ndim - 1, reverse=True)
    return begins, start, stop


@compiled("axis", "keepdims", name="mode")
def _mode(a, *, axis, keepdims):
    moved = pnp.moveaxis(a, axis, -1)
    ordered = pnp.sort(moved, -1)
    _, start, stop = runs(ordered)
    counts = stop - start + 1
    best = pnp.argmax(counts, -1, keepdims=True)
    value = pnp.take_along_axis(ordered, best, -1)
    count = pnp.take_along_axis(counts, best, -1)
    if a.dtype.kind in "fV":
        missing = pnp.any(moved != moved, -1, keepdims=True)
        value = pnp.where(missing, pnp.full_like(value, np.nan), value)
        count = pnp.where(missing, pnp.sum(moved != moved, -1, keepdims=True), count)
    outs = [pnp.moveaxis(v, -1, axis) for v in (value, count)]
    if not keepdims:
        outs = [pnp.squeeze(v, axis) for v in outs]
    return outs


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Most frequent value along an axis; the smallest one of several.

    Args:
      a: real numbers.
      axis: an axis, or ``None`` for all elements.
      nan_policy: ``"propagate"``; NaN is the mode of values with NaN.
      keepdims: whether the axis is kept with size 1.

    Raises:
      NotImplementedError: for the policies ``"omit"`` and ``"raise"``.
      ValueError: for another policy, or an empty axis.

    >>> import numpy as np
    >>> mode(np.int32([3, 1, 3, 2]))
    ModeResult(mode=Array(3, dtype=int32), count=Array(2, dtype=int32))
    """
    check_arrays("mode", a)
    check_policy("mode", nan_policy)
    a = pnp.asarray(a)
    flat = axis is None
    ndim = a.ndim
    a = pnp.ravel(a) if flat or not ndim else a
    place = 0 if axis is None else one_axis(axis, max(ndim, 1))
    if a.shape[place] == 0:
        raise ValueError(f"mode: axis {place} of shape {a.shape} is empty: it has no mode.")
    value, count = _mode(a, axis=place, keepdims=keepdims)
    if flat and keepdims:
        value, count = (pnp.reshape(v, (1,) * ndim) for v in (value, count))
    return ModeResult(value, count)


@compiled("method", "axis", name="rankdata")
def _rankdata(a, *, method, axis):
    x = pnp.moveaxis(a, axis, -1)
    order = pnp.argsort(x, -1, stable=True)
    place = pnp.argsort(order, -1, stable=True)
    floating = typeof(as_inexact(x)).dtype
    if method == "ordinal":
        ranks = place + 1
    else:
        begins, start, stop = runs(pnp.take_along_axis(x, order, -1))
        if method == "average":
            ranks = 0.5 * lax.convert_element_type(start + stop + 2, floating)
        elif method == "dense":
            ranks = pnp.cumsum(begins.astype(place.dtype), -1)
        else:
            ranks = (start if method == "min" else stop) + 1
        ranks = pnp.take_along_axis(ranks, place, -1)
    ranks = lax.convert_element_type(ranks, floating)
    missing = pnp.any(x != x, -1, keepdims=True)
    ranks = pnp.where(missing, pnp.full_like(ranks, np.nan), ranks)
    return pnp.moveaxis(ranks, -1, axis)


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Ranks of elements, beginning with 1.

    Args:
      a: real numbers.
      method: the rank of equal elements: ``"average"``, ``"min"`` or ``"max"`` of their positions,
        ``"dense"``, as min without gaps, or ``"ordinal"``, their positions.
      axis: an axis, or ``None`` for all elements in one sequence.
      nan_policy: ``"propagate"``; all ranks of a sequence with NaN are NaN.

    Returns:
      Floats; a vector if ``axis`` is ``None``.

    Raises:
      NotImplementedError: for the policies ``"omit"`` and ``"raise"``.
      ValueError: for another policy or method.

    >>> import numpy as np
    >>> print(rankdata(np.float32([10, 30, 10])))
    [1.5 3.  1.5]
    """
    check_arrays("rankdata", a)
    check_policy("rankdata", nan_policy)
    if method not in _METHODS:
        raise ValueError(f"rankdata: unknown method {method!r}: pass one of {', '.join(_METHODS)}.")
    a = pnp.asarray(a)
    a = pnp.ravel(a) if axis is None or not a.ndim else a
    out: Array = _rankdata(a, method=method, axis=0 if axis is None else one_axis(axis, a.ndim))
    return out
