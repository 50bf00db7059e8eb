"""Reshaping: the same elements in another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, lower
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._lower.lazy import hlo, mlir, shaped
from .._runtime.sharding import ShardingLike
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, Shape
from .._transform.batching import move_axis
from .broadcasting import broadcast_in_dim
from .elementwise import linear, sum_axes
from .out_sharding import (
    batched_sharding,
    out_sharding_of,
    sharded_result,
    sharding_like,
    with_sharding,
)
from .permuting import transpose
from .shapes import canonical_axis, canonical_shape, inserted, int_tuple, past, tail_of, without

reshape_p: Final = Primitive("reshape")
squeeze_p: Final = Primitive("squeeze")
tile_p: Final = Primitive("tile")


def reshape(
    operand: ArrayLike,
    new_sizes: Shape,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """The elements of an array, in row-major order, in another shape.

    Args:
      operand: array with the number of elements of the new shape.
      new_sizes: the new shape; -1 is not supported.
      dimensions: order in which the operand's axes are read, a permutation; by default the order
        of the axes.
      out_sharding: sharding of the result over mesh axes of the type ``Explicit``; ``None``
        leaves it to the operand.

    Returns:
      An array of the new shape and of the operand's dtype.

    Raises:
      TypeError: if the numbers of elements differ, or ``dimensions`` is not a permutation.

    The function is linear. Under ``vmap`` the mapped axis is left out of the operation, which
    runs on the whole batch.

    >>> reshape(np.arange(4), (2, 2)).tolist()
    [[0, 1], [2, 3]]
    >>> reshape(np.arange(4).reshape(2, 2), (4,), (1, 0)).tolist()
    [0, 2, 1, 3]
    """
    if hasattr(new_sizes, "__index__") and not hasattr(new_sizes, "__len__"):
        new_sizes = (new_sizes,)
    try:
        sizes = canonical_shape(new_sizes)
    except TypeError as e:
        if "nonnegative" in str(e):
            raise TypeError(
                f"reshape new_sizes must all be positive, got {tuple(new_sizes)}."
            ) from None
        raise
    order = None if dimensions is None else int_tuple("reshape", "dimensions", dimensions)
    aval = typeof(operand)
    if order == tuple(range(aval.ndim)):
        order = None
    sharding = out_sharding_of("reshape", out_sharding)
    if order is None and aval.shape == sizes and isinstance(operand, Array) and sharding is None:
        return operand
    return reshape_p.bind(operand, new_sizes=sizes, dimensions=order, sharding=sharding)


@reshape_p.rule(abstract)
def _reshape_abstract(x, *, new_sizes, dimensions, sharding):
    if math.prod(new_sizes) != x.size:
        raise TypeError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} for shape {x.shape}: "
            f"number of output elements ({math.prod(new_sizes)}) doesn't match expected number of "
            f"elements ({x.size})."
        )
    if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
        raise TypeError(
            "reshape dimensions must be a permutation of operand dimensions, got dimensions "
            f"{dimensions} for shape {x.shape}."
        )
    return with_sharding(reshape_p, ShapedArray(new_sizes, x.dtype, x.weak_type), sharding)


@reshape_p.rule(lower)
@sharded_result(reshape_p, "sharding")
def _reshape_lower(ctx, x, *, new_sizes, dimensions, sharding):
    if dimensions is not None:
        n = len(dimensions)
        x = hlo.transpose(x, mlir.i64s((*dimensions, *range(n, n + len(tail_of(ctx.in_avals[0]))))))
    return shaped.reshape(x, mlir.physical(ctx.out_avals[0]).shape)


def _reshape_back(ct, x: ShapedArray, *, new_sizes, dimensions, sharding):
    if dimensions is None:
        sharding = sharding_like(x, typeof(ct))
        return reshape_p.bind(ct, new_sizes=x.shape, dimensions=None, sharding=sharding)
    return transpose(reshape(ct, [x.shape[d] for d in dimensions]), np.argsort(dimensions))


linear(reshape_p, _reshape_back)


@reshape_p.rule(batch)
def _reshape_batch(axis, args, dims, *, new_sizes, dimensions, sharding):
    x = move_axis(args[0], dims[0], 0, axis.size)
    order = None if dimensions is None else (0, *past(0, dimensions))
    out = reshape_p.bind(
        x, new_sizes=(axis.size, *new_sizes), dimensions=order,
        sharding=batched_sharding(sharding, 0, axis),
    )  # fmt: skip
    return out, 0


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Remove some axes of size 1.

    Args:
      array: the array.
      dimensions: axes to remove; negative axes count from the end.

    Returns:
      An array with the same elements and fewer axes.

    Raises:
      ValueError: if an axis does not exist, appears twice or has another size.

    The function is linear, a reshape. Under ``vmap`` the mapped axis is left out of the
    operation, which runs on the whole batch.

    >>> squeeze(np.ones((1, 3)), (0,)).shape
    (3,)
    >>> squeeze(np.ones((1, 3, 1)), (0, -1)).shape
    (3,)
    """
    ndim = typeof(array).ndim
    axes = tuple([canonical_axis(d, ndim) for d in int_tuple("squeeze", "dimensions", dimensions)])
    if not axes and isinstance(array, Array):
        return array
    return squeeze_p.bind(array, dimensions=axes)


@squeeze_p.rule(abstract)
def _squeeze_abstract(x, *, dimensions):
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"dimensions are not unique: {dimensions}")
    if any(x.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={x.shape} and dimensions={dimensions}"
        )
    return ShapedArray(without(x.shape, dimensions), x.dtype, x.weak_type)


@squeeze_p.rule(lower)
def _squeeze_lower(ctx, x, *, dimensions):
    return shaped.reshape(x, mlir.physical(ctx.out_avals[0]).shape)


linear(squeeze_p, lambda ct, x, *, dimensions: expand_dims(ct, dimensions))


@squeeze_p.rule(batch)
def _squeeze_batch(axis, args, dims, *, dimensions):
    (dim,) = dims
    out = squeeze(args[0], past(dim, dimensions))
    return out, dim - sum(d < dim for d in dimensions)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Add axes of size 1.

    Args:
      array: the array.
      dimensions: the new axes of the result; negative axes count from the end.

    Returns:
      An array with the same elements and more axes.

    Raises:
      ValueError: if an axis is out of range or appears twice.

    The function is linear, a reshape. Under ``vmap`` the mapped axis is left out of the
    operation, which runs on the whole batch.

    >>> expand_dims(np.ones(3), (0, 2)).shape
    (1, 3, 1)
    >>> expand_dims(np.ones(3), (-1,)).shape
    (3, 1)
    """
    shape = typeof(array).shape
    new_axes = tuple(dimensions)
    ndim = len(shape) + len(set(new_axes))
    axes = {canonical_axis(d, ndim) for d in new_axes}
    if len(axes) != len(new_axes):
        raise ValueError(f"repeated axis in lax.expand_dims: {new_axes}")
    old = iter(shape)
    sizes = [1 if i in axes else next(old) for i in range(ndim)]
    return broadcast_in_dim(array, sizes, without(range(ndim), axes))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge a range of consecutive axes into one.

    Args:
      operand: the array.
      start_dimension: first axis of the range; a negative one counts from the end.
      stop_dimension: the axis after the last one; by default the range ends at the last axis.

    Returns:
      An array with the same elements, in row-major order.

    Raises:
      ValueError: if the range is not valid.

    The function is linear, a reshape. Under ``vmap`` the mapped axis is left out of the
    operation, which runs on the whole batch.

    >>> collapse(np.ones((2, 3, 4)), 1).shape
    (2, 12)
    >>> collapse(np.ones((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    shape = typeof(operand).shape
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        raise ValueError(
            f"Invalid dimension range passed to collapse: {shape}"
            f"[{start_dimension}:{stop_dimension}]"
        )
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat the array ``reps[i]`` times along axis ``i``.

    Args:
      operand: the array.
      reps: a nonnegative number of repetitions for each axis.

    Returns:
      An array of the operand's dtype; size ``i`` is ``reps[i]`` times the operand's.

    Raises:
      TypeError: if the number of counts is not the number of axes, or a count is negative.

    The function is linear: the cotangents of the copies are added. Under ``vmap`` the mapped axis
    is left out of the operation, which runs on the whole batch.

    >>> tile(np.arange(2), (2,)).tolist()
    [0, 1, 0, 1]
    >>> tile(np.arange(2).reshape(1, 2), (2, 2)).tolist()
    [[0, 1, 0, 1], [0, 1, 0, 1]]
    """
    return tile_p.bind(operand, reps=int_tuple("tile", "reps", reps))


@tile_p.rule(abstract)
def _tile_abstract(x, *, reps):
    if len(reps) != x.ndim:
        raise TypeError(
            f"reps length must be equal to the ndim of x, got len(reps)={len(reps)} and "
            f"x.ndim={x.ndim}."
        )
    if any(r < 0 for r in reps):
        raise TypeError(f"tile reps must have every element be nonnegative, got {reps}.")
    return ShapedArray(tuple([n * r for n, r in zip(x.shape, reps)]), x.dtype, x.weak_type)


def _interleaved(reps, shape) -> tuple[int, ...]:
    """The counts and the sizes in alternation."""
    return tuple([v for pair in zip(reps, shape) for v in pair])


@tile_p.rule(lower)
def _tile_lower(ctx, x, *, reps):
    n, aval = len(reps), ctx.in_avals[0]
    tail = tail_of(aval)
    shape = (*_interleaved(reps, aval.shape), *tail)
    dims = (*range(1, 2 * n, 2), *range(2 * n, 2 * n + len(tail)))
    tall = shaped.broadcast_in_dim(x, shape, dims)
    return shaped.reshape(tall, mlir.physical(ctx.out_avals[0]).shape)


def _tile_back(ct, x: ShapedArray, *, reps):
    apart = reshape(ct, _interleaved(reps, x.shape))
    return sum_axes(apart, tuple(range(0, 2 * len(reps), 2)))


linear(tile_p, _tile_back)


@tile_p.rule(batch)
def _tile_batch(axis, args, dims, *, reps):
    return tile_p.bind(args[0], reps=inserted(reps, dims[0], 1)), dims[0]


@reshape_p.rule(samples)
def _reshape_samples():
    yield Sample(f32(2, 3), new_sizes=(3, 2), dimensions=None, sharding=None)
    yield Sample(f32(2, 3), new_sizes=(6,), dimensions=(1, 0), sharding=None)
    yield Sample(c64(), new_sizes=(1, 1), dimensions=None, sharding=None)
    yield Sample(bf16(0, 3), new_sizes=(2, 0), dimensions=None, sharding=None)
    yield Sample(f32(2, 3), new_sizes=(4,), dimensions=None, sharding=None).set(raises=TypeError)


@squeeze_p.rule(samples)
def _squeeze_samples():
    yield Sample(f32(1, 3, 1), dimensions=(0, 2))
    yield Sample(c64(2, 1), dimensions=(1,))
    yield Sample(bf16(1, 0), dimensions=(0,))


@tile_p.rule(samples)
def _tile_samples():
    yield Sample(f32(2, 3), reps=(2, 1))
    yield Sample(c64(2), reps=(3,))
    yield Sample(bf16(), reps=())
    yield Sample(f32(2), reps=(0,))
