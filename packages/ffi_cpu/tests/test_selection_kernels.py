"""Elements of given ranks with native kernels: bit for bit those of sorted arrays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from both_forms import both, equal_bits

from primax_core import enable_x64, grad, jit, lax, vmap

RNG = np.random.default_rng(0)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, -1e-40, 1.0, -1.0]


@pytest.fixture(autouse=True)
def _wide_numbers():
    with enable_x64(True):
        yield


def _rows(kind, n, dtype):
    """Rows of numbers whose digits are spread in different ways."""
    if kind == "normal":
        return RNG.normal(size=n).astype(dtype)
    if kind == "uniform":
        return RNG.random(n).astype(dtype)
    if kind == "few values":
        return RNG.integers(-3, 3, n).astype(dtype)
    if kind == "one bucket":  # the first digits are equal
        return (1 + RNG.integers(0, 1000, n) * np.finfo(dtype).eps).astype(dtype)
    if kind == "constant":
        return np.full(n, 2.5, dtype)
    if kind == "sorted":
        return np.sort(RNG.normal(size=n)).astype(dtype)
    return RNG.choice(np.array(SPECIAL, dtype), n)


KINDS = ["normal", "uniform", "few values", "one bucket", "constant", "sorted", "special"]


def _sorted_stably(x):
    """Sorted elements; zeros and NaN in the order of the array."""
    key = np.where(x == 0, x.dtype.type(0), x)
    return np.take_along_axis(x, np.argsort(key, -1, kind="stable"), -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [257, 1025, 5000, 100_000])
def test_elements_are_those_of_a_sorted_array(kind, n, dtype):
    x = _rows(kind, n, dtype)
    ranks = np.r_[0, n - 1, n // 2, n // 2, RNG.integers(0, n, 20)].astype(np.int32)
    assert "@primax_cpu_order_statistics" in jit(lax.order_statistics).lower(x, ranks).as_text()
    out = np.asarray(lax.order_statistics(x, ranks))
    expected = _sorted_stably(x)[ranks]
    assert out.dtype == dtype and out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranks_of_each_row(dtype):
    x = np.stack([_rows(kind, 1500, dtype) for kind in KINDS])
    ranks = RNG.integers(0, 1500, (len(KINDS), 5)).astype(np.int32)
    assert "@primax_cpu_order_statistics" in jit(lax.order_statistics).lower(x, ranks).as_text()
    equal_bits(*both(lax.order_statistics, x, ranks))
    equal_bits(*both(lax.order_statistics, x, ranks[0]))
    equal_bits(lax.order_statistics(x, ranks), np.take_along_axis(_sorted_stably(x), ranks, -1))


@pytest.mark.parametrize("shape, q", [((0, 300), 2), ((300, 40), 0), ((2, 3, 400), 3), ((300,), 1)])
def test_shapes(shape, q):
    x = RNG.normal(size=shape)
    ranks = RNG.integers(0, shape[-1], q).astype(np.int32)
    equal_bits(lax.order_statistics(x, ranks), np.sort(x)[..., ranks])


def test_ranks_out_of_bounds_read_no_other_memory():
    x = RNG.normal(size=(3, 500))
    ranks = np.array([-(2**31), -1, 500, 2**31 - 1], np.int32)
    assert np.isin(np.asarray(lax.order_statistics(x, ranks)), x).all()


def test_transformations():
    x = RNG.normal(size=(4, 600))
    ranks = np.array([5, 300, 300], np.int32)
    weights = np.array([1.0, 2.0, 4.0])
    total = lambda x: lax.reduce_sum(lax.order_statistics(x, ranks) * weights, (0,))
    for fun in (
        vmap(lambda x: lax.order_statistics(x, ranks)),
        lambda x: vmap(lambda x: lax.order_statistics(x, ranks), in_axes=1)(
            lax.reshape(x, (600, 4))
        ),
        lambda x: vmap(lambda r: lax.order_statistics(x, r))(np.stack([ranks, ranks + 1])),
        vmap(lambda x: lax.order_statistics(lax.reshape(x, (2, 300)), ranks - 5)),
        vmap(grad(total)),
    ):
        native, other = both(fun, x)
        np.testing.assert_array_equal(native, other)
    expected = np.zeros(600)
    order = np.argsort(x[0])
    expected[order[5]], expected[order[300]] = 1, 6
    np.testing.assert_array_equal(grad(total)(x[0]), expected)


def test_many_threads_call_at_once():
    x = RNG.normal(size=(8, 5000)).astype(np.float32)
    ranks = np.array([0, 100, 2500], np.int32)
    f = jit(lambda x: lax.order_statistics(x, ranks))
    expected = np.sort(x)[:, ranks]
    with ThreadPoolExecutor(64) as pool:
        for out in pool.map(lambda _: f(x), range(256)):
            np.testing.assert_array_equal(out, expected)


def test_few_elements_many_ranks_and_other_dtypes_are_left_to_the_core():
    def selects(x, ranks):  # the core's form may sort with a native kernel
        text = jit(lax.order_statistics).lower(x, ranks).as_text()
        return "@primax_cpu_order_statistics" in text

    x = RNG.normal(size=1000)
    ranks = np.arange(3, dtype=np.int32)
    assert selects(x, ranks)
    assert not selects(x[:100], ranks)
    assert not selects(x, np.arange(500, dtype=np.int32))
    assert not selects(x.astype(np.int32), ranks)


def test_medians_and_quantiles():
    """The same elements; XLA may round their interpolation once less in one of the programs."""
    jnp = pytest.importorskip("primax_numpy", reason="pip install primax-numpy")
    x = RNG.normal(size=(3, 501))
    x[1, 7] = np.nan
    q = np.array([0.0, 0.1, 0.5, 0.99, 1.0])
    for fun in (
        lambda x: jnp.median(x, 1),
        lambda x: jnp.median(x, 0),
        lambda x: jnp.median(x[:, :-1], 1),
        lambda x: jnp.nanmedian(x, 1),
        lambda x: jnp.quantile(x, q, 1, keepdims=True),
        lambda x: jnp.nanquantile(x, q, 1, method="weibull"),
        grad(lambda x: jnp.nansum(jnp.quantile(x, q, 1))),
    ):
        native, other = both(fun, x)
        np.testing.assert_allclose(native, other, rtol=3e-16, strict=True)
    np.testing.assert_array_equal(jnp.median(x, 1), np.median(x, 1))
    np.testing.assert_allclose(jnp.nanquantile(x, q, 1), np.nanquantile(x, q, 1), rtol=1e-14)
