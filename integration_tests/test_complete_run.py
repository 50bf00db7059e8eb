"""What the test sessions count, keep and select."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tools import complete, test_environment

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("line, counted", [
    ("===== 12 passed, 3 skipped, 7 deselected in 3.21s =====", {"passed": 12, "skipped": 3}),
    ("= 17085 passed, 2 skipped, 1 xfailed in 2618.86s (0:43:38) =",
     {"passed": 17085, "skipped": 2, "xfailed": 1}),
    ("3 failed, 5 passed, 2 errors in 1.00s", {"failed": 3, "passed": 5, "error": 2}),
    ("12 passed tests in a sentence", {}),
    ("==== tests: pip install nox", {}),
])  # fmt: skip
def test_closing_lines_are_counted(line, counted):
    found = complete.counts(line)
    assert {o: n for o, n in found.items() if o != "deselected"} == counted


def test_the_row_of_a_complete_run():
    total = Counter({"passed": 40123, "skipped": 12, "deselected": 3})
    text = complete.row(total, "abc1234", 7260.0, datetime(2026, 1, 2, tzinfo=UTC))
    assert text == "| 2026-01-02 | abc1234 | 40,123 passed, 12 skipped | 121 min |"
    status = (ROOT / "docs/design/STATUS.md").read_text(encoding="utf-8")
    assert "| date | commit | tests | time |" in status


def test_the_least_recently_used_files_are_removed(tmp_path):
    for age, name in enumerate(["new", "middle", "old"]):
        path = tmp_path / name
        path.write_bytes(bytes(100))
        os.utime(path, (1000 - age, 1000 - age))
    test_environment.prune(tmp_path, 300)
    assert len(list(tmp_path.iterdir())) == 3
    test_environment.prune(tmp_path, 250)
    assert {p.name for p in tmp_path.iterdir()} == {"new", "middle"}
    test_environment.prune(tmp_path / "absent", 0)


def test_the_folder_of_executables_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv(test_environment.FOLDER, str(tmp_path / "here"))
    assert test_environment.cache_folder() == tmp_path / "here"
    monkeypatch.delenv(test_environment.FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert test_environment.cache_folder() == tmp_path / "primax-tests"
        assert not test_environment.cache_folder().is_relative_to(ROOT)


def test_flags_that_xla_does_not_know_are_left_out():
    code = test_environment.PROBE.replace("known = []", "known = ['probed:']")
    code = code.replace(repr(test_environment.FLAGS), f"{test_environment.FLAGS + ('--xla_no',)}")
    env = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    words = done.stdout.split()
    assert words[:2] == ["probed:", "--xla_backend_optimization_level=0"], done.stderr
    assert "--xla_no" not in words
