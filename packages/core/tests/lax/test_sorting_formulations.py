"""Sorts and top-k with integer keys on the CPU: the result is exact to the bit."""

import ml_dtypes
import numpy as np
import pytest

from primax_core import enable_x64
from primax_core.lax import sort, top_k

RNG = np.random.default_rng(1)
DTYPES = [
    np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
    np.int8, np.uint8, np.int16, np.int32, np.uint32, np.bool_,
]  # fmt: skip
SHAPES = [((600,), 0), ((5000,), 0), ((90, 50), 0), ((7, 31, 30), 1)]


def values(dtype, shape):
    """Values with many ties, the extremes of the range, and NaNs and zeros of both signs."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return RNG.random(shape) < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        x = RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        x.flat[:300] = RNG.integers(0, 5, 300)
        x.flat[7:10] = limits.min, limits.max, 0
        return x
    x = RNG.standard_normal(shape).astype(dtype)
    x.flat[:280] = RNG.integers(-2, 3, 280).astype(dtype)
    x.flat[100:140] = -x.flat[100:140]
    special = [np.nan, -np.inf, np.inf, -0.0, 0.0, -np.nan, np.nan, -0.0]
    x.flat[300:308] = np.array(special, np.float32).astype(dtype)
    return x


def bits(x):
    x = np.asarray(x)
    return x.view(f"u{x.itemsize}")


def order_of(x, axis):
    wide = x.astype(np.float64) if x.dtype.kind not in "iub" else x
    return np.argsort(wide, axis=axis, kind="stable")


def descending_order_of(x, axis):
    """Indices in descending total order, which distinguishes the signs of zeros and NaNs."""
    if x.dtype.kind in "iub":
        key = x.astype(np.int64)
    else:
        raw = x.astype(np.float32).view(np.int32)
        key = (raw ^ ((raw >> 31) & 0x7FFFFFFF)).astype(np.int64)
    return np.argsort(-key, axis=axis, kind="stable")


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_sorts_stably_and_moves_bits(dtype, shape, axis):
    x = values(dtype, shape)
    places = np.arange(x.size, dtype=np.int32).reshape(shape)
    order = order_of(x, axis)
    keys, moved = sort((x, places), dimension=axis)
    np.testing.assert_array_equal(moved, np.take_along_axis(places, order, axis))
    for actual in (keys, sort(x, dimension=axis)):
        np.testing.assert_array_equal(bits(actual), bits(np.take_along_axis(x, order, axis)))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_top_k_takes_the_first_of_equals(dtype, shape, axis):
    x = values(dtype, shape)
    order = descending_order_of(x, axis)
    for k in (3, shape[axis]):
        actual, places = top_k(x, k, axis=axis)
        expected = order.take(range(k), axis)
        np.testing.assert_array_equal(places, expected)
        np.testing.assert_array_equal(bits(actual), bits(np.take_along_axis(x, expected, axis)))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint64])
def test_sorts_64_bit_keys(dtype):
    x = np.concatenate([RNG.integers(0, 9, 5000).astype(dtype), np.array([0, 2**60], dtype)])
    if dtype == np.float64:
        x[:6] = np.nan, -0.0, 0.0, -np.inf, 1e-310, -1e-310
    with enable_x64(True):
        actual, places = sort((x, np.arange(x.size)))
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(bits(actual), bits(x[order]))


def test_subnormal_numbers_are_sorted():
    x = np.tile(np.array([1e-40, 0, 3e-45, -1e-42, -0.0], np.float32), 200)
    np.testing.assert_array_equal(bits(sort(x)), bits(x[np.argsort(x, kind="stable")]))


def test_later_keys_decide_between_equal_floats():
    first = RNG.integers(0, 3, 2000).astype(np.float32)
    first[:50] = np.nan
    second = RNG.integers(0, 3, 2000).astype(np.float16)
    places = np.arange(2000, dtype=np.int32)
    *_, actual = sort((first, second, places), num_keys=2)
    np.testing.assert_array_equal(actual, np.lexsort((second, first)))
