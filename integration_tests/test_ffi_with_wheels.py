"""Native functions together with the other wheels: several devices, export, the NumPy layer."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "packages/ffi/tests"))

from ffi_library import registered, run

import primax
import primax.numpy as jnp
from primax.ffi import ffi_call, native_function

S = primax.ShapeDtypeStruct
F32 = np.dtype(np.float32)
X = np.arange(8, dtype=np.float32).reshape(4, 2)


def scale(x):
    call = ffi_call(registered("acme_scale"), S(x.shape, x.dtype), vmap_method="broadcast_all")
    return call(x, by=np.float32(3), fail="")


def test_keys_are_refused():
    call = ffi_call("acme_scale", S((2,), F32))
    with pytest.raises(TypeError, match=r"operand 0 .* has dtype key<fry>.* random.key_data"):
        call(primax.random.key(0))
    with pytest.raises(TypeError, match=r"result 0 .* has dtype key<fry>.* random.key_data"):
        ffi_call("acme_scale", primax.random.key(0))


def test_export():
    export = primax.export
    with pytest.raises(ValueError, match=r"disabled_checks=.*custom_call\('acme_scale'\)"):
        export.export(primax.jit(scale))(S((4, 2), F32))
    allowed = [export.DisabledSafetyCheck.custom_call("acme_scale")]
    exported = export.export(primax.jit(scale), disabled_checks=allowed)(S((4, 2), F32))
    restored = primax.export.deserialize(exported.serialize())
    assert np.asarray(restored.call(X)).tolist() == (3 * X).tolist()


def test_export_of_a_native_function():
    pytest.importorskip("numba", reason="numba is not installed: pip install 'primax-ffi[numba]'")

    @native_function("f32[b n]; by: f32 -> f32[b n]", name="acme_exported")
    def exported_scale(x, y, by=2):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = by * x[i, j]

    export = primax.export
    with pytest.raises(ValueError, match=r"disabled_checks=.*custom_call\('acme_exported'\)"):
        export.export(primax.jit(exported_scale))(S((4, 2), F32))
    allowed = [export.DisabledSafetyCheck.custom_call("acme_exported")]
    (rows,) = export.symbolic_shape("rows")
    exported = export.export(primax.jit(exported_scale), disabled_checks=allowed)(S((rows, 2), F32))
    restored = export.deserialize(exported.serialize())
    assert np.asarray(restored.call(X)).tolist() == (2 * X).tolist()


def test_exported_programs_compile_their_native_functions(tmp_path):
    pytest.importorskip("numba", reason="numba is not installed: pip install 'primax-ffi[numba]'")
    code = """
        import os, sys
        import numpy as np
        from primax import ShapeDtypeStruct, export, jit
        from primax.ffi import native_function

        @native_function("f32[n] -> f32[n]", name="acme_halved")
        def halved(x, y):
            for i in range(x.shape[0]):
                y[i] = x[i] / 2

        file = os.environ["EXPORTED"]
        if not os.path.exists(file):
            check = export.DisabledSafetyCheck.custom_call("acme_halved")
            x = ShapeDtypeStruct((2,), np.float32)
            exported = export.export(jit(halved), disabled_checks=[check])(x)
            open(file, "wb").write(exported.serialize())
        loaded = export.deserialize(open(file, "rb").read(), trusted=True)
        assert "numba" not in sys.modules
        print(np.asarray(loaded.call(np.float32([1, 2]))).tolist())
    """
    for _ in range(2):
        assert run(code, library=False, EXPORTED=str(tmp_path / "e")) == "[0.5, 1.0]"


def test_adapters_of_the_reference():
    from primax.extend.core import Primitive
    from primax.ffi import ffi_lowering
    from primax.interpreters import mlir

    prim = Primitive("scale_of_the_reference")
    prim.def_abstract_eval(lambda x, **_: x)
    mlir.register_lowering(prim, ffi_lowering(registered("acme_scale")))
    out = primax.jit(lambda x: prim.bind(x, by=np.float32(2), fail=""))(X)
    assert np.asarray(out).tolist() == (2 * X).tolist()


def test_several_devices():
    run(
        """
        import ctypes, os, sys
        import primax
        primax.config.update("num_cpu_devices", 4)
        import numpy as np
        import primax.numpy as jnp
        from primax import P, NamedSharding, make_mesh, shard_map
        from primax.ffi import ffi_call, native_function, register_ffi_target

        library = ctypes.CDLL(os.environ["ACME_LIBRARY"])
        for name in ("acme_scale", "acme_describe", "acme_increment"):
            register_ffi_target(name, getattr(library, name))

        def scale(x):
            call = ffi_call("acme_scale", primax.ShapeDtypeStruct(x.shape, x.dtype))
            return call(x, by=np.float32(3), fail="")

        def size(x):
            out = ffi_call("acme_describe", primax.ShapeDtypeStruct((2,), np.int32))(x)
            return out[1:]

        mesh = make_mesh((4,), ("i",), axis_types=(primax.sharding.AxisType.Auto,))
        x = np.arange(8, dtype=np.float32).reshape(4, 2)
        divided = primax.device_put(x, NamedSharding(mesh, P("i")))
        out = primax.jit(lambda x: scale(x) + 1)(divided)
        assert np.asarray(out).tolist() == (3 * x + 1).tolist()
        assert np.asarray(primax.jit(size)(divided)).tolist() == [32]
        parts = primax.jit(shard_map(scale, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
        assert np.asarray(parts(divided)).tolist() == (3 * x).tolist()
        assert "all-gather" not in parts.lower(divided).compile().as_text()
        sizes = shard_map(size, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
        assert np.asarray(sizes(divided)).tolist() == [8, 8, 8, 8]
        """
    )


DEVICES = """
import ctypes, os
import primax
primax.config.update("num_cpu_devices", 8)
import numpy as np
import primax.numpy as jnp
from primax import P, NamedSharding, make_mesh, shard_map
from primax.ffi import Signature, ffi_call, native_function, register_ffi_target
from primax.sharding import AxisType

mesh = make_mesh((4, 2), ("i", "j"), axis_types=(AxisType.Auto,) * 2)
x = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
w = np.arange(8, dtype=np.float32)
put = lambda x, *spec: primax.device_put(x, NamedSharding(mesh, P(*spec)))


def compiled(function, *args, expected=None, **options):
    made = primax.jit(function, **options).lower(*args).compile()
    out = made(*args)
    for a, b in zip(primax.tree.leaves(out), primax.tree.leaves(expected)):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    spec = primax.tree.leaves(out)[0].sharding.spec
    return spec, "all-gather" in made.as_text(), made.as_text()
"""


def test_division_among_devices():
    run(
        DEVICES
        + """
library = ctypes.CDLL(os.environ["ACME_LIBRARY"])
signature = Signature(["f32[b n]", "f32[b n]"], ["f32[b n]", "f32[b n]"])
register_ffi_target("acme_sum_and_product", library.acme_sum_and_product, signature=signature)
expected = [x + x, x * x]

def call(partition):
    return ffi_call("acme_sum_and_product", partition=partition, vmap_method="broadcast_all")

whole = compiled(call(None), put(x, "i"), put(x, "i"), expected=expected)
assert whole[:2] == (P(), True)
for partition in ("batch", "b _, b _ -> b _, b _", "b n, b n -> b n, b n"):
    spec, gathers, text = compiled(call(partition), put(x, "i"), put(x, "i"), expected=expected)
    assert (spec, gathers) == (P("i"), False) and "f32[4,8]" in text
    spec, gathers, _ = compiled(
        call(partition), put(x, ("i", "j")), put(x, ("i", "j")), expected=expected
    )
    assert (spec, gathers) == (P(("i", "j")), False)
    # Shardings propagate backward, and through the operations around the call.
    spec, gathers, _ = compiled(
        lambda x: call(partition)(x * 2, x + 1), put(x), expected=[x * 3 + 1, x * 2 * (x + 1)],
        out_shardings=NamedSharding(mesh, P("i")),
    )
    assert (spec, gathers) == (P("i"), False)

spec, gathers, text = compiled(call("b n, b n -> b n, b n"), put(x, "i", "j"), put(x, "i", "j"),
                               expected=expected)
assert (spec, gathers) == (P("i", "j"), False) and "f32[4,4]" in text
spec, gathers, _ = compiled(call("batch"), put(x, "i", "j"), put(x, "i", "j"), expected=expected)
assert (spec, gathers) == (P("i"), True), (spec, gathers)
odd = lambda x: call("batch")(x[:6], x[:6])
compiled(odd, put(x, "i"), expected=[x[:6] * 2, x[:6] ** 2])

inside = shard_map(call("batch"), mesh=mesh, in_specs=P("i"), out_specs=P("i"))
spec, gathers, text = compiled(inside, put(x, "i"), put(x, "i"), expected=expected)
assert (spec, gathers) == (P("i"), False) and "f32[4,8]" in text

xs = np.stack([x, x + 1, x + 2, x + 3])
mapped = primax.vmap(call("batch"))
spec, gathers, text = compiled(mapped, put(xs, "i", "j"), put(xs, "i", "j"),
                               expected=[xs + xs, xs * xs])
assert (spec, gathers) == (P("i", "j"), False) and "f32[1,8,8]" in text
mapped = primax.vmap(call("batch"), spmd_axis_name="i")
spec, _, text = compiled(mapped, put(xs), put(xs), expected=[xs + xs, xs * xs])
assert "f32[1,16,8]" in text
for name in ("k", ("i", "j")):
    try:
        compiled(primax.vmap(call("batch"), spmd_axis_name=name), put(xs), put(xs))
        raise AssertionError
    except ValueError as error:
        assert "native function, which the mesh {'i': 4, 'j': 2} does not divide so" in str(error)

@primax.custom_vjp
def product(x, y):
    return call("batch")(x, y)[1]

product.defvjp(lambda x, y: (product(x, y), (x, y)),
               lambda xy, g: (product(g, xy[1]), product(xy[0], g)))
loss = lambda x, y: product(x, y).sum()
spec, gathers, _ = compiled(primax.grad(loss), put(x, "i"), put(x + 1, "i"), expected=x + 1)
assert (spec, gathers) == (P("i"), False)

report = primax.explain(call(None), put(x, "i"), put(x, "i"))
assert {c.kind for c in report.collectives} == {"all-gather"}
assert not primax.explain(call("batch"), put(x, "i"), put(x, "i")).collectives

explicit = make_mesh((4, 2), ("i", "j"), axis_types=(AxisType.Explicit,) * 2)
with primax.set_mesh(explicit):
    y = primax.device_put(x, NamedSharding(explicit, P("i")))
    spec, gathers, _ = compiled(call("batch"), y, y, expected=expected)
    assert (spec, gathers) == (P("i", None), False)
"""
    )


def test_division_along_explicit_axes():
    run(
        DEVICES
        + """
library = ctypes.CDLL(os.environ["ACME_LIBRARY"])
for name in ("acme_scale", "acme_sum_and_product"):
    register_ffi_target(name, getattr(library, name))
explicit = make_mesh((4, 2), ("i", "j"), axis_types=(AxisType.Explicit,) * 2)
square = x[:8] + 0

def kinds(partition, *spec):
    scale = ffi_call("acme_scale", primax.ShapeDtypeStruct((8, 8), np.float32), partition=partition)
    call = lambda x: scale(x, by=np.float32(3), fail="")
    y = primax.device_put(square, NamedSharding(explicit, P(*spec)))
    spec, _, _ = compiled(call, y, expected=3 * square)
    exchanges = {c.kind for c in primax.explain(call, y).collectives}
    return spec, primax.typeof(call(y)).sharding.spec, exchanges

with primax.set_mesh(explicit):
    assert kinds("b _ -> b _", "i") == (P("i", None), P("i", None), set())
    assert kinds("a b -> a b", "i", "j") == (P("i", "j"), P("i", "j"), set())
    # What stays whole is whole in the result too: the operand alone is exchanged.
    spec, type_, collectives = kinds("b _ -> b _", None, "i")
    assert (spec, type_, collectives) == (P(None, None), P(None, None), {"all-gather"})
    spec, type_, collectives = kinds("b _ -> b _", "i", "j")
    assert (spec, type_, collectives) == (P("i", None), P("i", None), {"all-gather"})
    assert kinds("_ a -> a _", "i")[:2] == (P(None, None), P(None, None))
    # No exchange: the divided axis of the operand is another one of the result.
    def elements(partition, *spec):
        first = ffi_call("acme_sum_and_product", [primax.ShapeDtypeStruct((8, 8), np.float32)] * 2,
                         partition=partition)
        y = primax.device_put(square, NamedSharding(explicit, P(*spec)))
        made = primax.jit(first).lower(y, y).compile()
        return primax.typeof(primax.jit(first)(y, y)[0]).sharding.spec, made.as_text()

    spec, text = elements("_ a, _ a -> a _, a _", None, "i")
    assert spec == P("i", None) and "all-to-all" not in text and "all-gather" not in text
"""
    )


def test_division_of_functions_that_numba_compiles():
    pytest.importorskip("numba", reason="numba is not installed: pip install 'primax-ffi[numba]'")
    run(
        DEVICES
        + """
@native_function("f32[... n], f32[n] -> f32[... n]")
def scaled(x, w, y):
    for i in range(x.shape[0]):
        y[i] = x[i] * w[i]

spec, gathers, text = compiled(scaled, put(x, "i"), put(w), expected=x * w)
assert (spec, gathers) == (P("i"), False) and "f32[4,8]" in text

@native_function("f32[n], f32[n] -> f32[n]")
def summed(x, w, y):
    total = np.float32(0)
    for i in range(x.shape[0]):
        total += x[i]
        y[i] = total * w[i]

spec, gathers, text = compiled(primax.vmap(summed, (0, None)), put(x, "i"), put(w),
                               expected=x.cumsum(1) * w)
assert (spec, gathers) == (P("i"), False)
spec, gathers, text = compiled(summed, put(x[:, 0], "i"), put(x[:, 1], "i"),
                               expected=x[:, 0].cumsum() * x[:, 1])
assert gathers

# A program for several devices with symbolic sizes.
export = primax.export
(n,) = export.symbolic_shape("4*n")
arg = primax.ShapeDtypeStruct((n, 8), np.float32, sharding=NamedSharding(mesh, P("i")))
allowed = [export.DisabledSafetyCheck.custom_call(scaled.name)]
exported = export.export(primax.jit(lambda x: scaled(x, w)), disabled_checks=allowed)(arg)
np.testing.assert_allclose(exported.call(put(x, "i")), x * w, rtol=1e-6)
""",
        library=False,
    )


def test_indexing_and_methods_around_a_call():
    out = primax.jit(lambda x: scale(x[1:])[0].sum() + jnp.sum(x))(X)
    assert float(out) == 3 * 5 + 28


def test_new_projects_are_built_with_the_oldest_jaxlib_of_the_core():
    from primax_ffi._new_project import _OLDEST_JAXLIB

    core = Path(__file__).resolve().parents[1] / "packages/core/pyproject.toml"
    dependencies = tomllib.loads(core.read_text("utf-8"))["project"]["dependencies"]
    (jaxlib,) = [d for d in dependencies if d.startswith("jaxlib")]
    assert f">={_OLDEST_JAXLIB}" in jaxlib
