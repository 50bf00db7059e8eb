"""Shapes: reshaping, moving axes, joining."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import (
    Array,
    ShortRoads,
    Tracer,
    cast,
    dtypes,
    library_function,
    typeof,
)

from ._checks import axes_of, check_arrays, check_out, one_axis, wanted_dtype
from ._creation import asarray


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """The same elements in another shape; one size may be -1 to be inferred.

    Raises:
      TypeError: if the shape is traced or does not fit.
    """
    simple = order == "C" and type(shape) is tuple and _plain(shape)
    if simple:
        found: Array | None = _reshaping.quick(shape, a)
        if found is not None:
            return found
    check_arrays("reshape", a)
    aval = typeof(a)
    target = resolved_shape(shape, aval)
    if order == "F":
        n = aval.ndim
        flipped = lax.transpose(a, tuple(reversed(range(n))))
        out = lax.reshape(flipped, tuple(reversed(target)))
        return lax.transpose(out, tuple(reversed(range(len(target)))))
    if order != "C":
        raise ValueError(f"Unexpected value for 'order' argument: {order}.")
    if target == aval.shape and isinstance(a, Array):
        return a
    if simple:
        return _reshaping.slow(shape, (a,), shape=target)
    return lax.reshape(a, target)


def _plain(sizes: tuple[Any, ...]) -> bool:
    for d in sizes:
        if type(d) is not int:
            return False
    return True


def _reshape_of(x, *, shape):
    return lax.reshape(x, shape)


_reshape_of.__name__ = "reshape"
_reshaping: Final = ShortRoads(library_function(_reshape_of, static_argnames=("shape",)))


def resolved_shape(shape: Any, aval: Any) -> tuple[int, ...]:
    """A shape argument with -1 replaced."""
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(d, Tracer) for d in given):
        raise TypeError(
            "Shapes must be 1D sequences of concrete values of integer type, got "
            f"{tuple(given)}. A traced value cannot be part of a shape: use static_argnums in jit"
        )
    sizes = [operator.index(d) for d in given]
    unknown = [i for i, d in enumerate(sizes) if d == -1]
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    if unknown:
        known = int(np.prod([d for d in sizes if d != -1], dtype=np.int64))
        if known == 0 or aval.size % known:
            raise TypeError(
                f"cannot reshape array of shape {aval.shape} (size {aval.size}) into shape "
                f"{tuple(sizes)}: its size is not divisible by {known}"
            )
        sizes[unknown[0]] = aval.size // known
    return tuple(sizes)


def ravel(a: Any, order: str = "C") -> Array:
    """All elements along one axis."""
    return reshape(a, (typeof(a).size,), order)


def transpose(a: Any, axes: Sequence[int] | None = None) -> Array:
    """Axes in another order, reversed by default."""
    check_arrays("transpose", a)
    n = typeof(a).ndim
    order = tuple(reversed(range(n))) if axes is None else tuple(one_axis(i, n) for i in axes)
    return lax.transpose(a, order)


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
    """Without some axes of size 1, all of them by default."""
    check_arrays("squeeze", a)
    aval = typeof(a)
    axes = (
        tuple(i for i, d in enumerate(aval.shape) if d == 1)
        if axis is None
        else axes_of(axis, aval.ndim)
    )
    return lax.squeeze(a, axes)


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Array:
    """Repeated along new and size-1 axes to a shape."""
    x = asarray(array)
    target = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    try:
        fits = np.broadcast_shapes(x.shape, target) == target
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"Incompatible shapes for broadcasting: {x.shape} and requested shape {target}"
        )
    if x.shape == target:
        return x
    return lax.broadcast_in_dim(x, target, tuple(range(len(target) - x.ndim, len(target))))


def _alike(arrays: Sequence[Any], dtype: Any) -> list[Any]:
    """Operands in one dtype: the one asked for, or the one that they promote to."""
    if dtype is not None:
        return [lax.convert_element_type(x, dtype) for x in arrays]
    avals = [typeof(x) for x in arrays]
    joint, weak = dtypes.lattice_result(tuple([(a.dtype, a.weak_type) for a in avals]))
    return [cast(x, a, joint, weak) for x, a in zip(arrays, avals)]


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Arrays joined along an axis (flattened first for ``None``).

    Raises:
      ValueError: without arrays, or if an array has no such axis.
      TypeError: if other sizes differ.
    """
    if axis is None:
        return concatenate([ravel(a) for a in arrays], 0, dtype)
    return _joined(_concatenation, arrays, axis, dtype)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Array:
    """Arrays of one shape joined along a new axis.

    Raises:
      ValueError: without arrays, or if their shapes differ.
    """
    check_out("stack", out)
    return _joined(_stacking, arrays, axis, dtype)


def _joined(roads: ShortRoads, arrays: Any, axis: int, dtype: Any) -> Array:
    if type(arrays) in (list, tuple) and type(axis) is int and dtype is None:
        found: Array | None = roads.quick(axis, *arrays)
        if found is not None:
            return found
    elif isinstance(arrays, (Array, np.ndarray)):
        arrays = [arrays[i] for i in range(arrays.shape[0])]
    parts = tuple(arrays)
    check_arrays(roads.function.__name__, *parts)
    wanted = wanted_dtype(dtype, roads.function.__name__)
    return roads.slow(axis, parts, axis=axis, dtype=wanted)


def _concatenate_of(*arrays, axis, dtype):
    if not arrays:
        raise ValueError("Need at least one array to concatenate.")
    parts = _alike(arrays, dtype)
    if not typeof(parts[0]).ndim:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    return lax.concatenate(parts, one_axis(axis, typeof(parts[0]).ndim))


def _stack_of(*arrays, axis, dtype):
    if not arrays:
        raise ValueError("Need at least one array to stack.")
    shapes = {typeof(x).shape for x in arrays}
    if len(shapes) > 1:
        raise ValueError(f"All input arrays must have the same shape, got {sorted(shapes)}.")
    at = one_axis(axis, typeof(arrays[0]).ndim + 1)
    rows = [lax.expand_dims(x, (at,)) for x in _alike(arrays, dtype)]
    return lax.concatenate(rows, at)


_concatenate_of.__name__ = "concatenate"
_stack_of.__name__ = "stack"
_JOINING: Final = ("axis", "dtype")
_concatenation: Final = ShortRoads(library_function(_concatenate_of, static_argnames=_JOINING))
_stacking: Final = ShortRoads(library_function(_stack_of, static_argnames=_JOINING))
