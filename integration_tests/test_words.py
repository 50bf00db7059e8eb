"""The checker of words (``tools/words.py``) reports each kind of mistake, and nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools" / "words.py"


def load() -> Any:
    """The tool as a module; ``tools`` is not a package."""
    spec = importlib.util.spec_from_file_location("words", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


words = load()


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [
        ('"""What the module does."""', 1, "begins with 'What'"),
        ('def f():\n    """Whether it is."""', 2, "begins with 'Whether'"),
        ('class C:\n    """How it works."""', 2, "begins with 'How'"),
        ("@rule\ndef _(x): ...", 2, "function is named '_'"),
        ("def f():\n    found = 1", 2, "variable is named 'found'"),
        ("def f(given): ...", 1, "variable is named 'given'"),
        ("for kept in x: ...", 1, "variable is named 'kept'"),
        ("x = 1  # on the short road", 1, "'short road': write fast path"),
        ('x = f"{y} shall not be"', 1, "'shall': write present-day English"),
        ('def f():\n    """Value.\n\n    The slope at 0.\n    """', 4, "'slope': write derivative"),
    ],
)
def test_findings(source: str, line: int, text: str) -> None:
    ((number, message),) = words.findings(source)
    assert number == line and text in message


def test_clean_source_has_no_findings() -> None:
    source = '''"""True if a value is even."""


def leaky(x, negative_slope):
    """Whatever follows: neither of ``negative_slope`` nor `found`."""
    _ = x  # unused
    return [_ for _ in x]
'''
    assert words.findings(source) == []


@pytest.mark.rotate(every=4, whole=True)
def test_clean_folders_exist_and_are_clean() -> None:
    assert all((words.ROOT / folder).is_dir() for folder in words.CLEAN)
    assert words.check(words.CLEAN) == []


def test_findings_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "m.py").write_text("made = 1\n")
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words.sys, "argv", ["words.py", "a"])
    assert words.check(["a"]) == ["a/m.py:1: variable is named 'made': name it after its value"]
    assert words.main() == 1
