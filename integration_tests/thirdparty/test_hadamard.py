"""A third-party primitive with all rules, using only the extension API."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import grad, jit, lax, vmap
from primax_core.testing import check_grads
from primax_core.testing.pytest import conformance

example = pytest.importorskip("example_hadamard", reason="the example packages are not installed")

test_conformance = conformance(example.hadamard_p)


def matrix(n: int) -> np.ndarray:
    sylvester = np.ones((1, 1))
    while len(sylvester) < n:
        sylvester = np.block([[sylvester, sylvester], [sylvester, -sylvester]])
    return sylvester


@pytest.mark.parametrize("n", [1, 2, 8, 32])
def test_equals_the_sylvester_matrix(n):
    x = np.random.default_rng(0).standard_normal((3, n)).astype(np.float32)
    np.testing.assert_allclose(example.hadamard(x), x @ matrix(n), atol=1e-4)
    np.testing.assert_allclose(example.inverse(example.hadamard(x)), x, atol=1e-5)


def test_composition_with_transformations():
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)

    def energy(v):
        return lax.reduce_sum(lax.square(example.hadamard(v)), (0,))

    actual = jit(vmap(grad(energy)))(x)
    np.testing.assert_allclose(actual, 2 * 4 * x, rtol=1e-5)
    check_grads(energy, (x[0],), order=2)
    _, ys = lax.scan(lambda c, v: (c, example.hadamard(v)), np.float32(0), x)
    np.testing.assert_allclose(ys, x @ matrix(4), atol=1e-5)


def test_invalid_input_raises():
    with pytest.raises(ValueError, match="power of two, got 3"):
        example.hadamard(np.ones(3, np.float32))
    with pytest.raises(TypeError, match="floats or complex numbers, got int32"):
        example.hadamard(np.ones(4, np.int32))
