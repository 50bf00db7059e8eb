"""Taylor mode against the reference, for the functions that it supports."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
reference = pytest.importorskip("jax.experimental.jet")

from primax_core import lax  # noqa: E402
from primax_interpreters.jet import jet  # noqa: E402

F32 = np.float32
X = np.array([[0.3, 0.7, 0.4], [0.6, 0.2, 0.5]], F32)
V = np.array([[1.0, -0.5, 0.2], [0.3, 0.8, -1.0]], F32)
W = np.array([[0.1, 0.6, -0.2], [0.5, -0.3, 0.4]], F32)
Z = np.zeros_like(X)

UNARY = (
    "exp log log1p expm1 sin cos tanh sinh cosh asinh atanh logistic sqrt rsqrt erf erfc neg abs "
    "square floor sign exp2"
).split()


def both(ours, theirs, primals, series, **options):
    y, series_out = jet(ours, primals, series, **options)
    expected_value, expected = reference.jet(theirs, primals, series, **options)
    np.testing.assert_allclose(y, expected_value, rtol=1e-6)
    assert len(series_out) == len(expected)
    for f, e in zip(series_out, expected):
        e = np.asarray(e)
        assert f.dtype == e.dtype
        np.testing.assert_allclose(f, e, rtol=2e-4, atol=2e-4 * max(1, np.abs(e).max()))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("factorial_scaled", [True, False])
def test_functions_of_one_operand(name, factorial_scaled):
    ours, theirs = getattr(lax, name), getattr(jax.lax, name)
    both(ours, theirs, (X,), ([V, W, Z, Z],), factorial_scaled=factorial_scaled)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "max", "min", "atan2"])
def test_functions_of_two_operands(name):
    ours, theirs = getattr(lax, name), getattr(jax.lax, name)
    both(ours, theirs, (X, X[::-1] + 1), ([V, W, Z], [W, V, Z]))


def program(L):
    def f(x, y):
        z = L.dot_general(x, y, (((1,), (1,)), ((), ())))
        z = L.tanh(z) + L.integer_pow(z, 3) + L.integer_pow(z + 3, -2)
        z = L.concatenate([z, L.rev(z, (0,))], 1)
        z = L.reshape(L.transpose(z, (1, 0)), (2, 4))
        z = L.select(z > 0.1, L.sin(z), L.exp(z))
        w = L.reduce_max(z, (0,)) * L.index_in_dim(L.cumsum(z, 1), 1, 0, keepdims=False)
        return L.reduce_sum(w, (0,))

    return f


def test_network():
    both(program(lax), program(jax.lax), (X, X + 0.5), ([V, W, Z], [W, Z, V]))


def test_convolution():
    x, k = X[None, None], np.ones((1, 1, 1, 2), F32)

    def f(L):
        return lambda x, k: L.conv_general_dilated(x, k, (1, 1), "VALID")

    both(f(lax), f(jax.lax), (x, k), ([V[None, None], Z[None, None]], [2 * k, k]))


def test_pytree_results():
    def f(L):
        return lambda x: {"a": L.sin(x), "b": (x, L.exp(x))}

    _, ours = jet(f(lax), (0.5,), ([1.0, 0.0],))
    _, theirs = reference.jet(f(jax.lax), (0.5,), ([1.0, 0.0],))
    assert jax.tree.structure(jax.tree.map(float, ours)) == jax.tree.structure(theirs)


@pytest.mark.parametrize(
    ("primals", "series"),
    [((0.5, 1.0), ([1.0, 0.0], [1.0])), ((0.5,), (1.0,)), (0.5, [1.0]), ((3,), ([1.0],))],
)
def test_error_classes(primals, series):
    kinds = []
    for J, mul in ((jet, lax.mul), (reference.jet, jax.lax.mul)):
        with pytest.raises((TypeError, ValueError)) as caught:
            J(lambda *xs, mul=mul: mul(xs[0], 2), primals, series)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]
