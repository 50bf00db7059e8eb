"""Spline interpolation of images at coordinates, with each mode for coordinates outside."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import dtypes, typeof

from .._layout import along
from ._arguments import extended
from ._splines import spline_coefficients, start_and_fraction, weights

MODES = (
    "reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap", "wrap",
)  # fmt: skip
_PAD = 12
_UNROLLED = 16
COEFFICIENTS = {"reflect": "reflect", "nearest": "reflect", "grid-wrap": "grid-wrap"}


def canonical(mode: str) -> str:
    return "reflect" if mode == "grid-mirror" else mode


def prepared(x: Any, order: int, mode: str, cval: Any, prefilter: bool) -> tuple[Any, int]:
    """Spline coefficients of an image, and the width by which it was extended.

    The spline of a constant extension is that of the image with 12 more elements on each side.
    """
    ndim = typeof(x).ndim
    pad = _PAD if prefilter and order > 1 and mode in ("nearest", "grid-constant") else 0
    if pad:
        x = extended(x, [(pad, pad)] * ndim, (mode,) * ndim, cval)
    if prefilter:
        for axis in range(ndim):
            x = spline_coefficients(x, axis, order, COEFFICIENTS.get(mode, "mirror"))
    return x, pad


def coordinate(c: Any, n: int, mode: str) -> Any:
    """Coordinates mapped into an axis of ``n`` elements; unchanged for constant modes."""
    if mode in ("constant", "grid-constant"):
        return c
    if mode == "nearest":
        return lax.clamp(lax.full_like(c, 0), c, lax.full_like(c, n - 1))
    if mode == "grid-wrap":
        return c - float(n) * lax.floor(c / float(n))
    if n == 1:
        return lax.full_like(c, 0)
    if mode == "mirror":
        period = 2.0 * (n - 1)
        c = lax.abs(c)
        c = c - period * lax.floor(c / period)
        return lax.min(c, period - c)
    if mode == "wrap":
        period = float(n - 1)
        inside = (c >= 0) & (c <= period)
        return lax.select(inside, c, c - period * lax.floor(c / period))
    period = 2.0 * n
    c = c + 0.5
    c = c - period * lax.floor(c / period)
    return lax.min(c, period - c) - 0.5


def _index(i: Any, n: int, mode: str) -> Any:
    """Nodes mapped into the axis, as the coefficients are extended."""
    if mode in ("nearest", "grid-constant"):
        return lax.clamp(lax.full_like(i, 0), i, lax.full_like(i, n - 1))
    if n == 1:
        return lax.full_like(i, 0)
    if mode == "grid-wrap":
        return pnp.mod(i, np.int32(n))
    if mode == "reflect":
        i = pnp.mod(i, np.int32(2 * n))
        return lax.min(i, (2 * n - 1) - i)
    i = pnp.mod(i, np.int32(2 * (n - 1)))
    return lax.min(i, 2 * (n - 1) - i)


def nodes(c: Any, n: int, order: int, mode: str, pad: int) -> tuple[Any, Any, Any]:
    """Nodes ``[order + 1, ...]``, their weights, and coordinates within bounds, or None.

    Args:
      c: coordinates along an axis.
      n: the number of elements of the axis, with its extension ``pad`` on both sides.
    """
    outside = None
    if mode == "constant":
        outside = ~((c >= 0) & (c <= float(n - 1)))
        c = lax.select(outside, lax.full_like(c, 0), c)
    c = coordinate(c + float(pad) if pad else c, n, mode)
    if mode == "grid-constant":  # one more element is enough; beyond, the indices would overflow
        limit = float(n + order + 1)
        c = lax.clamp(lax.full_like(c, -limit), c, lax.full_like(c, limit + n))
    start, t = start_and_fraction(c, order)
    first = lax.convert_element_type(start, np.int32)
    places = pnp.stack([first + j for j in range(order + 1)])
    factors = pnp.stack(weights(t, order))
    if mode == "grid-constant":
        beyond = (places < 0) | (places >= n)
        return _index(places, n, mode), factors, beyond
    return _index(places, n, mode), factors, outside


def at_points(x: Any, coordinates: list[Any], order: int, mode: str, cval: Any, prefilter: bool):
    """Values ``[points...]`` of an image at coordinates ``[points...]`` along each axis."""
    coefficients, pad = prepared(x, order, mode, cval, prefilter)
    shape = typeof(coefficients).shape
    points = typeof(coordinates[0]).shape
    ndim, m = len(shape), order + 1
    if m**ndim <= _UNROLLED:
        return _unrolled(coefficients, coordinates, order, mode, cval, pad)
    flat = pnp.zeros((1,) * ndim + points, np.int32)
    outside: Any = None
    factors = []
    for axis, c in enumerate(coordinates):
        places, factor, out = nodes(c, shape[axis], order, mode, pad)
        spread = (1,) * axis + (m,) + (1,) * (ndim - 1 - axis) + points
        stride = int(np.prod(shape[axis + 1 :]))
        flat = flat + lax.reshape(places, spread) * np.int32(stride)
        factors.append(factor)
        if out is not None:
            out = lax.reshape(out, spread) if mode == "grid-constant" else out
            outside = out if outside is None else outside | out
    values = pnp.take(pnp.ravel(coefficients), flat, axis=0, mode="clip")
    cval = lax.convert_element_type(cval, typeof(values).dtype)
    if mode == "grid-constant":
        values = pnp.where(pnp.broadcast_to(outside, typeof(values).shape), cval, values)
    for factor in factors:  # contract the first axis with its weights
        factor = lax.convert_element_type(factor, typeof(values).dtype)
        rest = typeof(values).ndim - 1 - len(points)
        factor = lax.reshape(factor, (m,) + (1,) * rest + points)
        values = pnp.sum(values * factor, axis=0)
    if mode == "constant":
        values = pnp.where(outside, cval, values)
    return values


def _unrolled(coefficients, coordinates, order, mode, cval, pad):
    """`at_points` by one gather for each node, which XLA fuses with the sum."""
    shape = typeof(coefficients).shape
    flat = pnp.ravel(coefficients)
    cval = lax.convert_element_type(cval, typeof(flat).dtype)
    axes = [nodes(c, n, order, mode, pad) for c, n in zip(coordinates, shape)]
    total: Any = None
    for corner in itertools.product(range(order + 1), repeat=len(shape)):
        index, weight, beyond = None, None, None
        for axis, (j, (places, factors, outside)) in enumerate(zip(corner, axes)):
            stride = np.int32(int(np.prod(shape[axis + 1 :])))
            place, factor = places[j] * stride, factors[j]
            index = place if index is None else index + place
            weight = factor if weight is None else weight * factor
            if mode == "grid-constant":
                beyond = outside[j] if beyond is None else beyond | outside[j]
        part = pnp.take(flat, index, axis=0, mode="clip")
        if beyond is not None:
            part = pnp.where(beyond, cval, part)
        part = part * lax.convert_element_type(weight, typeof(part).dtype)
        total = part if total is None else total + part
    if mode == "constant":
        outside = axes[0][2]
        for _, _, other in axes[1:]:
            outside = outside | other
        total = pnp.where(outside, cval, total)
    return total


def on_grid(x: Any, coordinates: list[Any], order: int, mode: str, cval: Any, prefilter: bool):
    """Values on the grid of vectors of coordinates, one axis after the other."""
    ndim = typeof(x).ndim
    x, pad = prepared(x, order, mode, cval, prefilter)
    cval = lax.convert_element_type(cval, typeof(x).dtype)
    masks = []
    for axis, c in enumerate(coordinates):
        places, factors, outside = nodes(c, typeof(x).shape[axis], order, mode, pad)
        factors = lax.convert_element_type(factors, typeof(x).dtype)
        total: Any = None
        for j in range(order + 1):
            part = pnp.take(x, places[j], axis=axis, mode="clip")
            if mode == "grid-constant":
                part = pnp.where(
                    pnp.broadcast_to(along(outside[j], axis, ndim), typeof(part).shape), cval, part
                )
            part = part * along(factors[j], axis, ndim)
            total = part if total is None else total + part
        x = total
        if mode == "constant":
            masks.append((axis, outside))
    for axis, outside in masks:
        x = pnp.where(pnp.broadcast_to(along(outside, axis, ndim), typeof(x).shape), cval, x)
    return x


def coordinate_dtype(x: Any, *others: Any) -> Any:
    """The dtype of coordinates: ``float64`` if an operand has 64-bit floats."""
    wide = any(
        typeof(v).dtype.itemsize >= 8 and dtypes.issubdtype(typeof(v).dtype, np.floating)
        or typeof(v).dtype.itemsize == 16
        for v in (x, *others)
    )  # fmt: skip
    return np.dtype(np.float64 if wide else np.float32)
