"""Errors of the core without the NumPy layer: methods, indexing and `@` of arrays name it."""

from __future__ import annotations

import re
import sys  # noqa: F401 (the condition below)
from importlib.util import find_spec

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._base import identity

LAYER = identity.layer("numpy")
HOW = f"import {LAYER}" if find_spec(LAYER) else re.escape(identity.how_to_get("numpy"))
alone = pytest.mark.skipif(
    "LAYER in sys.modules", reason="the NumPy layer was imported in this process"
)
A = lax.full((2, 2), 1.0)
N = np.ones((2, 2), np.float32)


@alone
@pytest.mark.parametrize("name", ["sum", "at", "T", "astype", "real", "reshape"])
def test_a_missing_method_names_the_layer(name):
    for x in (A, lax.full((), 1)):
        with pytest.raises(
            AttributeError, match=f"no attribute {name!r}: .* NumPy layer; {HOW}"
        ) as e:
            getattr(x, name)
        assert e.value.name == name and e.value.obj is x
    assert not hasattr(A, name)


@alone
def test_a_traced_array_says_the_same():
    with pytest.raises(AttributeError, match=f"'JitTracer' object has no attribute 'sum': .*{HOW}"):
        px.jit(lambda x: x.sum())(A)
    with pytest.raises(TypeError, match=f"'JitTracer' does not support indexing .*{HOW}"):
        px.jit(lambda x: x[0])(A)


@alone
@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda: A[0], "indexing"),
        (lambda: A[0:1], "indexing"),
        (lambda: A @ A, "`@`"),
        (lambda: A @ N, "`@`"),
        (lambda: N @ A, "`@`"),
    ],
)
def test_operators_of_the_layer_are_not_numpys(use, what):
    with pytest.raises(TypeError, match=f"does not support {what} without the NumPy layer; {HOW}"):
        use()


def test_other_names_are_ordinary_errors():
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        A.nonsense


def test_what_the_core_has_works():
    assert len(A) == 2 and [float(lax.reduce_sum(row, (0,))) for row in A] == [2, 2]
    assert 1.0 in lax.full((2,), 1.0)
    np.testing.assert_array_equal(np.stack([A, A]), np.ones((2, 2, 2)))
    np.testing.assert_array_equal(A + N, 2 * N)


def test_extend_and_testing_are_attributes():
    assert px.extend.Primitive.__name__ == "Primitive"
    assert "jvp" in px.testing.CHECKS
