"""Processes that are killed and frozen at random times still finish, with the same result.

``nox -s processes`` kills 20 times; here it is 3.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from several import START, environment
from test_generations import TRAIN

KILLS = int(os.environ.get("PRIMAX_TEST_KILLS", "3"))
STEPS = 150 + 100 * KILLS


def children(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    try:
        with open(path, encoding="ascii") as f:
            return list(map(int, f.read().split()))
    except OSError:
        return []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_killed_at_random(tmp_path):
    """The times are random, so that deaths also fall into joining, compiling and writing."""
    code = START + "def disturb(generation, step): time.sleep(0.005)\n" + TRAIN
    script = tmp_path / "script.py"
    script.write_text(code.replace("STEPS = 60", f"STEPS = {STEPS}"), "utf-8")
    options = ["--freeze-timeout", "4", "--grace", "5", "--max-restarts", str(10 * KILLS)]
    command = [sys.executable, "-m", "primax_distributed.run", "-n", "3", *options]
    command += [str(script), str(tmp_path)]
    number = random.Random(os.environ.get("PRIMAX_TEST_SEED", "0"))
    with open(tmp_path / "output", "w+b") as output:
        launcher = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment(),
            start_new_session=True,
        )  # fmt: skip
        try:
            killed, deadline = 0, time.monotonic() + 90 + 20 * KILLS
            while launcher.poll() is None and time.monotonic() < deadline:
                time.sleep(number.uniform(0.1, 4))
                running = children(launcher.pid)
                if killed < KILLS and running:
                    how = number.choice([signal.SIGKILL] * 3 + [signal.SIGSTOP])
                    os.kill(number.choice(running), how)
                    killed += 1
        finally:
            hung = launcher.poll() is None
            if hung:
                os.killpg(launcher.pid, signal.SIGKILL)
            launcher.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    assert not hung, text
    assert launcher.returncode == 0, text
    assert killed > 0
    assert re.findall(r"total (\d+)", text) == [str(3 * sum(range(STEPS)))] * 3, text
