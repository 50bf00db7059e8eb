"""Shapes: asking for them, reshaping, moving axes, repeating along new ones."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.errors import InconclusiveDimensionOperation
from primax_core.extend import Array, FastPath, Tracer, typeof
from primax_core.extend.dimensions import broadcast_shapes, index, is_static, is_symbolic_dim

from ._checks import axes_of, check_arrays, one_axis
from ._creation import asarray, placed
from ._functions import compiled


def _shape_of(a: Any) -> tuple[int, ...]:
    """The shape of an array, or of nested sequences of numbers."""
    found = getattr(a, "shape", None)
    return tuple(found) if isinstance(found, tuple) else np.shape(a)


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the axes."""
    return _shape_of(a)


def ndim(a: Any) -> int:
    """The number of axes."""
    return len(_shape_of(a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or the size of an axis (of several, their product)."""
    sizes = _shape_of(a)
    return math.prod([sizes[i] for i in axes_of(axis, len(sizes))])


def reshape(
    a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """The same elements in another shape; one size may be -1 to be inferred.

    Args:
      order: ``"C"`` reads and writes row by row, ``"F"`` column by column.
      copy: ``True`` makes a new array in any case.
      out_sharding: where to put the result.

    Raises:
      TypeError: if the shape is traced or does not fit.
    """
    simple = order == "C" and type(shape) is tuple and not copy and _plain(shape)
    if simple and out_sharding is None:
        found: Array | None = _reshaping.lookup(shape, a)
        if found is not None:
            return found
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
    return placed(out, None, out_sharding)


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
    """A shape argument with -1 replaced."""
    given = shape if isinstance(shape, (tuple, list)) else np.atleast_1d(_untraced(shape)).tolist()
    sizes = [index(_untraced(d)) for d in given]
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
    """The size of the open dimension, of symbolic ones."""
    rest = aval.size % known
    if is_symbolic_dim(rest):
        raise InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {aval.shape} and {tuple(sizes)}: the "
            f"remainder {rest} is not known to be 0. If it always is, say so where the symbolic "
            f'shapes are made: symbolic_shape(..., constraints=("{rest} == 0",)).'
        )
    if rest != 0:
        raise TypeError(
            f"cannot reshape array of shape {aval.shape} (size {aval.size}) into shape "
            f"{tuple(sizes)}: its size is not divisible by {known}"
        )
    return aval.size // known


def _untraced(d: Any) -> Any:
    if isinstance(d, Tracer):
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {d}. A traced "
            "value cannot be part of a shape: take it from the shape of an array, or mark the "
            "argument it comes from as static (static_argnums) in jit"
        )
    return d


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Array:
    """All elements along one axis.

    Args:
      order: ``"C"`` reads row by row, ``"F"`` column by column.
      out_sharding: where to put the result.
    """
    check_arrays("ravel", a)
    if order == "K":
        raise NotImplementedError("ravel: order='K' is not supported: use 'C' or 'F'")
    return reshape(a, (typeof(a).size,), order, out_sharding=out_sharding)


def resize(a: Any, new_shape: Any) -> Array:
    """The elements in another shape, over again from the first as often as needed.

    Args:
      new_shape: a size or a sequence of sizes.

    >>> resize(np.array([1, 2]), (1, 3))
    Array([[1, 2, 1]], dtype=int32)
    """
    check_arrays("resize", a)
    given = (new_shape,) if hasattr(new_shape, "__index__") else tuple(new_shape)
    target = tuple([operator.index(d) for d in given])
    if min(target, default=0) < 0:
        raise ValueError(f"resize: all elements of `new_shape` must be non-negative, got {target}")
    return _resize(a, shape=target)


@compiled("shape")
def _resize(a, *, shape):
    have, wanted = typeof(a).size, math.prod(shape)
    if not have or not wanted:
        return lax.full_like(a, 0, shape=shape)
    line = lax.reshape(a, (have,))
    times = -(-wanted // have)
    if times > 1:
        line = lax.tile(line, (times,))
    return lax.reshape(lax.slice_in_dim(line, 0, wanted), shape)


# Axes


def transpose(a: Any, axes: Sequence[int] | None = None) -> Array:
    """Axes in another order, reversed by default.

    Raises:
      TypeError: if ``axes`` is no permutation of the array's axes.
    """
    check_arrays("transpose", a)
    n = typeof(a).ndim
    order = tuple(reversed(range(n))) if axes is None else tuple([one_axis(i, n) for i in axes])
    return lax.transpose(a, order)


def permute_dims(a: Any, /, axes: Sequence[int]) -> Array:
    """Axes in another order; see :func:`transpose`."""
    check_arrays("permute_dims", a)
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Array:
    """The last two axes exchanged."""
    check_arrays("matrix_transpose", x)
    if typeof(x).ndim < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got shape {typeof(x).shape}"
        )
    return swapaxes(x, -1, -2)


def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """Some axes moved to other places, the others kept in order."""
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
    return lax.transpose(a, tuple(order))


def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """One axis moved before another.

    Args:
      start: the axis before which ``axis`` goes; the number of axes for the end.
    """
    check_arrays("rollaxis", a)
    n = typeof(a).ndim
    source, before = one_axis(axis, n), operator.index(start)
    if not -n <= before <= n:
        raise ValueError(f"rollaxis: start={start} must satisfy {-n}<=start<={n}")
    before += n if before < 0 else 0
    return moveaxis(a, source, before - 1 if before > source else before)


def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Two axes exchanged."""
    check_arrays("swapaxes", a)
    n = typeof(a).ndim
    order = list(range(n))
    i, j = one_axis(axis1, n), one_axis(axis2, n)
    order[i], order[j] = order[j], order[i]
    return lax.transpose(a, tuple(order))


def expand_dims(a: Any, axis: Any) -> Array:
    """New axes of size 1 at places of the result."""
    check_arrays("expand_dims", a)
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    return lax.expand_dims(a, axes_of(tuple(given), typeof(a).ndim + len(given)))


def squeeze(a: Any, axis: Any = None) -> Array:
    """Without some axes of size 1, all of them by default.

    Raises:
      ValueError: if an axis has another size.
    """
    check_arrays("squeeze", a)
    aval = typeof(a)
    axes = (
        tuple([i for i, d in enumerate(aval.shape) if d == 1])
        if axis is None
        else axes_of(axis, aval.ndim)
    )
    return lax.squeeze(a, axes)


def atleast_1d(*arys: Any) -> Any:
    """Each array with at least one axis; a tuple unless there is one array."""
    return _raised("atleast_1d", arys, ((0,),))


def atleast_2d(*arys: Any) -> Any:
    """Each array with at least two axes, new ones in front; a tuple unless there is one array."""
    return _raised("atleast_2d", arys, ((0, 1), (0,)))


def atleast_3d(*arys: Any) -> Any:
    """Each array with at least three axes; a tuple unless there is one array.

    A vector gets one in front and one at the end, a matrix one at the end.
    """
    return _raised("atleast_3d", arys, ((0, 1, 2), (0, 2), (2,)))


def _raised(name: str, arys: tuple[Any, ...], places: Sequence[tuple[int, ...]]) -> Any:
    """Arrays with new axes, by how many they have."""
    check_arrays(name, *arys)
    out = []
    for a in arys:
        x = asarray(a)
        out.append(lax.expand_dims(x, places[x.ndim]) if x.ndim < len(places) else x)
    return out[0] if len(out) == 1 else tuple(out)


# Broadcasting


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Array:
    """Repeated along new and size-1 axes to a shape.

    Raises:
      ValueError: if the array does not broadcast to the shape.
    """
    check_arrays("broadcast_to", array)
    x = asarray(array)
    target = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    try:
        fits = broadcast_shapes(x.shape, target) == target
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"Incompatible shapes for broadcasting: {x.shape} and requested shape {target}"
        )
    if x.shape == target:
        return placed(x, None, out_sharding)
    out = lax.broadcast_in_dim(x, target, tuple(range(len(target) - x.ndim, len(target))))
    return placed(out, None, out_sharding)


def broadcast_arrays(*args: Any) -> tuple[Array, ...]:
    """Arrays repeated to their common shape."""
    check_arrays("broadcast_arrays", *args)
    common = lax.broadcast_shapes(*[typeof(a).shape for a in args])
    return tuple([broadcast_to(a, common) for a in args])
