"""Native functions together with the other wheels: several devices, export, the NumPy layer."""

from __future__ import annotations

import sys
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


def test_indexing_and_methods_around_a_call():
    out = primax.jit(lambda x: scale(x[1:])[0].sum() + jnp.sum(x))(X)
    assert float(out) == 3 * 5 + 28
