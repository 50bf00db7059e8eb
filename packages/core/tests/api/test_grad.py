"""``grad`` and ``value_and_grad``."""

from __future__ import annotations

import math

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from test_support import assert_close, numerical_gradient

F32 = np.float32
X = np.array([0.3, -1.2, 2.0], F32)


def total(x):
    return lax.reduce_sum(x, tuple(range(np.ndim(x))))


FUNCTIONS = {
    "polynomial": lambda x: x * x * x - 2.0 * x,
    "quotient": lambda x: lax.sin(x) / (2.0 + x * x),
    "exponential": lambda x: lax.exp(-x * x) * lax.tanh(x),
    "reused": lambda x: (lambda y: y * y + y)(lax.cos(x)),
    "constant branch": lambda x: x * 0.0 + 3.0,
    "jitted": px.jit(lambda x: lax.log(1.0 + x * x)),
    "nested jit": px.jit(lambda x: px.jit(lax.sin)(x) * px.jit(lax.cos)(x)),
    "scan": lambda x: lax.scan(lambda c, _: (lax.sin(c) + x, None), x, None, length=4)[0],
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: c * x + 1.0, x),
    "cond": lambda x: lax.cond(x > 0.5, lax.sin, lambda y: y * y, x),
    "switch": lambda x: lax.switch(2, [lax.sin, lax.cos, lax.exp], x),
    "map": lambda x: total(lax.map(lambda k: lax.sin(k * x), np.arange(3, dtype=F32))),
    "checkpoint": px.checkpoint(lambda x: lax.sin(lax.sin(x))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("at", [0.3, 1.4])
def test_against_differences(name, at):
    f = FUNCTIONS[name]
    assert_close(px.grad(f)(F32(at)), numerical_gradient(f, at))
    assert_close(px.jit(px.grad(f))(F32(at)), numerical_gradient(f, at))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_order_against_differences(name):
    f = FUNCTIONS[name]
    assert_close(px.grad(px.grad(f))(F32(0.7)), numerical_gradient(px.grad(f), 0.7))


def test_of_an_array():
    def f(x):
        return total(lax.sin(x) * x)

    assert_close(px.grad(f)(X), numerical_gradient(f, X))


def test_keeps_weak_type_and_dtype():
    g = px.grad(lambda x: x * x)
    assert g(1.0).weak_type and g(1.0).dtype == F32
    assert not g(F32(1)).weak_type
    half = lax.convert_element_type(2.0, "bfloat16")
    assert g(half).dtype.name == "bfloat16" and float(g(half)) == 4.0


class TestArgnums:
    def f(self, x, y):
        return x * y * y

    @pytest.mark.parametrize(
        ("argnums", "expected"),
        [(0, 9.0), (1, 6.0), (-1, 6.0), ((1, 0), (6.0, 9.0)), ([0, 1], (9.0, 6.0)), ((0,), (9.0,))],
    )
    def test_positions(self, argnums, expected):
        grads = px.grad(self.f, argnums=argnums)(1.0, 3.0)
        if isinstance(expected, tuple):
            assert isinstance(grads, tuple)
            assert tuple(map(float, grads)) == expected
        else:
            assert float(grads) == expected

    def test_the_other_arguments_may_be_anything(self):
        f = px.grad(lambda x, mode, scale=None: x * x if mode == "square" else x)
        assert float(f(3.0, "square", scale=object())) == 6.0

    def test_keyword_arguments_are_not_differentiated(self):
        assert float(px.grad(lambda x, y: x * y)(2.0, y=3)) == 3.0

    @pytest.mark.parametrize("argnums", [1, -2, (0, 1)])
    def test_out_of_range(self, argnums):
        with pytest.raises(TypeError, match=r"argnums=.* requires at least 2 positional arguments"):
            px.grad(lambda x: x, argnums=argnums)(1.0)


class TestTrees:
    def test_of_a_dict(self):
        params = {"w": X, "b": [2.0, None]}
        g = px.grad(lambda p: total(p["w"]) * p["b"][0])(params)
        np.testing.assert_array_equal(g["w"], [2.0, 2.0, 2.0])
        assert_close(g["b"][0], X.sum())
        assert g["b"][1] is None

    def test_unused_leaves_get_zeros(self):
        g = px.grad(lambda p: p["a"])({"a": 1.0, "b": X})
        np.testing.assert_array_equal(g["b"], np.zeros(3))
        assert g["b"].dtype == F32


class TestAux:
    def test_is_passed_through(self):
        def f(x):
            return x * x, {"n": 3, "name": "f", "x": x + 1.0}

        g, aux = px.grad(f, has_aux=True)(2.0)
        assert float(g) == 4.0
        assert aux["n"] == 3 and aux["name"] == "f" and float(aux["x"]) == 3.0

    def test_with_the_value(self):
        (value, aux), g = px.value_and_grad(lambda x: (x * x, [x]), has_aux=True)(3.0)
        assert (float(value), float(aux[0]), float(g)) == (9.0, 3.0, 6.0)

    @pytest.mark.parametrize("out", [lambda x: x, lambda x: (x, x, x)], ids=["one", "three"])
    def test_must_be_a_pair(self, out):
        with pytest.raises(TypeError, match="aux output to return a two-element tuple"):
            px.grad(out, has_aux=True)(1.0)

    def test_traced_aux_does_not_leak(self):
        _, aux = px.grad(lambda x: (x * x, x * 2.0), has_aux=True)(F32(3))
        assert isinstance(aux, px.Array) and float(aux) == 6.0


class TestComplex:
    """The gradient of a real function f(x + iy) is df/dx - i df/dy."""

    def test_of_the_squared_absolute_value(self):
        g = px.grad(lambda z: lax.real(z * lax.conj(z)))(1 + 2j)
        assert complex(g) == 2 - 4j

    def test_of_the_imaginary_part(self):
        assert complex(px.grad(lax.imag)(1 + 2j)) == -1j

    def test_holomorphic(self):
        assert complex(px.grad(lambda z: z * z * z, holomorphic=True)(1 + 1j)) == 3 * (1 + 1j) ** 2

    def test_real_input_complex_inside(self):
        def f(x):
            z = lax.complex(x, 2.0 * x)
            return lax.real(z * z)

        assert float(px.grad(f)(F32(3))) == pytest.approx(-18.0)


class TestIntegers:
    def test_allowed(self):
        g, h = px.grad(lambda n, x: x * 2.0, argnums=(0, 1), allow_int=True)(np.arange(3), 2.0)
        assert g.dtype == px.float0 and g.shape == (3,) and float(h) == 2.0

    def test_inside_the_function(self):
        def f(x):
            n = lax.convert_element_type(x, np.int32)
            return x * lax.convert_element_type(n, np.float32)

        assert float(px.grad(f)(3.5)) == 3.0


def test_python_control_flow_sees_the_value():
    g = px.grad(lambda x: x * x if x > 1 else -x)
    assert float(g(3.0)) == 6.0 and float(g(0.5)) == -1.0
    assert float(px.grad(lambda x: x * int(x))(3.5)) == 3.0


def test_any_order():
    f = lax.sin
    for k in range(6):
        expected = math.sin(1.0 + k * math.pi / 2)
        assert float(f(F32(1))) == pytest.approx(expected, abs=1e-5)
        f = px.grad(f)


class TestStopGradient:
    def test_has_zero_derivative(self):
        assert float(px.grad(lambda x: lax.stop_gradient(x) * x)(3.0)) == 3.0
        assert float(px.grad(lambda x: lax.stop_gradient(x * x))(3.0)) == 0.0

    def test_maps_over_trees_and_ignores_integers(self):
        out = lax.stop_gradient({"a": X, "n": np.arange(3), "s": 1.0})
        np.testing.assert_array_equal(out["a"], X)
        assert out["n"].dtype == np.int32 and out["s"] == 1.0

    def test_keeps_the_value_under_every_transformation(self):
        np.testing.assert_array_equal(px.vmap(lax.stop_gradient)(X), X)
        np.testing.assert_array_equal(px.jit(lax.stop_gradient)(X), X)
        y, dy = px.jvp(lax.stop_gradient, (X,), (X,))
        np.testing.assert_array_equal(y, X)
        np.testing.assert_array_equal(dy, np.zeros(3))


@pytest.mark.parametrize(
    ("f", "x", "message"),
    [
        (lambda x: x, 1, "requires real- or complex-valued inputs .* but got int32.*allow_int"),
        (lambda x: x, True, "but got bool"),
        (lambda x: 1, 1.0, "requires real-valued outputs .* but got int32"),
        (lambda x: x * 1j, 1.0, "but got complex64. For holomorphic differentiation"),
        (lambda x: x, X, r"scalar-output functions. Output had shape: \(3,\)"),
        (lambda x: (x, x), 1.0, r"scalar-output functions. Output was \("),
        (lambda x: None, 1.0, "scalar-output functions. Output was None"),
        (lambda x: "s", 1.0, "not a valid Primax type"),
        (lambda x: x, "s", "not a valid Primax type"),
    ],
)
def test_refusals(f, x, message):
    with pytest.raises(TypeError, match=message):
        px.grad(f)(x)


def test_holomorphic_needs_complex_numbers():
    with pytest.raises(TypeError, match="requires inputs with complex dtype, but got float32"):
        px.grad(lambda x: x, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="requires outputs with complex dtype, but got float32"):
        px.grad(lax.real, holomorphic=True)(1j)


def one(x):
    return lax.full((), 1.0)


def positive(x):
    return lax.convert_element_type(x > 0, F32)


def stopped(x):
    return lax.stop_gradient(x)


CALLS = {
    "jit": px.jit,
    "checkpoint": px.checkpoint,
    "jit of checkpoint": lambda f: px.jit(px.checkpoint(f)),
    "cond": lambda f: lambda x: lax.cond(x > 0, f, f, x),
    "switch": lambda f: lambda x: lax.switch(lax.convert_element_type(x, np.int32), [f, f, f], x),
    "scan": lambda f: lambda x: lax.scan(lambda c, y: (c, f(y)), 0.0, lax.full((1,), 1.0) * x)[1],
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, c: f(x), 0.0),
    "custom_jvp": lambda f: _with_rule(f),
    "vmap": lambda f: lambda x: px.vmap(f)(lax.full((1,), 1.0) * x),
}


def _with_rule(f):
    h = px.custom_jvp(f)
    h.defjvp(lambda primals, tangents: px.jvp(f, primals, tangents))
    return h


@pytest.mark.parametrize("fun", [one, positive, stopped])
@pytest.mark.parametrize("call", CALLS)
def test_calls_whose_results_have_no_derivatives(call, fun):
    """The derivative of such a call in a jaxpr is a linear jaxpr without results."""
    called = CALLS[call](fun)

    def f(x):
        return x + lax.reduce_sum(lax.full((1,), 1.0) * called(x), (0,))

    assert px.grad(px.jit(f))(1.0) == 1.0
    for transformed in (
        lambda x: px.linearize(f, x)[1](x),
        px.grad(px.grad(lambda x: x * f(x))),
        px.grad(px.checkpoint(f)),
        px.grad(lambda x: lax.cond(x > 0, f, f, x)),
    ):
        assert px.make_jaxpr(transformed)(1.0).out_avals[0].shape == ()
