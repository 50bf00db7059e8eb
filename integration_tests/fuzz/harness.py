"""Runs fuzzers in worker processes, and replaces those that crash or hang."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# With the part of the inputs that each gets.
FUZZERS = {
    "calls": 0.64, "indices": 0.18, "shardings": 0.06, "artifacts": 0.06, "cache_files": 0.03,
    "programs": 0.03,
}  # fmt: skip
# A worker is replaced after so many inputs, so that caches do not hide errors of first calls.
EACH = 4000
STARTING, LONGEST = 120.0, 90.0
# The innermost frame while an executable runs. A changed loop bound in an artifact makes an
# execution without end, which docs/export.md leaves to limits of the process.
EXECUTION = "_runtime/launch.py"
# A program is run in several ways, and shrunk if it fails.
LONGEST_OF = {"programs": 300.0}


@dataclass
class Summary:
    """What a fuzzer found."""

    name: str
    calls: int = 0
    aborts: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    endless: int = 0
    """Executions of mutated artifacts that do not end, which are no faults."""

    def __str__(self) -> str:
        counts = f"{len(self.aborts)} aborts, {len(self.hangs)} hangs, {len(self.faults)} faults"
        if self.endless:
            counts += f", {self.endless} executions of artifacts that do not end"
        lines = [f"{self.name}: {self.calls} calls, {counts}"]
        problems = (*self.aborts, *self.hangs, *self.faults)
        lines += ["  " + x.replace("\\n", "\n    ") for x in problems]
        return "\n".join(lines)

    @property
    def clean(self) -> bool:
        """True if nothing was found."""
        return not (self.aborts or self.hangs or self.faults)


def run(
    name: str, folder: Path, seed: int, first: int, count: int, longest: float | None = None
) -> Summary:
    """Try ``count`` inputs of a fuzzer, from number ``first`` on.

    Args:
      folder: an empty folder for files of the fuzzer.
      longest: seconds for one input.
    """
    longest = longest or LONGEST_OF.get(name, LONGEST)
    summary = Summary(name)
    n, end = first, first + count
    while n < end:
        size = min(EACH, end - n)
        reached, problem = _work(name, folder, seed, n, size, longest, summary)
        summary.calls += reached - n
        if problem:
            summary.calls += 1
            reached += 1
        n = reached
    return summary


def _work(
    name: str, folder: Path, seed: int, first: int, count: int, longest: float, summary: Summary
) -> tuple[int, bool]:
    """Run one worker; return the next input, and whether it crashed or hung at that one."""
    at, out, err = folder / "at", folder / "out", folder / "err"
    at.write_bytes(struct.pack("<q", first - 1))
    command = [sys.executable, "-m", "integration_tests.fuzz.worker", name, str(folder)]
    path = os.pathsep.join([str(ROOT), str(ROOT / "packages/core/tests"), *filter(None, sys.path)])
    env = {
        **os.environ, "PYTHONPATH": path, "PRIMAX_COMPILATION_CACHE_DIR": str(folder / "programs"),
        "PYTHONFAULTHANDLER": "1",
    }  # fmt: skip
    with open(out, "wb") as stdout, open(err, "wb") as stderr:
        process = subprocess.Popen(
            [*command, str(seed), str(first), str(count)],
            stdout=stdout, stderr=stderr, env=env, cwd=ROOT,
        )  # fmt: skip
        hung = _watch(process, at, longest)
    reached = _number(at)
    if reached < first:
        raise RuntimeError(f"the fuzzer {name} cannot start:\n{err.read_text(errors='replace')}")
    for line in out.read_text(errors="replace").splitlines():
        if line.startswith("FAULT "):
            summary.faults.append(line[6:])
    code = process.returncode
    if hung or code:
        again = [*command, str(seed), str(reached), "0"]
        described = subprocess.run(
            again, env=env, cwd=ROOT, capture_output=True, text=True, check=False
        )
        where = f" {described.stdout.strip()}{_last(err)}"
        if hung and name == "artifacts" and EXECUTION in where:
            summary.endless += 1
        elif hung:
            summary.hangs.append(f"{reached} took more than {longest:.0f} s{where}")
        else:
            what = signal.Signals(-code).name if code < 0 else f"exit {code}"
            summary.aborts.append(f"{reached} {what}{where}")
    return reached, bool(hung or code)


def _watch(process: subprocess.Popen[bytes], at: Path, longest: float) -> bool:
    """Wait for a worker; kill it, and return True, if it hangs."""
    last, since, first = _number(at), time.monotonic(), True
    while process.poll() is None:
        time.sleep(0.05)
        now = _number(at)
        if now != last:
            last, since, first = now, time.monotonic(), False
        elif time.monotonic() - since > (STARTING if first else longest):
            process.send_signal(signal.SIGABRT)  # faulthandler writes where it is
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            return True
    return False


def _number(at: Path) -> int:
    return struct.unpack("<q", at.read_bytes()[:8])[0]


def _last(err: Path) -> str:
    """The first lines of the innermost frames, from the standard error of a worker."""
    lines = err.read_text(errors="replace").splitlines()
    shown = [x.strip() for x in lines if "File " in x or "Check failed" in x or "Error" in x]
    return ": " + " | ".join(shown[:6])[:900] if shown else ""
