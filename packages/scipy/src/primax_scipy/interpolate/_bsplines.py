"""B-splines: de Boor, A Practical Guide to Splines (2001), chapters 9 to 13."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, Tracer, typeof
from primax_core.tree_util import register_pytree_node_class
from primax_core.typing import ArrayLike
from primax_numpy.declaring import check_arrays, compiled, is_complex, one_axis

from .._layout import as_operand, together
from ..linalg import solve_banded
from ._piecewise import bounded_values, integrations, periodic, real_part_dtype, values_first


def basis(t: Any, k: int, points: Any, index: Any) -> Any:
    """The ``k + 1`` nonzero B-splines ``[k + 1, points...]`` in intervals ``t[index]``."""
    knots = {j: pnp.take(t, index + np.int32(j), axis=0, mode="clip") for j in range(1 - k, k + 1)}
    if not k:
        return lax.full((1, *typeof(points).shape), 1, typeof(points).dtype)
    values: list[Any] = [lax.full_like(points, 1)]
    for d in range(1, k + 1):
        new: list[Any] = [None] * (d + 1)
        for j in range(d):
            # B-spline j of degree d - 1 has the knots from j - d + 1 to j + 1.
            low, high = knots[j - d + 1], knots[j + 1]
            width = high - low
            flat = width == 0
            share = values[j] / lax.select(flat, lax.full_like(width, 1), width)
            share = lax.select(flat, lax.full_like(share, 0), share)
            right, left = (high - points) * share, (points - low) * share
            new[j] = right if new[j] is None else new[j] + right
            new[j + 1] = left
        values = new
    return pnp.stack(values)


def find(t: Any, k: int, n: int, points: Any) -> Any:
    """The interval of each point, one of ``t[k]`` to ``t[n]``."""
    inner = lax.slice_in_dim(t, k + 1, n, axis=0)
    if not typeof(inner).shape[0]:
        return lax.full(typeof(points).shape, k, np.int32)
    return pnp.searchsorted(inner, points, side="right") + np.int32(k)


def difference(t: Any, c: Any, k: int) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree of the derivative."""
    n = typeof(c).shape[0]
    if not k:
        return t, pnp.zeros_like(c), 0
    width = lax.slice_in_dim(t, k + 1, k + n, axis=0) - lax.slice_in_dim(t, 1, n, axis=0)
    flat = width == 0
    factor = lax.select(flat, lax.full_like(width, 0), float(k) / lax.select(
        flat, lax.full_like(width, 1), width))  # fmt: skip
    factor = lax.expand_dims(factor, range(1, typeof(c).ndim))
    c = (c[1:] - c[:-1]) * lax.convert_element_type(factor, typeof(c).dtype)
    return t[1:-1], c, k - 1


def contracted(c: Any, index: Any, values: Any, k: int) -> Any:
    """Sums of coefficients times B-splines."""
    rest = typeof(c).ndim - 1
    total: Any = None
    for j in range(k + 1):
        part = pnp.take(c, index + np.int32(j - k), axis=0, mode="clip")
        weight = lax.index_in_dim(values, j, 0, keepdims=False)
        d = typeof(weight).ndim
        weight = lax.expand_dims(weight, range(d, d + rest))
        part = part * lax.convert_element_type(weight, typeof(c).dtype)
        total = part if total is None else total + part
    return total


@compiled("k", "nu", "extrapolate", name="bspline")
def _evaluated(t, c, points, *, k, nu, extrapolate):
    t, c, points = together(t, c, points)
    t, points = real_part_dtype(c, *(lax.real(v) if is_complex(v) else v for v in (t, points)))
    n = typeof(t).shape[0] - k - 1
    c = lax.slice_in_dim(c, 0, n, axis=0)
    first, last = t[k], t[n]
    original = points
    if extrapolate == "periodic":
        points = periodic(points, first, last)
    degree = k
    for _ in range(min(nu, k + 1)):
        t, c, degree = (t, pnp.zeros_like(c), 0) if not degree else difference(t, c, degree)
    size = typeof(t).shape[0] - degree - 1
    if nu > k:
        out = pnp.zeros((*typeof(points).shape, *typeof(c).shape[1:]), typeof(c).dtype)
    else:
        index = find(t, degree, size, points)
        out = contracted(c, index, basis(t, degree, points, index), degree)
    return out if extrapolate else bounded_values(out, original, first, last)


@register_pytree_node_class
class BSpline:
    """Spline ``sum(c[j] B_j(x))`` of degree ``k`` with B-splines for knots ``t``.

    A pytree of ``t`` and ``c``: it can be an argument and a result of transformed functions.

    Args:
      t: knots ``[n + k + 1]``, which must not decrease.
      c: at least ``n`` coefficients along the axis.
      k: the degree.
      extrapolate: True to continue the first and last polynomials of the interval from ``t[k]`` to
        ``t[n]``, False for NaN outside, or ``"periodic"``.
      axis: the axis of the coefficients, which points replace.

    Raises:
      ValueError: if a shape does not match, or the knots decrease.

    >>> f = BSpline(np.float32([0, 0, 1, 2, 2]), np.float32([1, 3, 2]), 1)
    >>> f(np.float32([0.5, 1.0, 1.5])).tolist()
    [2.0, 3.0, 2.5]
    """

    t: Any
    c: Any
    k: int
    extrapolate: Any
    axis: int

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0):
        t, c, k = as_operand("BSpline", t), as_operand("BSpline", c), operator.index(k)
        if k < 0:
            raise ValueError(f"BSpline: k must not be negative, got {k}")
        n = (typeof(t).shape[0] if typeof(t).ndim == 1 else 0) - k - 1
        if n < k + 1:
            raise ValueError(
                f"BSpline: degree {k} needs a vector of at least {2 * k + 2} knots, got shape "
                f"{typeof(t).shape}"
            )
        position = one_axis(axis, typeof(c).ndim)
        if typeof(c).shape[position] < n:
            raise ValueError(
                f"BSpline: at least {n} coefficients are needed, got {typeof(c).shape[position]}"
            )
        if not isinstance(t, Tracer) and bool(np.any(np.diff(np.asarray(t)) < 0)):
            raise ValueError("BSpline: the knots must not decrease")
        if extrapolate not in (True, False, "periodic"):
            raise ValueError(
                f"BSpline: extrapolate must be True, False or 'periodic', got {extrapolate!r}"
            )
        self.t, self.k, self.axis, self.extrapolate = t, k, position, extrapolate
        self.c = pnp.moveaxis(c, position, 0) if position else c

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients with their axis first, and degree."""
        return self.t, self.c, self.k

    def tree_flatten(self) -> Any:
        return (self.t, self.c), (self.k, self.extrapolate, self.axis)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> BSpline:
        new = object.__new__(cls)
        new.t, new.c = children
        new.k, new.extrapolate, new.axis = aux
        return new

    def _with(self, t: Any, c: Any, k: int, extrapolate: Any = None) -> BSpline:
        aux = (k, self.extrapolate if extrapolate is None else extrapolate, self.axis)
        return BSpline.tree_unflatten(aux, (t, c))

    @classmethod
    def basis_element(cls, t: Any, extrapolate: Any = True) -> BSpline:
        """The B-spline with knots ``t``, of degree ``len(t) - 2``."""
        t = pnp.asarray(t)
        k = typeof(t).shape[0] - 2
        low, high = t[:1] - 1, t[-1:] + 1
        knots = pnp.concatenate([pnp.repeat(low, k), t, pnp.repeat(high, k)])
        c = pnp.zeros((2 * k + 1,), typeof(knots).dtype).at[k].set(1)
        new = cls(knots, c, k, extrapolate)
        return new

    @classmethod
    def design_matrix(cls, x: Any, t: Any, k: int, extrapolate: bool = False) -> Array:
        """The matrix ``[points, n]`` of all B-splines at points, dense."""
        t = as_operand("design_matrix", t)
        n = typeof(t).shape[0] - k - 1
        identity = pnp.eye(n, dtype=typeof(together(t)[0]).dtype)
        return cls(t, identity, k, extrapolate)(x)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Array:
        """Values, or derivatives of order ``nu``, at points; they replace the axis of ``c``."""
        points = as_operand("BSpline", x)
        check_arrays("BSpline", points)
        if is_complex(points):
            raise ValueError("BSpline: points must be real")
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        out: Array = _evaluated(
            self.t, self.c, points, k=self.k, nu=operator.index(nu), extrapolate=extrapolate
        )
        n = typeof(points).ndim
        return pnp.moveaxis(out, range(n), range(self.axis, self.axis + n)) if self.axis else out

    def derivative(self, nu: int = 1) -> BSpline:
        """The derivative of order ``nu`` as a `BSpline`.

        Raises:
          ValueError: if the order exceeds the degree.
        """
        nu = operator.index(nu)
        if nu < 0 or nu > self.k:
            raise ValueError(f"derivative: order {nu} of a spline of degree {self.k}")
        t, c = together(self.t, self.c)
        k = self.k
        c = c[: typeof(t).shape[0] - k - 1]
        for _ in range(nu):
            t, c, k = difference(t, c, k)
        return self._with(t, c, k)

    def antiderivative(self, nu: int = 1) -> BSpline:
        """The antiderivative of order ``nu``, at most 100, that is 0 at the first knot."""
        t, c, k = *together(self.t, self.c), self.k
        c = c[: typeof(t).shape[0] - k - 1]
        for _ in range(integrations("BSpline", nu)):
            n = typeof(c).shape[0]
            width = (t[k + 1 : k + 1 + n] - t[:n]) / float(k + 1)
            steps = c * lax.expand_dims(width, range(1, typeof(c).ndim))
            c = pnp.concatenate([pnp.zeros_like(steps[:1]), lax.cumsum(steps, 0)], 0)
            t = pnp.concatenate([t[:1], t, t[-1:]])
            k += 1
        return self._with(t, c, k, False if self.extrapolate == "periodic" else None)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Array:
        """The integral from ``a`` to ``b``; without extrapolation the spline is zero outside.

        Raises:
          ValueError: if the spline is periodic.
        """
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if extrapolate == "periodic":
            raise ValueError("integrate: pass extrapolate=True and bounds within one period")
        whole = self.antiderivative()
        t, _, k = self.tck
        if not extrapolate:
            low, high = t[k], t[typeof(t).shape[0] - k - 1]
            a, b = (pnp.clip(lax.convert_element_type(v, typeof(t).dtype), low, high)
                    for v in (a, b))  # fmt: skip
        return whole(b, extrapolate=True) - whole(a, extrapolate=True)


def _knots(x: Any, k: int) -> Any:
    """Knots of an interpolating spline: not-a-knot for odd degrees, midpoints for even ones."""
    n = typeof(x).shape[0]
    if k % 2:
        inner = x[(k + 1) // 2 : n - (k + 1) // 2]
    else:
        middle = (x[1:] + x[:-1]) * 0.5
        inner = middle[k // 2 : n - 1 - k // 2]
    first, last = pnp.repeat(x[:1], k + 1), pnp.repeat(x[-1:], k + 1)
    return pnp.concatenate([first, inner, last])


_DERIVATIVES = {"natural": 2, "clamped": 1}


def make_interp_spline(
    x: ArrayLike | Sequence[Any], y: ArrayLike | Sequence[Any], k: int = 3,
    t: ArrayLike | Sequence[Any] | None = None, bc_type: str | tuple[Any, Any] | None = None,
    axis: int = 0, check_finite: bool = True,
) -> BSpline:  # fmt: skip
    """Interpolating B-spline.

    The coefficients solve a banded system of as many equations as points. They are NaN if knots are
    not between the points: the ``i``-th point must be between the knots ``i`` and ``i + k + 1``.

    Args:
      x: increasing points ``[n]``.
      y: values, with ``n`` elements along the axis.
      k: the degree.
      t: the knots, by default ``n + k + 1`` that depend on the points.
      bc_type: None or ``"not-a-knot"``; ``"natural"`` or ``"clamped"`` for degree 3; or a pair for
        both ends, of which each is None, a name, or a list of pairs ``(order, value)`` of
        derivatives.
      axis: the axis.
      check_finite: accepted for compatibility; ignored: NaN in the values gives NaN.

    Raises:
      ValueError: if a shape does not match, the number of conditions differs from that of
        coefficients without one, or a condition is unknown.

    >>> f = make_interp_spline(np.float32([0, 1, 2, 3]), np.float32([0, 1, 4, 9]), k=2)
    >>> round(float(f(1.5)), 4)
    2.25
    """
    name, k = "make_interp_spline", operator.index(k)
    x, y = as_operand(name, x), as_operand(name, y)
    x, y, position = values_first(name, x, y, axis, 1 if k == 0 else 2)
    ends = _ends(name, bc_type, k)
    extra = sum(len(e) for e in ends)
    n = typeof(x).shape[0] + extra
    if n < k + 1:
        raise ValueError(f"{name}: degree {k} needs {k + 1} points or conditions, got {n}")
    if t is None:
        if extra not in (0, k - 1) or (extra and k % 2 == 0):
            raise ValueError(
                f"{name}: {extra} conditions for degree {k}; {k - 1} are needed for odd degrees, "
                "or pass the knots t."
            )
        t = _default_knots(x, k=k, conditions=bool(extra))
    else:
        t = as_operand(name, t)
        if typeof(t).shape != (n + k + 1,):
            raise ValueError(f"{name}: {n + k + 1} knots are needed, got shape {typeof(t).shape}")
    orders = tuple(tuple(order for order, _ in end) for end in ends)
    values = tuple(tuple(value for _, value in end) for end in ends)
    c = _solved(x, y, t, values, k=k, orders=orders)
    return BSpline.tree_unflatten((k, True, position), (t, c))


@compiled("k", "conditions", name="knots")
def _default_knots(x, *, k, conditions):
    (x,) = together(x)
    if k == 0:
        return pnp.concatenate([x, x[-1:]])
    if not conditions:
        return _knots(x, k)
    return pnp.concatenate([pnp.repeat(x[:1], k), x, pnp.repeat(x[-1:], k)])


def _ends(name: str, bc_type: Any, k: int) -> tuple[Any, Any]:
    """Conditions at both ends as tuples of pairs ``(order, value)``."""
    if bc_type is None or isinstance(bc_type, str):
        bc_type = (bc_type, bc_type)
    if len(bc_type) != 2:
        raise ValueError(f"{name}: bc_type must be a name or a pair, got {bc_type!r}")
    out = []
    for end in bc_type:
        if end is None or end == "not-a-knot":
            out.append(())
        elif isinstance(end, str):
            if end not in _DERIVATIVES or k != 3:
                raise ValueError(
                    f"{name}: bc_type={end!r} is not available for degree {k}; use "
                    "'not-a-knot', or 'natural' or 'clamped' for degree 3."
                )
            out.append(((_DERIVATIVES[end], None),))
        else:
            out.append(tuple((operator.index(o), as_operand(name, v)) for o, v in end))
    return out[0], out[1]


def _derivatives(t: Any, k: int, point: Any, index: Any, order: int) -> Any:
    """Derivatives of the ``k + 1`` nonzero B-splines ``[k + 1]`` at a point in ``t[index]``."""
    if order > k:
        return lax.full((k + 1,), 0, typeof(t).dtype)
    knots = pnp.take(t, index + pnp.arange(-k, k + 2), axis=0, mode="clip")
    c, degree = pnp.eye(k + 1, dtype=typeof(t).dtype), k
    for _ in range(order):
        knots, c, degree = difference(knots, c, degree)
    interval = np.int32(degree)
    return contracted(c, interval, basis(knots, degree, point, interval), degree)


@compiled("k", "orders", name="interpolating_spline")
def _solved(x, y, t, values, *, k, orders):
    x, y, t = together(x, y, t)
    n, shape = typeof(t).shape[0] - k - 1, typeof(y).shape[1:]
    x, t = real_part_dtype(y, x, t)
    intervals = find(t, k, n, x)
    # The equations in their order: of each the nonzero elements and the interval.
    elements, places, right = [], [], []
    for end, at in ((0, 0), (1, -1)):
        for order, value in zip(orders[end], values[end]):
            elements.append(_derivatives(t, k, x[at], intervals[at], order)[None])
            places.append(intervals[at][None])
            value = np.zeros(shape, np.float32) if value is None else value
            value = lax.convert_element_type(value, typeof(y).dtype)
            right.append(pnp.broadcast_to(value, (1, *shape)))
        if not end:
            elements.append(basis(t, k, x, intervals).T)
            places.append(intervals)
            right.append(y)
    rows, index = pnp.concatenate(elements, 0), pnp.concatenate(places, 0)
    column = index[:, None] + pnp.arange(-k, 1)[None]
    # Knots between the points (Schoenberg and Whitney) leave k diagonals on each side; other
    # systems are singular.
    diagonal = k + pnp.arange(n)[:, None] - column
    outside = ((diagonal < 0) | (diagonal > 2 * k)) & (rows != 0)
    rows = pnp.where(outside.any(), pnp.asarray(np.nan, typeof(rows).dtype), rows)
    band = pnp.zeros((2 * k + 1, n), typeof(rows).dtype)
    band = band.at[diagonal, column].set(rows, mode="drop", wrap_negative_indices=False)
    band = lax.convert_element_type(band, typeof(y).dtype)
    b = lax.reshape(pnp.concatenate(right, 0), (n, int(np.prod(shape))))
    return lax.reshape(solve_banded((k, k), band, b), (n, *shape))
