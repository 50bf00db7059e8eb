"""Ahead-of-time compilation: trace, lower, compile, and the attributes of each stage."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import primax_core as px
from primax_core import lax, stages
from primax_core.errors import JaxRuntimeError

pytestmark = pytest.mark.optimised

F32 = np.float32
X = np.arange(3, dtype=F32)


def both(x, y):
    return {"sum": x + y, "twice": x * 2.0}


def test_all_stages():
    traced = px.jit(both).trace(X, y=2.0)
    lowered = traced.lower()
    compiled = lowered.compile()
    assert (type(traced), type(lowered), type(compiled)) == (
        stages.Traced, stages.Lowered, stages.Compiled,
    )  # fmt: skip
    out = compiled(X, y=2.0)
    np.testing.assert_array_equal(out["sum"], X + 2)
    np.testing.assert_array_equal(out["twice"], X * 2)
    assert isinstance(px.jit(both), stages.Wrapped)


def test_types_without_arrays():
    spec = px.ShapeDtypeStruct((2, 3), F32)
    compiled = px.jit(lambda x: lax.reduce_sum(x, (0,))).lower(spec).compile()
    np.testing.assert_array_equal(compiled(np.ones((2, 3), F32)), [2.0, 2.0, 2.0])


def test_attributes_of_traced():
    traced = px.jit(both, donate_argnums=0).trace(X, y=2.0)
    assert traced.fun_name == "both"
    assert str(traced.jaxpr).startswith("{ lambda ; a:f32[3] b:f32[]. let")
    assert traced.in_avals[0][0].str_short() == "f32[3]"
    assert traced.out_avals["sum"].str_short() == "f32[3]"
    assert traced.out_info["sum"] == px.ShapeDtypeStruct((3,), F32)
    assert traced.effects == frozenset() and traced.donate_argnums == (0,)
    assert traced.args_info[1]["y"].shape == () and traced.args_info[0][0].donated


@pytest.mark.parametrize("stage", ["trace", "lower", "compile"])
def test_attributes_of_all_stages(stage):
    current = px.jit(both).trace(X, y=2.0)
    if stage != "trace":
        current = current.lower()
    if stage == "compile":
        current = current.compile()
    assert str(current.in_tree) == "PyTreeDef(((*,), {'y': *}))"
    assert current.out_info["twice"].shape == (3,)
    assert current.out_tree == px.tree.structure({"sum": 0, "twice": 0})
    assert repr(current.args_info[0][0]) == "ArgInfo(_aval=float32[3], donated=False)" or (
        "donated=False" in repr(current.args_info[0][0])
    )


def test_the_text_of_each_stage():
    lowered = px.jit(lambda x: lax.sin(x)).lower(X)
    assert "stablehlo.sine" in lowered.as_text()
    assert "stablehlo.sine" in lowered.as_text("stablehlo")
    assert "HloModule" in lowered.as_text(dialect="hlo")
    assert "loc(" in lowered.as_text(debug_info=True)
    assert "HloModule" in lowered.compile().as_text()
    assert "sine" in str(lowered.compiler_ir())
    with pytest.raises(ValueError, match="unknown dialect: foo"):
        lowered.as_text("foo")


def test_costs_and_memory():
    a = np.ones((8, 8), F32)
    lowered = px.jit(lambda a, b: lax.dot(a, b)).lower(a, a)
    assert lowered.cost_analysis()["flops"] >= 2 * 8**3
    compiled = lowered.compile()
    assert compiled.cost_analysis()["flops"] >= 2 * 8**3
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 2 * 4 * 64
    assert memory.output_size_in_bytes == 4 * 64
    assert compiled.runtime_executable() is not None


def test_shardings_of_a_compiled_function():
    second = px.devices()[1]
    compiled = px.jit(lambda x: x + 1.0, in_shardings=second).lower(X).compile()
    assert compiled.input_shardings[0][0].device_set == {second}
    assert compiled.output_shardings.device_set == {second}


def test_static_arguments_are_left_out():
    compiled = px.jit(lambda n, x: x * n, static_argnums=0).lower(3, X).compile()
    np.testing.assert_array_equal(compiled(X), X * 3)


def test_a_compiled_function_ignores_weak_types():
    compiled = px.jit(lambda x: x * 2).lower(1.0).compile()
    assert float(compiled(F32(3))) == 6.0
    assert float(compiled(3.0)) == 6.0


def test_numpy_arrays_are_narrowed():
    compiled = px.jit(lambda x: x * 2).lower(X).compile()
    np.testing.assert_array_equal(compiled(np.arange(3.0)), X * 2)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((X[:2],), r"compiled with float32\[3\] and called with float32\[2\]"),
        ((np.arange(3),), r"Argument 'x' compiled with float32\[3\] and called with int32\[3\]"),
        ((X, X), "input pytree does not match"),
    ],
    ids=["shape", "dtype", "tree"],
)
def test_other_arguments_are_refused(args, message):
    compiled = px.jit(lambda x: x * 2).lower(X).compile()
    with pytest.raises(TypeError, match=message):
        compiled(*args)


@pytest.mark.parametrize("transform", [px.jit, px.grad, px.vmap], ids=["jit", "grad", "vmap"])
def test_a_compiled_function_cannot_be_transformed(transform):
    compiled = px.jit(lambda x: x * 2).lower(1.0).compile()
    arg = X if transform is px.vmap else 1.0
    with pytest.raises(
        TypeError, match="Cannot apply Primax transformations to a function lowered"
    ):
        transform(lambda x: compiled(x))(arg)


def test_eval_shape_of_a_jitted_function():
    f = px.jit(lambda x, n: {"y": x * n}, static_argnums=1)
    assert f.eval_shape(X, 3)["y"] == px.ShapeDtypeStruct((3,), F32)
    assert px.eval_shape(px.jit(lambda x: x + 1.0), 1.0).weak_type


def test_compiler_options_of_compile():
    lowered = px.jit(lambda x: x + 1.0).lower(X)
    with pytest.raises(px.errors.JaxRuntimeError, match="No such compile option"):
        lowered.compile(compiler_options={"no_such_option_at_all": 1})


def test_shape_dtype_struct():
    s = px.ShapeDtypeStruct((2, 3), "float32", weak_type=True)
    assert (s.ndim, s.size, len(s), s.aval.str_short()) == (2, 6, 2, "f32[2,3]")
    assert s.update(shape=(4,)) == px.ShapeDtypeStruct((4,), F32, weak_type=True)
    assert hash(s) == hash(px.ShapeDtypeStruct((2, 3), F32, weak_type=True))
    assert repr(s) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32, weak_type=True)"
    with pytest.raises(ValueError, match="dtype must be specified"):
        px.ShapeDtypeStruct((2,), None)
    with pytest.raises(TypeError, match="sequence of integers"):
        px.ShapeDtypeStruct(2, F32)


def test_analyses_that_a_plugin_does_not_have(monkeypatch):
    compiled = px.jit(lambda x: x).lower(1.0).compile()

    class Raw:
        def cost_analysis(self):
            raise JaxRuntimeError("UNIMPLEMENTED: not here")

        def get_compiled_memory_stats(self):
            raise JaxRuntimeError("INTERNAL: broken")

    monkeypatch.setattr(compiled, "_exe", SimpleNamespace(raw=Raw()))
    assert compiled.cost_analysis() is None
    with pytest.raises(JaxRuntimeError, match="broken"):
        compiled.memory_analysis()
