"""Names of JAX that libraries use and ``primax.as_jax`` lacks.

``python tools/private_names.py WHAT...``, where WHAT is an installed package, a folder of sources,
or a wheel (``.whl``). The sources are read, not run: each name is imported from Primax as a program
under ``as_jax`` would import it. The table has, for each missing name, the number of places and the
first of them; ``--all`` lists the available names too. The exit status is 1 if a name is missing.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

Sources = Iterator[tuple[str, str]]


def sources(what: str) -> Sources:
    """The path and the text of each Python file of a wheel, a folder or an installed package.

    Raises:
      ValueError: if there is no such thing.
    """
    path = Path(what)
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            for name in sorted(n for n in archive.namelist() if n.endswith(".py")):
                yield name, archive.read(name).decode("utf-8", "replace")
        return
    folders = [path] if path.is_dir() else []
    if not folders and what.isidentifier() and (spec := importlib.util.find_spec(what)):
        folders = [Path(p) for p in spec.submodule_search_locations or ()]
    if not folders:
        raise ValueError(f"{what} is no wheel, no folder, and no package that is installed")
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            yield str(file.relative_to(folder.parent)), file.read_text("utf-8", "replace")


class _Uses(ast.NodeVisitor):
    """The dotted names below ``jax`` that a module uses, with their lines."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.names: list[tuple[str, int]] = []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] == "jax":
                self.names.append((alias.name, node.lineno))
                self.aliases[alias.asname or "jax"] = alias.name if alias.asname else "jax"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level == 0 and module.partition(".")[0] == "jax":
            for alias in node.names:
                name = module if alias.name == "*" else f"{module}.{alias.name}"
                self.names.append((name, node.lineno))
                self.aliases[alias.asname or alias.name] = name

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, value = [node.attr], node.value
        while isinstance(value, ast.Attribute):
            parts.append(value.attr)
            value = value.value
        if isinstance(value, ast.Name) and value.id in self.aliases:
            name = ".".join([self.aliases[value.id], *reversed(parts)])
            self.names.append((name, node.lineno))
        else:
            self.generic_visit(node)


def uses(text: str) -> list[tuple[str, int]]:
    """The dotted names below ``jax`` in a module, with their lines; none if it does not parse."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    visitor = _Uses()
    visitor.visit(tree)
    return visitor.names


def missing_part(name: str) -> str | None:
    """The shortest part of a dotted name that cannot be had, or ``None``.

    Attributes of objects other than modules, such as methods, are not looked up.
    """
    parts = name.split(".")
    value: object = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        if not isinstance(value, ModuleType):
            return None
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError):
            try:
                value = importlib.import_module(".".join(parts[:i]))
            except ImportError:
                return ".".join(parts[:i])
    return None


def report(what: str, every: bool = False) -> int:
    """Print the table of one library; return the number of missing names."""
    places: dict[str, list[str]] = {}
    for path, text in sources(what):
        for name, line in uses(text):
            places.setdefault(name, []).append(f"{path}:{line}")
    missing: dict[str, list[str]] = {}
    for name, where in places.items():
        part = missing_part(name)
        if part is not None:
            missing.setdefault(part, []).extend(where)
    print(f"{what}: {len(places)} names of jax, {len(missing)} of them missing")
    for name, where in sorted(missing.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"  {name}  {len(where)} x, {where[0]}")
    if every:
        for name in sorted(n for n in places if missing_part(n) is None):
            print(f"  available: {name}")
    return len(missing)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python tools/private_names.py")
    parser.add_argument("what", nargs="+", help="a package, a folder or a wheel")
    parser.add_argument("--all", action="store_true", help="list available names too")
    options = parser.parse_args(arguments)
    import primax.as_jax

    primax.as_jax.install()
    counts = [report(what, options.all) for what in options.what]
    return int(any(counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
