"""Copy the core and its tests under another top-level name, as for vendoring.

``python tools/vendor.py --name acme_core --into build/vendored`` writes ``acme_core/`` and
``tests/`` there. The core's imports are relative, so the copy differs from the original only in
docstrings, error messages and tests that contain the name.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ORIGINAL = "primax_core"


def absolute_imports(source: str) -> list[int]:
    """Return the line numbers of ``source`` that import the original by its absolute name."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        if any(name.partition(".")[0] == ORIGINAL for name in names):
            lines.append(node.lineno)
    return lines


def rename(folder: Path, name: str) -> None:
    """Replace the original's name in every Python file below ``folder``."""
    for path in folder.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        renamed = re.sub(rf"\b{ORIGINAL}\b", name, source)
        if renamed != source:
            path.write_text(renamed, encoding="utf-8")


def copy_package(package: Path, name: str, into: Path) -> Path:
    """Copy the core's ``package`` folder to ``into / name`` and return the path of the copy.

    Raises:
      ValueError: a module imports the core absolutely; the message lists every such line.
    """
    absolute = [
        f"{path.relative_to(package)}:{line}"
        for path in sorted(package.rglob("*.py"))
        for line in absolute_imports(path.read_text(encoding="utf-8"))
    ]
    if absolute:
        raise ValueError(f"write these imports of {ORIGINAL} relatively: {', '.join(absolute)}")
    copy = into / name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    rename(copy, name)
    return copy


def main() -> None:
    """Copy the core and its tests."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--name", default="acme_core", help="top-level name of the copy")
    parser.add_argument("--into", type=Path, required=True, help="folder to write to")
    options = parser.parse_args()
    core = ROOT / "packages" / "core"
    copy_package(core / "src" / ORIGINAL, options.name, options.into)
    tests = options.into / "tests"
    shutil.copytree(core / "tests", tests, ignore=shutil.ignore_patterns("__pycache__"))
    rename(tests, options.name)
    print(f"copied {ORIGINAL} to {options.into / options.name}")


if __name__ == "__main__":
    main()
