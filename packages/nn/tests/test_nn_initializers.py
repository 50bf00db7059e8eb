"""Initializers: moments, bounds, orthogonality, axes, and dependence on the key."""

from __future__ import annotations

import math

import numpy as np
import pytest

from primax_core import jit
from primax_nn import initializers as init
from primax_numpy import random

KEY = random.key(3)
BIG = (400, 300)
FAMILIES = {
    "glorot": lambda i, o: 2 / (i + o),
    "xavier": lambda i, o: 2 / (i + o),
    "lecun": lambda i, o: 1 / i,
    "he": lambda i, o: 2 / i,
    "kaiming": lambda i, o: 2 / i,
}


@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("family", FAMILIES)
def test_families_have_their_variance(family: str, kind: str) -> None:
    x = np.asarray(getattr(init, f"{family}_{kind}")()(KEY, BIG))
    variance = FAMILIES[family](*BIG)
    assert abs(x.mean()) < 0.02 * math.sqrt(variance)
    np.testing.assert_allclose(x.var(), variance, 0.02)
    bound = math.sqrt(3 * variance) if kind == "uniform" else 2 * math.sqrt(variance) / 0.8796
    assert np.abs(x).max() <= bound * (1 + 1e-6)


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg", "fan_geo_avg"])
@pytest.mark.parametrize("distribution", ["normal", "truncated_normal", "uniform"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_modes(mode: str, distribution: str, dtype: str) -> None:
    x = np.asarray(init.variance_scaling(3.0, mode, distribution, dtype=dtype)(KEY, BIG))
    n = {"fan_in": 400, "fan_out": 300, "fan_avg": 350, "fan_geo_avg": math.sqrt(120000)}[mode]
    assert x.dtype == dtype
    np.testing.assert_allclose((np.abs(x) ** 2).mean(), 3 / n, 0.02)


@pytest.mark.parametrize(
    ("axes", "n"),
    [
        ({"in_axis": 0, "out_axis": 1}, 2 * 35),
        ({"in_axis": (0, 1), "out_axis": 2}, 6 * 7),
        ({"in_axis": -2, "out_axis": -1, "batch_axis": 0}, 5 * 3),
        ({"in_axis": 1, "out_axis": (2, 3), "batch_axis": (0,)}, 3),
        ({"in_axis": (), "out_axis": -1}, 30),
    ],
)
def test_axes(axes, n) -> None:
    shape = (2, 3, 5, 7)
    x = init.variance_scaling(1.0, "fan_in", "uniform", **axes)(KEY, shape)
    like = init.variance_scaling(1.0, "fan_in", "uniform", in_axis=())(KEY, (1, 210))
    ratio = np.asarray(x).ravel() / np.asarray(like).ravel()
    np.testing.assert_allclose(ratio, 1 / math.sqrt(n), 1e-5)


def test_constant_initializers():
    assert np.asarray(init.zeros(KEY, 2)).tolist() == [0, 0]
    assert init.ones(KEY, (2, 3), np.int8).dtype == np.int8
    assert np.asarray(init.constant(np.array([1.0, 2.0]))(KEY, (2, 2))).tolist() == [[1, 2], [1, 2]]
    x = np.asarray(init.uniform(0.5)(KEY, (1000,)))
    assert x.min() >= 0 and 0.45 < x.max() < 0.5
    np.testing.assert_allclose(np.asarray(init.normal(0.5)(KEY, BIG)).std(), 0.5, 0.01)
    x = np.asarray(init.truncated_normal(2.0, lower=-1, upper=0.5)(KEY, (1000,)))
    assert x.min() >= -2 and x.max() <= 1
    assert init.he_normal()(KEY, (0, 3)).shape == (0, 3)
    assert init.normal(dtype=np.float16)(KEY, (2,)).dtype == np.float16
    assert init.normal(dtype=np.float16)(KEY, (2,), np.float32).dtype == np.float32


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (2, 3, 4), (4, 2, 2), (0, 3)])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_orthogonal(shape, axis, dtype) -> None:
    x = np.asarray(init.orthogonal(2.0, axis, dtype)(KEY, shape))
    assert x.shape == shape and x.dtype == dtype
    m = np.moveaxis(x, axis, -1).reshape(math.prod(shape) // shape[axis] if 0 not in shape else 0,
                                         shape[axis])  # fmt: skip
    m = m if m.shape[0] >= m.shape[1] else m.conj().T
    np.testing.assert_allclose(m.conj().T @ m, 4 * np.eye(m.shape[1]), atol=1e-5)


@pytest.mark.parametrize("window", [(3,), (2, 4), (3, 3, 3)])
def test_delta_orthogonal(window) -> None:
    x = np.array(init.delta_orthogonal()(KEY, (*window, 3, 5)))
    middle = tuple((n - 1) // 2 for n in window)
    np.testing.assert_allclose(x[middle] @ x[middle].T, np.eye(3), atol=1e-5)
    x[middle] = 0
    assert not x.any()


@pytest.mark.parametrize(
    "make",
    [init.normal(), init.uniform(), init.truncated_normal(), init.he_normal(), init.orthogonal(),
     init.zeros, init.constant(2.0)],
)  # fmt: skip
def test_compiled_results_are_the_same(make) -> None:
    assert isinstance(make, init.Initializer)
    eager = np.asarray(make(KEY, (3, 4)))
    assert (np.asarray(jit(lambda k: make(k, (3, 4)))(KEY)) == eager).all()
    raw = np.asarray(make(random.PRNGKey(3), (3, 4)))
    assert (raw == eager).all()


def test_concrete_and_traced_scales_agree():
    f = jit(lambda s: init.variance_scaling(s, "fan_in", "normal")(KEY, (3, 4)))
    expected = init.variance_scaling(2.0, "fan_in", "normal")(KEY, (3, 4))
    np.testing.assert_allclose(f(np.float32(2)), expected, 1e-6)
    np.testing.assert_allclose(
        jit(lambda s: init.normal(s)(KEY, (3, 4)))(np.float32(0.3)),
        init.normal(0.3)(KEY, (3, 4)), 1e-6,
    )  # fmt: skip
