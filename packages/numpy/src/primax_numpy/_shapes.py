"""Shapes: queries, reshaping, axis permutations, broadcasting."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.errors import InconclusiveDimensionOperation
from primax_core.extend import Array, FastPath, one_call
from primax_core.extend.dimensions import broadcast_shapes, index, is_static, is_symbolic_dim
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.extend.runtime import with_out_sharding
from primax_core.typing import ArrayLike, ShapeLike, ShardingLike

from ._checks import (
    axes_of,
    check_arrays,
    converted,
    converts_itself,
    one_axis,
    several_axes,
    shape_argument,
    untraced,
)
from ._creation import asarray
from ._functions import compiled


def _shape_of(a: Any) -> tuple[int, ...]:
    """The shape of an array, or of nested sequences of numbers."""
    own_shape = getattr(a, "shape", None)
    if isinstance(own_shape, tuple):
        return tuple(own_shape)
    return typeof(a).shape if converts_itself(a) else np.shape(a)


def shape(a: ArrayLike | Sequence[Any]) -> tuple[int, ...]:
    """The shape of an array, a number or nested sequences, as a tuple of its sizes.

    Args:
      a: an array, a number, or nested sequences of equal lengths. It may be traced: shapes are
        static.

    Returns:
      A tuple of integers, or of symbolic dimensions under ``export`` with symbolic shapes.

    >>> shape(np.zeros((2, 3))), shape([1, 2]), shape(4.0)
    ((2, 3), (2,), ())
    """
    return _shape_of(a)


def ndim(a: ArrayLike | Sequence[Any]) -> int:
    """The number of axes (the rank) of an array, a number or nested sequences.

    Args:
      a: an array, a number, or nested sequences of equal lengths. It may be traced.

    Returns:
      A Python integer, 0 for numbers.

    >>> ndim(np.zeros((2, 3))), ndim([1, 2]), ndim(4.0)
    (2, 1, 0)
    """
    return len(_shape_of(a))


def size(a: ArrayLike | Sequence[Any], axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, or the size of an axis (the product for several axes).

    Args:
      a: an array, a number, or nested sequences of equal lengths. It may be traced.
      axis: an axis or a sequence of axes; all by default.

    Returns:
      A Python integer.

    Raises:
      ValueError: if an axis does not exist or is repeated.

    >>> size(np.zeros((2, 3))), size(np.zeros((2, 3)), axis=1)
    (6, 3)
    """
    sizes = _shape_of(a)
    return math.prod([sizes[i] for i in axes_of(axis, len(sizes))])


def reshape(
    a: ArrayLike,
    shape: ShapeLike,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """The same elements in another shape; one size may be -1, which is inferred.

    Args:
      a: an array or a number.
      shape: a size or a sequence of sizes, which must be concrete under ``jit``.
      order: ``"C"`` (row-major) or ``"F"`` (column-major) for reads and writes.
      copy: ``True`` always creates a new array.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      TypeError: if the shape is traced or has another number of elements.
      ValueError: if several sizes are -1, or ``order`` is unknown.

    >>> reshape(np.array([1, 2, 3, 4]), (2, -1)).tolist()
    [[1, 2], [3, 4]]
    >>> reshape(np.array([1, 2, 3, 4]), (2, 2), order="F").tolist()
    [[1, 3], [2, 4]]
    """
    if out_sharding is not None:
        return with_out_sharding(reshape, out_sharding, a, shape, order, copy=copy)
    simple = order == "C" and type(shape) is tuple and not copy and _plain(shape)
    if simple and out_sharding is None:
        fast: Array | None = _reshaping.lookup(shape, a)
        if fast is not None:
            return fast
    check_arrays("reshape", a)
    aval = typeof(a)
    target = resolved_shape(shape, aval)
    if order not in ("C", "F"):
        if order == "A":
            raise NotImplementedError("reshape: order='A' is not supported: use 'C' or 'F'")
        raise ValueError(f"reshape: Unexpected value for 'order' argument: {order}: use 'C' or 'F'")
    if target == aval.shape and isinstance(a, Array):
        out = asarray(a, copy=copy)
    elif order == "F":
        out = _by_columns(a, shape=target)
    elif simple:
        out = _reshaping.call(shape, (a,), shape=target)
    else:
        out = lax.reshape(a, target)
    return out


def _plain(sizes: tuple[Any, ...]) -> bool:
    for d in sizes:
        if type(d) is not int:
            return False
    return True


@compiled("shape")
def _reshape(x, *, shape):
    return lax.reshape(x, shape)


_reshaping: Final = FastPath(_reshape)


@compiled("shape", name="reshape")
def _by_columns(x, *, shape):
    flipped = lax.transpose(x, tuple(reversed(range(typeof(x).ndim))))
    out = lax.reshape(flipped, tuple(reversed(shape)))
    return lax.transpose(out, tuple(reversed(range(len(shape)))))


def resolved_shape(shape: Any, aval: Any) -> tuple[int, ...]:
    """A shape argument with -1 replaced by the inferred size."""
    requested = (
        shape if isinstance(shape, (tuple, list)) else np.atleast_1d(untraced(shape)).tolist()
    )
    sizes = [index(untraced(d)) for d in requested]
    unknown = [i for i, d in enumerate(sizes) if d == -1]
    if len(unknown) > 1:
        raise ValueError(f"reshape: can only specify one unknown dimension, got {tuple(sizes)}")
    known = math.prod([d for d in sizes if d != -1])
    if unknown:
        if not is_static((aval.size, known)):
            sizes[unknown[0]] = _divided(aval, known, sizes)
            return tuple(sizes)
        if known == 0 or aval.size % known:
            raise TypeError(
                f"cannot reshape array of shape {aval.shape} (size {aval.size}) into shape "
                f"{tuple(sizes)}: its size is not divisible by {known}"
            )
        sizes[unknown[0]] = aval.size // known
    elif known != aval.size or any(d < 0 for d in sizes):
        raise TypeError(
            f"cannot reshape array of shape {aval.shape} (size {aval.size}) into shape "
            f"{tuple(sizes)} (size {known})"
        )
    return tuple(sizes)


def _divided(aval: Any, known: Any, sizes: list[Any]) -> Any:
    """The inferred size in the presence of symbolic dimensions."""
    rest = aval.size % known
    if is_symbolic_dim(rest):
        raise InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {aval.shape} and {tuple(sizes)}: the "
            f"remainder {rest} is not known to be 0. If it always is, add the constraint: "
            f'symbolic_shape(..., constraints=("{rest} == 0",)).'
        )
    if rest != 0:
        raise TypeError(
            f"cannot reshape array of shape {aval.shape} (size {aval.size}) into shape "
            f"{tuple(sizes)}: its size is not divisible by {known}"
        )
    return aval.size // known


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: ShardingLike | None = None) -> Array:
    """The elements as a vector.

    Args:
      a: an array or a number.
      order: ``"C"`` (row-major) or ``"F"`` (column-major).
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      A vector of ``a.size`` elements.

    Raises:
      ValueError: if ``order`` is unknown.

    >>> ravel(np.array([[1, 2], [3, 4]]), order="F").tolist()
    [1, 3, 2, 4]
    """
    check_arrays("ravel", a)
    if order == "K":
        raise NotImplementedError("ravel: order='K' is not supported: use 'C' or 'F'")
    return reshape(a, (typeof(a).size,), order, out_sharding=out_sharding)


def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """The elements in another shape, repeated from the start as necessary.

    Args:
      a: an array or a number.
      new_shape: a size or a sequence of sizes, which must be concrete.

    Returns:
      An array of shape ``new_shape``; zeros if ``a`` is empty.

    Raises:
      ValueError: if a size is negative.

    >>> resize(np.array([1, 2], np.int32), (1, 3))
    Array([[1, 2, 1]], dtype=int32)
    """
    check_arrays("resize", a)
    sizes = shape_argument(new_shape)
    target = tuple([operator.index(d) for d in sizes])
    if min(target, default=0) < 0:
        raise ValueError(f"resize: all elements of `new_shape` must be non-negative, got {target}")
    return _resize(a, shape=target)


@compiled("shape")
def _resize(a, *, shape):
    count, length = typeof(a).size, math.prod(shape)
    if not count or not length:
        return lax.full_like(a, 0, shape=shape)
    line = lax.reshape(a, (count,))
    times = -(-length // count)
    if times > 1:
        line = lax.tile(line, (times,))
    return lax.reshape(lax.slice_in_dim(line, 0, length), shape)


# Axes


@one_call("axes")
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The array with permuted axes, reversed by default.

    Args:
      a: an array or a number.
      axes: axis ``i`` of the result is axis ``axes[i]`` of ``a``; negative ones count from the
        end.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      TypeError: if ``axes`` is not a permutation of the axes of the array.

    >>> transpose(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    >>> transpose(np.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    check_arrays("transpose", a)
    n = typeof(a).ndim
    order = tuple(reversed(range(n))) if axes is None else tuple([one_axis(i, n) for i in axes])
    return lax.transpose(converted(a), order)


@one_call("axes")
def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """The array with permuted axes; :func:`transpose` under the name in the array API standard.

    Args:
      a: an array or a number.
      axes: axis ``i`` of the result is axis ``axes[i]`` of ``a``; negative ones count from the
        end.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      TypeError: if ``axes`` is not a permutation of the axes of the array.

    >>> permute_dims(np.zeros((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    check_arrays("permute_dims", a)
    return transpose(a, axes)


@one_call()
def matrix_transpose(x: ArrayLike, /) -> Array:
    """The array with the last two axes swapped.

    Args:
      x: an array of shape ``(..., m, n)``.

    Returns:
      An array of shape ``(..., n, m)``. Complex numbers are not conjugated.

    Raises:
      ValueError: if the array has fewer than two axes.

    >>> matrix_transpose(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    check_arrays("matrix_transpose", x)
    if typeof(x).ndim < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got shape {typeof(x).shape}"
        )
    return swapaxes(x, -1, -2)


@one_call("source", "destination")
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """The array with some axes moved to other positions; the other axes keep their order.

    Args:
      a: an array or a number.
      source: an axis or a sequence of axes.
      destination: the positions of these axes in the result.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      ValueError: if an axis does not exist or is repeated, or the numbers of axes differ.

    >>> moveaxis(np.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    check_arrays("moveaxis", a)
    n = typeof(a).ndim
    src, dst = axes_of(source, n), axes_of(destination, n)
    if len(src) != len(dst):
        raise ValueError(
            f"Inconsistent number of elements: {len(src)} source and {len(dst)} destination axes"
        )
    order = [i for i in range(n) if i not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return lax.transpose(converted(a), tuple(order))


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """The array with one axis moved before another.

    Args:
      a: an array or a number.
      axis: the axis to move.
      start: the axis to insert ``axis`` before; the number of axes for the end.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      ValueError: if ``axis`` or ``start`` is out of bounds.

    >>> rollaxis(np.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    check_arrays("rollaxis", a)
    n = typeof(a).ndim
    source, before = one_axis(axis, n), operator.index(start)
    if not -n <= before <= n:
        raise ValueError(f"rollaxis: start={start} must satisfy {-n}<=start<={n}")
    before += n if before < 0 else 0
    return moveaxis(a, source, before - 1 if before > source else before)


@one_call("axis1", "axis2")
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """The array with two axes swapped.

    Args:
      a: an array or a number.
      axis1, axis2: the axes; negative ones count from the end.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      ValueError: if the array has no such axis.

    >>> swapaxes(np.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    check_arrays("swapaxes", a)
    n = typeof(a).ndim
    order = list(range(n))
    i, j = one_axis(axis1, n), one_axis(axis2, n)
    order[i], order[j] = order[j], order[i]
    return lax.transpose(converted(a), tuple(order))


def expand_dims(a: ArrayLike, axis: int | Sequence[int] | None) -> Array:
    """The array with new axes of size 1 at positions of the result.

    Args:
      a: an array or a number.
      axis: a position or a sequence of positions; negative ones count from the end of the result.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      ValueError: if a position is out of bounds or repeated.

    >>> expand_dims(np.zeros((2, 3)), 0).shape
    (1, 2, 3)
    >>> expand_dims(np.zeros((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    check_arrays("expand_dims", a)
    positions = several_axes(axis)
    n = typeof(a).ndim + len(positions)
    return lax.expand_dims(converted(a), axes_of(tuple(positions), n))


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """The array without some axes of size 1, all of them by default.

    Args:
      a: an array or a number.
      axis: an axis or a sequence of axes to remove.

    Returns:
      An array of the dtype of ``a``.

    Raises:
      ValueError: if an axis does not exist or has another size.

    >>> squeeze(np.zeros((1, 3, 1))).shape
    (3,)
    """
    check_arrays("squeeze", a)
    aval = typeof(a)
    axes = (
        tuple([i for i, d in enumerate(aval.shape) if d == 1])
        if axis is None
        else axes_of(axis, aval.ndim)
    )
    return lax.squeeze(converted(a), axes)


def atleast_1d(*arys: Any) -> Any:
    """Each array expanded to at least one axis.

    Args:
      arys: arrays or numbers.

    Returns:
      An array for one argument, otherwise a tuple of arrays. Scalars have the shape ``(1,)``.

    >>> atleast_1d(3.0)
    Array([3.], dtype=float32, weak_type=True)
    >>> [x.shape for x in atleast_1d(3.0, np.zeros((2, 3)))]
    [(1,), (2, 3)]
    """
    return _raised("atleast_1d", arys, ((0,),))


@one_call()
def atleast_2d(*arys: Any) -> Any:
    """Each array expanded to at least two axes with leading axes of size 1.

    Args:
      arys: arrays or numbers.

    Returns:
      An array for one argument, otherwise a tuple of arrays. A vector of size ``n`` has the shape
      ``(1, n)``.

    >>> [x.shape for x in atleast_2d(3.0, np.zeros(2))]
    [(1, 1), (1, 2)]
    """
    return _raised("atleast_2d", arys, ((0, 1), (0,)))


@one_call()
def atleast_3d(*arys: Any) -> Any:
    """Each array expanded to at least three axes.

    Args:
      arys: arrays or numbers.

    Returns:
      An array for one argument, otherwise a tuple of arrays. A vector has the shape ``(1, n, 1)``,
      a matrix ``(m, n, 1)``.

    >>> [x.shape for x in atleast_3d(np.zeros(2), np.zeros((2, 3)))]
    [(1, 2, 1), (2, 3, 1)]
    """
    return _raised("atleast_3d", arys, ((0, 1, 2), (0, 2), (2,)))


def _raised(name: str, arys: tuple[Any, ...], places: Sequence[tuple[int, ...]]) -> Any:
    """Arrays expanded at the axes that ``places`` lists for their rank."""
    check_arrays(name, *arys)
    out = []
    for a in arys:
        x = asarray(a)
        out.append(lax.expand_dims(x, places[x.ndim]) if x.ndim < len(places) else x)
    return out[0] if len(out) == 1 else tuple(out)


# Broadcasting


def broadcast_to(
    array: ArrayLike, shape: ShapeLike, *, out_sharding: ShardingLike | None = None
) -> Array:
    """An array broadcast to a shape: axes of size 1 are repeated, new axes are prepended.

    Args:
      array: an array or a number.
      shape: a size or a sequence of sizes, which must be concrete.
      out_sharding: sharding of the result, over mesh axes of the type ``Explicit``.

    Returns:
      An array of shape ``shape`` and the dtype of ``array``.

    Raises:
      ValueError: if the array does not broadcast to the shape.

    >>> broadcast_to(np.array([1, 2], np.int32), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(broadcast_to, out_sharding, array, shape)
    check_arrays("broadcast_to", array)
    x = asarray(array)
    target = tuple([untraced(d) for d in shape_argument(shape)])
    try:
        fits = broadcast_shapes(x.shape, target) == target
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"Incompatible shapes for broadcasting: {x.shape} and requested shape {target}"
        )
    if x.shape == target:
        return x
    out = lax.broadcast_in_dim(x, target, tuple(range(len(target) - x.ndim, len(target))))
    return out


def broadcast_arrays(*args: Any) -> list[Array]:
    """The list of the arrays broadcast to their common shape.

    Args:
      args: arrays or numbers of any dtypes, which are unchanged.

    Returns:
      A list of arrays of one shape.

    Raises:
      ValueError: if the shapes do not broadcast together.

    >>> [x.tolist() for x in broadcast_arrays(np.array([1, 2]), np.array([[3], [4]]))]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    check_arrays("broadcast_arrays", *args)
    common = lax.broadcast_shapes(*[typeof(a).shape for a in args])
    return [broadcast_to(a, common) for a in args]
