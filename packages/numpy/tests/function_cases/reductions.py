"""Sums, products, extrema, logical reductions and counts over axes; with and without NaN."""

from __future__ import annotations

import numpy as np

from primax_core.extend import b1, bf16, c64, f16, f32, i8, i32, u8
from test_support import case

NAN, INF = np.nan, np.inf
MASK = np.array([[True, False, True], [False, True, True]])


def fixed(*values, shape=None):
    """An operand with fixed values."""
    x = np.array(values, np.float32)
    x = x if shape is None else x.reshape(shape)
    return f32(*x.shape, make=lambda rng, s: x)


def holes(*shape):
    """An operand with some NaN elements."""
    return f32(
        *shape, make=lambda rng, s: np.where(rng.random(s) < 0.3, NAN, rng.uniform(-1.5, 1.5, s))
    )


HOLES = holes(3, 4)
NO_ROW = fixed(NAN, NAN, 1.0, 2.0, NAN, 3.0, shape=(3, 2))
TIES = fixed(2.0, 1.0, 2.0, 1.0)

SUMS = [
    case("sum", f32(2, 3)),
    case("sum", f32(2, 3, 2), axis=(0, -1), keepdims=True),
    case("sum", i8(2, 3), axis=0),
    case("sum", u8(4), promote_integers=False).set(
        expected=lambda x, promote_integers: np.sum(x, dtype=x.dtype)
    ),
    case("sum", b1(3), dtype=np.float32),
    case("sum", i32(3), dtype=bool),
    case("sum", f32(2, 3), where=MASK, initial=1.5),
    case("sum", f32(0, 3), axis=0),
    case("sum", f32()),
    case("sum", f32(2, 2), axis=()),
    case("sum", bf16(300)).set(expected=lambda x: np.sum(x.astype(np.float32)).astype(x.dtype)),
    case("sum", fixed(INF, 1.0, -INF)).set(order=0),
    case("prod", f32(2, 3), axis=1),
    case("prod", f32(2, 3), initial=2.0, where=MASK),
    case("prod", i8(3), dtype=np.int32, keepdims=True),
    case("prod", i8(3), promote_integers=False).set(
        expected=lambda x, promote_integers: np.prod(x, dtype=x.dtype)
    ),
    case("prod", fixed(0.0, 2.0, 3.0)),
    case("prod", c64(3)),
]
EXTREMA = [
    case(name, *operands, **params)
    for name in ("max", "min", "amax", "amin")
    for operands, params in (
        ((f32(2, 3),), {}),
        ((f32(2, 3, 2),), {"axis": (0, -1), "keepdims": True}),
        ((f32(2, 3),), {"axis": 0, "initial": 0.5, "where": MASK}),
        ((i8(0, 3),), {"initial": 3, "axis": 0}),
        ((f32(),), {}),
    )
]
EXTREMA += [
    case("max", TIES).set(order=0),
    case("min", fixed(1.0, NAN, 2.0)).set(order=0),
    case("max", c64(4)).set(order=0),
    case("max", b1(3)),
    case("max", fixed(-0.0, 0.0)).set(order=0),
    case("ptp", f32(2, 3)),
    case("ptp", f32(2, 3), axis=-1, keepdims=True),
    case("ptp", i8(4)).set(expected=lambda x: np.ptp(x).astype(np.int8)),
    case("ptp", f32(0, 2), axis=1),
    *[
        case("minmax", *args, **params).set(
            expected=lambda a, **params: (np.min(a, **params), np.max(a, **params))
        )
        for args, params in (
            ((f32(2, 3),), {}),
            ((f32(2, 3),), {"axis": 1, "keepdims": True}),
            ((i8(2, 3),), {"initial": 1, "where": MASK}),
        )
    ],
]
PLACES = [
    case(name, operand, **params).set(order=0)
    for name in ("argmax", "argmin")
    for operand, params in (
        (f32(2, 3), {}),
        (f32(2, 3), {"axis": -1, "keepdims": True}),
        (TIES, {}),
        (fixed(1.0, NAN, 2.0, NAN), {}),
        (b1(2, 3), {"axis": 0}),
        (i8(2, 3), {"keepdims": True}),
        (f32(2, 0, 3), {"axis": 0}),
    )
]
TRUTH = [
    case(name, *operands, **params)
    for name in ("all", "any")
    for operands, params in (
        ((b1(2, 3),), {}),
        ((i32(2, 3),), {"axis": -1, "keepdims": True}),
        ((b1(2, 3),), {"axis": 0, "where": MASK}),
        ((f32(0, 3),), {"axis": 0}),
        ((fixed(NAN, 0.0),), {}),
    )
] + [
    case("count_nonzero", i32(2, 3)),
    case("count_nonzero", b1(2, 3), axis=(0, 1), keepdims=True),
    case("count_nonzero", fixed(NAN, 0.0, -0.0, 1.0)),
    case("count_nonzero", c64(3), axis=-1),
]
NAN_REDUCTIONS = [
    case(name, *operands, **params).set(order=order)
    for name in ("nanmax", "nanmin", "nansum", "nanprod")
    for operands, params, order in (
        ((HOLES,), {}, 0),
        ((f32(3, 4),), {"axis": -1, "keepdims": True}, 2),
        ((NO_ROW,), {"axis": 1}, 0),
        ((HOLES,), {"axis": 0, "initial": 0.5, "where": np.array([True, True, False, True])}, 0),
        ((i8(2, 3),), {"axis": 1}, 0),
        ((f32(),), {}, 2),
    )
] + [
    case("nansum", HOLES, axis=0, dtype=np.int32).set(
        expected=lambda a, axis, dtype: np.nansum(np.where(np.isnan(a), 0, a).astype(dtype), axis)
    ),
    case("nanprod", HOLES, dtype=np.float16).set(order=0, tolerance=1e-2),
    case("nanmax", c64(3)).set(order=0),
    *[
        case(name, operand, **params).set(order=0)
        for name in ("nanargmax", "nanargmin")
        for operand, params in (
            (HOLES, {}),
            (f32(3, 4), {"axis": -1, "keepdims": True}),
            (i8(2, 3), {"axis": 0}),
            (fixed(NAN, INF, -INF, NAN), {}),
        )
    ],
    # NumPy rejects rows that are all NaN; here they give -1.
    case("nanargmax", NO_ROW, axis=1).set(expected=False, order=0),
    *[
        case(name, operand, **params).set(
            order=order, tolerance=1e-2 if "dtype" in params else None
        )
        for name in ("nancumsum", "nancumprod")
        for operand, params, order in (
            (HOLES, {}, 0),
            (f32(3, 2), {"axis": 0}, 2),
            (HOLES, {"axis": -1, "dtype": np.float16}, 0),
            (i8(3), {"dtype": np.int8}, 0),
        )
    ],
]
CASES = SUMS + EXTREMA + PLACES + TRUTH + NAN_REDUCTIONS + [case("sum", f16(3), axis=0)]
