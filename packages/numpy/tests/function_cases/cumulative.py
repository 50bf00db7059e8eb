"""Cumulative sums and products, differences, numerical derivatives and integrals."""

from __future__ import annotations

import numpy as np

from primax_core.extend import b1, bf16, c64, f16, f32, i8, i32, u8
from test_support import case

from .reductions import INF, NAN, fixed

POINTS = np.array([0.0, 0.5, 2.0, 3.0], np.float32)
STANDARD = "the standard and NumPy widen the integers of products too"

RUNNING = [
    case(name, operand, **params)
    for name in ("cumsum", "cumprod")
    for operand, params in (
        (f32(2, 3), {}),
        (f32(2, 3), {"axis": -1}),
        (f32(0, 3), {"axis": 0}),
        (f32(), {}),
        (i32(4), {"dtype": np.float32}),
        (b1(4), {}),
        (i32(4), {"dtype": bool}),
        (c64(3), {}),
    )
] + [
    case("cumsum", i8(4)).set(expected=lambda x: np.cumsum(x, dtype=np.int8)),
    case("cumsum", bf16(300)).set(order=0),
    case("cumsum", fixed(1.0, INF, -INF, NAN)).set(order=0),
    case("cumprod", fixed(2.0, 0.0, 3.0, 4.0)),
    *[
        case(name, operand, **params).set(
            differs=STANDARD if "prod" in name and ints else "",
            order=0 if "dtype" in params else 2,
            vary=name == "cumulative_sum",
        )
        for name in ("cumulative_sum", "cumulative_prod")
        for operand, params, ints in (
            (f32(4), {}, False),
            (f32(2, 3), {"axis": -1, "include_initial": True}, False),
            (f32(2, 3), {"axis": 0, "dtype": np.float16}, False),
            (i8(4), {"include_initial": True}, True),
            (u8(3), {}, True),
        )
    ],
]
DIFFERENCES = [
    case("diff", f32(4)),
    case("diff", f32(2, 4), n=2, axis=0),
    case("diff", f32(2, 4), n=0),
    case("diff", f32(3), n=5),
    case("diff", b1(4)),
    case("diff", u8(4)),
    case("diff", f32(3), 1, -1, f32(), f32(2)),
    case("diff", f32(2, 3), prepend=np.float32(1), append=np.float32([[1], [2]])),
    case("ediff1d", f32(2, 3)),
    case("ediff1d", f32(3), f32(2), f32()),
    case("ediff1d", i32(3), to_end=np.int32([4]), to_begin=7),
    case("ediff1d", f32(1)),
    case("gradient", f32(4)),
    case("gradient", f32(3, 4)),
    case("gradient", f32(3, 4), axis=-1),
    case("gradient", f32(3, 4), 2.0).set(weak_type=False),
    case("gradient", f32(3, 4), 2.0, POINTS),
    case("gradient", f32(4), f32(4, make=lambda rng, s: np.cumsum(rng.uniform(0.5, 1, s)))).set(
        vary=False
    ),
    case("gradient", i32(4)),
    case("gradient", f16(4), axis=(0,)),
    case("gradient", f32(2), np.float32([1.0, 3.0])),
    *[
        case("gradient", *args, **params).set(differs="the reference has no edge_order")
        for args, params in (
            ((f32(4),), {"edge_order": 2}),
            ((f32(3, 4), 0.5, POINTS), {"edge_order": 2}),
            ((f32(4), POINTS), {"edge_order": 1}),
        )
    ],
    case("trapezoid", f32(3)),
    case("trapezoid", f32(2, 3), axis=0),
    case("trapezoid", f32(2, 4), POINTS),
    case("trapezoid", f32(2, 4), f32(2, 4)),
    case("trapezoid", f32(2, 3), dx=0.5),
    case("trapezoid", i32(4)),
    case("trapezoid", f32(1)),
    case("trapezoid", c64(3)),
    case("trapezoid", fixed(INF, 1.0, 2.0)).set(order=0, differs="infinite as in NumPy, not NaN"),
    case("trapezoid", f32(2, 0)).set(differs="zero as in NumPy; the reference fails"),
]
CASES = RUNNING + DIFFERENCES
