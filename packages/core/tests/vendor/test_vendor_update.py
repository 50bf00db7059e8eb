"""Updates and checks of a copy: changes are printed, edits are kept, interruptions undone."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from small_core import run, tree

from primax_core.vendor import writing


@pytest.fixture
def copy(core, acme, capsys):
    assert run("--into", acme / "_vendor", "--with", "numpy") == 0
    capsys.readouterr()
    return acme / "_vendor"


def release(core) -> None:
    """The next version: a module is new, one is changed, one is gone."""
    (core / "__init__.py").write_text('__version__ = "1.1"\n')
    (core / "added.py").write_text("TWO = 2\n")
    (core / "plain.py").unlink()


CHANGES = """\
added: primax_core/added.py
changed: primax_core/NOTICE
changed: primax_core/__init__.py
removed: primax_core/plain.py
"""


def test_a_second_copy_is_an_update(copy, capsys):
    assert run("--into", copy) == 2
    assert "is a copy already: use --update" in capsys.readouterr().err
    assert run("--into", copy, "--update") == 0
    assert "is up to date: 1.0 (commit c0ffee)" in capsys.readouterr().out


def test_update_prints_what_changes(core, copy, capsys):
    release(core)
    assert run("--into", copy, "--update") == 0
    out = capsys.readouterr().out
    assert out.startswith(CHANGES)
    assert "from 1.0 (commit c0ffee) to 1.1 (commit c0ffee)" in out
    assert (copy / "primax_core/added.py").exists()
    assert not (copy / "primax_core/plain.py").exists()
    assert run("--into", copy, "--check") == 0
    assert not [p for p in copy.iterdir() if p.name.startswith(".")]


def test_check_changes_nothing(core, copy, capsys):
    assert run("--into", copy, "--check") == 0
    release(core)
    before = tree(copy)
    assert run("--into", copy, "--check") == 1
    assert capsys.readouterr().out.endswith(CHANGES)
    assert tree(copy) == before


def test_options_are_those_of_the_copy(copy):
    assert run("--into", copy, "--update", "--prefix", "ZENITH", "--with", "kit") == 0
    assert not (copy / "primax_numpy").exists() and (copy / "primax_core/testing").exists()
    assert run("--into", copy, "--update", "--with", "numpy") == 0
    record = json.loads((copy / "primax_core/vendored.json").read_text())
    assert record["prefix"] == "ZENITH" and record["with"] == ["numpy"]


def test_a_copy_that_moved(copy, acme):
    copy.rename(acme / "_moved")
    assert run("--into", acme / "_moved", "--check") == 1
    assert run("--into", acme / "_moved", "--update") == 0
    assert "acme._moved.primax_core" in (acme / "_moved/primax_core/lax.py").read_text()


@pytest.mark.parametrize("path", ["primax_core/lax.py", "primax_numpy/__init__.py"])
def test_edits_are_not_lost(core, copy, capsys, path):
    (copy / path).write_text("my patch\n")
    release(core)
    assert run("--into", copy, "--check") == 1
    assert f"edited: {path}\n" in capsys.readouterr().out
    before = tree(copy)
    assert run("--into", copy, "--update") == 2
    out, err = capsys.readouterr()
    assert out == f"edited: {path}\n" and "Save their changes as a patch" in err
    assert tree(copy) == before
    (copy / path).unlink()
    assert run("--into", copy, "--update") == 0
    assert f"missing: {path}\n" in capsys.readouterr().out
    assert run("--into", copy, "--check") == 0


@pytest.mark.parametrize("path", ["primax_core/mine.py", "primax_numpy/data/x.txt"])
def test_files_of_others_are_not_lost(core, copy, capsys, path):
    (copy / path).parent.mkdir(exist_ok=True)
    (copy / path).write_text("mine\n")
    release(core)
    assert run("--into", copy, "--check") == 1
    assert run("--into", copy, "--update") == 2
    assert f"not in the manifest: {path}\n" in capsys.readouterr().out
    assert (copy / path).read_text() == "mine\n"


def test_links_are_not_followed(core, copy, acme, capsys):
    (acme / "outside").mkdir()
    (acme / "outside" / "x.py").touch()
    (copy / "primax_core" / "link").symlink_to(acme / "outside")
    assert run("--into", copy, "--update") == 2
    assert "not in the manifest: primax_core/link\n" in capsys.readouterr().out
    assert (acme / "outside" / "x.py").exists()


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_copied_folder_that_was_replaced(copy, acme, capsys, kind):
    path = copy / "primax_numpy"
    path.rename(acme / "moved")
    if kind == "file":
        path.write_text("mine")
    else:
        path.symlink_to(acme / "moved")
    assert run("--into", copy, "--update") == 2
    assert f"{path} exists, and no copy" in capsys.readouterr().err
    assert path.read_text() == "mine" if kind == "file" else path.is_symlink()


def test_byte_code_is_ignored(core, copy):
    cache = copy / "primax_core" / "__pycache__"
    cache.mkdir()
    (cache / "lax.cpython-311.pyc").touch()
    assert run("--into", copy, "--check") == 0
    release(core)
    assert run("--into", copy, "--update") == 0


def test_an_addition_does_not_overwrite(core, acme, capsys):
    copy = acme / "_vendor"
    assert run("--into", copy) == 0
    (copy / "primax_numpy").mkdir()
    assert run("--into", copy, "--update", "--with", "numpy") == 2
    assert f"{copy / 'primax_numpy'} exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"files": {"../outside.py": "0"}},
        {"files": {"/etc/passwd": "0"}},
        {"files": {"primax_core/../../x": "0"}},
        {"folders": [".."]},
        {"name": "another"},
        {"with": ["pandas"]},
        {"files": 3},
    ],
    ids=str,
)
def test_a_bad_manifest(copy, capsys, change):
    path = copy / "primax_core/vendored.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    before = tree(copy)
    assert run("--into", copy, "--update") == 2
    assert "is not a manifest that this version of primax_core understands" in (
        capsys.readouterr().err
    )
    assert tree(copy) == before
    path.write_text("{")
    assert run("--into", copy, "--update") == 2


def test_two_copies_in_one_folder(core, acme, capsys):
    folder = acme / "_vendor"
    for name in ("first_core", "second_core"):
        assert run("--into", folder, "--name", name) == 0
    assert run("--into", folder, "--check") == 2
    assert "add --name with one of ['first_core', 'second_core']" in capsys.readouterr().err
    assert run("--into", folder, "--check", "--name", "first_core") == 0


def test_without_a_copy(core, acme, capsys):
    assert run("--into", acme / "_vendor", "--update") == 2
    assert "_vendor does not exist" in capsys.readouterr().err
    (acme / "_vendor").mkdir()
    assert run("--into", acme / "_vendor", "--check") == 2
    assert "contains no copy called primax_core" in capsys.readouterr().err


@pytest.mark.parametrize("failing", range(4))
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=repr)
def test_a_failed_move_is_undone(core, copy, monkeypatch, failing, error):
    before = tree(copy)
    release(core)
    calls, rename = [], os.rename

    def fail_once(old, new):
        calls.append(old)
        if len(calls) == failing + 1:
            raise error
        rename(old, new)

    monkeypatch.setattr(os, "rename", fail_once)
    if isinstance(error, OSError):
        assert run("--into", copy, "--update") == 2
    else:
        with pytest.raises(KeyboardInterrupt):
            run("--into", copy, "--update")
    assert tree(copy) == before


KILLED = """
import os, sys
from pathlib import Path
from primax_core.vendor import writing

rename, calls = os.rename, []
def stop(old, new):
    calls.append(old)
    if len(calls) > int(sys.argv[2]):
        os._exit(9)
    rename(old, new)
os.rename = stop
files = {"primax_core/new.py": b"", "primax_numpy/new.py": b""}
writing.write(Path(sys.argv[1]), "primax_core", files, ["primax_core", "primax_numpy"])
"""


@pytest.mark.parametrize("moves", [0, 1, 3])
def test_a_killed_run_is_undone_by_the_next_one(core, copy, capsys, moves):
    before = tree(copy)
    command = [sys.executable, "-c", KILLED, str(copy), str(moves)]
    assert subprocess.run(command, check=False).returncode == 9
    assert tree(copy) != before
    assert run("--into", copy, "--check", "--name", "primax_core") == 1
    assert "was interrupted or is not finished" in capsys.readouterr().out
    assert run("--into", copy, "--update") == 0
    assert tree(copy) == before


def test_a_folder_with_the_name_of_the_prepared_copy(core, copy, capsys):
    (copy / ".primax_core.vendoring").mkdir()
    assert run("--into", copy, "--update") == 0  # an empty one: killed at its start
    (copy / ".primax_core.vendoring").mkdir()
    (copy / ".primax_core.vendoring" / "mine").touch()
    assert run("--into", copy, "--update") == 2
    assert "was not made by primax_core.vendor" in capsys.readouterr().err
    assert (copy / ".primax_core.vendoring" / "mine").exists()


def test_two_runs_at_once(core, copy, capsys):
    pytest.importorskip("fcntl")
    with writing.locked(copy):
        assert run("--into", copy, "--update") == 2
    assert "another run of primax_core.vendor writes to" in capsys.readouterr().err
