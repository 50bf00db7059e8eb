"""Mutated executables and cache files, none of which may crash a process."""

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
from primax_core import lax, serialize_executable
from primax_core._lower import compile as lowering
from primax_core._runtime.disk import executables as disk, files, store

BATCHES, EACH = 2, 1500
WORKER = Path(__file__).with_name("fuzz_worker.py")

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def _executables() -> list[tuple]:
    table = pc.device_put(np.arange(50, dtype=np.float32))
    compiled = pc.jit(lambda x: (x + lax.reduce_sum(table, (0,)), x)).lower(X).compile()
    return [(*serialize_executable.serialize(compiled), (pc.device_put(X),))]


def _cached() -> tuple[bytes, bytes]:
    """The contents of a file of the cache for a key."""
    devs = (pc.devices()[0],)
    compiled = pc.jit(lambda x: x * 2).lower(X).compile()
    place = disk.executable_location(b"0" * 32, devs, lowering.make_options(devs))
    options = compiled._lowered._compiler_options
    module = compiled._lowered._module
    blob = lowering.executable_bytes(module, compiled._exe.loaded, devs, options)
    entry = files.Entry("fuzzed", "cpu", "0", (), blob)
    return place.key, files.pack(entry, place.key)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the original files."""
    path = tmp_path_factory.mktemp("fuzz")
    key, data = _cached()
    corpus = {
        "executables": _executables(),
        "cached": [(key, data, store.EXECUTABLE)],
        "links": [(key, files.pack_link(b"1" * 32, key), store.LINK)],
    }
    (path / "corpus").write_bytes(pickle.dumps(corpus))
    (path / "cache").mkdir(mode=0o700)
    return path


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
    # Some raise in each part.
    for what in ("'executable refused'", "'cached refused'"):
        assert what in done.stdout, done.stdout
