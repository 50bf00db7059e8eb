"""The wheel as a whole: names, modules, properties for random shapes."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import primax_nn as nn
from primax_core import jit, make_jaxpr, vmap
from primax_nn import initializers
from primax_nn.example_libraries import optimizers, stax

pytestmark = pytest.mark.optimised

MODULES = [nn, initializers, optimizers, stax]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_public_names_are_documented(module) -> None:
    assert module.__doc__
    for name in dir(module):
        value = getattr(module, name)
        home = getattr(value, "__module__", "") or ""
        if name.startswith("_") or not home.startswith("primax_nn") or not callable(value):
            continue
        assert inspect.getdoc(value), f"{module.__name__}.{name} has no docstring"


def test_modules_are_imported_on_first_use():
    code = (
        "import sys, primax_nn as nn; late = ['_attention', '_scaled', 'initializers'];"
        "assert not any('primax_nn.' + n in sys.modules for n in late);"
        "nn.dot_product_attention; nn.initializers; assert 'softmax' in dir(nn)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        nn.nothing


def test_traces_contain_only_operations():
    text = str(make_jaxpr(lambda x: nn.log_softmax(nn.elu(x)))(np.ones((2, 3), np.float32)))
    assert "jit[" not in text and "exp" in text


def test_one_hot_along_a_mapped_axis():
    mapped = vmap(lambda x: nn.one_hot(x, 3, axis="i"), axis_name="i", in_axes=None, axis_size=3)
    assert np.asarray(mapped(np.int32([0, 2]))).T.tolist() == [[1, 0, 0], [0, 0, 1]]


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(max_examples=15)
@given(SIZES, st.integers(0, 2), st.integers(0, 99))
def test_softmax_is_a_distribution(sizes, axis, seed):
    axis %= len(sizes)
    x = np.random.default_rng(seed).normal(0, 30, sizes).astype(np.float32)
    y = np.asarray(nn.softmax(x, axis))
    np.testing.assert_allclose(y.sum(axis), 1, 1e-5)
    np.testing.assert_allclose(np.exp(nn.log_softmax(x, axis)), y, 1e-4, 1e-7)
    np.testing.assert_allclose(nn.softmax(x + 5, axis), y, 1e-3, 1e-6)
    whole = nn.logsumexp(x, axis)
    np.testing.assert_allclose(x - np.expand_dims(whole, axis), nn.log_softmax(x, axis), 1e-4, 1e-4)
    z = np.asarray(nn.standardize(x, axis, epsilon=1e-3, algorithm="stable"))
    np.testing.assert_allclose(z.mean(axis), 0, atol=1e-4)


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 3), st.integers(1, 2), st.booleans())
def test_attention_averages(batch, length, groups, times, causal):
    rng = np.random.default_rng(length)
    q = rng.normal(size=(batch, length, groups * times, 4)).astype(np.float32)
    k = rng.normal(size=(batch, length, groups, 4)).astype(np.float32)
    out = np.asarray(nn.dot_product_attention(q, k, k, is_causal=causal))
    spread = np.repeat(k, times, 2)
    assert (out <= spread.max(1, keepdims=True) + 1e-5).all()
    assert (out >= spread.min(1, keepdims=True) - 1e-5).all()
    if causal:
        np.testing.assert_allclose(out[:, 0], spread[:, 0], 1e-5, 1e-6)
    mask = np.tril(np.ones((length, length), bool))
    same = nn.dot_product_attention(q, k, k, mask=mask if causal else None)
    np.testing.assert_allclose(same, out, 1e-5, 1e-6)
    scale = np.float32(0.5)  # concrete or traced
    f = jit(lambda s: nn.dot_product_attention(q, k, k, scale=s))
    np.testing.assert_allclose(f(scale), nn.dot_product_attention(q, k, k, scale=0.5), 1e-5, 1e-6)


@settings(max_examples=20)
@given(st.lists(st.integers(-3, 6), max_size=5), st.integers(0, 5), st.integers(-2, 1))
def test_one_hot_rows(indices, n, axis):
    x = np.array(indices, np.int32)
    out = np.moveaxis(np.asarray(nn.one_hot(x, n, axis=axis)), axis, -1)
    assert out.shape == (len(indices), n)
    for i, row in zip(indices, out):
        assert row.tolist() == [float(i == j) for j in range(n)]
