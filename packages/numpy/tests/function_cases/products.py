"""Products of vectors, matrices and tensors, einsum, convolution."""

from __future__ import annotations

import numpy as np

from primax_core.extend import b1, bf16, c64, f32, i8, i32
from test_support import Case, case


def einsum(text: str, *args: object, **params: object) -> Case:
    return case(f"einsum:{text}", *args, **params).set(
        call=lambda m, *xs, **kw: m.einsum(text, *xs, **kw)
    )


CASES = [
    case("dot", f32(3), f32(3)),
    case("dot", f32(2, 3), f32(4, 3, 2)),
    case("dot", f32(), f32(2)),
    case("dot", f32(2, 0), f32(0, 3)).set(order=0),
    case("dot", c64(2, 2), f32(2)),
    case("matmul", f32(2, 3), f32(3, 4)),
    case("matmul", c64(3), c64(2, 3, 4)),
    case("matmul", i32(5, 1, 2, 3), i32(2, 3, 2)),
    case("matmul", f32(2, 3, 2), f32(2)),
    case("matmul", f32(3), f32(3)),
    case("matmul", i8(3, 3), i8(3, 3), preferred_element_type=np.int32).set(
        expected=lambda a, b, preferred_element_type: a.astype(np.int32) @ b.astype(np.int32)
    ),
    case("matmul", bf16(3, 4), f32(4, 2)),
    case("inner", f32(2, 3), f32(4, 3)),
    case("inner", c64(3), c64(3)),
    case("inner", f32(), f32(2)),
    case("vdot", c64(2, 3), c64(6)),
    case("vdot", i32(3), f32(3)),
    case("vecdot", c64(2, 3), c64(3)),
    case("vecdot", f32(3, 1), f32(3, 4), axis=0),
    case("matvec", c64(2, 3, 4), c64(4)),
    case("matvec", f32(3, 4), f32(2, 4)),
    case("vecmat", c64(3), c64(2, 3, 4)),
    case("vecmat", f32(2, 1, 3), f32(4, 3, 2)),
    case("tensordot", f32(2, 3, 4), f32(3, 4, 5)),
    case("tensordot", f32(2, 3, 4), f32(4, 3), axes=((1, -1), (1, 0))),
    case("tensordot", f32(2, 3), f32(3, 2), axes=(1, 0)),
    case("tensordot", i32(2), i32(3), axes=0),
    case("outer", f32(2, 2), f32(3)),
    case("outer", c64(), b1(3)),
    case("kron", f32(2, 3), f32(2, 2)),
    case("kron", i32(2), f32(2, 1, 3)),
    case("kron", f32(), f32(3)),
    case("cross", f32(3), f32(3)),
    case("cross", f32(2, 1, 3), c64(4, 3)),
    case("cross", i32(3, 2), i32(2, 3), axisa=0, axisc=0),
    case("cross", f32(3, 2), f32(3, 2), axis=0),
    einsum("ij,jk", f32(2, 3), f32(3, 4)),
    einsum("ij,jk->ki", f32(2, 3), i32(3, 4)),
    einsum("bij,bjk->bik", f32(2, 3, 4), f32(2, 4, 2)),
    einsum("...ij,jk->...ik", c64(2, 2, 3), c64(3, 2)),
    einsum("i...,i...->...", f32(2, 3), f32(2, 1)),
    einsum("ii->i", f32(3, 3)),
    einsum("iji->j", f32(3, 2, 3)),
    einsum("iii", f32(3, 3, 3)),
    einsum("ij->", i8(2, 3)).set(expected=lambda x: x.sum(dtype=np.int8)),
    einsum("ij,ij->ij", f32(2, 1), f32(2, 3)),
    einsum("i,j->ji", f32(2), f32(3)),
    einsum(",", f32(), f32()),
    einsum("ij,jk,kl->il", f32(2, 3), f32(3, 4), f32(4, 2)),
    einsum("ij,jk,kl->il", f32(2, 3), f32(3, 4), f32(4, 2), optimize=False),
    einsum("a,ab,b,c->c", f32(3), f32(3, 2), f32(2), f32(4), optimize="optimal"),
    einsum("ij,ik,il->jkl", f32(2, 2), f32(2, 3), f32(2, 2)).set(order=1),
    einsum("ij,jk", bf16(2, 3), bf16(3, 2), preferred_element_type=np.float32).set(
        order=0, expected=lambda a, b, preferred_element_type: a.astype("f") @ b.astype("f")
    ),
    einsum("abc,cd->d", f32(2, 0, 3), f32(3, 2)).set(order=0),
    case("einsum-lists", f32(2, 3), f32(3, 4)).set(
        call=lambda m, a, b: m.einsum(a, [0, 1], b, [1, 2], [2, 0])
    ),
    *[
        case(name, f32(5), f32(3), mode=mode)
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
    ],
    *[
        case(name, f32(2), f32(4), mode=mode)
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
    ],
    *[
        case(name, f32(4), f32(5), mode="same").set(order=1) for name in ("convolve", "correlate")
    ],
    case("convolve", c64(4), c64(2)),
    case("correlate", c64(4), c64(2)),
    case("correlate", c64(2), c64(3), mode="full"),
    case("convolve", i32(4), i32(2)),
]  # fmt: skip
