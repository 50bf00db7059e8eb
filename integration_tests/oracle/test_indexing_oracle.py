"""Gathers and scatters against the real jax."""

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax as theirs
from structure_compare import check, check_error, check_values, ours_of

from primax_core import lax as ours, vmap

rng = np.random.default_rng(0)


def f(*shape):
    return rng.standard_normal(shape).astype("f")


def ints(low, high, *shape, dtype="int32"):
    return rng.integers(low, high, shape).astype(dtype)


MODES = [None, "clip", "fill", "promise_in_bounds"]

# operand, indices, (offset, collapsed, map, operand batching, indices batching), slice sizes
LAYOUTS = {
    "rows": (f(5, 4), ints(0, 5, 3, 1), ((1,), (0,), (0,)), (1, 4)),
    "columns": (f(5, 4), ints(0, 4, 3, 1), ((0,), (1,), (1,)), (5, 1)),
    "points": (f(5, 4), ints(0, 4, 3, 2), ((), (0, 1), (1, 0)), (1, 1)),
    "windows": (f(5, 4), ints(0, 3, 3, 2), ((1, 2), (), (0, 1)), (2, 2)),
    "wide batch": (f(5, 4), ints(0, 5, 2, 3, 1), ((1,), (0,), (0,)), (1, 3)),
    "steps": (f(3, 4, 5), ints(0, 4, 3, 2, 1), ((2,), (1,), (1,), (0,), (0,)), (1, 1, 4)),
    "steps turned": (f(3, 4, 5), ints(0, 4, 2, 3, 1), ((0,), (1,), (1,), (0,), (1,)), (1, 1, 4)),
    "one": (f(5, 4), ints(0, 4, 1), ((0,), (0,), (0,)), (1, 4)),
    "duplicates": (f(5, 4), np.array([[1], [1], [3], [1]], "i"), ((1,), (0,), (0,)), (1, 4)),
    "nothing": (f(5, 4), np.zeros((0, 1), "i"), ((1,), (0,), (0,)), (1, 4)),
    "no index": (f(5, 4), np.zeros((3, 0), "i"), ((1, 2), (), ()), (2, 4)),
}


def outside(indices, limit=9):
    return np.where(
        rng.random(indices.shape) < 0.4, rng.integers(-4, limit, indices.shape), indices
    )


def gathering(L, numbers, sizes, **options):
    return lambda x, i: L.gather(x, i, L.GatherDimensionNumbers(*numbers), sizes, **options)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gather(layout):
    x, i, numbers, sizes = LAYOUTS[layout]
    check(gathering(ours, numbers, sizes), gathering(theirs, numbers, sizes), [x, i], layout)


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("layout", ["rows", "points", "windows", "steps turned"])
def test_gather_out_of_bounds(layout, mode):
    x, i, numbers, sizes = LAYOUTS[layout]
    make = [gathering(L, numbers, sizes, mode=mode) for L in (ours, theirs)]
    check(*make, [x, outside(i)], f"{layout} {mode}")
    make = [gathering(L, numbers, sizes, mode=mode, fill_value=5) for L in (ours, theirs)]
    check(*make, [x, outside(i)], f"{layout} {mode}", batches=False)


@pytest.mark.parametrize("index_dtype", ["int8", "uint8", "uint32"])
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_index_dtypes(index_dtype, mode):
    x, _, numbers, sizes = LAYOUTS["rows"]
    for x in (f(5, 4), f(300, 4)):
        i = np.array([[4], [127], [-1], [3]]).astype(index_dtype)
        make = [gathering(L, numbers, sizes, mode=mode) for L in (ours, theirs)]
        check_values(*make, [x, i], f"{index_dtype} {mode}")


@pytest.mark.parametrize("dtype", ["bool", "int4", "bfloat16", "complex64"])
def test_dtypes(dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, i, numbers, sizes = LAYOUTS["rows"]
    tried = 0
    for mode in MODES:
        make = [gathering(L, numbers, sizes, mode=mode) for L in (ours, theirs)]
        # What a promise that is broken gives is not defined.
        places = i if mode == "promise_in_bounds" else outside(i)
        check_values(*make, [x.astype(dtype), places], f"{dtype} {mode}")
        for name in KINDS:
            make = [scattering(L, name, numbers, mode=mode) for L in (ours, theirs)]
            u = f(3, 4).astype(dtype)
            try:
                make[1](x.astype(dtype), i, u)
            except TypeError:
                continue
            places = i if mode == "promise_in_bounds" else np.array([[9], [2], [-1]], "i")
            check_values(*make, [x.astype(dtype), places, u], name)
            tried += 1
    # Booleans are refused by the reference where scatters subtract, multiply or add.
    assert tried == len(MODES) * (3 if dtype.kind == "b" else len(KINDS))


KINDS = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]


def scattering(L, kind, numbers, **options):
    def run(x, i, u):
        dnums = L.ScatterDimensionNumbers(*numbers)
        return getattr(L, kind)(x, i, u, dnums, **options)

    return run


def updates_for(x, i, numbers, sizes):
    offset, dropped = numbers[0], {*numbers[1], *(numbers[3] if len(numbers) > 3 else ())}
    window = iter([n for d, n in enumerate(sizes) if d not in dropped])
    outer = iter(i.shape[:-1])
    return f(*[
        next(window) if d in offset else next(outer) for d in range(len(offset) + i.ndim - 1)
    ])  # fmt: skip


SCATTERS = [
    *itertools.product(LAYOUTS, ["scatter", "scatter_add"]),
    *itertools.product(["windows", "steps", "duplicates"], KINDS[2:]),
]


@pytest.mark.parametrize("layout, kind", SCATTERS)
def test_scatter(layout, kind):
    x, i, numbers, sizes = LAYOUTS[layout]
    u = updates_for(x, i, numbers, sizes)
    make = [scattering(L, kind, numbers) for L in (ours, theirs)]
    mul = kind == "scatter_mul"
    full = kind == "scatter" and layout in ("steps turned", "windows")
    check(*make, [x, i, u], f"{layout} {kind}", derivatives=not mul, batches=full)


@pytest.mark.parametrize("kind", ["scatter", "scatter_add", "scatter_mul", "scatter_max"])
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_scatter_out_of_bounds(kind, mode):
    x, i, numbers, sizes = LAYOUTS["windows"]
    i = np.array([[9, 0], [1, 1], [3, -2]], "i")
    u = updates_for(x, i, numbers, sizes)
    make = [scattering(L, kind, numbers, mode=mode) for L in (ours, theirs)]
    check(*make, [x, i, u], f"{kind} {mode}", derivatives=kind != "scatter_mul", batches=False)


@pytest.mark.parametrize("kind", KINDS)
def test_unique_indices(kind):
    numbers = ((1,), (0,), (0,))
    make = [scattering(L, kind, numbers, unique_indices=True, indices_are_sorted=True)
            for L in (ours, theirs)]  # fmt: skip
    check(*make, [f(5, 4), np.array([[0], [2], [3]], "i"), f(3, 4)], kind)


@pytest.mark.parametrize("kind", ["scatter_min", "scatter_max", "scatter"])
def test_ties(kind):
    x = np.array([1, 2, 2, 0, 5], "f")
    i = np.array([[0], [0], [1], [2], [2], [4], [4]], "i")
    u = np.array([1, 1, 2, 3, 3, 5, 4], "f")
    make = [scattering(L, kind, ((), (0,), (0,))) for L in (ours, theirs)]
    check(*make, [x, i, u], kind, batches=False)


def test_apply():
    numbers = ((1,), (0,), (0,))
    x, i = np.abs(f(5, 4)), np.array([[1], [1], [9]], "i")

    def make(L, sqrt):
        return lambda x, i: L.scatter_apply(
            x, i, sqrt, L.ScatterDimensionNumbers(*numbers), update_shape=(3, 4)
        )

    from primax_core.lax.exponential import sqrt

    check(make(ours, sqrt), make(theirs, theirs.sqrt), [x, i], derivatives=False)
    with pytest.raises(NotImplementedError):
        from primax_core._transform.jvp import jvp_of

        jvp_of(lambda x, i: [make(ours, sqrt)(x, i)], ours_of([x, i]), [ours_of([x])[0], None])


X, IDX, U = f(3, 4), np.zeros((2, 1), "i"), f(2, 4)


@pytest.mark.parametrize("numbers, sizes, change", [
    (((1,), (0,), (0,)), (1, 4), {"i": np.zeros((2, 1), "f")}),
    (((1,), (0,), (0, 1)), (1, 4), {}),
    (((1,), (0,), (2,)), (1, 4), {}),
    (((1,), (0,), (-1,)), (1, 4), {}),
    (((0, 1), (0,), (0,)), (1, 4), {}),
    (((5,), (0,), (0,)), (1, 4), {}),
    (((2, 1), (), (0,)), (1, 4), {}),
    (((1, 1), (), (0,)), (1, 4), {}),
    (((1,), (0, 0), (0,)), (1, 4), {}),
    (((1,), (3,), (0,)), (1, 4), {}),
    (((1,), (0,), (0,)), (1,), {}),
    (((1,), (0,), (0,)), (2, 4), {}),
    (((1,), (0,), (0,)), (1, 5), {}),
    (((1,), (0,), (0,)), (1, -1), {}),
    (((1,), (0,), (0,)), (1, 4), {"i": np.int32(0)}),
    (((), (0, 1), (0,), (0,), (0,)), (1, 1), {"i": np.zeros((3, 1), "i")}),
    (((), (1,), (1,), (0,), (0,)), (1, 1), {"i": np.zeros((2, 1), "i")}),
    (((), (1,), (1,), (0,), (1,)), (1, 1), {"i": np.zeros((3, 1), "i")}),
    (((), (1,), (1,), (0,), ()), (1, 1), {"i": np.zeros((3, 1), "i")}),
    (((), (1,), (0,), (0,), (0,)), (1, 1), {"i": np.zeros((3, 1), "i")}),
    (((), (1,), (1,), (0,), (0,)), (2, 1), {"i": np.zeros((3, 1), "i")}),
    (((1,), (0,), (0,)), (1, 4), {"mode": "foo"}),
])  # fmt: skip
def test_gather_errors(numbers, sizes, change):
    i, mode = change.get("i", IDX), change.get("mode")
    make = [gathering(L, numbers, sizes, mode=mode) for L in (ours, theirs)]
    check_error(*make, [X, i], "" if "i" in change else None)


@pytest.mark.parametrize("numbers, change", [
    (((1,), (0,), (0,)), {"i": np.zeros((2, 1), "f")}),
    (((1,), (0,), (0,)), {"u": np.ones((2, 4), "i")}),
    (((1,), (0,), (0,)), {"u": f(2, 5)}),
    (((1,), (0,), (0,)), {"u": f(3, 4)}),
    (((1,), (0,), (0,)), {"u": f(4)}),
    (((1,), (0,), (0, 1)), {}),
    (((1,), (), (0,)), {}),
    (((1, 0), (), (0,)), {}),
    (((5,), (0,), (0,)), {}),
    (((1,), (2,), (0,)), {}),
    (((1,), (0, 0), (0,)), {}),
    (((1,), (0,), (4,)), {}),
    (((), (1,), (1,), (0,), (0,)), {"u": f(2)}),
])  # fmt: skip
def test_scatter_errors(numbers, change):
    make = [scattering(L, "scatter_add", numbers) for L in (ours, theirs)]
    loose = "i" in change or "i" == str(change.get("u", X).dtype)[0] or numbers[0] == (1, 0)
    check_error(*make, [X, change.get("i", IDX), change.get("u", U)], "" if loose else None)


def test_index_take():
    x, i, j = f(5, 3, 4), np.array([0, -1, 7], "i"), np.array([2, -2, 3], "i")
    for axes, idxs in (((0,), (i,)), ((0, 2), (i, j))):
        check(
            lambda x, *idxs, axes=axes: ours.index_take(x, idxs, axes),
            lambda x, *idxs, axes=axes: theirs.index_take(x, idxs, axes),
            [x, *idxs],
            printed=False,
            batches=len(axes) == 1,
        )


def test_modes():
    for name in (None, "clip", "fill", "drop", "promise_in_bounds"):
        expected = theirs.GatherScatterMode.from_any(name)
        assert str(ours.GatherScatterMode.from_any(name)) == str(expected)
    assert repr(list(ours.GatherScatterMode)) == repr(list(theirs.GatherScatterMode))
    numbers = ours.GatherDimensionNumbers((1,), (0,), (0,))
    assert repr(numbers) == repr(theirs.GatherDimensionNumbers((1,), (0,), (0,)))


def test_nested_batching():
    x, i, numbers, sizes = LAYOUTS["rows"]
    u = updates_for(x, i, numbers, sizes)
    xs, us = np.stack([x, -x]), np.stack([u, u * 2, u * 3])
    ours_fn = vmap(vmap(scattering(ours, "scatter_add", numbers), (None, None, 0)), (0, None, None))
    theirs_fn = jax.vmap(
        jax.vmap(scattering(theirs, "scatter_add", numbers), (None, None, 0)), (0, None, None)
    )
    np.testing.assert_allclose(
        np.asarray(ours_fn(*ours_of([xs, i, us]))), theirs_fn(xs, i, us), rtol=1e-6
    )
