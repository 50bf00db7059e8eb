"""``associative_scan`` against loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import primax_core as px
from primax_core.lax import arithmetic as ar, contracting
from primax_core.lax.associative import associative_scan
from test_support import check_derivatives

rng = np.random.default_rng(0)


def f(*shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 16])
def test_products_of_matrices(n):
    xs = f(n, 2, 2)
    actual = associative_scan(contracting.batch_matmul, xs)
    expected = list(itertools.accumulate(xs, np.matmul))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    back = associative_scan(contracting.batch_matmul, xs, reverse=True)
    expected = list(itertools.accumulate(xs[::-1], np.matmul))[::-1]
    np.testing.assert_allclose(back, expected, rtol=1e-4, atol=1e-5)


def affine(p, q):
    return {"a": ar.mul(p["a"], q["a"]), "b": ar.add(ar.mul(p["b"], q["a"]), q["b"])}


def test_trees_derivatives_and_batches():
    a, b = f(5), f(5)

    def run(a, b):
        return associative_scan(affine, {"a": a, "b": b}, axis=-1)["b"]

    state, expected = 0.0, []
    for x, y in zip(a, b):
        expected.append(state := state * x + y)
    np.testing.assert_allclose(run(a, b), expected, rtol=1e-5)
    check_derivatives(run, a, b)
    actual = np.asarray(px.vmap(run, (None, 1), 1)(a, np.stack([b, 2 * b], 1)))
    np.testing.assert_allclose(actual[:, 1], 2 * np.array(expected), rtol=1e-5)


def test_empty_and_errors():
    assert associative_scan(ar.add, f(0, 3)).shape == (0, 3)
    with pytest.raises(TypeError, match="should be callable"):
        associative_scan(None, f(2))
    with pytest.raises(ValueError, match="same first dimension"):
        associative_scan(affine, {"a": f(2), "b": f(3)})
    with pytest.raises(ValueError, match="out of bounds"):
        associative_scan(ar.add, f(2), axis=1)
    with pytest.raises(ValueError, match="structure"):
        associative_scan(lambda p, q: p["a"], {"a": f(2), "b": f(2)})
