"""Unique elements and set operations."""

from __future__ import annotations

import numpy as np

from primax_core.extend import b1, c64, f32, i8, i32
from test_support import case

from .reductions import NAN, fixed

FEW = {"low": 0, "high": 3}
ALL = {"return_index": True, "return_inverse": True, "return_counts": True}
NANS = fixed(1.0, NAN, 2.0, NAN, 1.0)
KNOWN = {"compiled": False, "batched": False, "order": 0}
SIZED = {"expected": False, "order": 0}
ROWS = i32(6, 2, low=0, high=1)
VALUES = {"observe": lambda m, x: [*x]}


def padded(function):
    """NumPy's result, truncated or padded to a size."""

    def call(*args, size, fill_value, **params):
        out = function(*args, **params)
        return np.concatenate([out, np.full(size, fill_value, out.dtype)])[:size]

    return call


UNIQUE = [
    case("unique", i32(6, **FEW)).set(**KNOWN),
    case("unique", i32(2, 3, **FEW), **ALL).set(**KNOWN),
    case("unique", NANS).set(**KNOWN),
    case("unique", NANS, equal_nan=False, return_counts=True).set(**KNOWN),
    case("unique", b1(4)).set(**KNOWN),
    case("unique", c64(4)).set(**KNOWN),
    case("unique", f32(3), sorted=False).set(**KNOWN),
    case("unique", f32(), **ALL).set(**KNOWN),
    case("unique", f32(0), **ALL).set(**KNOWN),
    case("unique", ROWS, axis=0, **ALL).set(**KNOWN),
    case("unique", ROWS, axis=-1).set(**KNOWN),
    case("unique", i8(3, 2, 2, **FEW), axis=1, return_inverse=True).set(**KNOWN),
    case("unique", f32(2, 0), axis=0, return_counts=True).set(**KNOWN),
    # With a size: like the reference, compiled and mapped.
    case("unique", i32(6, **FEW), size=5, **ALL).set(**SIZED),
    case("unique", i32(6, **FEW), size=2, **ALL).set(**SIZED),
    case("unique", i32(2, 3, **FEW), size=7, fill_value=-1, **ALL).set(**SIZED),
    case("unique", NANS, size=4).set(**SIZED),
    case("unique", ROWS, axis=0, size=5, **ALL).set(**SIZED),
    case("unique", ROWS, axis=1, size=3, fill_value=9).set(**SIZED),
    case("unique", f32(0), size=2, fill_value=1).set(**SIZED),
    case("unique", f32(5), size=6).set(expected=False),
    case("unique_all", i32(2, 3, **FEW)).set(**KNOWN, **VALUES),
    case("unique_all", NANS, size=6, fill_value=0).set(**SIZED, **VALUES),
    case("unique_counts", i32(6, **FEW)).set(**KNOWN, **VALUES),
    case("unique_counts", i32(6, **FEW), size=3).set(**SIZED, **VALUES),
    case("unique_inverse", i32(2, 3, **FEW)).set(**KNOWN, **VALUES),
    case("unique_inverse", NANS, size=3).set(**SIZED, **VALUES),
    case("unique_values", NANS).set(**KNOWN),
    case("unique_values", i32(6, **FEW), size=5, fill_value=7).set(
        expected=padded(np.unique), order=0
    ),
]
SETS = [
    case("union1d", i32(4, **FEW), i32(3, **FEW)).set(**KNOWN),
    case("union1d", i32(2, 2), f32(3)).set(**KNOWN),
    case("union1d", i32(4, **FEW), i32(3), size=9, fill_value=-5).set(
        expected=padded(np.union1d), order=0
    ),
    case("union1d", i32(4, **FEW), i32(3), size=9).set(**SIZED),
    case("intersect1d", i32(6, **FEW), i32(4, **FEW)).set(**KNOWN),
    case("intersect1d", i32(2, 3, **FEW), i32(4), return_indices=True).set(**KNOWN),
    case("intersect1d", np.int32([3, 1, 2]), np.int32([2, 4, 3]), assume_unique=True).set(**KNOWN),
    case("intersect1d", i32(6, **FEW), i32(4, **FEW), size=5, return_indices=True).set(**SIZED),
    case("intersect1d", i32(6, **FEW), i32(4), size=2, fill_value=-9).set(**SIZED, vary=False),
    case("intersect1d", i32(3), i32(0), size=2).set(**SIZED),
    case("setdiff1d", i32(6, **FEW), i32(2, **FEW)).set(**KNOWN),
    case("setdiff1d", np.int32([3, 1, 2]), i32(2), assume_unique=True).set(**KNOWN),
    case("setdiff1d", i32(6, **FEW), i32(2, **FEW), size=5).set(**SIZED),
    case("setdiff1d", i32(6, **FEW), i32(0), size=3, fill_value=-1).set(**SIZED),
    case("setxor1d", i32(6, **FEW), i32(4, **FEW)).set(**KNOWN),
    case("setxor1d", np.int32([3, 1]), np.int32([2, 1]), assume_unique=True).set(**KNOWN),
    case("setxor1d", i32(6, **FEW), i32(4), size=7).set(**SIZED),
    case("setxor1d", i32(3), f32(2), size=6, fill_value=-1).set(**SIZED, vary=False),
    case("isin", i32(2, 3), i32(3)),
    case("isin", f32(3), NANS, invert=True),
    case("isin", i32(4), f32(2, 2), assume_unique=True),
    *[
        case("isin", i32(5), i32(20, low=-9, high=9), method=m).set(
            expected=lambda x, y, method: np.isin(x, y)
        )
        for m in ("auto", "compare_all", "binary_search", "sort")
    ],
    case("isin", NANS, NANS, method="binary_search").set(
        expected=lambda x, y, method: np.isin(x, y)
    ),
    case("isin", i32(3), f32(0)),
]
CASES = UNIQUE + SETS
