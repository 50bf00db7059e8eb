"""Distributions, statistics, rotations and quantization against the reference."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import jax
import jax.scipy.cluster.vq
import jax.scipy.spatial.transform
import jax.scipy.stats
import numpy as np
import pytest

import primax_scipy.cluster.vq as our_vq
from primax_core.extend import typeof
from primax_scipy import stats
from primax_scipy.spatial.transform import Rotation, Slerp

theirs = jax.scipy.stats
PARAMETERS: dict[str, tuple[float, ...]] = {
    "betabinom": (12, 1.5, 0.7), "binom": (12, 0.3), "chi2": (3.0,), "gennorm": (1.5,),
    "geom": (0.3,), "gumbel_l": (), "gumbel_r": (), "nbinom": (3, 0.4), "pareto": (1.5,),
    "poisson": (2.5,), "truncnorm": (-1.0, 2.0), "vonmises": (2.0,), "wrapcauchy": (0.3,),
}  # fmt: skip
NAMES = [
    (d, f)
    for d in PARAMETERS
    for f in ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf")
    if hasattr(getattr(theirs, d), f)
]


@pytest.mark.parametrize(("name", "function"), NAMES)
def test_distributions(name: str, function: str) -> None:
    ours, other = (getattr(getattr(m, name), function) for m in (stats, theirs))
    # Between integers the reference has other values than 0; SciPy has 0.
    x = np.float32([0.2, 0.5, 0.9] if function == "ppf" else [1, 2, 3, 7])
    args = PARAMETERS[name]
    actual, expected = ours(x, *args), other(x, *args)
    np.testing.assert_allclose(actual, expected, 2e-4, 1e-5)
    assert actual.dtype == expected.dtype
    missing = [*inspect.signature(other).parameters.keys() - inspect.signature(ours).parameters]
    assert not missing
    at = 0.25 if function == "ppf" else 2.0
    scalar, other_scalar = ours(at, *args), other(at, *args)
    assert typeof(scalar).dtype == other_scalar.dtype


def test_entropy_of_poisson() -> None:
    mu = np.float32([0.5, 3, 40])
    np.testing.assert_allclose(stats.poisson.entropy(mu), theirs.poisson.entropy(mu), 1e-4)


def test_vectors() -> None:
    p, alpha = np.float32([0.2, 0.3, 0.5]), np.float32([1, 2, 3])
    for x in (p, p[:2]):
        np.testing.assert_allclose(
            stats.dirichlet.logpdf(x, alpha), theirs.dirichlet.logpdf(x, alpha), 1e-5
        )
    counts = np.int32([[1, 2, 3], [1, 1, 1]])
    expected = theirs.multinomial.logpmf(counts, 6, p)
    np.testing.assert_allclose(stats.multinomial.logpmf(counts, 6, p), expected, 1e-5)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_statistics(axis: Any) -> None:
    data = np.random.default_rng(0).integers(0, 4, size=(4, 6)).astype(np.float32)
    for keepdims in (False, True):
        pair = zip(
            stats.mode(data, axis, keepdims=keepdims),
            theirs.mode(data, axis, keepdims=keepdims),
            strict=True,
        )
        for actual, expected in pair:
            np.testing.assert_array_equal(actual, expected)
            assert actual.dtype == expected.dtype
        actual = stats.sem(data, axis, keepdims=keepdims)
        np.testing.assert_allclose(actual, theirs.sem(data, axis, keepdims=keepdims), 1e-5)
    for method in ("average", "min", "max", "dense", "ordinal"):
        actual = stats.rankdata(data, method, axis=axis)
        expected = theirs.rankdata(data, method, axis=axis)
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype and actual.shape == expected.shape


def test_density_estimates() -> None:
    rng = np.random.default_rng(0)
    x, at = np.float32(rng.normal(size=(2, 20))), np.float32(rng.normal(size=(2, 3)))
    ours, other = stats.gaussian_kde(x), theirs.gaussian_kde(x)
    np.testing.assert_allclose(ours(at), other(at), 1e-3)
    names = {n for n in dir(other) if not n.startswith("_")}
    assert names <= set(dir(ours))


def test_quantization() -> None:
    rng = np.random.default_rng(0)
    a, b = np.float32(rng.normal(size=(8, 3))), np.float32(rng.normal(size=(4, 3)))
    for actual, expected in zip(our_vq.vq(a, b), jax.scipy.cluster.vq.vq(a, b), strict=True):
        np.testing.assert_allclose(actual, expected, 1e-5)
        assert actual.dtype == expected.dtype


def test_rotations() -> None:
    other = jax.scipy.spatial.transform
    q = np.float32(np.random.default_rng(0).normal(size=(4, 4)))
    r, s = Rotation.from_quat(q), other.Rotation.from_quat(q)
    for method in ("as_matrix", "as_rotvec", "as_mrp", "magnitude"):
        np.testing.assert_allclose(getattr(r, method)(), getattr(s, method)(), 2e-3, 1e-4)
    np.testing.assert_allclose(r.as_euler("xyz"), s.as_euler("xyz"), 1e-3, 1e-4)
    np.testing.assert_allclose((r * r[0]).as_matrix(), (s * s[0]).as_matrix(), 1e-3, 1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {n for n in dir(s) if not n.startswith("_")} - set(dir(tuple))
    assert names <= set(dir(r))
    times, at = np.float32([0, 1, 2, 4]), np.float32([0.5, 3.0])
    expected = other.Slerp.init(times, s)(at).as_matrix()
    np.testing.assert_allclose(Slerp.init(times, r)(at).as_matrix(), expected, 1e-3, 1e-4)
