"""The current mesh: ``set_mesh``, ``use_abstract_mesh``, ``with mesh:``, caches, threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from primax_core import device_put, devices, grad, jit, lax, make_jaxpr, vmap
from primax_distributed import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    entered_mesh,
    get_abstract_mesh,
    get_mesh,
    make_mesh,
    mesh_of_specs,
    set_mesh,
    use_abstract_mesh,
)
from test_support import assert_close

DEVICES = np.array(devices())
MESH = make_mesh((2, 4), ("x", "y"))
LINE = Mesh(DEVICES, "i")


@pytest.fixture(autouse=True)
def no_mesh_remains():
    yield
    assert get_mesh().empty and get_abstract_mesh().empty and entered_mesh().empty


def test_without_a_mesh():
    assert get_mesh().empty and get_abstract_mesh() is AbstractMesh((), ())
    assert mesh_of_specs().empty


def test_blocks():
    with set_mesh(MESH) as value:
        assert value is None
        assert get_mesh() is MESH and get_abstract_mesh() is MESH.abstract_mesh
        with set_mesh(LINE):
            assert get_mesh() is LINE
        with use_abstract_mesh(LINE.abstract_mesh) as value:
            assert value is None
            assert get_mesh() is MESH and get_abstract_mesh() is LINE.abstract_mesh
            assert mesh_of_specs() is LINE.abstract_mesh
        assert get_abstract_mesh() is MESH.abstract_mesh and mesh_of_specs() is MESH
        with pytest.raises(ValueError, match=r"number of devices: .* has 3, .* has 8"):
            use_abstract_mesh(AbstractMesh((3,), "i")).__enter__()
        with set_mesh(None):
            assert get_mesh().empty and get_abstract_mesh().empty


def test_from_now_on():
    first = set_mesh(MESH)
    second = set_mesh(LINE)
    assert get_mesh() is LINE
    second.__exit__(None, None, None)
    assert get_mesh() is MESH
    second.__exit__(None, None, None)  # has no effect
    assert get_mesh() is MESH
    first.__exit__(None, None, None)
    with first:  # again
        assert get_mesh() is MESH


def test_an_error_in_a_block_restores_the_mesh():
    with pytest.raises(KeyError), set_mesh(MESH), use_abstract_mesh(LINE.abstract_mesh):
        raise KeyError


def test_a_mesh_belongs_to_a_thread():
    seen = []
    with set_mesh(MESH):
        thread = threading.Thread(target=lambda: seen.append(get_mesh().empty))
        thread.start()
        thread.join()
    assert seen == [True]


def test_traced_functions_have_the_abstract_mesh():
    traces = []

    @jit
    def scaled(x):
        traces.append(get_abstract_mesh())
        return x * max(get_abstract_mesh().size, 1)

    x = np.float32([1, 2])
    for _ in range(2):
        assert_close(scaled(x), x)
        with set_mesh(MESH):
            assert_close(scaled(x), 8 * x)
        with use_abstract_mesh(AbstractMesh((3,), "i")):
            assert_close(scaled(x), 3 * x)
    assert traces == [AbstractMesh((), ()), MESH.abstract_mesh, AbstractMesh((3,), "i")]


@pytest.mark.parametrize("transform", [jit, grad, vmap, make_jaxpr])
def test_traced_functions_may_not_depend_on_devices(transform):
    def setting(x):
        with set_mesh(MESH):
            return x

    x = np.zeros(3, np.float32) if transform is vmap else 1.0
    with pytest.raises(ValueError, match="set_mesh can only be used outside of jit"):
        transform(setting)(x)
    with pytest.raises(ValueError, match=r"get_mesh can only be .* Use get_abstract_mesh"):
        transform(lambda x: x * get_mesh().size)(x)

    def using(x):
        with use_abstract_mesh(AbstractMesh((3,), "i")):
            return x * get_abstract_mesh().size

    transform(using)(x)


def test_entered_meshes():
    with pytest.warns(DeprecationWarning, match="use `with set_mesh"), MESH as mesh:
        assert mesh is MESH and entered_mesh() is MESH and mesh_of_specs() is MESH
        assert get_mesh().empty and get_abstract_mesh().empty
        with LINE:
            assert entered_mesh() is LINE
        assert entered_mesh() is MESH
        with set_mesh(LINE):
            assert mesh_of_specs() is LINE

    @MESH
    def decorated():
        return entered_mesh()

    with pytest.warns(DeprecationWarning):
        assert decorated() is MESH


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: set_mesh(MESH.abstract_mesh), "needs a Mesh, got AbstractMesh.*use_abstract_mesh"),
        (lambda: set_mesh("x"), "needs a Mesh, got 'x' of type str"),
        (lambda: use_abstract_mesh(MESH), "needs an AbstractMesh, got .* attribute abstract_mesh"),
        (lambda: use_abstract_mesh(None), "needs an AbstractMesh, got None"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_types_of_axes():
    with set_mesh(MESH.update(axis_types=(AxisType.Auto, AxisType.Explicit))):
        assert get_abstract_mesh().explicit_axes == ("y",)


def test_constraints_of_concrete_arrays_over_an_abstract_mesh():
    mesh = make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    sharding = NamedSharding(mesh.abstract_mesh, PartitionSpec("x"))
    concrete = NamedSharding(mesh, PartitionSpec("x"))
    x = np.arange(8.0, dtype=np.float32)
    with set_mesh(mesh):
        y = lax.with_sharding_constraint(x, sharding)
        batch = vmap(lambda x: lax.with_sharding_constraint(x, sharding))(np.stack([x, x]))
    assert y.sharding is concrete and batch.sharding.spec == PartitionSpec(None, "x")
    assert_close(y, x)
    other = device_put(x, NamedSharding(mesh, PartitionSpec("y")))
    assert lax.with_sharding_constraint(other, sharding).sharding is concrete
    for value in (x, device_put(x, NamedSharding(LINE, PartitionSpec("i")))):
        with pytest.raises(ValueError, match="mesh is abstract, and neither the array"):
            lax.with_sharding_constraint(value, sharding)
