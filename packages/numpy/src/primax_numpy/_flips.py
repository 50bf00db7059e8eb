"""Reordering of elements: flips, rotations, rolls."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, Tracer, dimensions, dtypes, one_call, state
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import axes_of, check_arrays, converted, one_axis, several_axes
from ._functions import compiled


@one_call("axis")
def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """The elements in reversed order along some axes, all by default.

    Args:
      m: an array or a number.
      axis: an axis or a sequence of axes.

    Returns:
      An array of the shape of ``m``.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    >>> flip(np.array([[1, 2], [3, 4]])).tolist()
    [[4, 3], [2, 1]]
    >>> flip(np.array([[1, 2], [3, 4]]), axis=1).tolist()
    [[2, 1], [4, 3]]
    """
    check_arrays("flip", m)
    return lax.rev(converted(m), axes_of(axis, typeof(m).ndim))


@one_call()
def fliplr(m: ArrayLike) -> Array:
    """The elements in reversed order along the second axis (left to right, for a matrix).

    Args:
      m: an array with at least two axes.

    Returns:
      An array of the shape of ``m``.

    Raises:
      ValueError: if the array has fewer than two axes.

    See :func:`flip` for other axes.

    >>> fliplr(np.array([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    check_arrays("fliplr", m)
    return lax.rev(converted(m), (one_axis(1, typeof(m).ndim),))


@one_call()
def flipud(m: ArrayLike) -> Array:
    """The elements in reversed order along the first axis (top to bottom, for a matrix).

    Args:
      m: an array with at least one axis.

    Returns:
      An array of the shape of ``m``.

    Raises:
      ValueError: if the array is a scalar.

    See :func:`flip` for other axes.

    >>> flipud(np.array([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    check_arrays("flipud", m)
    n = typeof(m).ndim
    if not n:
        raise ValueError("flipud: axis 0 is out of bounds for array of dimension 0")
    return lax.rev(converted(m), (0,))


@one_call("k", "axes")
def rot90(m: ArrayLike, k: int = 1, axes: int | Sequence[int] | None = (0, 1)) -> Array:
    """An array rotated by multiples of 90 degrees.

    Args:
      m: an array with at least two axes.
      k: the number of rotations by 90 degrees, from the first axis towards the second. It must be
        concrete.
      axes: the two axes of the plane, the first two by default.

    Returns:
      An array whose two sizes are swapped if ``k`` is odd.

    Raises:
      ValueError: if the axes are not two different axes of the array.

    >>> rot90(np.array([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    check_arrays("rot90", m)
    plane = tuple([one_axis(a, typeof(m).ndim) for a in axes])
    if len(plane) != 2 or plane[0] == plane[1]:
        raise ValueError(f"rot90: axes must be two different axes, got {axes}")
    return _rot90(m, k=operator.index(k) % 4, axes=plane)


@compiled("k", "axes")
def _rot90(m, *, k, axes):
    if k == 0:
        return m
    if k == 2:
        return lax.rev(converted(m), axes)
    order = list(range(typeof(m).ndim))
    order[axes[0]], order[axes[1]] = order[axes[1]], order[axes[0]]
    # A rotation by 90 degrees is a transpose and a flip.
    if k == 1:
        return lax.transpose(lax.rev(m, (axes[1],)), tuple(order))
    return lax.rev(lax.transpose(m, tuple(order)), (axes[1],))


def roll(
    a: ArrayLike, shift: ArrayLike | Sequence[Any], axis: int | Sequence[int] | None = None
) -> Array:
    """The elements shifted cyclically along axes.

    Args:
      a: an array or a number.
      shift: the number of positions, toward higher indices; it may be traced. For a tuple of axes,
        one number for each or one for all.
      axis: an axis or a tuple of axes; ``None`` rolls the flattened array and restores its shape.

    Returns:
      An array of the shape of ``a``.

    Raises:
      ValueError: if an axis does not exist, or the numbers of shifts and axes do not match.

    >>> roll(np.array([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    >>> roll(np.array([[1, 2], [3, 4]]), 1, axis=1).tolist()
    [[2, 1], [4, 3]]
    """
    check_arrays("roll", a)
    n = typeof(a).ndim
    axes = None if axis is None else _axes("roll", axis, n)
    count = 1 if axes is None else len(axes)
    shifts = _shifts(converted(shift), count)
    if axes is not None and len(shifts) != count:
        axes = axes * len(shifts)
    if state.trace is not None and not any(isinstance(s, Tracer) for s in shifts):
        return roll_known(a, shifts=tuple([int(np.asarray(s)) for s in shifts]), axes=axes)
    # One executable serves all shifts.
    return _roll(a, *[_position(s) for s in shifts], axes=axes)


def _axes(name: str, axis: Any, n: int) -> tuple[int, ...]:
    requested = several_axes(axis)
    return tuple([one_axis(a, n) for a in requested])


def _shifts(shift: Any, count: int) -> list[Any]:
    """A shift for each axis.

    Raises:
      ValueError: if the numbers of shifts and axes do not match.
    """
    if isinstance(shift, (tuple, list)):
        shifts = list(shift)
    else:
        check_arrays("roll", shift)
        aval = typeof(shift)
        shifts = [shift] if not aval.ndim else [shift[i] for i in range(aval.shape[0])]
    if len(shifts) == 1:
        return shifts * count
    if count not in (1, len(shifts)):
        raise ValueError(
            f"roll: {len(shifts)} shifts and {count} axes: pass one shift, or one for each axis"
        )
    return shifts


def _position(s: Any) -> Any:
    if isinstance(s, (int, float)):
        return np.int32(int(s) % 2**31) if abs(int(s)) >= 2**31 else np.int32(int(s))
    return lax.convert_element_type(s, np.dtype(np.int32))


@compiled("shifts", "axes", name="roll")
def roll_known(a, *, shifts, axes):
    return _rolled(a, shifts, axes)


@compiled("axes")
def _roll(a, *shifts, axes):
    return _rolled(a, shifts, axes)


def _rolled(a, shifts, axes):
    shape = typeof(a).shape
    if axes is None:
        line = lax.reshape(a, (typeof(a).size,))
        for s in shifts:
            line = _along(line, s, 0)
        return lax.reshape(line, shape)
    for s, axis in zip(shifts, axes):
        a = _along(a, s, axis)
    return a


def _along(x, shift, axis: int):
    n = typeof(x).shape[axis]
    if not n:
        return x
    if isinstance(shift, int) and not isinstance(n, int):
        shift = np.int32(shift)  # `n` is symbolic
    if isinstance(shift, int):
        first = -shift % n
        if not first:
            return x
        parts = [lax.slice_in_dim(x, first, n, axis=axis), lax.slice_in_dim(x, 0, first, axis=axis)]
        return lax.concatenate(parts, axis)
    size = dimensions.size_as(n, dtypes.i32)
    first = lax.rem(lax.neg(shift), size)
    first = lax.select(lax.lt(first, np.int32(0)), lax.add(first, size), first)
    return lax.dynamic_slice_in_dim(lax.concatenate([x, x], axis), first, n, axis)
