"""Ranks as Ray actors; skipped without Ray."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from several import environment

CODE = """
import os, signal, threading, time
import ray
env = {"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}}
ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", runtime_env=env)
from primax_distributed.ray import Ranks

def train(generation):
    import os, time
    from primax_distributed import multihost_utils
    for step in range(20):
        if step == 10 and generation.number == 1 and generation.rank == 1:
            os.kill(os.getpid(), 9)
        multihost_utils.process_allgather(step)
    return generation.number, os.getpid()

with Ranks(2, environment={"PRIMAX_NUM_CPU_DEVICES": "1"}) as ranks:
    before = ranks.pids()
    results = ranks.run(train)
    print("again", [number for number, _ in ranks.run(train)])
    print("generations", [number for number, _ in results], "restarts", ranks.restarts)
    print("kept", results[0][1] == before[0], results[1][1] == before[1])
    def fail(generation):
        raise KeyError("my bug")
    try:
        ranks.run(fail)
    except KeyError as e:
        print("raised", e)
ray.shutdown()
"""


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_a_rank_is_restarted_by_ray():
    more = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "RAY_DEDUP_LOGS": "0"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, timeout=240,
        env=environment(**more), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "generations [2, 2] restarts 1" in done.stdout, done.stdout
    assert "again [3, 3]" in done.stdout
    assert "kept True False" in done.stdout
    assert "raised" in done.stdout
