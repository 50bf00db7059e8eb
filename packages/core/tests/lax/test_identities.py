"""Barriers, composites, copies, stages, sinks, tokens, constraints: values are unchanged."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import errors, lax
from primax_core._runtime.sharding import SingleDeviceSharding
from primax_core.lax import composite
from primax_core.lax.barrier import optimization_barrier
from primax_core.lax.constraints import with_sharding_constraint
from primax_core.lax.identities import copy_p, dce_sink, stage
from primax_core.lax.shape_dtype import dtype, shape_as_value
from primax_core.lax.tokens import after_all, create_token

F32 = np.float32
X = np.array([1.0, 2.0], F32)


def total(x):
    return lax.reduce_sum(x, (0,))


class TestBarrier:
    def test_values_of_a_tree(self):
        out = px.jit(optimization_barrier)((X, {"a": 2 * X, "b": None}))
        np.testing.assert_array_equal(out[1]["a"], 2 * X)
        assert optimization_barrier(()) == ()

    def test_it_is_in_the_jaxpr(self):
        f = lambda x: optimization_barrier((x, 2.0 * x))
        assert "optimization_barrier" in px.jit(f).lower(X).as_text()
        pulled = px.make_jaxpr(lambda x: px.vjp(f, x)[1]((X, X)))(X)
        assert str(pulled).count("optimization_barrier") == 2

    def test_derivatives_and_batches(self):
        f = lambda x: total(optimization_barrier((x, x * x))[1])
        np.testing.assert_array_equal(px.grad(f)(X), 2 * X)
        np.testing.assert_array_equal(px.jvp(f, (X,), (X,))[1], 10.0)
        np.testing.assert_array_equal(px.vmap(f)(np.stack([X, 2 * X])), [5.0, 20.0])


def tangent(x, *, scale=1.0, name="t", table=None):
    return lax.sin(x) / lax.cos(x) * scale


class TestComposite:
    def test_values(self):
        f = composite(tangent, "my.tangent", version=2)
        np.testing.assert_allclose(f(X), np.tan(X), rtol=1e-6)
        np.testing.assert_allclose(px.jit(f)(X), np.tan(X), rtol=1e-6)
        np.testing.assert_allclose(px.vmap(f)(X), np.tan(X), rtol=1e-6)

    def test_the_operation_and_its_attributes(self):
        f = composite(tangent, "my.tangent", version=2)
        call = lambda x: f(x, scale=F32(2), name="u", table={"a": (1, True), "b": np.arange(3)})
        text = px.jit(call).lower(X).as_text()
        for part in (
            'stablehlo.composite "my.tangent"', "version = 2", "scale = 2.000000e+00 : f32",
            'name = "u"', "a = [1, true]", "b = dense<[0, 1, 2]>", "decomposition = @my.tangent",
        ):  # fmt: skip
            assert part in text, part

    def test_large_constants_and_several_results(self):
        table = lax.iota(F32, 30)
        f = composite(lambda x: {"a": x + total(table), "b": [x]}, "my.sum")
        out = px.jit(f)(X)
        np.testing.assert_array_equal(out["a"], X + 435)
        np.testing.assert_array_equal(out["b"][0], X)

    def test_no_derivative(self):
        f = composite(tangent, "my.tangent")
        with pytest.raises(ValueError, match="JVP rule for composite not implemented"):
            px.grad(lambda x: total(f(x)))(X)

    @pytest.mark.parametrize(
        ("call", "error", "match"),
        [
            (lambda x: composite(tangent, "my.t")(x, scale=x), errors.UnexpectedTracerError,
             "as an attribute in the decomposition for the composite op 'my.t'"),
            (lambda x: composite(lambda y: x * y, "my.t")(x), errors.UnexpectedTracerError,
             "as a constant in the decomposition"),
            (lambda x: composite(tangent, "my.t")(x, table=object()), TypeError,
             "No attribute handler defined for type"),
            (lambda x: composite(tangent, "t")(x), ValueError, "valid namespaced op name"),
        ],
    )  # fmt: skip
    def test_refused(self, call, error, match):
        with pytest.raises(error, match=match):
            px.jit(call)(X)


class TestCopiesAndStages:
    def test_a_copy_has_a_separate_buffer(self):
        x = lax.iota(F32, 3)
        y = copy_p.bind(x)
        assert x.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
        np.testing.assert_array_equal(px.grad(lambda x: total(copy_p.bind(x)))(X), [1.0, 1.0])

    def test_stage(self):
        assert isinstance(stage(X), px.Array) and isinstance(stage(2.0), px.Array)
        seen = []
        px.jit(lambda x: seen.append(stage(2.0)) or x)(X)
        assert "JitTracer" in type(seen[0]).__name__
        assert not px.make_jaxpr(stage)(X).eqns
        assert float(px.grad(lambda x: stage(x) * 3.0)(1.0)) == 3.0
        np.testing.assert_array_equal(px.vmap(lambda x: stage(x) + stage(1.0))(X), X + 1)
        with pytest.raises(TypeError, match="not a valid Primax type"):
            stage({})

    def test_sinks_stay(self):
        f = lambda x: (dce_sink({"a": x * 2.0}), total(x))[1]
        for g in (f, px.jit(f), px.vmap(lambda x: f(lax.expand_dims(x, (0,))))):
            program = px.make_jaxpr(g)(X)
            assert "dce_sink" in str(program)
        assert float(f(X)) == 3.0 and dce_sink(X) is None
        np.testing.assert_array_equal(px.grad(f)(X), [1.0, 1.0])

    @pytest.mark.parametrize("protected", [False, True])
    def test_sinks_in_lowered_modules(self, protected):
        f = px.jit(lambda x: (dce_sink(x * 2.0, prevent_mlir_dce=protected), x)[1])
        assert ("custom_call @dce_sink" in f.lower(X).as_text()) is protected
        np.testing.assert_array_equal(f(X), X)


class TestTokens:
    def test_tokens_in_transformed_functions(self):
        token = px.jit(lambda t: after_all(t, create_token()))(create_token())
        assert repr(token) == "Token()" and repr(after_all()) == "Token()"
        out, _ = px.jit(lambda x: (create_token(), x))(X)
        assert out.dtype == token.dtype and out.block_until_ready() is out

    def test_only_tokens(self):
        with pytest.raises(TypeError, match="Arguments to after_all must be tokens"):
            after_all(X)


class TestConstraints:
    def test_values_and_derivatives(self):
        here = SingleDeviceSharding(px.devices()[0])
        f = lambda x: with_sharding_constraint({"a": x, "b": 2 * x}, here)
        np.testing.assert_array_equal(px.jit(f)(X)["b"], 2 * X)
        np.testing.assert_array_equal(px.grad(lambda x: total(f(x)["b"]))(X), [2.0, 2.0])
        np.testing.assert_array_equal(px.vmap(f)(X)["a"], X)

    def test_an_eager_call_moves_the_array(self):
        there = SingleDeviceSharding(px.devices()[1])
        assert with_sharding_constraint(X, there).sharding is there

    @pytest.mark.parametrize(
        ("shardings", "error", "match"),
        [
            (None, ValueError, "got sharding None"),
            (1, TypeError, "expected to be shardings, but got 1"),
            ([SingleDeviceSharding], TypeError, "expected to be shardings"),
        ],
    )
    def test_refused(self, shardings, error, match):
        with pytest.raises(error, match=match):
            with_sharding_constraint([X], shardings)


def test_dtype_and_shape_as_value():
    names = [dtype(v).name for v in (1, 1.0, True, X, np.float64(1), np.int8, "int16", float)]
    assert names == "int32 float32 bool float32 float32 int8 int16 float32".split()
    with pytest.raises(TypeError, match="Cannot determine dtype"):
        dtype([1])
    with pytest.raises(ValueError, match="Invalid argument"):
        dtype(None)
    assert shape_as_value((2, 3)).tolist() == [2, 3] and shape_as_value(()).shape == (0,)
    with pytest.raises(TypeError, match="sequence of integers"):
        shape_as_value((1.5,))


def test_no_module_is_named_as_a_function():
    """A module with the name of a function would replace the function when it is imported."""
    import types

    modules = {n for n in dir(lax) if isinstance(getattr(lax, n), types.ModuleType)}
    callables = {n for n in dir(lax) if n in {"composite", "scan", "cond", "sort", "gather"}}
    assert "linalg" in modules and not modules & callables
