"""Sorting, searching, sets and histograms: errors, and properties against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import primax_numpy as pnp
from primax_core import errors, grad, jit

X = np.float32([[3, 1, 2], [2, 2, 0]])
KEYS = np.int32([3, 1, 3])
UNKNOWN = errors.ConcretizationTypeError

BAD = [
    (lambda: pnp.sort([2, 1]), TypeError, "sort requires ndarray or scalar arguments"),
    (lambda: pnp.sort(X, kind="stable"), TypeError, "Use stable=True or stable=False"),
    (lambda: pnp.argsort(X, order="a"), TypeError, "'order' argument to argsort"),
    (lambda: pnp.sort(X, axis=2), ValueError, "axis 2 is out of bounds"),
    (lambda: pnp.sort(1.0), ValueError, "out of bounds for array of dimension 0"),
    (lambda: pnp.lexsort(()), TypeError, "sequence of keys with len > 0"),
    (lambda: pnp.lexsort((X, KEYS)), ValueError, r"same shape, got \[\(2, 3\), \(3,\)\]"),
    (lambda: pnp.lexsort((KEYS,), batch_size=0), ValueError, "batch_size must be positive"),
    (lambda: pnp.partition(X, 3), ValueError, "kth=3 is out of bounds for axis 1 of size 3"),
    (lambda: pnp.argpartition(1j * X, 0), TypeError, "does not accept dtype complex64"),
    (lambda: pnp.top_k(X, 4), ValueError, "no larger than size along axis"),
    (lambda: pnp.top_k(X, 1, mode="least"), ValueError, "'largest' or 'smallest', got 'least'"),
    (lambda: pnp.top_k(1j * X, 1), ValueError, "not compatible with complex"),
    (lambda: pnp.searchsorted(X, 1), ValueError, r"a should be 1-dimensional, got shape \(2, 3\)"),
    (lambda: pnp.searchsorted(KEYS, 1, side="mid"), ValueError, "expected 'left' or 'right'"),
    (lambda: pnp.searchsorted(KEYS, 1, method="x"), ValueError, "expected one of .*'compare_all'"),
    (lambda: pnp.searchsorted(KEYS, 1, sorter=X[0]), TypeError, "sorter must be of integer dtype"),
    (lambda: pnp.digitize(KEYS, X), ValueError, "bins must be a 1-dimensional array"),
    (lambda: pnp.bincount(X[0]), TypeError, "must have an integer type; got float32"),
    (lambda: pnp.bincount(KEYS[None]), ValueError, "only 1-dimensional input"),
    (lambda: pnp.bincount(KEYS, X[0, :2]), ValueError, "weights must have the shape of x"),
    (lambda: pnp.bincount(KEYS, length=-1), ValueError, "length must be nonnegative, got -1"),
    (lambda: jit(pnp.bincount)(KEYS), UNKNOWN, r"bincount\(x, length=n\)"),
    (lambda: jit(pnp.unique)(KEYS), UNKNOWN, r"unique\(..., size=n\)"),
    (lambda: jit(pnp.unique_all)(KEYS), UNKNOWN, r"unique_all\(..., size=n\)"),
    (lambda: jit(pnp.union1d)(KEYS, KEYS), UNKNOWN, r"union1d\(..., size=n\)"),
    (lambda: jit(pnp.setxor1d)(KEYS, KEYS), UNKNOWN, r"setxor1d\(..., size=n\)"),
    (lambda: jit(pnp.setdiff1d)(KEYS, KEYS), UNKNOWN, r"setdiff1d\(..., size=n\)"),
    (lambda: jit(pnp.intersect1d)(KEYS, KEYS), UNKNOWN, r"intersect1d\(..., size=n\)"),
    (lambda: pnp.unique(KEYS, size=-1), ValueError, "size must be nonnegative; got size=-1"),
    (lambda: pnp.unique(KEYS[:0], size=2), ValueError, "give fill_value="),
    (lambda: pnp.isin(KEYS, KEYS, method="x"), ValueError, "options are auto, compare_all"),
    (lambda: pnp.histogram(X, [0, 1]), TypeError, "bins must be a number, an array of edges"),
    (lambda: pnp.histogram(X, np.float32([1, 0])), ValueError, "bins must ascend"),
    (lambda: pnp.histogram(X, -1), ValueError, "number of bins must be positive"),
    (lambda: pnp.histogram(X, 2, (1, 0)), ValueError, "range must ascend, got 1 and 0"),
    (lambda: pnp.histogram(X, 2, (1,)), ValueError, "range must be None or two numbers"),
    (lambda: pnp.histogram(X, weights=X[0]), ValueError, "same shape as a"),
    (lambda: pnp.histogram(X, "auto", weights=X), TypeError, "does not support weights"),
    (lambda: jit(lambda x: pnp.histogram(x, "auto"))(X), UNKNOWN, "depends on values"),
    (lambda: pnp.histogram2d(X[0], X[0, :2]), ValueError, "vectors of one length"),
    (lambda: pnp.histogramdd(X, (2, 2)), ValueError, "a bin for each dimension, got 2 for 3"),
    (lambda: pnp.histogramdd(X, range=((0, 1),)), ValueError, "a range for each dimension"),
    (lambda: pnp.histogramdd(X, weights=KEYS), ValueError, "one weight for each of 2 points"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD, ids=[text for *_, text in BAD])
def test_bad_input(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


FLOATS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan])
VECTORS = hnp.arrays(np.float32, st.integers(1, 8), elements=FLOATS)


@settings(max_examples=25)
@given(x=VECTORS)
def test_order_of_special_values(x: np.ndarray) -> None:
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(np.asarray(pnp.argsort(x)), order)
    np.testing.assert_array_equal(np.asarray(pnp.sort(x)), x[order])
    falling = len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1]
    np.testing.assert_array_equal(np.asarray(pnp.argsort(x, descending=True)), falling)


@settings(max_examples=25)
@given(x=VECTORS, k=st.integers(0, 8))
def test_smallest_elements_are_the_first_sorted_ones(x: np.ndarray, k: int) -> None:
    k = min(k, len(x))
    values, places = pnp.top_k(x, k, mode="smallest")
    order = np.argsort(x, kind="stable")[:k]
    np.testing.assert_array_equal(np.asarray(places), order)
    np.testing.assert_array_equal(np.asarray(values), x[order])


@settings(max_examples=25)
@given(x=VECTORS, v=VECTORS, side=st.sampled_from(["left", "right"]))
def test_all_search_methods_agree(x: np.ndarray, v: np.ndarray, side: str) -> None:
    x = np.sort(x)
    expected = np.searchsorted(x, v, side)
    for method in ("scan", "scan_unrolled", "sort", "compare_all"):
        actual = pnp.searchsorted(x, v, side, method=method)
        np.testing.assert_array_equal(np.asarray(actual), expected, method)


@settings(max_examples=25)
@given(x=VECTORS, size=st.integers(1, 10))
def test_sized_results_are_truncated_or_padded(x: np.ndarray, size: int) -> None:
    whole = np.asarray(pnp.unique(x))
    np.testing.assert_array_equal(whole, np.unique(x))
    padded = np.asarray(pnp.unique(x, size=size, fill_value=7.0))
    expected = np.append(whole, np.full(size, 7, np.float32))[:size]
    np.testing.assert_array_equal(padded, expected)


SMALL = hnp.arrays(np.int32, st.integers(0, 6), elements=st.integers(0, 4))


@settings(max_examples=25)
@given(x=SMALL, y=SMALL)
def test_sets(x: np.ndarray, y: np.ndarray) -> None:
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"):
        actual, expected = getattr(pnp, name)(x, y), getattr(np, name)(x, y)
        np.testing.assert_array_equal(np.asarray(actual), expected, name)
    common, first, second = pnp.intersect1d(x, y, return_indices=True)
    np.testing.assert_array_equal(x[np.asarray(first)], np.asarray(common))
    np.testing.assert_array_equal(y[np.asarray(second)], np.asarray(common))


@settings(max_examples=25)
@given(
    rows=hnp.arrays(
        np.int8, st.tuples(st.integers(0, 6), st.integers(0, 3)), elements=st.integers(0, 2)
    )
)
def test_rows(rows: np.ndarray) -> None:
    values, index, inverse, counts = pnp.unique(rows, True, True, True, axis=0)
    expected = np.unique(rows, axis=0, return_index=True, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(np.asarray(values), expected[0])
    np.testing.assert_array_equal(np.asarray(index), expected[1])
    np.testing.assert_array_equal(np.asarray(inverse), expected[2].reshape(-1))
    np.testing.assert_array_equal(np.asarray(counts), expected[3])


@settings(max_examples=25)
@given(x=hnp.arrays(np.float32, st.integers(1, 12), elements=st.integers(-4, 4)))
def test_every_element_is_in_one_bin(x: np.ndarray) -> None:
    for bins in (1, 3, 7):
        counts, edges = (np.asarray(v) for v in pnp.histogram(x, bins))
        assert counts.sum() == len(x)
        np.testing.assert_array_equal(counts, np.histogram(x, edges)[0])


def test_results_of_the_standard_have_names() -> None:
    every = pnp.unique_all(KEYS)
    assert every._fields == ("values", "indices", "inverse_indices", "counts")
    assert pnp.unique_counts(KEYS)._fields == ("values", "counts")
    assert pnp.unique_inverse(KEYS)._fields == ("values", "inverse_indices")
    assert pnp.unique_values(KEYS).tolist() == [1, 3]
    assert every.counts.tolist() == [1, 2]


def test_derivatives_of_results_of_data_dependent_size() -> None:
    x = np.float32([3, 1, 3, 2])
    assert grad(lambda x: pnp.sum(pnp.unique(x) ** 2))(x).tolist() == [6, 2, 0, 4]
    assert grad(lambda x: pnp.sum(pnp.union1d(x, x)))(x).tolist() == [1, 1, 0, 1]
