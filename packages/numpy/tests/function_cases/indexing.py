"""Indexing: reads and functional updates."""

from __future__ import annotations

import numpy as np

from primax_core.extend import bf16, c64, f32, i8, i32
from test_support import case

TREE = np.array([[True, False, True], [False, True, True]])


def read(index, *operands, **options):
    """A case of ``x[index]``."""
    return case("getitem", *(operands or (f32(3, 4, 2),))).set(
        call=lambda m, x: m.asarray(x)[index], **options
    )


def read_at(index, x, *rest, **options):
    """A case of ``x[index(*rest)]``."""
    return case("getitem", x, *rest).set(
        call=lambda m, x, *indices: m.asarray(x)[index(*indices)], **options
    )


def change(how, index, x, values, **options):
    """A case of ``x.at[index].how(values)``; in NumPy the operation on a copy."""

    def on_numpy(x, values):
        out = x.copy()
        with np.errstate(all="ignore"):
            if how in _UFUNCS:
                _UFUNCS[how].at(out, index, values)
            else:
                out[index] = values
        return out

    return case(f"at_{how}", x, values).set(
        call=lambda m, x, v: getattr(m.asarray(x).at[index], how)(v), expected=on_numpy, **options
    )


_UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "mul": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
TWICE = np.array([0, 2, 0])


def got(index, x, expected, order=2, **hints):
    """A case of ``x.at[index].get(**hints)``."""
    return case("at_get", x).set(
        call=lambda m, x: m.asarray(x).at[index].get(**hints), expected=expected, order=order
    )


CASES = [
    *[
        read(index)
        for index in (
            0,
            -1,
            slice(1, 3),
            slice(None, None, -1),
            slice(5, 0, -2),
            slice(2, 1),
            ...,
            None,
            (),
            (1, ..., 0),
            (slice(None), None, 1),
            (slice(None, None, 2), slice(-3, None)),
            (..., np.newaxis),
            (0, 1, 1),
            np.array([0, 2, -1]),
            (np.array([0, 2]), slice(1, 3)),
            (slice(None), np.array([[0], [3]]), 1),
            (np.array([0, 1]), slice(None), np.array([1, 0])),
            (np.array([[0], [1]]), np.array([2, 3])),
            ([0, 1], [1, 2]),
            (1, slice(None), np.array([1, 0])),
            (None, np.array([1]), ..., None),
            np.zeros((0,), int),
            True,
            False,
            np.array([True, False, True]),
            (slice(None), np.array([True, False, True, False]), np.array([1])),
            np.uint8(2),
        )
    ],
    read(TREE, f32(2, 3)),
    read((..., TREE), f32(2, 2, 3)),
    read(np.array(True), f32(2)),
    read((), f32()),
    read(..., bf16(2)),
    read_at(lambda i: i, f32(5), i32(low=-5, high=4), vary=False),
    read_at(lambda i: i, f32(5), i32(3, low=-5, high=4), vary=False),
    read_at(lambda i: (slice(None), i, None), f32(3, 4), i32(low=0, high=3), vary=False),
    read_at(lambda i, j: (i, j), f32(3, 4), i32(low=0, high=2), i32(low=-4, high=3), vary=False),
    read_at(lambda i: (i, 1), f32(3, 4), i32(2, 1, low=-3, high=2), vary=False),
    read_at(lambda i: (i, slice(None, None, -1)), c64(3, 4), i8(2, low=-3, high=2), vary=False),
    # Modes of reading
    got(np.array([0, 9, -9]), f32(3), lambda x: np.array([x[0], x[2], x[0]]), mode="clip"),
    got(np.array([0, 9]), f32(3), lambda x: np.array([x[0], np.nan]), order=0, mode="fill"),
    got(np.array([9, 1]), f32(3), lambda x: np.array([7, x[1]]), mode="drop", fill_value=7),
    got(9, f32(3), lambda x: x[2], order=0),
    got((1, slice(1, 3)), f32(2, 4), lambda x: x[1, 1:3]),
    got(
        np.array([0, 2]),
        f32(3),
        lambda x: x[[0, 2]],
        mode="promise_in_bounds",
        indices_are_sorted=True,
        unique_indices=True,
    ),
    got(np.array([-1, 1]), f32(3), lambda x: x[[0, 1]], order=0, wrap_negative_indices=False),
    # Updates
    *[
        change("set", index, f32(3, 4), values)
        for index, values in (
            (1, f32()),
            (1, f32(4)),
            (-1, 2.0),
            (slice(0, 2), f32(2, 4)),
            ((slice(None), slice(1, 3)), f32(3, 1)),
            ((slice(None), slice(None, None, 2)), f32(3, 2)),
            (slice(None, None, -1), f32(3, 4)),
            ((0, slice(1, None)), f32(3)),
            ((0, 1), f32()),
            (..., f32(4)),
            ((None, 1), f32(1, 4)),
            (np.array([0, 2]), f32(2, 4)),
            ((np.array([0, 2]), np.array([1, 3])), f32(2)),
            ((slice(None), np.array([0, 3])), f32(3, 2)),
            ((np.array([0, 2]), slice(1, 3)), f32(2, 2)),
            (np.array([True, False, True]), f32()),
            (np.array([[True, False, True, False]] * 3), 5.0),
            (slice(1, 1), f32(4)),
        )
    ],
    change("set", 0, i32(3), i32()),
    change("set", slice(0, 2), c64(3), f32()).set(vary=False),
    change("set", 0, f32(2), np.float32(1.5)),
    case("at_set", f32(3), i32(2, make=lambda *_: np.array([7, -9])), f32(2)).set(
        call=lambda m, x, i, v: m.asarray(x).at[i].set(v), expected=lambda x, i, v: x, vary=False
    ),
    case("at_set", f32(3), i32(low=-3, high=2), f32()).set(
        call=lambda m, x, i, v: m.asarray(x).at[i].set(v),
        expected=lambda x, i, v: np.where(np.arange(3) == i % 3, v, x),
        vary=False,
    ),
    case("at_set", f32(3), 7, f32()).set(
        call=lambda m, x, i, v: m.asarray(x).at[i].set(v, mode="clip"),
        expected=lambda x, i, v: np.array([x[0], x[1], v]),
    ),
    *[
        change(how, index, f32(3, 2, low=0.5), f32(*shape, low=0.5))
        for how in ("add", "subtract", "min", "max")
        for index, shape in ((1, (2,)), (TWICE, (3, 2)), (slice(0, 2), (1,)), ((TWICE, 1), ()))
    ],
    *[
        change(how, index, f32(3, 2, low=0.5), f32(*shape, low=0.5))
        for how in ("divide", "power", "multiply")
        for index, shape in ((1, (2,)), (slice(None, None, 2), (2, 1)), ((slice(0, 2), -1), ()))
    ],
    *[
        # The derivative with respect to values needs unique_indices.
        change(how, index, f32(3, 2, low=0.5), 1.5, vary=False)
        for how in ("multiply", "mul", "divide", "power")
        for index in (TWICE, (TWICE, 1))
    ],
    case("at_multiply", f32(4), f32(2)).set(
        call=lambda m, x, v: m.asarray(x).at[np.array([2, 0])].multiply(v, unique_indices=True),
        expected=lambda x, v: x * np.array([v[1], 1, v[0], 1]),
    ),
    change("add", TWICE, i32(3), 2),
    change("max", np.array([True, False, True]), f32(3), 0.0),
    *[
        # Windows with dynamic starts.
        case(f"at_{how}", f32(4, 3), i32(low=-4, high=3), f32(3)).set(
            call=lambda m, x, i, v, how=how: getattr(m.asarray(x).at[i], how)(v),
            expected=lambda x, i, v, f=f: np.where(np.arange(4)[:, None] == i % 4, f(x, v), x),
            vary=False,
        )
        for how, f in (("add", np.add), ("set", lambda x, v: v), ("max", np.maximum))
    ],
    case("at_add", f32(3, 3), i32(make=lambda *_: 7), f32()).set(
        call=lambda m, x, i, v: m.asarray(x).at[:, i].add(v),
        expected=lambda x, i, v: x,
        vary=False,
    ),
    case("at_add", f32(3, 3), i32(make=lambda *_: 7), f32()).set(
        call=lambda m, x, i, v: m.asarray(x).at[i, 1].add(v, mode="clip"),
        expected=lambda x, i, v: x + v * np.outer([0, 0, 1], [0, 1, 0]),
        vary=False,
    ),
    case("at_apply", f32(3)).set(
        call=lambda m, x: m.asarray(x).at[1:].apply(lambda y: y * y),
        expected=lambda x: np.where(np.arange(3) > 0, x * x, x),
        differs="the reference has no derivative of it",
    ),
    case("at_apply", f32(3)).set(
        call=lambda m, x: m.asarray(x).at[TWICE].apply(lambda y: y * 2.0),
        expected=lambda x: x * np.array([4, 1, 2]),
        order=0,
    ),
]
