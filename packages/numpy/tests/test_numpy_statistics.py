"""Reductions, statistics, cumulative functions and polynomials: errors, and properties for shapes,
dtypes and axes against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import primax_numpy as pnp
from primax_core import errors, grad, jit, vmap
from primax_numpy import _quantiles
from primax_numpy.ops import segment_sum

X = np.arange(6, dtype=np.float32).reshape(2, 3)
MASK = np.array([True, False, True])

BAD = [
    (lambda: pnp.sum([1, 2]), TypeError, "sum requires ndarray or scalar arguments"),
    (lambda: pnp.sum(X, axis=2), ValueError, "axis 2 is out of bounds"),
    (lambda: pnp.sum(X, axis=(0, 0)), ValueError, "duplicate value in 'axis'"),
    (lambda: pnp.sum(X, out=X), NotImplementedError, "'out' argument of primax.numpy.sum"),
    (lambda: pnp.sum(X, initial=np.ones(2)), ValueError, r"sum: initial .* shape \(2,\)"),
    (lambda: pnp.sum(X, initial="a"), TypeError, "sum: initial must be a number"),
    (lambda: pnp.sum(X, where=X), ValueError, "sum: where must be None or a boolean array"),
    (lambda: pnp.all(X, where=MASK[:2]), ValueError, r"all: where has shape \(2,\).*\(2, 3\)"),
    (lambda: pnp.max(X, where=MASK), ValueError, "specify 'initial'"),
    (lambda: pnp.max(np.zeros((0, 2))), ValueError, "zero-size array .* max"),
    (lambda: pnp.nanmin(np.zeros(0)), ValueError, "zero-size array .* nanmin"),
    (lambda: pnp.ptp(MASK), TypeError, "ptp does not accept booleans"),
    (lambda: pnp.argmax(np.zeros(0)), ValueError, "attempt to get argmax of an empty"),
    (lambda: pnp.argmin(np.complex64([1])), TypeError, "argmin does not accept dtype complex64"),
    (lambda: pnp.nansum(X, dtype=bool), TypeError, "nansum does not accept dtype bool"),
    (lambda: pnp.var(X, ddof=1, correction=1), ValueError, "can't be provided simultaneously"),
    (lambda: pnp.std(X, dtype=int), ValueError, "dtype argument to std must be inexact"),
    (lambda: pnp.var(1j * X, dtype=np.float32), ValueError, "does not support a real dtype"),
    (lambda: pnp.var(X, axis=1, mean=X[:, 0]), TypeError, r"\(2,\), where \(2, 1\) is expected"),
    (lambda: pnp.var(X, ddof="a"), TypeError, "var: ddof .* must be a number"),
    (lambda: pnp.average(X, weights=MASK), ValueError, "Axis must be specified"),
    (lambda: pnp.average(X, axis=0, weights=MASK), ValueError, "Shape of weights"),
    (lambda: pnp.cov(np.zeros((1, 2, 3))), ValueError, "more than 2 dimensions"),
    (lambda: pnp.cov(X, X[:, :2]), ValueError, "different numbers of observations, 3 and 2"),
    (lambda: pnp.cov(X, fweights=X[0]), TypeError, "fweights must be integer"),
    (lambda: pnp.cov(X, aweights=X[0, :2]), RuntimeError, "numbers of samples and aweights"),
    (lambda: pnp.quantile(X, [0.5]), TypeError, "quantile requires ndarray or scalar"),
    (lambda: pnp.quantile(X, X), ValueError, "q must have rank 0 or 1"),
    (lambda: pnp.quantile(X, 0.5, method="near"), ValueError, "method 'near' is unknown: use"),
    (lambda: pnp.quantile(1j * X, 0.5), ValueError, "does not support complex"),
    (lambda: pnp.quantile(X, 1j), TypeError, "q must be real"),
    (lambda: pnp.percentile(X, 5, weights=X), ValueError, "'inverted_cdf' only"),
    (lambda: pnp.median(np.zeros(0)), ValueError, "median of no element"),
    (lambda: pnp.median(X, overwrite_input=True), ValueError, "overwrite_input"),
    (lambda: pnp.cumulative_sum(X), ValueError, r"shape \(2, 3\).* axis= must be given"),
    (lambda: pnp.cumulative_prod(1.0), ValueError, "must have an axis, got a scalar"),
    (lambda: pnp.diff(1.0), ValueError, "at least one dimensional"),
    (lambda: pnp.diff(X, n=-1), ValueError, "order must be non-negative but got -1"),
    (lambda: pnp.diff(X, prepend=X[0]), TypeError, r"prepend has shape \(3,\)"),
    (lambda: pnp.ediff1d(MASK), TypeError, "ediff1d does not accept booleans"),
    (lambda: pnp.gradient(X, 1.0, 2.0, 3.0), TypeError, "3 for 2 axes"),
    (lambda: pnp.gradient(X, X[0], axis=0), ValueError, "3 coordinates for axis 0 of size 2"),
    (lambda: pnp.gradient(X, edge_order=3), ValueError, "edge_order must be 1 or 2"),
    (lambda: pnp.gradient(X[:, :1]), ValueError, "at least 2 elements are required along axis 1"),
    (lambda: pnp.trapezoid(1.0), ValueError, "trapezoid of a scalar"),
    (lambda: pnp.trapezoid(X, X[:, 0]), ValueError, r"x has shape \(2,\), and y \(2, 3\)"),
    (lambda: pnp.polyadd(X, X[0]), ValueError, r"polyadd: .* vectors, got shape \(2, 3\)"),
    (lambda: pnp.polydiv(X[0], X[0, :0]), ValueError, "polynomials must have coefficients"),
    (lambda: pnp.polyder(X[0], -1), ValueError, "must be nonnegative, got -1"),
    (lambda: pnp.polyint(X[0], 2**63), ValueError, "must be at most 10,000, got 9,223,372"),
    (lambda: pnp.polyfit(X[0], X[0], 2**63), ValueError, "degree must be at most 1,000, got 9,"),
    (lambda: pnp.polyint(X[0], 2, X[0]), ValueError, r"length 1 or m = 2, got shape \(3,\)"),
    (lambda: pnp.polyval(1.0, X), TypeError, "at least one axis"),
    (lambda: pnp.poly(X), ValueError, "1d or non-empty square 2d"),
    (lambda: pnp.roots(X), ValueError, r"must be a vector, got shape \(2, 3\)"),
    (lambda: pnp.roots(np.ones(3, np.float16)), TypeError, "roots does not accept dtype float16"),
    (lambda: pnp.polyfit(X[0], X[0], -1), ValueError, "expected deg >= 0, got -1"),
    (lambda: pnp.polyfit(X[0], X[0, :2], 1), TypeError, "same length"),
    (lambda: pnp.polyfit(X[0, :2], X[0, :2], 1, cov=True), ValueError, "must exceed order"),
    (lambda: pnp.hanning(-1), ValueError, "hanning: the length must be nonnegative, got -1"),
    (lambda: pnp.hamming("two"), TypeError, "must be a finite real number, got 'two'"),
    (lambda: pnp.kaiser(3, X), ValueError, "beta must be a scalar"),
    (lambda: jit(pnp.bartlett)(3), TypeError, "length must be concrete"),
    (lambda: pnp.bartlett(np.nan), TypeError, "must be a finite real number, got nan"),
    (lambda: pnp.kaiser(X, 2.0), TypeError, "must be a finite real number, got array"),
    (lambda: jit(pnp.roots)(X[0]), errors.ConcretizationTypeError, "strip_zeros=False"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD, ids=[text for *_, text in BAD])
def test_bad_input(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("length", [3.0, 3.5, np.float32(3), pnp.float32(3), pnp.int8(3)])
def test_lengths_of_windows_are_rounded_down(length: Any) -> None:
    np.testing.assert_allclose(pnp.bartlett(length), np.bartlett(3))
    np.testing.assert_allclose(pnp.kaiser(length, 2.0), np.kaiser(3, 2.0), 1e-6)


ARRAYS = hnp.array_shapes(min_dims=1, max_dims=3, max_side=3).flatmap(
    lambda shape: hnp.arrays(np.int32, shape, elements=st.integers(-5, 5))
)


def axes_of(x: np.ndarray, data: st.DataObject) -> Any:
    """No axis, one, or several axes of an array."""
    one = st.integers(-x.ndim, x.ndim - 1)
    some = st.sets(st.integers(0, x.ndim - 1), min_size=1).map(tuple)
    return data.draw(st.one_of(st.none(), one, some))


@settings(max_examples=25)
@given(x=ARRAYS, data=st.data(), keepdims=st.booleans())
def test_reductions_along_any_axes(x: np.ndarray, data: st.DataObject, keepdims: bool) -> None:
    axes = axes_of(x, data)
    for name in ("sum", "max", "mean", "count_nonzero", "median", "ptp"):
        actual = getattr(pnp, name)(x, axis=axes, keepdims=keepdims)
        expected = getattr(np, name)(x, axis=axes, keepdims=keepdims)
        np.testing.assert_allclose(np.asarray(actual), expected, 1e-6, 1e-6)


@settings(max_examples=25)
@given(x=ARRAYS, data=st.data(), q=st.floats(0, 1))
def test_quantiles_at_any_level(x: np.ndarray, data: st.DataObject, q: float) -> None:
    axes = axes_of(x, data)
    for method in ("linear", "nearest", "hazen", "inverted_cdf", "closest_observation"):
        expected = np.quantile(x.astype(np.float64), q, axis=axes, method=method)
        actual = pnp.quantile(x, q, axis=axes, method=method)
        np.testing.assert_allclose(np.asarray(actual), expected, 1e-5, 1e-5)


@settings(max_examples=25)
@given(x=ARRAYS)
def test_deviations_sum_to_zero(x: np.ndarray) -> None:
    deviations = np.asarray(x - np.asarray(pnp.mean(x)))
    assert abs(deviations.sum()) < 1e-3
    assert float(pnp.std(x)) == pytest.approx(float(np.sqrt(np.mean(deviations**2))), abs=1e-5)


@settings(max_examples=25)
@given(p=hnp.arrays(np.int32, st.integers(1, 5), elements=st.integers(-3, 3)))
def test_polyder_inverts_polyint(p: np.ndarray) -> None:
    there = pnp.polyint(p.astype(np.float32), m=2, k=np.float32([1, 2]))
    np.testing.assert_allclose(np.asarray(pnp.polyder(there, 2)), p, 1e-5, 1e-5)
    assert pnp.polyder(there, 2**63).shape == (0,)


def test_narrow_floats_are_summed_in_single_precision() -> None:
    ones = np.ones(70000, np.float16)
    assert float(pnp.mean(ones)) == 1.0
    assert float(pnp.sum(ones[:3000])) == 3000.0
    assert float(pnp.nanmean(ones)) == 1.0
    assert float(pnp.cumsum(ones[:3000])[-1]) == 3000.0


def test_derivatives_of_ties() -> None:
    x = np.float32([2, 1, 2])
    assert grad(pnp.max)(x).tolist() == [0.5, 0, 0.5]
    assert grad(lambda x: pnp.median(x))(x).tolist() == [1, 0, 0]
    assert grad(lambda x: pnp.sort(x)[-1])(x).tolist() == [0, 0, 1]
    assert grad(lambda x: pnp.nanmax(x))(np.float32([np.nan, 1, 0])).tolist() == [0, 1, 0]


def test_levels_may_be_traced() -> None:
    levels = np.float32([0.0, 0.25, 1.0])
    actual = jit(lambda x, q: pnp.quantile(x, q))(X, levels)
    np.testing.assert_allclose(np.asarray(actual), np.quantile(X, levels), 1e-6)
    mapped = vmap(lambda q: pnp.quantile(X, q, method="higher"))(levels)
    np.testing.assert_allclose(np.asarray(mapped), np.quantile(X, levels, method="higher"))


def test_divisors_may_be_traced() -> None:
    actual = jit(lambda d: pnp.var(X, correction=d))(1.0)
    assert float(actual) == pytest.approx(np.var(X, ddof=1))


def test_fast_paths_distinguish_equal_arguments() -> None:
    """Cache keys must distinguish equal arguments, such as ``True`` and 1, and axes."""
    for _ in range(2):
        assert pnp.mean(X, 0).shape == (3,)
        assert pnp.mean(X, 1).shape == (2,)
        assert pnp.mean(X, 1, keepdims=True).shape == (2, 1)
        assert float(pnp.var(X, ddof=1)) == pytest.approx(np.var(X, ddof=1))
        assert float(pnp.var(X)) == pytest.approx(np.var(X))
        assert pnp.all(X, 0).shape == (3,)


@pytest.mark.parametrize(
    "name", "mean std var sum max prod median nansum nanmean ptp count_nonzero flip".split()
)
def test_axes_in_any_iterable(name) -> None:
    expected = getattr(pnp, name)(X, axis=(0, 1))
    for axes in (np.array([0, 1]), {0: 1, 1: 2}.keys(), (i for i in range(2)), pnp.array([0, 1])):
        np.testing.assert_array_equal(getattr(pnp, name)(X, axis=axes), expected)
    np.testing.assert_array_equal(
        getattr(pnp, name)(X, axis=np.array(1)), getattr(pnp, name)(X, axis=1)
    )


def test_shapes_for_axes_in_any_iterable() -> None:
    y = pnp.asarray(X)
    assert pnp.expand_dims(X, np.array([0, 1])).shape == (1, 1, 2, 3)
    np.testing.assert_array_equal(pnp.roll(X, 1, np.array([0, 1])), np.roll(X, 1, (0, 1)))
    for axes in (np.array([1, 0]), {1: 0, 0: 0}.keys(), (i for i in (1, 0)), pnp.array([1, 0])):
        assert y.transpose(axes).shape == (3, 2)
    assert pnp.transpose(X, np.array([1, 0])).shape == (3, 2)


def test_segments_have_a_number_for_each_slice() -> None:
    for ids in (np.array(0), np.array([[0, 1, 0], [1, 1, 0]])):
        with pytest.raises(ValueError, match="one number for each slice"):
            segment_sum(X, ids, 2)


def test_segment_data_broadcast_to_the_numbers() -> None:
    ids = np.array([0, 2, 2, 0])
    one, row = np.float32(3), np.array([[1, 2]], "f")
    np.testing.assert_array_equal(segment_sum(one, ids, 3), [6, 0, 6])
    np.testing.assert_array_equal(segment_sum(row, ids, 3), [[2, 4], [0, 0], [2, 4]])
    np.testing.assert_array_equal(segment_sum(row[0], ids.reshape(2, 2), 3), [3, 0, 3])
    gradient = grad(lambda x: segment_sum(x, ids, 3) @ np.array([1, 2, 5], "f"))(one)
    assert gradient == 12


def test_eager_quantiles_at_known_levels_compute_positions_once(monkeypatch) -> None:
    x, levels = pnp.asarray(X), pnp.asarray(np.array([0.25, 0.75], "f"))
    calls = []
    places = _quantiles.known_places
    monkeypatch.setattr(_quantiles, "known_places", lambda *a: calls.append(a) or places(*a))
    for q in (0.3125, 1, levels, np.array([0.125, 0.5])):
        first = pnp.quantile(x, q, axis=-1)
        before = len(calls)
        again = pnp.quantile(x, q, axis=-1)
        assert len(calls) == before
        np.testing.assert_array_equal(first, again)
        np.testing.assert_allclose(first, np.quantile(X, np.asarray(q), axis=-1), 1e-6)
    np.testing.assert_allclose(pnp.percentile(x, 30), np.percentile(X, 30), 1e-6)
