"""Interpolation along one axis by the name of a method."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, Tracer, typeof
from primax_core.tree_util import register_pytree_node_class
from primax_numpy.declaring import check_arrays, compiled, is_complex, one_axis

from .._layout import as_operand, check_mode, together
from ._bsplines import BSpline, make_interp_spline
from ._piecewise import real_part_dtype

_DEGREES = {"slinear": 1, "zero": 0, "quadratic": 2, "cubic": 3}
_STEPS = ("linear", "nearest", "nearest-up", "previous", "next")


@register_pytree_node_class
class interp1d:
    """Interpolation of values along one axis.

    A pytree of its points, values and fill value.

    Args:
      x: points ``[n]``, in any order unless ``assume_sorted``.
      y: values, with ``n`` elements along the axis.
      kind: ``"linear"``, ``"nearest"``, ``"nearest-up"``, ``"previous"``, ``"next"``; ``"zero"``,
        ``"slinear"``, ``"quadratic"`` or ``"cubic"`` for splines; or the degree of a spline.
      axis: the axis, which new points replace.
      copy: accepted for compatibility; ignored, because arrays are immutable.
      bounds_error: raise an error for points outside, which must not be traced.
      fill_value: the value outside, a pair for both sides, or ``"extrapolate"``.
      assume_sorted: the points increase.

    Raises:
      ValueError: if a shape does not match, or the kind is unknown.

    >>> f = interp1d(np.float32([0, 1, 2]), np.float32([0, 10, 40]))
    >>> f(np.float32([0.5, 1.5, 3.0])).tolist()
    [5.0, 25.0, nan]
    """

    x: Any
    y: Any
    kind: Any
    axis: int
    fill_value: tuple[Any, ...]
    bounds_error: bool
    extrapolate: bool

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True,
        bounds_error: bool = False, fill_value: Any = np.nan, assume_sorted: bool = False,
    ):  # fmt: skip
        x, y = as_operand("interp1d", x), as_operand("interp1d", y)
        if isinstance(kind, str):
            check_mode("interp1d", kind, (*_STEPS, *_DEGREES), "kind")
        if typeof(x).ndim != 1 or not typeof(y).ndim:
            raise ValueError("interp1d: x must be a vector and y have at least one dimension")
        self.axis = one_axis(axis, typeof(y).ndim)
        if typeof(y).shape[self.axis] != typeof(x).shape[0]:
            raise ValueError(
                f"interp1d: y has {typeof(y).shape[self.axis]} values along axis {self.axis} for "
                f"{typeof(x).shape[0]} points"
            )
        y = pnp.moveaxis(y, self.axis, 0) if self.axis else y
        if not assume_sorted:
            order = pnp.argsort(x)
            x, y = pnp.take(x, order, axis=0), pnp.take(y, order, axis=0)
        self.extrapolate = isinstance(fill_value, str)
        if self.extrapolate:
            check_mode("interp1d", fill_value, ("extrapolate",), "fill_value")
            fill_value = np.nan
        pair = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
        if len(pair) != 2:
            raise ValueError("interp1d: fill_value must be a value, a pair, or 'extrapolate'")
        self.x, self.y, self.kind = x, y, kind
        self.fill_value = tuple(as_operand("interp1d", v) for v in pair)
        self.bounds_error = bool(bounds_error)
        self._spline: BSpline | None = None
        if kind not in _STEPS:
            degree = _DEGREES[kind] if isinstance(kind, str) else operator.index(kind)
            if degree:
                self._spline = make_interp_spline(x, y, degree)
            else:
                self.kind = "previous"

    def tree_flatten(self) -> Any:
        children = self.x, self.y, self.fill_value, self._spline
        return children, (self.kind, self.axis, self.extrapolate, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> interp1d:
        new = object.__new__(cls)
        new.x, new.y, new.fill_value, new._spline = children
        new.kind, new.axis, new.extrapolate, new.bounds_error = aux
        return new

    def __call__(self, x: Any) -> Array:
        """Values at points ``[points...]``, which replace the axis of ``y``.

        Raises:
          ValueError: if ``bounds_error`` is true and points are outside or traced.
        """
        x = as_operand("interp1d", x)
        check_arrays("interp1d", x)
        if self.bounds_error:
            if isinstance(x, Tracer) or isinstance(self.x, Tracer):
                raise ValueError(
                    "interp1d: bounds_error=True cannot be checked for traced points: use "
                    "bounds_error=False, which gives fill_value outside."
                )
            points, p = np.asarray(x), np.asarray(self.x)
            if np.any((points < p[0]) | (points > p[-1])):
                raise ValueError("interp1d: points are out of bounds")
        if self._spline is not None:
            out: Array = self._spline(x)
        else:
            out = _stepwise(self.x, self.y, x, kind=self.kind)
        if not self.extrapolate:
            out = _filled(out, self.x, x, *self.fill_value)
        n = typeof(x).ndim
        return pnp.moveaxis(out, range(n), range(self.axis, self.axis + n)) if self.axis else out


@compiled("kind", name="interp1d")
def _stepwise(x, y, points, *, kind):
    y, x, points = together(y, x, points)
    x, points = real_part_dtype(y, *(lax.real(v) if is_complex(v) else v for v in (x, points)))
    n, rest = typeof(x).shape[0], typeof(y).ndim - 1
    if kind in ("previous", "next"):
        side = "right" if kind == "previous" else "left"
        index = pnp.searchsorted(x, points, side=side) - (1 if kind == "previous" else 0)
        outside = (index < 0) | (index >= n)
        out = pnp.take(y, lax.clamp(np.int32(0), index, np.int32(n - 1)), axis=0)
        mask = lax.expand_dims(outside, range(typeof(points).ndim, typeof(points).ndim + rest))
        mask = pnp.broadcast_to(mask, typeof(out).shape)
        return pnp.where(mask, lax.full((), np.nan, typeof(out).dtype), out)
    if kind in ("nearest", "nearest-up"):
        middle = x[:-1] + (x[1:] - x[:-1]) * 0.5
        index = pnp.searchsorted(middle, points, side="left" if kind == "nearest" else "right")
        return pnp.take(y, index, axis=0)
    index = pnp.searchsorted(x[1:-1], points, side="left") if n > 2 else pnp.zeros(
        typeof(points).shape, np.int32)  # fmt: skip
    low, high = (pnp.take(x, index + j, axis=0) for j in (0, 1))
    t = lax.expand_dims(
        (points - low) / (high - low), range(typeof(points).ndim, typeof(points).ndim + rest)
    )
    t = lax.convert_element_type(t, typeof(y).dtype)
    left, right = (pnp.take(y, index + j, axis=0) for j in (0, 1))
    return left + (right - left) * t


@compiled(name="interp1d")
def _filled(out, x, points, below, above):
    x, points = together(x, points)
    shape, n = typeof(out).shape, typeof(points).ndim

    def put(out, mask, value):
        mask = lax.expand_dims(mask, range(n, len(shape)))
        value = lax.convert_element_type(value, typeof(out).dtype)
        if typeof(value).ndim:
            value = pnp.broadcast_to(
                lax.expand_dims(value, range(len(shape) - typeof(value).ndim)), shape
            )
        return pnp.where(pnp.broadcast_to(mask, shape), value, out)

    out = put(out, points < x[0], below)
    return put(out, points > x[-1], above)
