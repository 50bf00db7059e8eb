"""What the sessions know about the wheels of the repository."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from tools import workspace


@pytest.fixture
def wheel(tmp_path: Path) -> workspace.Wheel:
    original = workspace.wheels()["primax-nn"]
    folder = tmp_path / "nn"
    shutil.copytree(original.folder, folder, ignore=shutil.ignore_patterns(*workspace.OUTPUTS))
    return dataclasses.replace(original, folder=folder)


@pytest.mark.parametrize("change", ["content", "name", "new", "moved bytes", "metadata"])
def test_a_wheel_is_built_again_if_its_sources_change(wheel, change):
    source = wheel.folder / "src" / "primax_nn" / "__init__.py"
    before = workspace.digest_of_sources(wheel)
    assert workspace.digest_of_sources(wheel) == before
    if change == "content":
        source.write_text(source.read_text() + "\n")
    elif change == "name":
        source.rename(source.with_name("other.py"))
    elif change == "new":
        (source.parent / "data.txt").touch()
    elif change == "moved bytes":
        first, second = source.with_name("a.py"), source.with_name("b.py")
        first.write_text("1\n2\n"), second.write_text("3\n")
        before = workspace.digest_of_sources(wheel)
        first.write_text("1\n"), second.write_text("2\n3\n")
    else:
        (wheel.folder / "pyproject.toml").write_text("")
    assert workspace.digest_of_sources(wheel) != before


def test_outputs_of_a_build_are_no_sources(wheel):
    before = workspace.digest_of_sources(wheel)
    for name in ("build/lib.txt", "src/primax_nn/__pycache__/a.pyc", "src/primax_nn/lib.so"):
        path = wheel.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("output")
    assert workspace.digest_of_sources(wheel) == before


def test_the_compiler_of_a_library_counts(monkeypatch):
    native = next(w for w in workspace.wheels().values() if w.native)
    before = workspace.digest_of_sources(native)
    monkeypatch.setenv("CXXFLAGS", "-O0")
    assert workspace.digest_of_sources(native) != before
