"""Means, variances, quantiles, covariance."""

from __future__ import annotations

import numpy as np

from primax_core.extend import b1, bf16, c64, f16, f32, i8, i32
from test_support import case

from .reductions import HOLES, INF, MASK, NAN, NO_ROW, fixed

POSITIVE = {"low": 0.5, "high": 2.0}
COUNTS = np.array([1, 3, 0, 2])
WEIGHTS = {"weights": np.float32([1, 2, 1]), "method": "inverted_cdf"}
LEVELS = np.array([0.1, 0.5, 0.9], np.float32)

MEANS = [
    case("mean", f32(2, 3)),
    case("mean", f32(2, 3, 2), axis=(0, -1), keepdims=True),
    case("mean", i8(2, 3), axis=0),
    case("mean", b1(4)),
    case("mean", f32(2, 3), where=MASK),
    case("mean", f32(2, 3), where=np.array([False, True, True]), axis=1),
    case("mean", i8(4), dtype=np.float16).set(tolerance=1e-2),
    case("mean", c64(3)).set(vary=False),
    case("mean", f16(4), axis=0),
    case("mean", f32(0, 2), axis=0).set(order=0),
    case("mean", fixed(INF, 1.0)).set(order=0),
    case("nanmean", HOLES).set(order=0),
    case("nanmean", HOLES, axis=-1, keepdims=True).set(order=0),
    case("nanmean", NO_ROW, axis=1).set(order=0),
    case("nanmean", f32(2, 3), where=MASK, axis=1),
    case("nanmean", i8(4), dtype=np.float32),
]
VARIANCES = [
    case(name, operand, **params).set(order=order)
    for name in ("var", "std", "nanvar", "nanstd")
    for operand, params, order in (
        (f32(2, 3), {}, 2),
        (f32(2, 3, 2), {"axis": (0, -1), "keepdims": True, "ddof": 1}, 2),
        (i32(2, 3), {"axis": 0}, 0),
        (f32(2, 3), {"where": MASK}, 2),
        (f32(2, 3), {"axis": 1, "mean": np.array([[0.5], [0.25]], np.float32)}, 2),
        (f32(3), {"dtype": np.float16}, 0),
        (f32(2, 3), {"ddof": 0.5, "axis": -1}, 2),
    )
] + [
    case("var", c64(4)),
    case("var", f32(2, 3), axis=1, correction=1),
    case("std", f32(2, 3), axis=1, correction=1.5),
    case("std", c64(2, 3), axis=0),
    case("nanvar", HOLES, axis=0).set(order=0),
    case("nanstd", HOLES, ddof=1).set(order=0),
    case("nanvar", NO_ROW, axis=1).set(order=0),
    case("var", f32(0)).set(order=0),
    # Without degrees of freedom the standard requires NaN, NumPy returns infinity.
    case("var", f32(2), ddof=2).set(expected=lambda x, ddof: np.float32(NAN), order=0),
    case("var", bf16(300), axis=0).set(order=0),
]
WEIGHTED = [
    case("average", f32(2, 3)),
    case("average", f32(2, 3), axis=1, keepdims=True, returned=True),
    case("average", f32(2, 3), 1, f32(3, **POSITIVE)),
    case("average", f32(2, 3), None, f32(2, 3, **POSITIVE), returned=True),
    case("average", f32(2, 3, 4), (2, 0), f32(4, 2, **POSITIVE)),
    case("average", i32(4), 0, i32(4, low=1, high=3)),
    case("average", i8(2, 3), axis=0),
    case("cov", f32(2, 4)),
    case("cov", f32(4)),
    case("cov", f32(4), f32(4)),
    case("cov", f32(4, 2), rowvar=False, bias=True),
    case("cov", f32(2, 4), fweights=COUNTS, ddof=0),
    case("cov", f32(2, 4), aweights=np.array([0.5, 1.0, 2.0, 1.5], np.float32)),
    case("cov", f32(2, 4), fweights=COUNTS, aweights=np.float32([0.5, 1.0, 2.0, 1.5]), ddof=1),
    case("cov", c64(2, 4)),
    case("cov", f32(2, 4), f32(3, 4), dtype=np.float32).set(order=0),
    case("cov", i32(2, 4), ddof=2),
    case("corrcoef", f32(2, 4)).set(order=1),
    case("corrcoef", f32(4), f32(4), dtype=np.float32).set(order=0),
    case("corrcoef", f32(4, 2), rowvar=False).set(order=1),
    case("corrcoef", c64(2, 4)).set(order=0),
    case("corrcoef", i32(2, 4)),
    case("corrcoef", f32(4)).set(order=0),
]
# The reference has no other methods, and rejects integer levels.
OURS = "the reference does not have the method"
METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")
MORE_METHODS = (
    "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
    "weibull", "median_unbiased", "normal_unbiased",
)  # fmt: skip
QUANTILES = [
    *[case("quantile", f32(2, 5), 0.3, axis=1, method=m) for m in METHODS],
    *[case("quantile", f32(5), 0.3, method=m).set(differs=OURS) for m in MORE_METHODS],
    *[
        case("quantile", fixed(4.0, 1.0, 3.0, 2.0), np.float64([0, 0.25, 0.5, 0.75, 1]), method=m)
        .set(order=0, differs="double precision decides on which side of a step a level lies")
        for m in METHODS + MORE_METHODS
    ],
    case("quantile", f32(2, 3), LEVELS, axis=(0, 1), keepdims=True),
    case("quantile", f32(2, 3), LEVELS, axis=0),
    case("quantile", f32(4), f32(3, low=0.05, high=0.95)).set(order=1, tolerance=1e-4, vary=False),
    case("quantile", i32(5), 0.5),
    case("quantile", fixed(1.0, NAN, 2.0), 0.5).set(order=0),
    case("quantile", fixed(1.0, INF, -INF, 2.0), LEVELS).set(order=0, expected=False),
    case("quantile", f32(3), 0.5, **WEIGHTS).set(order=1),
    case("quantile", f32(2, 3), LEVELS, axis=1, **WEIGHTS).set(order=1),
    case("quantile", f16(5), 0.25),
    case("percentile", f32(2, 5), 30, axis=1),
    case("percentile", f32(5), 100 * LEVELS, keepdims=True),
    case("percentile", i8(5), 30, method="lower"),
    case("percentile", f32(3), 40, **WEIGHTS).set(order=1),
    case("nanquantile", HOLES, 0.3, axis=1).set(order=0),
    case("nanquantile", HOLES, LEVELS, keepdims=True).set(order=0),
    case("nanquantile", NO_ROW, 0.5, axis=1, method="higher").set(order=0),
    case("nanquantile", f32(3, 4), 0.3, axis=(0, 1)).set(order=1),
    case("nanquantile", HOLES, 0.3, method="hazen").set(order=0, differs=OURS),
    case("nanpercentile", HOLES, 30, axis=0, method="nearest").set(order=0),
    case("nanpercentile", f32(4), 60 + LEVELS).set(order=1),
    case("median", f32(5)),
    case("median", f32(2, 4), axis=1, keepdims=True),
    case("median", f32(2, 3, 2), axis=(0, -1)),
    case("median", i32(4)),
    case("median", fixed(1.0, NAN, 2.0)).set(order=0),
    case("median", fixed(3.0, 1.0, 3.0, 1.0, 3.0)).set(order=0),
    case("median", b1(3)).set(expected=lambda x: np.median(x.astype(int))),
    case("nanmedian", HOLES).set(order=0),
    case("nanmedian", HOLES, axis=0, keepdims=True).set(order=0),
    case("nanmedian", NO_ROW, axis=1).set(order=0),
    case("nanmedian", i8(5)),
]  # fmt: skip
CASES = MEANS + VARIANCES + WEIGHTED + QUANTILES
