"""Shardings over abstract meshes: in portable modules, beside devices, of another size."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import primax_core as pc
import primax_distributed as pd
from primax_core import lax
from primax_core.extend import portable_modules
from primax_core.layout import Format, Layout
from primax_distributed import AbstractMesh, AxisType, NamedSharding, P, make_mesh


def lowered(fun, *args, **options):
    traced = pc.jit(fun, **options).trace(*args)
    return portable_modules.lower_portable(traced, ["tpu"])


def test_portable_modules_over_abstract_meshes():
    """They need no devices: 256 of another platform."""
    mesh = AbstractMesh((16, 16), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    rows, columns = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "y"))
    x = np.ones((32, 32), np.float32)
    typed = pc.ShapeDtypeStruct(x.shape, x.dtype, sharding=rows)
    modules = {
        "argument": lowered(lax.sin, x, in_shardings=rows),
        "type": lowered(lax.sin, typed),
        "result": lowered(lax.sin, x, out_shardings=columns),
        "constraint": lowered(lambda x: lax.with_sharding_constraint(x, columns), x),
        "region": lowered(
            pd.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()), x
        ),
    }
    assert {m.nr_devices for m in modules.values()} == {256}
    for name in ("argument", "type"):
        (described,) = modules[name].in_shardings
        assert described.over(mesh).is_equivalent_to(rows, 2)
    (described,) = modules["result"].out_shardings
    assert described.over(mesh).is_equivalent_to(columns, 2)


def test_abstract_meshes_beside_devices():
    mesh = make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    one, other = NamedSharding(mesh, P("x")), NamedSharding(mesh.abstract_mesh, P(None, "x"))
    x = np.ones((8, 8), np.float32)
    for ins, outs in ((one, other), (other, one)):
        module = lowered(lax.sin, x, in_shardings=ins, out_shardings=outs)
        assert module.nr_devices == 8 and module.everywhere.mesh is mesh
    four = NamedSharding(AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,)), P())
    with pytest.raises(ValueError, match="in_shardings and out_shardings name different devices"):
        lowered(lax.sin, x, in_shardings=one, out_shardings=four)
    with pytest.raises(ValueError, match="has no devices: its mesh is abstract"):
        pc.jit(lax.sin, in_shardings=other)(x)


X = np.arange(16, dtype=np.float32)


def reversed_mesh(mesh):
    return pd.Mesh(mesh.devices[::-1], mesh.axis_names, axis_types=mesh.axis_types)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_functions_take_the_devices_of_the_mesh_in_effect(kind):
    mesh = make_mesh((8,), ("x",), axis_types=(kind,))
    rows = NamedSharding(mesh.abstract_mesh, P("x"))
    result = pc.jit(lambda x: lax.mul(x, 2.0), out_shardings=rows)
    argument = pc.jit(lambda x: lax.mul(x, 2.0), in_shardings=rows)
    both = pc.jit(lambda xs: [lax.mul(xs[0], 2.0), xs[1]], out_shardings=[rows, None])
    for current in (mesh, reversed_mesh(mesh), mesh):
        expected = NamedSharding(current, P("x"))
        with pd.set_mesh(current):
            assert result(X).sharding == expected
            np.testing.assert_array_equal(result(X), 2 * X)
            np.testing.assert_array_equal(argument(X), 2 * X)
            assert both([X, X])[0].sharding == expected
            assert result.lower(X).compile()(X).sharding == expected
            assert pc.jit(lambda: lax.full((8,), 1.0), out_shardings=rows)().sharding == expected


def test_formats_take_the_devices_of_the_mesh_in_effect():
    mesh = make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    columns = Format(Layout((1, 0)), NamedSharding(mesh.abstract_mesh, P("x")))
    x = X.reshape(8, 2)
    with pd.set_mesh(mesh):
        out = pc.jit(lambda x: lax.mul(x, 2.0), out_shardings=columns)(x)
    assert out.sharding == NamedSharding(mesh, P("x"))
    assert out.format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(out, 2 * x)


def test_functions_take_the_devices_of_their_arguments():
    mesh = make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    rows = NamedSharding(mesh.abstract_mesh, P("x"))
    result = pc.jit(lambda x, y: lax.mul(x, y), out_shardings=rows)
    for current in (mesh, reversed_mesh(mesh)):
        x = pc.device_put(X, NamedSharding(current, P()))
        assert result(X, x).sharding == NamedSharding(current, P("x"))
    for other in (make_mesh((2,), ("x",)), make_mesh((8,), ("y",))):
        with pd.set_mesh(other), pytest.raises(ValueError, match=r"in `with set_mesh\(mesh\):`"):
            result(X, X)
    with pytest.raises(ValueError, match="has no devices: its mesh is abstract"):
        pc.device_put(X, rows)


def test_constraints_over_another_number_of_devices():
    mesh = make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    four = NamedSharding(AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,)), P("x"))
    x = pc.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match="in a computation on 8 devices: use a mesh of 8 devices"):
        pc.jit(lambda x: lax.with_sharding_constraint(lax.sin(x), four))(x)


def test_kinds_of_devices():
    kind = pd.AbstractDevice("TPU v5", 2, platform="tpu")
    assert kind == pd.AbstractDevice("TPU v5", 2, "tpu") != pd.AbstractDevice("TPU v5", 1, "tpu")
    assert len({kind, pickle.loads(pickle.dumps(kind)), copy.deepcopy(kind)}) == 1
    assert repr(kind) == "AbstractDevice(device_kind=TPU v5, num_cores=2, platform=tpu)"
    with pytest.raises(AttributeError, match="AbstractDevice is immutable"):
        kind.platform = "cpu"
