"""Meshes, specs and shapes: NumPy's values, or an error that names what is wrong."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np

import primax
import primax.numpy as jnp
from primax import jit, lax
from primax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

# Few values of each kind, so that executables are shared.
MESHES = ((8,), (2, 4), (4, 2), (2, 2, 2), (2,), (4,), (1, 8), (2, 1, 2), (3,), (2, 3))
SIZES = (0, 1, 2, 4, 6, 8)
DTYPES = (np.float32, np.int32, np.bool_, jnp.bfloat16, np.complex64, np.uint8)
NAMES = ("x", "y", "z")
ERRORS = (ValueError, TypeError)

primax.config.update("num_cpu_devices", 8)


class Fuzzer:
    """Arrays on random shardings: transfers, programs, parts."""

    def __init__(self, folder: Path, seed: int):
        self.seed = seed

    def attempt(self, n: int) -> str | None:
        """Put an array on one sharding, compute, move it to another, take it apart."""
        rng = random.Random(f"shardings {self.seed} {n}")
        shape = tuple(rng.choice(SIZES) for _ in range(rng.randrange(4)))
        values = np.arange(math.prod(shape)).reshape(shape).astype(rng.choice(DTYPES))
        what = f"{values.dtype} {shape}"
        try:
            first, second = random_sharding(rng), random_sharding(rng)
        except ERRORS as e:
            return None if str(e) else f"{what}: an error without a text"
        what += f", {described(first)} to {described(second)}"
        try:
            return self.computed(rng, values, first, second, what)
        except ERRORS as e:
            return reason_to_doubt(e, shape, first, second, what)
        except Exception as e:
            return f"{what}: {type(e).__name__}: {e}"

    def computed(
        self, rng: random.Random, values: np.ndarray, first: Any, second: Any, what: str
    ) -> str | None:
        """Compare transfers, programs and parts with NumPy."""
        x = primax.device_put(values, first)
        steps = [("put", x, values), ("moved", primax.device_put(x, second), values)]
        steps.append(("program", jit(lambda x: x, out_shardings=first)(x), values))
        kind = rng.randrange(4)
        if kind == 0:
            steps.append(("logical", jnp.equal(x, x), values == values))
        elif kind == 1 and x.ndim:
            steps.append(("flipped", lax.rev(x, (0,)), values[::-1]))
        elif kind == 2:
            steps.append(("transposed", x.T, values.T))
        elif kind == 3:
            steps.append(("constrained", jit(lax.with_sharding_constraint, static_argnums=1)(
                values, second
            ), values))  # fmt: skip
        for name, array, expected in steps:
            if not same(np.asarray(array), expected):
                return f"{what}, {name}: {np.asarray(array).tolist()}, not {expected.tolist()}"
            for shard in array.addressable_shards:
                if not same(np.asarray(shard.data), expected[shard.index]):
                    return f"{what}, {name}: wrong part on {shard.device}"
        return None


def random_sharding(rng: random.Random) -> NamedSharding:
    """A mesh and a spec; sometimes with axes that the mesh does not have, or one axis twice."""
    sizes = rng.choice(MESHES)
    devices = primax.devices()
    if rng.random() < 0.3:
        devices = rng.sample(devices, len(devices))
    axes = [AxisType.Auto] * len(sizes)
    mesh = Mesh(np.array(devices[: math.prod(sizes)]).reshape(sizes), NAMES[: len(sizes)], axes)
    names = list(NAMES[: len(sizes)]) * 2 if rng.random() < 0.1 else list(NAMES[: len(sizes)])
    if rng.random() < 0.05:
        names.append("w")
    rng.shuffle(names)
    entries: list[Any] = []
    for _ in range(rng.randrange(5) if rng.random() < 0.2 else rng.randrange(3)):
        count = rng.choice((0, 1, 1, 2))
        taken, names = names[:count], names[count:]
        entries.append(None if not taken else taken[0] if len(taken) == 1 else tuple(taken))
    return NamedSharding(mesh, PartitionSpec(*entries))


def described(sharding: NamedSharding) -> str:
    """The spec, the mesh and the order of devices."""
    ids = [d.id for d in sharding.mesh.devices.flat]
    return f"{sharding.spec} on {dict(sharding.mesh.shape)} {ids}"


def reason_to_doubt(
    error: Exception, shape: tuple[int, ...], first: Any, second: Any, what: str
) -> str | None:
    """Return a fault if both shardings fit the shape: nothing should have been refused."""
    for sharding in (first, second):
        try:
            sharding.shard_shape(shape)
        except ERRORS:
            return None
    if "incompatible devices" in str(error) and first._devices != second._devices:
        return None
    return f"{what}: {type(error).__name__}: {error}"


def same(actual: np.ndarray, expected: np.ndarray) -> bool:
    """Compare shape, dtype and values."""
    return (
        actual.shape == expected.shape
        and actual.dtype == expected.dtype
        and bool(np.all(actual == expected))
    )
