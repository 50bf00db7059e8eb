"""A small project that is copied in place of the core."""

from __future__ import annotations

import inspect
from pathlib import Path

from primax_core._base import identity
from primax_core.vendor import command, origin

PROJECT = """
[project]
name = "{name}"
dependencies = ["numpy>=2.0", "primax-core>=0.1,<1"]
[project.optional-dependencies]
export = ["flatbuffers>=24"]
"""
MODULES = {
    "primax_core/__init__.py": '"""The core, primax_core."""\n\n__version__ = "1.0"\n',
    "primax_core/_base/__init__.py": "",
    "primax_core/_base/identity.py": inspect.getsource(identity),
    "primax_core/lax.py": (
        "def add(x, y):\n"
        '    """See primax.devices(), primax.numpy.add, PRIMAX_ENABLE_X64.\n\n'
        "    >>> from primax_core import lax\n"
        '    """\n'
        "    raise TypeError(\"pip install 'primax-core[export]'\")\n"
    ),
    "primax_core/plain.py": "ONE = 1\n",
    "primax_core/py.typed": "",
    "primax_core/test_util.py": "",
    "primax_core/testing/__init__.py": "",
    "primax_core/vendor/__init__.py": "",
    "primax_core/vendor/command.py": "",
    "primax_core/commit.txt": "c0ffee\n",
    "primax_numpy/__init__.py": '__version__ = "2.0"\n',
    "primax_numpy/linalg/_norms.py": (
        "import primax_core as core\n"
        "import primax_core.lax as lax\n"
        "from primax_core import (\n    plain,\n)\n"
        "from primax_core.lax import add  # not primax_core\n"
        "import primax_numpy as pnp\n"
    ),
}
TESTS = {"test_it.py": "import primax_core\n\nassert primax_core.lax\n", "vendor/test_it.py": ""}


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def install(folder: Path, monkeypatch) -> Path:
    """Put the project in place of the core and of its layer; return its modules' folder."""
    for package in ("primax_core", "primax_numpy"):
        project = folder / package
        files = {f"src/{p}": t for p, t in MODULES.items() if p.startswith(package + "/")}
        name = package.replace("_", "-")
        write(project, {**files, "pyproject.toml": PROJECT.format(name=name), "LICENSE": "terms"})
    write(folder / "primax_core" / "tests", TESTS)
    real = origin._folder

    def place(package: str, distribution: str) -> Path:
        path = folder / package / "src" / package
        return path if path.exists() else real(package, distribution)

    monkeypatch.setattr(origin, "_folder", place)
    return folder / "primax_core" / "src" / "primax_core"


def run(*arguments: object) -> int:
    """Run the command in this process; the exit status."""
    return command.main([str(a) for a in arguments])


def tree(folder: Path) -> dict[str, bytes]:
    """The contents of the files below a folder."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }
