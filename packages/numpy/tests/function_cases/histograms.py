"""Counts of integers, and histograms."""

from __future__ import annotations

import numpy as np

from primax_core.extend import b1, f16, f32, i32, u8
from test_support import case

from .reductions import INF, NAN, fixed

KNOWN = {"compiled": False, "batched": False}
COUNTS = {"low": 0, "high": 5}
BINS = np.array([-1.0, 0.0, 0.5, 2.0], np.float32)
OURS = "the reference does not know the names of rules"
NONE = fixed(-3.0, -1.0, 0.5, 2.0, 7.0)


def weighted(name):
    """The NumPy function, whose ``weights`` argument has another position."""

    def call(a, bins, range, weights, **params):
        return getattr(np, name)(a, bins, range, weights=weights, **params)

    return call


BINCOUNTS = [
    case("bincount", i32(6, **COUNTS)).set(**KNOWN),
    case("bincount", u8(6, **COUNTS), minlength=8).set(**KNOWN),
    case("bincount", b1(5), length=2).set(expected=lambda x, length: np.bincount(x, minlength=2)),
    case("bincount", i32(6, **COUNTS), f32(6), length=7).set(
        expected=lambda x, w, length: np.bincount(x, w, minlength=length)
    ),
    case("bincount", i32(6, low=-2, high=5), length=3).set(
        expected=lambda x, length: np.bincount(np.maximum(x, 0), minlength=6)[:length]
    ),
    case("bincount", i32(6, **COUNTS), i32(6)).set(**KNOWN, vary=False),
    case("bincount", i32(0)).set(**KNOWN),
]
HISTOGRAMS = [
    case("histogram", f32(8)).set(order=0, vary=False),
    case("histogram", i32(8)),
    case("histogram", f32(2, 4), bins=3, density=True).set(order=0),
    case("histogram", i32(8), bins=4, range=(-2, 3)),
    case("histogram", f32(8), BINS).set(order=0),
    case("histogram", f32(8), bins=BINS, density=True).set(order=0),
    case("histogram", NONE, BINS).set(order=0),
    case("histogram", NONE, 3, (-1.0, 2.0)).set(order=0),
    case("histogram", f32(6), 3, (-2.0, 2.0), f32(6)).set(order=0, expected=weighted("histogram")),
    # Derivatives with respect to weights only.
    case("histogram", np.linspace(-1, 1, 6, dtype=np.float32), 3, None, f32(6)).set(
        vary=False, expected=weighted("histogram")
    ),
    case("histogram", fixed(1.0, 1.0), bins=2).set(order=0),
    case("histogram", f32(0), bins=2).set(order=0),
    case("histogram", fixed(1.0, NAN, 2.0), bins=2).set(expected=False, order=0),
    case("histogram", b1(4), bins=2).set(
        expected=lambda x, bins: np.histogram(x.astype(int), bins)
    ),
    case("histogram", f16(5), bins=2).set(order=0),
    case("histogram", f32(20), bins="auto").set(**KNOWN, order=0, differs=OURS),
    case("histogram_bin_edges", f32(5), bins=3).set(order=1),
    case("histogram_bin_edges", i32(5), bins=3, range=(0, 2)),
    case("histogram_bin_edges", f32(5), bins=BINS).set(order=0),
    case("histogram_bin_edges", f32(5), 2, None, f32(5)).set(order=1),
    case("histogram_bin_edges", f32(20), bins="sturges").set(**KNOWN, order=0, differs=OURS),
    case("histogram_bin_edges", fixed(0.0, INF), bins=2).set(order=0, expected=False),
    case("histogram2d", f32(6), f32(6), bins=2).set(order=0),
    case("histogram2d", f32(6), f32(6), bins=[2, BINS]).set(order=0),
    case("histogram2d", f32(6), f32(6), bins=BINS, density=True).set(order=0),
    case("histogram2d", f32(6), f32(6), bins=(2, 3), range=((-2, 2), (-1, 1))).set(order=0),
    case("histogram2d", f32(6), f32(6), 3, None, f32(6)).set(
        order=0, expected=lambda x, y, bins, range, w: np.histogram2d(x, y, bins, range, weights=w)
    ),
    case("histogramdd", f32(6, 3), bins=2).set(order=0),
    case("histogramdd", f32(6, 2), bins=(2, BINS), range=((-2, 2), None)).set(order=0),
    case("histogramdd", f32(6, 2), 2, None, f32(6), density=True).set(
        order=0, tolerance=1e-3, expected=weighted("histogramdd"), vary=False
    ),
    case("histogramdd", i32(6, 2), 2, ((-2, 2), (-2, 2)), i32(6)).set(
        expected=weighted("histogramdd")
    ),
]
CASES = BINCOUNTS + HISTOGRAMS
