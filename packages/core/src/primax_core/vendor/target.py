"""Names and folder of a copy, and the checks that it cannot hide or overwrite anything else."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CORE: Final = "primax_core"
LAYERS: Final = ("interpreters", "nn", "numpy", "scipy")
KIT: Final = "kit"
TESTS: Final = "tests"
ADDITIONS: Final = (*LAYERS, KIT, TESTS)
MANIFEST: Final = "vendored.json"

_PREFIX: Final = re.compile(r"[A-Z][A-Z0-9_]*")


class Refused(Exception):
    """A copy cannot be made or changed; the message has the reason and the solution."""


@dataclass(frozen=True)
class Target:
    """Names of one copy.

    ``package`` is the import name of ``folder``, empty for a copy at the top level; ``name`` the
    name of the core's copy in it; ``additions`` the layers, the kit and the tests that it includes.
    """

    folder: Path
    package: str
    name: str
    prefix: str
    additions: tuple[str, ...]

    @property
    def layers(self) -> tuple[str, ...]:
        """The copied layers."""
        return tuple(a for a in self.additions if a in LAYERS)

    @property
    def names(self) -> dict[str, str]:
        """Names in ``folder`` of the copied packages, by their original names."""
        stem = self.name.removesuffix("_core")
        return {CORE: self.name} | {f"primax_{a}": f"{stem}_{a}" for a in self.layers}

    @property
    def folders(self) -> tuple[str, ...]:
        """Names of the folders that the copy consists of."""
        tests = (f"{self.name}_{TESTS}",) if TESTS in self.additions else ()
        return (*self.names.values(), *tests)

    def dotted(self, name: str) -> str:
        """Import name of a package in ``folder``."""
        return f"{self.package}.{name}" if self.package else name


def check_folder(text: str) -> Path:
    """The absolute path of the folder for copies, which may not exist yet.

    Raises:
      Refused: it cannot be one.
    """
    if os.sep == "/" and "\\" in text:
        raise Refused(f"--into {text}: write the path with /, as in {text.replace(chr(92), '/')}")
    if not text:
        raise Refused("--into is empty: give a folder, as in --into acme/_vendor")
    folder = Path(os.path.abspath(text))
    if folder.is_symlink():
        raise Refused(f"{folder} is a symbolic link to {os.readlink(folder)}: give that folder")
    if folder.exists() and not folder.is_dir():
        raise Refused(f"{folder} is not a folder")
    if not folder.parent.is_dir():
        raise Refused(f"the folder {folder.parent} does not exist; create it, or correct --into")
    if (folder / MANIFEST).exists():
        raise Refused(f"{folder} is a copy itself: give the folder above, --into {folder.parent}")
    source = Path(__file__).resolve().parent.parent
    if source == folder.resolve() or source in folder.resolve().parents:
        raise Refused(f"{folder} is inside the package that is copied")
    return folder


def package_of(folder: Path) -> str:
    """Import name of a folder below a package; empty if neither it nor its parent is a package.

    Raises:
      Refused: a folder of the path is not importable.
    """
    if not any((f / "__init__.py").exists() for f in (folder, folder.parent)):
        return ""
    parts, here = [folder.name], folder.parent
    while (here / "__init__.py").exists() and here != here.parent:
        parts.insert(0, here.name)
        here = here.parent
    for part in parts:
        if not part.isidentifier() or keyword.iskeyword(part):
            raise Refused(f"{folder} is below a package, but {part!r} cannot be imported")
    return ".".join(parts)


def check_name(name: str) -> str:
    """The name of a copied package.

    Raises:
      Refused: it is not a name, or is that of a module of the standard library.
    """
    if "." in name:
        above, _, last = name.rpartition(".")
        raise Refused(
            f"--name {name}: a name has no dots; the folder decides the package, as in "
            f"--into {above.replace('.', '/')} --name {last}"
        )
    if not name.isidentifier():
        raise Refused(f"--name {name}: not a Python identifier")
    if keyword.iskeyword(name):
        raise Refused(f"--name {name}: a keyword of Python")
    if name in sys.stdlib_module_names:
        raise Refused(f"--name {name}: a module of the standard library")
    return name


def check_prefix(prefix: str | None, package: str, name: str) -> str:
    """The prefix of environment variables, by default that of the outermost package.

    Raises:
      Refused: it is not in capital letters.
    """
    if prefix is None:
        prefix = (package or name).partition(".")[0].strip("_").removesuffix("_core").upper()
    if _PREFIX.fullmatch(prefix) is None or prefix.endswith("_"):
        raise Refused(
            f"{prefix!r} cannot be the prefix of environment variables: give one in capital "
            "letters, as in --prefix ACME for ACME_ENABLE_X64"
        )
    return prefix


def check_free(target: Target, own: frozenset[str]) -> None:
    """Check that the copy overwrites and hides nothing.

    Args:
      target: the copy.
      own: names of the folders that an earlier run wrote.

    Raises:
      Refused: it would; the message names what.
    """
    for name in target.folders:
        for path in (target.folder / name, target.folder / f"{name}.py"):
            is_own = name in own and path.name == name and path.is_dir()
            if os.path.lexists(path) and (path.is_symlink() or not is_own):
                raise Refused(
                    f"{path} exists, and no copy of {CORE} is recorded there: choose another "
                    "--name or --into, or move it away"
                )
        if not target.package:
            _check_not_installed(name, target.folder / name)


def _check_not_installed(name: str, path: Path) -> None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return
    if spec is None:
        return
    places = spec.submodule_search_locations or [spec.origin or ""]
    if path.resolve() not in [Path(p).resolve() for p in places]:
        raise Refused(
            f"--name {name}: a module of this name is installed ({next(iter(places))}), and the "
            "copy would hide it. Choose another --name, or copy below a package, as in "
            "--into acme/_vendor"
        )
