"""The tools that measure docstrings, and sources without docstrings, count what they say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent / "tools"


@pytest.fixture(scope="module", autouse=True)
def tools_on_the_path():
    sys.path.insert(0, str(TOOLS))
    yield
    sys.path.remove(str(TOOLS))


SOURCE = '''"""Module."""

x = 1  # comment é
"""Attribute."""


class C:
    """Class.

    Text: é.
    """

    def f(self):
        r"""Method."""
        return """no docstring"""
'''
DOCSTRINGS = (
    '"""Module."""',
    '"""Attribute."""',
    '"""Class.\n\n    Text: é.\n    """',
    'r"""Method."""',
)


@pytest.mark.parametrize("suffix", [".py", ".pyi"])
def test_the_size_of_code_leaves_out_docstrings_only(tmp_path: Path, suffix: str) -> None:
    import core_limits

    path = tmp_path / f"module{suffix}"
    path.write_text(SOURCE, encoding="utf-8")
    documentation = sum(len(text.encode()) for text in DOCSTRINGS)
    assert core_limits.code_size(path) == len(SOURCE.encode()) - documentation
    path.write_text("# " + "x" * 100, encoding="utf-8")
    assert core_limits.code_size(path) == 102  # comments count


PACKAGE = {
    "__init__.py": (
        "from typing import TYPE_CHECKING\n"
        "from ._functions import long as long, overloaded as overloaded\n"
        "from ._functions import hidden\n"
        "from . import public as public\n"
        "if TYPE_CHECKING:\n    from ._functions import lazy as lazy\n"
    ),
    "public.py": 'from .inner import short as brief\n\ndef own():\n    """One."""\n',
    "inner/__init__.py": "from .._functions import short as short\n",
    "_functions.py": (
        'def long():\n    """One.\n\n    Three.\n    """\n'
        'def lazy():\n    """One.\n\n    Three.\n    Four.\n    Five.\n    """\n'
        'def short():\n    """One."""\n'
        "def hidden(): ...\n"
        "@overload\ndef overloaded(x: int): ...\n"
        'def overloaded(x):\n    """One.\n\n    Three.\n    """\n'
    ),
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "acme"
    for name, text in PACKAGE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_medians_of_docstrings(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import docstring_lines

    assert docstring_lines.report(package, short=2) == 3  # 1, 1, 3, 3, 5 without `hidden`
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "  acme: 3 (3)",
        "  acme.inner: 1 (1)",
        "    below 2: short",
        "  acme.public: 1 (2)",
        "    below 2: brief own",
    ]


def test_a_median_below_the_floor_fails(
    package: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import docstring_lines

    root = package.parent / "root"
    (root / "packages/acme/src").mkdir(parents=True)
    package.rename(root / "packages/acme/src/acme")
    monkeypatch.setattr(docstring_lines, "ROOT", root)
    monkeypatch.setattr(sys, "argv", ["docstring_lines.py"])
    for floor, status in ((3, 0), (3.5, 1)):
        monkeypatch.setattr(docstring_lines, "FLOORS", {"acme": floor})
        assert docstring_lines.main() == status
        assert ("BELOW THE FLOOR" in capsys.readouterr().out) == bool(status)
