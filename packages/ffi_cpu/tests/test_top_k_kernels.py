"""top_k with the native kernels: the total order, bit for bit, and the results without them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from both_forms import FLOATS, REAL, both, dtype_of
from test_sort_kernels import elements, same, wide_dtypes as wide_dtypes

from primax_core import grad, jit, lax, vmap

KINDS = ["random", "few", "special", "sorted", "reversed"]


def total_order(x: np.ndarray) -> np.ndarray:
    """Signed integers in the total order of floats."""
    if x.dtype.kind in "biu":
        return x
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


@pytest.mark.parametrize(
    ("shape", "axis"), [((40,), 0), ((30_001,), 0), ((7, 300), 1), ((300, 7), 0)]
)
@pytest.mark.parametrize("name", ["bool", *REAL, *FLOATS])
def test_largest_elements_in_total_order(name, shape, axis):
    dtype, n = dtype_of(name), shape[axis]
    sizes = sorted({1, 3, n // 9, n // 3, n})

    @jit
    def largest(x):
        return [lax.top_k(x, k, axis=axis) for k in sizes]

    text = largest.lower(np.zeros(shape, dtype)).as_text()
    assert text.count("custom_call @primax_cpu_top_k") == len(sizes)
    for kind in KINDS:
        x = elements(shape, dtype, kind, axis)
        # The stable order of the reversed line, reversed, has the first of equal elements first.
        ascending = np.argsort(np.flip(total_order(x), axis), axis, kind="stable")
        order = n - 1 - np.flip(ascending, axis)
        for k, (values, indices) in zip(sizes, largest(x), strict=True):
            expected = np.take(order, range(k), axis)
            same(indices, expected.astype(np.int32))
            same(values, np.take_along_axis(x, expected, axis))


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "int8"])
def test_results_without_the_kernels_are_equal(name):
    # XLA's conversions of bfloat16 may change the bits of NaN.
    x = elements((9, 700), dtype_of(name), "few" if name == "bfloat16" else "special")
    for k in (5, 200, 700):
        for native, plain in zip(*both(partial(lax.top_k, k=k), x), strict=True):
            same(native, np.asarray(plain))


def test_nothing_and_empty_lines():
    for shape, k in (((5,), 0), ((0, 4), 2), ((3, 0), 0)):
        values, indices = lax.top_k(np.zeros(shape, np.float32), k)
        assert values.shape == indices.shape == (*shape[:-1], k)


def test_derivatives_and_vmap():
    x = np.random.default_rng(0).normal(size=(20, 90)).astype(np.float32)

    def gradient(x):
        return grad(lambda x: lax.reduce_sum(lax.square(lax.top_k(x, 4)[0]), (0,)))(x)

    expected = np.zeros_like(x)
    order = np.argsort(-x)[:, :4]
    np.put_along_axis(expected, order, 2 * np.take_along_axis(x, order, 1), 1)
    same(jit(vmap(gradient))(x), expected)
    same(jit(vmap(gradient, 1, 1))(np.ascontiguousarray(x.T)), expected.T)
