"""Manifest of an existing copy, and the comparison of a copy with its manifest."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from .contents import FORMAT, digest, manifest_path
from .target import ADDITIONS, CORE, MANIFEST, Refused


@dataclass(frozen=True)
class Manifest:
    """Record of an earlier run."""

    name: str
    prefix: str
    additions: tuple[str, ...]
    folders: tuple[str, ...]
    packages: dict[str, dict[str, str]]
    files: dict[str, str]

    def __str__(self) -> str:
        core = self.packages.get(CORE, {})
        return f"{core.get('version', '?')} (commit {core.get('commit', '?')})"


@dataclass
class State:
    """Paths of the files of a copy that differ from its manifest."""

    edited: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)


def names_in(folder: Path) -> list[str]:
    """Names of the copies that a folder contains."""
    return sorted(p.parent.name for p in folder.glob(f"*/{MANIFEST}"))


def read(folder: Path, name: str) -> Manifest | None:
    """The manifest of a copy; ``None`` if there is none.

    Raises:
      Refused: the file is not a manifest, or one with paths outside the folders of the copy.
    """
    path = folder / manifest_path(name)
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (NotADirectoryError, ValueError) as error:
        raise Refused(f"{path} is not a manifest: {error}") from None
    try:
        return _checked(data, name)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Refused(
            f"{path} is not a manifest that this version of {CORE} understands: {error!r}. "
            "Restore the file, or remove the copy and make it again"
        ) from None


def _checked(data: Any, name: str) -> Manifest:
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']}, this version writes {FORMAT}")
    manifest = Manifest(
        data["name"], data["prefix"], tuple(data["with"]), tuple(data["folders"]),
        dict(data["packages"]), dict(data["files"]),
    )  # fmt: skip
    if manifest.name != name:
        raise ValueError(f"it is the manifest of {manifest.name!r}")
    for addition in manifest.additions:
        if addition not in ADDITIONS:
            raise ValueError(f"unknown addition {addition!r}")
    if not all(f.isidentifier() for f in manifest.folders):
        raise ValueError("a folder is not a name")
    for file in manifest.files:
        parts = PurePosixPath(file).parts
        if len(parts) < 2 or parts[0] not in manifest.folders or ".." in parts or "\\" in file:
            raise ValueError(f"{file!r} is outside the copy")
    return manifest


def state(folder: Path, manifest: Manifest) -> State:
    """Compare the files of a copy with its manifest; byte code is ignored."""
    result = State()
    own = manifest_path(manifest.name)
    present: set[str] = set()
    for name in manifest.folders:
        for path in _walk(folder / name):
            inner = path.relative_to(folder).as_posix()
            present.add(inner)
            if inner == own:
                continue
            if inner not in manifest.files or path.is_symlink():
                result.unlisted.append(inner)
            elif digest(path.read_bytes()) != manifest.files[inner]:
                result.edited.append(inner)
    result.missing = sorted(set(manifest.files) - present)
    return result


def _walk(folder: Path) -> list[Path]:
    """Files and links below a folder, without byte code."""
    paths = []
    for above, folders, files in os.walk(folder):
        here = Path(above)
        links = [f for f in folders if (here / f).is_symlink()]
        folders[:] = [f for f in folders if f not in links]
        in_cache = here.name == "__pycache__"
        paths += [here / f for f in links]
        paths += [here / f for f in files if not (in_cache and f.endswith(".pyc"))]
    return sorted(paths)
