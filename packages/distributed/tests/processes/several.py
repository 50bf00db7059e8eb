"""Runs code in several processes, each with a time limit."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence

START = """
import faulthandler, os, signal, sys, threading, time
faulthandler.register(signal.SIGUSR1)
import numpy as np
import primax_core as pc
from primax_core.extend import processes as core
from primax_distributed import processes
from primax_distributed.processes import _initialize

def collective():
    joined = _initialize.joined()
    joined.counts.begin("train_step")
    return core.connect_devices(joined.member)

def attempt(what):
    try:
        return what()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
"""


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def environment(**more: str) -> dict[str, str]:
    """The variables of this process, without those of launchers."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PRIMAX_")}
    return {**env, "PRIMAX_NUM_CPU_DEVICES": "1", **more}


def together(
    code: str, n: int = 2, *, arguments: Sequence[str] = (), timeout: float = 60,
    variables: Sequence[dict[str, str]] | None = None, frozen: Sequence[int] = (),
) -> tuple[list[str], list[int]]:  # fmt: skip
    """Outputs and exit statuses of ``n`` processes, with ``port`` and ``rank`` defined.

    Args:
      variables: of the environment of each process.
      frozen: ranks that do not end, and are killed when the others have.
    """
    port = free_port()
    source = START + "rank, n, port = map(int, sys.argv[1:4])\n" + textwrap.dedent(code)
    ranks = []
    deadline = time.monotonic() + timeout
    outputs: list[str] = [""] * n
    try:
        for rank in range(n):
            command = [sys.executable, "-c", source, str(rank), str(n), str(port), *arguments]
            more = {} if variables is None else variables[rank]
            ranks.append(subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env=environment(**more),
            ))  # fmt: skip
        for rank in sorted(range(n), key=lambda r: r in frozen):
            if rank in frozen:
                ranks[rank].send_signal(signal.SIGKILL)
            left = max(1, deadline - time.monotonic())
            try:
                outputs[rank] = ranks[rank].communicate(timeout=left)[0]
            except subprocess.TimeoutExpired:
                texts = [_stacks(p) for p in ranks if p.poll() is None]
                raise AssertionError("not at their ends:\n" + "\n".join(texts)) from None
    finally:
        for p in ranks:
            if p.poll() is None:
                p.kill()
            if p.stdout is not None and not p.stdout.closed:
                p.communicate()
    return outputs, [p.returncode for p in ranks]


def _stacks(process: subprocess.Popen[str]) -> str:
    """The output of a process that is not at its end, with the stacks of its threads."""
    process.send_signal(signal.SIGUSR1)
    time.sleep(1)
    process.kill()
    return process.communicate()[0]


def launch(
    code: str, folder: str, n: int = 2, *, options: Sequence[str] = (), timeout: float = 90
) -> tuple[str, int]:
    """Output and exit status of the local launcher with a script."""
    path = os.path.join(folder, "script.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(START + textwrap.dedent(code))
    command = [sys.executable, "-m", "primax_distributed.run", "-n", str(n), *options, path, folder]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
        start_new_session=True,
    )  # fmt: skip
    try:
        output = process.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGUSR1)  # the ranks print the stacks of their threads
        time.sleep(1)
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
        raise AssertionError(f"not at its end after {timeout} s:\n{output}") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return output, process.returncode
