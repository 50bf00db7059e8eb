"""Creation from values, shapes, ranges and grids."""

from __future__ import annotations

import numpy as np

from primax_core.extend import bf16, c64, f32, i8, i32
from test_support import case


def known(*cases):
    """Cases whose arguments must be concrete."""
    return [c.set(compiled=False, batched=False, order=0) for c in cases]


CASES = [
    # Values
    case("asarray", f32(2, 3)),
    case("asarray", i8(3), dtype="float32"),
    case("asarray", [1, 2.5]),
    case("asarray", 2.5),
    case("asarray", [[True, False], [False, True]]),
    case("asarray", (1 + 2j, 3)),
    case("asarray", range(4)),
    case("asarray", [[], []]),
    case("asarray", 7, dtype="uint8"),
    case("array", [f32(3), f32(3)]),
    case("array", [[f32(), 1.0], [2.0, f32()]]),
    case("array", [f32(2), [1, 2]]),
    case("array", f32(2), ndmin=3),
    case("array", [np.int8(1), 2]).set(vary=False),
    case("array", [np.float16(1), 2.5, True]),
    case("array", 3, ndmin=2, dtype="int8"),
    case("copy", c64(2, 2)),
    case("copy", 1.5),
    case("astype", f32(3), "int32"),
    case("astype", f32(make=lambda *_: np.array(-3.7)), "int8"),
    case("astype", i32(2, 2), "float32"),
    case("astype", f32(3), "bool"),
    # Constant arrays
    case("zeros", (2, 3)),
    case("zeros", 4, dtype="int16"),
    case("ones", (0, 2)),
    case("ones", (2,), dtype="bfloat16").set(expected=lambda *_, **__: np.ones(2)),
    case("empty", (2, 2)).set(expected=np.zeros),
    case("full", (2, 2), 1.5),
    case("full", 3, 7),
    case("full", (2, 3), f32(3)),
    case("full", (2,), f32(), dtype="int32"),
    case("zeros_like", f32(2, 3)),
    case("ones_like", bf16(2), shape=(3,)).set(expected=lambda a, shape: np.ones(shape)),
    case("full_like", i32(2, 2), 2.7),
    case("full_like", f32(2, 2), f32(2), dtype="float32").set(order=0),
    case("empty_like", f32(2), dtype="int32").set(expected=lambda a, dtype: np.zeros(2)),
    case("eye", 3),
    case("eye", 2, 4, 1, dtype="int32"),
    case("eye", 3, k=-2),
    case("eye", 0),
    case("eye", 3, 3, i32()).set(
        expected=lambda n, m, k: np.eye(n, m, int(k)), weak_type=False, vary=False
    ),
    case("identity", 2, dtype="bool"),
    case("tri", 3, 4),
    case("tri", 2, 3, k=1, dtype="int8"),
    case("tri", 3, k=-1),
    # Ranges
    case("arange", 5),
    case("arange", 1, 6, 2),
    case("arange", 5, 0, -2),
    case("arange", 0.5, 2.0, 0.25),
    case("arange", 3, dtype="float32"),
    case("arange", np.int8(3)),
    case("arange", 3, 1),
    case("linspace", f32(), f32()),
    case("linspace", 0, 1, 5, endpoint=False),
    case("linspace", f32(2), f32(2), 3, axis=1),
    case("linspace", 0, 10, 4, dtype="int32"),
    case("linspace", 0, 1, 4, retstep=True),
    case("linspace", c64(), c64(), 3),
    case("linspace", 0, 1, 0),
    case("linspace", 3, 7, 1),
    case("logspace", 0, 2, 5),
    case("logspace", f32(), f32(2), 3, base=2.0, axis=1).set(vary=False),
    case("logspace", 0, 2, 3, dtype="int32", endpoint=False),
    case("geomspace", 1, 1000, 4),
    # The reference takes minutes to compile this for float8.
    case("geomspace", f32(low=0.5), f32(2, low=0.5), 4).set(vary=False),
    case("geomspace", -1, -8, 4, endpoint=False),
    case("geomspace", f32(2, low=0.5), 10.0, 3, axis=-1).set(vary=False),
    case("geomspace", 1, 64, 4, dtype="int32"),
    case("geomspace", 2, 5, 1),
    # Grids
    case("meshgrid", f32(2), f32(3)),
    case("meshgrid", f32(2), i32(3), f32(1), indexing="ij"),
    case("meshgrid", f32(2), f32(3), sparse=True),
    case("meshgrid", f32(3)),
    case("indices", (2, 3)),
    case("indices", (2, 3), dtype="float32", sparse=True),
    case("indices", ()),
    case("mgrid").set(call=lambda m: m.mgrid[0:2, 0:3:2]),
    case("mgrid").set(call=lambda m: m.mgrid[0:3]),
    case("mgrid").set(call=lambda m: m.mgrid[0:1:3j, 1:3]),
    case("ogrid").set(call=lambda m: m.ogrid[0:2, 1:4]),
    case("ogrid").set(call=lambda m: m.ogrid[0:2:5j]),
    case("r_").set(call=lambda m: m.r_[1, 2, 3.5]),
    case("r_").set(call=lambda m: m.r_[0:3, 7, 0:1:3j]),
    case("r_", f32(3), f32(2)).set(call=lambda m, x, y: m.r_[x, 0, y]),
    case("r_", f32(2, 2)).set(call=lambda m, x: m.r_["1", x, x]),
    case("r_").set(call=lambda m: m.r_["0,2", [1, 2], [3, 4]]),
    case("r_").set(call=lambda m: m.r_["0,2,0", [1, 2], [3, 4]]),
    case("r_").set(call=lambda m: m.r_["1,3,0", [1, 2], [3, 4]]),
    case("r_").set(call=lambda m: m.r_["c", [1, 2], [3]]),
    case("r_").set(call=lambda m: m.r_["r", [1, 2], [3]]),
    case("c_", f32(3), i32(3)).set(call=lambda m, x, y: m.c_[x, y]),
    case("c_").set(call=lambda m: m.c_["0,1", [1, 2]]),
    case("s_").set(
        call=lambda m: m.arange(6)[m.s_[1:5:2]] + m.arange(6)[m.index_exp[1:5:2]],
    ),
    case("ix_", i32(2), i32(3)),
    case("ix_", f32(0)),
    *known(
        case("ix_", np.array([True, False, True]), np.array([3, 1])).set(
            differs="the reference refuses booleans, NumPy takes them", vary=False
        )
    ),
    # Triangles and diagonals
    case("tril", f32(3, 4)),
    case("tril", i32(2, 3, 3), k=-1),
    case("triu", c64(3, 2), k=1),
    case("triu", f32(2, 2), k=-7),
    case("tril", f32(0, 2)),
    case("tril_indices", 3),
    case("tril_indices", 3, k=-1, m=2),
    case("triu_indices", 2, k=1, m=4),
    case("tril_indices_from", f32(3, 2), k=1).set(order=0),
    case("triu_indices_from", f32(2, 2)).set(order=0),
    *known(
        case("mask_indices").set(call=lambda m: m.mask_indices(3, m.triu, 1)),
    ),
    case("mask_indices").set(
        call=lambda m: m.mask_indices(3, m.triu, size=5),
        expected=lambda: [x[:5] for x in np.mask_indices(3, np.triu)],
    ),
    case("diag_indices", 3),
    case("diag_indices", 2, ndim=3),
    case("diag_indices_from", f32(2, 2, 2)).set(order=0),
    case("diag", f32(3)),
    case("diag", f32(2), k=-1),
    case("diag", c64(2), k=2),
    case("diag", f32(0), k=1),
    case("diag", f32(3, 4)),
    case("diag", f32(3, 4), k=2),
    case("diag", f32(3, 2), k=-1),
    case("diag", f32(2, 2), k=5),
    case("diagflat", f32(2, 2)),
    case("diagflat", f32(), k=-1),
    case("diagonal", f32(3, 4)),
    case("diagonal", f32(2, 3, 4), offset=1, axis1=2, axis2=0),
    case("diagonal", f32(4, 2), offset=-1, axis1=-2, axis2=-1),
    case("diagonal", f32(2, 3, 2), offset=9),
    case("trace", f32(3, 3)),
    case("trace", i8(2, 3, 2), offset=1, axis1=0, axis2=1),
    case("trace", f32(2, 2), dtype="int32").set(order=0),
    case("fill_diagonal", f32(3, 3), f32()).set(
        call=lambda m, a, v: m.fill_diagonal(a, v, inplace=False),
        expected=lambda a, v: _filled(a, v),
    ),
    case("fill_diagonal", f32(5, 2), f32(3)).set(
        call=lambda m, a, v: m.fill_diagonal(a, v, inplace=False),
        expected=lambda a, v: _filled(a, v),
    ),
    case("fill_diagonal", f32(5, 2), f32(3)).set(
        call=lambda m, a, v: m.fill_diagonal(a, v, wrap=True, inplace=False),
        expected=lambda a, v: _filled(a, v, wrap=True),
        differs="the reference refuses wrap=True",
    ),
    case("fill_diagonal", f32(2, 2, 2), 1.5).set(
        call=lambda m, a, v: m.fill_diagonal(a, v, inplace=False),
        expected=lambda a, v: _filled(a, v),
    ),
    case("vander", f32(3)),
    case("vander", i32(3), N=4, increasing=True),
    case("vander", c64(2), N=0),
    case("vander", f32(3, make=lambda *_: np.array([0.0, 1.0, -2.0])), N=3),
    # From bytes and strings
    *known(
        case("frombuffer", np.arange(3.0).tobytes()),
        case("frombuffer", b"abcd", dtype="uint8", count=2, offset=1),
        case("fromstring", "1 2 3", sep=" "),
        case("fromstring", "1,2,3", dtype="int32", count=2, sep=","),
        case("fromiter", (1, 2, 3), dtype="int32").set(differs="the reference refuses it"),
        case("from_dlpack", np.arange(3, dtype=np.float32)),
    ),
    # Bytes
    case("view", f32(2, 3), "int32").set(
        call=lambda m, x, d: m.asarray(x).view(d), order=0, vary=False
    ),
    case("view", f32(2, 2), "int8").set(
        call=lambda m, x, d: m.asarray(x).view(d), order=0, vary=False
    ),
    case("view", f32(2, 4), "complex64").set(
        call=lambda m, x, d: m.asarray(x).view(d), order=0, vary=False
    ),
    case("view", c64(2, 3), "float32").set(
        call=lambda m, x, d: m.asarray(x).view(d), order=0, vary=False
    ),
]


def _filled(a: np.ndarray, value: np.ndarray, wrap: bool = False) -> np.ndarray:
    out = a.copy()
    np.fill_diagonal(out, value, wrap)
    return out
