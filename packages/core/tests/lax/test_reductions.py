"""Reductions, cumulative operations and sorts against NumPy."""

import ml_dtypes
import numpy as np
import pytest

from primax_core import grad, jit, lax, vmap
from test_support import check_batches, check_derivatives

pytestmark = pytest.mark.optimised

rng = np.random.default_rng(0)
X = rng.standard_normal((3, 5)).astype("f")
ZEROS = np.array([[1, 0, 3, 2], [0, 3, 0, 3]], "f")


def logsumexp(x, axis):
    return np.log(np.cumsum(np.exp(x), axis))


CASES = {
    "sum": (lambda x: lax.reduce_sum(x, (1,)), lambda x: x.sum(1)),
    "sum of all": (lambda x: lax.reduce_sum(x, (0, 1)), np.sum),
    "prod": (lambda x: lax.reduce_prod(x, (1,)), lambda x: x.prod(1)),
    "max": (lambda x: lax.reduce_max(x, (0,)), lambda x: x.max(0)),
    "min": (lambda x: lax.reduce_min(x, (0, 1)), np.min),
    "reduce": (lambda x: lax.reduce(x, 1.0, lambda a, b: a * b, (0,)), lambda x: x.prod(0)),
    "cumsum": (lambda x: lax.cumsum(x, 1), lambda x: np.cumsum(x, 1)),
    "reverse cumsum": (lambda x: lax.cumsum(x, 1, True),
                       lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1]),
    "cumprod": (lambda x: lax.cumprod(x, 1), lambda x: np.cumprod(x, 1)),
    "cummax": (lambda x: lax.cummax(x, 0), lambda x: np.maximum.accumulate(x, 0)),
    "cummin": (lambda x: lax.cummin(x, 1), lambda x: np.minimum.accumulate(x, 1)),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), lambda x: logsumexp(x, 1)),
    "sort": (lambda x: lax.sort(x), lambda x: np.sort(x)),
    "sort of columns": (lambda x: lax.sort(x, 0), lambda x: np.sort(x, 0)),
    "top_k": (lambda x: lax.top_k(x, 2)[0], lambda x: -np.sort(-x)[:, :2]),
    "top_k of columns": (lambda x: lax.top_k(x, 2, axis=0)[0], lambda x: -np.sort(-x, 0)[:2]),
}  # fmt: skip


@pytest.mark.parametrize("ours, expected", CASES.values(), ids=CASES)
def test_values_derivatives_batches(ours, expected):
    np.testing.assert_allclose(np.asarray(ours(X)), expected(X), 1e-5)
    check_derivatives(ours, X)
    check_batches(ours, X, rtol=1e-6)


def test_products_of_zeros_have_exact_derivatives():
    g = grad(lambda x: lax.reduce_sum(lax.reduce_prod(x, (1,)), (0,)))(ZEROS)
    assert np.asarray(g).tolist() == [[0, 6, 0, 0], [0, 0, 0, 0]]
    check_derivatives(lambda x: lax.cumprod(x, 1), ZEROS)


def test_ties_share_the_derivative():
    x = np.array([1, 3, 3, 2], "f")
    g = grad(lambda x: lax.reduce_max(x, (0,)))(x)
    assert np.asarray(g).tolist() == [0, 0.5, 0.5, 0]
    g = grad(lambda x: lax.index_in_dim(lax.sort(x), 3, keepdims=False))(x)
    assert np.asarray(g).tolist() == [0, 0, 1, 0]


def test_indices_of_extrema():
    x = np.array([[1, 3, 3], [np.nan, 5, np.nan]], "f")
    assert np.asarray(lax.argmax(x, 1, "int32")).tolist() == [1, 0]
    assert np.asarray(lax.argmin(x, 1, "int8")).tolist() == [0, 0]
    assert lax.argmin(x, 0, "uint8").dtype == np.uint8
    check_batches(lambda x: lax.argmax(x, 1, "int32"), X, rtol=1e-6)


def test_logical():
    b = X > 0
    np.testing.assert_array_equal(np.asarray(lax.reduce_and(b, (0,))), b.all(0))
    np.testing.assert_array_equal(np.asarray(lax.reduce_or(b, (1,))), b.any(1))
    np.testing.assert_array_equal(np.asarray(lax.reduce_xor(b, (1,))), b.sum(1) % 2 == 1)
    i = rng.integers(0, 100, (4, 3)).astype("uint8")
    np.testing.assert_array_equal(np.asarray(lax.reduce_and(i, (0,))), np.bitwise_and.reduce(i, 0))
    np.testing.assert_array_equal(np.asarray(lax.reduce_xor(i, (0,))), np.bitwise_xor.reduce(i, 0))


def test_identities():
    nothing = np.zeros((0, 2), "f")
    assert np.asarray(lax.reduce_max(nothing, (0,))).tolist() == [-np.inf, -np.inf]
    assert np.asarray(lax.reduce_min(nothing.astype("int8"), (0,))).tolist() == [127, 127]
    assert np.asarray(lax.reduce_prod(nothing, (0,))).tolist() == [1, 1]
    assert np.asarray(lax.reduce_max(nothing.astype(bool), (0,))).tolist() == [False, False]


def test_narrow_floats_are_summed_in_float32():
    ones = np.ones(1000, ml_dtypes.bfloat16)
    assert float(lax.reduce_sum(ones, (0,))) == 1000
    assert float(np.asarray(lax.cumsum(ones))[-1]) == 1000
    assert float(lax.reduce_sum(np.ones(70000, np.float16), (0,))) == np.inf


@pytest.mark.parametrize("n, windows", [(8, 1), (12, 1), (16, 1), (17, 2)])
def test_short_axes_are_one_window(n, windows) -> None:
    text = jit(lax.cumsum).lower(np.ones(n, "f")).as_text()
    assert text.count('"stablehlo.reduce_window"') == windows
    ones = np.ones((2, n), "f")
    np.testing.assert_array_equal(lax.cumsum(ones, 1), np.cumsum(ones, 1))


def test_reduce_of_trees():
    def add_and_multiply(a, b):
        return {"s": a["s"] + b["s"], "p": a["p"] * b["p"]}

    out = jit(lambda x: lax.reduce({"s": x, "p": x}, {"s": 0.0, "p": 1.0}, add_and_multiply, (1,)))(
        X
    )
    np.testing.assert_allclose(np.asarray(out["s"]), X.sum(1), 1e-5)
    np.testing.assert_allclose(np.asarray(out["p"]), X.prod(1), 1e-5)
    inits = np.array([1.0, 2.0], "f")
    got = vmap(lambda i: lax.reduce(X, i, lambda a, b: a * b, (1,)))(inits)
    np.testing.assert_allclose(np.asarray(got), inits[:, None] * X.prod(1), 1e-5)
    check_derivatives(
        lambda i: lax.reduce(X.astype(float), i, lambda a, b: a * b, (1,)), np.float64(2)
    )


def test_sort_of_several():
    keys = np.array([2, 1, 2, 1], "i")
    more = np.array([1, 2, 0, 1], "f")
    k, m = lax.sort((keys, more), num_keys=2)
    assert np.asarray(k).tolist() == [1, 1, 2, 2] and np.asarray(m).tolist() == [1, 2, 0, 1]
    k, m = lax.sort_key_val(keys, more)
    assert np.asarray(m).tolist() == [2, 1, 1, 0]
    z = np.array([1 + 2j, 1 + 1j, -1], "complex64")
    assert np.asarray(lax.sort(z)).tolist() == [-1, 1 + 1j, 1 + 2j]
    special = np.array([np.nan, 0.0, -0.0, -np.inf], "f")
    got = np.asarray(lax.sort(special))
    assert np.signbit(got[:3]).tolist() == [True, False, True] and np.isnan(got[3])


def test_log_sum_exp_does_not_overflow():
    x = np.array([1000.0, 1000.0, -np.inf, np.inf], "f")
    got = np.asarray(lax.cumlogsumexp(x))
    np.testing.assert_allclose(got, [1000, 1000 + np.log(2), 1000 + np.log(2), np.inf], 1e-6)


@pytest.mark.parametrize("call, error, phrase", [
    (lambda: lax.reduce_sum(X, (2,)), ValueError, "out-of-bounds"),
    (lambda: lax.reduce_sum(X, (0, 0)), ValueError, "duplicate"),
    (lambda: lax.reduce_sum(X > 0, (0,)), TypeError, "does not accept dtype bool"),
    (lambda: lax.reduce_and(X, (0,)), TypeError, "bool or int"),
    (lambda: lax.argmax(X, 0, "float32"), TypeError, "integer type"),
    (lambda: lax.argmax(X[:0], 0, "int32"), ValueError, "non-empty"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: a > b, (0,)), TypeError, "must return scalars"),
    (lambda: lax.reduce(X, 0.0, lambda a, b: (a, b), (0,)), ValueError, "structure"),
    (lambda: lax.cumsum(X, -1), ValueError, "negative axes"),
    (lambda: lax.cumsum(X, 2), ValueError, "out of bounds"),
    (lambda: lax.cumlogsumexp(np.arange(3)), TypeError, "cumlogsumexp does not accept"),
    (lambda: lax.sort([]), TypeError, "at least one operand"),
    (lambda: lax.sort((X, X), num_keys=3), ValueError, "num_keys"),
    (lambda: lax.top_k(X, 9), ValueError, "no larger than"),
    (lambda: lax.top_k(X, 1.5), TypeError, "integer"),
])  # fmt: skip
def test_errors(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()


def test_top_k_returns_a_list():
    assert isinstance(lax.top_k(np.arange(3.0), 2), list)
