"""Cumulative operations with native kernels: as without them, and as precise."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest
from both_forms import FLOATS, REAL, both, calls, dtype_of, epsilon, equal_bits, samples
from hypothesis import given, settings
from processes import run

from primax_core import enable_x64, grad, jit, lax, vmap

NUMBERS = [*REAL, *FLOATS, "complex64", "complex128"]
SHAPES = [
    ((0, 300), 1), ((300, 0), 0), ((129,), 0), ((100_000,), 0), ((40, 17), 1), ((40, 17), 0),
    ((3, 600, 2), 1), ((2, 600, 5), 1), ((2, 300, 9), 1), ((20, 2100), 0),
]  # fmt: skip
FEW = [((129,), 0), ((2, 300, 9), 1)]
"""Shapes for the comparison with the core's form, which takes longer to compile."""
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, 1e-30, 3e38]


@pytest.fixture(autouse=True)
def _wide_numbers():
    with enable_x64(True):
        yield


def _accumulated(ufunc, x, axis, reverse):
    """NumPy's result, in the widest dtype of the kind."""
    if x.dtype.kind not in "iu":
        x = x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)
    order = np.flip(x, axis) if reverse else x
    out = ufunc.accumulate(order, axis, dtype=x.dtype)
    return np.flip(out, axis) if reverse else out


def _near(native, exact, dtype, errors):
    native = np.asarray(native)
    assert native.dtype == dtype and native.shape == exact.shape
    if dtype.kind in "iu":
        assert native.tobytes() == exact.tobytes()
    elif native.size:
        scale = max(1.0, float(np.max(np.abs(exact))))
        error = np.max(np.abs(native.astype(exact.dtype) - exact))
        assert error <= errors * epsilon(dtype) * scale


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize(
    "operation, ufunc, errors", [(lax.cumsum, np.add, 8), (lax.cumprod, np.multiply, 200)]
)
def test_sums_and_products(operation, ufunc, errors, dtype):
    dtype = dtype_of(dtype)
    for reverse in (False, True):
        for shape, axis in SHAPES:
            x = samples(shape, dtype)
            if operation is lax.cumprod and dtype.kind not in "iu":
                x = (1 + x * dtype.type(0.01)).astype(dtype)
            with np.errstate(over="ignore"):
                exact = _accumulated(ufunc, x, axis, reverse)
            _near(operation(x, axis, reverse), exact, dtype, errors)


@pytest.mark.parametrize("dtype", [*REAL, *FLOATS])
@pytest.mark.parametrize("operation, ufunc", [(lax.cummax, np.maximum), (lax.cummin, np.minimum)])
def test_extrema(operation, ufunc, dtype):
    dtype = dtype_of(dtype)
    for reverse in (False, True):
        for shape, axis in SHAPES:
            x = samples(shape, dtype)
            exact = _accumulated(ufunc, x, axis, reverse).astype(dtype)
            equal_bits(operation(x, axis, reverse), exact)


@pytest.mark.parametrize("dtype", FLOATS)
def test_logs_of_sums(dtype):
    dtype = dtype_of(dtype)
    for reverse in (False, True):
        for shape, axis in SHAPES:
            x = samples(shape, dtype) * dtype.type(10)
            exact = _accumulated(np.logaddexp, x, axis, reverse)
            _near(lax.cumlogsumexp(x, axis, reverse), exact, dtype, 2)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize(
    "operation", [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp]
)
def test_results_with_and_without(operation, dtype):
    dtype = dtype_of(dtype)
    exact = operation in (lax.cummax, lax.cummin) or dtype.kind in "iu"
    if operation not in (lax.cumsum, lax.cumprod) and dtype.kind == "c":
        return
    if operation is lax.cumlogsumexp and dtype.kind in "iu":
        return
    for shape, axis in FEW:
        native, other = both(partial(operation, axis=axis), samples(shape, dtype))
        if exact:
            equal_bits(native, other)
        else:
            _near(native, np.asarray(other).astype(np.clongdouble), dtype, 200)


def test_small_logs_of_sums_keep_their_digits():
    x = np.full(300, -30.0)
    x[0] = 0
    exact = np.log1p(np.arange(300) * np.exp(-30.0))
    np.testing.assert_allclose(lax.cumlogsumexp(x), exact, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("columns", [1, 9])
def test_special_values(dtype, reverse, columns):
    dtype = dtype_of(dtype)
    rng = np.random.default_rng(columns)
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(dtype)
    often = rng.choice(values[[0, 1, 6, 7]], size=(300, columns))
    few = np.where(rng.random(often.shape) < 0.01, rng.choice(values, size=often.shape), often)
    zeros = rng.choice(values[:2], size=often.shape)
    only_nan = np.where(rng.random(often.shape) < 0.02, values[4], often)
    for x in (few, zeros, only_nan, np.full_like(often, -np.inf), np.full_like(often, np.inf)):
        for operation in (lax.cummax, lax.cummin):
            equal_bits(*both(partial(operation, axis=0, reverse=reverse), x))
        for operation in (lax.cumsum, lax.cumprod, lax.cumlogsumexp):
            native, other = both(partial(operation, axis=0, reverse=reverse), x)
            native, other = np.asarray(native, np.float64), np.asarray(other, np.float64)
            finite = np.isfinite(other)
            np.testing.assert_array_equal(native[~finite], other[~finite])
            np.testing.assert_allclose(native[finite], other[finite], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("operation", [lax.cummax, lax.cummin])
def test_extrema_of_denormal_numbers(operation, dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.random.default_rng(0).integers(-9, 9, 300).astype(dtype) * tiny
    ufunc = np.maximum if operation is lax.cummax else np.minimum
    np.testing.assert_array_equal(operation(x), ufunc.accumulate(x))


@given(
    arrays.arrays(
        st.sampled_from([np.float32, np.int8, np.uint32, np.float16]),
        st.sampled_from([(150,), (64, 3), (20, 10), (4, 33)]),
    ),
    st.integers(0, 1),
    st.booleans(),
)
@settings(max_examples=60)
def test_any_values_of_extrema(x, axis, reverse):
    # Short rows are left to XLA, which flushes denormal numbers to zero.
    axis = 0 if x.shape[-1] <= 16 else min(axis, x.ndim - 1)
    for operation in (lax.cummax, lax.cummin):
        native = operation(x, axis, reverse)
        order = np.flip(x, axis) if reverse else x
        ufunc = np.maximum if operation is lax.cummax else np.minimum
        expected = ufunc.accumulate(order, axis)
        expected = np.flip(expected, axis) if reverse else expected
        np.testing.assert_array_equal(native, expected)


@pytest.mark.parametrize("shape, axis", [((1_000_000,), 0), ((100_000, 9), 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_errors_of_sums_are_those_of_a_block(shape, axis, dtype):
    rng = np.random.default_rng(0)
    for x in (rng.random(shape), rng.normal(size=shape)):
        x = x.astype(dtype)
        exact = np.cumsum(x.astype(np.longdouble), axis)
        native = np.asarray(lax.cumsum(x, axis))
        # 40 roundings at most, by half an epsilon; being random, they add up to fewer.
        bound = np.cumsum(np.abs(x).astype(np.longdouble), axis) * epsilon(x.dtype)
        error = np.abs(native - exact)
        assert np.all(error <= 4 * bound)
        assert np.max(error) <= 3 * epsilon(x.dtype) * np.max(np.abs(exact))


def test_sums_of_infinities():
    x = np.ones(1000)
    x[300] = np.inf
    np.testing.assert_array_equal(lax.cumsum(x), np.cumsum(x))
    x[700] = -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(lax.cumsum(x), np.cumsum(x))


def test_results_do_not_depend_on_the_number_of_threads():
    code = """
        import hashlib
        import numpy as np
        import primax_ffi_cpu
        from primax_core import lax

        rng = np.random.default_rng(0)
        x = rng.normal(size=3_000_001).astype(np.float32)
        results = [
            lax.cumsum(x), lax.cumsum(x, 0, True), lax.cumprod(1 + x[:10**6] / 1000), lax.cummin(x),
            lax.cumsum(x[:3_000_000].reshape(-1, 3), 0), lax.cumsum(x.view(np.uint32)),
            lax.cumsum(x[:-1].view(np.complex64)), lax.cumsum(x.astype(np.float16)),
            lax.cummax(x, 0, True), lax.cumsum(x[:2_000_000].reshape(1000, 2000), 0),
        ]
        assert (np.asarray(results[3]) == np.minimum.accumulate(x)).all()
        np.testing.assert_allclose(results[0], np.cumsum(x.astype(float)), rtol=1e-4, atol=1e-2)
        print(*[hashlib.sha256(np.asarray(r).tobytes()).hexdigest() for r in results])
    """
    one, many = (run(code, NPROC=n, PJRT_NPROC=n) for n in ("1", "16"))
    assert one == many


def test_many_threads_call_at_once():
    x = np.random.default_rng(0).normal(size=(16, 5_000)).astype(np.float32)
    f = jit(lambda x: (lax.cumsum(x, 1), lax.cummax(x, 1)))
    expected = [np.asarray(y) for y in f(x)]
    with ThreadPoolExecutor(64) as pool:
        for results in pool.map(lambda _: f(x), range(256)):
            for y, z in zip(results, expected):
                equal_bits(y, z)


@pytest.mark.parametrize(
    "operation", [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp]
)
def test_transformations(operation):
    x = samples((4, 200), np.dtype(np.float64))
    assert calls(partial(operation, axis=1), x)
    for fun in (
        lambda x: vmap(operation)(x),
        lambda x: vmap(lambda y: operation(y, 0, True), in_axes=1, out_axes=1)(
            lax.reshape(x, (200, 4))
        ),
        grad(lambda x: lax.reduce_sum(operation(x * 0.1 + 1, 1) * np.arange(200.0), (0, 1))),
        vmap(grad(lambda x: lax.index_in_dim(operation(x, 0), 150, keepdims=False))),
    ):
        native, other = both(fun, x)
        np.testing.assert_allclose(native, other, rtol=1e-9, atol=1e-12)


def test_few_elements_and_other_dtypes_are_left_to_the_core():
    x = np.ones(1000, np.float32)
    assert not calls(lax.cumsum, x[:100])
    assert not calls(partial(lax.cumsum, axis=1), x.reshape(100, 10))
    assert not calls(lax.cumlogsumexp, x.astype(np.complex64))
