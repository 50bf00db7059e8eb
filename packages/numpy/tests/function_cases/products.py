"""Products of vectors and matrices."""

from __future__ import annotations

from primax_core.extend import c64, f32, i32

from .case import case

CASES = [
    case("dot", f32(3), f32(3)),
    case("dot", f32(2, 3), f32(4, 3, 2)),
    case("dot", f32(), f32(2)),
    case("matmul", f32(2, 3), f32(3, 4)),
    case("matmul", c64(3), c64(2, 3, 4)),
    case("matmul", i32(5, 1, 2, 3), i32(2, 3, 2)),
    case("outer", f32(2, 2), f32(3)),
]
