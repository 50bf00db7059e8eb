"""A user program over meshes and shardings, for the type checkers; never run."""

from __future__ import annotations

import numpy as np

import primax
import primax.numpy as jnp
from primax import distributed, lax
from primax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
from primax_distributed import AbstractMesh, make_array_from_callback, shard_map


def mesh_of(rows: int) -> Mesh:
    """A mesh of all devices in ``rows`` rows."""
    columns = len(primax.devices()) // rows
    return primax.make_mesh((rows, columns), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def divided(mesh: Mesh, values: np.ndarray) -> primax.Array:
    """An array divided along both axes of a mesh."""
    array: primax.Array = primax.device_put(values, NamedSharding(mesh, P("data", "model")))
    parts: list[tuple[int, ...]] = [part.data.shape for part in array.addressable_shards]
    assert parts[0] == array.sharding.shard_shape(array.shape)
    return array


def product(mesh: Mesh, x: primax.Array, y: primax.Array) -> primax.Array:
    """A matrix product whose result is divided along one axis."""
    rows = NamedSharding(mesh, P("data"))
    step = primax.jit(jnp.matmul, in_shardings=(rows, NamedSharding(mesh, P())), out_shardings=rows)
    result: primax.Array = step(x, y)
    return result


def without_devices() -> tuple[int, ...]:
    """The shape of a part on a mesh that has no devices."""
    mesh = AbstractMesh((4, 2), ("data", "model"))
    sizes: dict[str, int] = {str(name): size for name, size in mesh.shape.items()}
    assert sizes["data"] == mesh.size // 2
    return NamedSharding(mesh, P("data", None)).shard_shape((8, 16))


def current() -> primax.Array:
    """Specs alone, where a mesh is set."""
    with primax.set_mesh(mesh_of(2)):
        assert not primax.sharding.get_abstract_mesh().empty
        array: primax.Array = primax.device_put(jnp.ones((4, 4)), P("model"))
    return array


def loaded(mesh: Mesh, values: np.ndarray) -> primax.Array:
    """An array whose parts are read from memory one by one."""
    return make_array_from_callback(
        values.shape, NamedSharding(mesh, P("data")), lambda index: values[index]
    )


def normalised(mesh: Mesh, x: primax.Array) -> primax.Array:
    """Rows divided by the norm of all, part by part."""

    def part(rows: primax.Array) -> primax.Array:
        total: primax.Array = lax.psum(jnp.sum(rows**2), "data")
        return rows / jnp.sqrt(total)

    divided = shard_map(part, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    result: primax.Array = primax.jit(divided)(x)
    return result


def train(steps: int) -> int:
    """Training that goes on after the death of a process; returns the number of attempts."""
    number = 0
    for generation in distributed.generations():
        with generation:
            for _ in range(steps):
                generation.check()
        number = generation.number
        failure: distributed.ProcessFailure | None = generation.failure
        ranks: tuple[int, ...] = () if failure is None else failure.ranks
        print(generation.rank, "of", generation.num_processes, ranks)
    return number


def refused() -> None:
    """Arguments of a wrong type; the checkers report them."""
    NamedSharding("data", P())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    primax.make_mesh(4, ("data",))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
