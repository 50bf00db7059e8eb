"""Set operations on vectors: union, intersection, difference and membership."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, any_number, dtypes, promoted
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays
from ._functions import compiled
from ._promotion import repeated
from ._searching import bisected
from ._selecting import (
    chosen,
    filled,
    first_of,
    known_places,
    size_of,
    take_rows,
    true_places,
)
from ._unique import different, first_mask


def _flat(x: Any) -> Any:
    return lax.reshape(x, (typeof(x).size,))


def _both(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    x, y = promoted(name, x, y, any_number)
    return _flat(x), _flat(y)


@compiled()
def _joined(ar1, ar2):
    return lax.concatenate(_both("union1d", ar1, ar2), 0)


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Sorted unique elements of the union of two arrays.

    Args:
      ar1, ar2: arrays or numbers, which are flattened and promoted to a common dtype.
      size: the size of the result, required under ``jit``: the result is truncated or padded.
      fill_value: the padding, by default the first value.

    Returns:
      A vector of the promoted dtype.

    Raises:
      ConcretizationTypeError: if an array is traced and ``size`` is ``None``.

    >>> union1d(np.array([3, 1]), np.array([1, 2])).tolist()
    [1, 2, 3]
    >>> union1d(np.array([3, 1]), np.array([1, 2]), size=5, fill_value=0).tolist()
    [1, 2, 3, 0, 0]
    """
    check_arrays("union1d", ar1, ar2)
    length = size_of("union1d", size)
    joint = _joined(ar1, ar2)
    if length and not typeof(joint).size and fill_value is None:
        fill_value = 0
    values: Array = different("union1d", joint, (), None, True, length, fill_value)[0]
    return values


def _default_fill(x: Any, fill_value: Any) -> Any:
    """The padding value of an empty result."""
    return np.zeros((), typeof(x).dtype)[()] if fill_value is None else fill_value


@compiled("size")
def _padded(values, mask, fill_value, *, size):
    """The first ``size`` selected elements, padded with the first of them, or with zero without
    one.
    """
    places, real = true_places(mask, size)
    n = typeof(mask).shape[0]
    if not n or not size:
        out = lax.full((size,), np.zeros((), typeof(values).dtype)[()])
        return filled(out, real, _default_fill(values, fill_value))
    last = lax.full_like(places, n - 1)
    out = take_rows(values, lax.min(places, last))
    if fill_value is None:
        first = lax.slice_in_dim(out, 0, 1)
        some = lax.slice_in_dim(real, 0, 1)
        first = lax.select(some, first, lax.full_like(first, 0))
        return lax.select(real, out, repeated(first, typeof(out).shape))
    return filled(out, real, fill_value)


def _selected(name: str, values: Any, mask: Any, size: int | None, fill_value: Any) -> Array:
    if size is None:
        return chosen(values, known_places(name, mask))
    padded: Array = _padded(values, mask, fill_value, size=size)
    return padded


@compiled("assume_unique")
def _common(ar1, ar2, *, assume_unique):
    """Sorted elements of both arrays, the mask of common ones, and their indices in each array."""
    x, y = _both("intersect1d", ar1, ar2)
    n, m = typeof(x).size, typeof(y).size
    joint = lax.concatenate([x, y], 0)
    values, order = lax.sort((joint, lax.iota(np.int32, n + m)), 0, True, 1)
    # Equal elements are adjacent, those of the first array before those of the second.
    new = first_mask(values, False)
    size = n + m
    if size < 2:
        return values, lax.full((size,), np.False_), order, order
    starts = lax.cummax(
        lax.select(new, lax.iota(np.int32, size), lax.full((size,), np.int32(0))), 0
    )
    from_second = lax.ge(order, lax.full_like(order, n))
    before = lax.concatenate(
        [lax.full((1,), np.True_), lax.slice_in_dim(from_second, 0, size - 1)], 0
    )
    same = lax.bitwise_not(new)
    first_of_second = lax.bitwise_and(from_second, lax.bitwise_and(same, lax.bitwise_not(before)))
    places1 = take_rows(order, starts)
    return values, first_of_second, places1, lax.sub(order, lax.full_like(order, n))


def intersect1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *,
    size: int | None = None, fill_value: ArrayLike | None = None,
) -> Any:  # fmt: skip
    """Sorted unique elements that are in both arrays.

    Args:
      ar1, ar2: arrays or numbers, which are flattened and promoted to a common dtype.
      assume_unique: declare that the elements of each array are unique; ignored.
      return_indices: also return the index of the first occurrence in each flattened array.
      size: the size of the result, required under ``jit``; missing values are padded with
        ``fill_value``, missing indices with the length of the array.
      fill_value: the padding, by default the first value, or 0 if there is none.

    Returns:
      A vector of the promoted dtype; with ``return_indices`` a tuple of it and two index vectors.

    Raises:
      ConcretizationTypeError: if an array is traced and ``size`` is ``None``.

    >>> intersect1d(np.array([3, 1, 2]), np.array([2, 3, 4])).tolist()
    [2, 3]
    """
    check_arrays("intersect1d", ar1, ar2)
    length = size_of("intersect1d", size)
    values, mask, first, second = _common(ar1, ar2, assume_unique=bool(assume_unique))
    outs = [_selected("intersect1d", values, mask, length, fill_value)]
    if return_indices:
        for places, ar in ((first, ar1), (second, ar2)):
            n = np.int32(typeof(ar).size)
            places = _selected("intersect1d", places, mask, length, n)
            outs.append(lax.convert_element_type(places, dtypes.default_int()))
    return first_of(outs)


@compiled("assume_unique")
def _only_first(ar1, ar2, *, assume_unique):
    x, y = _both("setdiff1d", ar1, ar2)
    if assume_unique:
        mask = lax.bitwise_not(_is_in(x, y, "auto"))
        new = _flat(ar1)
        return new, mask
    x = lax.sort(x)
    mask = lax.bitwise_and(first_mask(x, True), lax.bitwise_not(_is_in(x, y, "auto")))
    return lax.sort(_flat(ar1)), mask


def setdiff1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Sorted unique elements of the first array that are not in the second.

    Args:
      ar1, ar2: arrays or numbers, which are flattened and promoted to a common dtype.
      assume_unique: declare that the elements of each array are unique; their order is then
        preserved.
      size: the size of the result, required under ``jit``: the result is truncated or padded.
      fill_value: the padding, 0 by default.

    Returns:
      A vector.

    Raises:
      ConcretizationTypeError: if an array is traced and ``size`` is ``None``.

    >>> setdiff1d(np.array([3, 1, 2]), np.array([2])).tolist()
    [1, 3]
    """
    check_arrays("setdiff1d", ar1, ar2)
    length = size_of("setdiff1d", size)
    values, mask = _only_first(ar1, ar2, assume_unique=bool(assume_unique))
    fill = _default_fill(values, fill_value)
    return _selected("setdiff1d", values, mask, length, fill)


@compiled("assume_unique")
def _in_one(ar1, ar2, *, assume_unique):
    parts = []
    for source, x in enumerate(_both("setxor1d", ar1, ar2)):
        parts.append((x, lax.full((typeof(x).size,), np.int8(source))))
    joint = lax.concatenate([x for x, _ in parts], 0)
    sources = lax.concatenate([s for _, s in parts], 0)
    values, sources = lax.sort((joint, sources), 0, True, 1)
    n = typeof(values).size
    new = first_mask(values, True)
    if n < 2:
        return values, new
    # An element is in one array only if its last duplicate is from the same array as the first.
    places = lax.iota(np.int32, n)
    end = lax.concatenate([lax.slice_in_dim(new, 1, n), lax.full((1,), np.True_)], 0)
    far = lax.full_like(places, n - 1)
    last = lax.cummin(lax.select(end, places, far), 0, reverse=True)
    alike = lax.eq(take_rows(sources, last), sources)
    return values, lax.bitwise_and(new, alike)


def setxor1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Sorted unique elements that are in exactly one of two arrays.

    Args:
      ar1, ar2: arrays or numbers, which are flattened and promoted to a common dtype.
      assume_unique: declare that the elements of each array are unique; ignored.
      size: the size of the result, required under ``jit``: the result is truncated or padded.
      fill_value: the padding, by default the first value.

    Returns:
      A vector of the promoted dtype.

    Raises:
      ConcretizationTypeError: if an array is traced and ``size`` is ``None``.

    >>> setxor1d(np.array([1, 2]), np.array([2, 3])).tolist()
    [1, 3]
    """
    check_arrays("setxor1d", ar1, ar2)
    length = size_of("setxor1d", size)
    values, mask = _in_one(ar1, ar2, assume_unique=bool(assume_unique))
    return _selected("setxor1d", values, mask, length, fill_value)


_FEW: Final = 16
_METHODS: Final = ("auto", "compare_all", "binary_search", "sort")


def _is_in(x: Any, y: Any, method: str) -> Any:
    """True where an element is in a vector of the same dtype."""
    shape, n = typeof(x).shape, typeof(y).size
    if not n:
        return lax.full(shape, np.False_)
    if method == "compare_all" or (method == "auto" and n <= _FEW):
        every = (*shape, n)
        equal = lax.eq(
            lax.broadcast_in_dim(x, every, tuple(range(len(shape)))),
            lax.broadcast_in_dim(y, every, (len(shape),)),
        )
        return lax.reduce_or(equal, (len(shape),))
    y = lax.sort(y)
    places = bisected(y, x, "left")
    return lax.eq(take_rows(y, lax.min(places, lax.full_like(places, n - 1))), x)


@compiled("invert", "method")
def _isin(element, test_elements, *, invert, method):
    x, y = promoted("isin", element, test_elements, any_number)
    # The comparison of two weak types has a weak type, which booleans must not have.
    mask = lax.convert_element_type(_is_in(x, _flat(y), method), np.bool_)
    return lax.bitwise_not(mask) if invert else mask


def isin(
    element: ArrayLike | Sequence[Any],
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """True where an element is in another array; NaN is never a member.

    Args:
      element: an array or a number.
      test_elements: an array or a number, which is flattened.
      assume_unique: declare that the elements of each array are unique; ignored.
      invert: return the negated mask.
      method: ``"compare_all"`` compares all pairs, which suits few ``test_elements``;
        ``"binary_search"`` and ``"sort"`` sort them first; ``"auto"`` chooses by their number.

    Returns:
      A boolean array of the shape of ``element``.

    Raises:
      ValueError: if ``method`` is unknown.

    >>> isin(np.array([1, 2, 3]), np.array([3, 1])).tolist()
    [True, False, True]
    """
    check_arrays("isin", element, test_elements)
    if method not in _METHODS:
        raise ValueError(f"isin: method={method!r} is unknown; options are {', '.join(_METHODS)}")
    mask: Array = _isin(element, test_elements, invert=bool(invert), method=method)
    return mask
