"""Exported functions of several devices: shardings, calls, derivatives, untrusted modules."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import primax_core as pc
from primax_core import lax
from primax_core.errors import InvalidArtifactError
from primax_core.extend.portable_modules import PortableSharding
from primax_core.extend.runtime import TiledSharding, Tiling
from primax_core.memory import Space
from primax_interpreters import export
from primax_interpreters._export import envelope

N = 4
pytestmark = pytest.mark.skipif(len(pc.devices()) < N, reason="needs 4 devices")
X = np.arange(16, dtype=np.float32).reshape(8, 2)


def divided(*axes: int | None, n: int = N) -> TiledSharding:
    """A sharding over a mesh of the shape (2, n / 2): for each axis of the array a mesh axis."""
    groups = [() if a is None else (a,) for a in axes]
    return TiledSharding(pc.devices()[:n], Tiling.along_mesh((2, n // 2), groups))


@pytest.fixture(scope="module")
def exported() -> export.Exported:
    @pc.jit
    def f(x):
        return lax.sin(lax.with_sharding_constraint(x, divided(1, None)))

    return export.export(f)(pc.device_put(X, divided(0, None)))


def test_attributes(exported) -> None:
    assert exported.nr_devices == N
    assert exported.in_shardings_hlo == (None,) and exported.out_shardings_hlo == (None,)
    mesh = (("m0", 2), ("m1", 2))
    assert exported._in_named_shardings == (PortableSharding(mesh, (("m0",), ())),)
    assert exported._out_named_shardings == (None,)
    assert "sdy.sharding_constraint" in exported.mlir_module()
    with pytest.raises(TypeError, match="shardings of an exported function need a mesh, got 3"):
        exported.in_shardings_jax(3)
    assert exported.out_shardings_jax(3) == (None,)


@pytest.mark.parametrize("wrap", [lambda f: f, pc.jit])
def test_calls(exported, wrap) -> None:
    for e in (exported, export.deserialize(exported.serialize())):
        assert e._in_named_shardings == exported._in_named_shardings
        for sharding in (divided(0, None), divided(None, 1), divided(None, None)):
            out = wrap(e.call)(pc.device_put(X, sharding))
            assert np.allclose(out, np.sin(X))
            assert out.sharding.is_equivalent_to(divided(1, None), 2)


def test_calls_with_another_number_of_devices(exported) -> None:
    message = r"was exported for 4 devices and is called in a computation with {}: call it with"
    with pytest.raises(ValueError, match=message.format(1)):
        exported.call(X)
    with pytest.raises(ValueError, match=message.format(2)):
        pc.jit(exported.call)(pc.device_put(X, divided(0, None, n=2)))


def test_functions_of_one_device_run_on_several() -> None:
    e = export.export(pc.jit(lax.sin))(X)
    assert e.nr_devices == 1 and "sdy" not in e.mlir_module()
    out = pc.jit(e.call)(pc.device_put(X, divided(0, None)))
    assert out.sharding.num_devices == N and np.allclose(out, np.sin(X))


def test_derivatives(exported) -> None:
    blob = exported.serialize(vjp_order=2)
    e = export.deserialize(blob)
    x = pc.device_put(X, divided(0, None))
    grad = pc.jit(pc.grad(lambda x: lax.reduce_sum(e.call(x), (0, 1))))(x)
    assert np.allclose(grad, np.cos(X)) and grad.sharding.num_devices == N
    vjp = e.vjp()
    assert vjp.nr_devices == N and vjp.vjp().nr_devices == N
    assert vjp._in_named_shardings == (*e._in_named_shardings, None)
    assert vjp._out_named_shardings == e._in_named_shardings
    with pytest.raises(ValueError, match="was exported for 4 devices"):
        vjp.call(X, X)


def test_exported_again(exported) -> None:
    x = pc.device_put(X, divided(0, None))
    again = export.export(pc.jit(lambda x: exported.call(x) * 2))(x)
    assert again.nr_devices == N
    out = export.deserialize(again.serialize()).call(x)
    assert np.allclose(out, 2 * np.sin(X))


def test_several_platforms() -> None:
    def f(x):
        y = lax.platform_dependent(x, cuda=lax.cos, default=lax.sin)
        return lax.with_sharding_constraint(y, divided(None, 1))

    x = pc.device_put(X, divided(0, None))
    e = export.export(pc.jit(f), platforms=["cpu", "cuda"])(x)
    out = export.deserialize(e.serialize()).call(x)
    assert np.allclose(out, np.sin(X))
    assert out.sharding.is_equivalent_to(divided(None, 1), 2)


def test_symbolic_sizes() -> None:
    (n,) = export.symbolic_shape("n")
    f = pc.jit(lambda x: lax.sin(lax.with_sharding_constraint(x, divided(1, None))))
    shape = pc.ShapeDtypeStruct((2 * n, 2), np.float32, sharding=divided(0, None))
    e = export.export(f)(shape)
    for again in (e, export.deserialize(e.serialize())):
        out = again.call(pc.device_put(X, divided(None, None)))
        assert np.allclose(out, np.sin(X)) and out.sharding.num_devices == N


def test_partial_values_and_orders_of_devices_are_refused() -> None:
    order = np.array([[3], [1], [2], [0]])
    permuted = TiledSharding(pc.devices()[:N], Tiling((4, 1), order.reshape(4, 1, 1)))
    with pytest.raises(ValueError, match="cannot be exported: only divisions along axes"):
        export.export(pc.jit(lax.sin))(pc.device_put(X, permuted))


# Untrusted artifacts

MESH = 'mesh<["a"=2, "b"=2]>'
TEXT = """module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<8x2xf32> ARGUMENT) -> (tensor<8x2xf32> RESULT) {
    OPERATION
    return %y : tensor<8x2xf32> } }"""
DOUBLE = "%y = stablehlo.add %x, %x : tensor<8x2xf32>"


def artifact(exported, argument="", result="", operation=DOUBLE, text=TEXT, **changes) -> bytes:
    from jaxlib import _jax
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    text = text.replace("ARGUMENT", f"{{{argument}}}").replace("RESULT", f"{{{result}}}")
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        stablehlo.register_dialect(context)
        sdy.register_dialect(context)
        module = ir.Module.parse(text.replace("OPERATION", operation))
        data = _jax.mlir.serialize_portable_artifact(
            module.operation.get_asm(binary=False).encode(), "1.13.0", True
        )
    changed = dataclasses.replace(exported, mlir_module_serialized=data, **changes)
    return bytes(changed.serialize())


def sharding(dims: str, mesh: str = MESH, rest: str = "") -> str:
    return f"sdy.sharding = #sdy.sharding<{mesh}, [{dims}]{rest}>"


def test_sharding_constraints_are_accepted(exported) -> None:
    constraint = f"%y = sdy.sharding_constraint %x <{MESH}, [{{}}, {{?}}]> : tensor<8x2xf32>"
    blob = artifact(exported, sharding('{"a", "b"}, {}'), sharding('{}, {"b"}'), constraint)
    out = export.deserialize(blob).call(pc.device_put(X, divided(None, None)))
    assert np.array_equal(out, X) and out.sharding.num_devices == N


GROUPS = "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"
OPERATIONS = {
    "collective": (
        f"""%y = "stablehlo.all_reduce"(%x) <{{replica_groups = {GROUPS}}}> ({{
          ^bb0(%p: tensor<f32>, %q: tensor<f32>):
            %s = stablehlo.add %p, %q : tensor<f32>
            stablehlo.return %s : tensor<f32> }}) : (tensor<8x2xf32>) -> tensor<8x2xf32>""",
        "its operation stablehlo.all_reduce communicates between devices",
    ),
    "partition": (
        """%i = stablehlo.partition_id : tensor<ui32>
          %f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>
          %y = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x2xf32>""",
        "its operation stablehlo.partition_id communicates between devices",
    ),
    "region": (
        f"""%y = sdy.manual_computation(%x) in_shardings=[<{MESH}, [{{}}, {{}}]>]
          out_shardings=[<{MESH}, [{{}}, {{}}]>] manual_axes={{}} (%z: tensor<8x2xf32>) {{
            sdy.return %z : tensor<8x2xf32> }} : (tensor<8x2xf32>) -> tensor<8x2xf32>""",
        "its operation sdy.manual_computation computes on the parts of arrays",
    ),
    "barrier": (
        "%y = sdy.propagation_barrier %x allowed_direction=NONE : tensor<8x2xf32>",
        "its operation sdy.propagation_barrier computes on the parts",
    ),
    "attribute": (
        '%y = stablehlo.add %x, %x {mhlo.sharding = "{replicated}"} : tensor<8x2xf32>',
        "an attribute mhlo.sharding in an unexpected place",
    ),
    "frontend": (
        '%y = stablehlo.add %x, %x {mhlo.frontend_attributes = {xla.sdy.sharding = "[]"}} '
        ": tensor<8x2xf32>",
        "it has shardings in mhlo.frontend_attributes",
    ),
    "devices": (
        f"%y = sdy.sharding_constraint %x <{MESH.replace('2]', '4]')}, [{{}}, {{}}]> "
        ": tensor<8x2xf32>",
        "does not have 4 devices",
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_that_are_refused(exported, name) -> None:
    operation, message = OPERATIONS[name]
    blob = artifact(exported, operation=operation)
    with pytest.raises(InvalidArtifactError, match=re.escape(message)):
        export.deserialize(blob)
    if name not in ("attribute", "frontend", "devices"):
        with pytest.raises(InvalidArtifactError, match="trusted=True"):
            export.deserialize(blob)
        assert export.deserialize(blob, trusted=True).nr_devices == N


SHARDINGS = {
    sharding('{"a"}, {}', 'mesh<["a"=2]>'): "does not have 4 devices",
    sharding('{"a"}, {}', 'mesh<["a"=4], device_ids=[1, 0, 2, 3]>'): "an order of devices",
    sharding('{}, {"a", "b"}'): "does not divide a value of type tensor<8x2xf32>",
    sharding('{"a":(1)2}, {}', 'mesh<["a"=4]>'): "an axis that its mesh does not have",
    sharding('{"a"}, {}', rest=', replicated={"b"}'): "has replicated or partial values",
    sharding('{"a"}p1, {}'): "has priorities",
    'sdy.sharding = "text"': "is no sharding",
    'mhlo.sharding = "{replicated}"': "an attribute mhlo.sharding in an unexpected place",
}


@pytest.mark.parametrize("place", ["argument", "result"])
@pytest.mark.parametrize("text", SHARDINGS)
def test_shardings_that_are_refused(exported, text, place) -> None:
    try:
        blob = artifact(exported, **{place: text})
    except Exception as error:  # the writer checks it, too
        pytest.skip(str(error)[:80])
    with pytest.raises(InvalidArtifactError, match=re.escape(SHARDINGS[text])):
        export.deserialize(blob)


def test_named_meshes_are_refused(exported) -> None:
    text = TEXT.replace("1 : i32} {", '1 : i32} { sdy.mesh @mesh = <["a"=2, "b"=2]>')
    with pytest.raises(InvalidArtifactError, match=r"sdy\.mesh outside of its functions"):
        export.deserialize(artifact(exported, text=text))


def test_numbers_of_devices_must_agree(exported) -> None:
    none = {"_in_named_shardings": (None,)}
    for n in (1, 2, 8):
        with pytest.raises(InvalidArtifactError, match=rf"num_partitions is 4, not {n}"):
            export.deserialize(artifact(exported, nr_devices=n, **none))
    with pytest.raises(InvalidArtifactError, match="does not have 2 devices along its axes"):
        export.deserialize(artifact(exported, nr_devices=2))


AXES = (("a", 2), ("b", 2))


@pytest.mark.parametrize(
    "wrong, message",
    [
        (PortableSharding(AXES, (("a",),)), "one entry for each axis"),
        (PortableSharding(AXES, (("a",), ("a",))), "unknown or doubled axes"),
        (PortableSharding(AXES, ((), ("a", "b"))), "into equal parts"),
        (PortableSharding((("a", 2), ("a", 2)), ((), ())), "does not have 4 devices"),
        (PortableSharding((("a", 2),), ((), ())), "does not have 4 devices"),
        (PortableSharding(AXES, ((), ()), "attic"), "unknown memory kind 'attic'"),
        (PortableSharding((), ((), ()), "attic"), "unknown memory kind 'attic'"),
    ],
)
def test_wrong_shardings_of_arguments(exported, wrong, message) -> None:
    changed = dataclasses.replace(exported, _in_named_shardings=(wrong,))
    with pytest.raises(InvalidArtifactError, match=message):
        export.deserialize(changed.serialize())


def test_open_axes_and_memory_kinds_are_kept(exported) -> None:
    described = PortableSharding(AXES, (None, ("b",)), "pinned_host")
    changed = dataclasses.replace(exported, _in_named_shardings=(described,))
    assert export.deserialize(changed.serialize())._in_named_shardings == (described,)


@pytest.mark.parametrize("wrap", [lambda f: f, pc.jit])
def test_results_have_the_memory_kind_of_the_export(wrap) -> None:
    host = divided(1, None).with_memory_kind("pinned_host")
    e = export.export(pc.jit(lambda x: (lax.sin(x), x), out_shardings=(host, None)))(X)
    e = export.deserialize(e.serialize())
    first, second = wrap(e.call)(pc.device_put(X, divided(0, None)))
    assert first.sharding.memory_kind == "pinned_host" != second.sharding.memory_kind


@pytest.mark.parametrize("open_result", [False, True])
def test_transfers_to_host_memory_are_kept(open_result) -> None:
    host = divided(1, None).with_memory_kind("pinned_host")
    place = Space.Host if open_result else host
    x = pc.device_put(X, divided(0, None))
    e = export.export(pc.jit(lambda x: (pc.device_put(lax.sin(x), place), x)))(x)
    e = export.deserialize(e.serialize())
    first, second = e.call(x)
    assert first.sharding.memory_kind == "pinned_host" != second.sharding.memory_kind
    np.testing.assert_allclose(first, np.sin(X), rtol=1e-6)


def test_readers_of_the_first_minor_version_see_an_addition(exported) -> None:
    assert (envelope.MAJOR, envelope.MINOR) == (1, 1)
