"""``custom_vmap`` and ``sequential_vmap``."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.custom_batching import custom_vmap, sequential_vmap

F32 = np.float32
X3 = np.arange(3, dtype=F32)
X23 = np.arange(6, dtype=F32).reshape(2, 3)


def product(calls=None):
    """A product whose batched form is a hundred times as large."""

    @custom_vmap
    def f(x, y):
        return x * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        if calls is not None:
            calls.append((axis_size, in_batched))
        return x * y * 100.0, True

    return f


def test_called_alone():
    f = product()
    assert float(f(2.0, 3.0)) == float(px.jit(f)(2.0, 3.0)) == float(f(2.0, y=3.0)) == 6.0


@pytest.mark.parametrize("jit_in", [lambda f: f, px.jit])
@pytest.mark.parametrize("jit_out", [lambda f: f, px.jit])
def test_mapped(jit_in, jit_out):
    calls: list = []
    f = jit_out(px.vmap(jit_in(product(calls))))
    np.testing.assert_array_equal(f(X3, X3), X3 * X3 * 100)
    assert calls == [(3, [True, True])]


def test_the_rule_receives_mapped_flags():
    calls: list = []
    f = product(calls)
    np.testing.assert_array_equal(px.vmap(f, in_axes=(0, None))(X3, F32(2)), X3 * 200)
    np.testing.assert_array_equal(px.vmap(f, in_axes=(None, 1))(F32(1), X23), X23.T * 100)
    assert calls == [(3, [True, False]), (3, [False, True])]


def test_unmapped_calls_do_not_use_the_rule():
    f = product()
    np.testing.assert_array_equal(px.vmap(lambda z: f(1.0, 2.0) + z)(X3), X3 + 2)


def test_the_outer_of_two_vmaps_maps_the_rule():
    calls: list = []
    f = px.vmap(px.vmap(product(calls)))
    np.testing.assert_array_equal(f(X23, X23), X23 * X23 * 100)
    assert calls == [(3, [True, True])]


def test_trees():
    @custom_vmap
    def f(p):
        return {"o": p["a"] + p["b"], "c": 1.0}

    @f.def_vmap
    def rule(axis_size, in_batched, p):
        assert in_batched == [{"a": True, "b": False}]
        return {"o": p["a"] - p["b"], "c": 2.0}, {"o": True, "c": False}

    out = px.vmap(f, in_axes=({"a": 0, "b": None},))({"a": X3, "b": 1.0})
    np.testing.assert_array_equal(out["o"], X3 - 1)
    np.testing.assert_array_equal(out["c"], [2.0, 2.0, 2.0])


def test_closing_over_a_tracer():
    def g(t):
        f = custom_vmap(lambda x: x * t)
        f.def_vmap(lambda n, marks, x: (x * t * 10.0, True))
        return px.vmap(f)(X3)

    np.testing.assert_array_equal(px.jit(g)(3.0), X3 * 30)


def test_forward_mode():
    f = product()
    y, dy = px.jvp(f, (2.0, 3.0), (1.0, 0.0))
    assert (float(y), float(dy)) == (6.0, 3.0)
    _, dy = px.jvp(px.vmap(f), (X3, X3), (X3, X3))
    np.testing.assert_array_equal(dy, 2 * X3 * X3 * 100)
    y, dy = px.vmap(lambda x: px.jvp(f, (x, F32(2)), (F32(1), F32(0))))(X3)
    np.testing.assert_array_equal(y, X3 * 200)
    np.testing.assert_array_equal(dy, [200.0, 200.0, 200.0])


def test_forward_mode_with_integer_results():
    f = custom_vmap(lambda x: (x, 3))
    f.def_vmap(lambda n, marks, x: ((x, 3), (True, False)))
    _, dy = px.vmap(lambda x: px.jvp(f, (x,), (x,)))(X3)
    np.testing.assert_array_equal(dy[0], X3)
    assert dy[1].dtype == px.float0


def test_a_derivative_mapped_only_along_the_tangent():
    f = product()
    dy = px.vmap(lambda t: px.jvp(f, (F32(2), F32(3)), (t, F32(0)))[1])(X3)
    np.testing.assert_array_equal(dy, X3 * 300)


def test_reverse_mode_is_refused():
    for run in (px.grad(product()), px.jit(px.grad(product()))):
        with pytest.raises(ValueError, match=r"Reverse-mode .* custom_vmap function f.*custom_vjp"):
            run(2.0, 3.0)


def test_reverse_mode_of_the_rule():
    g = px.grad(lambda v: lax.reduce_sum(px.vmap(product())(v, v), (0,)))(X3)
    np.testing.assert_array_equal(g, 200 * X3)


def test_inside_custom_vjp():
    f = product()
    g = px.custom_vjp(lambda x: f(x, x))
    g.defvjp(lambda x: (f(x, x), x), lambda x, ct: (2.0 * x * ct,))
    np.testing.assert_array_equal(px.vmap(px.grad(g))(X3), 2 * X3)


@pytest.mark.parametrize("jit", [lambda f: f, px.jit])
def test_a_reference_of_the_transformed_function(jit):
    @custom_vmap
    def scaled(ref, x):
        return ref[...] * x

    @scaled.def_vmap
    def rule(axis_size, in_batched, ref, x):
        return ref[...] * x * 100.0, True

    def fun(x):
        return scaled(px.new_ref(F32(2.0)), x)

    np.testing.assert_array_equal(jit(px.vmap(fun))(X3), X3 * 200)
    value, tangent = px.jvp(jit(fun), (F32(3.0),), (F32(1.0),))
    assert (float(value), float(tangent)) == (6.0, 2.0)


def test_without_a_rule():
    with pytest.raises(AttributeError, match="No batching rule defined for custom_vmap function"):
        custom_vmap(lambda x: x)(1.0)


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        (lambda n, b, x: x, TypeError, r"must return a pair \(out, out_batched\)"),
        (lambda n, b, x: (x, [True]), ValueError, "do not match.*Batching spec"),
        (lambda n, b, x: (1.0, True), ValueError, "first axis is not of size 3"),
        (lambda n, b, x: ((x, x), (True, True)), ValueError, "but the custom_vmap function"),
    ],
)
def test_invalid_results_of_rules(rule, error, message):
    f = custom_vmap(lambda x: x)
    f.def_vmap(rule)
    with pytest.raises(error, match="(?s)" + message):
        px.vmap(px.jit(f))(X3)


class TestSequential:
    def test_loops(self):
        f = sequential_vmap(lambda x, y: (x * y, x))
        out, x = px.vmap(f, in_axes=(0, None))(X3, F32(2))
        np.testing.assert_array_equal(out, X3 * 2)
        np.testing.assert_array_equal(x, X3)
        assert "scan[" in str(px.make_jaxpr(px.vmap(f))(X3, X3))

    def test_nested(self):
        f = px.vmap(px.vmap(sequential_vmap(lambda x, y: x * y)))
        np.testing.assert_array_equal(f(X23, X23), X23 * X23)

    def test_trees(self):
        f = sequential_vmap(lambda p: {"s": p["a"] + p["b"][0]})
        out = px.vmap(f, in_axes=({"a": 0, "b": [None]},))({"a": X3, "b": [F32(1)]})
        np.testing.assert_array_equal(out["s"], X3 + 1)


@pytest.mark.parametrize("number", [3, 2.5, True])
def test_rule_is_passed_numbers_of_a_traced_call(number):
    types = []
    f = custom_vmap(lambda x, y: x * y)

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        types.append(type(y))
        return x * y, True

    px.vmap(px.jit(lambda x: f(x, number)))(X3)
    assert types == [type(number)]
