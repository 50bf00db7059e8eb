"""Binary search in sorted arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, any_number, dtypes, one_call, promoted
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays
from ._functions import compiled, trim_none
from ._promotion import repeated
from ._reduction_helpers import is_complex_dtype, is_float

_METHODS: Final = ("scan", "scan_unrolled", "sort", "compare_all")
_DIGITIZE: Final = (None, "default", *_METHODS)


def before(x: Any, v: Any, side: str) -> Any:
    """True where an element of the sorted array precedes the insertion point of a value; NaN sorts
    last.
    """
    dtype = typeof(x).dtype
    if is_complex_dtype(dtype):
        first = before(lax.real(x), lax.real(v), "left")
        not_after = before(lax.real(x), lax.real(v), "right")
        second = before(lax.imag(x), lax.imag(v), side)
        return lax.bitwise_or(first, lax.bitwise_and(not_after, second))
    if side == "left":
        less = lax.lt(x, v)
        if is_float(dtype):
            less = lax.bitwise_or(less, lax.bitwise_and(lax.ne(v, v), lax.eq(x, x)))
        return less
    not_greater = lax.le(x, v)
    return lax.bitwise_or(not_greater, lax.ne(v, v)) if is_float(dtype) else not_greater


def _at(a: Any, places: Any) -> Any:
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    index = lax.expand_dims(places, (typeof(places).ndim,))
    return lax.gather(a, index, numbers, (1,), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def bisected(a: Any, v: Any, side: str, unrolled: bool = False) -> Any:
    """Insertion points by bisection: each step determines one bit, from the highest."""
    n = typeof(a).shape[0]
    dtype = np.dtype(np.int32 if n < 2**31 else np.int64)
    places = lax.full(typeof(v).shape, np.zeros((), dtype)[()])
    steps = n.bit_length()

    def advance(step, places):
        further = lax.add(places, step)
        size = lax.full_like(places, n)
        index = lax.sub(lax.min(further, size), lax.full_like(places, 1))
        passed = lax.bitwise_and(before(_at(a, index), v, side), lax.le(further, size))
        return lax.select(passed, further, places)

    if unrolled:
        for k in reversed(range(steps)):
            places = advance(lax.full_like(places, 1 << k), places)
        return places

    def body(i, places):
        step = lax.shift_left(
            np.ones((), dtype)[()], lax.convert_element_type(steps - 1 - i, dtype)
        )
        return advance(repeated(step, typeof(places).shape), places)

    return lax.fori_loop(0, steps, body, places)


def _by_sorting(a: Any, v: Any, side: str) -> Any:
    """Insertion points by sorting both arrays together: the number of elements before each
    value."""
    n, m = typeof(a).size, typeof(v).size
    shape = typeof(v).shape
    v = lax.reshape(v, (m,))
    left = side == "left"
    both = lax.concatenate([v, a] if left else [a, v], 0)
    order = lax.sort((both, lax.iota(np.int32, n + m)), 0, True, 1)[1]
    from_a = lax.ge(order, np.int32(m)) if left else lax.lt(order, np.int32(n))
    counts = lax.cumsum(lax.convert_element_type(from_a, np.int32), 0)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    counts = lax.scatter(
        lax.full((n + m,), np.int32(0)), lax.expand_dims(order, (1,)), counts, numbers,
        unique_indices=True, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )  # fmt: skip
    start = 0 if left else n
    return lax.reshape(lax.slice_in_dim(counts, start, start + m), shape)


def _by_comparing(a: Any, v: Any, side: str) -> Any:
    """Insertion points by comparing each value with all elements."""
    rank = typeof(v).ndim
    shape = (*typeof(v).shape, typeof(a).shape[0])
    every = before(
        lax.broadcast_in_dim(a, shape, (rank,)),
        lax.broadcast_in_dim(v, shape, tuple(range(rank))),
        side,
    )
    return lax.reduce_sum(lax.convert_element_type(every, np.int32), (rank,))


def places_in(a: Any, v: Any, side: str, method: str) -> Any:
    """Insertion points in a sorted array of the same dtype as the values."""
    if not typeof(a).shape[0]:
        return lax.full(typeof(v).shape, np.int32(0))
    if method == "compare_all":
        return _by_comparing(a, v, side)
    if method == "sort" and typeof(v).size:
        return _by_sorting(a, v, side)
    return bisected(a, v, side, method == "scan_unrolled")


@compiled("side", "method")
def _searchsorted(a, v, sorter=None, *, side, method):
    a, v = promoted("searchsorted", a, v, any_number)
    if sorter is not None:
        a = _at(a, lax.convert_element_type(sorter, np.int32))
    return places_in(a, v, side, method)


@one_call("side", "method")
def searchsorted(
    a: ArrayLike | Sequence[Any],
    v: ArrayLike | Sequence[Any],
    side: str = "left",
    sorter: ArrayLike | Sequence[Any] | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Insertion points of values in a sorted array.

    Args:
      a: a vector in ascending order, with NaN last.
      v: values, of any shape, in a dtype that promotes with that of ``a``.
      side: before (``"left"``) or after (``"right"``) equal elements.
      sorter: indices that sort ``a``, as :func:`argsort` returns them.
      method: ``"scan"`` bisects in a loop; ``"scan_unrolled"`` unrolls the loop (slower to
        compile); ``"sort"`` sorts both together; ``"compare_all"`` compares all pairs, for short
        ``a``.

    Returns:
      ``int32`` of the shape of ``v``.

    Raises:
      ValueError: if ``a`` is not a vector, or ``side`` or ``method`` is unknown.

    >>> searchsorted(np.array([1, 2, 2, 3]), np.array([2, 9])).tolist()
    [1, 4]
    """
    check_arrays("searchsorted", a, v)
    shape = typeof(a).shape
    if side not in ("left", "right"):
        raise ValueError(
            f"searchsorted: invalid argument side={side!r}, expected 'left' or 'right'"
        )
    if method not in _METHODS:
        raise ValueError(
            f"searchsorted: invalid argument method={method!r}, expected one of {list(_METHODS)}"
        )
    if len(shape) != 1:
        raise ValueError(f"searchsorted: a should be 1-dimensional, got shape {shape}")
    if sorter is not None:
        check_arrays("searchsorted", a, v, sorter)
        sorter_aval = typeof(sorter)
        if not dtypes.issubdtype(sorter_aval.dtype, np.integer):
            raise TypeError(
                f"searchsorted: sorter must be of integer dtype, got {sorter_aval.dtype.name}"
            )
        if sorter_aval.ndim != 1:
            raise ValueError(
                f"searchsorted: sorter should be 1-dimensional, got {sorter_aval.shape}"
            )
    places: Array = _searchsorted(*trim_none(a, v, sorter), side=side, method=method)
    return places


@compiled("right", "method")
def _digitize(x, bins, *, right, method):
    n = typeof(bins).shape[0]
    if not n:
        return lax.full(typeof(x).shape, np.int32(0))
    bins, x = promoted("digitize", bins, x, any_number)
    side = "left" if right else "right"
    up = places_in(bins, x, side, method)
    if n == 1:
        return up
    down = places_in(lax.rev(bins, (0,)), x, "left" if right else "right", method)
    down = lax.sub(lax.full_like(down, n), down)
    ends = [lax.squeeze(lax.slice_in_dim(bins, i, i + 1), (0,)) for i in (n - 1, 0)]
    falling = lax.bitwise_not(before(ends[1], ends[0], "right"))
    return lax.select(repeated(falling, typeof(up).shape), down, up)


def digitize(
    x: ArrayLike | Sequence[Any],
    bins: ArrayLike | Sequence[Any],
    right: bool = False,
    *,
    method: str | None = None,
) -> Array:
    """The index of the bin of each value.

    Args:
      x: values of any shape.
      bins: a vector of edges, ascending or descending. Values before the first edge are in bin 0,
        those after the last in bin ``len(bins)``.
      right: bins include their right edge instead of their left edge.
      method: as in :func:`searchsorted`.

    Returns:
      ``int32`` of the shape of ``x``.

    Raises:
      ValueError: if ``bins`` is not a vector, or ``method`` is unknown.

    >>> digitize(np.array([0.5, 1.0, 9.0]), np.array([1.0, 2.0])).tolist()
    [0, 1, 2]
    """
    check_arrays("digitize", x, bins)
    shape = typeof(bins).shape
    if len(shape) != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array, got shape {shape}")
    if method not in _DIGITIZE:
        raise ValueError(
            f"digitize: invalid argument method={method!r}, expected one of {list(_METHODS)}"
        )
    search = method if method in _METHODS else "scan"
    numbers: Array = _digitize(x, bins, right=bool(right), method=search)
    return numbers
