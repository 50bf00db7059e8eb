"""Processes started by real launchers, where these are installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from several import environment, free_port

HELLO = """
import primax_core as pc
from primax_distributed import multihost_utils, processes
processes.initialize(initialization_timeout=40)
ranks = multihost_utils.process_allgather(pc.process_index()).tolist()
print(f"rank {pc.process_index()} of {pc.process_count()}: {ranks}", flush=True)
"""


def hello(*launcher, number):
    """Run the script by a launcher and compare what the ranks print."""
    variables = {k: v for k, v in os.environ.items() if k in ("PYTHONPATH", "SLURM_CONF")}
    done = subprocess.run(
        [*launcher, sys.executable, "-c", HELLO], capture_output=True, text=True, timeout=100,
        env=environment(**variables), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    printed = sorted(re.findall(r"rank \d+ of \d+: \[[\d, ]*\]", done.stdout))
    every = list(range(number))
    assert printed == [f"rank {r} of {number}: {every}" for r in every], done.stdout


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is not installed")
def test_open_mpi():
    hello("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", number=2)


def slurm_answers():
    if shutil.which("srun") is None:
        return False
    try:
        done = subprocess.run(["srun", "-n", "1", "true"], capture_output=True, timeout=10)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


@pytest.mark.skipif(not slurm_answers(), reason="there is no Slurm")
def test_slurm():
    hello("srun", "-n", "3", "--overcommit", number=3)


def test_variables_of_torchrun():
    """As torchrun starts them: the coordinator takes the port after that of the store."""
    port = str(free_port() - 1)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", HELLO], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env=environment(
                RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                LOCAL_RANK=str(rank),
            ),
        )
        for rank in range(2)
    ]  # fmt: skip
    outputs = [p.communicate(timeout=100)[0] for p in processes]
    assert [p.returncode for p in processes] == [0, 0], outputs
    assert all(f"rank {r} of 2: [0, 1]" in o for r, o in enumerate(outputs)), outputs
