"""Piecewise polynomials with coefficients for each interval."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, Tracer, typeof
from primax_core.tree_util import register_pytree_node_class
from primax_numpy.declaring import check_arrays, compiled, is_complex, one_axis

from .._layout import as_operand, real_dtype, together


def intervals(x: Any, points: Any) -> Any:
    """The interval of breakpoints for each point; those outside use the first or last one."""
    m = typeof(x).shape[0] - 1
    if m == 1:
        return pnp.zeros(typeof(points).shape, np.int32)
    inner = lax.slice_in_dim(x, 1, m, axis=0)
    return pnp.searchsorted(inner, points, side="right")


def check_breakpoints(name: str, x: Any, least: int = 2) -> None:
    """Check that breakpoints are a vector, and increasing unless they are traced."""
    shape = typeof(x).shape
    if len(shape) != 1 or shape[0] < least:
        raise ValueError(
            f"{name}: x must be a vector of at least {least} points, got shape {shape}"
        )
    if is_complex(x):
        raise ValueError(f"{name}: x must be real")
    if not isinstance(x, Tracer) and not bool(np.all(np.diff(np.asarray(x)) > 0)):
        raise ValueError(f"{name}: x must be strictly increasing: sort it and remove duplicates")


def periodic(points: Any, first: Any, last: Any) -> Any:
    """Points moved into one period."""
    period = last - first
    return points - period * lax.floor((points - first) / period)


def bounded_values(out: Any, points: Any, first: Any, last: Any) -> Any:
    """Values of the leading axes ``points``, NaN outside of an interval."""
    outside = (points < first) | (points > last)
    shape = typeof(out).shape
    rest = len(shape) - typeof(points).ndim
    outside = pnp.broadcast_to(
        lax.expand_dims(outside, range(len(shape) - rest, len(shape))), shape
    )
    return pnp.where(outside, lax.full((), np.nan, typeof(out).dtype), out)


def real_part_dtype(c: Any, *others: Any) -> list[Any]:
    """Real operands in the precision of coefficients."""
    dtype = real_dtype(c)
    return [lax.convert_element_type(v, dtype) for v in others]


@compiled("nu", "extrapolate", name="piecewise_polynomial")
def _evaluated(c, x, points, *, nu, extrapolate):
    c, x, points = together(c, x, points)
    x, points = real_part_dtype(c, *(lax.real(v) if is_complex(v) else v for v in (x, points)))
    first, last = x[0], x[-1]
    original = points
    if extrapolate == "periodic":
        points = periodic(points, first, last)
    index = intervals(x, points)
    t = points - pnp.take(x, index, axis=0, mode="clip")
    k = typeof(c).shape[0]
    rest = typeof(c).ndim - 2
    t = lax.convert_element_type(
        lax.expand_dims(t, range(typeof(t).ndim, typeof(t).ndim + rest)), typeof(c).dtype
    )
    total: Any = None
    for power in range(k - 1, nu - 1, -1):
        factor = float(math.perm(power, nu))
        row = lax.index_in_dim(c, k - 1 - power, 0, keepdims=False)
        part = pnp.take(row, index, axis=0, mode="clip") * factor
        total = part if total is None else total * t + part
    if total is None:
        shape = (*typeof(points).shape, *typeof(c).shape[2:])
        total = pnp.zeros(shape, typeof(c).dtype)
    total = pnp.broadcast_to(total, (*typeof(points).shape, *typeof(c).shape[2:]))
    return total if extrapolate else bounded_values(total, original, first, last)


@compiled(name="antiderivative")
def _integrated(c, x):
    c, x = together(c, x)
    (x,) = real_part_dtype(c, lax.real(x) if is_complex(x) else x)
    k = typeof(c).shape[0]
    powers = pnp.asarray(np.arange(k, 0, -1), dtype=typeof(c).dtype)
    c = c / lax.reshape(powers, (k,) + (1,) * (typeof(c).ndim - 1))
    h = lax.convert_element_type(x[1:] - x[:-1], typeof(c).dtype)
    h = lax.expand_dims(h, range(1, typeof(c).ndim - 1))
    total: Any = None
    for i in range(k):
        row = lax.index_in_dim(c, i, 0, keepdims=False)
        total = row * h if total is None else (total + row) * h
    ends = lax.cumsum(total, 0)
    start = lax.slice_in_dim(ends, 0, typeof(ends).shape[0] - 1, axis=0)
    start = pnp.concatenate([pnp.zeros_like(total[:1]), start], 0)
    return pnp.concatenate([c, start[None]], 0)


def integrations(name: str, nu: Any) -> int:
    """The order of an antiderivative, whose steps are written out."""
    order = operator.index(nu)
    if order > 100:
        raise ValueError(f"{name}.antiderivative: nu must be at most 100, got {order:,}")
    return order


@register_pytree_node_class
class PPoly:
    """Piecewise polynomial ``sum(c[i, j] (p - x[j])^(k - 1 - i))`` for ``x[j] <= p < x[j + 1]``.

    A pytree of ``c`` and ``x``: it can be an argument and a result of transformed functions.

    Args:
      c: coefficients ``[k, m, ...]``, the highest power first.
      x: increasing breakpoints ``[m + 1]``.
      extrapolate: True to continue the first and last polynomials, False for NaN outside, or
        ``"periodic"``.
      axis: the axis of values that the points replace, counted in values without ``k``.

    Raises:
      ValueError: if a shape does not match, or the breakpoints do not increase.

    >>> p = PPoly(np.float32([[1, 2], [0, 1]]), np.float32([0, 1, 2]))
    >>> p(np.float32([0.5, 1.5])).tolist()
    [0.5, 2.0]
    """

    c: Any
    x: Any
    axis: int
    extrapolate: Any

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0):
        c, x = as_operand("PPoly", c), as_operand("PPoly", x)
        check_breakpoints("PPoly", x)
        if typeof(c).ndim < 2 or typeof(c).shape[1] != typeof(x).shape[0] - 1:
            raise ValueError(
                f"PPoly: c must have shape (k, {typeof(x).shape[0] - 1}, ...), got "
                f"{typeof(c).shape}"
            )
        self._set(c, x, one_axis(axis, typeof(c).ndim - 1), extrapolate)

    def _set(self, c: Any, x: Any, axis: int, extrapolate: Any) -> None:
        if extrapolate not in (None, True, False, "periodic"):
            raise ValueError(
                f"extrapolate must be True, False, None or 'periodic', got {extrapolate!r}"
            )
        self.c, self.x, self.axis = c, x, axis
        self.extrapolate = True if extrapolate is None else extrapolate

    def tree_flatten(self) -> Any:
        return (self.c, self.x), (self.axis, self.extrapolate)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        new = object.__new__(cls)
        new.c, new.x = children
        new.axis, new.extrapolate = aux
        return new

    def _with(self, c: Any) -> PPoly:
        new = object.__new__(PPoly)
        new._set(c, self.x, self.axis, self.extrapolate)
        return new

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Array:
        """Values, or derivatives of order ``nu``, at points ``[points...]``.

        The points replace the axis of the values.
        """
        points = as_operand("interpolation", x)
        if is_complex(points):
            raise ValueError("interpolation: points must be real")
        nu = operator.index(nu)
        if nu < 0:
            raise ValueError(f"nu must not be negative, got {nu}: use antiderivative")
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        out: Array = _evaluated(self.c, self.x, points, nu=nu, extrapolate=extrapolate)
        n = typeof(points).ndim
        return pnp.moveaxis(out, range(n), range(self.axis, self.axis + n)) if self.axis else out

    def derivative(self, nu: int = 1) -> PPoly:
        """The derivative of order ``nu`` as a `PPoly`."""
        c = self.c
        for _ in range(operator.index(nu)):
            k = typeof(c).shape[0]
            if k == 1:
                c = pnp.zeros_like(c)
                break
            powers = pnp.asarray(np.arange(k - 1, 0, -1), dtype=typeof(c).dtype)
            c = c[:-1] * lax.reshape(powers, (k - 1,) + (1,) * (typeof(c).ndim - 1))
        return self._with(c)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The antiderivative of order ``nu``, at most 100, that is 0 at the first breakpoint."""
        c = self.c
        for _ in range(integrations(type(self).__name__, nu)):
            c = _integrated(c, self.x)
        new = self._with(c)
        if new.extrapolate == "periodic":
            new.extrapolate = False
        return new

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Array:
        """The integral from ``a`` to ``b``.

        Raises:
          ValueError: if the polynomial is periodic; integrate within one period with
            ``extrapolate=True``.
        """
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if extrapolate == "periodic":
            raise ValueError("integrate: pass extrapolate=True and bounds within one period")
        whole = self.antiderivative()
        return whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate)


def values_first(name: str, x: Any, y: Any, axis: int, least: int = 2) -> tuple[Any, Any, int]:
    """Checked points and values, with the axis of the values first."""
    check_arrays(name, x, y)
    check_breakpoints(name, x, least)
    if not typeof(y).ndim:
        raise ValueError(f"{name}: y must have at least one dimension")
    position = one_axis(axis, typeof(y).ndim)
    if typeof(y).shape[position] != typeof(x).shape[0]:
        raise ValueError(
            f"{name}: y has {typeof(y).shape[position]} values along axis {position} for "
            f"{typeof(x).shape[0]} points of x"
        )
    return x, (pnp.moveaxis(y, position, 0) if position else y), position


def hermite(x: Any, y: Any, slopes: Any) -> Any:
    """Coefficients ``[4, m, ...]`` of cubics with given values and derivatives at breakpoints."""
    h = lax.expand_dims(x[1:] - x[:-1], range(1, typeof(y).ndim))
    h = lax.convert_element_type(h, typeof(y).dtype)
    secant = (y[1:] - y[:-1]) / h
    t = (slopes[:-1] + slopes[1:] - 2 * secant) / h
    return pnp.stack([t / h, (secant - slopes[:-1]) / h - t, slopes[:-1], y[:-1]])
