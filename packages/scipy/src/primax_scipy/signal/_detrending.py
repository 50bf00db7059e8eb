"""Removal of a mean or of a line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, check_arrays, compiled, one_axis

from .._layout import along, check_mode, constant, single_at_least


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: bool | None = None,
) -> Array:
    """Subtract the line of best fit, or the mean, along an axis.

    Args:
      data: numbers; integers become floats.
      axis: the axis.
      type: ``"linear"`` or ``"constant"``.
      bp: indices of break points: a line is fitted to each piece between them.
      overwrite_data: accepted for compatibility; ignored, because arrays are immutable.

    Returns:
      The signals without the trend, of the shape of ``data``.

    Raises:
      ValueError: if the type is unknown, or a break point is beyond the axis.

    >>> detrend(np.float32([1, 2, 6]), type="constant").tolist()
    [-2.0, -1.0, 3.0]
    """
    check_arrays("detrend", data)
    kinds = {"linear": "linear", "l": "linear", "constant": "constant", "c": "constant"}
    if type not in kinds:
        raise ValueError(f"detrend: type must be 'linear' or 'constant', got {type!r}")
    position = one_axis(axis, typeof(data).ndim)
    n = typeof(data).shape[position]
    points = tuple(sorted({0, n, *np.atleast_1d(np.asarray(bp)).astype(int).tolist()}))
    if points[0] < 0 or points[-1] > n:
        raise ValueError(f"detrend: break points must be between 0 and {n}, got {bp}")
    out: Array = _detrended(data, axis=position, kind=kinds[type], points=points)
    return out


@compiled("axis", "kind", "points", name="detrend")
def _detrended(x, *, axis, kind, points):
    return detrended(as_inexact(x), axis, kind, points)


def detrended(x: Any, axis: int, kind: str, points: tuple[int, ...] | None = None) -> Any:
    """Inexact values without the trend along an axis."""
    check_mode("detrend", kind, ("linear", "constant"), "type")
    dtype = typeof(x).dtype
    x = single_at_least(x)
    if kind == "constant":
        return lax.convert_element_type(x - pnp.mean(x, axis, keepdims=True), dtype)
    points = points or (0, typeof(x).shape[axis])
    pieces = [
        _without_line(lax.slice_in_dim(x, first, last, axis=axis), axis)
        for first, last in pairwise(points)
    ]
    out = pieces[0] if len(pieces) == 1 else lax.concatenate(pieces, axis)
    return lax.convert_element_type(out, dtype)


def _without_line(x, axis):
    n = typeof(x).shape[axis]
    x = x - pnp.mean(x, axis, keepdims=True)
    if n == 1:
        return x
    t = np.linspace(-1, 1, n)
    t = lax.convert_element_type(constant(t / np.linalg.norm(t), x), typeof(x).dtype)
    t = along(t, axis, typeof(x).ndim)
    return x - t * pnp.sum(x * t, axis, keepdims=True)
