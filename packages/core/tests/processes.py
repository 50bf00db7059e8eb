"""Code in a process of its own, for what ends a process or must be said before the start."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

from test_support import wait_until_settled as wait_until_settled


def run(code: str, *, timeout: float = 120, **environment: str) -> str:
    """Run code in a new interpreter and return its output; errors and crashes fail."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PRIMAX_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**env, **environment}, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()
