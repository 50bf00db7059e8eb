"""Sources, versions, commits and licenses of the packages that are copied."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from .target import CORE, Refused

COMMIT_FILE: Final = "commit.txt"
UNKNOWN: Final = "unknown"

_EXTRA: Final = re.compile(r"""\s*extra\s*==\s*['"]([\w-]+)['"]\s*""")
_VERSION: Final = re.compile(r"""^__version__ = ["']([^"']+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class Origin:
    """A package in a checkout or an installed wheel, with its requirements."""

    package: str
    folder: Path
    distribution: str
    version: str
    commit: str
    requires: tuple[str, ...]
    extras: dict[str, tuple[str, ...]]
    license: bytes
    tests: Path | None

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} (commit {self.commit})"


def find(package: str) -> Origin:
    """The sources of a package; it is not imported.

    Raises:
      Refused: it is not installed, or has no license.
    """
    distribution = package.replace("_", "-")
    folder = _folder(package, distribution)
    match = _VERSION.search((folder / "__init__.py").read_text("utf-8"))
    version = match[1] if match else UNKNOWN
    project = folder.parent.parent
    config = _project(project, distribution) if folder.parent.name == "src" else None
    if config is not None:
        extras = {k: tuple(v) for k, v in config.get("optional-dependencies", {}).items()}
        tests = project / "tests"
        return Origin(
            package, folder, distribution, version, _recorded(folder) or _from_git(project, folder),
            tuple(config.get("dependencies", ())), extras,
            _license(distribution, [project / "LICENSE"]), tests if tests.is_dir() else None,
        )  # fmt: skip
    installed = _installed(package, folder, distribution)
    requires, extras = _requirements(installed)
    licenses = [Path(str(f.locate())) for f in installed.files or () if f.name == "LICENSE"]
    return Origin(
        package, folder, distribution, version, _recorded(folder) or _from_url(installed),
        requires, extras, _license(distribution, licenses), None,
    )  # fmt: skip


def _folder(package: str, distribution: str) -> Path:
    if package == CORE:
        return Path(__file__).resolve().parent.parent
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    folder = Path(places[0]).resolve() if places else Path()
    if not places or not (folder / "__init__.py").is_file():
        layer = package.partition("_")[2]
        raise Refused(f"--with {layer}: {package} is not installed: pip install {distribution}")
    return folder


def _project(project: Path, distribution: str) -> dict[str, Any] | None:
    """The ``[project]`` table of a checkout or a source distribution."""
    try:
        table = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    except (OSError, KeyError, ValueError):
        return None
    return table if table.get("name") == distribution else None


def _installed(package: str, folder: Path, distribution: str) -> metadata.Distribution:
    for path in ([str(folder.parent)], sys.path):
        for installed in metadata.distributions(name=distribution, path=list(path)):
            if Path(str(installed.locate_file(package))).resolve() == folder:
                return installed
    raise Refused(
        f"{folder} belongs to no installed distribution {distribution}, so its license is not "
        f"known: pip install {distribution}, or run this in a checkout"
    )


def _requirements(
    installed: metadata.Distribution,
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    requires: list[str] = []
    extras: dict[str, tuple[str, ...]] = {}
    for line in installed.requires or ():
        requirement, _, marker = line.partition(";")
        extra = _EXTRA.fullmatch(marker)
        if extra:
            extras[extra[1]] = (*extras.get(extra[1], ()), requirement.strip())
        else:
            requires.append(line)
    return tuple(requires), extras


def _license(distribution: str, paths: list[Path]) -> bytes:
    for path in paths:
        try:
            return path.read_bytes()
        except OSError:
            continue
    raise Refused(f"{distribution} has no file LICENSE, and a copy must include it")


def _recorded(folder: Path) -> str | None:
    """The commit that the build wrote into the package."""
    try:
        return (folder / COMMIT_FILE).read_text("utf-8").strip() or None
    except OSError:
        return None


def _from_url(installed: metadata.Distribution) -> str:
    """The commit of a package that pip installed from a repository."""
    try:
        url = json.loads(installed.read_text("direct_url.json") or "{}")
        return str(url["vcs_info"]["commit_id"])
    except (ValueError, KeyError, TypeError):
        return UNKNOWN


def _from_git(project: Path, folder: Path) -> str:
    module = str(folder / "__init__.py")
    if _git(project, "ls-files", "--error-unmatch", module) is None:
        return UNKNOWN
    commit = _git(project, "rev-parse", "HEAD")
    changes = _git(project, "status", "--porcelain", "--", str(folder))
    return f"{commit}, with changes" if commit and changes else commit or UNKNOWN


def _git(project: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(project), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
