"""Slices at computed start indices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._engine.jit_cache import library_function
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower, transpose
from .._ir.samples import Sample, bf16, c64, f32, i32, samples
from .._ir.symbolic_dims import Dimension, decided
from .._lower.lazy import hlo, mlir, shaped
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike, Shape
from .._transform.batching import move_axis
from .._transform.zeros import Zero, instantiate, is_linear
from . import arithmetic as b
from .broadcasting import full
from .comparison import lt
from .conversion import convert
from .elementwise import accepts, same_dtypes, scalar_of
from .gathering import gather
from .index_numbers import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from .joining import concatenate
from .reshaping import expand_dims, squeeze
from .scattering import scatter
from .selection import select_n
from .shapes import canonical_axis, canonical_shape, inserted, tail_of
from .slicing import index_in_dim

dynamic_slice_p: Final = Primitive("dynamic_slice")
dynamic_update_slice_p: Final = Primitive("dynamic_update_slice")


def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    slice_sizes: Shape,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A slice of static size at a computed start index.

    Args:
      operand: array to slice.
      start_indices: a scalar integer for each axis, all of one dtype, or one array of them. Start
        indices are clamped so that the slice is within the array.
      slice_sizes: the size along each axis.
      allow_negative_indices: if True, negative start indices count from the end; one bool for all
        axes or one for each.

    Returns:
      An array of shape ``slice_sizes`` and of the operand's dtype.

    Raises:
      TypeError: if the indices are not integers of one dtype, or a size exceeds the array's.
      ValueError: if the number of indices is not the number of axes.

    The function is linear in the operand: the cotangent is written into zeros. Under ``vmap``
    with mapped start indices it becomes a :func:`gather`.

    >>> dynamic_slice(np.arange(5), (1,), (3,)).tolist()
    [1, 2, 3]
    >>> dynamic_slice(np.arange(5), (4,), (3,)).tolist()
    [2, 3, 4]
    """
    shape = typeof(operand).shape
    sizes = tuple(slice_sizes) if hasattr(slice_sizes, "__len__") else slice_sizes
    indices, wrap = _indices("dynamic_slice", shape, start_indices, allow_negative_indices)
    if any(wrap):
        return _wrapped_slice(operand, *indices, wrap=wrap, slice_sizes=_sizes(sizes))
    return dynamic_slice_p.bind(operand, *indices, slice_sizes=_sizes(sizes))


def _sizes(sizes: Any) -> tuple[int, ...]:
    try:
        return tuple([operator.index(n) for n in sizes])
    except TypeError:
        return canonical_shape(sizes, "dynamic_slice")


def _indices(
    name: str, shape, start_indices: Any, allow_negative: Any
) -> tuple[list, tuple[bool, ...]]:
    """An index for each axis, and a flag for each that may be negative at run time.

    Concrete negative Python and NumPy integers are converted to indices from the front.
    """
    if isinstance(start_indices, (Array, np.ndarray)):
        if start_indices.ndim != 1:
            raise ValueError(f"Slice indices must be a 1D sequence, got {start_indices.shape}")
        n = start_indices.shape[0]
        if isinstance(start_indices, np.ndarray):
            indices: list = [
                dtypes.canonicalize_dtype(start_indices.dtype).type(v) for v in start_indices
            ]
        else:
            indices = [index_in_dim(start_indices, i, keepdims=False) for i in range(n)]
    else:
        try:
            indices = list(start_indices)
        except TypeError as e:
            raise TypeError(
                f"{name} start_indices must be a sequence of scalars or a 1D array, got "
                f"{start_indices!r}"
            ) from e
    if len(indices) != len(shape):
        raise ValueError(
            "Length of slice indices must match number of operand dimensions "
            f"({len(indices)} vs {shape})"
        )
    allowed = (
        (allow_negative,) * len(shape)
        if isinstance(allow_negative, (bool, np.bool_))
        else tuple(allow_negative)
    )
    if len(allowed) != len(shape):
        raise ValueError(
            f"{name} allow_negative_indices must be one bool, or one for each of {len(shape)} "
            f"axes, got {allowed}"
        )
    avals = [typeof(i) for i in indices]
    _check_index_types(name, avals)
    wrap = []
    for i, (index, n, ok) in enumerate(zip(indices, shape, allowed)):
        if isinstance(index, (int, np.integer)):
            indices[i] = int(index) + n if ok and index < 0 else int(index)
            wrap.append(False)
        else:
            wrap.append(bool(ok) and dtypes.issubdtype(avals[0].dtype, np.signedinteger))
    if avals:
        indices = _of_one_dtype(indices, shape, avals[0].dtype)
    return indices, tuple(wrap)


def _of_one_dtype(indices: list, shape, dtype: Any) -> list:
    """Convert Python integers to the dtype of the indices, or all indices to a wider dtype."""
    info = dtypes.iinfo(dtype)
    if any(type(i) is int and not info.min <= i <= info.max for i in indices):
        if dtypes.itemsize_bits(dtype) == 32 and all(type(i) is int and i >= 0 for i in indices):
            return [np.uint32(min(i, 2**32 - 1)) for i in indices]
        if dtypes.itemsize_bits(dtype) < 32:
            dtype = np.dtype(np.int32)
            indices = [i if type(i) is int else convert(i, dtype) for i in indices]
        # Start indices are clamped later, so those beyond the array can be clamped to its ends.
        low = max(-1, info.min)
        tops = [info.max if isinstance(n, Dimension) else n for n in shape]
        indices = [max(low, min(i, n)) if type(i) is int else i for i, n in zip(indices, tops)]
    return [_size_as(i, dtype) if isinstance(i, (int, Dimension)) else i for i in indices]


def _check_index_types(name: str, avals: Sequence[ShapedArray]) -> None:
    if len({a.dtype for a in avals}) > 1 or not all(accepts(a.dtype, ("integer",)) for a in avals):
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got: "
            f"{', '.join(a.dtype.name for a in avals)}"
        )
    if any(a.shape for a in avals):
        raise TypeError(
            f"start_indices arguments to {name} must be scalars, got indices "
            f"{', '.join(map(str, avals))}"
        )


def _from_front(index: Any, n: int, dtype: Any = None) -> Any:
    """A computed index, converted to an index from the front, in a dtype or its own."""
    own = typeof(index).dtype
    negative = lt(index, scalar_of(own, 0))
    strong = convert(index, dtype or own)
    index = strong if dtype else index
    return select_n(negative, index, b.add(strong, _size_as(n, dtype or own)))


def _size_as(n: Any, dtype: Any) -> Any:
    """A size converted to a dtype."""
    return convert(n.as_value(), dtype) if isinstance(n, Dimension) else scalar_of(dtype, n)


def _reaches_beyond(n: Any, dtype: Any) -> bool:
    """Return True if indices of an axis can exceed the range of a dtype."""
    narrow = dtypes.itemsize_bits(dtype) < 32
    return decided(lambda: n > dtypes.iinfo(dtype).max, narrow)


def _from_front_all(indices, shape, wrap) -> list:
    if any(w and _reaches_beyond(n, typeof(i).dtype) for i, n, w in zip(indices, shape, wrap)):
        wide = np.dtype(np.int32)
        indices = [i if typeof(i).dtype.itemsize > 4 else convert(i, wide) for i in indices]
        long = [_reaches_beyond(n, wide) for n in shape]
        if any(long) and typeof(indices[0]).dtype == wide:
            # 32 bits without a sign: additions modulo 2**32 give the indices from the front.
            wide = np.dtype(np.uint32)
            indices = [_from_front(i, n) if w and not far else i
                       for i, n, w, far in zip(indices, shape, wrap, long)]  # fmt: skip
            indices = [i if far else _at_least_zero(i) for i, far in zip(indices, long)]
            return [_from_front(i, n, wide) if w and far else convert(i, wide)
                    for i, n, w, far in zip(indices, shape, wrap, long)]  # fmt: skip
    return [_from_front(i, n) if w else i for i, n, w in zip(indices, shape, wrap)]


def _at_least_zero(index: Any) -> Any:
    zero = scalar_of(typeof(index).dtype, 0)
    return select_n(lt(index, zero), convert(index, typeof(index).dtype), zero)


def _wrapped_slice_program(operand, *indices, wrap, slice_sizes):
    indices = _from_front_all(indices, typeof(operand).shape, wrap)
    return dynamic_slice_p.bind(operand, *indices, slice_sizes=slice_sizes)


def _wrapped_update_program(operand, update, *indices, wrap):
    indices = _from_front_all(indices, typeof(operand).shape, wrap)
    return dynamic_update_slice_p.bind(operand, update, *indices)


_wrapped_slice = library_function(
    _wrapped_slice_program, static_argnames=("wrap", "slice_sizes"), name="dynamic_slice"
)
_wrapped_update = library_function(
    _wrapped_update_program, static_argnames=("wrap",), name="dynamic_update_slice"
)


@dynamic_slice_p.rule(abstract)
def _dynamic_slice_abstract(x, *indices, slice_sizes):
    if len(indices) != x.ndim or len(slice_sizes) != x.ndim:
        raise ValueError(
            "dynamic_slice requires an index and a size for each axis of the operand, got "
            f"{len(indices)} indices and slice_sizes {slice_sizes} for operand shape {x.shape}."
        )
    _check_index_types("dynamic_slice", indices)
    if any(n < 0 for n in slice_sizes):
        raise TypeError(
            "slice slice_sizes must be greater than or equal to zero, got slice_sizes of "
            f"{slice_sizes}."
        )
    if any(n > m for n, m in zip(slice_sizes, x.shape)):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
            f"{slice_sizes} for operand shape {x.shape}."
        )
    return ShapedArray(slice_sizes, x.dtype, x.weak_type)


@dynamic_slice_p.rule(lower)
def _dynamic_slice_lower(ctx, x, *indices, slice_sizes):
    tail = tail_of(ctx.in_avals[0])
    return shaped.dynamic_slice(x, _with_tail(ctx, indices, 1, tail), (*slice_sizes, *tail))


def _with_tail(ctx, indices, first: int, tail) -> list:
    """Indices, with zeros for the trailing physical axes of an extended dtype."""
    if not tail:
        return list(indices)
    dtype = ctx.in_avals[first].dtype if indices else np.dtype(np.int32)
    return [*indices, *[mlir.constant(np.zeros((), dtype)) for _ in tail]]


@dynamic_slice_p.rule(jvp)
def _dynamic_slice_jvp(primals, tangents, *, slice_sizes):
    out = dynamic_slice_p.bind(*primals, slice_sizes=slice_sizes)
    if type(tangents[0]) is Zero:
        return out, Zero.like(out)
    return out, dynamic_slice_p.bind(tangents[0], *primals[1:], slice_sizes=slice_sizes)


@dynamic_slice_p.rule(transpose)
def _dynamic_slice_transpose(ct, x, *indices, slice_sizes):
    none = [None] * len(indices)
    if type(ct) is Zero:
        return [None, *none]
    return [dynamic_update_slice_p.bind(instantiate(Zero(x.aval)), ct, *indices), *none]


@dynamic_slice_p.rule(batch)
def _dynamic_slice_batch(axis, args, dims, *, slice_sizes):
    (x, *indices), (x_dim, *i_dims) = args, dims
    if all(d is None for d in i_dims):
        zero = _zero_index(indices)
        out = dynamic_slice_p.bind(
            x, *inserted(indices, x_dim, zero), slice_sizes=inserted(slice_sizes, x_dim, axis.size)
        )
        return out, x_dim
    starts = _index_vectors(indices, i_dims, axis)
    if x_dim is not None:
        x = move_axis(x, x_dim, 0, axis.size)
    n, extra = len(slice_sizes), int(x_dim is not None)
    numbers = GatherDimensionNumbers(
        tuple(range(1, n + 1)), (), tuple(range(extra, n + extra)), (0,) * extra, (0,) * extra
    )
    out = gather(
        x,
        starts,
        numbers,
        (min(1, axis.size),) * extra + slice_sizes,
        indices_are_sorted=bool(extra),
        unique_indices=bool(extra),
        mode=GatherScatterMode.CLIP,
    )
    return out, 0


def _zero_index(indices: Sequence) -> Any:
    dtype = typeof(indices[0]).dtype if indices else np.dtype(np.int32)
    return scalar_of(dtype, 0)


def _index_vectors(indices: Sequence, dims: Sequence, axis) -> Array:
    """Batched scalar indices as index vectors of a gather."""
    columns = [expand_dims(move_axis(i, d, 0, axis.size), (1,)) for i, d in zip(indices, dims)]
    return concatenate(columns, 1)


# Update


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A copy of the array with a slice at computed start indices replaced.

    Args:
      operand: array to update.
      update: the new elements, of the operand's dtype and rank, not larger along any axis.
      start_indices: a scalar integer for each axis, all of one dtype, or one array of them. They
        are clamped so that the slice is within the array.
      allow_negative_indices: if True, negative start indices count from the end; one bool for all
        axes or one for each.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      TypeError: if dtypes, ranks or sizes are incompatible.
      ValueError: if the number of indices is not the number of axes.

    The function is linear in the operand and the update. Under ``jit`` a buffer that is not used
    again is updated in place. Under ``vmap`` with mapped start indices it becomes a
    :func:`scatter`.

    >>> dynamic_update_slice(np.zeros(3), np.ones(2), (1,)).tolist()
    [0.0, 1.0, 1.0]
    >>> dynamic_update_slice(np.zeros(3), np.ones(2), (9,)).tolist()
    [0.0, 1.0, 1.0]
    """
    shape = typeof(operand).shape
    indices, wrap = _indices("dynamic_update_slice", shape, start_indices, allow_negative_indices)
    if any(wrap):
        return _wrapped_update(operand, update, *indices, wrap=wrap)
    return dynamic_update_slice_p.bind(operand, update, *indices)


@dynamic_update_slice_p.rule(abstract)
def _dynamic_update_slice_abstract(x, update, *indices):
    if update.ndim != x.ndim:
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, got update shape "
            f"{update.shape} for operand shape {x.shape}."
        )
    if len(indices) != x.ndim:
        raise TypeError(
            "dynamic_update_slice start_indices must have length equal to the rank of operand, got "
            f"{len(indices)} indices for operand shape {x.shape}."
        )
    if any(n > m for n, m in zip(update.shape, x.shape)):
        raise TypeError(
            "dynamic_update_slice update shape must be smaller than operand shape, got update "
            f"shape {update.shape} for operand shape {x.shape}."
        )
    same_dtypes("dynamic_update_slice", (x, update))
    _check_index_types("dynamic_update_slice", indices)
    return x.strip_weak_type()


@dynamic_update_slice_p.rule(lower)
def _dynamic_update_slice_lower(ctx, x, update, *indices):
    tail = tail_of(ctx.in_avals[0])
    return hlo.dynamic_update_slice(x, update, _with_tail(ctx, indices, 2, tail))


@dynamic_update_slice_p.rule(jvp)
def _dynamic_update_slice_jvp(primals, tangents):
    x, update, *indices = primals
    tx, tu, *_ = tangents
    out = dynamic_update_slice_p.bind(x, update, *indices)
    if type(tx) is Zero and type(tu) is Zero:
        return out, Zero.like(out)
    return out, dynamic_update_slice_p.bind(instantiate(tx), instantiate(tu), *indices)


@dynamic_update_slice_p.rule(transpose)
def _dynamic_update_slice_transpose(ct, x, update, *indices):
    none = [None] * len(indices)
    if type(ct) is Zero:
        return [None, None, *none]
    shape = update.aval.shape if is_linear(update) else typeof(update).shape
    dx = du = None
    if is_linear(x):
        zeros = full(shape, 0, typeof(ct).dtype)
        dx = dynamic_update_slice_p.bind(ct, zeros, *indices)
    if is_linear(update):
        du = dynamic_slice_p.bind(ct, *indices, slice_sizes=shape)
    return [dx, du, *none]


@dynamic_update_slice_p.rule(batch)
def _dynamic_update_slice_batch(axis, args, dims):
    (x, update, *indices), (x_dim, u_dim, *i_dims) = args, dims
    if all(d is None for d in i_dims):
        at = x_dim if x_dim is not None else u_dim
        x, update = move_axis(x, x_dim, at, axis.size), move_axis(update, u_dim, at, axis.size)
        return dynamic_update_slice_p.bind(
            x, update, *inserted(indices, at, _zero_index(indices))
        ), at
    x, update = move_axis(x, x_dim, 0, axis.size), move_axis(update, u_dim, 0, axis.size)
    axes = tuple(range(1, len(indices) + 1))
    out = scatter(
        x,
        _index_vectors(indices, i_dims, axis),
        update,
        ScatterDimensionNumbers(axes, (), axes, (0,), (0,)),
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
    )
    return out, 0


# Along one axis


def _start_along(operand: Any, start: Any, axis: int) -> tuple[list, int]:
    """Indices that are zero except along one axis."""
    ndim = typeof(operand).ndim
    axis = canonical_axis(axis, ndim)
    aval = typeof(start)
    if aval.shape:
        raise TypeError(f"start_indices arguments to dynamic_slice must be scalars, got {aval}")
    zero = scalar_of(aval.dtype, 0) if accepts(aval.dtype, ("integer",)) else 0
    starts: list = [zero] * ndim
    starts[axis] = start
    return starts, axis


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """A slice of static size along one axis, at a computed start index.

    Args:
      operand: the array.
      start_index: an integer scalar, also a traced one. It is clamped so that the slice is within
        the array.
      slice_size: the size along the axis, a Python integer.
      axis: the axis; a negative one counts from the end.
      allow_negative_indices: if True, a negative start counts from the end.

    Returns:
      An array of the operand's dtype and rank.

    Raises:
      TypeError: if the index is not an integer, or the size exceeds the array's.
      ValueError: if the axis does not exist.

    Derivatives and batches are those of :func:`dynamic_slice`.

    >>> dynamic_slice_in_dim(np.arange(5), -2, 2).tolist()
    [3, 4]
    >>> dynamic_slice_in_dim(np.zeros((2, 5)), 1, 3, axis=1).shape
    (2, 3)
    """
    starts, axis = _start_along(operand, start_index, axis)
    sizes = list(typeof(operand).shape)
    sizes[axis] = slice_size
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: int | Array,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The elements at one computed index along an axis.

    Args:
      operand: the array.
      index: an integer scalar, also a traced one. Indices out of range are clamped.
      axis: the axis; a negative one counts from the end.
      keepdims: keep the axis with size 1.
      allow_negative_indices: if True, a negative index counts from the end, otherwise it is
        clamped to 0.

    Returns:
      An array of the operand's dtype.

    Raises:
      TypeError: if the index is not an integer.
      ValueError: if the axis does not exist.

    Derivatives and batches are those of :func:`dynamic_slice`.

    >>> dynamic_index_in_dim(np.arange(5), 2, keepdims=False).tolist()
    2
    >>> dynamic_index_in_dim(np.arange(5), 9).tolist()
    [4]
    """
    axis = canonical_axis(axis, typeof(operand).ndim)
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else squeeze(out, (axis,))


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """A copy of the array with a slice along one axis replaced, at a computed start index.

    Args:
      operand: array to update.
      update: the new elements, of the operand's dtype and rank, not larger along the axis.
      start_index: an integer scalar, also a traced one. It is clamped so that the slice is within
        the array.
      axis: the axis; a negative one counts from the end.
      allow_negative_indices: if True, a negative start counts from the end.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      TypeError: if dtypes, ranks or sizes are incompatible.
      ValueError: if the axis does not exist.

    Derivatives and batches are those of :func:`dynamic_update_slice`.

    >>> dynamic_update_slice_in_dim(np.zeros(3), np.ones(1), 2, 0).tolist()
    [0.0, 0.0, 1.0]
    >>> dynamic_update_slice_in_dim(np.zeros((2, 2)), np.ones((2, 1)), 1, 1).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    starts, axis = _start_along(operand, start_index, axis)
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """A copy of the array with the elements at one computed index along an axis replaced.

    Args:
      operand: array to update.
      update: the new elements, of the operand's dtype; of size 1 along the axis, or without it.
      index: an integer scalar, also a traced one. Indices out of range are clamped.
      axis: the axis; a negative one counts from the end.
      allow_negative_indices: if True, a negative index counts from the end.

    Returns:
      An array of the operand's shape and dtype.

    Raises:
      TypeError: if dtypes, ranks or sizes are incompatible.
      ValueError: if the axis does not exist.

    Derivatives and batches are those of :func:`dynamic_update_slice`.

    >>> dynamic_update_index_in_dim(np.zeros(3), 1.0, 1, 0).tolist()
    [0.0, 1.0, 0.0]
    >>> dynamic_update_index_in_dim(np.zeros((2, 2)), np.ones(2), -1, 0).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    ndim = typeof(operand).ndim
    axis = canonical_axis(axis, ndim)
    u = typeof(update)
    if u.ndim != ndim:
        if u.ndim != ndim - 1:
            raise TypeError(
                "dynamic_update_index_in_dim update must have the operand's rank or one axis less, "
                f"got update shape {u.shape} for operand shape {typeof(operand).shape}."
            )
        update = expand_dims(update, (axis,))
    elif u.shape[axis] != 1:
        raise TypeError(
            f"dynamic_update_index_in_dim update must have size 1 along axis {axis}, got update "
            f"shape {u.shape}."
        )
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


@dynamic_slice_p.rule(samples)
def _dynamic_slice_samples():
    start = i32(low=-1, high=4)
    yield Sample(f32(5), start, slice_sizes=(2,))
    yield Sample(f32(4, 3), start, start, slice_sizes=(2, 3))
    yield Sample(c64(3, 2), start, start, slice_sizes=(1, 1))
    yield Sample(bf16(3), start, slice_sizes=(0,))
    yield Sample(f32(3), start, slice_sizes=(4,)).set(raises=TypeError)


@dynamic_update_slice_p.rule(samples)
def _dynamic_update_slice_samples():
    start = i32(low=-1, high=4)
    yield Sample(f32(5), f32(2), start)
    yield Sample(f32(4, 3), f32(2, 3), start, start)
    yield Sample(c64(3, 2), c64(1, 1), start, start)
    yield Sample(bf16(3), bf16(0), start)
    yield Sample(f32(3), f32(4), start).set(raises=TypeError)
