"""Piecewise linear interpolation, and phase unwrapping."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, inexact, one_call
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays, one_axis
from ._creation import asarray
from ._functions import compiled
from ._promotion import check_not_complex, is_complex
from ._searching import searchsorted


def _at(x: Any, places: Any) -> Any:
    return x.at[places].get(mode="promise_in_bounds")


@compiled("extrapolate")
def _interp(x, xp, fp, left=None, right=None, period=None, *, extrapolate):
    if period is not None:
        period = lax.abs(period)
        x, xp = (v % period for v in (x, xp))
        order = lax.sort([xp, lax.iota(np.int32, typeof(xp).size)], num_keys=1)[1]
        xp, fp = _at(xp, order), _at(fp, order)
        xp = lax.concatenate([xp[-1:] - period, xp, xp[:1] + period], 0)
        fp = lax.concatenate([fp[-1:], fp, fp[:1]], 0)
    n = typeof(xp).size
    if n == 1:
        return _outside(x, xp, fp, left, right, extrapolate, _full(x, fp[0]))
    place: Any = searchsorted(xp, x, side="right")
    place = lax.clamp(np.int32(1), place, np.int32(n - 1))
    low, high = _at(xp, place - 1), _at(xp, place)
    below, above = _at(fp, place - 1), _at(fp, place)
    width: Any = high - low
    flat = lax.abs(width) <= np.spacing(np.finfo(typeof(width).dtype).eps)
    step = lax.convert_element_type(
        lax.select(flat, lax.full_like(width, 0), x - low), typeof(below).dtype
    )
    width = lax.select(flat, lax.full_like(width, 1), width)
    inside = below + step / lax.convert_element_type(width, typeof(below).dtype) * (above - below)
    return _outside(x, xp, fp, left, right, extrapolate, inside)


def _full(x: Any, value: Any) -> Any:
    return lax.broadcast_in_dim(value, typeof(x).shape, ())


def _outside(
    x: Any, xp: Any, fp: Any, left: Any, right: Any, extrapolate: tuple[bool, bool], out: Any
) -> Any:
    for beyond, value, edge, along in (
        (x < xp[0], left, fp[0], extrapolate[0]),
        (x > xp[-1], right, fp[-1], extrapolate[1]),
    ):
        if not along:
            edge = edge if value is None else lax.convert_element_type(value, typeof(fp).dtype)
            out = lax.select(beyond, _full(x, edge), out)
    return out


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Values of the piecewise linear function through data points.

    Its derivative at a data point is the right derivative, and zero outside the range of the data.

    Args:
      x: the points of evaluation.
      xp: ``float[n]``, x-coordinates of the data, increasing (in any order with ``period``).
      fp: ``float[n]`` or ``complex[n]``, y-coordinates of the data.
      left, right: values below ``xp[0]`` and above ``xp[-1]``, by default ``fp[0]`` and
        ``fp[-1]``; ``"extrapolate"`` continues the first or last segment.
      period: the period of the data.

    Raises:
      ValueError: if ``xp`` and ``fp`` are not vectors of one size, or are empty.

    >>> interp(0.5, np.array([0.0, 1.0]), np.array([10.0, 20.0])).item()
    15.0
    """
    operands = [v for v in (left, right, period) if v is not None and not isinstance(v, str)]
    check_arrays("interp", x, xp, fp, *operands)
    for name, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(
                f"the only valid string value of `{name}` is 'extrapolate', but got: {value!r}"
            )
    shapes = typeof(xp).shape, typeof(fp).shape
    if shapes[0] != shapes[1] or len(shapes[0]) != 1:
        raise ValueError(
            "xp and fp must be one-dimensional arrays of equal size, got shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    if not shapes[0][0]:
        raise ValueError("interp: xp and fp are empty")
    if period is not None and typeof(period).ndim:
        raise ValueError(f"period must be a scalar; got shape {typeof(period).shape}")
    if period is not None and isinstance(period, (int, float)) and period == 0:
        raise ValueError("period must be a non-zero value")
    if is_complex(x) or is_complex(xp):
        raise ValueError("primax.numpy.interp: complex x values not supported.")
    value_dtype = dtypes.result_type(_inexact_type(x, xp), _inexact_type(fp))
    real = np.finfo(value_dtype).dtype if value_dtype.kind == "c" else value_dtype
    extrapolate = left == "extrapolate", right == "extrapolate"
    x, xp, fp = asarray(x, real), asarray(xp, real), asarray(fp, value_dtype)
    period = None if period is None else asarray(period, real)
    left, right = (None if isinstance(v, str) else v for v in (left, right))
    options = () if left is right is period is None else (left, right, period)
    return _interp(x, xp, fp, *options, extrapolate=extrapolate)


def _inexact_type(*xs: Any) -> Any:
    return inexact(dtypes.result_type(*xs), False)[0]


@compiled("axis")
def _unwrap(p, period, discont=None, *, axis):
    dtype = typeof(p).dtype
    whole = dtypes.issubdtype(dtype, np.integer)
    n = typeof(p).shape[axis]
    step: Any = lax.slice_in_dim(p, 1, n, axis=axis) - lax.slice_in_dim(p, 0, n - 1, axis=axis)
    size: Any = lax.full_like(step, period)
    half: Any = size // 2 if whole else size / 2
    wrapped: Any = (step + half) % size - half
    flips = lax.bitwise_and(wrapped == -half, step > 0)  # a jump by half keeps its direction
    if whole:
        flips = lax.bitwise_and(flips, size % 2 == 0)
    wrapped = lax.select(flips, half, wrapped)
    change: Any = wrapped - step
    limit = half if discont is None else discont
    change = lax.select(lax.abs(step) < limit, lax.full_like(change, 0), change)
    total = lax.cumsum(change, axis)
    first = lax.slice_in_dim(p, 0, 1, axis=axis)
    rest = lax.slice_in_dim(p, 1, n, axis=axis) + total
    return lax.concatenate([first, lax.convert_element_type(rest, dtype)], axis)


@one_call("axis")
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Angles shifted by multiples of the period, so that jumps are at most half of it.

    Args:
      p: the angles; integers stay integers if the period is an integer.
      discont: the smallest jump that is corrected; by default (and at least) half a period.
      axis: the axis, by default the last.
      period: the period, a number or a scalar array; 2π by default.

    Returns:
      An array of the shape of ``p``; its dtype is the one promoted with that of an array
      ``period``.

    Raises:
      ValueError: if ``p`` is a scalar or ``period`` is not.

    The derivative with respect to ``p`` is 1, and that with respect to the period is the number of
    periods that are added, except at jumps by exactly half a period.

    >>> unwrap(np.array([0, 2, 5, 1]), period=6).tolist()
    [0, 2, 5, 7]
    """
    check_arrays("unwrap", p)
    check_not_complex("unwrap", p)
    value = asarray(p)
    if not value.ndim:
        raise ValueError("unwrap: p must have at least one axis, got a scalar")
    place = one_axis(axis, value.ndim)
    if typeof(period).ndim:
        raise ValueError(f"unwrap: period must be a scalar, got shape {typeof(period).shape}")
    if not isinstance(period, (int, float)):
        value = asarray(value, dtypes.result_type(value, period))
    whole = dtypes.issubdtype(value.dtype, np.integer) and typeof(period).dtype.kind in "iub"
    if not whole and not dtypes.issubdtype(value.dtype, np.floating):
        value = asarray(value, dtypes.default_float())
    value = asarray(value, value.dtype)
    if not value.shape[place]:
        return value
    options = () if discont is None else (discont,)
    return _unwrap(value, asarray(period, value.dtype), *options, axis=place)
