"""Vector quantization and k-means against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.cluster.vq as theirs

from primax_core import enable_x64, jit
from primax_core.testing import check_grads
from primax_numpy import random
from primax_scipy.cluster import vq

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(12, 3)), RNG.normal(size=(4, 3))
CLUSTERS = np.concatenate([RNG.normal(size=(30, 2)), RNG.normal(size=(30, 2)) + 9])


def test_against_scipy() -> None:
    with enable_x64(True):
        for a, b in ((A, B), (A[:, 0], B[:, 0])):
            code, distance = vq.vq(a, b)
            expected = theirs.vq(a, b)
            np.testing.assert_array_equal(code, expected[0])
            np.testing.assert_allclose(distance, expected[1], 1e-12)
            assert code.dtype == np.int32
        np.testing.assert_allclose(vq.whiten(A), theirs.whiten(A), 1e-12)
        centres, distortion = vq.kmeans(A, A[:3])
        expected = theirs.kmeans(A, A[:3])
        np.testing.assert_allclose(centres, expected[0], 1e-10)
        np.testing.assert_allclose(distortion, expected[1], 1e-10)
        centres, label = vq.kmeans2(A, A[:3])
        expected = theirs.kmeans2(A, A[:3], minit="matrix")
        np.testing.assert_allclose(centres, expected[0], 1e-10)
        assert label.shape == (12,)
        check_grads(lambda a, b: vq.vq(a, b)[1], (A, B), 1)


@pytest.mark.parametrize("minit", ["points", "++", "random"])
def test_drawn_centres(minit: str) -> None:
    centres, label = vq.kmeans2(CLUSTERS, 2, minit=minit, key=random.key(1))
    means = [CLUSTERS[:30].mean(0), CLUSTERS[30:].mean(0)]
    np.testing.assert_allclose(np.sort(centres, 0), means, 1e-3, 1e-3)
    assert len(set(np.asarray(label[:30]).tolist())) == 1
    centres, distortion = jit(lambda k: vq.kmeans(CLUSTERS, 2, iter=3, key=k))(random.key(1))
    np.testing.assert_allclose(np.sort(centres, 0), means, 1e-3, 1e-3)
    np.testing.assert_allclose(distortion, theirs.kmeans(CLUSTERS, np.array(means))[1], 1e-4)


def test_errors() -> None:
    with pytest.raises(ValueError, match="must have the same rank"):
        vq.vq(A, B[0])
    with pytest.raises(ValueError, match="must have rows of one length"):
        vq.vq(A, B[:, :2])
    with pytest.raises(ValueError, match="arrays of 3 dimensions are not supported"):
        vq.vq(A[None], B[None])
    with pytest.raises(ValueError, match=r"kmeans: first centres are drawn: pass a random key"):
        vq.kmeans(A, 2)
    with pytest.raises(ValueError, match=r"kmeans: k=13 clusters of 12 observations"):
        vq.kmeans(A, 13, key=random.key(0))
    with pytest.raises(ValueError, match="kmeans2: unknown minit 'best'"):
        vq.kmeans2(A, 2, minit="best", key=random.key(0))
    with pytest.raises(NotImplementedError, match="missing='raise' is not supported"):
        vq.kmeans2(A, 2, missing="raise", key=random.key(0))
