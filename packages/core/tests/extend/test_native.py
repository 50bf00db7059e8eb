"""Calls, registration and callbacks, from the view of a third-party package."""

from __future__ import annotations

import ctypes
import types
from typing import Any

import numpy as np
import pytest
from native_library import capsule
from processes import run

from primax_core import effects_barrier, jit, lax
from primax_core.errors import JaxRuntimeError
from primax_core.extend import (
    NamedEffect,
    Primitive,
    ShapedArray,
    abstract,
    effects,
    lower,
    native,
    stage,
)
from primax_core.extend.lowering import ir, provides_custom_calls

F32 = np.dtype("float32")
SCALAR = ShapedArray((), F32)


def primitive(rule: Any, *types: ShapedArray, effect: Any = None) -> Any:
    """The jitted function of a primitive with this lowering rule."""
    prim = Primitive("native", multiple_results=True)
    prim.rule(abstract)(lambda *avals: list(types or avals))
    prim.rule(lower)(rule)
    if effect is not None:
        prim.rule(effects)(lambda *_: frozenset([effect]))
    return jit(lambda *args: prim.bind(*args))


def text(**options: Any) -> str:
    """The text of a call of a target on a matrix."""
    call = primitive(lambda ctx, x: native.call(ctx, "acme_target", [x], **options))
    return call.lower(np.ones((2, 3), np.float32)).as_text()


# Calls


def test_text_of_a_call():
    out = text(attributes={"n": np.int32(3)}, extra_attributes={"kernel_name": "k"})
    assert "@acme_target(%arg0) {api_version = 4 : i32, backend_config = {n = 3 : i32}" in out
    assert 'kernel_name = "k"' in out and "operand_layouts = [dense<[1, 0]>" in out
    assert 'backend_config = "{}"' in text(api_version=1, backend_config="{}")
    assert 'api_version = 2 : i32, backend_config = ""' in text(api_version=2)
    assert "has_side_effect = true" in text(has_side_effect=True)
    assert 'mhlo.frontend_attributes = {a = "b"}' in text(
        extra_attributes={"mhlo.frontend_attributes": {"a": "b"}}
    )


def test_mlir_attributes_are_used_unchanged():
    def rule(ctx, x):
        wide = ir.IntegerAttr.get(ir.IntegerType.get_signless(16), 3)
        return native.call(ctx, "acme_target", [x], attributes={"n": wide})

    assert "n = 3 : i16" in primitive(rule).lower(np.float32(1)).as_text()


def test_called_computations():
    sine = stage(lambda x: [lax.sin(x)], [SCALAR])
    out = text(called_computations=[sine, sine])
    assert "called_computations = [@acme_target_computation, @acme_target_computation]" in out
    assert out.count("stablehlo.sine") == 1
    large = lax.full((100,), 1.0)
    closed = stage(lambda x: [lax.mul(x, lax.reduce_sum(large, (0,)))], [SCALAR])
    with pytest.raises(ValueError, match="closes over arrays"):
        text(called_computations=[closed])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"api_version": 5}, r"api_version 5; there are 1 \(no status\), 2"),
        ({"api_version": 1, "backend_config": 0}, "is a int, not a text"),
        ({"backend_config": "x"}, "which typed handlers .api_version 4. do not receive"),
        ({"api_version": 1, "attributes": {"a": 1}}, "pass a text as backend_config"),
        ({"operand_layouts": [(0, 0)]}, r"\(0, 0\).*row-major is \(1, 0\)"),
        ({"operand_layouts": []}, "has 1 operands and 0 operand_layouts"),
        ({"result_layouts": [(0, 1, 2)]}, "each of the 2 axes once"),
        ({"input_output_aliases": {1: 0}}, "has operand 1, but there are 1 operands"),
        ({"input_output_aliases": {0: -1}}, "has result -1, but there are 1 results"),
        (
            {"input_output_aliases": {0: 0}, "result_layouts": [(0, 1)]},
            r"their layouts are \(0, 1\) and \(1, 0\)",
        ),
        ({"ordered": True}, "native has no ordered effect: return one from its effects rule"),
        ({"extra_attributes": {"api_version": 4}}, "has an attribute api_version of its own"),
        ({"extra_attributes": {"kernel": 1j}}, "'kernel' has the type complex"),
    ],
)
def test_parts_that_do_not_fit(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        text(**options)


def test_aliases_of_other_types():
    call = primitive(
        lambda ctx, x: native.call(ctx, "acme_target", [x], input_output_aliases={0: 0}),
        ShapedArray((3,), F32),
    )
    with pytest.raises(ValueError, match="tensor<3xf32>, cannot use the memory of operand 0"):
        call.lower(np.float32(1))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1j, "'x' of attributes of 'acme_target' has the type complex.*array of two floats"),
        (None, "has the type NoneType"),
        (2**63, "more than 64 bits: use np.uint64"),
        (np.float16(1), "dtype float16.*use np.float32"),
        (np.ones((2, 2)), "2 axes.*array.ravel"),
        (np.complex64([1]), "array of dtype complex64"),
        (["a"], "a sequence of values that are not numbers"),
        ({1: 2}, "the name 1 of an attribute is not a text"),
        (np.dtype("U3"), "is the dtype str96"),
    ],
)
def test_attributes_that_cannot_be_read(value, message):
    with pytest.raises((TypeError, OverflowError), match=message):
        text(attributes={"x": value})


def test_tokens_of_stablehlo():
    def rule(ctx, x):
        token = native.call(ctx, "acme_target", [x], [native.abstract_token])
        types = [ctx.in_avals[0], native.abstract_token]
        options = {"input_output_aliases": {1: 0}, "operand_layouts": [(), (0, 1)]}
        options["result_layouts"] = [(0, 1), ()]
        return native.call(ctx, "acme_target", [*token, x], types, **options)[:1]

    out = primitive(rule).lower(np.ones((2, 3), np.float32)).as_text()
    assert "(tensor<2x3xf32>) -> !stablehlo.token" in out
    assert "(!stablehlo.token, tensor<2x3xf32>) -> (tensor<2x3xf32>, !stablehlo.token)" in out
    assert "operand_layouts = [dense<> : tensor<0xindex>, dense<[0, 1]>" in out
    aliased = primitive(
        lambda ctx, x: native.call(
            ctx, "acme_target", [x], [native.abstract_token], input_output_aliases={0: 0}
        )
    )
    with pytest.raises(ValueError, match="has a token, without memory"):
        aliased.lower(np.float32(1))


# Registration


def test_registered_names():
    from primax_core._runtime import custom_calls

    assert not native.is_registered("acme_absent")
    native.register("acme_present", capsule(8), platform="gpu")
    assert native.is_registered("acme_present")
    # XLA's own functions need no registration.
    assert native.is_registered("xla_ffi_python_cpu_callback")
    custom_calls.ensure(["xla_ffi_python_cpu_callback"])


def test_an_unknown_target():
    call = primitive(lambda ctx, x: native.call(ctx, "acme_unknown", [x]))
    with pytest.raises(LookupError) as caught:
        call(np.float32(1))
    assert "'acme_unknown', which no imported package provides" in str(caught.value)
    assert "primax_core.extend.native.register('acme_unknown', handler)" in str(caught.value)
    known_to_xla = primitive(lambda ctx, x: native.call(ctx, "acme_unknown", [x], needs=()))
    with pytest.raises(JaxRuntimeError, match="acme_unknown"):
        known_to_xla(np.float32(1))


def test_other_platforms_and_interfaces():
    native.register("acme_gpu", capsule(8), platform="gpu")
    native.register("acme_old", capsule(16, b"xla._CUSTOM_CALL_TARGET"), api_version=0)
    call = primitive(lambda ctx, x: native.call(ctx, "acme_gpu", [x]))
    with pytest.raises(NotImplementedError, match=r"registered for cuda, rocm, but called on cpu"):
        call(np.float32(1))
    call = primitive(lambda ctx, x: native.call(ctx, "acme_old", [x]))
    with pytest.raises(NotImplementedError, match=r"as a typed handler .* as an earlier"):
        call(np.float32(1))


def test_a_name_has_one_handler(monkeypatch):
    from primax_core._runtime import native_targets

    monkeypatch.setattr(native_targets, "_types", {})
    native.register("acme_twice", capsule(8))
    native.register("acme_twice", capsule(8))
    native.register("acme_twice", capsule(16), platform="cuda")
    with pytest.raises(ValueError, match="'acme_twice' is registered for cpu with another handler"):
        native.register("acme_twice", capsule(16))
    with pytest.raises(ValueError, match="with another handler"):
        native.register("acme_twice", capsule(8), traits=1)
    native.register_type("acme_type", capsule(8))
    with pytest.raises(ValueError, match="type 'acme_type' is registered for cpu with other"):
        native.register_type("acme_type", capsule(16))
    provides_custom_calls("acme_group")(lambda: None)
    with pytest.raises(ValueError, match="used by provides_custom_calls"):
        native.register("acme_group", capsule(8))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("", capsule(8)), {}, "the name of a native function is a printable text"),
        (("a\nb", capsule(8)), {}, "printable text"),
        (("acme_bad", 8), {}, "is a int, but it is to be a capsule"),
        (("acme_bad", {"execute": None}), {}, "stage execute of 'acme_bad' is a NoneType"),
        (("acme_bad", {"instantiate": capsule(8)}), {}, "of which execute is required"),
        (("acme_bad", {"run": capsule(8)}), {}, "the stages are instantiate, prepare"),
        (("acme_bad", capsule(8)), {"api_version": 4}, "api_version of a call is another number"),
        (("acme_bad", capsule(8)), {"platform": "tpu"}, "'tpu': the platforms are cpu, cuda"),
    ],
)
def test_registrations_that_are_not_valid(arguments, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        native.register(*arguments, **options)


def test_plugins_are_reached_when_a_program_needs_the_name(monkeypatch):
    from primax_core._runtime import custom_calls, native_targets, plugins

    calls: list[tuple[Any, ...]] = []
    extension = types.SimpleNamespace(
        register_custom_call_target=lambda *args: calls.append(args),
        register_custom_type=lambda *args: calls.append(args),
    )
    monkeypatch.setattr(plugins, "_running", {})
    monkeypatch.setattr(native_targets, "_types", {})
    handler, type_id = capsule(8), capsule(16)
    native.register("acme_fake", handler, platform="cuda", traits=1)
    native.register_type("acme_fake_type", type_id, platform="cuda")
    custom_calls.ensure(["acme_fake"])
    assert calls == []
    plugins.note_running("cuda", "api", extension)
    native_targets.renew()
    for _ in range(2):
        custom_calls.ensure(["acme_fake"])
    assert calls == [
        ("api", "acme_fake_type", {"type_id": type_id}),
        ("api", "acme_fake", handler, "CUDA", 1, 1),
    ]
    plugins.note_running("cuda", "another api", extension)
    native_targets.renew()
    custom_calls.ensure(["acme_fake"])
    assert [c[0] for c in calls[2:]] == ["another api"] * 2


def test_a_refusal_of_xla_names_the_function(monkeypatch):
    from primax_core._runtime import custom_calls, plugins

    def refuse(*args):
        raise RuntimeError("handler's API version (0.9) is incompatible")

    extension = types.SimpleNamespace(register_custom_call_target=refuse)
    monkeypatch.setattr(plugins, "_running", {"rocm": [("api", extension)]})
    native.register("acme_newer", capsule(8), platform="rocm")
    with pytest.raises(RuntimeError) as caught:
        custom_calls.ensure(["acme_newer"])
    assert "refused the native target 'acme_newer' for rocm: handler's API" in str(caught.value)
    assert "build it with those of the oldest supported jaxlib" in str(caught.value)


def test_registering_starts_no_client_and_loads_no_mlir():
    run(
        """
        import sys
        import primax_core
        loaded = set(sys.modules)
        assert not [m for m in loaded if "native_targets" in m or m.endswith("extend.native")]
        import ctypes
        from primax_core.extend import native
        from primax_core.extend.runtime import started_clients
        function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda frame: None)
        native.register("acme_lazy", function)
        native.batch_partitionable("acme_lazy")
        assert native.include_dir().endswith("include")
        assert not started_clients() and "jaxlib.mlir" not in sys.modules
        """
    )


def test_headers(monkeypatch, tmp_path):
    import importlib.util
    from pathlib import Path

    assert (Path(native.include_dir()) / "xla" / "ffi" / "api" / "ffi.h").is_file()
    spec = types.SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(ImportError, match="has no headers"):
        native.include_dir()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="jaxlib is not installed: pip install"):
        native.include_dir()


# Callbacks


def test_callback_with_arrays():
    def doubled(x):
        return [np.asarray(x) * np.float32(2)]

    call = primitive(lambda ctx, x: native.callback(ctx, doubled, [x]))
    assert np.asarray(call(np.float32([1, 2]))[0]).tolist() == [2, 4]
    wrong = primitive(lambda ctx, x: native.callback(ctx, lambda x: [], [x]))
    with pytest.raises(JaxRuntimeError, match="returned 0 arrays"):
        wrong(np.float32(1))


def test_callback_with_buffers():
    seen: list[Any] = []

    def doubled(context, x, out):
        seen.append((x.shape, x.dtype, x.ndim, x.writeable, out.writeable))
        np.asarray(out)[...] = np.asarray(x) * 2

    call = primitive(lambda ctx, x: native.callback(ctx, doubled, [x], kind="buffers"))
    x = np.float32([1, 2])
    assert np.asarray(call(x)[0]).tolist() == [2, 4]
    assert seen == [((2,), F32, 1, False, True)]


def test_a_result_in_the_memory_of_an_operand():
    def increments(context, x, out):
        assert np.shares_memory(np.asarray(x), np.asarray(out))
        np.asarray(out)[...] = np.asarray(x) + 1

    options = {"kind": "buffers", "input_output_aliases": {0: 0}, "capture": True}
    call = primitive(lambda ctx, x: native.callback(ctx, increments, [x], **options))
    assert np.asarray(call(lax.full((2,), 1.0))[0]).tolist() == [2, 2]


def test_buffers_of_operands_are_read_only():
    def overwrites(context, x, out):
        np.asarray(x)[...] = 0

    call = primitive(lambda ctx, x: native.callback(ctx, overwrites, [x], kind="buffers"))
    x = lax.full((2,), 7.0)
    with pytest.raises(JaxRuntimeError, match="read-only"):
        call(x)
    assert np.asarray(x).tolist() == [7, 7]


def test_exceptions_and_results_of_callbacks_with_buffers():
    def fails(context, x, out):
        raise KeyError("no such column")

    call = primitive(lambda ctx, x: native.callback(ctx, fails, [x], kind="buffers"))
    with pytest.raises(JaxRuntimeError, match="no such column") as caught:
        call(np.float32(1))
    assert isinstance(caught.value.__cause__, KeyError)
    returns = primitive(
        lambda ctx, x: native.callback(ctx, lambda c, x, out: x, [x], kind="buffers")
    )
    with pytest.raises(JaxRuntimeError, match="write into those of the results"):
        returns(np.float32(1))


class Ordered(NamedEffect):
    """Calls that run in order."""

    keeps = ordered = True


@pytest.mark.parametrize("kind", ["arrays", "buffers"])
def test_ordered_callbacks(kind):
    seen: list[float] = []

    def note(*values):
        seen.append(float(np.asarray(values[kind == "buffers"])))
        return None if kind == "buffers" else []

    note_p = Primitive("note", multiple_results=True)
    note_p.rule(abstract)(lambda x: [])
    note_p.rule(effects)(lambda x: frozenset([Ordered()]))
    note_p.rule(lower)(
        lambda ctx, x: native.callback(
            ctx, note, [x], kind=kind, has_side_effect=True, ordered=True
        )
    )

    @jit
    def three(x):
        for _ in range(3):
            note_p.bind(x)
            x = lax.add(x, np.float32(1))
        return x

    three(np.float32(1)).block_until_ready()
    effects_barrier()
    assert seen == [1, 2, 3]


def test_callbacks_that_do_not_fit(monkeypatch):
    from primax_core._runtime import buffer_callbacks

    def lowered(**options):
        call = primitive(lambda ctx, x: native.callback(ctx, print, [x], **options))
        call.lower(np.float32(1))

    with pytest.raises(ValueError, match="it is 'arrays' or 'buffers'"):
        lowered(kind="tensors")
    for options in ({"input_output_aliases": {0: 0}}, {"capture": True}):
        with pytest.raises(ValueError, match="require kind='buffers'"):
            lowered(**options)
    monkeypatch.setattr(buffer_callbacks, "_jax", types.SimpleNamespace())
    with pytest.raises(NotImplementedError, match=r"jaxlib \d.* cannot call Python functions with"):
        lowered(kind="buffers")


def test_a_ctypes_function_is_a_handler():
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    function = kind(lambda frame: None)
    native.register("acme_ctypes", function)
    native.register("acme_ctypes", function)
    with pytest.raises(ValueError, match="another handler"):
        native.register("acme_ctypes", kind(lambda frame: None))
