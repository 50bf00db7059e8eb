"""Rewriting of a module for a copy: imports, constants, and texts that contain names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from .origin import Origin
from .target import CORE, Refused, Target

_IMPORT: Final = re.compile(r"^\s*(?:from|import)\s+primax", re.MULTILINE)
_FAMILY: Final = re.compile(r"primax(_\w+)?")
_MODULES_OF_LAYERS: Final = {
    "image": "numpy", "numpy": "numpy", "ops": "numpy", "random": "numpy",
    "nn": "nn", "scipy": "scipy",
}  # fmt: skip
"""Modules of the facade that contain a layer, or a module of it."""


class Renaming:
    """The names of a copy, applied to the text of modules."""

    def __init__(self, target: Target, core: Origin) -> None:
        self.target: Target = target
        self.core: str = target.dotted(target.name)
        self.extras: dict[str, tuple[str, ...]] = core.extras
        self.names: dict[str, str] = target.names
        self.dotted: dict[str, str] = {
            original: target.dotted(name) for original, name in self.names.items()
        }
        # In one pass, because a new name may contain an old one. The command that makes copies
        # belongs to the original.
        self.pattern: re.Pattern[str] = re.compile(
            r"'?\bprimax-core\[(?P<extra>\w+)\]'?"
            r"|\b(?P<distribution>primax-core)\b"
            rf"|\b(?P<package>{'|'.join(self.dotted)})\b(?!\.vendor\b)"
            r"|\b(?P<prefix>PRIMAX_)"
            r"|\bprimax\.(?!readthedocs\b)(?P<public>[a-z]\w*)"
        )

    def module(self, source: str, path: str) -> str:
        """A module of a copied package; ``path`` is relative to the folder of all copies.

        Raises:
          Refused: it imports a package that is not copied.
        """
        if _IMPORT.search(source) is None:
            return self.text(source)
        lines = source.split("\n")
        imports = dict(self._imports(source, lines, path))
        return "\n".join(
            imports[number] if number in imports else self.text(line)
            for number, line in enumerate(lines, start=1)
        )

    def text(self, text: str) -> str:
        """A text with the copy's names."""
        return self.pattern.sub(self._replacement, text)

    def constants(self, source: str) -> str:
        """The module of the core that contains its names."""
        values = {
            "ENV_PREFIX": f'"{self.target.prefix}_"',
            "CACHE_FOLDER": f'"{cache_folder(self.target)}"',
            "PUBLIC_NAME": f'"{self.core}"',
            "VENDORED": "True",
        }
        for name, value in values.items():
            source, count = re.subn(
                rf"^{name}: Final = .*$", f"{name}: Final = {value}", source, flags=re.MULTILINE
            )
            if count != 1:
                raise RuntimeError(f"{CORE}._base.identity defines {name} {count} times")
        return source

    def _imports(self, source: str, lines: list[str], path: str) -> Iterator[tuple[int, str]]:
        """Numbers and new texts of the lines that import a package of the family."""
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                module = node.module or ""
            elif isinstance(node, ast.Import):
                module = node.names[0].name
            else:
                continue
            root = module.partition(".")[0]
            if _FAMILY.fullmatch(root) is None:
                continue
            if root not in self.names:
                raise Refused(
                    f"{path} imports {root}: add {root.removeprefix('primax_')} to --with"
                )
            line = lines[node.lineno - 1]
            statement = line.lstrip()
            old, new = self._statement(node, module, root, "." * (path.count("/") + 1))
            rest, count = re.subn(old, new, statement, count=1)
            if count != 1:
                raise RuntimeError(f"{path}:{node.lineno}: write the import of {root} alone")
            yield node.lineno, line[: len(line) - len(statement)] + rest

    def _statement(
        self, node: ast.Import | ast.ImportFrom, module: str, root: str, parent: str
    ) -> tuple[str, str]:
        """A pattern for the beginning of an import statement, and the text for the copy."""
        if not self.target.package:
            parent = ""
        renamed = self.names[root] + module[len(root) :]
        if isinstance(node, ast.ImportFrom):
            return rf"^from\s+{re.escape(module)}\b", f"from {parent}{renamed}"
        pattern = rf"^import\s+{re.escape(module)}(?=\s+as\s+\w+\s*(#.*)?$)"
        if not parent:
            return pattern, f"import {renamed}"
        above, _, last = renamed.rpartition(".")
        return pattern, f"from {parent}{above} import {last}"

    def _replacement(self, match: re.Match[str]) -> str:
        kind, name = match.lastgroup, match[match.lastgroup or 0]
        if kind == "extra":
            return " ".join(f"'{r}'" for r in self.extras.get(name, ())) or match[0]
        if kind == "package":
            return self.dotted[name]
        if kind == "prefix":
            return f"{self.target.prefix}_"
        if kind == "public":
            return self._public(name) or match[0]
        return self.core

    def _public(self, name: str) -> str | None:
        """The name in the copy of a module or function of the facade, if it is copied."""
        layer = _MODULES_OF_LAYERS.get(name)
        if layer is None:
            return f"{self.core}.{name}"
        package = self.dotted.get(f"primax_{layer}")
        return package if package is None or name == layer else f"{package}.{name}"


def cache_folder(target: Target) -> str:
    """Name of the cache folder of a copy."""
    return f"{target.prefix.lower()}-primax"
