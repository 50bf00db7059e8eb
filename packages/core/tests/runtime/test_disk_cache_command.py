"""``python -m primax_core.cache``."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from disk_processes import kept, process

from primax_core import cache
from primax_core._base.identity import CACHE_FOLDER


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def run(*arguments):
        status = cache.main(list(arguments))
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


@pytest.fixture
def filled(tmp_path):
    process(tmp_path, "report(lax.sin(np.float32(1)), lax.cos(np.float32(1)))")


def test_path(command, tmp_path):
    assert command("path") == (0, f"{tmp_path / CACHE_FOLDER}\n", "")


def test_an_empty_cache(command):
    assert command("list") == (0, "", "")
    assert command("verify") == (0, "0 files, 0 damaged\n", "")
    assert command("clear")[1] == "removed 0 files, 0 bytes\n"


def test_info(command, filled, tmp_path):
    status, out, _ = command("info")
    said = dict(line.split(None, 1) for line in out.splitlines())
    files = list((tmp_path / CACHE_FOLDER).iterdir())
    assert status == 0 and said["folder"] == str(tmp_path / CACHE_FOLDER)
    assert said["programs"] == said["links"] == "2"
    assert int(said["bytes"]) == sum(f.stat().st_size for f in files)


def test_list(command, filled):
    _, out, _ = command("list")
    assert [line.split()[-1] for line in sorted(out.splitlines(), key=lambda s: s[-3:])] == [
        "cos", "sin",
    ]  # fmt: skip


def test_verify_finds_damaged_files(command, filled, tmp_path):
    assert command("verify")[:2] == (0, "4 files, 0 damaged\n")
    path = kept(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-1])
    status, out, _ = command("verify")
    assert status == 1 and "4 files, 1 damaged" in out and path.name in out
    assert "damaged: " in command("list")[1]


def test_clear_removes_the_cache_and_nothing_else(command, filled, tmp_path):
    (tmp_path / CACHE_FOLDER / "mine.txt").write_text("mine")
    assert command("clear")[1].startswith("removed 4 files")
    assert os.listdir(tmp_path / CACHE_FOLDER) == ["mine.txt"]


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_an_unsafe_folder_is_an_error(command, filled, tmp_path):
    (tmp_path / CACHE_FOLDER).chmod(0o777)
    status, _, error = command("verify")
    assert status == 2 and "other users can write" in error


def test_as_a_module(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "primax_core.cache", "path"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(tmp_path / CACHE_FOLDER)
    done = subprocess.run(
        [sys.executable, "-m", "primax_core.cache"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "usage" in done.stderr
