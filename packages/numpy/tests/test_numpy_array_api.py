"""The Python array API standard (2024.12): signatures, dtypes, special cases, the namespace."""

from __future__ import annotations

import inspect
import itertools
import math
from typing import Any

import numpy as np
import pytest
from special_values import same

import primax_numpy as pnp
from primax_core import enable_x64, jit

INF, NAN, PI = math.inf, math.nan, math.pi
BELOW = -1.5

UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag "
    "isfinite isinf isnan log log1p log2 log10 logical_not negative positive real reciprocal round "
    "sign signbit sin sinh square sqrt tan tanh trunc"
).split()
BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign "
    "divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and "
    "logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract"
).split()

FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = [f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)]
NUMBERS = INTEGERS + FLOATS + COMPLEX
TRUTHS = (
    "equal not_equal less less_equal greater greater_equal isfinite isinf isnan signbit "
    "logical_and logical_or logical_xor logical_not"
).split()
OF_INTEGERS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert",
               "bitwise_left_shift", "bitwise_right_shift")  # fmt: skip
OF_REALS = ("ceil", "floor", "trunc", "floor_divide", "remainder", "maximum", "minimum")
OF_NUMBERS = ("abs", "add", "conj", "equal", "imag", "isfinite", "isinf", "isnan", "multiply",
              "negative", "not_equal", "positive", "pow", "real", "round", "sign", "square",
              "subtract")  # fmt: skip
OF_FLOATS = ("atan2", "copysign", "hypot", "logaddexp", "nextafter", "signbit")


def accepted(name: str) -> list[str]:
    """The dtypes that the standard requires for a function."""
    if name.startswith("logical"):
        return ["bool"]
    if name in OF_INTEGERS:
        shifts = name.endswith("shift")
        return INTEGERS if shifts else ["bool", *INTEGERS]
    if name in OF_REALS or name.startswith(("less", "greater")):
        return INTEGERS + FLOATS
    if name in OF_NUMBERS:
        return NUMBERS
    return FLOATS if name in OF_FLOATS else FLOATS + COMPLEX


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_signatures(name: str) -> None:
    fun = getattr(pnp, name)
    count = 1 if name in UNARY else 2
    fun(*[np.ones(2, accepted(name)[0])] * count)  # all arguments positional
    if isinstance(fun, pnp.ufunc):
        assert fun.nin == count
        return
    parameters = list(inspect.signature(fun).parameters.values())
    required = [p for p in parameters if p.default is inspect.Parameter.empty]
    assert len(required) == count


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_dtypes(name: str) -> None:
    fun = getattr(pnp, name)
    with enable_x64(True):
        for dtype in accepted(name):
            args = [np.ones(2, dtype)] * (1 if name in UNARY else 2)
            expected = "bool" if name in TRUTHS else dtype
            if name in ("abs", "real", "imag") and dtype in COMPLEX:
                expected = FLOATS[COMPLEX.index(dtype)]
            actual = fun(*args)
            assert actual.dtype == expected and not actual.weak_type and actual.shape == (2,)


@pytest.mark.parametrize("name", BINARY)
def test_scalars_with_arrays(name: str) -> None:
    fun = getattr(pnp, name)
    dtype = accepted(name)[-1]
    x = pnp.asarray(np.ones(3, dtype))
    scalar = {"b": True, "i": 1, "u": 1, "f": 1.0, "c": 1.0}[np.dtype(dtype).kind]
    for args in ((x, scalar), (scalar, x)):
        assert fun(*args).shape == (3,)
        assert fun(*args).dtype == fun(x, x).dtype


# Special cases: function, operands, result. Signs of zeros are compared, and the parts of complex
# # numbers; None means either sign.

REAL_CASES: list[tuple[str, tuple[float, ...], float]] = [
    *[("abs", (x,), r) for x, r in [(NAN, NAN), (-0.0, 0.0), (-INF, INF)]],
    *[("acos", (x,), r) for x, r in [(NAN, NAN), (1.5, NAN), (BELOW, NAN), (1.0, 0.0)]],
    *[("acosh", (x,), r) for x, r in [(NAN, NAN), (0.5, NAN), (1.0, 0.0), (INF, INF)]],
    *[
        ("asin", (x,), r)
        for x, r in [(NAN, NAN), (1.5, NAN), (BELOW, NAN), (0.0, 0.0), (-0.0, -0.0)]
    ],
    *[(n, (x,), x) for n in ("asinh", "sinh") for x in (NAN, 0.0, -0.0, INF, -INF)],
    *[
        ("atan", (x,), r)
        for x, r in [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, PI / 2), (-INF, -PI / 2)]
    ],
    *[
        ("atanh", (x,), r)
        for x, r in [
            (NAN, NAN),
            (1.5, NAN),
            (BELOW, NAN),
            (1.0, INF),
            (-1.0, -INF),
            (0.0, 0.0),
            (-0.0, -0.0),
        ]
    ],
    *[
        (n, (x,), x)
        for n in ("ceil", "floor", "trunc", "round", "positive", "real")
        for x in (NAN, 0.0, -0.0, INF, -INF, -3.0)
    ],
    *[("ceil", (x,), r) for x, r in [(-0.5, -0.0), (0.5, 1.0)]],
    *[("round", (x,), r) for x, r in [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0)]],
    *[("cos", (x,), r) for x, r in [(NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)]],
    *[("cosh", (x,), r) for x, r in [(NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF)]],
    *[("exp", (x,), r) for x, r in [(NAN, NAN), (0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0)]],
    *[
        ("expm1", (x,), r)
        for x, r in [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0)]
    ],
    *[
        (n, (x,), r)
        for n in ("log", "log2", "log10")
        for x, r in [(NAN, NAN), (BELOW, NAN), (0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF)]
    ],
    *[
        ("log1p", (x,), r)
        for x, r in [(NAN, NAN), (BELOW, NAN), (-1.0, -INF), (-0.0, -0.0), (0.0, 0.0), (INF, INF)]
    ],
    *[
        ("reciprocal", (x,), r)
        for x, r in [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (NAN, NAN)]
    ],
    *[
        ("sign", (x,), r)
        for x, r in [(-2.0, -1.0), (-0.0, 0.0), (0.0, 0.0), (2.0, 1.0), (NAN, NAN), (-INF, -1.0)]
    ],
    *[
        (n, (x,), r)
        for n in ("sin", "tan")
        for x, r in [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)]
    ],
    *[("square", (x,), r) for x, r in [(-0.0, 0.0), (-INF, INF), (NAN, NAN)]],
    *[
        ("sqrt", (x,), r)
        for x, r in [(NAN, NAN), (-1.0, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, INF)]
    ],
    *[
        ("tanh", (x,), r)
        for x, r in [(NAN, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)]
    ],
    *[("negative", (x,), -x) for x in (0.0, -0.0, INF)],
    *[
        ("logaddexp", (x, y), r)
        for x, y, r in [
            (NAN, INF, NAN),
            (-INF, NAN, NAN),
            (INF, 1.0, INF),
            (-INF, INF, INF),
            (-INF, 2.0, 2.0),
            (-INF, -INF, -INF),
        ]
    ],
    *[
        ("hypot", (x, y), r)
        for x, y, r in [
            (INF, NAN, INF),
            (NAN, -INF, INF),
            (3.0, -0.0, 3.0),
            (0.0, -3.0, 3.0),
            (NAN, 1.0, NAN),
            (-0.0, -0.0, 0.0),
        ]
    ],
    *[
        (n, (x, y), NAN)
        for n in ("maximum", "minimum")
        for x, y in [(NAN, 1.0), (1.0, NAN), (NAN, NAN)]
    ],
    *[
        ("copysign", (x, y), r)
        for x, y, r in [
            (2.0, -1.0, -2.0),
            (-2.0, 0.0, 2.0),
            (2.0, -0.0, -2.0),
            (0.0, -INF, -0.0),
            (-INF, 1.0, INF),
        ]
    ],
    *[
        ("nextafter", (x, y), r)
        for x, y, r in [
            (NAN, 1.0, NAN),
            (1.0, NAN, NAN),
            (-0.0, 0.0, 0.0),
            (0.0, -0.0, -0.0),
            (INF, INF, INF),
        ]
    ],
]


def _quotient(x: float, y: float) -> float:
    """Real division as the standard specifies it."""
    if math.isnan(x) or math.isnan(y):
        return NAN
    sign = math.copysign(1, x) * math.copysign(1, y)
    if math.isinf(x) or y == 0:
        undefined = math.isinf(y) if math.isinf(x) else x == 0
        return NAN if undefined else sign * INF
    return sign * 0.0 if math.isinf(y) or x == 0 else x / y


def _floor(x: float, y: float) -> float:
    actual = _quotient(x, y)
    special = not math.isfinite(actual) or actual == 0
    return actual if special else math.copysign(math.floor(actual), actual or 1.0)


def _remainder(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return NAN
    if math.isinf(y):
        return math.copysign(0.0, y) if x == 0 else x if x * y > 0 else y
    return math.copysign(x % y, y)


VALUES = (NAN, -INF, -3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, INF)
PAIRS = [
    (name, (x, y), rule(x, y))
    for name, rule in [
        ("divide", _quotient),
        ("floor_divide", _floor),
        ("remainder", _remainder),
        ("add", lambda x, y: x + y),
        ("subtract", lambda x, y: x - y),
        ("multiply", lambda x, y: x * y),
        ("atan2", math.atan2),
    ]
    for x, y in itertools.product(VALUES, VALUES)
]


def _power(x: float, y: float) -> float:
    if y == 0 or x == 1:
        return 1.0
    try:
        return math.pow(x, y)
    except ValueError:
        if x == 0:
            odd = y == int(y) and int(y) % 2 == 1
            return math.copysign(INF, x) if odd else INF
        return NAN


PAIRS += [("pow", (x, y), _power(x, y)) for x, y in itertools.product(VALUES, VALUES)]


def _wrong(cases: list[Any], run: Any) -> list[Any]:
    """The cases of a function whose result differs."""
    columns = [np.array(c, np.float32) for c in zip(*[args for _, args, _ in cases])]
    actual = np.asarray(run(*[pnp.asarray(c) for c in columns]), np.float64)
    return [
        (*case, float(f)) for case, f in zip(cases, actual, strict=True) if not same(f, case[2])
    ]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", sorted({c[0] for c in REAL_CASES + PAIRS}))
def test_special_cases_of_real_numbers(name: str, compiled: bool) -> None:
    fun = getattr(pnp, name)
    cases = [c for c in REAL_CASES + PAIRS if c[0] == name]
    assert not _wrong(cases, jit(fun) if compiled else fun)


OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//",
    "remainder": "%", "pow": "**",
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_special_cases_of_operators(name: str) -> None:
    cases = [c for c in PAIRS if c[0] == name]
    assert not _wrong(cases, eval(f"lambda x, y: x {OPERATORS[name]} y"))

    def in_place(x: Any, y: Any) -> Any:
        scope = {"x": x, "y": y}
        exec(f"x {OPERATORS[name]}= y", scope)
        return scope["x"]

    assert not _wrong(cases, in_place)


# The namespace


def test_namespace_of_arrays() -> None:
    x = pnp.ones(3)
    assert x.__array_namespace__() is pnp
    assert x.__array_namespace__(api_version="2024.12") is pnp
    assert pnp.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match=r"'1999\.12' is not available"):
        x.__array_namespace__(api_version="1999.12")


def test_namespace_info() -> None:
    info = pnp.__array_namespace_info__()
    actual = info.capabilities()
    assert actual == {
        "boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64
    }  # fmt: skip
    assert info.default_device() is None and None in info.devices()
    assert info.default_dtypes()["real floating"] == np.float32
    assert set(info.dtypes(kind="complex floating")) == {"complex64"}
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", "int8", "int16", "int32"}
    assert all(info.dtypes(kind=n) for n in ("unsigned integer", "integral", "numeric"))
    with enable_x64(True):
        assert info.default_dtypes()["integral"] == info.default_dtypes()["indexing"] == np.int64
        assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    with pytest.raises(ValueError, match="unrecognized kind 'sound'"):
        info.dtypes(kind="sound")


def test_devices_of_arrays() -> None:
    x = pnp.arange(3)
    assert x.to_device(x.device).device == x.device
    with pytest.raises(ValueError, match="stream"):
        x.to_device(x.device, stream=1)
    np.testing.assert_array_equal(np.from_dlpack(x), [0, 1, 2])


def test_in_place_operators_rebind() -> None:
    x = y = pnp.arange(3)
    x += 2
    assert x is not y and y.tolist() == [0, 1, 2] and x.tolist() == [2, 3, 4]
    x <<= 1
    x //= 3
    assert x.tolist() == [1, 2, 2]
