"""Unary and binary functions: exponentials, trigonometry, rounding, remainders, float parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend import Operand, b1, bf16, c64, f16, f32, i8, i32, u8, u32
from test_support import Case, case

INF, NAN = np.inf, np.nan


def fixed(dtype: Any, *values: Any) -> Operand:
    """An operand with fixed values."""
    array = np.array(values if len(values) > 1 or not np.shape(values[0]) else values[0])
    return Operand(dtype, array.shape, make=lambda rng, shape: array)


def _unary(name: str, low: float, high: float, complex_too: bool = True) -> list[Case]:
    """An inexact function: floats in a range, a scalar, an empty array, integers, complex
    numbers."""
    cases = [
        case(name, f32(2, 3, low=low, high=high)),
        case(name, f32(low=low, high=high)),
        case(name, f32(0, 2)).set(vary=False),
        case(name, i32(3, low=max(int(low), 0), high=int(high))),
        case(name, fixed(np.float32, 0.0, -0.0, INF, -INF, NAN, 0.5)).set(order=0, vary=False),
    ]
    if complex_too:
        cases.append(case(name, c64(3, low=low, high=high)).set(vary=False))
    return cases


EXPONENTIALS = [
    *_unary("exp", -2, 2),
    *_unary("exp2", -2, 2),
    *_unary("expm1", -2, 2),
    *_unary("log", 0.2, 4),
    *_unary("log2", 0.2, 4),
    *_unary("log10", 0.2, 4),
    *_unary("log1p", -0.7, 3),
    *_unary("sqrt", 0.2, 4),
    *_unary("cbrt", 0.2, 4, False),
    case("cbrt", f32(3, low=-4, high=-0.2)),
    *_unary("i0", -4, 4, False),
    case("i0", fixed(np.float32, 0.0, 3.0, -5.0)),
]
EXPONENTIALS = [
    c.set(expected=lambda x: np.i0(np.asarray(x, np.float64))) if c.name == "i0" else c
    for c in EXPONENTIALS
    if not (c.name == "i0" and c.order == 0)
]

ANGLES = [
    *_unary("sin", -4, 4),
    *_unary("cos", -4, 4),
    *_unary("tan", -1, 1),
    *_unary("arcsin", -0.9, 0.9),
    *_unary("arccos", -0.9, 0.9),
    *_unary("arctan", -3, 3),
    *_unary("sinh", -2, 2),
    *_unary("cosh", -2, 2),
    *_unary("tanh", -2, 2),
    *_unary("arcsinh", -2, 2),
    *_unary("arccosh", 1.2, 4),
    *_unary("arctanh", -0.8, 0.8),
    case("asin", f32(3, low=-0.9, high=0.9)),
    case("acos", f32(3, low=-0.9, high=0.9)),
    case("atan", f32(3)),
    case("asinh", f32(3)),
    case("acosh", f32(3, low=1.1, high=3)),
    case("atanh", f32(3, low=-0.9, high=0.9)),
    case("arctan2", f32(2, 3), f32(3)),
    case("arctan2", fixed(np.float32, 0.0, -0.0, INF), fixed(np.float32, -1.0, -1.0, -INF)).set(
        order=0, vary=False
    ),
    case("atan2", f32(), f32(4)),
    case("deg2rad", f32(3, low=-360, high=360)),
    case("deg2rad", i32(3)),
    case("radians", f32(3)),
    case("rad2deg", f32(2, 2)),
    case("degrees", f32()),
    case("sinc", f32(5)),
    case("sinc", f32(3, make=lambda rng, shape: np.array([0.0, 0.01, 1.0]))),
    case("sinc", c64(3)).set(vary=False),
    case("hypot", f32(2, 3, low=0.2), f32(3, low=0.2)),
    case("hypot", f32(), f32()),
    case("hypot", i32(3, low=1, high=4), i32(3, low=1, high=4)),
    case(
        "hypot",
        fixed(np.float32, INF, NAN, 3e38, 0.0, NAN),
        fixed(np.float32, NAN, -INF, 1e38, 0, 1.0),
    ).set(order=0, vary=False),
    case("angle", c64(4)),
    case("angle", c64(2, 2), deg=True),
    case("angle", f32(3, low=0.2)),
    case("angle", f32(3, low=-2, high=-0.2), deg=True),
]

HALVES = fixed(np.float32, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1.2, -1.7)
ROUNDING = [
    *[
        c
        for name in ("floor", "ceil", "trunc")
        for c in (
            case(name, HALVES).set(order=0),
            case(name, i32(3)),
            case(name, f32(0)),
            case(name, b1(3)),
        )
    ],
    case("rint", HALVES).set(order=0),
    case("rint", i32(3)),
    case("rint", c64(4, low=-9, high=9)).set(order=0),
    case("round", HALVES).set(order=0),
    case("round", f32(2, 3, low=-9, high=9), 1).set(order=0, vary=False),
    case("round", f32(3, low=-900, high=900), decimals=-2).set(order=0, vary=False),
    case("round", i32(3), 2),
    case("round", c64(3, low=-9, high=9), 1).set(order=0, vary=False),
    case("around", f32(3, low=-9, high=9), 2).set(order=0, vary=False),
]

NONZERO = f32(3, low=0.5, high=3)
ARITHMETIC = [
    case("divide", f32(2, 3), f32(3, low=0.5)),
    case("true_divide", i32(3), i32(3, low=1, high=3)),
    case("divide", c64(3), c64(3, low=0.5)),
    case("floor_divide", f32(2, 3, low=-9, high=9), NONZERO).set(order=0),
    case("floor_divide", i32(4, low=-9, high=9), i32(4, low=1, high=3)),
    case("floor_divide", i32(4, low=-9, high=9), i32(4, low=-3, high=-1)).set(vary=False),
    case("remainder", f32(2, 3, low=-9, high=9), NONZERO),
    case("mod", i32(4, low=-9, high=9), i32(4, low=-3, high=-1)).set(vary=False),
    case("mod", f32(4, low=-9, high=9), f32(4, low=-3, high=-0.5)).set(vary=False),
    case("divmod", f32(4, low=-9, high=9), f32(low=0.5)),
    case("divmod", i32(4, low=-9, high=9), i32(4, low=1, high=3)),
    case("fmod", f32(2, 3, low=-9, high=9), NONZERO).set(vary=False),
    case("fmod", i32(4, low=-9, high=9), i32(4, low=1, high=3)).set(vary=False),
    case("fmod", u8(4), u8(4, low=1, high=3)).set(vary=False),
    case("fmod", fixed(np.int32, 7, -7, 0), fixed(np.int32, 0, 0, 0)).set(
        differs="integers modulo 0 are 0, as in NumPy"
    ),
    case("power", f32(2, 3, low=0.5), f32(3)),
    case("power", i32(4, low=-3, high=3), i32(4, low=0, high=5)),
    case("power", f32(3, low=-2, high=-0.5), i32(3)).set(vary=False),
    case("pow", c64(3, low=0.5), c64(3)).set(vary=False),
    case("power", f32(3), 2),
    case("float_power", f32(3, low=0.5), f32(3)),
    case("float_power", i32(4, low=1, high=4), i32(4, low=-2, high=2)).set(
        expected=lambda x, y: np.asarray(x, float) ** y
    ),
    case("square", f32(2, 3)),
    case("square", b1(3)).set(expected=lambda x: x.astype(int)),
    case("square", c64(3)),
    case("reciprocal", f32(3, low=0.5)),
    case("reciprocal", i32(3, low=1, high=4)).set(expected=lambda x: 1 / x),
    case("abs", f32(2, 3, low=0.1)),
    case("abs", c64(3)),
    case("absolute", i32(3)),
    case("abs", fixed(np.float32, -0.0, -INF, NAN)).set(order=0),
    case("abs", u8(3)),
    case("abs", b1(3)).set(vary=False),
    case("fabs", f32(3, low=0.1)),
    case("fabs", i32(3)),
    case("positive", f32(3)),
    case("positive", i32()),
    case("sign", fixed(np.float32, -2.0, -0.0, 0.0, 3.0, INF, NAN)).set(order=0),
    case("sign", c64(3)),
    case("sign", i32(4)),
    case("gcd", i32(5, low=-60, high=60), i32(5, low=-60, high=60)),
    case("gcd", u32(2, 3, high=60), u32(3, high=60)),
    case("gcd", fixed(np.int32, 0, 0, 12), fixed(np.int32, 0, 5, 0)),
    case("lcm", i32(5, low=-20, high=20), i32(5, low=-20, high=20)),
    case("lcm", i8(), i8(3)),
    case("real", c64(3)),
    case("real", f32(2, 2)),
    case("imag", c64(3)),
    case("imag", i32(2)),
    case("conj", c64(2, 3)),
    case("conjugate", f32(3)),
]

SPECIAL = fixed(np.float32, 0.0, -0.0, 1.5, -6.0, INF, -INF, NAN)
FLOAT_PARTS = [
    case("signbit", SPECIAL).set(vary=False),
    case("signbit", i32(4)).set(vary=False),
    case("signbit", f16(4)).set(vary=False),
    case("copysign", f32(2, 3, low=0.2), f32(3, low=-2, high=-0.2)).set(vary=False),
    case("copysign", SPECIAL, f32()).set(vary=False, order=0),
    case("copysign", i32(3), i32(3)).set(vary=False),
    case("copysign", f16(3), f16(3)).set(vary=False),
    case("nextafter", f32(4), f32(4)).set(order=0, vary=False),
    case("nextafter", bf16(2, 3), bf16(3)).set(order=0, vary=False),
    case("heaviside", fixed(np.float32, -2.0, 0.0, 3.0, NAN), f32(4)).set(vary=False, order=0),
    case("heaviside", f32(2, 3), f32(3)),
    case("ldexp", f32(2, 3), i32(3)),
    case("ldexp", f32(4), fixed(np.int32, -120, 130, 200, -300)).set(order=0, vary=False),
    case("ldexp", f16(3), i32(3)).set(order=0, vary=False),
    case("ldexp", i32(3), b1(3)).set(expected=lambda x, e: x * 2.0**e, vary=False),
    case("frexp", f32(2, 3, low=0.6, high=0.9)).set(vary=False),
    case("frexp", SPECIAL).set(order=0, vary=False),
    case("frexp", fixed(np.float32, 3e38, 1e-37, -12.0)).set(vary=False, order=0),
    case("frexp", i32(3)).set(expected=lambda x: np.frexp(x.astype(float)), vary=False),
    case("frexp", f16(3)).set(vary=False),
    case("spacing", fixed(np.float32, 1.0, -1.5, 1e10, INF, NAN)).set(order=0, vary=False),
    case("spacing", f16(4, low=0.1)).set(order=0, vary=False),
    case("modf", f32(2, 3, low=0.1, high=0.9)).set(vary=False),
    case("modf", SPECIAL).set(order=0, differs="the parts of infinities, and of -0.0, are NumPy's"),
    case("modf", i32(3)).set(expected=lambda x: np.modf(x.astype(float))),
    case("nan_to_num", f32(3)),
    case("nan_to_num", SPECIAL).set(order=1, vary=False),
    case("nan_to_num", SPECIAL, True, 1.0, 2.0, -3.0).set(order=0, vary=False),
    case("nan_to_num", SPECIAL, nan=9.0, posinf=0).set(order=0, vary=False),
    case("nan_to_num", i32(3)),
    case("nan_to_num", fixed(np.complex64, complex(INF, NAN), complex(1, -INF))).set(
        order=0, vary=False
    ),
]

CASES = [*EXPONENTIALS, *ANGLES, *ROUNDING, *ARITHMETIC, *FLOAT_PARTS]
