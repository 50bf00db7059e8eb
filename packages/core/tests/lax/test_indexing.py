"""Gathers and scatters against NumPy."""

import numpy as np
import pytest

from primax_core import grad, jit, lax, vmap
from test_support import check_batches, check_derivatives

rng = np.random.default_rng(0)
X = rng.standard_normal((5, 4)).astype("f")
U = rng.standard_normal((3, 4)).astype("f")
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
TO_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
I = np.array([[4], [1], [1]], "i")
UNIQUE = np.array([[4], [1], [0]], "i")


def test_rows():
    def take(x):
        return lax.gather(x, I, ROWS, (1, 4))

    np.testing.assert_array_equal(np.asarray(take(X)), X[I[:, 0]])
    check_derivatives(take, X)
    check_batches(take, X, rtol=1e-6)
    check_batches(lambda i, x: lax.gather(x, i, ROWS, (1, 4)), UNIQUE, X, rtol=1e-6)


def test_batching_dimensions():
    x, i = rng.standard_normal((3, 4, 5)), np.array([[2, 0], [3, 3], [1, 0]], "i")
    numbers = lax.GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,))
    got = lax.gather(x, i[..., None], numbers, (1, 1, 5))
    np.testing.assert_allclose(np.asarray(got), x[np.arange(3)[:, None], i], 1e-6)


@pytest.mark.parametrize("dtype, filler", [
    ("float32", np.nan), ("int8", -128), ("uint8", 255), ("bool", True), ("complex64", np.nan + 0j),
])  # fmt: skip
def test_out_of_bounds(dtype, filler):
    x = X.astype(dtype)
    i = np.array([[5], [-1], [2]], "i")
    clipped = np.asarray(lax.gather(x, i, ROWS, (1, 4), mode="clip"))
    np.testing.assert_array_equal(clipped, x[[4, 0, 2]])
    filled = np.asarray(lax.gather(x, i, ROWS, (1, 4), mode="fill"))
    np.testing.assert_array_equal(filled[0], np.full(4, filler, dtype))
    np.testing.assert_array_equal(filled[2], x[2])
    filled_rows = np.asarray(lax.gather(x, i, ROWS, (1, 4), mode="fill", fill_value=1))
    np.testing.assert_array_equal(filled_rows[1], np.full(4, 1, dtype))


def test_filled_elements_have_no_derivative():
    i = np.array([[5], [2]], "i")
    g = grad(
        lambda x: lax.reduce_sum(lax.gather(x, i, ROWS, (1, 4), mode="fill", fill_value=0), (0, 1))
    )(X)
    np.testing.assert_array_equal(np.asarray(g), np.eye(5)[2][:, None] * np.ones(4))


OPS = {
    "scatter": lambda old, new: new,
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
}


@pytest.mark.parametrize("name", OPS)
def test_scatters(name):
    fun = getattr(lax, name)
    expected = X.copy()
    for i, u in zip(I[:, 0], U):
        expected[i] = OPS[name](expected[i], u)
    np.testing.assert_allclose(np.asarray(fun(X, I, U, TO_ROWS)), expected, 1e-6)
    outside = np.array([[4], [5], [-1]], "i")
    dropped = X.copy()
    dropped[4] = OPS[name](dropped[4], U[0])
    np.testing.assert_allclose(np.asarray(fun(X, outside, U, TO_ROWS)), dropped, 1e-6)
    clipped = dropped.copy()
    clipped[4] = OPS[name](clipped[4], U[1])
    clipped[0] = OPS[name](clipped[0], U[2])
    np.testing.assert_allclose(np.asarray(fun(X, outside, U, TO_ROWS, mode="clip")), clipped, 1e-6)
    check_derivatives(lambda x, u: fun(x, UNIQUE, u, TO_ROWS, unique_indices=True), X, U)
    if name != "scatter_mul":
        check_derivatives(lambda x, u: fun(x, I, u, TO_ROWS), X, U)
    check_batches(lambda x, u: fun(x, I, u, TO_ROWS), X, U, rtol=1e-6)
    check_batches(lambda u, x: fun(x, I, u, TO_ROWS), U, X, rtol=1e-6)
    check_batches(lambda i, x, u: fun(x, i, u, TO_ROWS), UNIQUE, X, U, rtol=1e-6)


@pytest.mark.parametrize("name", OPS)
def test_scatters_into_the_indices(name):
    """XLA writes to the operand's buffer, which must not be the buffer of the indices."""
    x, u = np.array([[3], [0], [1], [2], [0]], "i"), np.array([[10], [2], [-3], [4], [50]], "i")
    expected = x.copy()
    for i, new in zip(x[:, 0], u):
        expected[i] = OPS[name](expected[i], new)
    fun = getattr(lax, name)
    for once in (lambda x, u: fun(x, x, u, TO_ROWS), jit(lambda x, u: fun(x, x, u, TO_ROWS))):
        np.testing.assert_array_equal(once(x, u), expected)


def test_scatters_of_zeros_at_zeros():
    columns = lax.ScatterDimensionNumbers((0,), (1,), (1,))
    u = np.arange(9, dtype="i").reshape(3, 3)
    add = lambda u: lax.scatter_add(np.zeros((3, 1), "i"), np.zeros((3, 1), "i"), u, columns)
    np.testing.assert_array_equal(jit(add)(u), u.sum(1, keepdims=True))


def test_only_the_written_duplicate_has_a_derivative():
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    i = np.array([[1], [1]], "i")
    g = grad(lambda u: lax.reduce_sum(lax.scatter(np.zeros(3, "f"), i, u, numbers), (0,)))
    assert sorted(np.asarray(g(np.ones(2, "f"))).tolist()) == [0, 1]


def test_ties_share_the_derivative():
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    i = np.array([[0], [0]], "i")
    x, u = np.ones(1, "f"), np.ones(2, "f")
    gx, gu = grad(lambda x, u: lax.reduce_sum(lax.scatter_max(x, i, u, numbers), (0,)), (0, 1))(
        x, u
    )
    np.testing.assert_allclose([*np.asarray(gx), *np.asarray(gu)], [1 / 3] * 3, 1e-6)


def test_products_with_overlapping_windows_have_no_derivative_in_updates():
    fun = lambda u: lax.reduce_sum(lax.scatter_mul(X, I, u, TO_ROWS), (0, 1))
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        grad(fun)(U)


def test_apply():
    got = lax.scatter_apply(np.full((5, 4), 16.0, "f"), I, lax.sqrt, TO_ROWS, update_shape=(3, 4))
    np.testing.assert_array_equal(np.asarray(got)[:, 0], [16, 2, 16, 16, 4])
    fun = lambda x: lax.scatter_apply(x, I, lax.sqrt, TO_ROWS, update_shape=(3, 4))
    with pytest.raises(NotImplementedError, match="scatter_apply"):
        grad(lambda x: lax.reduce_sum(fun(x), (0, 1)))(X)
    with pytest.raises(TypeError, match="closes over tracers"):
        jit(lambda x, y: lax.scatter_apply(x, I, lambda v: v + y, TO_ROWS, update_shape=(3, 4)))(
            X, 1.0
        )


def test_index_take():
    got = lax.index_take(X, (np.array([0, -1], "i"),), (0,))
    np.testing.assert_array_equal(np.asarray(got), X[[0, -1]])
    got = lax.index_take(X, (np.array([0, -1], "i"), np.array([6, 1], "i")), (1, 0))
    np.testing.assert_array_equal(np.asarray(got), X[[1, 1], [0, -1]])


def test_nested_batches():
    def add(x, i, u):
        return lax.scatter_add(x, i, u, TO_ROWS)

    xs, us = np.stack([X, -X]), np.stack([U, 2 * U, 3 * U])
    got = vmap(vmap(add, (None, None, 0)), (0, None, None))(xs, I, us)
    for a in range(2):
        for b in range(3):
            np.testing.assert_allclose(
                np.asarray(got)[a, b], np.asarray(add(xs[a], I, us[b])), 1e-6
            )


@pytest.mark.parametrize("call, error, phrase", [
    (lambda: lax.gather(X, I.astype("f"), ROWS, (1, 4)), ValueError, "integer type"),
    (lambda: lax.gather(X, I, ROWS, (2, 4)), TypeError, "collapse slice dims"),
    (lambda: lax.gather(X, I, ROWS, (1, 9)), TypeError, "out of range"),
    (lambda: lax.gather(X, I, ROWS._replace(start_index_map=(2,)), (1, 4)), TypeError, "domain is"),
    (lambda: lax.gather(X, I, ROWS, (1, 4), mode="wrap"), ValueError, "Unknown gather mode"),
    (lambda: lax.scatter(X, I, U.astype(int), TO_ROWS), TypeError, "same dtypes"),
    (lambda: lax.scatter(X, I, U[:2], TO_ROWS), TypeError, "scatter dimensions of updates"),
    (lambda: lax.scatter(X, I, U[0], TO_ROWS), TypeError, "must be of rank 2"),
    (lambda: lax.index_take(X, (), ()), ValueError, "an index vector for each axis"),
])  # fmt: skip
def test_errors(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()
