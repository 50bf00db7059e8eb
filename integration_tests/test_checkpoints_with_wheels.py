"""Checkpoints of random keys, and the facade's names."""

from __future__ import annotations

import os
import subprocess
import sys

KEYS = """
import subprocess, sys
import numpy as np
import primax as px
from primax import random
from primax_distributed import NamedSharding, P, checkpoint, make_mesh

folder = sys.argv[1]
mesh = make_mesh((2, 4), ("x", "y"))
keys = random.split(random.key(7), 8)
divided = px.device_put(keys, NamedSharding(mesh, P("x")))
state = {"key": random.key(3, impl="rbg"), "keys": divided, "raw": random.PRNGKey(1)}
checkpoint.save(folder, state, step=1)

same = checkpoint.restore(folder, state)
assert same["keys"].sharding == divided.sharding and same["keys"].dtype == keys.dtype
assert same["key"] == state["key"] and random.key_impl(same["key"]) == "rbg"
assert (random.key_data(same["keys"]) == random.key_data(keys)).all()
assert checkpoint.describe(folder)["keys"].dtype == keys.dtype

other = NamedSharding(make_mesh((4,), ("z",), devices=px.devices()[:4]), P("z"))
out = checkpoint.restore(folder, {"keys": other}, partial=True)
assert out["keys"].sharding == other
assert (random.key_data(out["keys"]) == random.key_data(keys)).all()
host = checkpoint.restore(folder)
assert host["key"] == state["key"] and np.array_equal(host["raw"], state["raw"])
try:
    checkpoint.restore(folder, {"key": random.key(0)}, partial=True)
except checkpoint.CheckpointMismatchError as e:
    assert "key<rbg>[], but the target asks for key<fry>[]" in str(e), e
else:
    raise AssertionError

code = "import sys; from primax_distributed import checkpoint; checkpoint.restore(sys.argv[1])"
done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True)
assert "has random keys of 'rbg', which is not defined in this process: import" in done.stderr
"""

FACADE = """
import jax
import numpy as np
from jax.experimental import array_serialization
from jax.experimental.array_serialization import serialization
from jax.sharding import NamedSharding, PartitionSpec as P

assert array_serialization.serialization is serialization
sharding = NamedSharding(jax.make_mesh((8,), ("x",)), P("x"))
assert sharding._addressable_device_assignment == tuple(jax.devices())
x = jax.make_array_from_callback((8,), sharding, lambda index: np.arange(8.0)[index])
parts = [s.data for s in x.addressable_shards]
assert (jax.make_array_from_single_device_arrays((8,), sharding, parts) == x).all()
"""


def run(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=100,
        env={**os.environ, "PRIMAX_NUM_CPU_DEVICES": "8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_random_keys(tmp_path):
    run("-c", KEYS, str(tmp_path / "checkpoints"))


def test_names_of_the_reference(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(FACADE)
    run("-m", "primax.as_jax", str(script))
