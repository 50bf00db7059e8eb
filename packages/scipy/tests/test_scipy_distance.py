"""Distances between rows against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial.distance as theirs

from primax_core import enable_x64, grad
from primax_core.testing import check_grads
from primax_scipy.spatial import distance
from test_support import check_call

RNG = np.random.default_rng(0)
A, B = abs(RNG.normal(size=(6, 4))) + 0.1, abs(RNG.normal(size=(3, 4))) + 0.1
W = RNG.uniform(size=4)
METRICS = [
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "euclidean",
    "hamming", "jensenshannon", "mahalanobis", "minkowski", "seuclidean", "sqeuclidean",
]  # fmt: skip
SETS = ["dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"]
UNWEIGHTED = ("chebyshev", "jensenshannon", "mahalanobis", "seuclidean")


@pytest.mark.parametrize("metric", METRICS)
def test_metrics(metric: str) -> None:
    options: dict[str, Any] = {"p": 3.0} if metric == "minkowski" else {}
    with enable_x64(True):
        actual = distance.cdist(A, B, metric, **options)
        np.testing.assert_allclose(actual, theirs.cdist(A, B, metric, **options), 1e-9, 1e-12)
        pairs = distance.pdist(A, metric, **options)
        np.testing.assert_allclose(pairs, theirs.pdist(A, metric, **options), 1e-9, 1e-12)
        if metric not in UNWEIGHTED:
            weighted = distance.cdist(A, B, metric, w=W, **options)
            expected = theirs.cdist(A, B, metric, w=W, **options)
            np.testing.assert_allclose(weighted, expected, 1e-9, 1e-12)
    single = distance.cdist(A.astype(np.float32), B.astype(np.float32), metric, **options)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, actual, 1e-3, 1e-3)


@pytest.mark.parametrize("metric", SETS)
def test_metrics_of_sets(metric: str) -> None:
    a, b = RNG.uniform(size=(6, 5)) < 0.5, RNG.uniform(size=(3, 5)) < 0.5
    a[:, 0], b[:, 1] = True, True
    actual = distance.cdist(a.astype(np.float32), b.astype(np.float32), metric)
    np.testing.assert_allclose(actual, theirs.cdist(a, b, metric), 1e-6)


def test_functions_as_metrics_and_squares() -> None:
    actual = distance.cdist(A, B, lambda u, v: abs(u - v).sum())
    np.testing.assert_allclose(actual, theirs.cdist(A, B, "cityblock"), 1e-5)
    pairs = distance.pdist(A, lambda u, v: abs(u - v).sum())
    np.testing.assert_allclose(pairs, theirs.pdist(A, "cityblock"), 1e-5)
    square = distance.squareform(pairs)
    np.testing.assert_allclose(square, theirs.squareform(theirs.pdist(A, "cityblock")), 1e-5)
    np.testing.assert_array_equal(distance.squareform(square), pairs)


def test_derivatives_and_settings() -> None:
    assert np.isfinite(grad(lambda a: distance.cdist(a, a).sum())(A)).all()
    with enable_x64(True):
        for metric in ("euclidean", "cosine", "minkowski", "canberra"):
            check_grads(lambda a, b, m=metric: distance.cdist(a, b, m, p=3.0), (A, B), 1)
    check_call(lambda a, b: distance.cdist(a, b), np.float32(A), np.float32(B))


def test_errors() -> None:
    with pytest.raises(ValueError, match="cdist: unknown metric 'far': pass a function or one of"):
        distance.cdist(A, B, "far")
    with pytest.raises(ValueError, match=r"an array of shape \(4,\) is not a matrix"):
        distance.cdist(A[0], B)
    with pytest.raises(ValueError, match="must have the same number of columns"):
        distance.cdist(A[:, :2], B)
    with pytest.raises(ValueError, match="metric 'euclidean' does not have the argument V"):
        distance.cdist(A, B, V=W)
    with pytest.raises(ValueError, match=r"w has shape \(2,\); rows need \(4,\)"):
        distance.pdist(A, w=W[:2])
    with pytest.raises(ValueError, match="4 is not the number of pairs of a set"):
        distance.squareform(np.zeros(4))
    with pytest.raises(ValueError, match=r"p=-1.0 is not positive"):
        distance.cdist(A, B, "minkowski", p=-1.0)
