"""Sorting, argsort, partition and binary search."""

from __future__ import annotations

import numpy as np

from primax_core.extend import b1, c64, f16, f32, i8, i32, u8
from test_support import case

from .reductions import INF, NAN, fixed

SPECIAL = fixed(NAN, 1.0, -INF, 0.0, -0.0, INF, NAN, -1.0)
TIES = fixed(2.0, 1.0, 2.0, 1.0, 2.0)
EDGES = fixed(-1.0, 0.0, 0.0, 1.0, INF, NAN)


def places_of(k):
    """The selected element, and the sorted elements on each side of it."""
    return lambda m, x: [x[..., k], m.sort(x[..., :k]), m.sort(x[..., k + 1 :])]


def reversed_order(a, axis=-1, **_):
    """Stable argsort in descending order."""
    n = a.shape[axis]
    return n - 1 - np.flip(np.argsort(np.flip(a, axis), axis, kind="stable"), axis)


def along(axis=-1):
    """NumPy's stable argsort."""
    return lambda a, **params: np.argsort(a, axis=params.get("axis", axis), kind="stable")


SORTS = [
    case("sort", f32(4)),
    case("sort", f32(2, 3), axis=0),
    case("sort", f32(2, 3), axis=None),
    case("sort", f32(2, 3), stable=False).set(expected=np.sort),
    case("sort", f32(2, 3), descending=True).set(expected=lambda x, descending: -np.sort(-x)),
    case("sort", i8(5)),
    case("sort", c64(4)),
    case("sort", b1(4)),
    case("sort", f32(0, 3), axis=0),
    case("sort", SPECIAL).set(order=0),
    case("sort", TIES).set(order=0),
    case("sort", TIES, descending=True).set(
        order=0, expected=lambda x, descending: np.flip(np.sort(x))
    ),
    case("argsort", f32(2, 4)).set(expected=along()),
    case("argsort", i8(5), axis=0).set(expected=along()),
    case("argsort", f32(2, 3), axis=None).set(expected=along()),
    case("argsort", SPECIAL).set(expected=along()),
    case("argsort", TIES, descending=True).set(expected=reversed_order),
    case("argsort", f32(2, 3), axis=0, dtype=np.uint8).set(expected=along()),
    case("argsort", f32(4), stable=False).set(expected=along(), vary=False),
    case("argsort", c64(4)).set(expected=along()),
    case("lexsort", [i32(5), b1(5)]),
    case("lexsort", [f32(2, 3), i32(2, 3)], axis=0),
    case("lexsort", i32(3, 4)).set(batched=False),
    case("lexsort", [i8(6), b1(6), b1(6)], batch_size=1).set(
        expected=lambda keys, batch_size: np.lexsort(keys)
    ),
    case("partition", f32(5), 2).set(observe=places_of(2), order=0),
    case("partition", f32(2, 5), -2).set(observe=places_of(3), order=0),
    case("partition", i8(5, 2), 1, axis=0).set(observe=lambda m, x: x[1]),
    case("argpartition", f32(5), 2).set(observe=lambda m, x: [x[2], m.sort(x[:2])], vary=False),
    case("argpartition", f32(5, 2), 3, axis=0).set(observe=lambda m, x: x[3], vary=False),
    case("sort_complex", c64(4)),
    case("sort_complex", f32(2, 3)),
    case("sort_complex", i8(3)),
]
SEARCHES = [
    case("searchsorted", EDGES, f32(3, 2, high=1.5)),
    case("searchsorted", EDGES, fixed(0.0, -0.0, NAN, INF, -INF, 2.0), side="right"),
    *[
        case(
            "searchsorted", i32(5, make=lambda rng, s: np.arange(5)), i32(4), method=m, side=side
        ).set(expected=lambda a, v, method, side: np.searchsorted(a, v, side=side), vary=False)
        for m in ("scan", "scan_unrolled", "sort", "compare_all")
        for side in ("left", "right")
    ],
    case("searchsorted", np.float32([3, 1, 2]), f32(3), sorter=np.int32([1, 2, 0])),
    case("searchsorted", np.float32([]), f32(3)),
    case("searchsorted", np.int8([1, 2]), 1.5),
    case("searchsorted", np.complex64([1, 1 + 1j, 2]), c64(4)),
    case("digitize", f32(4), np.float32([-1, 0, 1])),
    case("digitize", f32(2, 2), np.float32([1, 0, -1]), right=True),
    case("digitize", i32(4), np.int32([1, 0, -1])),
    case("digitize", np.int32([-1, 0, 1]), np.int32([1, 0, -1]), method="sort").set(
        expected=lambda x, bins, method: np.digitize(x, bins)
    ),
    case("digitize", f32(3), np.float32([0.0])),
    case("digitize", f32(3), np.float32([])),
]


def top(x, k, axis=-1, mode="largest", sorted=True):
    """Top-k by sorting."""
    n = x.shape[axis]
    order = np.argsort(x, axis, kind="stable") if mode == "smallest" else reversed_order(x, axis)
    order = np.take(order, np.arange(min(k, n)), axis)
    return np.take_along_axis(x, order, axis), order


TOPS = [
    case("top_k", f32(5), 2).set(expected=top),
    case("top_k", f32(2, 4), 2, axis=0).set(expected=top, order=1),
    case("top_k", f32(5), 3, mode="smallest").set(expected=top),
    case("top_k", SPECIAL, 8, mode="smallest").set(
        expected=top, order=0, differs="zeros of both signs are equal, as in sort"
    ),
    case("top_k", SPECIAL, 3).set(expected=top, order=0, vary=False),
    case("top_k", u8(5), 2, mode="smallest", sorted=False).set(expected=top),
    case("top_k", i8(5), 5).set(expected=top),
    case("top_k", b1(4), 2, mode="smallest").set(expected=top),
    case("top_k", f16(5), 2, mode="smallest").set(expected=top),
    case("top_k", f32(3), 0).set(expected=top),
    case("top_k", TIES, 2).set(expected=top, order=0),
]
# The reference returns a list where the standard requires a tuple.
TOPS = [c.set(observe=lambda m, x: [*x]) for c in TOPS]
CASES = SORTS + SEARCHES + TOPS
