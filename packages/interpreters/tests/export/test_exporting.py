"""`export`: fields and modules of exported functions, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
from primax_core import lax
from primax_core.extend import Primitive, abstract, lower
from primax_core.extend.lowering import hlo, type_of
from primax_interpreters import export
from primax_interpreters.export import DisabledSafetyCheck

X = np.arange(3, dtype=np.float32)


@pc.jit
def scaled(x, options):
    return {"a": lax.sin(x) * options["k"], "b": [x]}


def test_fields() -> None:
    e = export.export(scaled)(X, {"k": 2.0})
    assert e.fun_name == "scaled"
    assert str(e) == repr(e) == "Exported(fun_name=scaled, ...)"
    assert str(e.in_tree) == "PyTreeDef(((*, {'k': *}), {}))"
    assert str(e.out_tree) == "PyTreeDef({'a': *, 'b': [*]})"
    assert [a.str_short() for a in e.in_avals] == ["f32[3]", "f32[]"]
    assert [a.weak_type for a in e.in_avals] == [False, True]
    assert [a.str_short() for a in e.out_avals] == ["f32[3]", "f32[3]"]
    assert e.platforms == (export.default_export_platform(),) == ("cpu",)
    assert e.nr_devices == 1
    assert e.in_shardings_hlo == e.out_shardings_hlo == (None, None)
    assert e.in_shardings_jax(None) == e.out_shardings_jax(None) == (None, None)
    assert e.ordered_effects == e.unordered_effects == e.disabled_safety_checks == ()
    assert e.module_kept_var_idx == (0, 1)
    assert not e.uses_global_constants
    least = export.minimum_supported_calling_convention_version
    most = export.maximum_supported_calling_convention_version
    assert least <= e.calling_convention_version <= most
    assert e.has_vjp()
    assert isinstance(e.mlir_module_serialized, bytes)
    assert "func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<f32>)" in e.mlir_module()


def test_equality_and_hash_are_by_value() -> None:
    e, same = (export.export(scaled)(X, {"k": 2.0}) for _ in range(2))
    other = export.export(scaled)(X[:2], {"k": 2.0})
    assert e == same and hash(e) == hash(same)
    assert e != other


def test_arguments_may_be_types() -> None:
    e = export.export(scaled)(pc.ShapeDtypeStruct((5,), np.float32), {"k": 2.0})
    assert e.in_avals[0].shape == (5,)
    assert e.call(np.ones(5, np.float32), {"k": 1.0})["b"][0].shape == (5,)


def test_unused_arguments_are_removed_unless_kept() -> None:
    def second(x, y):
        return y + 1

    e = export.export(pc.jit(second))(X, X)
    with_unused = export.export(pc.jit(second, keep_unused=True))(X, X)
    assert (e.module_kept_var_idx, with_unused.module_kept_var_idx) == ((1,), (0, 1))
    assert "%arg1" not in e.mlir_module() and "%arg1" in with_unused.mlir_module()
    for each in (e, with_unused):
        np.testing.assert_array_equal(each.call(X, X), X + 1)


def test_static_arguments_are_bound_and_keywords_stay() -> None:
    f = pc.jit(lambda x, *, n, k: x * n + k, static_argnames="n")
    e = export.export(f)(X, n=3, k=1.0)
    np.testing.assert_array_equal(e.call(X, k=2.0), X * 3 + 2)
    with pytest.raises(ValueError, match="same pytree structure"):
        e.call(X, n=3, k=2.0)


def test_constants_are_in_the_module() -> None:
    table = pc.device_put(np.arange(1000, dtype=np.float32))
    e = export.export(pc.jit(lambda x: x + lax.reduce_sum(table, (0,))))(X)
    assert len(e.in_avals) == 1
    assert len(e.mlir_module_serialized) > 4000
    np.testing.assert_array_equal(e.call(X), X + 499500)


def test_constants_of_inner_functions_too() -> None:
    table = pc.device_put(np.arange(1000, dtype=np.float32))
    inner = pc.jit(lambda x: x + lax.reduce_sum(table, (0,)))
    e = export.export(pc.jit(lambda x: inner(x) + inner(2 * x)))(X)
    np.testing.assert_array_equal(e.call(X), 3 * X + 2 * 499500)


def test_donation_belongs_to_the_module_not_to_the_call() -> None:
    e = export.export(pc.jit(lambda x: x + 1, donate_argnums=0))(X)
    assert "tf.aliasing_output = 0" in e.mlir_module()
    x = pc.device_put(X)
    e.call(x)
    assert not x.is_deleted()
    np.testing.assert_array_equal(pc.jit(e.call, donate_argnums=0)(x), X + 1)
    assert x.is_deleted()


def test_weak_types_and_wide_types() -> None:
    e = export.export(pc.jit(lambda x: x + 1))(1.0)
    assert e.in_avals[0].weak_type and e.out_avals[0].weak_type
    assert pc.typeof(e.call(1.0)).weak_type
    assert float(e.call(np.float32(1))) == 2.0
    with pc.enable_x64(True):
        wide = export.export(pc.jit(lambda x: x * 2))(np.ones(3))
        np.testing.assert_array_equal(wide.call(np.ones(3)), [2, 2, 2])
    assert wide.in_avals[0].dtype == np.float64
    with pytest.raises(
        ValueError, match=r"Dtype mismatch.*expected float64 and called with float32"
    ):
        wide.call(X)


def test_name_of_the_module() -> None:
    e = export.export(pc.jit(lambda x: x))(X)
    assert e.fun_name == "<lambda>"
    assert "module @jit__lambda_" in e.mlir_module()


# Platforms


def test_several_platforms_are_selected_by_an_index() -> None:
    def f(x):
        return lax.platform_dependent(x, cpu=lax.sin, tpu=lax.cos, default=lax.tanh) * 2

    e = export.export(pc.jit(f), platforms=("cuda", "cpu", "tpu"))(X)
    text = e.mlir_module()
    assert e.platforms == ("cuda", "cpu", "tpu") and e.uses_global_constants
    assert "main(%arg0: tensor<i32>" in text and text.count("stablehlo.multiply") == 1
    np.testing.assert_allclose(e.call(X), np.sin(X) * 2, rtol=1e-6)
    # Each branch is for one platform.
    branches = text.split("stablehlo.case")[-1]
    order = [branches.index(f"stablehlo.{op}") for op in ("tanh", "sine", "cosine")]
    assert order == sorted(order)


def test_common_code_of_platforms_is_lowered_once() -> None:
    e = export.export(pc.jit(lambda x: lax.sin(x) * 2), platforms=("cpu", "cuda", "rocm", "tpu"))(X)
    assert "stablehlo.case" not in e.mlir_module()


def test_platforms_inside_calls_and_loops() -> None:
    @pc.jit
    def inner(x):
        return lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x + 2)

    def f(x):
        return lax.fori_loop(0, 3, lambda _, y: inner(y), x) + inner(x)

    e = export.export(pc.jit(f), platforms=("tpu", "cpu"))(X)
    np.testing.assert_array_equal(e.call(X), X + 3 + X + 1)
    np.testing.assert_array_equal(pc.jit(e.call)(X), 2 * X + 4)


def test_linear_algebra_of_another_platform_needs_no_plugin() -> None:
    f = pc.jit(lambda x: lax.linalg.cholesky(x))
    e = export.export(f, platforms=("cuda", "cpu"))(np.eye(2, dtype=np.float32))
    text = e.mlir_module()
    assert "lapack_spotrf_ffi" in text and "cusolver_potrf_ffi" in text
    np.testing.assert_array_equal(e.call(np.eye(2, dtype=np.float32)), np.eye(2))
    only = export.export(f, platforms=("tpu",))(np.eye(2, dtype=np.float32))
    assert "stablehlo.cholesky" in only.mlir_module() and "lapack" not in only.mlir_module()


def test_platform_without_a_rule() -> None:
    with pytest.raises(NotImplementedError, match="schur is computed by LAPACK"):
        export.export(pc.jit(lax.linalg.schur), platforms=["cuda"])(np.eye(2, dtype=np.float32))


def test_functions_of_gpus_without_guarantees() -> None:
    x = np.eye(3, dtype=np.float32)
    for function in (lax.linalg.lu, lax.linalg.qr, lax.linalg.eigh, lax.linalg.svd):
        export.export(pc.jit(function), platforms=["cuda"])(x)
    f = pc.jit(lax.linalg.eig)
    with pytest.raises(ValueError, match="native functions 'cuhybrid_eig_real' may change"):
        export.export(f, platforms=["cuda"])(x)
    allowed = [export.DisabledSafetyCheck.custom_call("cuhybrid_eig_real")]
    assert export.export(f, platforms=["cuda"], disabled_checks=allowed)(x).platforms == ("cuda",)


@pytest.mark.parametrize(
    ("platforms", "match"),
    [("cpu", r"use \['cpu'\]"), (["gpu"], "use 'cuda' or 'rocm'"), ([3], "sequence of names")],
)
def test_invalid_platforms(platforms, match) -> None:
    with pytest.raises(ValueError, match=match):
        export.export(scaled, platforms=platforms)


def test_empty_platforms_are_the_default() -> None:
    assert export.export(scaled, platforms=[])(X, {"k": 2.0}).platforms == ("cpu",)


# Refusals


def test_only_jitted_functions() -> None:
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(lambda x: x)


def test_values_of_an_enclosing_trace() -> None:
    def f(x):
        return export.export(pc.jit(lambda y: x + y))(X).call(X)

    with pytest.raises(ValueError, match="closes over values of an enclosing transformation"):
        pc.jit(f)(X)


def test_inside_a_trace_with_types_only() -> None:
    f = pc.jit(lambda x: export.export(pc.jit(lambda y: y + 1))(x).call(x))
    np.testing.assert_array_equal(f(X), X + 1)


@pytest.mark.parametrize("kind", ["pure", "ordered", "debug"])
def test_callbacks(kind: str) -> None:
    def f(x):
        if kind == "pure":
            return pc.pure_callback(lambda a: a, pc.ShapeDtypeStruct(x.shape, x.dtype), x)
        if kind == "ordered":
            return pc.io_callback(
                lambda a: a, pc.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True
            )
        pc.debug.print("{}", x)
        return x

    target = DisabledSafetyCheck.custom_call("xla_ffi_python_cpu_callback")
    for disabled in ((), (target,)):
        with pytest.raises(NotImplementedError, match="it calls back into Python"):
            export.export(pc.jit(f), disabled_checks=disabled)(X)


def _native(name: str) -> Primitive:
    p = Primitive(f"calls_{name}")
    p.rule(abstract)(lambda x: x)

    @p.rule(lower)
    def _lower(ctx, x):
        return hlo.custom_call([type_of(a) for a in ctx.out_avals], [x], name)

    return p


def test_native_functions_that_may_change() -> None:
    p = _native("my_kernel")
    f = pc.jit(lambda x: p.bind(x))
    with pytest.raises(ValueError, match=r"no compatibility guarantees.*'my_kernel'"):
        export.export(f)(X)
    check = DisabledSafetyCheck.custom_call("my_kernel")
    with pytest.raises(ValueError, match="my_kernel"):
        export.export(f, disabled_checks=[DisabledSafetyCheck.custom_call("other")])(X)
    e = export.export(f, disabled_checks=[check])(X)
    assert e.disabled_safety_checks == (check,)
    assert "my_kernel" in e.mlir_module()


def test_checks_are_values() -> None:
    a, b = (DisabledSafetyCheck.custom_call("f") for _ in range(2))
    assert a == b and hash(a) == hash(b) and a != DisabledSafetyCheck.platform()
    assert (str(a), repr(DisabledSafetyCheck.platform())) == ("custom_call:f", "platform")
    assert a.is_custom_call() == "f" and DisabledSafetyCheck.platform().is_custom_call() is None
    with pytest.raises(TypeError, match="takes values of DisabledSafetyCheck"):
        export.export(scaled, disabled_checks=["platform"])


def test_rules_can_be_replaced() -> None:
    def as_cosine(ctx, x, **params):
        return hlo.cosine(x)

    rules = [(lax.sin_p, as_cosine)]
    e = export.export(pc.jit(lax.sin), _override_lowering_rules=rules)(X)
    np.testing.assert_allclose(e.call(X), np.cos(X), rtol=1e-6)
    several = export.export(
        pc.jit(lax.sin), platforms=("tpu", "cpu"), _override_lowering_rules=rules
    )
    np.testing.assert_allclose(several(X).call(X), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(pc.jit(lax.sin)(X), np.sin(X), rtol=1e-6)
