"""``gather``: windows of an array at computed indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.element_types import DTypeLike
from .._ir.primitive import Primitive, abstract, batch, jvp, lower
from .._ir.samples import Sample, bf16, c64, f32, i32, samples
from .._ir.symbolic_dims import is_static, min_dim
from .._lower.lazy import hlo, ir, mlir, shaped
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, Shape
from .._transform.batching import move_axis
from .._transform.zeros import Zero
from .broadcasting import broadcast_in_dim
from .comparison import compare
from .division import remainder
from .index_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    check_axes,
    check_batching,
    check_disjoint,
    check_indices,
    hashable,
)
from .joining import concatenate
from .reducing import emit_reduce
from .shapes import inserted, int_tuple, past, tail_of, without

_Mode = GatherScatterMode

gather_p: Final = Primitive("gather")


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Windows of one size at the given start indices of an array.

    Args:
      operand: array to gather from.
      start_indices: integers ``[..., n]``; each vector along the last axis is a window's start.
      dimension_numbers: the correspondence of the axes.
      slice_sizes: the window's size along each axis of the operand.
      unique_indices: promise that no two windows overlap.
      indices_are_sorted: promise that the index vectors are in lexicographic order.
      mode: treatment of windows out of bounds, see :class:`GatherScatterMode`;
        ``PROMISE_IN_BOUNDS`` by default.
      fill_value: value of windows out of bounds in mode ``fill``; by default NaN, the smallest
        signed integer, the largest unsigned integer, or True.

    Returns:
      An array of the operand's dtype, with the axes of the indices and of the windows in the
      order of ``dimension_numbers``.

    Raises:
      TypeError: if shapes and dimension numbers are incompatible.
      ValueError: if the indices are not integers or the mode is unknown.

    The gradient adds the cotangents of elements that were gathered more than once. Filled windows
    contribute nothing.

    >>> numbers = GatherDimensionNumbers((), (0,), (0,))
    >>> gather(np.arange(5), np.array([[3], [1]]), numbers, (1,)).tolist()
    [3, 1]
    """
    chosen = _Mode.PROMISE_IN_BOUNDS if mode is None else _Mode.from_any(mode)
    if chosen is _Mode.FILL_OR_DROP:
        fill_value = _fill_value(typeof(operand).dtype, fill_value)
    else:
        fill_value = None
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=hashable(dimension_numbers),
        slice_sizes=int_tuple("gather", "slice_sizes", slice_sizes),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=chosen,
        fill_value=fill_value,
    )


_NAN: Final = float("nan")  # one object, because a cache finds NaN only by identity
_COMPLEX_NAN: Final = complex(_NAN, 0.0)


def _fill_value(dtype: Any, value: Any) -> Any:
    """The fill value as a Python number."""
    if value is not None:
        if not isinstance(value, (bool, int, float, complex)):
            value = np.asarray(value).item()
        if value == value:
            return value
        return _NAN if isinstance(value, float) else _COMPLEX_NAN
    if dtypes.issubdtype(dtype, np.complexfloating):
        return _COMPLEX_NAN
    if dtypes.issubdtype(dtype, np.floating):
        return _NAN
    if dtypes.issubdtype(dtype, np.signedinteger):
        return int(dtypes.iinfo(dtype).min)
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return int(dtypes.iinfo(dtype).max)
    if dtype == np.bool_:
        return True
    return 0 if isinstance(dtype, dtypes.ExtendedDType) else None


@gather_p.rule(abstract)
def _abstract(x, indices, *, dimension_numbers, slice_sizes, **_):
    offset, collapsed, index_map, x_batch, i_batch = dimension_numbers
    check_indices("Gather", x, indices, index_map, "start_index_map")
    check_axes("gather", "collapsed_slice_dims", collapsed, x.ndim)
    names = ("operand_batching_dims", "start_indices_batching_dims")
    check_batching("Gather", x, indices, x_batch, i_batch, names)
    check_disjoint("gather", "collapsed_slice_dims", collapsed, names[0], x_batch)
    check_disjoint("gather", "start_index_map", index_map, names[0], x_batch)
    if len(slice_sizes) != x.ndim:
        raise TypeError(
            "Gather op must have one slice size for every input dimension; got: "
            f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={x.ndim}"
        )
    for i, (n, size) in enumerate(zip(slice_sizes, x.shape)):
        if not 0 <= n <= size:
            raise TypeError(
                f"Slice size at index {i} in gather op is out of range, must be within "
                f"[0, {size} + 1), got {n}."
            )
    for kind, axes in (
        ("collapse slice dims with bound 1", collapsed),
        ("have operand batching dims with bound 0/1", x_batch),
    ):
        for i, d in enumerate(axes):
            if slice_sizes[d] > 1:
                raise TypeError(
                    f"Gather op can only {kind}, but bound is {slice_sizes[d]} for index {d} at "
                    f"position {i}."
                )
    window = without(slice_sizes, (*collapsed, *x_batch))
    if len(window) != len(offset):
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension "
            f"or explicitly collapsed/batching; got len(slice_sizes)={len(slice_sizes)}, "
            f"output_slice_sizes={offset}, collapsed_slice_dims={collapsed}, "
            f"operand_batching_dims={x_batch}."
        )
    ndim = len(offset) + indices.ndim - 1
    for i, d in enumerate(offset):
        if not 0 <= d < ndim:
            raise TypeError(
                f"Offset dimension {i} in gather op is out of bounds; got {d}, but should have "
                f"been in [0, {ndim})"
            )
    check_axes("gather", "offset_dims", offset, ndim)
    inner, outer = iter(window), iter(indices.shape[:-1])
    shape = [next(inner) if i in offset else next(outer) for i in range(ndim)]
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


@gather_p.rule(lower)
def _lower(
    ctx, x, indices, *,
    dimension_numbers, slice_sizes, unique_indices, indices_are_sorted, mode, fill_value,
):  # fmt: skip
    offset, collapsed, index_map, x_batch, i_batch = dimension_numbers
    x_aval, i_aval = ctx.in_avals
    out_aval = ctx.out_avals[0]
    indices, i_dtype = widened_indices(indices, i_aval)
    tail = tail_of(x_aval)
    numbers = hlo.GatherDimensionNumbers.get(
        offset_dims=[*offset, *range(out_aval.ndim, out_aval.ndim + len(tail))],
        collapsed_slice_dims=list(collapsed),
        operand_batching_dims=list(x_batch),
        start_indices_batching_dims=list(i_batch),
        start_index_map=list(index_map),
        index_vector_dim=i_aval.ndim - 1,
    )
    shape = (*out_aval.shape, *tail)
    out = shaped.gather(
        x, indices, numbers, (*slice_sizes, *tail), shape, ir.BoolAttr.get(indices_are_sorted)
    )
    if mode not in (_Mode.FILL_OR_DROP, _Mode.ONE_HOT) or not index_map:
        return out
    upper = [x_aval.shape[d] - slice_sizes[d] for d in index_map]
    inside = _inside(indices, i_aval.shape, i_dtype, upper)
    inside = shaped.broadcast_in_dim(inside, shape, without(range(out_aval.ndim), offset))
    dtype = physical_dtype(out_aval)
    with np.errstate(all="ignore"):
        filler = shaped.full(np.asarray(fill_value or 0).astype(dtype), shape)
    return hlo.select(inside, out, filler)


def physical_dtype(aval: ShapedArray) -> Any:
    """The dtype of an array's elements in memory."""
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return aval.dtype.physical_aval(aval).dtype
    return aval.dtype


def widened_indices(indices: ArrayLike, aval: ShapedArray) -> tuple[Any, Any]:
    """Indices of at least 32 bits, comparable with the size of any axis, and their dtype."""
    dtype = aval.dtype
    if dtypes.itemsize_bits(dtype) >= 32:
        return indices, dtype
    return hlo.convert(mlir.tensor_type(aval.shape, np.dtype(np.int32)), indices), np.dtype(
        np.int32
    )


def _inside(indices, shape, dtype, upper: Sequence[int]):
    """True for each index vector with all components between 0 and their upper bounds."""
    low = shaped.full(np.zeros((), dtype), shape)
    high = bounds(upper, shape, dtype)
    above = compare("GE", indices, low, dtype)
    below = compare("LE", indices, high, dtype)
    true = mlir.constant(np.True_)
    (all_,) = emit_reduce(
        [hlo.and_(above, below)], [true], (len(shape) - 1,), lambda a, b: [hlo.and_(a[0], b[0])]
    )
    return all_


def bounds(upper: Sequence[int], shape: Sequence[int], dtype: DTypeLike) -> Any:
    """Upper bounds of the components of index vectors, broadcast to the shape of the indices."""
    top = np.iinfo(dtype).max
    if is_static(upper):
        values = mlir.constant(np.asarray([min(u, top) for u in upper], dtype))
    else:
        values_64 = shaped.size_values([min_dim(u, top) for u in upper])
        values = hlo.convert(mlir.tensor_type((len(upper),), dtype), values_64)
    return shaped.broadcast_in_dim(values, shape, [len(shape) - 1])


@gather_p.rule(jvp)
def _jvp(primals, tangents, *, fill_value, mode, **params):
    out = gather_p.bind(*primals, fill_value=fill_value, mode=mode, **params)
    (_, indices), (t, _) = primals, tangents
    if type(t) is Zero:
        return out, Zero.like(out)
    zero = 0 if mode is _Mode.FILL_OR_DROP else None
    return out, gather_p.bind(t, indices, fill_value=zero, mode=mode, **params)


@gather_p.rule(batch)
def _batch(
    axis,
    args,
    dims,
    *,
    dimension_numbers,
    slice_sizes,
    unique_indices,
    indices_are_sorted,
    **params,
):
    (x, indices), (x_dim, i_dim) = args, dims
    offset, collapsed, index_map, x_batch, i_batch = dimension_numbers
    if i_dim is None:
        # The whole mapped axis is part of each window.
        place = sum(d < x_dim for d in without(range(len(slice_sizes)), (*collapsed, *x_batch)))
        at = offset[place] if place < len(offset) else (offset[-1] + 1 if offset else 0)
        numbers = GatherDimensionNumbers(
            inserted(past(at, offset), place, at),
            past(x_dim, collapsed),
            past(x_dim, index_map),
            past(x_dim, x_batch),
            i_batch,
        )
        sizes = inserted(slice_sizes, x_dim, axis.size)
    else:
        indices, at = move_axis(indices, i_dim, 0, axis.size), 0
        offset, i_batch, sizes = past(0, offset), past(0, i_batch), slice_sizes
        if x_dim is None:
            unique_indices = indices_are_sorted = False
        else:
            x = move_axis(x, x_dim, 0, axis.size)
            collapsed, index_map = past(0, collapsed), past(0, index_map)
            x_batch, i_batch = (0, *past(0, x_batch)), (0, *i_batch)
            sizes = (min(1, axis.size), *slice_sizes)
        numbers = GatherDimensionNumbers(offset, collapsed, index_map, x_batch, i_batch)
    out = gather_p.bind(
        x,
        indices,
        dimension_numbers=numbers,
        slice_sizes=sizes,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        **params,
    )
    return out, at


def index_take(src: Array, idxs: Sequence[Array], axes: Sequence[int]) -> Array:
    """Elements of an array at indices along some axes, with one index vector for each axis.

    Indices are taken modulo the size of the axis, so negative indices count from the end.

    Args:
      src: the array.
      idxs: integer vectors of one length ``n``, one for each axis in ``axes``.
      axes: distinct nonnegative axes.

    Returns:
      Array of shape ``(n, *sizes of the other axes)``.

    Raises:
      ValueError: if the number of index vectors is not the number of axes.
      TypeError: if an axis does not exist or the indices are not integers.

    >>> index_take(np.array([5, 6, 7]), (np.array([0, -1]),), (0,)).tolist()
    [5, 7]
    """
    axes = int_tuple("index_take", "axes", axes)
    shape = typeof(src).shape
    if not idxs or len(idxs) != len(axes):
        raise ValueError(
            f"index_take requires an index vector for each axis, got {len(idxs)} for axes {axes}"
        )
    check_axes("index_take", "axes", axes, len(shape), ordered=False)
    columns = [broadcast_in_dim(i, (*typeof(i).shape, 1), (0,)) for i in idxs]
    vectors = concatenate(columns, 1)
    sizes = np.asarray([shape[a] for a in axes], typeof(vectors).dtype)
    positions = remainder(vectors, sizes[None, :])
    offset = tuple(range(1, len(shape) - len(axes) + 1))
    numbers = GatherDimensionNumbers(offset, tuple(sorted(axes)), axes)
    window = [1 if d in axes else n for d, n in enumerate(shape)]
    return gather(src, positions, numbers, window)


@gather_p.rule(samples)
def _samples():
    rows = GatherDimensionNumbers((1,), (0,), (0,))
    index = i32(4, 1, low=0, high=2)
    options = {"unique_indices": False, "indices_are_sorted": False, "fill_value": None}
    clip, fill = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
    for operand, mode in ((f32(3, 2), clip), (c64(3, 2), fill), (bf16(3, 0), clip)):
        yield Sample(operand, index, dimension_numbers=rows, slice_sizes=(1, operand.shape[1]),
                     mode=mode, **options)  # fmt: skip
    window = GatherDimensionNumbers((0, 1), (), (0, 1))
    yield Sample(f32(4, 5), i32(2, low=0, high=9), dimension_numbers=window, slice_sizes=(2, 3),
                 mode=clip, **options)  # fmt: skip
