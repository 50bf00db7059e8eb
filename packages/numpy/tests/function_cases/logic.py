"""Comparisons, predicates, bitwise functions, selection."""

from __future__ import annotations

import numpy as np

from primax_core.extend import Operand, b1, c64, f32, i8, i32, u8
from test_support import case

from .elementwise import INF, NAN, SPECIAL, fixed

TIES = fixed(np.float32, 1.0, 2.0, NAN, INF, -0.0)
TIED = fixed(np.float32, 1.0, 3.0, NAN, -INF, 0.0)

COMPARISONS = [
    c
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    for c in (
        case(name, TIES, TIED).set(vary=False),
        case(name, i32(2, 3), i32(3)),
        case(name, fixed(np.complex64, 1 + 2j, 1 + 1j), fixed(np.complex64, 1 + 2j, 1 + 3j)),
        case(name, f32(), 0.5),
    )
]

TESTS = [
    *[case(n, SPECIAL) for n in ("isnan", "isinf", "isfinite", "isposinf", "isneginf")],
    *[case(n, i32(3)) for n in ("isnan", "isinf", "isfinite", "isposinf", "isneginf")],
    *[
        case(n, fixed(np.complex64, complex(NAN, 1), complex(1, INF), 1j))
        for n in ("isnan", "isinf", "isfinite")
    ],
    *[case(n, fixed(np.complex64, 1, 1j, 0)) for n in ("isreal", "iscomplex")],
    *[case(n, f32(2, 2)) for n in ("isreal", "iscomplex")],
    case("logical_not", fixed(np.float32, 0.0, 2.0, NAN)),
    case("logical_not", b1(3)),
    case("isclose", f32(2, 3), f32(3)),
    case("isclose", TIES, TIED).set(vary=False),
    case("isclose", TIES, TIED, equal_nan=True).set(vary=False),
    case("isclose", fixed(np.float32, 1.0, 1.01), 1.0, rtol=0.1, atol=0.0),
    case("isclose", f32(2), 1.0, fixed(np.float32, 0.0, 2.0)).set(vary=False),
    case("isclose", fixed(np.int32, 2**24, 2**24 + 1), 2**24, rtol=0, atol=0).set(
        differs="integers are compared exactly, as in NumPy", vary=False
    ),
    case("isclose", c64(3), c64(3)),
    case("allclose", f32(2, 3), f32(3)),
    case("allclose", TIES, TIES, equal_nan=True).set(vary=False),
    case("allclose", f32(0), f32(0)),
    case("allclose", f32(3), 0.0, 2.0, atol=5.0),
    case("array_equal", f32(3), f32(3)),
    case("array_equal", TIES, TIES).set(vary=False),
    case("array_equal", TIES, TIES, True).set(vary=False),
    case("array_equal", i32(3), i32(2, 3)),
    case("array_equal", [1, 2], [1, 2]).set(compiled=False),
    case("array_equiv", fixed(np.int32, 2, 2), i32(3, 2)),
    case("array_equiv", fixed(np.int32, 2, 2), fixed(np.int32, [[2, 2], [2, 2]])),
    case("array_equiv", i32(2), i32(3)).set(differs="shapes that do not fit are not equivalent"),
]

BITS = [
    case("invert", i32(3)),
    case("bitwise_not", b1(3)),
    case("bitwise_invert", u8(3)),
    case("left_shift", i32(2, 3), i32(3, low=0, high=5)),
    case("bitwise_left_shift", u8(3), u8(3, high=9)).set(
        expected=lambda x, y: np.left_shift(x, y), vary=False
    ),
    case("right_shift", i32(3, low=-90, high=90), i32(3, low=0, high=5)),
    case("bitwise_right_shift", u8(3), u8()).set(vary=False),
    case("bitwise_count", i32(4, low=-90, high=90)),
    case("bitwise_count", i8(2, 3)),
    case("bitwise_count", b1(3)),
    case("packbits", b1(11)),
    case("packbits", i32(2, 3, 4), axis=1),
    case("packbits", u8(2, 9), axis=-1, bitorder="little"),
    case("packbits", u8(2, 9), None, "little"),
    case("packbits", b1(0)).set(vary=False),
    case("unpackbits", u8(3, high=255)),
    case("unpackbits", u8(2, 3, high=255), axis=0, bitorder="little").set(vary=False),
    case("unpackbits", u8(2, 3, high=255), axis=-1, count=10).set(vary=False),
    case("unpackbits", u8(2, high=255), count=20).set(vary=False),
    case("unpackbits", u8(2, high=255), count=-3).set(vary=False),
]

CHOICES = [
    case("clip", f32(2, 3), -0.5, 0.5),
    case("clip", f32(3), min=-0.5),
    case("clip", f32(3), max=f32(3).low),
    case("clip", i32(4), 0, 2),
    case("clip", f32(2, 3), f32(3, low=-2, high=0), f32(2, 1, low=0.1, high=2)),
    case("clip", f32(3), 1.0, -1.0),
    case("clip", f32(3)).set(expected=lambda x: x),
    *[case(n, TIES, TIED).set(order=0) for n in ("fmax", "fmin")],
    *[case(n, f32(2, 3), f32(3)) for n in ("fmax", "fmin")],
    *[case(n, i32(3), i32(3)) for n in ("fmax", "fmin")],
    case("where", b1(2, 3), f32(3), f32(2, 1)),
    case("where", b1(3), f32(), 1.0),
    case("where", b1(), f32(2), f32(2)),
    case("where", i32(3), i32(3), f32(3)).set(vary=False),
    case("where", b1(3), 1, 2),
    case("where", b1(2, 3)).set(compiled=False, batched=False, vary=False),
    case("where", b1(2, 3), size=4, fill_value=-1).set(expected=False, vary=False),
    case("select", [b1(3), b1(3)], [f32(3), f32(3)]),
    case("select", [b1(2, 3), b1(3)], [f32(3), 2.5], f32(3)).set(vary=False),
    case("select", [b1(3)], [i32(3)], -7).set(vary=False),
    case("select", [b1()], [1]).set(vary=False),
    case("piecewise", f32(2, 3), [b1(2, 3), b1(2, 3)], [np.square, 7.0]).set(
        call=lambda m, x, c, f: m.piecewise(x, list(c), [lambda v: v * v, 7.0]), vary=False
    ),
    case("piecewise", f32(5), [b1(5)], [2.0]).set(
        call=lambda m, x, c, f: (
            m.piecewise(x, list(c), [lambda v, k, s: v * k + s, lambda v, k, s: v - k], 2.0, s=1.0)
            if m is not np
            else np.where(c[0], x * 2 + 1, x - 2)
        ),
        vary=False,
    ),
    case("piecewise", i32(4), [b1(4), b1(4), b1(4)], [1, 2, 3]).set(vary=False),
    case("piecewise", f32(5), b1(5), [1.0, 2.0]).set(
        differs="an array is one condition, as in NumPy"
    ),
    case("piecewise", fixed(np.float32, -1.0, 0.0, 4.0), Operand(np.bool_, (3,)), []).set(
        call=lambda m, x, c, f: m.piecewise(x, [x > 0], [lambda v: v**0.5, lambda v: v * 0]),
        order=0,
        vary=False,
    ),
]

CASES = [*COMPARISONS, *TESTS, *BITS, *CHOICES]
