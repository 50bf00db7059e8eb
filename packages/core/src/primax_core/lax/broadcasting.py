"""Broadcasts, constant arrays and ``iota``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.jaxpr import is_scalar_literal
from .._ir.placement import is_placed
from .._ir.primitive import Primitive, abstract, batch, lower
from .._ir.printer import ALWAYS, hide_defaults
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._ir.symbolic_dims import as_size
from .._lower.lazy import shaped
from .._runtime.array import ArrayImpl, move
from .._runtime.sharding import Sharding, ShardingLike, as_sharding
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.structural import (
    broadcast_in_dim_p as broadcast_in_dim_p,
    literal as literal,
    sum_axes,
)
from .._trace.typing import ArrayLike, DTypeLike, Shape
from .conversion import convert
from .elementwise import accepts, linear
from .out_sharding import batched_sharding, out_sharding_of, sharded_result, with_sharding
from .shapes import canonical_shape, inserted, int_tuple, tail_of

hide_defaults("broadcast_in_dim", shape=ALWAYS, broadcast_dimensions=(), sharding=None)


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Shape,
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Broadcast an array to a shape, with an explicit correspondence of the axes.

    Args:
      operand: an array or a number.
      shape: shape of the result.
      broadcast_dimensions: for each axis of the operand, the corresponding axis of the result,
        all different. The operand's size is the result's size, or 1. The operand is repeated
        along all other axes.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``; ``None``
        leaves it to the operand.

    Returns:
      An array of the given shape and of the operand's dtype.

    Raises:
      TypeError: if the operand cannot be broadcast to the shape, or an axis is missing or out of
        range.

    The function is linear: the cotangent is summed over the axes that were broadcast. Under
    ``vmap`` the mapped axis is left out of the operation, which runs on the whole batch.

    >>> broadcast_in_dim(np.arange(2), (2, 3), (0,)).tolist()
    [[0, 0, 0], [1, 1, 1]]
    >>> broadcast_in_dim(np.arange(3), (2, 3), (1,)).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    shape, dims = tuple(shape), tuple(broadcast_dimensions)
    sharding = out_sharding_of("broadcast_in_dim", out_sharding)
    if sharding is None and typeof(operand).shape == shape and dims == tuple(range(len(shape))):
        if isinstance(operand, Array):
            return operand
    for what, values in (("shape", shape), ("broadcast_dimensions", dims)):
        if not all(type(d) is int for d in values) and not all(map(_is_index, values)):
            raise TypeError(
                f"broadcast_in_dim {what} must have every element be an integer type, got "
                f"{tuple(type(d) for d in values)}."
            )
    return broadcast_in_dim_p.bind(
        operand,
        shape=int_tuple("broadcast_in_dim", "shape", shape),
        broadcast_dimensions=int_tuple("broadcast_in_dim", "broadcast_dimensions", dims),
        sharding=sharding,
    )


def _is_index(d) -> bool:
    return hasattr(d, "__index__")


@broadcast_in_dim_p.rule(abstract)
def _broadcast_in_dim_abstract(x, *, shape, broadcast_dimensions, sharding):
    dims = broadcast_dimensions
    if len(shape) < x.ndim:
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand "
            f"shape; got operand ndim {x.ndim} and target broadcast ndim {len(shape)}."
        )
    if len(dims) != x.ndim:
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got "
            f"broadcast_dimensions {dims} for operand ndim {x.ndim}."
        )
    for what, values in (("shape", shape), ("broadcast_dimensions", dims)):
        if any(v < 0 for v in values):
            raise TypeError(
                f"broadcast_in_dim {what} must have every element be nonnegative, got {values}."
            )
    if any(d >= len(shape) for d in dims):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got "
            f"{dims} for operand ndim {x.ndim} and shape {shape}."
        )
    if len(set(dims)) != len(dims):
        raise TypeError(f"broadcast_in_dim broadcast_dimensions must be unique, got {dims}.")
    if any(n != 1 and n != shape[d] for n, d in zip(x.shape, dims)):
        raise TypeError(
            "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their "
            "corresponding dimensions in the target broadcast shape; got operand of shape "
            f"{x.shape}, target broadcast shape {shape}, broadcast_dimensions {dims}."
        )
    return with_sharding(broadcast_in_dim_p, ShapedArray(shape, x.dtype, x.weak_type), sharding)


@broadcast_in_dim_p.rule(lower)
@sharded_result(broadcast_in_dim_p, "sharding")
def _broadcast_in_dim_lower(ctx, x, *, shape, broadcast_dimensions, sharding):
    n, tail = len(shape), tail_of(ctx.in_avals[0])
    dims = (*broadcast_dimensions, *range(n, n + len(tail)))
    return shaped.broadcast_in_dim(x, (*shape, *tail), dims)


def _sum_back(ct, x: ShapedArray, *, shape, broadcast_dimensions, sharding):
    """Transpose of the broadcast: sum over the repeated axes."""
    sources = {d: i for i, d in enumerate(broadcast_dimensions) if x.shape[i] == shape[d]}
    ct = sum_axes(ct, tuple([d for d in range(len(shape)) if d not in sources]))
    return broadcast_in_dim(ct, x.shape, tuple([sources[d] for d in sorted(sources)]))


linear(broadcast_in_dim_p, _sum_back)


@broadcast_in_dim_p.rule(batch)
def _broadcast_in_dim_batch(axis, args, dims, *, shape, broadcast_dimensions, sharding):
    (x,), (dim,) = args, dims
    # The mapped axis is inserted after the axis that precedes it in the operand.
    at = 0 if dim == 0 else broadcast_dimensions[dim - 1] + 1
    moved = inserted([d + (d >= at) for d in broadcast_dimensions], dim, at)
    out = broadcast_in_dim_p.bind(
        x, shape=inserted(shape, at, axis.size), broadcast_dimensions=moved,
        sharding=batched_sharding(sharding, at, axis),
    )  # fmt: skip
    return out, at


def broadcast(
    operand: ArrayLike, sizes: Shape, *, out_sharding: ShardingLike | None = None
) -> Array:
    """Repeat an array along new leading axes of the given sizes.

    Args:
      operand: an array or a number.
      sizes: the sizes of the new axes.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``; ``None``
        leaves it to the operand.

    Returns:
      An array of shape ``(*sizes, *operand.shape)`` and of the operand's dtype.

    Raises:
      TypeError: if a size is negative.

    The function is linear: the cotangent is summed over the new axes. Under ``vmap`` the mapped
    axis is left out of the operation, which runs on the whole batch.

    >>> broadcast(np.arange(2), (3,)).tolist()
    [[0, 1], [0, 1], [0, 1]]
    >>> broadcast(1.0, (2, 3)).shape
    (2, 3)
    """
    sizes = tuple(sizes)
    shape = typeof(operand).shape
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim(operand, (*sizes, *shape), dims, out_sharding=out_sharding)


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast together, by NumPy's rules.

    Shapes are aligned at the end; in each axis all sizes are equal or 1.

    Args:
      shapes: tuples of sizes, also symbolic ones.

    Returns:
      A tuple of sizes; ``()`` without arguments.

    Raises:
      ValueError: if the shapes are incompatible.

    Nothing is computed: the function can be used while a function is traced.

    >>> broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    >>> broadcast_shapes((4, 1, 5), (1, 2, 5))
    (4, 2, 5)
    """
    rank = max([len(s) for s in shapes], default=0)
    sizes = [1] * rank
    for shape in shapes:
        shape = tuple(shape)
        if any(d < 0 for d in shape):
            raise TypeError(
                "Only non-negative indices are allowed when broadcasting static shapes, but got "
                f"shape {shape}."
            )
        for i, d in enumerate(shape, rank - len(shape)):
            if d != 1:
                if sizes[i] not in (1, d):
                    raise ValueError(
                        f"Incompatible shapes for broadcasting: shapes={[tuple(s) for s in shapes]}"
                    )
                sizes[i] = as_size(d)
    return tuple(sizes)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Add leading axes of size 1 until the array has at least ``rank`` axes.

    Args:
      x: an array or a number.
      rank: the number of axes.

    Returns:
      An array with ``max(rank, x.ndim)`` axes, of the dtype of ``x``.

    Raises:
      TypeError: if ``x`` is not an array or a number.

    The function is linear, a reshape. Under ``vmap`` the mapped axis is left out of the
    operation, which runs on the whole batch.

    >>> broadcast_to_rank(np.zeros(3), 2).shape
    (1, 3)
    >>> broadcast_to_rank(np.zeros((2, 3)), 1).shape
    (2, 3)
    """
    shape = typeof(x).shape
    extra = rank - len(shape)
    if extra <= 0:
        return x if isinstance(x, Array) else broadcast_in_dim(x, shape, tuple(range(len(shape))))
    return broadcast_in_dim(x, (1,) * extra + shape, tuple(range(extra, rank)))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcast an array to the shape of another, by NumPy's rules.

    Axes are aligned at the end, and missing ones are added in front.

    Args:
      arr: the array to broadcast.
      like_arr: an array whose shape is used, not its values or dtype.

    Returns:
      An array of the shape of ``like_arr`` and of the dtype of ``arr``.

    Raises:
      ValueError: if ``like_arr`` has fewer axes.
      TypeError: if the sizes are incompatible.

    The function is linear in ``arr``: the cotangent is summed over the axes that were broadcast.
    Under ``vmap`` the mapped axis is left out of the operation, which runs on the whole batch.

    >>> broadcast_like(np.arange(3), np.zeros((2, 3))).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    shape, target = typeof(arr).shape, typeof(like_arr).shape
    if len(shape) > len(target):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={shape} shape={target}"
        )
    return broadcast_in_dim(arr, target, tuple(range(len(target) - len(shape), len(target))))


# Constants


def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: ShardingLike | None = None,
) -> Array:
    """An array filled with one value.

    Args:
      shape: shape of the result, a tuple of sizes or one size.
      fill_value: a scalar. Without ``dtype`` the result has its dtype and weak type.
      dtype: dtype of the result. The value is converted; it wraps if it exceeds an integer dtype,
        and the fraction of a float is dropped.
      sharding: sharding of the result.

    Returns:
      An array of the given shape.

    Raises:
      TypeError: if ``fill_value`` is not a scalar, the shape is not valid, or arrays cannot have
        the dtype.

    The function is linear in ``fill_value``: its cotangent is the sum.

    >>> full((2,), 3.0).tolist()
    [3.0, 3.0]
    >>> full((2,), 300, np.uint8).tolist()
    [44, 44]
    """
    shape = (shape,) if _is_index(shape) and not typeof(shape).shape else shape
    sizes = canonical_shape(shape, "full")
    aval = typeof(fill_value)
    if aval.shape:
        raise TypeError(
            "full must be called with scalar fill_value, got fill_value.shape "
            f"{aval.shape}. To repeat an array use broadcast_in_dim."
        )
    if dtype is None:
        fill_aval = aval
    else:
        fill_aval = ShapedArray((), dtypes.canonicalize_user_dtype(dtype, "full"))
    return _filled(fill_value, fill_aval, sizes, sharding)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    sharding: ShardingLike | None = None,
) -> Array:
    """An array filled with one value, by default with the shape and dtype of another array.

    Without ``dtype`` the result has the weak type of ``x``. Without ``shape`` and ``sharding`` it
    has the sharding of ``x`` if that is an array on several devices.

    Args:
      x: an array or a number. Its values are not read.
      fill_value: a scalar.
      dtype: dtype of the result; by default that of ``x``.
      shape: shape of the result; by default that of ``x``.
      sharding: sharding of the result.

    Returns:
      An array of that shape and dtype.

    Raises:
      TypeError: if ``fill_value`` is not a scalar, or the shape or dtype is not valid.

    >>> full_like(np.zeros(2, np.int32), 7).tolist()
    [7, 7]
    >>> full_like(np.zeros(2, np.int32), 0.5, np.float32, (3,)).tolist()
    [0.5, 0.5, 0.5]
    """
    like = typeof(x)
    sizes = like.shape if shape is None else canonical_shape(shape, "full_like")
    if dtype is None:
        fill_aval = ShapedArray((), like.dtype, like.weak_type)
    else:
        fill_aval = ShapedArray((), dtypes.canonicalize_user_dtype(dtype, "full_like"))
    if typeof(fill_value).shape:
        raise TypeError(
            "full_like must be called with scalar fill_value, got fill_value.shape "
            f"{typeof(fill_value).shape}."
        )
    if sharding is None and shape is None and isinstance(x, ArrayImpl) and x._spec.committed:
        sharding = x.sharding if x.sharding.num_devices > 1 else None
    elif sharding is None and shape is None and is_placed(like):
        sharding = like.placement.sharding
    return _filled(fill_value, fill_aval, sizes, sharding)


def empty(shape: Shape, dtype: DTypeLike, *, out_sharding: ShardingLike | None = None) -> Array:
    """An array with unspecified values.

    They are zeros at present, on which callers must not depend.

    Args:
      shape: shape of the result.
      dtype: dtype of the result.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``; ``None``
        leaves it to the operand.

    Returns:
      An array of the given shape and dtype.

    Raises:
      TypeError: if the shape is not valid or arrays cannot have the dtype.

    >>> empty((2, 3), np.float32).shape
    (2, 3)
    >>> empty((), np.int8).dtype.name
    'int8'
    """
    return full(shape, 0, dtype, sharding=out_sharding)


def _filled(value: Any, aval: ShapedArray, shape: tuple[int, ...], sharding: Any) -> Array:
    """An array filled with a scalar that is converted to the dtype of ``aval``."""
    sharding = as_sharding(sharding)
    if sharding is not None and not isinstance(sharding, Sharding):
        raise TypeError(
            f"the sharding of a new array is a device, a sharding or None, got {sharding!r} of "
            f"type {type(sharding).__name__}"
        )
    if isinstance(aval.dtype, dtypes.ExtendedDType) and not isinstance(value, Array):
        return _placed(_filled_extended(value, aval, shape), sharding)
    if is_scalar_literal(value):
        value = literal(value, aval)
    elif typeof(value) is not aval:
        value = convert(value, aval.dtype, aval.weak_type)
    several = sharding is not None and sharding.num_devices > 1
    out = broadcast_in_dim_p.bind(
        value, shape=shape, broadcast_dimensions=(), sharding=sharding if several else None
    )
    return out if several else _placed(out, sharding)


def _filled_extended(value, aval: ShapedArray, shape) -> Array:
    return aval.dtype.full(shape, value)


def _placed(x: Array, sharding: Any) -> Array:
    """The array, moved to a sharding if it is concrete."""
    if sharding is None or not isinstance(x, ArrayImpl):
        return x
    return move(x, sharding)


# iota

iota_p: Final = Primitive("iota")


def iota(dtype: DTypeLike, size: int) -> Array:
    """The numbers ``0, 1, ..., size - 1``.

    Args:
      dtype: dtype of the result, an integer, floating or complex one.
      size: the number of elements, a nonnegative integer.

    Returns:
      A vector of the given size and dtype.

    Raises:
      TypeError: if the dtype is not numeric or the size is negative.

    The elements are generated where they are used; an executable contains no table of them.

    >>> iota(np.int32, 3).tolist()
    [0, 1, 2]
    >>> iota(np.float32, 3).tolist()
    [0.0, 1.0, 2.0]
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: DTypeLike, shape: Shape, dimension: int, *, out_sharding: ShardingLike | None = None
) -> Array:
    """An array whose elements are their indices along one axis.

    Args:
      dtype: dtype of the result, an integer, floating or complex one.
      shape: shape of the result.
      dimension: the axis whose indices are the elements, nonnegative.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``; ``None``
        leaves it to the operand.

    Returns:
      An array of the given shape and dtype.

    Raises:
      TypeError: if the dtype is not numeric or the shape is not valid.
      ValueError: if the axis does not exist.

    >>> broadcasted_iota(np.int32, (2, 2), 1).tolist()
    [[0, 1], [0, 1]]
    >>> broadcasted_iota(np.int32, (2, 2), 0).tolist()
    [[0, 0], [1, 1]]
    """
    return iota_p.bind(
        dtype=dtypes.canonicalize_user_dtype(dtype, "broadcasted_iota"),
        shape=canonical_shape(shape, "iota"),
        dimension=int(dimension),
        sharding=out_sharding_of("iota", out_sharding),
    )


@iota_p.rule(abstract)
def _iota_abstract(*, dtype, shape, dimension, sharding):
    if not accepts(dtype, ("number",)):
        raise TypeError(
            f"iota does not accept dtype {dtype.name}. Accepted dtypes are subtypes of integer, "
            "complexfloating, floating."
        )
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"iota dimension must be between 0 and len(shape), got dimension={dimension} for "
            f"shape={shape}"
        )
    return with_sharding(iota_p, ShapedArray(shape, dtype), sharding)


@iota_p.rule(lower)
@sharded_result(iota_p, "sharding")
def _iota_lower(ctx, *, dtype, shape, dimension, sharding):
    return shaped.iota(shape, dtype, dimension)


@broadcast_in_dim_p.rule(samples)
def _broadcast_in_dim_samples():
    yield Sample(f32(), shape=(2, 3), broadcast_dimensions=(), sharding=None)
    yield Sample(f32(3), shape=(2, 3), broadcast_dimensions=(1,), sharding=None)
    yield Sample(f32(2, 1), shape=(2, 4, 3), broadcast_dimensions=(0, 2), sharding=None)
    yield Sample(c64(0), shape=(2, 0), broadcast_dimensions=(1,), sharding=None)
    yield Sample(bf16(2), shape=(2, 2), broadcast_dimensions=(0,), sharding=None)


@iota_p.rule(samples)
def _iota_samples():
    for dtype, shape, axis in ((np.int32, (4,), 0), (np.float32, (2, 3), 1), (np.uint8, (0, 2), 0)):
        yield Sample(dtype=np.dtype(dtype), shape=shape, dimension=axis, sharding=None)
