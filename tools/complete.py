"""Runs every test session completely and counts what passed: ``nox -s full``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

VARIABLE: Final = "PRIMAX_COMPLETE_TESTS"
SESSIONS: Final = (
    "lint", "boundaries", "typecheck", "docs", "tests", "vendored", "versions", "ecosystem",
)  # fmt: skip
ROOT: Final = Path(__file__).resolve().parent.parent
LOG: Final = ROOT / "build" / "full.log"

_CLOSING: Final = re.compile(r"^=* ?((?:\d+ \w+,? ?)+) in [0-9.]+s")
_OUTCOMES: Final = ("passed", "skipped", "xfailed", "failed", "error")


def is_running() -> bool:
    """Whether this process belongs to a complete run."""
    return bool(os.environ.get(VARIABLE))


def counts(line: str) -> Counter[str]:
    """The outcomes that one of pytest's closing lines counts; nothing for any other line."""
    match = _CLOSING.match(line)
    numbers: Counter[str] = Counter()
    for number, outcome in re.findall(r"(\d+) (\w+)", match[1]) if match else ():
        numbers[outcome.removesuffix("s") if outcome == "errors" else outcome] += int(number)
    return numbers


def row(total: Counter[str], commit: str, seconds: float, when: datetime) -> str:
    """A line for the table of complete runs."""
    numbers = ", ".join(f"{total[o]:,} {o}" for o in _OUTCOMES if total[o]) or "no tests"
    return f"| {when:%Y-%m-%d} | {commit} | {numbers} | {seconds / 60:.0f} min |"


def main(sessions: list[str]) -> int:
    """Run the sessions, all by default, copying their output to the terminal and to a log."""
    env = {**os.environ, VARIABLE: "1", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "nox", "-s", *(sessions or SESSIONS)]
    started, total = time.monotonic(), Counter[str]()
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("w", encoding="utf-8") as log, subprocess.Popen(
        command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            log.write(line)
            total += counts(line)
    if process.returncode:
        print(f"The run is not complete: nox ended with {process.returncode}; see {LOG}.")
        return process.returncode
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip() or "no commit"
    now = datetime.now(UTC)
    print(f"\n{row(total, commit, time.monotonic() - started, now)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
