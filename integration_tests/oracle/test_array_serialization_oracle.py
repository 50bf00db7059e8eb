"""Arrays in tensorstore that jax wrote are read here, and the reverse, with 8 devices each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

if find_spec("tensorstore") is None:
    pytest.skip("needs tensorstore", allow_module_level=True)

PROGRAM = """
import json, sys
import numpy as np
import ml_dtypes

if sys.argv[1] == "jax":
    import jax
else:
    import primax as jax
    jax.config.update("num_cpu_devices", 8)
from {package}.experimental.array_serialization import serialization
from {package}.sharding import Mesh, NamedSharding, PartitionSpec as P

folder, read = sys.argv[2], sys.argv[3:]
mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))
values = np.arange(64).reshape(8, 8)
names, specs = [], []
for driver in ("zarr", "zarr3"):
    for ocdbt in (False, True):
        for dtype in ("float32", "bfloat16", "int8", "bool", "float8_e4m3fn"):
            names.append((driver, ocdbt, dtype))
            path = f"{{folder}}/{{driver}}{{ocdbt}}/{{dtype}}"
            specs.append(serialization.get_tensorstore_spec(path, driver=driver, ocdbt=ocdbt))
manager = serialization.GlobalAsyncCheckpointManager()
kinds = [np.dtype(getattr(ml_dtypes, n[2], n[2])) for n in names]
if not read:
    arrays = [
        jax.device_put(values.astype(kind), NamedSharding(mesh, P("x", "y"))) for kind in kinds
    ]
    manager.serialize(arrays, specs, on_commit_callback=lambda: None)
    manager.wait_until_finished()
else:
    out = manager.deserialize([NamedSharding(mesh, P("y", "x"))] * len(specs), specs)
    for name, kind, x in zip(names, kinds, out):
        assert x.dtype == kind and x.shape == (8, 8), name
        for s in x.addressable_shards:
            assert np.array_equal(np.asarray(s.data), values.astype(kind)[s.index]), name
    larger = manager.deserialize([NamedSharding(mesh, P("y"))], specs[:1], [(16, 4)], ["int32"])[0]
    parts = [np.asarray(s.data).tolist() for s in larger.addressable_shards]
    a_spec = serialization.get_tensorstore_spec(
        "/a/b", ocdbt=True, process_idx=2, arr=out[0], driver="zarr3"
    )
    addresses = [serialization.get_tensorstore_spec(p) for p in ("rel", "gs://b/c/d", "s3://b/c")]
    print(json.dumps([str(larger.dtype), larger.shape, parts, a_spec, addresses]))
"""


def run(side: str, folder: str, *more: str) -> str:
    code = PROGRAM.format(package=side)
    done = subprocess.run(
        [sys.executable, "-c", code, side, folder, *more], capture_output=True, text=True,
        env={**os.environ, "JAX_NUM_CPU_DEVICES": "8"}, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_side_reads_the_arrays_of_the_other(tmp_path):
    for side in ("jax", "primax"):
        run(side, str(tmp_path / side))
    expected = json.loads(run("jax", str(tmp_path / "primax"), "read"))
    assert json.loads(run("primax", str(tmp_path / "jax"), "read")) == expected
