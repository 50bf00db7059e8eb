"""Sorting, argsort, partition and top-k."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, one_call
from primax_core.extend.dimensions import decided
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike

from ._checks import check_arrays, converted, dtype_argument, one_axis
from ._creation import asarray
from ._functions import compiled
from ._reduction_helpers import is_complex_dtype


def _flat(x: Any) -> Any:
    return lax.reshape(x, (typeof(x).size,))


def positions(shape: tuple[int, ...], axis: int) -> Any:
    """Index of each element along an axis, as ``int32`` or, for large axes, ``int64``."""
    wide = decided(lambda: shape[axis] >= 2**31, False)
    return lax.broadcasted_iota(np.int64 if wide else np.int32, shape, axis)


def order_of(x: Any, axis: int, stable: bool = True) -> Any:
    """Indices that sort the elements along an axis in ascending order."""
    return lax.sort((x, positions(typeof(x).shape, axis)), axis, stable, 1)[1]


@compiled("axis", "stable", "descending")
def _sort(a, *, axis, stable, descending):
    if axis is None:
        a, axis = _flat(a), 0
    out = lax.sort(a, axis, stable)
    return lax.rev(out, (axis,)) if descending else out


@compiled("axis", "stable", "descending", "dtype")
def _argsort(a, *, axis, stable, descending, dtype):
    if axis is None:
        a, axis = _flat(a), 0
    if descending:
        # Reversed twice, so that the sort is stable.
        last = typeof(a).shape[axis] - 1
        order = lax.rev(order_of(lax.rev(a, (axis,)), axis, stable), (axis,))
        order = lax.sub(lax.full_like(order, last), order)
    else:
        order = order_of(a, axis, stable)
    return lax.convert_element_type(order, dtype)


def _check_sort(name: str, a: Any, axis: Any, kind: Any, order: Any) -> int | None:
    check_arrays(name, a)
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to "
            "choose a stable sort."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported: arrays are not structured.")
    return None if axis is None else one_axis_of(axis, typeof(a).ndim)


def one_axis_of(axis: Any, ndim: int) -> int:
    """A nonnegative axis of an array of rank 1 or more."""
    if not ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension 0")
    return one_axis(axis, ndim)


@one_call("axis", "stable", "descending")
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Sorted elements along an axis.

    NaN sorts last, or first if ``descending``; zeros of both signs are equal; complex numbers are
    ordered lexicographically.

    Args:
      a: an array.
      axis: the axis, by default the last; ``None`` flattens the array.
      kind, order: unsupported.
      stable: preserve the order of equal elements.
      descending: sort in descending order.

    Returns:
      An array of the shape of ``a``, or a vector for ``axis=None``.

    Raises:
      TypeError: if ``kind`` or ``order`` is specified.
      ValueError: if the axis does not exist.

    The derivative is permuted like the elements.

    >>> sort(np.array([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    position = _check_sort("sort", a, axis, kind, order)
    ordered: Array = _sort(a, axis=position, stable=bool(stable), descending=bool(descending))
    return ordered


@one_call("axis", "stable", "descending")
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Indices that sort the elements along an axis; NaN sorts as for :func:`sort`.

    Args:
      a: an array.
      axis: the axis, by default the last; ``None`` flattens the array.
      kind, order: unsupported.
      stable: indices of equal elements ascend, also if ``descending``.
      descending: sort in descending order.
      dtype: the dtype of the indices, by default the default integer.

    Returns:
      An array of the shape of ``a``, or a vector for ``axis=None``.

    Raises:
      TypeError: if ``kind`` or ``order`` is specified.
      ValueError: if the axis does not exist.

    >>> argsort(np.array([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    position = _check_sort("argsort", a, axis, kind, order)
    index_dtype = dtype_argument(dtype, "argsort") or dtypes.default_int()
    places: Array = _argsort(
        a, axis=position, stable=bool(stable), descending=bool(descending), dtype=index_dtype
    )
    return places


@compiled("axis", "batch_size")
def _lexsort(*keys, axis, batch_size):
    shape = typeof(keys[0]).shape
    order = positions(shape, axis)
    # The last key is the primary one. Groups of keys are sorted from the least significant.
    for start in range(0, len(keys), batch_size):
        group = keys[start : start + batch_size]
        if start:
            group = [_taken_along(k, order, axis) for k in group]
        order = lax.sort((*group[::-1], order), axis, True, len(group))[-1]
    return lax.convert_element_type(order, dtypes.default_int())


def _taken_along(x: Any, order: Any, axis: int) -> Any:
    n = typeof(x).ndim
    others = tuple(i for i in range(n) if i != axis)
    numbers = lax.GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return lax.gather(
        x, lax.expand_dims(order, (n,)), numbers, tuple(min(1, d) for d in typeof(x).shape),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )  # fmt: skip


def lexsort(keys: ArrayLike | Sequence[Any], axis: int = -1, *, batch_size: int = 16) -> Array:
    """Indices that sort by several keys, the last of which is the primary key.

    Args:
      keys: a sequence of arrays of one shape, or an array whose rows are the keys.
      axis: the axis of the keys to sort along, by default the last.
      batch_size: the number of keys in one sort operation; large ones compile slowly.

    Returns:
      An array of the shape of one key, of the default integer dtype.

    Raises:
      TypeError: if there are no keys.
      ValueError: if the keys have different shapes, or ``batch_size`` is not positive.

    >>> lexsort((np.array([2, 1, 0]), np.array([0, 0, 1]))).tolist()
    [1, 0, 2]
    """
    size = operator.index(batch_size)
    if size < 1:
        raise ValueError(f"lexsort: batch_size must be positive, got {size}")
    parts = _rows_of(keys)
    if not parts:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    check_arrays("lexsort", *parts)
    shapes = [typeof(k).shape for k in parts]
    if len(set(shapes)) > 1:
        raise ValueError(f"lexsort: all keys need to be the same shape, got {shapes}")
    if not shapes[0]:
        one_axis(axis, 1)
        return asarray(np.zeros((), dtypes.default_int()))
    order: Array = _lexsort(*parts, axis=one_axis(axis, len(shapes[0])), batch_size=size)
    return order


def _rows_of(keys: Any) -> Sequence[Any]:
    if isinstance(keys, (list, tuple)):
        return keys
    check_arrays("lexsort", keys)
    keys = converted(keys)
    shape = typeof(keys).shape
    if not shape:
        raise TypeError("lexsort needs a sequence of keys, got a scalar")
    return [lax.index_in_dim(keys, i, 0, keepdims=False) for i in range(shape[0])]


def _check_partition(name: str, a: Any, kth: Any, axis: Any) -> int:
    check_arrays(name, a)
    aval = typeof(a)
    if is_complex_dtype(aval.dtype):
        raise TypeError(f"{name} does not accept dtype {aval.dtype.name}: use sort or argsort")
    if axis is None:
        raise TypeError(f"{name}: axis must be an integer; for all elements use ravel first")
    position = one_axis_of(axis, aval.ndim)
    size = aval.shape[position]
    k = operator.index(kth)
    if not -size <= k < size:
        raise ValueError(f"{name}: kth={k} is out of bounds for axis {position} of size {size}")
    return position


@one_call("kth", "axis")
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """A partition around the ``kth`` smallest element: no larger ones before it, no smaller after.

    The result is completely sorted, which is as fast.

    Args:
      a: an array of real numbers or booleans.
      kth: an index, which must be concrete; negative ones count from the end.
      axis: the axis, by default the last.

    Returns:
      An array of the shape of ``a``.

    Raises:
      TypeError: if ``a`` is complex, or ``axis`` is ``None``.
      ValueError: if ``kth`` is out of bounds, or the axis does not exist.

    >>> int(partition(np.array([3, 1, 2]), 1)[1])
    2
    """
    ordered: Array = _sort(
        a, axis=_check_partition("partition", a, kth, axis), stable=True, descending=False
    )
    return ordered


@one_call("kth", "axis")
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Indices of the elements in the order of :func:`partition`.

    Args:
      a: an array of real numbers or booleans.
      kth: an index, which must be concrete; negative ones count from the end.
      axis: the axis, by default the last.

    Returns:
      An array of the shape of ``a``, of the default integer dtype.

    Raises:
      TypeError: if ``a`` is complex, or ``axis`` is ``None``.
      ValueError: if ``kth`` is out of bounds, or the axis does not exist.

    >>> argpartition(np.array([3, 1, 2]), 1).tolist()
    [1, 2, 0]
    """
    position = _check_partition("argpartition", a, kth, axis)
    places: Array = _argsort(
        a, axis=position, stable=True, descending=False, dtype=dtypes.default_int()
    )
    return places


@compiled()
def _sort_complex(a):
    dtype = typeof(a).dtype
    wide = dtypes.itemsize_bits(dtype) == 64 and not is_complex_dtype(dtype)
    if not is_complex_dtype(dtype):
        a = lax.convert_element_type(
            a, dtypes.canonicalize_dtype(dtypes.c128 if wide else dtypes.c64)
        )
    return lax.sort(a, typeof(a).ndim - 1)


@one_call()
def sort_complex(a: ArrayLike) -> Array:
    """The elements as complex numbers, sorted along the last axis.

    The order is that of the real parts, then of the imaginary parts.

    Args:
      a: an array with at least one axis.

    Returns:
      An array of the shape of ``a``: ``complex64``, or ``complex128`` for 64-bit real dtypes and
      ``complex128``.

    Raises:
      ValueError: if ``a`` is a scalar.

    The derivative is permuted like the elements.

    >>> sort_complex(np.array([2.0, 1.0], np.float32))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    check_arrays("sort_complex", a)
    one_axis_of(-1, typeof(a).ndim)
    ordered: Array = _sort_complex(a)
    return ordered


@compiled("k", "axis", "largest")
def _top_k(x, *, k, axis, largest):
    if largest:
        return tuple(lax.top_k(x, k, axis=axis))
    # The largest in the reversed order: bitwise not of integers, a key for floats.
    dtype = typeof(x).dtype
    if dtypes.issubdtype(dtype, np.floating):
        key = _falling_key(lax.stop_gradient(x))
    else:
        key = lax.bitwise_not(x)
    places = lax.top_k(key, k, axis=axis)[1]
    return _taken_along(x, places, axis), places


def _falling_key(x: Any) -> Any:
    """Integer keys that decrease as floats increase: equal for zeros of both signs, smallest for
    NaN.
    """
    if typeof(x).dtype != np.float64:
        x = lax.convert_element_type(x, np.float32)
    kind = np.dtype(np.int64 if typeof(x).dtype == np.float64 else np.int32)
    largest = np.iinfo(kind).max
    zero = lax.full_like(x, 0)
    bits = lax.bitcast_convert_type(lax.select(lax.eq(x, zero), zero, x), kind)
    sign = lax.shift_right_arithmetic(bits, lax.full_like(bits, np.iinfo(kind).bits - 1))
    rising = lax.bitwise_xor(bits, lax.bitwise_and(sign, lax.full_like(bits, largest)))
    return lax.bitwise_not(lax.select(lax.eq(x, x), rising, lax.full_like(bits, largest)))


def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """The ``k`` largest or smallest elements along an axis, and their indices.

    Equal elements are selected in index order. NaN is the largest. The result is differentiable
    with respect to the selected elements.

    Args:
      a: real numbers or booleans.
      k: the number of elements.
      axis: the axis.
      mode: ``"largest"``, in descending order, or ``"smallest"``, in ascending order.
      sorted: ``False`` allows any order, but the result is always sorted.

    Raises:
      ValueError: if ``a`` is complex, the mode is unknown, or the axis has fewer elements.

    >>> [v.tolist() for v in top_k(np.array([3, 1, 2]), 2)]
    [[3, 2], [0, 2]]
    """
    check_arrays("top_k", a)
    aval = typeof(a)
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    if is_complex_dtype(aval.dtype):
        raise ValueError("top_k is not compatible with complex inputs: they have no order")
    position = one_axis_of(axis, aval.ndim)
    k = operator.index(k)
    if not 0 <= k <= aval.shape[position]:
        raise ValueError(
            "top_k: k must be nonnegative and no larger than size along axis; got "
            f"k={k} with shape={aval.shape} and axis={position}"
        )
    values, places = _top_k(a, k=k, axis=position, largest=mode == "largest")
    return values, places
