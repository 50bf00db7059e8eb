"""``jacfwd``, ``jacrev`` and ``hessian``."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from test_support import assert_close, numerical_gradient

F32 = np.float32
X = np.array([0.3, -1.2, 2.0], F32)
M = np.arange(6, dtype=F32).reshape(2, 3)
BOTH = pytest.mark.parametrize("jac", [px.jacfwd, px.jacrev], ids=["forward", "reverse"])


@BOTH
def test_of_a_linear_map(jac):
    assert_close(jac(lambda x: lax.dot(M, x))(X), M, rtol=1e-6)


@BOTH
def test_shapes(jac):
    x = np.ones((2, 3), F32)
    j = jac(lambda x: lax.reduce_sum(x * x, (1,)))(x)
    assert j.shape == (2, 2, 3)
    assert jac(lax.sin)(1.0).shape == ()


@BOTH
def test_trees_and_argnums(jac):
    def f(p, q):
        return {"u": p["a"] * q, "v": (q * q,)}

    j = jac(f, argnums=(0, 1))({"a": X}, 2.0)
    assert_close(j["u"][0]["a"], 2 * np.eye(3), rtol=1e-6)
    assert_close(j["u"][1], X, rtol=1e-6)
    assert_close(j["v"][0][0]["a"], np.zeros(3), rtol=1e-6)
    assert_close(j["v"][0][1], 4.0, rtol=1e-6)


@BOTH
def test_aux(jac):
    j, aux = jac(lambda x: (x * x, {"x": x}), has_aux=True)(X)
    assert_close(j, np.diag(2 * X), rtol=1e-6)
    np.testing.assert_array_equal(aux["x"], X)


@BOTH
def test_holomorphic(jac):
    z = np.array([1 + 1j, 2j], np.complex64)
    assert_close(jac(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z), rtol=1e-5)


@BOTH
def test_under_jit_and_vmap(jac):
    f = jac(lambda x: lax.sin(x) * x)
    assert_close(px.jit(f)(X), f(X), rtol=1e-6)
    batch = np.stack([X, 2 * X])
    assert_close(px.vmap(f)(batch), np.stack([f(X), f(2 * X)]), rtol=1e-6)


def test_integer_results_have_zero_derivatives():
    j = px.jacfwd(lambda x: lax.convert_element_type(x, np.int32))(X)
    assert j.dtype == np.int32 and j.shape == (3, 3) and not np.any(j)


def test_integer_arguments_of_reverse_mode():
    j, k = px.jacrev(lambda n, x: x * 2.0, argnums=(0, 1), allow_int=True)(3, X)
    assert j.shape == (3,) and not np.any(j)
    assert_close(k, 2 * np.eye(3), rtol=1e-6)


def test_forward_mode_of_real_to_complex():
    j = px.jacfwd(lambda x: x * (1 + 2j))(X)
    assert_close(j, np.eye(3) * (1 + 2j), rtol=1e-6)


def test_hessian_against_differences():
    def f(x):
        return lax.reduce_sum(lax.sin(x) * x * x, (0,))

    assert_close(px.hessian(f)(X), numerical_gradient(px.grad(f), X))


def test_hessian_of_trees_and_aux():
    h, aux = px.hessian(lambda p: (p["a"] * p["b"] * p["b"], p["a"]), has_aux=True)(
        {"a": 2.0, "b": 3.0}
    )
    assert float(h["a"]["a"]) == 0.0 and float(h["a"]["b"]) == 6.0 and float(h["b"]["b"]) == 4.0
    assert float(aux) == 2.0


def test_hessian_through_a_scan():
    def f(x):
        return lax.scan(lambda c, _: (c * x, None), F32(1), None, length=4)[0]

    assert float(px.hessian(f)(F32(2))) == pytest.approx(12 * 4.0)


@pytest.mark.parametrize(
    ("jac", "f", "x", "message"),
    [
        (px.jacfwd, lambda x: x, 1, "jacfwd requires real-valued inputs .* but got int32"),
        (px.jacfwd, lambda x: x, 1j, "jacfwd requires real-valued inputs .* but got complex64"),
        (px.jacrev, lambda x: x, 1, "jacrev requires real- or complex-valued inputs"),
        (px.jacrev, lambda x: x * 1j, 1.0, "jacrev requires real-valued outputs"),
    ],
)
def test_refusals(jac, f, x, message):
    with pytest.raises(TypeError, match=message):
        jac(f)(x)


@BOTH
def test_holomorphic_needs_complex_numbers(jac):
    with pytest.raises(TypeError, match="complex dtype, but got float32"):
        jac(lambda x: x, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="complex dtype, but got float32"):
        jac(lax.real, holomorphic=True)(1j)


@BOTH
def test_argnums_out_of_range(jac):
    with pytest.raises(TypeError, match="requires at least 2 positional arguments"):
        jac(lambda x: x, argnums=1)(1.0)
