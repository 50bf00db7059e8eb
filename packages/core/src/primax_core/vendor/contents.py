"""Files of a copy: modules with their new names, license, notice and manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from . import origin
from .origin import COMMIT_FILE, Origin
from .renaming import Renaming, cache_folder
from .target import CORE, KIT, MANIFEST, TESTS, Refused, Target

FORMAT: Final = 1
"""Version of the format of the manifest."""

_MARK: Final = "# Changed from the original: see NOTICE.\n"
_KIT: Final = ("testing", "test_util.py")
_NEVER: Final = ("__pycache__", "vendor", COMMIT_FILE)
_COMMAND: Final = '''\
"""Reply of the command that made this copy: a copy does not copy itself."""

import sys
from pathlib import Path


def main() -> int:
    """Print the command that updates the copy; the exit status."""
    folder = Path(__file__).resolve().parent.parent
    print(
        "error: this is a copy of {core}, which cannot copy itself. Install the original and "
        f"run, in another folder: python -m {core}.vendor --into {{folder}} --update",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
'''


def contents(target: Target) -> dict[str, bytes]:
    """Each file of a copy, by its path below the target's folder; the manifest is the last one.

    Raises:
      Refused: a package is not installed, or imports one that is not copied.
    """
    origins = {package: origin.find(package) for package in target.names}
    core = origins[CORE]
    renaming = Renaming(target, core)
    files: dict[str, bytes] = {}
    for package, name in target.names.items():
        source = origins[package]
        left_out = _left_out(target) if package == CORE else _NEVER
        for path, inner in _files(source.folder, left_out):
            files[f"{name}/{inner}"] = _renamed(path, f"{name}/{inner}", renaming)
        files[f"{name}/LICENSE"] = source.license
        files[f"{name}/NOTICE"] = _notice(target, source, left_out).encode()
    if TESTS in target.additions:
        for path, inner in _files(_tests(core), _NEVER):
            data = path.read_bytes()
            if path.suffix == ".py":
                data = _marked(data.decode(), renaming.text(data.decode()))
            files[f"{target.name}_{TESTS}/{inner}"] = data
    identity = f"{target.name}/_base/identity.py"
    files[identity] = renaming.constants(files[identity].decode()).encode()
    files[f"{target.name}/vendor.py"] = _COMMAND.format(core=CORE).encode()
    files[manifest_path(target.name)] = _manifest(target, origins, files)
    return files


def manifest_path(name: str) -> str:
    """Path of the manifest of the copy of a name."""
    return f"{name}/{MANIFEST}"


def digest(data: bytes) -> str:
    """The digest of a file in the manifest."""
    return hashlib.sha256(data).hexdigest()


def _left_out(target: Target) -> tuple[str, ...]:
    return _NEVER if KIT in target.additions else (*_NEVER, *_KIT)


def _files(folder: Path, left_out: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    """The files of a package, with their paths relative to it."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and parts[0] not in left_out and "__pycache__" not in parts:
            yield path, "/".join(parts)


def _tests(core: Origin) -> Path:
    if core.tests is None:
        raise Refused(
            f"--with {TESTS}: the wheel of {core.distribution} has no tests; run this in a "
            "checkout or an unpacked source distribution, with its folder src on PYTHONPATH"
        )
    return core.tests


def _renamed(path: Path, inner: str, renaming: Renaming) -> bytes:
    data = path.read_bytes()
    if path.suffix not in (".py", ".pyi"):
        return data
    source = data.decode()
    return _marked(source, renaming.module(source, inner))


def _marked(before: str, after: str) -> bytes:
    """A module with the notice of changes that its license requires."""
    return (after if after == before else after + _MARK).encode()


def _notice(target: Target, source: Origin, left_out: tuple[str, ...]) -> str:
    name = target.dotted(target.names[source.package])
    absent = [n for n in left_out if n in _KIT]
    lines = [
        f"{name} is a copy of {source},",
        f"made by python -m {CORE}.vendor. Its license is in the file LICENSE.",
        "",
        "Changes:",
        f"- The package is called {name}; imports, docstrings and messages use its names.",
    ]
    if source.package == CORE:
        lines += [
            f"- Names of environment variables begin with {target.prefix}_.",
            f"- The folder of the cache on disk is called {cache_folder(target)}.",
            "- The module vendor only refers to the original.",
        ]
    if absent:
        lines += [f"- These modules were left out: {', '.join(absent)}."]
    lines += [
        "",
        "Changed modules end with a comment that refers to this file.",
        "",
        "Requirements:",
        *(f"- {r}" for r in _requirements([source])),
    ]
    return "\n".join(lines) + "\n"


def _requirements(origins: Iterable[Origin]) -> list[str]:
    """Packages that must be installed, without those in the copy."""
    lines = {r for o in origins for r in o.requires if not r.startswith("primax-")}
    return sorted(lines)


def _manifest(target: Target, origins: dict[str, Origin], files: dict[str, bytes]) -> bytes:
    data: dict[str, Any] = {
        "format": FORMAT,
        "made_by": f"python -m {CORE}.vendor",
        "name": target.name,
        "prefix": target.prefix,
        "with": list(target.additions),
        "folders": list(target.folders),
        "packages": {
            o.package: {"version": o.version, "commit": o.commit} for o in origins.values()
        },
        "requires": _requirements(origins.values()),
        "files": {path: digest(files[path]) for path in sorted(files)},
    }
    return (json.dumps(data, indent=1) + "\n").encode()
