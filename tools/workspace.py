"""Repository metadata for the nox sessions: wheels, build folders, Python interpreters."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build"
DIST: Final = ROOT / "dist"


def distribution_name(requirement: str) -> str:
    """Return the normalized distribution name of ``requirement``."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    if match is None:
        raise ValueError(f"not a requirement: {requirement!r}")
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def requested_extras(requirement: str) -> list[str]:
    """Return the extras between the brackets of ``requirement``."""
    match = re.match(r"[A-Za-z0-9._-]+\s*\[([^]]*)\]", requirement)
    return [extra.strip() for extra in match[1].split(",")] if match else []


def lowest(requirement: str) -> str:
    """The requirement with its lower bound as the only version: ``numpy==2.0``.

    Raises:
      ValueError: the requirement has no lower bound.
    """
    bound = re.search(r">=\s*([^,;\s]+)", requirement)
    if bound is None:
        raise ValueError(f"{requirement!r} states no lowest version")
    return f"{distribution_name(requirement)}=={bound[1]}"


@dataclass(frozen=True)
class Wheel:
    """One folder below ``packages`` with the metadata of its ``pyproject.toml``."""

    folder: Path
    distribution: str
    version: str
    dependencies: tuple[str, ...]
    extras: dict[str, tuple[str, ...]]
    native: bool = False
    """Whether the wheel has a compiled library, and so belongs to one platform."""

    @property
    def name(self) -> str:
        """Name of the folder: ``core``, ``numpy``, ..."""
        return self.folder.name

    @property
    def package(self) -> str:
        """Import name."""
        return self.distribution.replace("-", "_")

    @property
    def built(self) -> Path:
        """Path of the built wheel."""
        platform = re.sub("[-.]", "_", sysconfig.get_platform()) if self.native else "any"
        return DIST / f"{self.package}-{self.version}-py3-none-{platform}.whl"


# Files in a wheel's folder that are no sources.
OUTPUTS: Final = {"build", "dist", "__pycache__", ".hypothesis", ".pytest_cache"}


def digest_of_sources(wheel: Wheel) -> str:
    """A digest of all that a built wheel follows from.

    The files of its folder, the commit, which the core's wheel names, and for a compiled library
    the variables of the environment that choose the compiler.
    """
    digest = hashlib.sha256()
    for path in sorted(wheel.folder.rglob("*")):
        inner = path.relative_to(wheel.folder)
        if OUTPUTS.isdisjoint(inner.parts) and path.suffix != ".so" and path.is_file():
            content = path.read_bytes()
            digest.update(f"{inner.as_posix()} {len(content)} ".encode() + content)
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, check=False
    )
    digest.update(commit.stdout)
    if wheel.native:
        names = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CMAKE_ARGS", "SKBUILD_CMAKE_ARGS")
        digest.update(repr([sys.version, *map(os.environ.get, names)]).encode())
    return digest.hexdigest()


@cache
def wheels() -> dict[str, Wheel]:
    """Return all wheels of the repository by distribution name."""
    by_name: dict[str, Wheel] = {}
    for path in sorted(ROOT.glob("packages/*/pyproject.toml")):
        metadata = tomllib.loads(path.read_text())
        project = metadata["project"]
        name = distribution_name(project["name"])
        extras = project.get("optional-dependencies", {})
        by_name[name] = Wheel(
            folder=path.parent,
            distribution=name,
            version=project["version"],
            dependencies=tuple(project.get("dependencies", ())),
            extras={extra: tuple(needs) for extra, needs in extras.items()},
            native=metadata["build-system"]["build-backend"].startswith("scikit_build_core"),
        )
    return by_name


def resolve(*requirements: str) -> tuple[list[Wheel], list[str]]:
    """Return the first-party wheels and the third-party requirements of ``requirements``.

    ``resolve("primax[numpy]")`` follows extras and first-party dependencies recursively.
    """
    first_party: dict[str, Wheel] = {}
    third_party: dict[str, None] = {}
    visited: set[str] = set()
    todo = list(requirements)
    while todo:
        requirement = todo.pop(0)
        if requirement in visited:
            continue
        visited.add(requirement)
        wheel = wheels().get(distribution_name(requirement))
        if wheel is None:
            third_party[requirement] = None
            continue
        first_party[wheel.distribution] = wheel
        todo.extend(wheel.dependencies)
        for extra in requested_extras(requirement):
            todo.extend(wheel.extras[extra])
    return list(first_party.values()), list(third_party)


@cache
def compiler() -> str | None:
    """The C++ compiler with which wheels with compiled libraries are built, or None."""
    return shutil.which(os.environ.get("CXX") or "c++") or shutil.which("g++")


def marked(mark: str, paths: Iterable[str]) -> bool:
    """Whether a test module below one of the folders or files uses a mark."""
    for path in map(Path, paths):
        files = path.rglob("test_*.py") if path.is_dir() else [path] if path.is_file() else []
        if any(f"mark.{mark}" in file.read_text(encoding="utf-8") for file in files):
            return True
    return False


def _runs(candidate: str | Path, version: str) -> str | None:
    code = "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable)"
    command = [candidate, "-c", code]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = process.stdout.split("\n")
    return lines[1] if process.returncode == 0 and lines[0] == version else None


@cache
def find_interpreter(version: str) -> str | None:
    """Return the path of a working CPython ``version`` (``"3.12"``), or None.

    Searches PATH and all versions installed by pyenv, activated or not. (The pyenv shim of a
    version that is not activated exists, but fails.)
    """
    candidates: list[str | Path] = []
    for name in (f"python{version}", "python3", "python"):
        if path := shutil.which(name):
            candidates.append(path)
    for root in (os.environ.get("PYENV_ROOT"), Path.home() / ".pyenv"):
        if root:
            candidates.extend(sorted(Path(root).glob(f"versions/{version}.*/bin/python")))
    for candidate in candidates:
        if executable := _runs(candidate, version):
            return executable
    return None
