"""The report of ``python -m primax``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from primax import __main__ as command


def test_report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMAX_LOG_COMPILES", "0")
    assert command.main([]) == 0
    out = capsys.readouterr().out
    sections = ["wheels", "environment", "devices", "variables", "cache of executables on disk"]
    assert [s for s in sections if re.search(f"^{s}", out, re.M)] == sections
    assert re.search(r"^  PRIMAX_LOG_COMPILES +0$", out, re.M)
    assert re.search(r"^  jaxlib +0\.1\d", out, re.M)
    assert re.search(r"^  cpu:0 +cpu$", out, re.M)
    for wheel, package, extra in command.WHEELS:
        missing = find_spec(package) is None
        line = re.search(rf"^  {wheel} +(.+)$", out, re.M)
        assert line is not None
        assert (line[1] == f"not installed; pip install 'primax[{extra}]'") == missing


def test_self_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--test"]) == 0
    out = capsys.readouterr().out
    assert "FAILED" not in out and out.endswith("no failure\n")
    for name in ("jit", "grad", "vmap", "loops", "linear algebra"):
        assert re.search(rf"^  {name} +passed in \d+ ms$", out, re.M)
    skipped = "skipped: primax_numpy is not installed" in out
    assert skipped == (find_spec("primax_numpy") is None)


def test_failures_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> bool:
        raise ValueError("a reason")

    tests = (("raises", "primax_core", fails), ("wrong", "primax_core", lambda: False))
    monkeypatch.setattr(command, "_TESTS", tests)
    assert command.main(["--test"]) == 1
    shown = capsys.readouterr()
    assert "ValueError: a reason" in shown.err
    assert shown.out.endswith("2 of 2 failed\n")


def test_exit_status_and_unknown_options() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "primax", "--nothing"], capture_output=True, text=True
    )
    assert process.returncode == 2
    assert "usage: python -m primax" in process.stderr


def test_the_report_says_why_a_platform_does_not_start() -> None:
    environment = {**os.environ, "PRIMAX_PLATFORMS": "rocm"}
    done = subprocess.run(
        [sys.executable, "-m", "primax"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^devices\n  none +no platform of \['rocm'\] could be started", done.stdout, re.M
    )
    assert re.search(r"^  PRIMAX_PLATFORMS +rocm$", done.stdout, re.M)
