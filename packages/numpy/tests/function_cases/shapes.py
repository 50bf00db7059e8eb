"""Shapes, axes, joining, splitting, repeating, flipping."""

from __future__ import annotations

import numpy as np

from primax_core.extend import b1, bf16, c64, f32, i8, i32
from test_support import case


def sparse(*shape):
    """Small integers, many of which are zero, with zeros at the ends."""
    return i32(*shape, make=lambda r, s: np.pad(r.integers(0, 2, [n - 2 for n in s]), 1))


def as_array(module, result):
    return module.asarray(result)


CASES = [
    case("reshape", f32(2, 3), (3, 2)),
    case("reshape", f32(2, 3), -1),
    case("reshape", f32(2, 3, 2), (4, -1), order="F"),
    case("reshape", f32(0, 3), (3, 0)),
    case("reshape", f32(), (1, 1)),
    case("reshape", f32(2, 3), [6], copy=True),
    case("ravel", f32(2, 3)),
    case("ravel", f32(2, 3), order="F"),
    case("ravel", f32()),
    case("resize", f32(2, 3), (2, 2)),
    case("resize", f32(3), 8),
    case("resize", f32(0), (2, 2)),
    case("resize", f32(2, 2), (3, 0)),
    case("transpose", f32(2, 3, 4)),
    case("transpose", f32(2, 3, 4), (1, -1, 0)),
    case("permute_dims", f32(2, 3), (1, 0)),
    case("matrix_transpose", f32(2, 3, 4)),
    case("moveaxis", f32(2, 3, 4), 0, -1),
    case("moveaxis", f32(2, 3, 4), (0, 2), (1, 0)),
    case("rollaxis", f32(2, 3, 4), 2),
    case("rollaxis", f32(2, 3, 4), 0, 3),
    case("rollaxis", f32(2, 3, 4), -1, -2),
    case("swapaxes", f32(2, 3, 4), 0, -1),
    case("expand_dims", f32(2, 3), 1),
    case("expand_dims", f32(2), (0, -1)),
    case("squeeze", f32(1, 2, 1)),
    case("squeeze", f32(1, 2, 1), axis=-1),
    case("squeeze", f32(1, 1, 2), axis=(0, 1)),
    case("atleast_1d", f32()),
    case("atleast_1d", f32(), f32(2)),
    case("atleast_2d", f32(), f32(2), f32(1, 2, 3)),
    case("atleast_3d", f32(), f32(2), f32(2, 3)),
    case("broadcast_to", f32(2, 1), (3, 2, 2)),
    case("broadcast_to", 1.5, (2,)),
    case("broadcast_arrays", f32(2, 1), i32(3), 1),
    case("broadcast_arrays"),
    case("shape", f32(2, 3)).set(order=0, observe=as_array),
    case("ndim", f32(2, 3)).set(order=0, observe=as_array),
    case("size", f32(2, 3)).set(order=0, observe=as_array),
    case("size", f32(2, 3), axis=-1).set(order=0, observe=as_array),
    case("size", f32(2, 3), axis=(0, 1)).set(order=0, observe=as_array),
    # Joining
    case("concatenate", [f32(2, 3), f32(1, 3)]),
    case("concatenate", [f32(2, 3), i32(2, 1)], axis=1),
    case("concatenate", [f32(2), f32(1, 2)], axis=None),
    case("concatenate", [f32(2), i8(2)], dtype="float16").set(tolerance=1e-2, order=0),
    case("concatenate", f32(2, 3)),
    case("concat", [f32(0), f32(2)], axis=0),
    case("concat", [f32(1, 2), f32(3)], axis=None),
    case("stack", [f32(3), f32(3)]),
    case("stack", [f32(2, 3), i32(2, 3)], axis=-1),
    case("stack", [f32(), 1.0]),
    case("stack", [f32(2), i32(2)], axis=1, dtype="float32").set(order=0),
    case("stack", f32(2, 3), axis=1),
    case("hstack", [f32(2), f32(3)]),
    case("hstack", [f32(2, 1), f32(2, 3)]),
    case("hstack", [f32(), 2]),
    case("vstack", [f32(2), f32(3, 2)]),
    case("vstack", [1, 2.5], dtype="float32"),
    case("dstack", [f32(2), f32(2)]),
    case("dstack", [f32(2, 2), f32(2, 2, 3)]),
    case("column_stack", [f32(2), f32(2, 3), i32(2)]),
    case("append", f32(2, 2), f32(3)),
    case("append", f32(2, 2), f32(1, 2), axis=0),
    case("append", i32(2), 1.5),
    case("block", [[f32(2, 2), f32(2, 1)], [f32(1, 2), f32(1, 1)]]),
    case("block", [f32(2), 1, f32(3)]),
    case("block", [[f32(3)], [f32(2, 3)]]),
    case("block", f32(2)),
    case("block", [[[f32(2, 1)], [f32(1, 1)]]]),
    # Splitting
    case("split", f32(6), 3),
    case("split", f32(2, 6), [2, 3], axis=-1),
    case("split", f32(5), [-2, 4]),
    case("split", f32(5), [1, 9]),
    case("array_split", f32(5, 2), 3),
    case("array_split", f32(5), [3, 1]).set(differs="the reference refuses overlapping parts"),
    case("array_split", f32(2), 3),
    case("hsplit", f32(2, 4), 2),
    case("hsplit", f32(4), [1]),
    case("vsplit", f32(4, 2), 2),
    case("dsplit", f32(2, 1, 4), [1, 3]),
    case("unstack", f32(2, 3)).set(expected=lambda x: list(x)),
    case("unstack", f32(2, 3), axis=-1).set(expected=lambda x, axis: list(x.T)),
    # Repeating
    case("tile", f32(2, 3), 2),
    case("tile", f32(2), (2, 1, 3)),
    case("tile", f32(1, 2, 2), (2, 1)),
    case("tile", f32(), ()),
    case("tile", f32(2), (0, 2)),
    case("repeat", f32(2, 3), 2),
    case("repeat", f32(2, 3), 3, axis=-1),
    case("repeat", f32(3), np.array([2, 0, 1])),
    case("repeat", f32(2, 3), np.array([1, 2]), axis=0),
    case("repeat", f32(2, 3), np.array([2]), axis=1),
    case("repeat", f32(), 3),
    case("repeat", f32(3), np.array([1, 2, 0]), total_repeat_length=5).set(
        expected=lambda a, r, total_repeat_length: a[[0, 1, 1, 2, 2]]
    ),
    case("repeat", f32(3), np.array([2, 2, 2]), total_repeat_length=3).set(
        expected=lambda a, r, total_repeat_length: a[[0, 0, 1]]
    ),
    case("repeat", f32(2, 3), i32(3, low=0, high=3), axis=1, total_repeat_length=7).set(
        expected=lambda a, r, axis, total_repeat_length: np.concatenate(
            [np.repeat(a, r, 1), np.repeat(a[:, -1:], 7, 1)], 1
        )[:, :7]
    ),
    case("repeat", f32(3), i32(low=1, high=2), total_repeat_length=4).set(
        expected=lambda a, r, total_repeat_length: np.concatenate(
            [np.repeat(a, r), np.repeat(a[-1:], 4)]
        )[:4],
        vary=False,
    ),
    # Flips and rolls
    case("flip", f32(2, 3)),
    case("flip", f32(2, 3), axis=-1),
    case("flip", f32(2, 3, 2), axis=(0, 2)),
    case("flip", f32()),
    case("fliplr", f32(2, 3)),
    case("flipud", f32(3)),
    *[case("rot90", f32(2, 3), k=k) for k in (0, 1, 2, 3, -5)],
    case("rot90", f32(2, 3, 4), axes=(2, 0)),
    case("roll", f32(5), 2),
    case("roll", f32(2, 3), -4),
    case("roll", f32(2, 3), (1, 2), axis=(0, 1)),
    case("roll", f32(2, 3), (1, 2), axis=0),
    case("roll", f32(2, 3), 1, axis=(0, -1)),
    case("roll", f32(0), 1),
    case("roll", f32(2, 3), i32(), axis=1).set(vary=False),
    case("roll", f32(4), np.array([1, 2]), axis=(0, 0)),
    # Editing
    case("delete", f32(5), 1),
    case("delete", f32(2, 3), -1, axis=1),
    case("delete", f32(5), slice(0, None, 2)),
    case("delete", f32(5), np.array([1, -1, 1])),
    case("delete", f32(3, 2), np.array([True, False, True]), axis=0),
    case("delete", f32(2, 3), 4),
    case("delete", f32(5), i32(2, make=lambda r, s: r.permutation(5)[:2] - 2)).set(
        call=lambda m, a, i: m.delete(a, i, assume_unique_indices=True),
        expected=lambda a, i: np.delete(a, i),
        batched=False,
        vary=False,
    ),
    case("insert", f32(5), 1, 9.0),
    case("insert", f32(2, 3), 1, f32(3), axis=0),
    case("insert", f32(2, 3), -1, f32(2), axis=1),
    case("insert", f32(5), np.array([3, 1]), f32(2)),
    case("insert", f32(2, 3), np.array([1]), f32(2, 2), axis=1),
    case("insert", f32(2, 3), 1, f32(2, 1), axis=1),
    case("insert", f32(5), slice(1, 4), 9),
    case("insert", f32(3), np.array([True, False, True]), f32()).set(
        differs="the reference refuses masks"
    ),
    case("insert", i32(3), i32(low=0, high=3), 2.7).set(vary=False),
    case("insert", f32(3), 1, f32(2)),
    case("insert", f32(2), np.zeros(0, np.int32), 7.0).set(expected=lambda a, i, v: a),
    case("trim_zeros", sparse(6)).set(compiled=False, batched=False),
    case("trim_zeros", sparse(6), "f").set(compiled=False, batched=False),
    case("trim_zeros", sparse(4, 5), axis=-1).set(compiled=False, batched=False, expected=False),
    case("trim_zeros", np.zeros(3)).set(compiled=False, batched=False),
    # Padding
    case("pad", f32(2, 3), 1),
    case("pad", f32(2, 3), ((1, 2), (0, 1)), constant_values=((1.0, 2.0), (3.0, 4.0))),
    case("pad", f32(3), (1, 2), constant_values=7),
    case("pad", b1(2), 1, constant_values=True),
    case("pad", f32(2), 1, f32(), f32()).set(
        call=lambda m, x, w, a, b: m.pad(x, w, constant_values=(a, b)),
    ),
    case("pad", f32(), 1).set(expected=lambda x, w: x),
    case("pad", f32(0, 2), 1),
    case("pad", f32(2, 3), {1: (1, 2)}).set(differs="the reference has no dictionaries"),
    case("pad", f32(2, 3), {-2: 1}, mode="edge").set(differs="the reference has no dictionaries"),
    case("pad", f32(2, 3), (2, 1), mode="edge"),
    case("pad", f32(2), 1, mode="empty").set(expected=lambda x, w, mode: np.pad(x, w)),
    case("pad", f32(2, 3), 2, mode="linear_ramp", end_values=(3.0, -4.0)),
    case("pad", i32(3), (2, 3), mode="linear_ramp", end_values=7),
    case("pad", f32(2, 3), 1, mode="mean"),
    case("pad", f32(5), 2, mode="mean", stat_length=((2, 3),)),
    case("pad", i32(4), 1, mode="mean"),
    case("pad", f32(2, 4), (1, 2), mode="median").set(vary=False),
    case("pad", f32(5), 2, mode="median", stat_length=3).set(vary=False),
    case("pad", f32(2, 3), 1, mode="maximum"),
    case("pad", f32(5), (2, 1), mode="minimum", stat_length=2),
    case("pad", f32(3), (1, 2), mode="reflect"),
    case("pad", f32(2, 3), 5, mode="reflect"),
    case("pad", f32(1), 2, mode="reflect"),
    case("pad", f32(4), (1, 3), mode="reflect", reflect_type="odd"),
    case("pad", f32(3), (5, 7), mode="reflect", reflect_type="odd"),
    case("pad", f32(1), (1, 2), mode="reflect", reflect_type="odd").set(vary=False),
    case("pad", f32(3), (1, 2), mode="symmetric"),
    case("pad", f32(2, 3), 7, mode="symmetric"),
    case("pad", f32(2, 3), 2, mode="symmetric", reflect_type="odd"),
    case("pad", f32(3), (4, 8), mode="symmetric", reflect_type="odd"),
    case("pad", c64(3), (1, 2), mode="wrap"),
    case("pad", f32(2, 3), (7, 5), mode="wrap"),
    case("pad", bf16(2), 1, mode="wrap").set(tolerance=1e-2),
    case("pad", f32(2, 3), ((1, 2), (2, 1))).set(
        call=lambda m, x, w: m.pad(x, w, _doubled_ends),
        expected=lambda x, w: np.pad(x, w, lambda v, width, axis, options: _doubled(v, width)),
    ),
]


def _doubled_ends(v, width, axis, options):
    before, after = width
    v = v.at[:before].set(2 * v[before])
    return v.at[v.shape[0] - after :].set(2 * v[-after - 1])


def _doubled(v: np.ndarray, width: tuple[int, int]) -> None:
    v[: width[0]] = 2 * v[width[0]]
    v[v.shape[0] - width[1] :] = 2 * v[-width[1] - 1]
