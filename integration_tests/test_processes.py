"""Several processes through the facade and in programs of the reference."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

CODE = """
import sys
import primax.as_jax
primax.as_jax.install()
import jax
import jax.numpy as jnp
from jax._src.distributed import global_state as state
from jax.experimental import multihost_utils

rank, port = map(int, sys.argv[1:])
jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank)
print(state.process_id, state.num_processes, jax.process_count(), jax.distributed.is_initialized())
print(multihost_utils.process_allgather(jnp.arange(2) + rank).tolist())
state.client.key_value_set(f"a/{rank}", str(rank))
state.client.wait_at_barrier("b", 10_000)
print(state.client.key_value_dir_get("a"), state.client.blocking_key_value_get("a/1", 1000))
print(sorted(state.client.get_live_nodes([0, 1])))
jax.distributed.shutdown()
print(state.process_id, state.num_processes, state.client)
"""
PRINTED = """{rank} 2 2 True
[[0, 1], [1, 2]]
[('a/0', '0'), ('a/1', '1')] 1
[0, 1]
0 1 None
"""


def test_state_of_processes_for_libraries_of_the_reference() -> None:
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = str(s.getsockname()[1])
    variables = {**os.environ, "PRIMAX_NUM_CPU_DEVICES": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CODE, str(rank), port],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        for rank, process in enumerate(processes):
            output, errors = process.communicate(timeout=60)
            lines = [x for x in output.splitlines(keepends=True) if "peer ranks" not in x]
            assert "".join(lines) == PRINTED.format(rank=rank), output + errors
    finally:
        for process in processes:
            process.kill()
            process.communicate()
