"""Indices: nonzero, take, put and related functions."""

from __future__ import annotations

import numpy as np

from primax_core.extend import b1, c64, f32, i8, i32
from test_support import case

HALF = b1(2, 3)
MASK = np.array([[True, False, True], [False, False, True]])


def some(*shape):
    """Small integers, many of which are zero."""
    return i32(*shape, low=0, high=1)


def padded(indices, size: int, fill=0):
    """NumPy's indices, truncated or padded to a size."""
    indices = [np.asarray(p) for p in indices]
    fills = fill if isinstance(fill, tuple) else (fill,) * len(indices)
    return [
        np.concatenate([p[:size], np.full(max(size - len(p), 0), f)])
        for p, f in zip(indices, fills)
    ]


def known(*cases):
    """Cases whose arguments must be concrete."""
    return [c.set(compiled=False, batched=False, order=0) for c in cases]


CASES = [
    *known(
        case("nonzero", some(2, 3)),
        case("nonzero", f32(0, 2)),
        case("argwhere", some(2, 3)),
        case("flatnonzero", some(2, 3)),
        case("extract", some(2, 3), f32(2, 3)),
        case("compress", some(3), f32(2, 3), axis=-1),
        case("compress", some(4), f32(2, 3)),
        case("choose", i32(3, low=0, high=1), [f32(3), 2.0]),
        case("choose", i32(2, 1, low=0, high=1), f32(2, 3)),
        case("ravel_multi_index", (np.array([0, 1]), np.array([2, 1])), (2, 3)),
        case("ravel_multi_index", np.array([[1, 0], [2, 2]]), (2, 3)),
    ),
    case("nonzero", some(2, 3), size=4).set(expected=lambda a, size: padded(a.nonzero(), size)),
    case("nonzero", some(2, 3), size=7, fill_value=(-1, -2)).set(
        expected=lambda a, size, fill_value: padded(a.nonzero(), size, fill_value)
    ),
    case("nonzero", some(4), size=6, fill_value=9).set(
        expected=lambda a, size, fill_value: padded(a.nonzero(), size, fill_value)
    ),
    case("nonzero", some(4), size=5, fill_value=1.5).set(
        expected=lambda a, size, fill_value: padded(a.nonzero(), size, fill_value)
    ),
    case("nonzero", f32(0), size=2).set(expected=lambda a, size: [np.zeros(2, int)]),
    case("nonzero", some(3), size=0).set(expected=lambda a, size: [np.zeros(0, int)]),
    case("argwhere", some(2, 3), size=4, fill_value=9).set(
        expected=lambda a, size, fill_value: np.stack(padded(a.nonzero(), size, fill_value), 1)
    ),
    case("argwhere", i32(), size=2).set(
        expected=lambda a, size: np.zeros((2, 0), int), batched=False
    ),
    case("flatnonzero", some(2, 3), size=4, fill_value=-1).set(
        expected=lambda a, size, fill_value: padded([np.flatnonzero(a)], size, fill_value)[0]
    ),
    case("extract", some(2, 3), f32(2, 3), size=4, fill_value=9).set(
        expected=lambda c, a, size, fill_value: padded([np.extract(c, a)], size, fill_value)[0]
    ),
    case("compress", some(3), f32(2, 3), axis=1, size=2, fill_value=7).set(
        expected=lambda c, a, axis, size, fill_value: np.concatenate(
            [np.compress(c, a, axis), np.full((2, 2), 7.0)], 1
        )[:, :2]
    ),
    case("compress", some(2), f32(3), size=2).set(
        expected=lambda c, a, size: padded([np.compress(c, a)], size)[0]
    ),
    case("choose", i32(3, low=-3, high=4), [f32(3), i32(3), 2], mode="wrap"),
    case("choose", i32(2, 1, low=-3, high=4), [f32(3), 1.0], mode="clip"),
    case("choose", i32(low=0, high=1), (f32(), f32(2)), mode="clip"),
    case("choose", i32(2), [f32(2)], mode="clip"),
    # Flat indices
    case(
        "ravel_multi_index", (i32(4, low=-3, high=4), i32(4, low=-9, high=9)), (2, 3), mode="clip"
    ),
    case("ravel_multi_index", (i32(2, 1), i32(2)), (2, 3), mode="wrap", order="F"),
    case("ravel_multi_index", (1, 2), (2, 3), dtype="int8").set(
        expected=lambda p, d, dtype: np.ravel_multi_index(p, d)
    ),
    case(
        "ravel_multi_index", (i32(3, low=0, high=1), i32(3, low=0, high=2)), (2, 3), mode="ignore"
    ).set(expected=lambda p, d, mode: np.ravel_multi_index(p, d)),
    case("unravel_index", i32(4, low=0, high=5), (2, 3)).set(vary=False),
    case("unravel_index", i32(2, 2, low=0, high=4), 5).set(vary=False),
    case("unravel_index", i8(3, low=0, high=5), (2, 3)).set(vary=False),
    case("unravel_index", i32(5, make=lambda *_: np.array([0, 7, -1, -9, 5])), (2, 3)).set(
        expected=lambda i, s: np.unravel_index([0, 5, 5, 0, 5], s), vary=False
    ),
    # Taking
    case("take", f32(2, 3), i32(4, low=-6, high=5)).set(vary=False),
    case("take", f32(2, 3), i32(2, 2, low=0, high=2), axis=1),
    case("take", f32(2, 3), i32(low=0, high=1), axis=0),
    case("take", f32(2, 3), 1, axis=-1),
    case("take", f32(2, 3), i32(4, low=-9, high=9), axis=1, mode="wrap").set(vary=False),
    case("take", f32(2, 3), i32(4, low=-9, high=9), axis=1, mode="clip").set(vary=False),
    case("take", f32(3), i32(4, make=lambda *_: np.array([0, 3, -3, -4]))).set(
        # The derivative of NaN fill values is 0.
        expected=lambda a, i: np.array([a[0], np.nan, a[0], np.nan]),
        order=0,
    ),
    case("take", f32(3), i32(2, make=lambda *_: np.array([2, 3])), fill_value=7).set(
        expected=lambda a, i, fill_value: np.array([a[2], 7])
    ),
    case("take", i8(3), i32(2, make=lambda *_: np.array([2, 3]))).set(
        expected=lambda a, i: np.array([a[2], -128]), vary=False
    ),
    case("take", c64(3), i32(2, low=0, high=2), mode="promise_in_bounds").set(
        expected=lambda a, i, mode: np.take(a, i), differs="the reference refuses the mode"
    ),
    case("take", f32(4), np.array([0, 2, 3]), unique_indices=True, indices_are_sorted=True).set(
        expected=lambda a, i, **_: np.take(a, i)
    ),
    case("take", f32(0, 3), i32(2, low=0, high=2), axis=1),
    case("take", f32(), i32(2, low=0, high=0)),
    case("take_along_axis", f32(2, 3), i32(2, 1, low=-3, high=2), axis=1).set(vary=False),
    case("take_along_axis", f32(2, 3), i32(4, 3, low=0, high=1), axis=0),
    case("take_along_axis", f32(2, 3), i32(1, 2, low=0, high=2), axis=-1),
    case("take_along_axis", f32(2, 1, 3), i32(1, 4, 2, low=0, high=2), axis=2),
    case("take_along_axis", f32(2, 3), i32(4, low=0, high=5), axis=None),
    case("take_along_axis", f32(2, 3), np.array([[0, 9], [-9, 1]]), axis=1, mode="clip").set(
        expected=lambda a, i, axis, mode: np.take_along_axis(a, np.array([[0, 2], [0, 1]]), axis)
    ),
    case("take_along_axis", f32(2, 3), np.array([[3], [-4]]), fill_value=5.0).set(
        expected=lambda a, i, fill_value: np.full((2, 1), 5.0)
    ),
    case("take_along_axis", f32(3), np.array([-1, 0]), wrap_negative_indices=False).set(
        expected=lambda a, i, **_: np.array([np.nan, a[0]]), order=0
    ),
    # Updates
    case("put", f32(2, 3), i32(2, low=-6, high=5), f32(3), inplace=False).set(
        expected=lambda a, i, v, inplace: _put(a, i % 6, v, "wrap"), vary=False, order=0
    ),
    case("put", f32(2, 3), np.array([0, -9, 9]), f32(2), mode="wrap", inplace=False).set(
        expected=lambda a, i, v, mode, inplace: _put(a, i, v, mode)
    ),
    case("put", f32(2, 3), np.array([1, -9, 9]), f32(2), mode="clip", inplace=False).set(
        expected=lambda a, i, v, mode, inplace: _put(a, i, v, mode)
    ),
    case("put_along_axis", f32(2, 3), i32(2, 1, low=-3, high=2), f32(2, 1), 1, inplace=False).set(
        expected=lambda a, i, v, axis, inplace: _put_along(a, i, v, axis), vary=False
    ),
    case("put_along_axis", f32(2, 3), np.array([[0, 1, 0]]), 9.0, 0, inplace=False).set(
        expected=lambda a, i, v, axis, inplace: _put_along(a, i, v, axis)
    ),
    case("put_along_axis", f32(2, 3), np.array([4, 1]), f32(2), None, inplace=False).set(
        expected=lambda a, i, v, axis, inplace: _put_along(a, i, v, axis)
    ),
    case("put_along_axis", f32(2, 3), np.array([[5], [-9]]), 7.0, 1).set(
        call=lambda m, a, i, v, axis: m.put_along_axis(a, i, v, axis, inplace=False, mode="clip"),
        expected=lambda a, i, v, axis: _put_along(a, np.array([[2], [0]]), v, axis),
    ),
    case("place", f32(2, 3), MASK, f32(2), inplace=False).set(
        expected=lambda a, k, v, inplace: _place(a, k, v)
    ),
    case("place", f32(2, 3), HALF, f32(4)).set(
        call=lambda m, a, k, v: m.place(a, k, v, inplace=False),
        expected=lambda a, k, v: _place(a, k, v),
    ),
]


def _put(a: np.ndarray, i: np.ndarray, v: np.ndarray, mode: str) -> np.ndarray:
    out = a.copy()
    np.put(out, i, v, mode)
    return out


def _put_along(a: np.ndarray, i: np.ndarray, v: np.ndarray, axis: int | None) -> np.ndarray:
    out = a.copy()
    np.put_along_axis(out, i, v, axis)
    return out


def _place(a: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    out = a.copy()
    np.place(out, k, v)
    return out
