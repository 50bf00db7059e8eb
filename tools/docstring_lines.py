"""Length of the docstrings of public functions: ``python tools/docstring_lines.py [WHEEL...]``.

Prints the median number of lines for each public module of each wheel, and for all functions of
a wheel. The wheel's median must not be below its floor. The sources are parsed, not imported; run
by ``nox -s lint``. With ``--short N`` the functions with fewer than N lines are listed too. Exit
status 0 if all floors are reached.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
# Minimum median of each wheel. Only raise a floor, never lower it. The goal is 15 for every wheel.
FLOORS: Final[dict[str, float]] = {
    "core": 19,
    "distributed": 13,
    "ffi": 15,
    "interpreters": 8,
    "kernels": 9,
    "nn": 11,
    "numpy": 16,
    "scipy": 15,
}
# Packages that are public without their submodules, although these have names without underscore.
CLOSED: Final = ("primax_core/lax", "primax_core/testing", "primax_core/vendor")
OPEN: Final = ("primax_core/lax/linalg",)


@cache
def statements(module: Path) -> dict[str, ast.stmt]:
    """Definitions and re-exports at the top level of a module, by name.

    Imports for type checkers count: modules that are loaded on first use have them.
    """
    names: dict[str, ast.stmt] = {}
    pending = list(ast.parse(module.read_bytes()).body)
    while pending:
        node = pending.pop(0)
        match node:
            case ast.If():
                pending += [*node.body, *node.orelse]
            case ast.FunctionDef(name=name):
                names[name] = node  # the last one, after its overloads
            case ast.ImportFrom(names=aliases):
                names.update({alias.asname or alias.name: node for alias in aliases})
    return names


def imported_from(module: Path, node: ast.ImportFrom) -> Path | None:
    """The module of the same wheel that a relative import names."""
    if not node.level or node.module is None:
        return None  # another wheel, or submodules
    path = module.parents[node.level - 1].joinpath(*node.module.split("."))
    options = [path.with_suffix(".py"), path / "__init__.py"]
    return next((option for option in options if option.exists()), None)


def function(module: Path, name: str) -> tuple[Path, ast.FunctionDef] | None:
    """The definition of a function that a module defines or re-exports, and its module."""
    node = statements(module).get(name)
    if isinstance(node, ast.FunctionDef):
        return module, node
    if isinstance(node, ast.ImportFrom):
        source = imported_from(module, node)
        original = next(a.name for a in node.names if (a.asname or a.name) == name)
        return None if source is None else function(source, original)
    return None


def public_names(module: Path) -> Iterator[str]:
    """Names without underscore that a module defines, or re-exports (``import f as f``)."""
    for name, node in statements(module).items():
        if name.startswith("_"):
            continue
        if isinstance(node, ast.FunctionDef):
            yield name
        elif isinstance(node, ast.ImportFrom):
            if any(alias.asname == name for alias in node.names):
                yield name


def public_modules(package: Path) -> Iterator[Path]:
    """Modules whose path has no name with an underscore at its start."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        name = "/".join(parts)
        closed = name not in OPEN and any(name.startswith(f"{c}/") for c in CLOSED)
        if not closed and not any(part.startswith("_") for part in parts):
            yield path


def lines(node: ast.FunctionDef) -> int:
    """Number of lines of a function's docstring."""
    return len(inspect.cleandoc(ast.get_docstring(node) or "").splitlines())


def report(package: Path, short: int) -> float | None:
    """Print the medians of a package; return that of all its public functions."""
    every: dict[tuple[Path, str], int] = {}
    for module in public_modules(package):
        counts = {}
        for name in public_names(module):
            if (definition := function(module, name)) is not None:
                path, node = definition
                counts[name] = every[path, node.name] = lines(node)
        if counts:
            parts = module.relative_to(package.parent).with_suffix("").parts
            title = ".".join(parts).removesuffix(".__init__")
            print(f"  {title}: {median(counts.values()):g} ({len(counts)})")
            below = sorted(name for name, count in counts.items() if count < short)
            if below:
                print(f"    below {short}: {' '.join(below)}")
    return median(every.values()) if every else None


def main() -> int:
    """Report on the wheels; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheels", nargs="*", help="folders below packages; all by default")
    parser.add_argument("--short", type=int, default=0, help="list functions with fewer lines")
    options = parser.parse_args()
    packages = sorted(ROOT.glob("packages/*/src/*/__init__.py"))
    failed = False
    for package in (path.parent for path in packages):
        wheel = package.parents[1].name
        if options.wheels and wheel not in options.wheels:
            continue
        print(package.name)
        middle, floor = report(package, options.short), FLOORS.get(wheel, 0)
        if middle is not None:
            state = "" if middle >= floor else " BELOW THE FLOOR"
            print(f"  median {middle:g}, floor {floor:g}{state}")
            failed |= middle < floor
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
