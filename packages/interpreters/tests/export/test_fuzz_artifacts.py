"""Thousands of mutated artifacts, none of which may crash a process."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import primax_core as pc
from primax_core import lax
from primax_core.extend.runtime import TiledSharding, Tiling
from primax_interpreters import export

BATCHES, EACH = 4, 1750
WORKER = Path(__file__).with_name("fuzz_worker.py")

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def _artifacts() -> list[tuple[bytes, tuple]]:
    def nested(x, options):
        return {"out": [lax.sin(x) * options["k"], (lax.reduce_sum(x, (0, 1)), None)]}

    def chosen(x):
        return lax.platform_dependent(x, cpu=lax.sin, default=lax.cos)

    def solved(x):
        gram = lax.dot(x, lax.transpose(x, (1, 0)))
        return lax.linalg.cholesky(gram + 10 * np.eye(2, dtype=np.float32))

    rows, columns = export.symbolic_shape("r, 2*c + 1", constraints=["r >= 2", "c <= 100"])
    symbolic = pc.ShapeDtypeStruct((rows, columns), np.float32)
    plain = export.export(pc.jit(nested))(X, {"k": 2.0})
    several = export.export(pc.jit(chosen), platforms=["cpu", "tpu"])(X)
    polymorphic = export.export(pc.jit(lambda x: x + x.shape[0]))(symbolic)
    devices = pc.devices()[:2]
    divided = TiledSharding(devices, Tiling.along_mesh((2,), [(0,), ()]))
    constrained = pc.jit(lambda x: lax.with_sharding_constraint(lax.sin(x), divided))
    rows = pc.device_put(X, divided)
    return [
        (bytes(export.export(constrained)(rows).serialize()), (rows,)),
        (bytes(plain.serialize(vjp_order=1)), (X, {"k": 2.0})),
        (bytes(several.serialize()), (X,)),
        (bytes(export.export(pc.jit(solved))(X).serialize()), (X,)),
        (bytes(polymorphic.serialize()), (X,)),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the original artifacts."""
    path = tmp_path_factory.mktemp("fuzz")
    (path / "corpus").write_bytes(pickle.dumps(_artifacts()))
    return path


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_mutation_crashes_the_process(folder: Path, batch: int) -> None:
    (folder / "at").write_bytes(b" " * 12)
    cache = folder / "programs"
    done = subprocess.run(
        [sys.executable, str(WORKER), str(folder), str(batch * EACH), str(EACH)],
        env={
            **os.environ, "PRIMAX_COMPILATION_CACHE_DIR": str(cache),
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        },
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    at = (folder / "at").read_text().strip()
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        pytest.fail(f"mutation {at} ended the process by {name}:\n{done.stderr[-2000:]}")
    assert done.returncode == 0, f"at mutation {at}:\n{done.stdout}\n{done.stderr[-4000:]}"
    assert "FAULT" not in done.stdout, done.stdout
    # Some are accepted and called.
    for what in ("'accepted'", "'called'"):
        assert what in done.stdout, done.stdout
