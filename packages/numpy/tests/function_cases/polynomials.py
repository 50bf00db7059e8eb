"""Polynomials and window functions."""

from __future__ import annotations

import numpy as np

from primax_core.extend import c64, f16, f32, i8, i32
from test_support import case

from .reductions import fixed

KNOWN = {"compiled": False, "batched": False}
X = np.array([0.0, 0.5, 1.0, 1.5, 2.0], np.float32)
LEAD = {"make": lambda rng, s: np.concatenate([[1.5], rng.uniform(-1, 1, s[0] - 1)])}
ROOTS = {"observe": lambda m, x: m.sort_complex(x)}


def without_trim(function):
    """NumPy's products and quotients, padded to the lengths of their degrees."""

    def call(a, b):
        out = np.polymul(a, b) if function == "polymul" else np.polydiv(a, b)
        if function == "polymul":
            n = len(a) + len(b) - 1
            return np.concatenate([np.zeros(n - len(out)), out])
        q, r = out
        return q, np.concatenate([np.zeros(len(a) - len(r)), r])

    return call


def lengthened(m, result):
    """The results in strong types; the reference is weakly typed here."""
    return [*result[:4], m.asarray(result[4], dtype="float32")]


ARITHMETIC = [
    *[
        case(name, a, b)
        for name in ("polyadd", "polysub")
        for a, b in ((f32(3), f32(2)), (i32(2), i32(4)), (c64(2), f32(2)))
    ],
    case("polymul", f32(3), f32(2)),
    case("polymul", i32(2), i32(4)),
    case("polymul", c64(2), f32(2)),
    case("polymul", fixed(0.0, 1.0, 2.0), f32(2)).set(expected=without_trim("polymul")),
    case("polymul", fixed(0.0, 1.0, 2.0), f32(2), trim_leading_zeros=True).set(
        expected=lambda a, b, trim_leading_zeros: np.polymul(a, b), **KNOWN, order=0
    ),
    case("polydiv", f32(4), f32(2, **LEAD)).set(expected=without_trim("polydiv"), vary=False),
    case("polydiv", f32(2), f32(3, **LEAD)).set(expected=without_trim("polydiv"), vary=False),
    case("polydiv", i32(3), np.int32([2, 1])).set(expected=without_trim("polydiv")),
    case("polydiv", f32(4), np.float32([1, 2]), trim_leading_zeros=True).set(
        expected=lambda a, b, trim_leading_zeros: np.polydiv(a, b), **KNOWN, order=0, vary=False
    ),
    case("polyder", f32(4)),
    case("polyder", i8(4), m=2),
    case("polyder", f32(3), m=0),
    case("polyder", f32(3), m=5),
    case("polyint", f32(3)),
    case("polyint", f32(3), 2, f32(2)),
    case("polyint", i32(3), m=3, k=2),
    case("polyint", f32(2), m=0).set(weak_type=False),
    case("polyval", f32(4), f32(2, 3)),
    case("polyval", i32(3), 2),
    case("polyval", f32(3), i32(2), unroll=4).set(expected=lambda p, x, unroll: np.polyval(p, x)),
    case("polyval", c64(3), f32(2)),
    case("polyval", f32(3, 2), f32(2)),
    case("polyval", np.float32([]), f32(2)),
    case("poly", f32(3)),
    case("poly", i32(2)),
    case("poly", f32(0)),
    case("poly", f32(3, 3)).set(order=0, tolerance=1e-3, vary=False),
    case("poly", c64(2)),
    case("roots", f32(4, **LEAD)).set(**ROOTS, **KNOWN, order=0, tolerance=1e-4, vary=False),
    case("roots", fixed(0.0, 1.0, -3.0, 2.0, 0.0)).set(**ROOTS, **KNOWN, order=0, tolerance=1e-4),
    case("roots", f32(3, **LEAD), strip_zeros=False).set(
        **ROOTS, expected=lambda p, strip_zeros: np.roots(p), order=1, tolerance=1e-4, vary=False
    ),
    case("roots", fixed(0.0, 1.0, -3.0, 2.0), strip_zeros=False).set(
        **ROOTS, expected=False, order=0, tolerance=1e-4, vary=False
    ),
    case("roots", f32(1)).set(order=0, vary=False),
]
FITS = [
    case("polyfit", X, f32(5), 2).set(tolerance=1e-4, vary=False),
    case("polyfit", f32(5, make=lambda rng, s: X + 0.5), f32(5), 1).set(tolerance=1e-4, vary=False),
    case("polyfit", X, f32(5, 2), 1, w=np.float32([1, 2, 1, 2, 1])).set(tolerance=1e-4, vary=False),
    case("polyfit", X, f32(5), 1, full=True).set(
        tolerance=1e-4, vary=False, weak_type=False, order=0, observe=lengthened,
        expected=lambda x, y, deg, full: [*np.polyfit(x, y, deg, full=True)],
    ),
    case("polyfit", X, f32(5), 2, cov=True).set(tolerance=1e-3, vary=False, order=1),
    case("polyfit", X, f32(5, 2), 1, cov=True).set(tolerance=1e-3, vary=False, order=1),
    case("polyfit", X, f32(5), 1, cov="unscaled").set(tolerance=1e-3, vary=False),
    case("polyfit", X, f32(5), 3, rcond=0.3).set(tolerance=1e-3, vary=False),
]  # fmt: skip
ACCURATE = {"tolerance": 3e-6}
WINDOWS = [
    case(name, n).set(tolerance=3e-6, observe=lambda m, x: x + 1)
    for name in ("bartlett", "blackman", "hamming", "hanning")
    for n in (0, 1, 2, 7)
] + [
    case("kaiser", 7, 8.6).set(**ACCURATE),
    case("kaiser", 6, f32(low=0, high=9)).set(tolerance=1e-5, vary=False),
    case("kaiser", 1, 2).set(**ACCURATE),
    case("kaiser", 4, f16(low=1, high=4)).set(order=0, differs="computed in float32"),
    case("kaiser", 3, 200.0).set(tolerance=1e-4, differs="the reference overflows"),
]
CASES = ARITHMETIC + FITS + WINDOWS
