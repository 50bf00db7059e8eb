"""Static slices and padding, which are each other's transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._ir.symbolic_dims import max_dim
from .._lower.lazy import shaped
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, Shape
from .._transform.batching import move_axis
from .._transform.zeros import Zero, instantiate, is_linear
from .broadcasting import broadcast_in_dim, full, full_like
from .elementwise import linear, scalar_like, sum_axes
from .reshaping import squeeze
from .selection import select_n
from .shapes import canonical_axis, inserted, int_tuple, tail_of

slice_p: Final = Primitive("slice")
pad_p: Final = Primitive("pad")


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Shape,
    strides: Sequence[int] | None = None,
) -> Array:
    """The elements at static indices ``start, start + stride, ... < limit`` along each axis.

    Args:
      operand: the array.
      start_indices: the first index for each axis, nonnegative.
      limit_indices: the end for each axis: not less than the start, not greater than the size.
      strides: the distance of elements for each axis, positive; 1 by default.

    Returns:
      An array of the operand's dtype.

    Raises:
      TypeError: if a range exceeds the array, or the number of ranges is not the number of axes.

    The function is linear: the cotangent is padded with zeros. For computed start indices see
    :func:`dynamic_slice`. Under ``vmap`` the mapped axis is left out of the operation, which runs
    on the whole batch.

    >>> slice(np.arange(6), (1,), (6,), (2,)).tolist()
    [1, 3, 5]
    >>> slice(np.arange(6).reshape(2, 3), (0, 1), (2, 3)).tolist()
    [[1, 2], [4, 5]]
    """
    return slice_p.bind(
        operand,
        start_indices=int_tuple("slice", "start_indices", start_indices),
        limit_indices=int_tuple("slice", "limit_indices", limit_indices),
        strides=None if strides is None else int_tuple("slice", "strides", strides),
    )


@slice_p.rule(abstract)
def _slice_abstract(x, *, start_indices, limit_indices, strides):
    start, limit = start_indices, limit_indices
    for name, values in (("start_indices", start), ("limit_indices", limit)):
        if len(values) != x.ndim:
            raise TypeError(
                f"slice {name} must have length equal to the number of dimensions of the operand, "
                f"got {name} {values} for operand shape {x.shape}."
            )
    if any(s < 0 for s in start):
        raise TypeError(f"slice start_indices must have every element be nonnegative, got {start}.")
    if any(a > n for a, n in zip(limit, x.shape)):
        raise TypeError(
            "slice limit_indices must be less than or equal to operand shape, got limit_indices "
            f"{limit} for operand shape {x.shape}."
        )
    if any(a < s for a, s in zip(limit, start)):
        raise TypeError(
            "slice limit_indices must be greater than or equal to start_indices, got start_indices "
            f"{start} and limit_indices {limit}."
        )
    if strides is None:
        return ShapedArray(tuple([a - s for s, a in zip(start, limit)]), x.dtype, x.weak_type)
    if len(strides) != x.ndim:
        raise TypeError(
            "slice strides must have length equal to the number of dimensions of the operand, got "
            f"strides {strides} for operand shape {x.shape}."
        )
    if any(s <= 0 for s in strides):
        raise TypeError(f"slice strides must have every element be positive, got {strides}.")
    shape = [(a - s + k - 1) // k for s, a, k in zip(start, limit, strides)]
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


@slice_p.rule(lower)
def _slice_lower(ctx, x, *, start_indices, limit_indices, strides):
    tail = tail_of(ctx.in_avals[0])
    return shaped.slice(
        x,
        (*start_indices, *(0,) * len(tail)),
        (*limit_indices, *tail),
        (*(strides or (1,) * len(start_indices)), *(1,) * len(tail)),
    )


def _slice_back(ct, x: ShapedArray, *, start_indices, limit_indices, strides):
    """Transpose of a slice: the cotangent, padded with zeros."""
    config = []
    for n, taken, start, stride in zip(
        x.shape, typeof(ct).shape, start_indices, strides or (1,) * x.ndim
    ):
        end = start + taken + max_dim(taken - 1, 0) * (stride - 1)
        config.append((start, n - end, stride - 1))
    return pad(ct, scalar_like(ct, 0), config)


linear(slice_p, _slice_back)


@slice_p.rule(batch)
def _slice_batch(axis, args, dims, *, start_indices, limit_indices, strides):
    (dim,) = dims
    out = slice_p.bind(
        args[0],
        start_indices=inserted(start_indices, dim, 0),
        limit_indices=inserted(limit_indices, dim, axis.size),
        strides=None if strides is None else inserted(strides, dim, 1),
    )
    return out, dim


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """A slice along one axis, at static indices.

    Args:
      operand: the array.
      start_index: the first index, or ``None`` for 0; a negative one counts from the end.
      limit_index: the end, or ``None`` for the size; a negative one counts from the end.
      stride: the distance of elements, positive.
      axis: the axis; a negative one counts from the end.

    Returns:
      An array of the operand's dtype and rank.

    Raises:
      TypeError: if the range exceeds the array or the limit is less than the start.
      ValueError: if the axis does not exist.

    The function is linear: the cotangent is padded with zeros. Under ``vmap`` the mapped axis is
    left out of the operation, which runs on the whole batch.

    >>> slice_in_dim(np.arange(6), 1, -1).tolist()
    [1, 2, 3, 4]
    >>> slice_in_dim(np.arange(6), None, None, stride=2).tolist()
    [0, 2, 4]
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    n = shape[axis]
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    if start_index is not None:
        starts[axis] = start_index + n if start_index < 0 else start_index
    if limit_index is not None:
        limits[axis] = limit_index + n if limit_index < 0 else limit_index
    strides[axis] = stride
    return slice(operand, starts, limits, strides)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The elements at one static index along an axis.

    Args:
      operand: the array.
      index: a Python integer; a negative one counts from the end.
      axis: the axis; a negative one counts from the end.
      keepdims: keep the axis with size 1.

    Returns:
      An array of the operand's dtype.

    Raises:
      IndexError: if the index is out of range.
      ValueError: if the axis does not exist.

    The function is linear: the cotangent is padded with zeros. Under ``vmap`` the mapped axis is
    left out of the operation, which runs on the whole batch.

    >>> index_in_dim(np.arange(6), -1, keepdims=False).tolist()
    5
    >>> index_in_dim(np.arange(6), 2).tolist()
    [2]
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    n = shape[axis]
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {n}")
    index = int(index) % n
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


def pad(
    operand: ArrayLike,
    padding_value: ArrayLike,
    padding_config: Sequence[tuple[int, int, int]],
) -> Array:
    """Pad an array before, after and between its elements.

    Args:
      operand: array to pad.
      padding_value: scalar of the operand's dtype.
      padding_config: for each axis ``(low, high, interior)``: number of values before the first
        element, after the last element, and between adjacent elements. Negative ``low`` and
        ``high`` remove elements.

    Returns:
      An array of the operand's dtype.

    Raises:
      TypeError: if the dtypes differ.
      ValueError: if ``padding_value`` is not a scalar, an ``interior`` is negative, or a negative
        padding exceeds the size.

    The function is linear in both operands; the cotangent of ``padding_value`` is a sum. Under
    ``vmap`` the mapped axis is left out of the operation, which runs on the whole batch.

    >>> pad(np.array([1, 2]), 0, [(1, 0, 2)]).tolist()
    [0, 1, 0, 0, 2]
    >>> pad(np.array([1, 2, 3]), 0, [(-1, 1, 0)]).tolist()
    [2, 3, 0]
    """
    config = tuple([int_tuple("pad", "padding_config", entry) for entry in padding_config])
    if any(len(entry) != 3 for entry in config):
        raise ValueError(
            "pad padding_config must have an entry (low, high, interior) for each axis, got "
            f"{config}"
        )
    return pad_p.bind(operand, padding_value, padding_config=config)


@pad_p.rule(abstract)
def _pad_abstract(x, value, *, padding_config):
    if isinstance(x.dtype, dtypes.ExtendedDType):
        raise TypeError(f"pad does not accept dtype {x.dtype.name}; use concatenate")
    if x.dtype != value.dtype:
        raise TypeError(
            "pad operand and padding_value must be same dtype: got "
            f"{x.dtype.name} and {value.dtype.name}."
        )
    if value.shape:
        raise ValueError(
            f"padding_value must be a scalar; got np.shape(padding_value)={value.shape}"
        )
    if len(padding_config) != x.ndim:
        raise ValueError(
            "length of padding_config must equal the number of axes of operand, got padding_config "
            f"{padding_config} for operand shape {x.shape}"
        )
    if any(between < 0 for _, _, between in padding_config):
        raise ValueError(
            "interior padding in padding_config must be nonnegative, got padding_config "
            f"{padding_config}"
        )
    shape = tuple(
        [
            low + high + n + max_dim(n - 1, 0) * between
            for n, (low, high, between) in zip(x.shape, padding_config)
        ]
    )
    if any(n < 0 for n in shape):
        raise ValueError(
            f"Dimension size after padding is not at least 0, got result shape {shape}, for "
            f"padding_config {padding_config} and operand shape {x.shape}"
        )
    return ShapedArray(tuple(shape), x.dtype, x.weak_type and value.weak_type)


@pad_p.rule(lower)
def _pad_lower(ctx, x, value, *, padding_config):
    low, high, between = zip(*padding_config) if padding_config else ((), (), ())
    return shaped.pad(x, value, ctx.out_avals[0].shape, low, high, between)


@pad_p.rule(jvp)
def _pad_jvp(primals, tangents, *, padding_config):
    out = pad_p.bind(*primals, padding_config=padding_config)
    if all(type(t) is Zero for t in tangents):
        return out, Zero.like(out)
    return out, pad_p.bind(*map(instantiate, tangents), padding_config=padding_config)


def _padding_mask(shape: Sequence[int], config) -> Array:
    """True at the padding elements of the result."""
    return pad(full(shape, False), True, config)


@pad_p.rule(transpose)
def _pad_transpose(ct, x, value, *, padding_config):
    if type(ct) is Zero:
        return [None, None]
    shape = x.aval.shape if is_linear(x) else typeof(x).shape
    dx = dvalue = None
    if is_linear(x):
        dx = _unpad(ct, shape, padding_config)
    if is_linear(value):
        padding = select_n(_padding_mask(shape, padding_config), full_like(ct, 0), ct)
        dvalue = sum_axes(padding, tuple(range(len(shape))))
    return [dx, dvalue]


def _unpad(ct: Any, shape: Sequence[int], config) -> Array:
    """Transpose of padding: the elements that are not padding, zeros for removed elements."""
    apart = pad(ct, scalar_like(ct, 0), [(-low, -high, 0) for low, high, _ in config])
    if all(between == 0 for _, _, between in config):
        return apart
    strides = [between + 1 for _, _, between in config]
    return slice(apart, [0] * len(strides), typeof(apart).shape, strides)


@pad_p.rule(batch)
def _pad_batch(axis, args, dims, *, padding_config):
    (x, value), (x_dim, value_dim) = args, dims
    at = x_dim if x_dim is not None else 0
    config = inserted(padding_config, at, (0, 0, 0))
    if value_dim is None:
        return pad(x, value, config), at
    x = move_axis(x, x_dim, at, axis.size)
    padded = pad(x, np.zeros((), typeof(x).dtype)[()], config)
    shape = typeof(padded).shape
    places = _padding_mask(typeof(x).shape, config)
    return select_n(places, padded, broadcast_in_dim(value, shape, (at,))), at


@slice_p.rule(samples)
def _slice_samples():
    yield Sample(f32(5), start_indices=(1,), limit_indices=(4,), strides=None)
    yield Sample(f32(4, 5), start_indices=(0, 1), limit_indices=(4, 5), strides=(3, 2))
    yield Sample(bf16(3), start_indices=(2,), limit_indices=(2,), strides=None)
    yield Sample(c64(3, 2), start_indices=(1, 0), limit_indices=(3, 2), strides=(1, 2))
    yield Sample(f32(3), start_indices=(2,), limit_indices=(4,), strides=None).set(raises=TypeError)


@pad_p.rule(samples)
def _pad_samples():
    yield Sample(f32(3), f32(), padding_config=((1, 2, 0),))
    yield Sample(f32(2, 3), f32(), padding_config=((0, 1, 1), (-1, 2, 2)))
    yield Sample(c64(3), c64(), padding_config=((-1, -1, 0),))
    yield Sample(bf16(0, 2), bf16(), padding_config=((1, 1, 3), (0, 0, 0)))
