"""Functions of scalars or vectors mapped over arrays; interpolation."""

from __future__ import annotations

import numpy as np

from primax_core.extend import c64, f32, i32
from test_support import case

from .elementwise import fixed

KNOTS = fixed(np.float32, 0.0, 1.0, 3.0)

CASES = [
    case("vectorize", f32(2, 3), f32(3)).set(
        call=lambda m, x, y: m.vectorize(lambda a, b: a * b)(x, y)
    ),
    case("vectorize", f32(4, 1, 2, 3), f32(5, 3)).set(
        call=lambda m, x, y: m.vectorize(lambda a, b: a @ b, signature="(m,n),(n)->(m)")(x, y),
        vary=False,
    ),
    case("vectorize", f32(2, 3)).set(
        call=lambda m, x: (
            m.vectorize(lambda a: (a[0], m.stack([a, a])), signature="(3)->(),(2,3)")(x)
            if m is not np
            else (x[:, 0], np.stack([x, x], 1))
        ),
        vary=False,
    ),
    case("vectorize", f32(3), f32(2)).set(
        call=lambda m, x, y: m.vectorize(lambda a, b: a * b.sum(), excluded={1})(x, y), vary=False
    ),
    case("vectorize", f32(3), f32(3)).set(
        call=lambda m, x, y: m.vectorize(lambda a, b: a + 2 * b)(x, b=y),
        differs="arguments by keyword are mapped, as in NumPy",
    ),
    case("apply_along_axis", f32(2, 3, 4)).set(
        call=lambda m, x: m.apply_along_axis(lambda v: v[:2] * v.sum(), 1, x), vary=False
    ),
    case("apply_along_axis", f32(2, 3)).set(
        call=lambda m, x: m.apply_along_axis(
            lambda v, k, s: m.outer(v, v) * k + s, -1, x, 2, s=1.0
        ),
        vary=False,
    ),
    case("apply_along_axis", f32(3)).set(
        call=lambda m, x: m.apply_along_axis(lambda v: v.sum(), 0, x), vary=False
    ),
    case("apply_over_axes", f32(2, 3, 4)).set(
        call=lambda m, x: m.apply_over_axes(m.sum, x, (0, -1)), vary=False
    ),
    case("apply_over_axes", f32(2, 3)).set(
        call=lambda m, x: m.apply_over_axes(lambda a, i: m.cumsum(a, i), x, [0, 1]), vary=False
    ),
    case("fromfunction").set(call=lambda m: m.fromfunction(lambda i, j: 10 * i + j, (2, 3))),
    case("fromfunction").set(call=lambda m: m.fromfunction(lambda i: i * i, (4,), dtype=int)),
    case("fromfunction").set(
        call=lambda m: m.fromfunction(lambda i, k: i * k, (4,), k=3),
        differs="arguments by keyword are passed on, as in NumPy",
    ),
    case("interp", f32(2, 4, low=-1, high=4), KNOTS, f32(3)).set(vary=False),
    case("interp", f32(low=0.1, high=0.9), KNOTS, f32(3)).set(vary=False),
    case("interp", fixed(np.float32, -1.0, 0.0, 1.0, 3.0, 5.0, np.nan), KNOTS, f32(3)).set(order=0),
    case("interp", f32(5, low=-1, high=4), KNOTS, f32(3), left=7.0, right=f32().high).set(
        vary=False
    ),
    case(
        "interp", f32(5, low=-1, high=4), KNOTS, f32(3), left="extrapolate", right="extrapolate"
    ).set(expected=False, vary=False),
    case(
        "interp", f32(5, low=-3, high=9), fixed(np.float32, 3.1, 0.2, 7.3), f32(3), period=4.0
    ).set(vary=False),
    case("interp", f32(5, low=0, high=4), KNOTS, c64(3)).set(vary=False),
    case("interp", i32(3), fixed(np.int32, -1, 0, 2), i32(3)).set(vary=False),
    case("interp", f32(3), fixed(np.float32, [1.0]), f32(1)).set(vary=False),
    case("unwrap", f32(2, 5, low=-9, high=9)).set(order=1, vary=False),
    case("unwrap", f32(5, 2, low=-9, high=9), axis=0).set(order=1),
    case("unwrap", f32(6, low=-9, high=9), discont=5.0, period=4.0).set(order=1, vary=False),
    case("unwrap", i32(7, low=-9, high=9), period=6).set(vary=False),
    case("unwrap", fixed(np.int32, 0, 2, 4, 0), period=4).set(vary=False),
    case("unwrap", i32(7, low=-9, high=9)).set(vary=False),
]
