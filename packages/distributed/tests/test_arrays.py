"""Arrays over several devices: made of parts, moved, and used in computations."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as pc
from primax_core import device_put, jit, lax
from primax_distributed import (
    AxisType,
    Mesh,
    NamedSharding,
    P,
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
    make_mesh,
    set_mesh,
)

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def mesh_2x4() -> Mesh:
    return make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)


def named(*spec, mesh=None):
    return NamedSharding(mesh or mesh_2x4(), P(*spec))


def check(array, sharding, expected=X):
    assert array.sharding is sharding and array.committed
    assert np.array_equal(array, expected) and array.dtype == expected.dtype
    for s in array.addressable_shards:
        assert np.array_equal(s.data, expected[s.index]) and s.data.devices() == {s.device}


def test_parts_from_a_function():
    asked = []

    def part(index):
        asked.append(index)
        return X[index]

    check(make_array_from_callback((8, 8), named("x", "y"), part), named("x", "y"))
    assert len(asked) == 8 and asked[5] == (slice(4, 8), slice(2, 4))
    check(make_array_from_callback((8, 8), named("y"), part), named("y"))
    assert len(asked) == 8 + 4  # copies of a part are read once
    check(make_array_from_callback([], named(), lambda i: 2.0), named(), np.float32(2))
    with pytest.raises(ValueError, match=r"cpu:0 have shape \(8, 8\).*has shape \(4, 2\)"):
        make_array_from_callback((8, 8), named("x", "y"), lambda index: X)
    with pytest.raises(ValueError, match="dtype is int32, but the values have dtype float32"):
        make_array_from_callback((8, 8), named("x"), part, dtype=np.int32)
    with pytest.raises(ValueError, match=r"axis 0 of an array of shape \(7, 8\) has the size 7"):
        make_array_from_callback((7, 8), named("x"), part)
    with pytest.raises(TypeError, match="needs a sharding, such as a NamedSharding, got 3"):
        make_array_from_callback((8, 8), 3, part)


def test_parts_of_different_dtypes_are_refused():
    kinds = iter([np.float32, np.int32] * 4)
    with pytest.raises(ValueError, match="cpu:1 have dtype int32, but those for cpu:0 float32"):
        make_array_from_callback((8, 8), named("x", "y"), lambda i: X[i].astype(next(kinds)))


def test_parts_that_are_arrays():
    x = device_put(X, named("x", "y"))
    parts = [s.data for s in x.addressable_shards]
    make = make_array_from_single_device_arrays
    check(make((8, 8), named("x", "y"), parts), named("x", "y"))
    check(make((8, 8), named("x", "y"), parts[::-1]), named("x", "y"))
    for wrong, error, text in [
        (parts[:7], ValueError, "so it needs 8 arrays on one device each, but got 7"),
        ([*parts[:7], parts[0]], ValueError, "two of the arrays are on cpu:0"),
        ([*parts[:7], X], TypeError, "array number 7 must be a concrete array.*ndarray"),
        ([*parts[:7], x], ValueError, "array number 7 is on 8 devices"),
        ([*parts[:7], parts[7] > 0], ValueError, r"cpu:7 has type bool\[4,2\].*float32\[4, 2\]"),
    ]:
        with pytest.raises(error, match=text):
            make((8, 8), named("x", "y"), wrong)
    with pytest.raises(ValueError, match=r"type float32\[4,2\].*shape \(8, 16\)"):
        make((8, 16), named("x", "y"), parts)
    four = NamedSharding(Mesh(pc.devices()[4:8], ("z",)), P("z"))
    with pytest.raises(ValueError, match="number 0 is on cpu:0, which is not a device"):
        make((8, 2), four, parts[:4])
    parts[3].delete()
    with pytest.raises(RuntimeError, match="deleted"):
        make((8, 8), named("x", "y"), parts)


def test_values_of_this_process():
    make = make_array_from_process_local_data
    for spec in [("x", "y"), ("y",), (None, ("y", "x")), ()]:
        check(make(named(*spec), X), named(*spec))
        check(make(named(*spec), X, (8, None)), named(*spec))
    tree = make({"a": named("x"), "b": named()}, {"a": X, "b": [X, X]}, None)
    check(tree["a"], named("x"))
    check(tree["b"][1], named())
    tree = make(named("x"), {"a": X, "b": X}, {"a": (8, None), "b": None})
    check(tree["b"], named("x"))
    with pytest.raises(ValueError, match="a tree of shapes with the structure of local_data"):
        make(named("x"), {"a": X, "b": X}, {"a": (8, 8)})
    with pytest.raises(ValueError, match=r"axis 0 .* has size 8. The whole array has size 16"):
        make(named("x"), X, (16, 8))
    with pytest.raises(ValueError, match="has 1 axes, and the values of this process have 2"):
        make(named("x"), X, (8,))


def test_specs_in_place_of_shardings():
    with set_mesh(mesh_2x4()):
        check(device_put(X, P("x")), named("x"))
        check(make_array_from_callback((8, 8), P("y"), lambda i: X[i]), named("y"))
        check(jit(lambda x: x + 1, in_shardings=P("x"), out_shardings=P("y"))(X), named("y"), X + 1)
        constrained = jit(lambda x: lax.with_sharding_constraint(x, P("y", "x")))(X)
        check(constrained, named("y", "x"))
        tree = device_put({"a": X, "b": X}, {"a": P("x"), "b": None})
        check(tree["a"], named("x"))
        assert tree["b"].sharding.num_devices == 1
    for use in (
        lambda: device_put(X, P("x")),
        lambda: jit(lambda x: x, in_shardings=P("x"))(X),
        lambda: jit(lambda x: x, out_shardings=P("x"))(X),
        lambda: lax.with_sharding_constraint(X, P("x")),
    ):
        with pytest.raises(ValueError, match=r"P\('x',\) was passed in place.*set_mesh"):
            use()


def test_the_devices_of_the_mesh_in_effect():
    with set_mesh(mesh_2x4()):
        for out in (lax.add(X, 1.0), jit(lambda: lax.full((8, 8), 1.0))()):
            assert out.sharding.device_set == set(pc.devices()) and out.committed
            assert out.is_fully_replicated
        assert not device_put(X).committed and device_put(X).sharding.num_devices == 1
        with pytest.raises(ValueError, match=r"devices of the current mesh, cpu:0.*on cpu:1"):
            lax.add(device_put(X, pc.devices()[1]), 1.0)
    assert lax.add(X, 1.0).sharding.num_devices == 1


def test_results_name_axes_of_the_mesh():
    x = device_put(X, named("x", "y"))
    assert (x * 2).sharding.spec == P("x", "y")
    assert lax.transpose(x, (1, 0)).sharding.spec == P("y", "x")
    assert lax.reduce_sum(x, (0,)).sharding.spec == P("y")
    assert lax.dot(x, device_put(X, named("y", None))).sharding.spec == P("x")
    assert lax.full_like(x, 0).sharding is x.sharding
    other = Mesh(np.array(pc.devices()), ("a",))
    y = device_put(X, NamedSharding(other, P("a")))
    assert np.array_equal(x + y, X * 2)  # meshes of the same devices
    reordered = Mesh(np.array(pc.devices()[::-1]).reshape(2, 4), ("x", "y"))
    z = device_put(X, NamedSharding(reordered, P("x")))
    with pytest.raises(ValueError, match="incompatible devices"):
        lax.add(x, z)
    check(device_put(z, x.sharding), x.sharding)


@pytest.mark.parametrize("spec", [P("x"), P("x", "y"), P()])
@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16"])
def test_arrays_in_host_memory(spec, dtype):
    host = NamedSharding(mesh_2x4(), spec, memory_kind="pinned_host")
    plain = np.asarray(lax.convert_element_type(X, dtype))
    x = device_put(plain, host)
    check(x, host, plain)
    assert {s.data.sharding.memory_kind for s in x.addressable_shards} == {"pinned_host"}
    check(device_put(x, named("y")), named("y"), plain)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("spec, rows", [(P(), P()), (P(None, "x"), P("x")), (P("x"), None)])
def test_iteration(kind, spec, rows):
    """Rows stay on the devices of the array, unless different devices have them."""
    mesh = make_mesh((8,), ("x",), axis_types=(kind,))
    values = np.arange(128, dtype=np.float32).reshape(8, 16)
    x = pc.device_put(values, NamedSharding(mesh, spec))
    for row, expected in zip(x, values, strict=True):
        np.testing.assert_array_equal(row, expected)
        assert row.committed is (rows is not None)
        if rows is not None:
            assert row.sharding.is_equivalent_to(NamedSharding(mesh, rows), 1)
