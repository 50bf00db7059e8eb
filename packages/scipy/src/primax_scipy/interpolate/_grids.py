"""Interpolation on rectangular grids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, Tracer, dtypes, typeof
from primax_core.tree_util import register_pytree_node_class
from primax_core.typing import ArrayLike
from primax_numpy.declaring import compiled, is_complex

from .._layout import as_operand, check_mode, together
from ._bsplines import basis, find, make_interp_spline
from ._piecewise import intervals, real_part_dtype

_DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}
_METHODS = ("linear", "nearest", *_DEGREES)
_NAME = "RegularGridInterpolator"


@register_pytree_node_class
class RegularGridInterpolator:
    """Interpolation of values on a rectangular grid, whose spacing need not be uniform.

    A pytree of the grid, the values and the fill value: it can be an argument and a result of
    transformed functions, and is differentiable in all of them.

    Args:
      points: vectors of coordinates ``[n1]``, ..., ``[nd]``, each increasing or decreasing.
      values: numbers ``[n1, ..., nd, ...]``; integers become floats.
      method: ``"linear"`` (or ``"slinear"``), ``"nearest"``, ``"cubic"`` or ``"quintic"``; the last
        two are tensor products of splines with not-a-knot conditions.
      bounds_error: raise an error for coordinates outside, which must not be traced.
      fill_value: the value outside; None extrapolates.

    Raises:
      ValueError: if a shape does not match, coordinates are neither increasing nor decreasing, or
        the method is unknown.

    >>> f = RegularGridInterpolator(
    ...     (np.float32([0, 1]), np.float32([0, 2])), np.float32([[0, 2], [1, 3]])
    ... )
    >>> f(np.float32([[0.5, 1.0], [1.0, 0.5]])).tolist()
    [1.5, 1.5]
    """

    grid: tuple[Any, ...]
    values: Any
    fill_value: Any
    method: str
    bounds_error: bool

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = False,
        fill_value: Any = np.nan,
    ):  # fmt: skip
        check_mode(_NAME, method, _METHODS, "method")
        values = as_operand(_NAME, values)
        grid = [as_operand(_NAME, p) for p in points]
        if len(grid) > typeof(values).ndim:
            raise ValueError(
                f"{_NAME}: {len(grid)} vectors of points for values of "
                f"{typeof(values).ndim} dimensions"
            )
        if not dtypes.issubdtype(typeof(values).dtype, np.inexact):
            (values,) = together(values)
        for i, p in enumerate(grid):
            if typeof(p).shape != (typeof(values).shape[i],):
                raise ValueError(
                    f"{_NAME}: points[{i}] must have shape ({typeof(values).shape[i]},), got "
                    f"{typeof(p).shape}"
                )
            if not isinstance(p, Tracer):
                grid[i], values = _increasing(i, p, values)
            needed = _DEGREES.get(method, 1) + 1 if method != "nearest" else 1
            if typeof(p).shape[0] < needed:
                raise ValueError(
                    f"{_NAME}: method {method!r} needs at least {needed} points for each axis, got "
                    f"{typeof(p).shape[0]} along axis {i}"
                )
        if fill_value is not None:
            fill_value = as_operand(_NAME, fill_value)
            if is_complex(fill_value) and not is_complex(values):
                raise ValueError(f"{_NAME}: fill_value must be real for real values")
        self.grid, self.values, self.fill_value = tuple(grid), values, fill_value
        self.method, self.bounds_error = method, bool(bounds_error)

    def tree_flatten(self) -> Any:
        children = self.grid, self.values, self.fill_value
        return children, (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> RegularGridInterpolator:
        new = object.__new__(cls)
        new.grid, new.values, new.fill_value = children
        new.method, new.bounds_error = aux
        return new

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """Values at coordinates ``[points..., d]``, or a tuple of ``d`` arrays that broadcast.

        Raises:
          ValueError: if the last size is not the number of dimensions, the method is unknown, or
            ``bounds_error`` is true and coordinates are outside or traced.
        """
        method = self.method if method is None else method
        check_mode(_NAME, method, _METHODS, "method")
        d = len(self.grid)
        if isinstance(xi, tuple):
            parts = [as_operand(_NAME, x) for x in xi]
            shape = lax.broadcast_shapes(*[typeof(x).shape for x in parts])
            xi = pnp.stack([pnp.broadcast_to(x, shape) for x in together(*parts)], -1)
        else:
            xi = as_operand(_NAME, xi)
            if d == 1 and (not typeof(xi).ndim or typeof(xi).shape[-1] != 1):
                xi = pnp.expand_dims(xi, -1)
        if not typeof(xi).ndim or typeof(xi).shape[-1] != d:
            raise ValueError(
                f"{_NAME}: the last axis of xi must have size {d}, got shape {typeof(xi).shape}"
            )
        if self.bounds_error:
            self._check_bounds(xi)
        values = self.values
        if method in ("cubic", "quintic"):
            for i, x in enumerate(self.grid):
                values = make_interp_spline(x, values, _DEGREES[method], axis=i).c
                values = pnp.moveaxis(values, 0, i)
        fill = None if self.bounds_error else self.fill_value
        out: Array = _interpolated(self.grid, values, xi, fill, method=method)
        return out

    def _check_bounds(self, xi: Any) -> None:
        if isinstance(xi, Tracer) or any(isinstance(p, Tracer) for p in self.grid):
            raise ValueError(
                f"{_NAME}: bounds_error=True cannot be checked for traced coordinates: use "
                "bounds_error=False, which gives fill_value outside."
            )
        for i, p in enumerate(self.grid):
            x, p = np.asarray(xi)[..., i], np.asarray(p)
            if np.any((x < p[0]) | (x > p[-1])):
                raise ValueError(f"{_NAME}: coordinates are out of bounds in dimension {i}")


def _increasing(i: int, p: Any, values: Any) -> tuple[Any, Any]:
    """Points and values with the points in increasing order."""
    steps = np.diff(np.asarray(p))
    if np.all(steps > 0):
        return p, values
    if np.all(steps < 0):
        return pnp.flip(p), pnp.flip(values, i)
    raise ValueError(f"{_NAME}: points[{i}] must be strictly increasing or decreasing")


@compiled("method", name="grid_interpolation")
def _interpolated(grid, values, xi, fill, *, method):
    values, xi, *grid = together(values, xi, *grid)
    xi, *grid = real_part_dtype(values, xi, *grid)
    d = len(grid)
    points = [lax.index_in_dim(xi, i, typeof(xi).ndim - 1, keepdims=False) for i in range(d)]
    neighbours = []
    for x, p in zip(grid, points):
        if method == "nearest":
            neighbours.append(_nearest(x, p))
        elif method in ("linear", "slinear"):
            neighbours.append(_linear(x, p))
        else:
            neighbours.append(_spline(x, p, _DEGREES[method]))
    total: Any = None
    rest = typeof(values).ndim - d
    for corner in itertools.product(*neighbours):
        part = values[tuple(index for index, _ in corner)]
        weight: Any = None
        for _, w in corner:
            if w is not None:
                weight = w if weight is None else weight * w
        if weight is not None:
            n = typeof(weight).ndim
            weight = lax.expand_dims(weight, range(n, n + rest))
            part = part * lax.convert_element_type(weight, typeof(part).dtype)
        total = part if total is None else total + part
    return _filled(total, grid, points, fill, rest)


def _filled(total, grid, points, fill, rest):
    outside: Any = None
    missing: Any = None
    for x, p in zip(grid, points):
        out = (p < x[0]) | (p > x[-1])
        nan = p != p
        outside = out if outside is None else outside | out
        missing = nan if missing is None else missing | nan
    shape, n = typeof(total).shape, typeof(points[0]).ndim

    def put(mask, value):
        mask = pnp.broadcast_to(lax.expand_dims(mask, range(n, n + rest)), shape)
        return pnp.where(mask, lax.convert_element_type(value, typeof(total).dtype), total)

    if fill is not None:
        total = put(outside, fill)
    return put(missing, np.float32(np.nan))


def _nearest(x, p):
    if typeof(x).shape[0] == 1:
        return [(pnp.zeros(typeof(p).shape, np.int32), None)]
    i = intervals(x, p)
    low, high = pnp.take(x, i, axis=0, mode="clip"), pnp.take(x, i + 1, axis=0, mode="clip")
    return [(lax.select(p - low <= high - p, i, i + 1), None)]


def _linear(x, p):
    i = intervals(x, p)
    low, high = pnp.take(x, i, axis=0, mode="clip"), pnp.take(x, i + 1, axis=0, mode="clip")
    t = (p - low) / (high - low)
    return [(i, 1 - t), (i + 1, t)]


def _spline(x, p, k):
    n = typeof(x).shape[0]
    inner = x[(k + 1) // 2 : n - (k + 1) // 2]
    t = pnp.concatenate([pnp.repeat(x[:1], k + 1), inner, pnp.repeat(x[-1:], k + 1)])
    index = find(t, k, n, p)
    values = basis(t, k, p, index)
    return [
        (index + np.int32(j - k), lax.index_in_dim(values, j, 0, keepdims=False))
        for j in range(k + 1)
    ]


def interpn(
    points: Sequence[ArrayLike | Sequence[Any]], values: ArrayLike | Sequence[Any],
    xi: ArrayLike | Sequence[Any], method: str = "linear", bounds_error: bool = False,
    fill_value: ArrayLike | None = np.nan,
) -> Array:  # fmt: skip
    """Values at coordinates by a `RegularGridInterpolator` with the same arguments."""
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
