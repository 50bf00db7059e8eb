"""Some hundred inputs of each fuzzer, another part for each commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.fuzz import harness
from tools.steps import step_of_commit

# In about ten seconds each.
COUNTS = {
    "calls": 200, "indices": 200, "shardings": 100, "artifacts": 120, "cache_files": 60,
    "programs": 8,
}  # fmt: skip


@pytest.mark.parametrize("name", harness.FUZZERS)
def test_short_run(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("PRIMAX_FUZZ_REFERENCE", raising=False)
    step = step_of_commit()
    part = 0 if step is None else step.number
    summary = harness.run(name, tmp_path, 0, part * COUNTS[name], COUNTS[name])
    assert summary.clean, str(summary)
    assert summary.calls == COUNTS[name]


FAULTY = """
import os, signal, time

class Fuzzer:
    def __init__(self, folder, seed):
        pass

    def attempt(self, n):
        if n == 3:
            os.kill(os.getpid(), signal.SIGSEGV)
        if n == 5:
            time.sleep(60)
        return "odd" if n == 7 else None
"""


def test_workers_that_crash_or_hang_are_replaced(tmp_path: Path, monkeypatch) -> None:
    """Inputs after the crash are tried too."""
    package = Path(harness.__file__).parent
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    copied = tmp_path / "integration_tests" / "fuzz"
    copied.mkdir(parents=True)
    for name in ("__init__.py", "worker.py"):
        (copied / name).write_text((package / name).read_text())
    (copied / "faulty.py").write_text(FAULTY)
    folder = tmp_path / "run"
    folder.mkdir()
    summary = harness.run("faulty", folder, 0, 0, 10, longest=1.0)
    assert summary.calls == 10
    assert [x.split()[:2] for x in summary.aborts] == [["3", "SIGSEGV"]]
    assert [x.split()[0] for x in summary.hangs] == ["5"]
    assert summary.faults == ["7 'odd'"]
