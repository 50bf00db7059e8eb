"""Differences, numerical derivatives and integrals along an axis."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, any_number, cast, dtypes, inexact, one_call, promoted
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import axes_of, check_arrays, one_axis
from ._creation import asarray
from ._functions import compiled, trim_none
from ._promotion import repeated
from ._reduction_helpers import is_complex_dtype, strong, wide_of
from ._statistics import scalar


def _joined(name: str, parts: Sequence[Any], axis: int) -> Any:
    """Arrays joined along an axis in their promoted dtype."""
    avals = [typeof(p) for p in parts]
    dtype, weak = dtypes.lattice_result(tuple([(t.dtype, t.weak_type) for t in avals]))
    return lax.concatenate([cast(p, t, dtype, weak) for p, t in zip(parts, avals)], axis)


def _edge(x: Any, shape: tuple[int, ...], axis: int) -> Any:
    """The operand to prepend or append along an axis; a number is broadcast to size 1."""
    if typeof(x).ndim:
        return x
    shape = (*shape[:axis], 1, *shape[axis + 1 :])
    return lax.broadcast_in_dim(x, shape, ())


@compiled("n", "axis")
def _diff(a, prepend=None, append=None, *, n, axis):
    shape = typeof(a).shape
    parts = [p if p is a else _edge(p, shape, axis) for p in (prepend, a, append) if p is not None]
    x = _joined("diff", parts, axis) if len(parts) > 1 else a
    op = lax.ne if typeof(x).dtype == np.bool_ else lax.sub
    for _ in range(min(n, typeof(x).shape[axis])):
        size = typeof(x).shape[axis]
        x = op(
            lax.slice_in_dim(x, min(1, size), size, axis=axis),
            lax.slice_in_dim(x, 0, max(size - 1, 0), axis=axis),
        )
    return x


@one_call("n", "axis")
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Differences of adjacent elements along an axis, ``n`` times; inequality for booleans.

    Args:
      a: an array with at least one axis.
      n: the order of the difference; the axis becomes shorter by ``n``.
      axis: the axis, by default the last.
      prepend, append: numbers or arrays joined to the start and the end of the axis first.

    Returns:
      An array of the dtype of ``a``, promoted with those of ``prepend`` and ``append``.

    Raises:
      ValueError: if ``a`` is a scalar or ``n`` is negative.
      TypeError: if the shape of ``prepend`` or ``append`` does not match.

    >>> diff(np.array([1, 4, 9])).tolist()
    [3, 5]
    >>> diff(np.array([1, 4, 9]), n=2).tolist()
    [2]
    """
    check_arrays("diff", *[x for x in (a, prepend, append) if x is not None])
    shape = typeof(a).shape
    if not shape:
        raise ValueError("diff requires input that is at least one dimensional; got a scalar")
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"diff: order must be non-negative but got {n}")
    axis = one_axis(axis, len(shape))
    for name, edge in (("prepend", prepend), ("append", append)):
        _check_edge(name, edge, shape, axis)
    if n == 0:
        return asarray(a)
    differences: Array = _diff(*trim_none(a, prepend, append), n=n, axis=axis)
    return differences


def _check_edge(name: str, edge: Any, shape: tuple[int, ...], axis: int) -> None:
    edge_shape = () if edge is None else typeof(edge).shape
    if not edge_shape:
        return
    others = [i for i in range(len(shape)) if i != axis]
    if len(edge_shape) != len(shape) or any(edge_shape[i] != shape[i] for i in others):
        raise TypeError(
            f"diff: {name} has shape {edge_shape}, and the array {shape}: only the sizes of axis "
            f"{axis} may differ"
        )


@compiled()
def _ediff1d(ary, to_end=None, to_begin=None):
    x = lax.reshape(ary, (typeof(ary).size,))
    n = typeof(x).size
    out = lax.sub(lax.slice_in_dim(x, min(1, n), n), lax.slice_in_dim(x, 0, max(n - 1, 0)))
    dtype = typeof(out).dtype
    ends = [
        lax.reshape(lax.convert_element_type(e, dtype), (typeof(e).size,))
        if e is not None
        else None
        for e in (to_begin, to_end)
    ]
    parts = [p for p in (ends[0], out, ends[1]) if p is not None]
    return lax.concatenate([strong(p) for p in parts], 0) if len(parts) > 1 else out


@one_call()
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Differences of adjacent elements of the flattened array.

    Args:
      ary: an array or a number.
      to_end, to_begin: values to append and prepend, converted to the dtype of the differences.

    Returns:
      A vector of ``ary.size - 1`` differences, with the additional values.

    Raises:
      TypeError: if an argument is not an array or a number.

    See :func:`diff` for differences along an axis.

    >>> ediff1d(np.array([1, 4, 9])).tolist()
    [3, 5]
    >>> ediff1d(np.array([1, 4, 9]), to_begin=0).tolist()
    [0, 3, 5]
    """
    check_arrays("ediff1d", *[x for x in (ary, to_end, to_begin) if x is not None])
    if typeof(ary).dtype == np.bool_:
        raise TypeError("ediff1d does not accept booleans: convert them to integers first")
    differences: Array = _ediff1d(*trim_none(ary, to_end, to_begin))
    return differences


def _layers(x: Any, axis: int, start: int, stop: int) -> Any:
    n = typeof(x).shape[axis]
    return lax.slice_in_dim(x, start + n * (start < 0), stop + n * (stop <= 0), axis=axis)


def _evenly(f: Any, h: Any, axis: int, edge_order: int) -> Any:
    """The derivative for evenly spaced samples."""
    f2 = scalar(2, typeof(f).dtype)
    centre = lax.div(lax.sub(_layers(f, axis, 2, 0), _layers(f, axis, 0, -2)), f2)
    if edge_order == 1:
        first = lax.sub(_layers(f, axis, 1, 2), _layers(f, axis, 0, 1))
        last = lax.sub(_layers(f, axis, -1, 0), _layers(f, axis, -2, -1))
    else:
        first = _combined(f, axis, (-1.5, 2.0, -0.5), (0, 1, 2))
        last = _combined(f, axis, (0.5, -2.0, 1.5), (-3, -2, -1))
    out = lax.concatenate([first, centre, last], axis)
    return lax.div(out, repeated(h, typeof(out).shape)) if h is not None else out


def _combined(f: Any, axis: int, factors: Sequence[Any], places: Sequence[int]) -> Any:
    """Linear combination of slices of size 1 along an axis."""
    total = None
    for factor, place in zip(factors, places):
        layer = _layers(f, axis, place, place + 1)
        if isinstance(factor, float):
            factor = scalar(factor, typeof(f).dtype)
        else:
            factor = lax.broadcast_in_dim(factor, typeof(layer).shape, ())
        term = lax.mul(layer, factor)
        total = term if total is None else lax.add(total, term)
    return total


def _unevenly(f: Any, x: Any, axis: int, edge_order: int) -> Any:
    """The derivative at coordinates ``x``: that of the parabola through three adjacent samples."""
    n = typeof(f).shape[axis]
    h = lax.sub(lax.slice_in_dim(x, 1, n), lax.slice_in_dim(x, 0, n - 1))
    before, after = lax.slice_in_dim(h, 0, n - 2), lax.slice_in_dim(h, 1, n - 1)
    both = lax.add(before, after)
    shape = typeof(_layers(f, axis, 1, -1) if n > 2 else lax.slice_in_dim(f, 0, 0, axis=axis)).shape
    a = lax.div(lax.neg(after), lax.mul(before, both))
    b = lax.div(lax.sub(after, before), lax.mul(before, after))
    c = lax.div(before, lax.mul(after, both))
    parts = [(a, 0, -2), (b, 1, -1), (c, 2, 0)]
    centre = None
    for factor, start, stop in parts:
        layers = _layers(f, axis, start, stop)
        term = lax.mul(layers, lax.broadcast_in_dim(factor, shape, (axis,)))
        centre = term if centre is None else lax.add(centre, term)
    steps = [lax.squeeze(lax.slice_in_dim(h, i, i + 1), (0,)) for i in range(n - 1)[:2]]
    ends = [lax.squeeze(lax.slice_in_dim(h, i, i + 1), (0,)) for i in range(n - 1)[-2:]]
    if edge_order == 1:
        one = scalar(1, typeof(h).dtype)
        p, q = lax.div(one, steps[0]), lax.div(one, ends[-1])
        first = _combined(f, axis, (lax.neg(p), p), (0, 1))
        last = _combined(f, axis, (lax.neg(q), q), (-2, -1))
    else:
        first = _combined(f, axis, _at_end(steps[0], steps[1]), (0, 1, 2))
        back = [lax.neg(v) for v in _at_end(ends[1], ends[0])]
        last = _combined(f, axis, back[::-1], (-3, -2, -1))
    return lax.concatenate([first, centre, last], axis)


def _at_end(h: Any, k: Any) -> tuple[Any, Any, Any]:
    """Weights of three elements with spacings ``h`` and ``k``, for the derivative at the first."""
    both = lax.add(h, k)
    a = lax.neg(lax.div(lax.add(both, h), lax.mul(h, both)))
    return a, lax.div(both, lax.mul(h, k)), lax.neg(lax.div(h, lax.mul(k, both)))


@compiled("axes", "edge_order", "single")
def _gradient(f, *spacings, axes, edge_order, single):
    spacings += (None,) * (len(axes) - len(spacings))
    pairs = [(t.dtype, t.weak_type) for t in (typeof(v) for v in (f, *spacings) if v is not None)]
    result = inexact(*dtypes.lattice_result(tuple(pairs)))[0]
    wide = wide_of(result)
    f = lax.convert_element_type(f, wide)
    out = []
    for axis, h in zip(axes, spacings):
        if h is not None:
            h = lax.convert_element_type(h, wide)
        if h is None or not typeof(h).ndim:
            derivative = _evenly(f, h, axis, edge_order)
        else:
            derivative = _unevenly(f, h, axis, edge_order)
        out.append(lax.convert_element_type(derivative, result))
    return out[0] if single else out


@one_call("axis")
def gradient(
    f: ArrayLike,
    *varargs: Any,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any:
    """Numerical derivatives of samples along axes, by second-order central differences.

    Args:
      f: samples; integers give floats.
      varargs: the spacing: none (1), one number for all axes, or for each axis a number or a
        vector of coordinates.
      axis: an axis or several; all by default.
      edge_order: 1 (default) or 2: the accuracy order of the one-sided differences at the ends.

    Returns:
      An array for one axis, otherwise a list of arrays, all of the shape of ``f``.

    Raises:
      ValueError: if an axis is shorter than ``edge_order + 1``, or the number of coordinates is
        wrong.
      TypeError: if the number of spacings is wrong.

    >>> gradient(np.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 1.5, 2.0]
    """
    check_arrays("gradient", f, *varargs)
    aval = typeof(f)
    order = 1 if edge_order is None else operator.index(edge_order)
    if order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order}")
    axes = axes_of(axis, aval.ndim)
    for i in axes:
        if aval.shape[i] < order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient: at least "
                f"{order + 1} elements are required along axis {i} of shape {aval.shape}"
            )
    spacings = _spacings(varargs, axes, aval.shape)
    if not axes:
        return []
    single = len(axes) == 1
    return _gradient(*trim_none(f, *spacings), axes=axes, edge_order=order, single=single)


def _spacings(varargs: tuple[Any, ...], axes: tuple[int, ...], shape: tuple[int, ...]) -> list[Any]:
    if not varargs:
        return [None] * len(axes)
    if len(varargs) == 1 and (len(axes) != 1 or not typeof(varargs[0]).ndim):
        varargs = varargs * len(axes)
    if len(varargs) != len(axes):
        raise TypeError(
            f"gradient: invalid number of spacing arguments: {len(varargs)} for {len(axes)} axes"
        )
    for h, i in zip(varargs, axes):
        coordinates = typeof(h).shape
        if len(coordinates) > 1:
            raise ValueError(
                f"gradient: spacings must be numbers or vectors, got shape {coordinates}"
            )
        if coordinates and coordinates[0] != shape[i]:
            raise ValueError(
                f"gradient: {coordinates[0]} coordinates for axis {i} of size {shape[i]}: "
                "they must be as many as samples"
            )
    return list(varargs)


def _layer(x: Any, axis: int, place: int) -> Any:
    return lax.index_in_dim(x, place, axis, keepdims=False)


def _with_half_ends(y: Any, axis: int) -> Any:
    """The sum along an axis, with the first and the last element weighted by one half."""
    n = typeof(y).shape[axis]
    ends = lax.add(_layer(y, axis, 0), _layer(y, axis, n - 1))
    ends = lax.mul(ends, scalar(0.5, typeof(y).dtype))
    if is_complex_dtype(typeof(y).dtype):
        inner = lax.slice_in_dim(y, 1, n - 1, axis=axis)
        return lax.add(lax.reduce_sum(inner, (axis,)), ends)
    # A sum of all elements is faster than a partial sum. An infinite end must not be subtracted.
    finite = lax.select(lax.is_finite(ends), ends, lax.full_like(ends, 0))
    return lax.sub(lax.reduce_sum(y, (axis,)), finite)


@compiled("axis")
def _trapezoid(y, x=None, *, axis):
    pair = [typeof(y)] if x is None else [typeof(y), typeof(x)]
    dtype, weak = dtypes.lattice_result(tuple([(t.dtype, t.weak_type) for t in pair]))
    result = inexact(dtype, weak)[0]
    wide = wide_of(result)
    y = lax.convert_element_type(y, wide)
    n = typeof(y).shape[axis]
    if n < 2:
        shape = typeof(y).shape
        return lax.full((*shape[:axis], *shape[axis + 1 :]), scalar(0, result))
    if x is None:
        return lax.convert_element_type(_with_half_ends(y, axis), result)
    sums = lax.add(lax.slice_in_dim(y, 1, n, axis=axis), lax.slice_in_dim(y, 0, n - 1, axis=axis))
    x = lax.convert_element_type(x, wide)
    at = axis - typeof(y).ndim + typeof(x).ndim if typeof(x).ndim != 1 else 0
    steps = lax.sub(lax.slice_in_dim(x, 1, n, axis=at), lax.slice_in_dim(x, 0, n - 1, axis=at))
    if typeof(steps).ndim == 1:
        steps = lax.broadcast_in_dim(steps, typeof(sums).shape, (axis,))
    sums = lax.mul(sums, repeated(steps, typeof(sums).shape))
    total = lax.mul(lax.reduce_sum(sums, (axis,)), scalar(0.5, wide))
    return lax.convert_element_type(total, result)


@compiled("axis")
def _trapezoid_evenly(y, dx, *, axis):
    if typeof(dx).ndim:
        return _trapezoid_of_steps(y, dx, axis)
    total = _trapezoid(y, axis=axis)
    total, dx = promoted("trapezoid", total, dx, any_number)
    return lax.mul(total, repeated(dx, typeof(total).shape))


def _trapezoid_of_steps(y, dx, axis: int):
    y, dx = promoted("trapezoid", y, dx, any_number)
    result = typeof(y).dtype
    y, dx = (lax.convert_element_type(v, wide_of(result)) for v in (y, dx))
    n = typeof(y).shape[axis]
    sums = lax.add(
        lax.slice_in_dim(y, min(n, 1), n, axis=axis),
        lax.slice_in_dim(y, 0, max(n - 1, 0), axis=axis),
    )
    # As in NumPy, the step sizes broadcast against the intervals before the sum along the axis.
    shape = broadcast_shapes(typeof(dx).shape, typeof(sums).shape)
    terms = lax.mul(repeated(dx, shape), repeated(sums, shape))
    at = axis - typeof(y).ndim + len(shape)
    total = lax.mul(lax.reduce_sum(terms, (at,)), scalar(0.5, wide_of(result)))
    return lax.convert_element_type(total, result)


@one_call("axis")
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Integral of samples along an axis by the trapezoidal rule.

    Args:
      y: samples; integers give floats.
      x: the coordinates of the samples, of the shape of ``y`` or a vector along the axis.
      dx: the spacing of the samples if ``x`` is ``None``: a number, or an array that broadcasts
        against the intervals of ``y``.
      axis: the axis, by default the last.

    Returns:
      A float array without the axis.

    The integral is differentiable with respect to samples and coordinates.

    >>> float(trapezoid(np.array([1.0, 2.0, 3.0]), dx=2.0))
    8.0
    >>> float(trapezoid(np.array([1.0, 2.0]), np.array([0.0, 4.0])))
    6.0
    """
    check_arrays("trapezoid", *[v for v in (y, x, dx) if v is not None])
    shape = typeof(y).shape
    axis = one_axis(axis, len(shape)) if shape else _no_axis(axis)
    if x is None:
        if isinstance(dx, (int, float)) and dx == 1:
            total: Array = _trapezoid(y, axis=axis)
        else:
            total = _trapezoid_evenly(y, dx, axis=axis)
        return total
    x_shape = typeof(x).shape
    if x_shape != (shape[axis],) and x_shape != shape:
        try:
            fits = (
                broadcast_shapes(x_shape, shape) == shape
                and x_shape[axis - len(shape)] == shape[axis]
            )
        except (ValueError, IndexError):
            fits = False
        if not fits:
            raise ValueError(
                f"trapezoid: x has shape {x_shape}, and y {shape}: x must have the shape of y, or "
                f"be a vector of {shape[axis]} coordinates"
            )
    total = _trapezoid(y, x, axis=axis)
    return total


def _no_axis(axis: Any) -> int:
    raise ValueError(
        f"axis {axis} is out of bounds for array of dimension 0: trapezoid of a scalar"
    )
