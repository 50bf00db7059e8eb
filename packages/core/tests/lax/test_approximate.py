"""Approximate top-k, which is exact on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core.lax.approximate import approx_max_k, approx_min_k

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_values(axis):
    x = RNG.permutation(60).reshape(3, 4, 5).astype(np.float32)
    order = np.argsort(x, axis)
    values, places = approx_max_k(x, 2, axis)
    best = np.flip(np.take(order, range(order.shape[axis] - 2, order.shape[axis]), axis), axis)
    np.testing.assert_array_equal(places, best)
    np.testing.assert_array_equal(values, np.take_along_axis(x, best, axis))
    values, places = approx_min_k(x, k=2, reduction_dimension=axis)
    np.testing.assert_array_equal(places, np.take(order, range(2), axis))
    assert places.dtype == np.int32 and values.dtype == np.float32


def test_ties_and_special_values():
    tied = np.array([1, 3, 3, 1, 3, 1], np.float32)
    assert approx_max_k(tied, 4)[1].tolist() == [1, 2, 4, 0]
    assert approx_min_k(tied, 4)[1].tolist() == [0, 3, 5, 1]
    odd = np.array([1, np.nan, 3, 2, np.inf, -np.inf], np.float32)
    assert approx_max_k(odd, 4)[1].tolist() == [1, 4, 2, 3]
    assert approx_min_k(odd, 4)[1].tolist() == [5, 0, 3, 2]


@pytest.mark.parametrize(
    "shape, k, recall, override, size",
    [
        ((20,), 3, 0.95, -1, 20), ((5000,), 1, 0.95, -1, 1024), ((5000,), 3, 0.95, -1, 2048),
        ((5000,), 16, 0.99, -1, 3072), ((5000,), 16, 0.99, 20000, 2048),
        ((5000,), 3, 1.0, -1, 5000), ((2, 300), 2, 0.95, -1, 256), ((100000,), 3, 0.95, -1, 2048),
    ],
)  # fmt: skip
def test_all_bins(shape, k, recall, override, size):
    x = RNG.permutation(np.prod(shape)).reshape(shape).astype(np.float32)
    values, places = approx_max_k(
        x, k, recall_target=recall, reduction_input_size_override=override, aggregate_to_topk=False
    )
    assert values.shape == places.shape == (*shape[:-1], size)
    np.testing.assert_array_equal(values, -np.sort(-x, -1)[..., :size])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_dtypes(dtype):
    x = np.array([1, 3, 2], px.dtypes.finfo(dtype).dtype)
    assert np.asarray(approx_min_k(x, 2)[0]).dtype == x.dtype
    assert approx_max_k(np.ones((0, 3), np.float32), 2)[0].shape == (0, 2)


def test_derivatives_and_batches():
    x = np.array([[3, 1, 2, 5], [4, 0, 7, 6]], np.float32)
    weights = np.array([1, 10], np.float32)

    def total(v):
        return px.lax.reduce_sum(px.lax.mul(approx_max_k(v, 2)[0], weights), (0,))

    assert px.vmap(px.grad(total))(x).tolist() == [[10, 0, 0, 1], [0, 0, 1, 10]]
    values, slopes = px.jvp(lambda v: approx_min_k(v, 2)[0], (x,), (x + 100,))
    np.testing.assert_array_equal(slopes, np.asarray(values) + 100)
    for axis in range(2):
        batched = px.vmap(lambda v: approx_min_k(v, 1)[1], axis)(x)
        expected = np.argmin(x, 1 - axis)
        np.testing.assert_array_equal(np.asarray(batched)[:, 0], expected)


@pytest.mark.parametrize(
    "error, text, options",
    [
        (ValueError, "k must be positive, got 0", {"k": 0}),
        (ValueError, "smaller than the size of reduction_dim 3, got 4", {"k": 4}),
        (TypeError, "k must be an integer", {"k": 2.5}),
        (ValueError, "recall_target must be in", {"k": 1, "recall_target": 0.0}),
        (ValueError, "recall_target must be in", {"k": 1, "recall_target": 1.5}),
        (ValueError, "override", {"k": 1, "reduction_input_size_override": 2}),
        (ValueError, "axis|dimension", {"k": 1, "reduction_dimension": 1}),
    ],
)
def test_errors(error, text, options):
    with pytest.raises(error, match=text):
        approx_max_k(np.ones(3, np.float32), **options)


def test_other_operands_are_refused():
    with pytest.raises(ValueError, match="operand must be a floating type, got int32"):
        approx_max_k(np.arange(3), 1)
    with pytest.raises(TypeError, match=">= 1 dimension"):
        approx_max_k(np.float32(1), 1)


def test_lowering_for_tpus():
    """The TPU lowering calls XLA's implementation with a comparator."""
    low = px.jit(lambda x: approx_max_k(x, 2) + approx_min_k(x, 2)).trace(
        np.ones((4, 9), np.float32)
    )
    text = low.lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("@ApproxTopK") == 2 and "reduction_dim = 1" in text
    assert "compare GT" in text and "compare LT" in text
