"""Sorted arrays, the order of elements, and the greatest of them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_core.extend.dimensions import decided

from ._checks import check_arrays, one_axis, wanted_dtype
from ._creation import asarray
from ._functions import compiled
from ._reducing import is_complex_dtype


def _flat(x: Any) -> Any:
    return lax.reshape(x, (typeof(x).size,))


def positions(shape: tuple[int, ...], axis: int) -> Any:
    """Each element's position along an axis, in the default integer type of indices."""
    wide = decided(lambda: shape[axis] >= 2**31, False)
    return lax.broadcasted_iota(np.int64 if wide else np.int32, shape, axis)


def order_of(x: Any, axis: int, stable: bool = True) -> Any:
    """Positions of the elements in ascending order along an axis."""
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
        # Reversed twice, so that equal elements keep their order.
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
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to say "
            "whether equal elements keep their order."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported: arrays have no fields.")
    return None if axis is None else one_axis_of(axis, typeof(a).ndim)


def one_axis_of(axis: Any, ndim: int) -> int:
    """An axis counted from the front, of an array that must have one."""
    if not ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension 0")
    return one_axis(axis, ndim)


def sort(
    a: Any, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False,
) -> Array:  # fmt: skip
    """The elements in order along an axis.

    NaN comes last, first if ``descending``; zeros of both signs are equal; complex numbers are
    ordered by their real, then by their imaginary parts. The derivative follows the elements to
    their places.

    Args:
      a: an array.
      axis: along which axis, by default the last; ``None`` for all elements as one axis.
      kind, order: not supported.
      stable: whether equal elements keep their order.
      descending: whether the greatest comes first.

    Raises:
      TypeError: for ``kind`` and ``order``.
      ValueError: if there is no such axis.

    >>> sort(np.array([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    found = _check_sort("sort", a, axis, kind, order)
    ordered: Array = _sort(a, axis=found, stable=bool(stable), descending=bool(descending))
    return ordered


def argsort(
    a: Any, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False, dtype: Any = None,
) -> Array:  # fmt: skip
    """Positions of the elements in order along an axis; arguments as :func:`sort`.

    Args:
      stable: whether positions of equal elements ascend, also if ``descending``.
      dtype: of the positions, by default the default integer.

    >>> argsort(np.array([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    found = _check_sort("argsort", a, axis, kind, order)
    wanted = wanted_dtype(dtype, "argsort") or dtypes.default_int()
    places: Array = _argsort(
        a, axis=found, stable=bool(stable), descending=bool(descending), dtype=wanted
    )
    return places


@compiled("axis", "batch_size")
def _lexsort(*keys, axis, batch_size):
    shape = typeof(keys[0]).shape
    order = positions(shape, axis)
    # The last key is the first that decides; groups of keys are sorted from the least important.
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


def lexsort(keys: Any, axis: int = -1, *, batch_size: int = 16) -> Array:
    """Positions that sort by several keys, of which the last decides first.

    Args:
      keys: a sequence of arrays of one shape, or an array whose first axis counts keys.
      axis: along which axis of the keys.
      batch_size: how many keys are sorted by at once; compiling many takes long.

    Raises:
      TypeError: if there is no key.
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
    found = one_axis_of(axis, aval.ndim)
    size = aval.shape[found]
    k = operator.index(kth)
    if not -size <= k < size:
        raise ValueError(f"{name}: kth={k} is out of bounds for axis {found} of size {size}")
    return found


def partition(a: Any, kth: int, axis: int = -1) -> Array:
    """The elements with the ``kth`` in order at its place, no greater ones before it, and no
    smaller ones behind it.

    All the elements come out sorted: that is as fast.

    Args:
      kth: a position; negative ones count from the end.
      axis: along which axis.

    >>> int(partition(np.array([3, 1, 2]), 1)[1])
    2
    """
    ordered: Array = _sort(
        a, axis=_check_partition("partition", a, kth, axis), stable=True, descending=False
    )
    return ordered


def argpartition(a: Any, kth: int, axis: int = -1) -> Array:
    """Positions of the elements as :func:`partition` gives them."""
    found = _check_partition("argpartition", a, kth, axis)
    places: Array = _argsort(
        a, axis=found, stable=True, descending=False, dtype=dtypes.default_int()
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


def sort_complex(a: Any) -> Array:
    """The elements as complex numbers, in order along the last axis."""
    check_arrays("sort_complex", a)
    one_axis_of(-1, typeof(a).ndim)
    ordered: Array = _sort_complex(a)
    return ordered


@compiled("k", "axis", "largest")
def _top_k(x, *, k, axis, largest):
    if largest:
        return tuple(lax.top_k(x, k, axis=axis))
    # The greatest of the reversed order: bits of integers, signs of floats.
    dtype = typeof(x).dtype
    if dtypes.issubdtype(dtype, np.floating):
        key = _falling_key(lax.stop_gradient(x))
    else:
        key = lax.bitwise_not(x)
    places = lax.top_k(key, k, axis=axis)[1]
    return _taken_along(x, places, axis), places


def _falling_key(x: Any) -> Any:
    """Integers that fall as floats grow: equal for zeros of both signs, least for NaN."""
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
    a: Any, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """The ``k`` largest or smallest elements along an axis, and their positions.

    Of equal elements the first are taken. NaN counts as largest. The derivative follows the
    elements that are taken.

    Args:
      a: real numbers or booleans.
      k: how many.
      axis: along which axis.
      mode: ``"largest"``, in descending order, or ``"smallest"``, in ascending order.
      sorted: ``False`` allows any order; they come out in order all the same.

    Raises:
      ValueError: for complex numbers, an unknown mode, and if there are not that many elements.

    >>> [v.tolist() for v in top_k(np.array([3, 1, 2]), 2)]
    [[3, 2], [0, 2]]
    """
    check_arrays("top_k", a)
    aval = typeof(a)
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    if is_complex_dtype(aval.dtype):
        raise ValueError("top_k is not compatible with complex inputs: they have no order")
    found = one_axis_of(axis, aval.ndim)
    k = operator.index(k)
    if not 0 <= k <= aval.shape[found]:
        raise ValueError(
            "top_k: k must be nonnegative and no larger than size along axis; got "
            f"k={k} with shape={aval.shape} and axis={found}"
        )
    values, places = _top_k(a, k=k, axis=found, largest=mode == "largest")
    return values, places
