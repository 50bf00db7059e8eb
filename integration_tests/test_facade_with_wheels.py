"""The facade with every wheel installed: lazy imports, and module identity under both names."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest

import primax
import primax.numpy as jnp
import primax_numpy
from primax import random

PROGRAMS = {
    "attribute": "import primax; primax.numpy.arange(3)",
    "statement": "import primax.numpy; primax.numpy.arange(3)",
    "from": "from primax import numpy, random; numpy.arange(3); random.PRNGKey(0)",
    "alias": "import primax.numpy as jnp; jnp.arange(3)",
    "method": "import numpy, primax; assert primax.device_put(numpy.ones(3)).sum() == 3",
    "index": "import numpy, primax; assert primax.device_put(numpy.arange(3))[1] == 1",
    "update": "import numpy, primax; primax.device_put(numpy.arange(3)).at[1].set(5)",
    "product": "import numpy, primax; x = primax.device_put(numpy.ones(3)); assert x @ x == 3",
    "traced": "import numpy, primax; assert primax.jit(lambda x: x[0].sum())(numpy.ones(3)) == 1",
    "explain": "import primax; primax.explain(primax.lax.sin, 1.0)",
    "checkify": "import primax; primax.experimental.checkify.checkify(primax.lax.sin)(1.0)",
    "jet": "from primax.experimental.jet import jet; jet(lambda x: x * x, (1.0,), ([1.0],))",
    "core first": "import primax_core, primax; primax.numpy.ones(3).sum()",
    "submodule": "import primax.numpy.linalg as la; la.norm(__import__('numpy').ones(3))",
    "lazy submodule": "import primax.numpy as jnp; jnp.fft.fft(jnp.ones(4))",
    "wheel first": "import primax_numpy, primax; primax.numpy.ones(3).sum()",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_wheels_are_loaded_on_first_use(name: str) -> None:
    subprocess.run([sys.executable, "-c", PROGRAMS[name]], check=True)


def test_import_loads_no_optional_wheel() -> None:
    code = (
        "import sys, primax; dir(primax); "
        "names = ('distributed', 'ffi', 'interpreters', 'kernels', 'numpy', 'nn', 'scipy');"
        "wheels = {f'primax_{name}' for name in names};"
        "assert not wheels & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["numpy", "numpy.linalg", "numpy.fft", "random", "image", "ops"])
def test_modules_are_shared_with_the_wheels(name: str) -> None:
    below = name.removeprefix("numpy").lstrip(".")
    wheel = importlib.import_module(f"primax_numpy.{below}" if below else "primax_numpy")
    assert importlib.import_module(f"primax.{name}") is wheel
    member = primax
    for part in name.split("."):
        member = getattr(member, part)
    assert member is wheel


@pytest.mark.parametrize(
    "name", ["nn", "nn.initializers", "example_libraries.stax", "example_libraries.optimizers"]
)
def test_nn_modules_are_shared_with_the_wheel(name: str) -> None:
    below = name.removeprefix("nn").lstrip(".")
    wheel = importlib.import_module(f"primax_nn.{below}" if below else "primax_nn")
    assert importlib.import_module(f"primax.{name}") is wheel


def test_kernels_are_those_of_the_wheel() -> None:
    import primax_kernels

    pallas = importlib.import_module("primax.experimental.pallas")
    assert pallas is primax_kernels and primax.experimental.pallas is primax_kernels
    for name in ("tpu", "triton"):
        module = importlib.import_module(f"primax.experimental.pallas.{name}")
        assert module is importlib.import_module(f"primax_kernels.{name}")


def test_native_functions_are_those_of_the_wheel() -> None:
    import primax_ffi

    assert primax.ffi is primax_ffi and importlib.import_module("primax.ffi") is primax_ffi
    assert importlib.import_module("primax.experimental.buffer_callback").buffer_callback is (
        primax_ffi.buffer_callback.buffer_callback
    )


def test_names_of_several_devices_are_those_of_the_wheel() -> None:
    import primax_distributed as distributed
    from primax import _several_devices

    for name in _several_devices.OF_ROOT:
        assert getattr(primax, name) is getattr(distributed, name) and name in dir(primax)
    for name in _several_devices.OF_SHARDING:
        assert getattr(primax.sharding, name) is getattr(distributed, name)
        assert name in dir(primax.sharding)
    assert primax.experimental.mesh_utils is distributed.mesh_utils
    assert primax.experimental.custom_partitioning is distributed.custom_partitioning
    assert primax.typeof(1.0).sharding.spec is primax.P()


def test_shardings_of_types_without_one_have_an_entry_for_each_axis() -> None:
    mesh = primax.sharding.AbstractMesh((2, 4), ("a", "b"))
    aval = primax.core.ShapedArray((3, 2), "float32")
    assert aval.sharding.spec is primax.P(None, None) and aval.sharding.mesh.empty
    with primax.sharding.use_abstract_mesh(mesh):
        assert aval.sharding is primax.NamedSharding(mesh, primax.P(None, None))
        assert primax.core.ShapedArray((3, 2), "float32", sharding=aval.sharding) is aval
    changed = aval.sharding.update(spec=primax.P(None))
    assert primax.core.ShapedArray((2,), "float32", sharding=changed).update(shape=(3, 2)) is aval


PRIVATE = """
import primax.as_jax
primax.as_jax.install()
import warnings
import jax
from jax._src.mesh import BaseMesh, Mesh, empty_abstract_mesh, empty_concrete_mesh, thread_resources
from jax._src.named_sharding import NamedSharding
from jax._src.partition_spec import PartitionSpec, UnconstrainedSingleton
from jax._src.sharding_impls import UNSPECIFIED, make_mesh, set_mesh
assert issubclass(Mesh, BaseMesh) and Mesh is jax.sharding.Mesh
assert NamedSharding is jax.NamedSharding and PartitionSpec is jax.P and make_mesh is jax.make_mesh
assert isinstance(jax.P.UNCONSTRAINED, UnconstrainedSingleton)
assert empty_concrete_mesh.empty and empty_abstract_mesh is jax.sharding.get_abstract_mesh()
mesh = jax.make_mesh((1,), ("x",))
assert thread_resources.env.physical_mesh.empty
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    with mesh:
        assert jax.interpreters.pxla.thread_resources.env.physical_mesh is mesh
assert thread_resources.env.physical_mesh.empty
from jax._src.numpy import lax_numpy
import jax.numpy
lax_numpy.einsum  # its module has the name of a private function of the reference
assert not hasattr(lax_numpy, "_einsum")
from jax._src.state.indexing import Slice, dslice
assert isinstance(dslice(0, 3), Slice)
from jax.experimental import topologies
attached = topologies.get_attached_topology()
sizes = (len(attached.devices),)
assert topologies.make_mesh(attached, sizes, ("x",)).axis_names == ("x",)
"""


def test_private_modules_for_meshes() -> None:
    subprocess.run([sys.executable, "-c", PRIVATE], check=True)


HOST = """
import primax.as_jax
primax.as_jax.install()
import numpy as np
import jax
import jax.numpy as jnp
constants = np.ones((2, 3))

def f(x):
    assert jnp.reshape(constants, (3, -1), order="F").all(-1).tolist() == [True] * 3
    assert not np.shares_memory(jnp.reshape(constants, 6, copy=True), constants)
    assert isinstance(jnp.reshape(constants, 6, out_sharding=None), np.ndarray)
    return jnp.reshape(x, -1)

assert isinstance(jax.jit(f)(constants), jax.Array) and isinstance(f(jnp.ones(3)), jax.Array)
assert isinstance(f(constants), np.ndarray) and jnp.reshape.__name__ == "reshape"
primax.as_jax.uninstall()
assert isinstance(jnp.reshape(constants, -1), primax.Array)
"""


def test_functions_of_numpy_arrays_that_return_numpy_arrays() -> None:
    subprocess.run([sys.executable, "-c", HOST], check=True)


@pytest.mark.parametrize(
    "name",
    ["special", "stats", "stats.norm", "linalg", "sparse.linalg", "optimize", "integrate", "fft"],
)
def test_scipy_modules_are_shared_with_the_wheel(name: str) -> None:
    wheel = importlib.import_module(f"primax_scipy.{name}")
    assert importlib.import_module(f"primax.scipy.{name}") is wheel


def test_names_are_shared_with_the_wheels() -> None:
    assert jnp is primax_numpy
    assert random.normal is primax_numpy.random.normal
    assert jnp.ndarray is primax.Array


def test_readme_example() -> None:
    def energy(x: primax.Array) -> primax.Array:
        return jnp.sum(jnp.tanh(x) ** 2)

    x = np.arange(3.0, dtype=np.float32)
    derivative = primax.jit(primax.grad(energy))
    expected = 2 * np.tanh(x) * (1 - np.tanh(x) ** 2)
    np.testing.assert_allclose(derivative(x), expected, 1e-5, 1e-6)
    rows = primax.vmap(derivative)(jnp.stack([x, 2 * x]))
    np.testing.assert_allclose(rows[0], expected, 1e-5, 1e-6)
    assert "tanh" in str(primax.make_jaxpr(energy)(x))


def test_define_prng_impl_with_keys_of_several_axes() -> None:
    """As in the reference, the implementation is not registered by name."""
    from primax.extend.random import define_prng_impl

    def define(name: str) -> object:
        return define_prng_impl(
            key_shape=(2, 2),
            seed=lambda s: jnp.full((2, 2), s, jnp.uint32),
            split=lambda k, s: k + jnp.arange(np.prod(s), dtype="uint32").reshape(*s, 1, 1),
            random_bits=lambda k, w, s: jnp.full(s, k.sum(), f"uint{w}"),
            fold_in=lambda k, d: k + d,
            name=name,
            tag="grid",
        )

    first, second = define("grid"), define("grid")
    key = random.key(3, impl=first)
    assert str(key.dtype) == "key<grid>" and random.bits(key, (2,)).tolist() == [12, 12]
    assert random.key_data(random.split(key, 5)).shape == (5, 2, 2)
    assert random.key(3, impl=second).dtype != key.dtype
    with pytest.raises(ValueError, match="unknown key implementation 'grid'"):
        random.key(3, impl="grid")
