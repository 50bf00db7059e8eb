"""Uncommon arguments: long axes, flags among indices, deep sequences, extreme decimals, keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primax_numpy as pnp
from primax_core import (
    ShapeDtypeStruct,
    enable_checks,
    enable_x64,
    eval_shape,
    grad,
    jit,
    lax,
    new_ref,
    numpy_rank_promotion,
)
from primax_numpy import random

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
PAIR = np.array([0, 1])

# A flag is an index array that broadcasts with the others, not an axis of its own.
FLAGS: list[Any] = [
    (True, PAIR),
    (PAIR, True),
    (True, PAIR, PAIR),
    (True, slice(0, 2), np.array([[0, 0, 0]])),
    (False, np.array([0])),
    (True, None, PAIR),
    (True, ..., PAIR),
    (PAIR, ..., True),
    (PAIR, slice(None), True),
    (np.True_, PAIR),
    (np.array(True), PAIR),
    (slice(None), 1, slice(None), True),
    (True, 1),
    (1, False),
    (True, True),
    (True, False),
    (None, True),
    (slice(None), False, slice(1, 2)),
]


@pytest.mark.parametrize("index", FLAGS, ids=str)
def test_flags_among_indices(index: Any) -> None:
    expected = X[index]
    array: Any = pnp.asarray(X)
    for read in (lambda x: x[index], jit(lambda x: x[index])):
        actual = read(array)
        assert actual.shape == expected.shape
        np.testing.assert_array_equal(actual, expected)
    values = 100 + np.arange(expected.size, dtype=np.float32).reshape(expected.shape)
    changed = X.copy()
    changed[index] = values
    np.testing.assert_array_equal(array.at[index].set(values), changed)
    np.testing.assert_array_equal(jit(lambda x: x.at[index].set(values))(array), changed)


def test_flags_broadcast() -> None:
    with pytest.raises(ValueError, match="shape mismatch"):
        pnp.asarray(X)[False, PAIR]


def test_masks_without_elements_fit_every_axis() -> None:
    x: Any = pnp.arange(3.0)
    empty = np.zeros(0, bool)
    assert x[empty].shape == (0,)
    np.testing.assert_array_equal(x.at[empty].set(1), x)
    assert pnp.ones((3, 4))[np.zeros((3, 0), bool)].shape == (0,)
    with pytest.raises(IndexError, match="boolean index did not match"):
        x[np.zeros(2, bool)]


LONG = 2**31 + 5
LONG_READS: dict[str, Any] = {
    "concrete": lambda x, i: x[2**31 + 1],
    "negative": lambda x, i: x[-1],
    "traced": lambda x, i: x[i],
    "array": lambda x, i: x[np.array([0, -1, 2**31])],
    "set": lambda x, i: x.at[i].set(1)[0],
    "set_concrete": lambda x, i: x.at[2**31 + 1].set(1)[0],
    "set_array": lambda x, i: x.at[np.array([-1])].set(1)[0],
    "slice": lambda x, i: lax.dynamic_slice(x, (i,), (2,)),
    "update": lambda x, i: lax.dynamic_update_slice(x, np.ones(2, np.int8), (i,)),
    "row": lambda x, i: lax.dynamic_index_in_dim(x, i),
}


@pytest.mark.parametrize("name", LONG_READS)
def test_long_axes(name: str) -> None:
    long = ShapeDtypeStruct((LONG,), np.int8)
    for dtype in (np.int32, np.int8, np.uint8):
        eval_shape(LONG_READS[name], long, ShapeDtypeStruct((), dtype))


def test_sequences_that_contain_themselves() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="at most 64 levels"):
        pnp.asarray(endless)
    deep: Any = 1.0
    for _ in range(32):
        deep = [deep]
    assert pnp.asarray(deep).ndim == 32


def test_trapezoid_with_step_sizes() -> None:
    y = np.arange(12.0).reshape(3, 4)
    for dx, axis in (([1.0, 2, 3], 1), ([[1.0], [2]], 0), (np.ones((2, 3, 3)), -1), ([2.0], 1)):
        dx = np.asarray(dx)
        actual = pnp.trapezoid(y, dx=dx, axis=axis)
        np.testing.assert_allclose(actual, np.trapezoid(y, dx=dx, axis=axis), rtol=1e-6)


@pytest.mark.optimised
@pytest.mark.parametrize(
    "name, points, single, double",
    [
        (
            "log10",
            [0.7, 1.3, 1e-7, 1000.0, 5e11],
            [
                -0.15490196738173417,
                0.11394333637700982,
                -6.999999994924792,
                3.0,
                11.698970002557148,
            ],
            [-0.1549019599857432, 0.11394335230683679, -7.0, 3.0, 11.698970004336019],
        ),
        (
            "sinc",
            [0.45, 0.5235, 1.01, 2.7],
            [0.69864659943015, 0.6063854644970076, -0.009899352187599707, 0.09537706474982269],
            [0.6986465850664342, 0.6063854973315788, -0.00989936153178762, 0.09537707681490437],
        ),
    ],
)
def test_errors_are_below_two_ulp(name, points, single, double) -> None:
    for dtype, exact in ((np.float32, single), (np.float64, double)):
        with enable_x64(dtype is np.float64):
            y = np.asarray(getattr(pnp, name)(np.array(points, dtype))).astype(np.float64)
            ulp = np.abs(y - exact) / np.spacing(np.abs(np.array(exact)).astype(dtype))
            assert ulp.max() < 1.7, ulp


def test_sinc_of_infinity() -> None:
    for x in (np.inf, -np.inf):
        assert pnp.sinc(x) == 0 and grad(pnp.sinc)(x) == 0
    assert np.isnan(pnp.sinc(np.nan))


def test_rounding_to_extreme_decimals() -> None:
    x = np.float32([1.234, np.inf, 3e38, -0.5])
    for decimals in (38, 40, 400):
        np.testing.assert_array_equal(pnp.round(x, decimals), x)
    assert pnp.round(np.float32(1.234), -400) == 0
    assert pnp.round(np.complex64(1.234 + 1j), 50) == np.complex64(1.234 + 1j)


def test_membership_of_arrays_is_refused() -> None:
    x = pnp.arange(3)
    assert 2 in x and np.int32(1) in x
    with pytest.raises(ValueError, match="requires a scalar value"):
        pnp.arange(1) in x  # noqa: B015


def test_closeness_of_keys() -> None:
    key = random.key(0)
    assert pnp.isclose(key, key) and pnp.allclose(key, key)
    assert not pnp.isclose(random.split(key), key).any()


def test_taking_along_an_axis_by_one_hot() -> None:
    x = np.arange(12).reshape(3, 4)
    index = np.array([[0, 9], [1, -1], [3, 2]])
    actual = pnp.take_along_axis(x, index, 1, mode="one_hot")
    np.testing.assert_array_equal(actual, [[0, 0], [5, 7], [11, 10]])


def test_multi_indices_of_computed_shapes() -> None:
    index = np.array([0, 4, -1, 10])
    expected = pnp.unravel_index(index, (2, 3))
    actual = jit(lambda i, n: pnp.unravel_index(i, (2, n)))(index, 3)
    np.testing.assert_array_equal(actual, expected)
    for shape in (pnp.array([2, 3]), np.array([2, 3])):
        np.testing.assert_array_equal(pnp.unravel_index(index, shape), expected)
    np.testing.assert_array_equal(jit(pnp.unravel_index)(index, np.array([2, 3])), expected)


def test_ufunc_methods_of_booleans() -> None:
    x, index, b = np.array([True, False, True]), np.array([0, 1, 1]), np.array([False, True, True])
    for name in ("add", "multiply"):
        expected = x.copy()
        getattr(np, name).at(expected, index, b)
        actual = getattr(pnp, name).at(pnp.asarray(x), index, b, inplace=False)
        assert actual.dtype == bool
        np.testing.assert_array_equal(actual, expected)
    for name in ("minimum", "maximum"):
        expected = getattr(np, name).accumulate(x)
        actual = getattr(pnp, name).accumulate(x)
        assert actual.dtype == bool
        np.testing.assert_array_equal(actual, expected)


def test_ufunc_outer_without_rank_promotion() -> None:
    with numpy_rank_promotion("raise"):
        actual = pnp.add.outer(np.arange(3), np.ones((2, 2), np.int32))
    np.testing.assert_array_equal(actual, np.add.outer(np.arange(3), np.ones((2, 2))))


def test_einsum_broadcasts_axes_of_size_1() -> None:
    cases = [("bij,bjk->bik", (1, 2, 1), (3, 3, 2)), ("ij,ij->", (1, 2), (3, 1))]
    for text, a, b in cases:
        x = np.arange(np.prod(a), dtype=np.float32).reshape(a) + 1
        y = np.arange(np.prod(b), dtype=np.float32).reshape(b) + 1
        sizes: dict[str, int] = {}
        for term, shape in zip(text.split("->")[0].split(","), (a, b), strict=True):
            for c, d in zip(term, shape, strict=True):
                sizes[c] = max(sizes.get(c, 1), d)
        full = [
            np.broadcast_to(v, [sizes[c] for c in t])
            for v, t in zip((x, y), text.split("->")[0].split(","), strict=True)
        ]
        np.testing.assert_allclose(pnp.einsum(text, x, y), np.einsum(text, *full))


def test_einsum_accepts_more_labels_than_letters() -> None:
    x, y = (np.arange(6, dtype=np.float32).reshape(2, 3, *(1,) * 28) for _ in range(2))
    labels = [*range(30)], [0, *range(30, 59)]
    expected = np.einsum("ij,ik->ijk", x.reshape(2, 3), y.reshape(2, 3))
    product = pnp.einsum(x, labels[0], y, labels[1], [0, 1, 30])
    np.testing.assert_array_equal(product, expected)
    dotted = pnp.einsum(x, labels[0], y, [0, ...], [0, 1, ...])
    np.testing.assert_array_equal(dotted.reshape(expected.shape), expected)


def test_einsum_labels_and_diagonals() -> None:
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(pnp.einsum("01,12->02", x, y), x @ y)
    np.testing.assert_array_equal(pnp.einsum(x, "01", y, "12", "02"), x @ y)
    words = (x, ["query", "head"], y, ["head", "key"])
    # Without labels of the result, its axes are sorted by label.
    np.testing.assert_array_equal(pnp.einsum(*words), (x @ y).T)
    np.testing.assert_array_equal(pnp.einsum(*words, ["query", "key"]), x @ y)
    np.testing.assert_array_equal(pnp.einsum(x, [-7, 900], y, [900, ...]), (x @ y).T)
    with pytest.raises(ValueError, match="repeated label 'i' have different sizes"):
        pnp.einsum("ii->i", np.ones((1, 3), np.float32))


def test_grids_of_open_slices_and_of_nothing() -> None:
    assert pnp.mgrid[()].shape == (0,) and pnp.ogrid[()] == []
    for grid, theirs in ((pnp.ogrid, np.ogrid), (pnp.mgrid, np.mgrid)):
        np.testing.assert_array_equal(grid[3:], theirs[3:])  # type: ignore[index]
        assert grid[:].shape == (0,)
    assert [g.shape for g in pnp.ogrid[0:, :3]] == [(0, 1), (1, 3)]
    assert isinstance(pnp.meshgrid(np.arange(2), np.arange(3)), list)
    assert isinstance(pnp.broadcast_arrays(1, np.arange(3)), list)


def test_gradients_of_searches_are_valid_jaxprs() -> None:
    points = np.arange(4.0, dtype=np.float32)
    with enable_checks(True):
        assert grad(lambda x: pnp.interp(x, points, points**2))(1.5) == 3
        assert grad(lambda x: pnp.searchsorted(points, x, method="scan") * x)(1.5) == 2


@pytest.mark.parametrize(
    "f",
    [pnp.sin, pnp.sum, lambda x: pnp.where(x, 1, 2), lambda x: pnp.stack([X, x])],
    ids=["sin", "sum", "where", "stack"],
)
def test_references_are_not_arrays(f) -> None:
    ref = new_ref(np.zeros((2, 3, 4), np.float32))
    text = r"(sin|sum|where|stack) takes arrays or numbers, got a Ref of type Ref{float32\[2,3,4\]}"
    for call in (f, jit(f)):
        with pytest.raises(TypeError, match=text + r" at position [01]\. .*index the reference"):
            call(ref)
    assert pnp.zeros_like(ref).shape == (2, 3, 4)
