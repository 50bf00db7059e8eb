"""Sorting and top-k."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, jvp, lower
from .._ir.samples import Sample, bf16, c64, f32, i32, samples
from .._ir.symbolic_dims import decided, index, is_static, min_dim
from .._lower.lazy import hlo, ir, mlir, shaped
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.batching import move_axis
from .._transform.zeros import Zero
from .bitwise import bitwise_not
from .broadcasting import broadcasted_iota
from .comparison import compare
from .conversion import convert
from .elementwise import accepts
from .gathering import gather
from .index_numbers import GatherDimensionNumbers, GatherScatterMode
from .reshaping import expand_dims
from .shapes import canonical_axis, without
from .slicing import slice_in_dim
from .sort_keys import floats_of, order_key, packable, total_order_key, with_positions

sort_p: Final = Primitive("sort", multiple_results=True)
top_k_p: Final = Primitive("top_k", multiple_results=True)


def sort(
    operand: Array | Sequence[Array],
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Any:
    """Sort along an axis in ascending order; several arrays are sorted by their keys.

    Args:
      operand: an array, or several of one shape.
      dimension: the axis.
      is_stable: preserve the order of elements with equal keys.
      num_keys: number of leading arrays that are keys, compared lexicographically.

    Returns:
      A sorted array, or a tuple of sorted arrays.

    Zeros of both signs are equal, NaN is last, and complex numbers are ordered by their real, then
    by their imaginary part. Tangents are permuted like the elements.

    Raises:
      TypeError: if there are no arrays, or the shapes differ.
      ValueError: if the axis or the number of keys is out of range.

    >>> sort(np.array([2, 3, 1])).tolist()
    [1, 2, 3]
    """
    single = not isinstance(operand, (list, tuple))
    operands = [operand] if single else list(operand)
    if not operands:
        raise TypeError("Sort requires at least one operand")
    if single and num_keys != 1:
        raise ValueError(f"num_keys={num_keys} must equal 1 for a single operand.")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"num_keys={num_keys} must be between 1 and len(operand)={len(operands)}")
    axis = canonical_axis(dimension, typeof(operands[0]).ndim)
    outs = sort_p.bind(
        *operands, dimension=axis, is_stable=bool(is_stable), num_keys=operator.index(num_keys)
    )
    return outs[0] if single else tuple(outs)


def sort_key_val(
    keys: Array, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort keys and values along an axis by the keys.

    Args:
      keys: an array; zeros of both signs are equal, and NaN is last.
      values: an array of the shape of the keys.
      dimension: the axis; a negative one counts from the end.
      is_stable: preserve the order of values with equal keys.

    Returns:
      A pair of arrays: the sorted keys, and the values in the same order.

    Raises:
      TypeError: if the shapes differ.
      ValueError: if the axis is out of range.

    Tangents are permuted like the elements. For several keys see :func:`sort`.

    >>> [x.tolist() for x in sort_key_val(np.array([2, 1]), np.array([5, 6]))]
    [[1, 2], [6, 5]]
    """
    k, v = sort((keys, values), dimension, is_stable, 1)
    return k, v


@sort_p.rule(abstract)
def _sort_abstract(*xs, dimension, is_stable, num_keys):
    if any(x.shape != xs[0].shape for x in xs):
        raise TypeError(
            f"Arguments to sort must have equal shapes, got: {' '.join(str(x.shape) for x in xs)}"
        )
    for x in xs:
        if isinstance(x.dtype, dtypes.ExtendedDType):
            raise TypeError(
                f"sort does not accept operands of dtype {x.dtype.name}: sort indices (lax.iota) "
                "instead, and gather the elements at the result"
            )
    return list(xs)


def _ordered_before(x, y, dtype):
    """True where one key precedes another, and true where they are equal."""
    if accepts(dtype, ("complex",)):
        part = np.dtype(np.float64 if dtype == np.complex128 else np.float32)
        less, equal = _ordered_before(hlo.real(x), hlo.real(y), part)
        less_im, equal_im = _ordered_before(hlo.imag(x), hlo.imag(y), part)
        return hlo.or_(less, hlo.and_(equal, less_im)), hlo.and_(equal, equal_im)
    if accepts(dtype, ("float",)):
        x, y = _canonical(x, dtype), _canonical(y, dtype)
        return compare("LT", x, y, dtype, total=True), compare("EQ", x, y, dtype, total=True)
    return compare("LT", x, y, dtype), compare("EQ", x, y, dtype)


def _canonical(x, dtype):
    """Replace zeros by 0.0 and NaNs by one NaN; the total order of bits is then the key order."""
    zero, nan = (mlir.constant(np.asarray(v).astype(dtype)) for v in (0.0, np.nan))
    x = hlo.select(compare("EQ", x, zero, dtype), zero, x)
    return hlo.select(compare("NE", x, x, dtype), nan, x)


@sort_p.rule(lower)
def _sorted(ctx, *xs, dimension, is_stable, num_keys):
    avals = ctx.in_avals
    op = hlo.SortOp(
        [mlir.type_of(a) for a in avals],
        xs,
        dimension=mlir.i64(dimension),
        is_stable=ir.BoolAttr.get(is_stable),
    )
    scalars = [mlir.tensor_type((), a.dtype) for a in avals for _ in range(2)]
    block = op.comparator.blocks.append(*scalars)
    with ir.InsertionPoint(block):
        args = list(block.arguments)
        before = None
        for i in reversed(range(num_keys)):
            less, equal = _ordered_before(args[2 * i], args[2 * i + 1], avals[i].dtype)
            before = less if before is None else hlo.or_(less, hlo.and_(equal, before))
        hlo.return_([before])
    return list(op.results)


# Below these sizes a plain sort is as fast, for floats and for other dtypes.
_FEW_FLOATS: Final = 512
_FEW_OTHERS: Final = 4096


@sort_p.rule(lower.on("cpu"))
def _sort_lower_cpu(ctx, *xs, dimension, num_keys, **params):
    avals = ctx.in_avals
    dtypes_of_keys = [a.dtype for a in avals[:num_keys]]
    packed = num_keys == 1 and packable(dtypes_of_keys[0])
    if any(accepts(d, ("float",)) for d in dtypes_of_keys):
        few = _FEW_FLOATS
    else:
        few = _FEW_OTHERS if packed and len(avals) > 1 else np.inf
    complex_too = any(accepts(d, ("complex",)) for d in dtypes_of_keys)
    whole = is_static(avals[0].shape)
    if not whole or complex_too or avals[0].size < few or avals[0].shape[dimension] >= 2**31:
        return _sorted(ctx, *xs, dimension=dimension, num_keys=num_keys, **params)

    def run(*xs):
        keys = [order_key(x) for x in xs[:num_keys]]
        if packed:
            keys = [with_positions(keys[0], dimension)]
        else:
            keys.append(broadcasted_iota(np.int32, avals[0].shape, dimension))
        *_, last = sort_p.bind(*keys, dimension=dimension, num_keys=num_keys, **params)
        order = convert(last, np.dtype(np.int32))
        return [take_along(x, order, dimension) for x in xs]

    return ctx.call(run, *xs)


def take_along(x: ArrayLike, indices: ArrayLike, axis: int) -> Array:
    """Elements at indices along an axis that are known to be in bounds."""
    n = typeof(x).ndim
    others = without(range(n), (axis,))
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather(
        x,
        expand_dims(indices, (n,)),
        numbers,
        [min_dim(1, size) for size in typeof(x).shape],
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


@sort_p.rule(jvp)
def _sort_jvp(primals, tangents, *, dimension, **params):
    if all(type(t) is Zero for t in tangents):
        outs = sort_p.bind(*primals, dimension=dimension, **params)
        return outs, [Zero.like(o) for o in outs]
    shape = typeof(primals[0]).shape
    indices = broadcasted_iota(
        np.uint32 if decided(lambda: shape[dimension] < 2**32, True) else np.uint64,
        shape, dimension,
    )  # fmt: skip
    *outs, order = sort_p.bind(*primals, indices, dimension=dimension, **params)
    return outs, [
        Zero.like(o) if type(t) is Zero else take_along(t, order, dimension)
        for o, t in zip(outs, tangents)
    ]


@sort_p.rule(batch)
def _sort_batch(axis, args, dims, *, dimension, **params):
    at = next(d for d in dims if d is not None)
    moved = [move_axis(x, d, at, axis.size) for x, d in zip(args, dims)]
    outs = sort_p.bind(*moved, dimension=dimension + (dimension >= at), **params)
    return outs, [at] * len(outs)


def top_k(operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Array]:
    """The ``k`` largest elements along an axis, in descending order, and their indices.

    Args:
      operand: real numbers or booleans. NaN counts as the largest.
      k: number of elements to return, a Python integer.
      axis: the axis; a negative one counts from the end.
      is_stable: among equal elements, return the first ones, in their order.

    Returns:
      A list of two arrays: the elements, and their indices of dtype ``int32``. Their size along
      the axis is ``k``.

    Raises:
      ValueError: if the axis has fewer than ``k`` elements, or the operand is complex.

    The derivative is that of the selected elements. Under ``vmap`` each example is searched by
    itself.

    >>> [x.tolist() for x in top_k(np.array([1, 3, 2]), 2)]
    [[3, 2], [1, 2]]
    """
    ndim = typeof(operand).ndim
    axis = canonical_axis(axis, ndim)
    try:
        k = index(k)
    except (TypeError, AttributeError) as e:
        raise TypeError(
            f"k argument to top_k must be an integer: Shapes must be 1D sequences of concrete "
            f"values of integer type, got {k!r}."
        ) from e
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    return top_k_p.bind(operand, k=k, axis=axis, is_stable=bool(is_stable))


@top_k_p.rule(abstract)
def _top_k_abstract(x, *, k, axis, is_stable):
    if accepts(x.dtype, ("complex",)):
        raise ValueError("top_k is not compatible with complex inputs.")
    if k > x.shape[axis]:
        raise ValueError(
            "k argument to top_k must be no larger than size along axis; got "
            f"k={k} with shape={list(x.shape)} and axis={axis}"
        )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return [x.update(shape=shape), ShapedArray(shape, np.dtype(np.int32))]


@top_k_p.rule(lower)
def _greatest(ctx, x, *, k, axis, is_stable):
    aval = ctx.in_avals[0]
    last = aval.ndim - 1
    if axis != last:
        order = [*without(range(aval.ndim), (axis,)), axis]
        x = hlo.transpose(x, mlir.i64s(order))
    outs = shaped.top_k(x, k, (*without(aval.shape, (axis,)), k))
    if axis != last:
        back = [*range(axis), last, *range(axis, last)]
        outs = [hlo.transpose(o, mlir.i64s(back)) for o in outs]
    return outs


@top_k_p.rule(lower.on("cpu"))
def _top_k_lower_cpu(ctx, x, *, k, axis, is_stable):
    aval = ctx.in_avals[0]
    n = aval.shape[axis]
    # Native code selects a few of many float32 elements. Otherwise all elements are sorted.
    if not is_static((*aval.shape, k)):
        return _greatest(ctx, x, k=k, axis=axis, is_stable=is_stable)
    many = 4 * k >= n and aval.size >= _FEW_OTHERS
    params = {"axis": axis, "is_stable": is_stable}
    fast = aval.dtype == np.float32 and not many
    if fast or not k or aval.size < _FEW_FLOATS or not packable(aval.dtype) or n >= 2**31:
        return _greatest(ctx, x, k=k, **params)

    def run(x):
        key = total_order_key(x)
        if many:
            key = with_positions(bitwise_not(key), axis)
            (last,) = sort_p.bind(key, dimension=axis, is_stable=True, num_keys=1)
            indices = convert(slice_in_dim(last, 0, k, 1, axis), np.dtype(np.int32))
        else:
            indices = top_k_p.bind(floats_of(key), k=k, **params)[1]
        return [take_along(x, indices, axis), indices]

    return ctx.call(run, x)


@top_k_p.rule(jvp)
def _top_k_jvp(primals, tangents, *, axis, **params):
    (x,), (t,) = primals, tangents
    values, indices = top_k_p.bind(x, axis=axis, **params)
    none = Zero.like(indices)
    if type(t) is Zero:
        return [values, indices], [Zero.like(values), none]
    return [values, indices], [take_along(t, indices, axis), none]


@top_k_p.rule(batch)
def _top_k_batch(mapped, args, dims, *, axis, **params):
    (dim,) = dims
    outs = top_k_p.bind(args[0], axis=axis + (axis >= dim), **params)
    return outs, [dim, dim]


@sort_p.rule(samples)
def _sort_samples():
    yield Sample(f32(5), dimension=0, is_stable=True, num_keys=1)
    yield Sample(f32(2, 4), f32(2, 4), dimension=1, is_stable=True, num_keys=1)
    yield Sample(i32(4, 2, high=9), f32(4, 2), dimension=0, is_stable=True, num_keys=2)
    yield Sample(bf16(0, 2), dimension=0, is_stable=False, num_keys=1)
    yield Sample(c64(4), dimension=0, is_stable=True, num_keys=1)


@top_k_p.rule(samples)
def _top_k_samples():
    yield Sample(f32(5), k=2, axis=0, is_stable=True)
    yield Sample(f32(2, 4), k=4, axis=1, is_stable=True)
    yield Sample(i32(3), k=1, axis=0, is_stable=True)
    yield Sample(bf16(2, 3), k=0, axis=1, is_stable=True)
