"""Cubic interpolants: splines, monotone interpolation, Akima's.

De Boor, A Practical Guide to Splines, chapter 4; Fritsch and Butland, SIAM J. Sci. Stat. Comput. 5
(1984); Akima, J. ACM 17 (1970).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Tracer, dtypes, typeof
from primax_core.tree_util import register_pytree_node_class
from primax_numpy.declaring import compiled, is_complex

from .._layout import as_operand, check_mode, real_dtype, together
from ._piecewise import PPoly, hermite, values_first


def _widths(x: Any, y: Any) -> tuple[Any, Any]:
    """Lengths of intervals and divided differences, in the rank of the values."""
    h = lax.expand_dims(x[1:] - x[:-1], range(1, typeof(y).ndim))
    h = lax.convert_element_type(h, typeof(y).dtype)
    return h, (y[1:] - y[:-1]) / h


def _prepared(x: Any, y: Any) -> tuple[Any, Any]:
    x, y = together(x, y)
    return lax.convert_element_type(lax.real(x) if is_complex(x) else x, real_dtype(y)), y


@register_pytree_node_class
class CubicHermiteSpline(PPoly):
    """Piecewise cubic with given values and first derivatives.

    Args:
      x: increasing points ``[n]``.
      y, dydx: values and derivatives, with ``n`` elements along the axis.
      axis: the axis.
      extrapolate: as in `PPoly`.

    Raises:
      ValueError: if a shape does not match, or the points do not increase.
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None):
        name = type(self).__name__
        x, y, dydx = (as_operand(name, v) for v in (x, y, dydx))
        if typeof(y).shape != typeof(dydx).shape:
            raise ValueError(f"{name}: y and dydx must have the same shape")
        x, y, position = values_first(name, x, y, axis)
        self._set(_hermite(x, y, pnp.moveaxis(dydx, position, 0)), x, position, extrapolate)


@compiled(name="hermite")
def _hermite(x, y, slopes):
    x, y, slopes = together(x, y, slopes)
    return hermite(lax.convert_element_type(x, real_dtype(y)), y, slopes)


@register_pytree_node_class
class CubicSpline(PPoly):
    """Cubic spline with two continuous derivatives through points.

    A pytree of its coefficients ``c`` and points ``x``; differentiable in the points and values.

    Args:
      x: increasing points ``[n]``; they are not checked if they are traced.
      y: values, with ``n`` elements along the axis.
      axis: the axis.
      bc_type: conditions at the ends: ``"not-a-knot"``, ``"natural"``, ``"clamped"`` or
        ``"periodic"``; or a pair of conditions for both ends, of which each is one of the first
        three or a pair ``(order, value)`` of a derivative.
      extrapolate: as in `PPoly`; by default ``"periodic"`` for periodic splines, otherwise True.

    Raises:
      ValueError: if a shape does not match, the points do not increase, or a condition is unknown.

    >>> f = CubicSpline(np.float32([0, 1, 2, 3]), np.float32([0, 1, 8, 27]))
    >>> round(float(f(1.5)), 4), round(float(f(1.5, 1)), 4)
    (3.375, 6.75)
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
    ):
        x, y = as_operand("CubicSpline", x), as_operand("CubicSpline", y)
        x, y, position = values_first("CubicSpline", x, y, axis)
        kinds, values = _conditions(bc_type, y)
        if kinds == "periodic":
            c = _periodic(x, y)
            extrapolate = "periodic" if extrapolate is None else extrapolate
        else:
            c = _spline(x, y, *values, kinds=kinds)
        self._set(c, x, position, extrapolate)


def _conditions(bc_type: Any, y: Any) -> tuple[Any, Any]:
    """Kinds of the conditions at both ends, and values of derivatives."""
    if isinstance(bc_type, str):
        if bc_type == "periodic":
            _check_closed(y)
            return "periodic", ()
        bc_type = (bc_type, bc_type)
    if len(bc_type) != 2:
        raise ValueError(f"CubicSpline: bc_type must be a name or a pair, got {bc_type!r}")
    kinds, values = [], []
    shape = typeof(y).shape[1:]
    for end in bc_type:
        if isinstance(end, str):
            check_mode("CubicSpline", end, ("not-a-knot", "natural", "clamped"), "bc_type")
            kinds.append({"not-a-knot": 0, "clamped": 1, "natural": 2}[end])
            values.append(np.zeros(shape, np.float32))
            continue
        order, value = end
        if order not in (1, 2):
            raise ValueError(f"CubicSpline: the order of a derivative must be 1 or 2, got {order}")
        value = as_operand("CubicSpline", value)
        if typeof(value).shape != shape:
            raise ValueError(
                f"CubicSpline: the value of a derivative must have shape {shape}, got "
                f"{typeof(value).shape}"
            )
        kinds.append(int(order))
        values.append(lax.convert_element_type(value, typeof(y).dtype) if not isinstance(
            value, (int, float)) else np.float32(value))  # fmt: skip
    return tuple(kinds), tuple(values)


def _check_closed(y: Any) -> None:
    if isinstance(y, Tracer):
        return
    first, last = np.asarray(y[0]), np.asarray(y[-1])
    eps = float(dtypes.finfo(first.dtype).eps) if first.dtype.kind in "fc" else 0.0
    if not np.allclose(first, last, rtol=10 * eps, atol=10 * eps):
        raise ValueError(
            "CubicSpline: the first and last values of a periodic spline must be equal"
        )


@compiled("kinds", name="cubic_spline")
def _spline(x, y, first, last, *, kinds):
    x, y = _prepared(x, y)
    first, last = (lax.convert_element_type(v, typeof(y).dtype) for v in (first, last))
    return hermite(x, y, spline_slopes(x, y, kinds, first, last))


def spline_slopes(x: Any, y: Any, kinds: tuple[int, int], first: Any, last: Any) -> Any:
    """First derivatives at the points, by the tridiagonal system for continuous second ones."""
    n = typeof(x).shape[0]
    h, m = _widths(x, y)
    if n == 2:  # not-a-knot is the secant
        ends = [(1, m[0]) if k == 0 else (k, v) for k, v in zip(kinds, (first, last))]
        kinds, (first, last) = (ends[0][0], ends[1][0]), (ends[0][1], ends[1][1])
    if n == 3 and kinds == (0, 0):  # a parabola
        middle = (h[0] * m[1] + h[1] * m[0]) / (h[0] + h[1])
        return pnp.stack([2 * m[0] - middle, middle, 2 * m[1] - middle])
    flat = typeof(y).shape[1:]
    size = int(np.prod(flat))
    w = x[1:] - x[:-1]
    one = lax.full((1,), 1, typeof(w).dtype)
    left = _row(kinds[0], w, h, m, first, False)
    right = _row(kinds[1], w, h, m, last, True)
    diagonal = pnp.concatenate([left[0] * one, 2 * (w[:-1] + w[1:]), right[0] * one])
    upper = pnp.concatenate([left[1] * one, w[:-1], 0 * one])
    lower = pnp.concatenate([0 * one, w[1:], right[1] * one])
    inner = 3 * (h[1:] * m[:-1] + h[:-1] * m[1:])
    b = pnp.concatenate([left[2][None], inner, right[2][None]], 0)
    b = lax.reshape(b, (n, size))
    return lax.reshape(_tridiagonal(lower, diagonal, upper, b), (n, *flat))


def _row(kind: int, w: Any, h: Any, m: Any, value: Any, end: bool) -> tuple[Any, Any, Any]:
    """Diagonal, neighbouring coefficient and right side of the condition at an end."""
    i, j = (-1, -2) if end else (0, 1)
    if kind == 1:
        return 1.0, 0.0, value
    if kind == 2:
        curvature = value * h[i] * (0.5 if end else -0.5)
        return 2.0, 1.0, 3 * m[i] + curvature
    span = h[i] + h[j]
    right = ((h[i] + 2 * span) * h[j] * m[i] + h[i] * h[i] * m[j]) / span
    return w[j], w[i] + w[j], right


def _tridiagonal(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
    if is_complex(b):
        parts = (_tridiagonal(lower, diagonal, upper, p(b)) for p in (lax.real, lax.imag))
        return lax.complex(*parts)
    out = lax.linalg.tridiagonal_solve(lower, diagonal, upper, b)
    # One step of refinement, because the end rows are not diagonally dominant.
    zero = lax.full((1, typeof(b).shape[1]), 0, typeof(b).dtype)
    before, after = pnp.concatenate([zero, out[:-1]], 0), pnp.concatenate([out[1:], zero], 0)
    product = lower[:, None] * before + diagonal[:, None] * out + upper[:, None] * after
    return out + lax.linalg.tridiagonal_solve(lower, diagonal, upper, b - product)


@compiled(name="periodic_spline")
def _periodic(x, y):
    x, y = _prepared(x, y)
    n = typeof(x).shape[0]
    h, m = _widths(x, y)
    if n == 2:
        return hermite(x, y, pnp.zeros_like(y))
    w = x[1:] - x[:-1]
    k = n - 1
    matrix = pnp.zeros((k, k), typeof(w).dtype)
    i = np.arange(k)
    previous = pnp.roll(w, 1)
    matrix = matrix.at[i, i].add(2 * (w + previous))
    matrix = matrix.at[i, (i + 1) % k].add(previous)
    matrix = matrix.at[i, (i - 1) % k].add(w)
    before_h, before_m = pnp.roll(h, 1, 0), pnp.roll(m, 1, 0)
    b = lax.reshape(3 * (h * before_m + before_h * m), (k, int(np.prod(typeof(y).shape[1:]))))
    slopes = pnp.linalg.solve(lax.convert_element_type(matrix, typeof(b).dtype), b)
    slopes = lax.reshape(slopes, (k, *typeof(y).shape[1:]))
    return hermite(x, y, pnp.concatenate([slopes, slopes[:1]], 0))


@register_pytree_node_class
class PchipInterpolator(PPoly):
    """Monotone cubic interpolation: it does not overshoot the values.

    Args:
      x: increasing points ``[n]``.
      y: real values, with ``n`` elements along the axis.
      axis: the axis.
      extrapolate: as in `PPoly`.

    Raises:
      ValueError: if a shape does not match, the points do not increase, or values are complex.

    >>> f = PchipInterpolator(np.float32([0, 1, 2]), np.float32([0, 1, 1]))
    >>> float(f(1.5))
    1.0
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None):
        x, y = as_operand("PchipInterpolator", x), as_operand("PchipInterpolator", y)
        if is_complex(y):
            raise ValueError("PchipInterpolator: y must be real")
        x, y, position = values_first("PchipInterpolator", x, y, axis)
        self._set(_pchip(x, y), x, position, extrapolate)


@compiled(name="pchip")
def _pchip(x, y):
    x, y = _prepared(x, y)
    h, m = _widths(x, y)
    if typeof(x).shape[0] == 2:
        return hermite(x, y, pnp.concatenate([m, m], 0))
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    left, right = m[:-1], m[1:]
    same = lax.sign(left) * lax.sign(right) > 0
    one = lax.full_like(left, 1)
    safe_left, safe_right = lax.select(same, left, one), lax.select(same, right, one)
    mean = (w1 + w2) / (w1 / safe_left + w2 / safe_right)
    inner = lax.select(same, mean, lax.full_like(mean, 0))
    first = _pchip_end(h[0], h[1], m[0], m[1])
    last = _pchip_end(h[-1], h[-2], m[-1], m[-2])
    return hermite(x, y, pnp.concatenate([first[None], inner, last[None]], 0))


def _pchip_end(h0, h1, m0, m1):
    """The three-point derivative, limited so that the shape is preserved."""
    h0, h1 = (pnp.broadcast_to(h, typeof(m0).shape) for h in (h0, h1))
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    d = pnp.where(lax.sign(d) != lax.sign(m0), lax.full_like(d, 0), d)
    steep = (lax.sign(m0) != lax.sign(m1)) & (lax.abs(d) > 3 * lax.abs(m0))
    return pnp.where(steep, 3 * m0, d)


@register_pytree_node_class
class Akima1DInterpolator(PPoly):
    """Akima's interpolation: derivatives from the secants of neighbouring intervals.

    Args:
      x: increasing points ``[n]``.
      y: real values, with ``n`` elements along the axis.
      axis: the axis.
      method: ``"akima"``, or ``"makima"`` for weights that avoid overshoot at flat parts.
      extrapolate: as in `PPoly`, but False by default: NaN outside.

    Raises:
      ValueError: if a shape does not match, the points do not increase, or the method is unknown.
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
    ):
        name = "Akima1DInterpolator"
        check_mode(name, method, ("akima", "makima"), "method")
        x, y = as_operand(name, x), as_operand(name, y)
        if is_complex(y):
            raise ValueError(f"{name}: y must be real")
        x, y, position = values_first(name, x, y, axis)
        extrapolate = False if extrapolate is None else extrapolate
        self._set(_akima(x, y, modified=method == "makima"), x, position, extrapolate)


@compiled("modified", name="akima")
def _akima(x, y, *, modified):
    x, y = _prepared(x, y)
    _, m = _widths(x, y)
    if typeof(x).shape[0] == 2:
        return hermite(x, y, pnp.concatenate([m, m], 0))
    before = 2 * m[:1] - m[1:2]
    after = 2 * m[-1:] - m[-2:-1]
    m = pnp.concatenate([2 * before - m[:1], before, m, after, 2 * after - m[-1:]], 0)
    change = lax.abs(m[1:] - m[:-1])
    if modified:
        change = change + 0.5 * lax.abs(m[1:] + m[:-1])
    left, right = change[2:], change[:-2]
    total = left + right
    flat = total <= 1e-9 * pnp.max(total, initial=-np.inf)
    safe = pnp.where(flat, lax.full_like(total, 1), total)
    weighted = (left * m[1:-2] + right * m[2:-1]) / safe
    middle = 0.5 * (m[3:] + m[:-3])
    if modified:
        middle = lax.full_like(middle, 0)
    return hermite(x, y, pnp.where(flat, middle, weighted))
