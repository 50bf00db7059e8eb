"""The ``ufunc`` objects, their methods, and ufuncs of Python functions."""

from __future__ import annotations

import numpy as np

from primax_core.extend import b1, c64, f32, i8, i32, u8
from test_support import case

from .elementwise import INF, NAN, fixed
from .logic import TIED, TIES

CALLS = [
    case("add", f32(2, 3), f32(3)),
    case("add", b1(3), b1(3)),
    case("subtract", i32(3), i32()),
    case("multiply", c64(3), c64(3)),
    case("multiply", f32(), 2.0),
    case("negative", f32(2, 3)),
    case("negative", u8(3)),
    *[case(n, TIES, TIED).set(order=0) for n in ("maximum", "minimum")],
    *[case(n, f32(2, 3), f32(3)) for n in ("maximum", "minimum")],
    *[case(f"bitwise_{n}", i32(2, 3), i32(3)) for n in ("and", "or", "xor")],
    *[case(f"bitwise_{n}", b1(3), b1()) for n in ("and", "or", "xor")],
    *[case(f"logical_{n}", f32(4), fixed(np.float32, 0, 1, 0, NAN)) for n in ("and", "or", "xor")],
    *[case(n, f32(2, 3), f32(3)) for n in ("logaddexp", "logaddexp2")],
    *[
        case(n, fixed(np.float32, 1, 1), fixed(np.float32, 1, 1))
        for n in ("logaddexp", "logaddexp2")
    ],
    *[
        case(
            n,
            fixed(np.float32, INF, -INF, INF, NAN, 90.0),
            fixed(np.float32, INF, -INF, -INF, 1, 1),
        ).set(order=0, vary=False)
        for n in ("logaddexp", "logaddexp2")
    ],
    case("logaddexp", i32(3), i32(3)),
    case("logaddexp", c64(3), c64(3)).set(
        expected=lambda x, y: np.log(np.exp(x) + np.exp(y)), vary=False
    ),
]

NAMES = (
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logaddexp",
    "logaddexp2",
)


def _operand(name: str, *shape: int):
    return i32(*shape) if name.startswith("bitwise") else f32(*shape)


WHERE = np.array([True, False, True])
METHODS = [
    c
    for name in NAMES
    for c in (
        case(f"{name}.reduce", _operand(name, 3, 2)).set(vary=name != "logaddexp2"),
        case(f"{name}.reduce", _operand(name, 2, 3), axis=-1, keepdims=True).set(vary=False),
        case(f"{name}.accumulate", _operand(name, 3, 2)).set(vary=False),
        case(f"{name}.accumulate", _operand(name, 2, 3), axis=1).set(vary=False),
        case(f"{name}.outer", _operand(name, 2), _operand(name, 3, 1)).set(vary=False),
        case(f"{name}.reduceat", _operand(name, 5), fixed(np.int32, 0, 3, 1)).set(
            vary=False,
            differs="NumPy's results are booleans" if name.startswith("logical") else "",
        ),
        case(f"{name}.reduceat", _operand(name, 2, 5), np.array([1, 2]), axis=1).set(
            vary=False,
            differs="NumPy's results are booleans" if name.startswith("logical") else "",
        ),
    )
]


def _at(m, name, x, b, inplace=False):
    fun = getattr(m, name)
    index = np.array([0, 2, 0])
    if m is np:
        x = x.astype(bool) if name.startswith("logical") else x.copy()
        fun.at(x, index, b)
        return x
    return fun.at(x, index, b, inplace=False)


UPDATES = [
    *[
        case(f"{name}.at", _operand(name, 4), _operand(name, 3)).set(
            call=lambda m, x, b, name=name: _at(m, name, x, b),
            vary=False,
            order=2 * (name != "multiply"),
        )
        for name in NAMES
    ],
    case("negative.at", f32(4)).set(
        call=lambda m, x: (
            m.negative.at(x, np.array([1, 1, 3]), inplace=False)
            if m is not np
            else x * np.array([1, 1, 1, -1])
        ),
        vary=False,
    ),
]

OPTIONS = [
    case("add.reduce", f32(2, 3), axis=None),
    case("add.reduce", i8(3), dtype=np.int8).set(vary=False),
    case("add.reduce", f32(2, 3), axis=(0, 1)),
    case("add.reduce", f32(3), initial=2.0, where=WHERE),
    case("multiply.reduce", f32(3), where=WHERE),
    case("maximum.reduce", f32(3), initial=0.0, where=WHERE),
    case("maximum.reduce", i32(3), dtype=np.float32).set(vary=False),
    case("bitwise_or.reduce", i32(3), initial=4).set(vary=False),
    case("bitwise_and.reduce", i32(3, 2), where=WHERE[:, None]).set(vary=False),
    case("logical_xor.reduce", f32(2, 3), axis=None),
    case("logical_and.reduce", b1(3), where=WHERE),
    case("subtract.reduce", f32(2, 3), axis=None).set(
        expected=lambda x, axis: np.subtract.reduce(x.ravel())
    ),
    case("subtract.reduce", f32(3, 2), initial=1.0),
    case("subtract.reduce", f32(3, 2), initial=1.0, where=WHERE[:, None]).set(vary=False),
    case("subtract.reduce", i32(3), dtype=np.float32).set(vary=False),
    case("logaddexp.reduce", f32(2, 3), axis=(0, 1)).set(vary=False),
    case("logaddexp.reduce", f32(3), initial=1.0, where=WHERE).set(vary=False),
    case("add.accumulate", f32(2, 3), axis=None).set(expected=lambda x, axis: np.cumsum(x)),
    case("add.accumulate", b1(3)),
    case("add.accumulate", i32(3), dtype=np.float32).set(vary=False),
    case("subtract.accumulate", i32(3), dtype=np.float32).set(vary=False),
    case("add.reduceat", i32(4), fixed(np.int32, 0, 2), dtype=np.float32).set(vary=False),
]


def _made(m):
    return m.frompyfunc(lambda a, b: 2 * a + b, 2, 1, identity=0)


def _numpy_made(method, *args, **params):
    with np.errstate(all="ignore"):
        function = np.frompyfunc(lambda a, b: 2 * a + b, 2, 1, identity=0)
        return np.asarray(getattr(function, method)(*args, **params)).astype(np.float64)


MADE = [
    case(f"frompyfunc.{method}", f32(3, 2)).set(
        call=lambda m, x, method=method: (
            _numpy_made(method, x) if m is np else getattr(_made(m), method)(x)
        ),
        vary=method == "reduce",
    )
    for method in ("reduce", "accumulate")
] + [
    case("frompyfunc.call", f32(2, 3), f32(3)).set(
        call=lambda m, x, y: _numpy_made("__call__", x, y) if m is np else _made(m)(x, y)
    ),
    case("frompyfunc.outer", f32(2), f32(3)).set(
        call=lambda m, x, y: _numpy_made("outer", x, y) if m is np else _made(m).outer(x, y)
    ),
    case("frompyfunc.reduceat", f32(5), fixed(np.int32, 0, 3, 1)).set(
        call=lambda m, x, i: _numpy_made("reduceat", x, i) if m is np else _made(m).reduceat(x, i),
        vary=False,
    ),
    case("frompyfunc.at", f32(4), f32(2)).set(
        call=lambda m, x, b: _at_made(m, x, b),
        vary=False,
    ),
    case("frompyfunc.two", f32(3)).set(
        call=lambda m, x: (x, x + 1) if m is np else m.frompyfunc(lambda a: (a, a + 1), 1, 2)(x)
    ),
]


def _at_made(m, x, b):
    if m is not np:
        return _made(m).at(x, np.array([1, 1]), b, inplace=False)
    x = x.copy()
    for v in b:
        x[1] = 2 * x[1] + v
    return x


CASES = [*CALLS, *METHODS, *UPDATES, *OPTIONS, *MADE]
