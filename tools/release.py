"""Versions, changelogs, contents and notes of a wheel: the logic of ``nox -s release``.

``python tools/release.py`` compares the versions in ``pyproject.toml``, ``__init__.py`` and
``CHANGELOG.md`` of every wheel, as ``nox -s lint`` does.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import workspace
from workspace import BUILD, ROOT, Wheel

CORE: Final = "primax-core"
UNRELEASED: Final = "unreleased"
COMMIT: Final = "commit.txt"  # written by the build, see packages/core/hatch_build.py
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def git(*args: str, root: Path = ROOT) -> str:
    """Output of a git command.

    Raises:
      RuntimeError: git failed; the message is git's.
    """
    done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


def find_wheel(name: str) -> Wheel:
    """The wheel whose folder or distribution is called ``name``.

    Raises:
      ValueError: there is none; the message lists those that exist.
    """
    for wheel in workspace.wheels().values():
        if name in (wheel.name, wheel.distribution):
            return wheel
    names = ", ".join(wheel.name for wheel in workspace.wheels().values())
    raise ValueError(f"no wheel is called {name!r}; there are {names}")


# ---- versions -------------------------------------------------------------------------------


def tag(wheel: Wheel) -> str:
    """Tag of the wheel's version: ``core-v0.1.0``."""
    return f"{wheel.name}-v{wheel.version}"


def init_version(source: str) -> str | None:
    """The string that ``source`` assigns to ``__version__``."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            if any(isinstance(t, ast.Name) and t.id == "__version__" for t in node.targets):
                return str(node.value.value)
    return None


@dataclass(frozen=True)
class Section:
    """One version's part of a changelog."""

    version: str
    date: str
    text: str


def sections(changelog: str) -> list[Section]:
    """The parts of a changelog that begin with ``## 0.1.0 (2026-12-01)``, in their order."""
    heading = re.compile(r"^## (\S+) \(([^)]*)\)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    return [Section(m[1], m[2], m[3].strip()) for m in heading.finditer(changelog)]


def section(wheel: Wheel) -> Section | None:
    """The section of the wheel's changelog for its version."""
    path = wheel.folder / "CHANGELOG.md"
    text = path.read_text("utf-8") if path.exists() else ""
    return next((s for s in sections(text) if s.version == wheel.version), None)


@dataclass(frozen=True)
class ApiRange:
    """Versions of the extension API that a wheel works with."""

    since: tuple[int, int]
    before: tuple[int, int]

    def __contains__(self, version: tuple[int, int]) -> bool:
        return self.since <= version < self.before


def api_range(source: str) -> ApiRange | None:
    """The range that a call of ``requires(...)`` in ``source`` declares."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "requires":
                bounds = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
                since = bounds["since"]
                return ApiRange(since, bounds.get("before") or (since[0] + 1, 0))
    return None


def disagreements(wheel: Wheel) -> list[str]:
    """What ``pyproject.toml``, ``__init__.py``, ``CHANGELOG.md`` and the pins disagree about."""
    package = wheel.folder / "src" / wheel.package
    found = []
    version = init_version((package / "__init__.py").read_text("utf-8"))
    if version != wheel.version:
        found.append(
            f"pyproject.toml has version {wheel.version}, {wheel.package}.__version__ is {version}"
        )
    if section(wheel) is None:
        found.append(f"CHANGELOG.md has no section '## {wheel.version} (date or {UNRELEASED})'")
    requirements = [*wheel.dependencies, *(n for needs in wheel.extras.values() for n in needs)]
    for requirement in requirements:
        name = workspace.distribution_name(requirement)
        if name not in workspace.wheels() or name == wheel.distribution:
            continue
        major = int(workspace.wheels()[name].version.partition(".")[0])
        if not re.search(rf">=[\d.]+,<{major + 1}$", requirement):
            found.append(f"{requirement!r} is to be pinned as '{name}>=X.Y,<{major + 1}'")
    if any(workspace.distribution_name(r) == CORE for r in wheel.dependencies):
        declared = package / "_core_version.py"
        if not declared.exists() or api_range(declared.read_text("utf-8")) is None:
            found.append("_core_version.py does not declare the extension API with requires(...)")
    return [f"{wheel.name}: {line}" for line in found]


# ---- what was built ---------------------------------------------------------------------------


def tracked(folder: Path) -> set[str]:
    """Files below ``folder`` that git tracks, relative to it."""
    return set(git("ls-files", "-z", ".", root=folder).split("\0")) - {""}


def included(wheel: Wheel) -> set[str]:
    """Files that only the source distribution has: copies of folders outside the wheel's."""
    metadata = tomllib.loads((wheel.folder / "pyproject.toml").read_text("utf-8"))
    if wheel.native:
        return set()
    target = metadata["tool"]["hatch"]["build"]["targets"]["sdist"]
    return {
        f"{into}/{name}"
        for source, into in target.get("force-include", {}).items()
        for name in tracked(wheel.folder / source)
    }


def difference(actual: set[str], expected: set[str], where: str) -> list[str]:
    """A line for each file that is missing or should not be there."""
    missing = [f"{where} lacks {name}" for name in sorted(expected - actual)]
    return missing + [f"{where} holds {name}, unexpected" for name in sorted(actual - expected)]


def check_wheel(built: Path, wheel: Wheel, files: set[str]) -> list[str]:
    """Compares a built wheel with the tracked ``files`` of its folder."""
    info = f"{wheel.package}-{wheel.version}.dist-info"
    expected = {f.removeprefix("src/") for f in files if f.startswith("src/")}
    expected |= {f"{info}/{n}" for n in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE")}
    if wheel.native:
        suffix = ".dylib" if sys.platform == "darwin" else ".so"
        expected.add(f"{wheel.package}/lib{wheel.package}{suffix}")
    with zipfile.ZipFile(built) as archive:
        actual = {n for n in archive.namelist() if not n.endswith("/")}
    actual.discard(f"{wheel.package}/{COMMIT}")
    found = difference(actual, expected, built.name)
    if f"{wheel.package}/py.typed" not in actual:
        found.append(f"{built.name} lacks py.typed, so its types are not used")
    return found


def check_sdist(built: Path, wheel: Wheel, files: set[str]) -> list[str]:
    """Compares a source distribution with the tracked ``files`` of its folder."""
    folder = f"{wheel.package}-{wheel.version}/"
    expected = {folder + f for f in files} | {folder + "PKG-INFO"}
    if not wheel.native:  # hatchling adds the repository's ignore file, to build the same again
        expected.add(folder + ".gitignore")
    with tarfile.open(built) as archive:
        actual = {m.name for m in archive.getmembers() if not m.isdir()}
    actual.discard(f"{folder}src/{wheel.package}/{COMMIT}")
    return difference(actual, expected, built.name)


def smoke(wheel: Wheel) -> str:
    """A program that imports the installed wheel and runs the examples of its README."""
    examples = _BLOCK.findall((wheel.folder / "README.md").read_text("utf-8"))
    imported = (
        f"import {wheel.package}\n"
        f"assert {wheel.package}.__version__ == {wheel.version!r}, {wheel.package}.__version__\n"
        f"assert 'site-packages' in {wheel.package}.__file__, {wheel.package}.__file__\n"
    )
    return "\n".join([imported, *examples])


# ---- a release --------------------------------------------------------------------------------


def folder(wheel: Wheel) -> Path:
    """Where a release is built."""
    return BUILD / "release" / wheel.name


def errors_before_building(wheel: Wheel) -> list[str]:
    """Why this version cannot be released."""
    found = disagreements(wheel)
    if git("tag", "--list", tag(wheel)).strip():
        found.append(f"{wheel.name}: {tag(wheel)} exists already; choose the next version")
    return found


def write_notes(wheel: Wheel) -> Path:
    """Writes the release notes from the section of the changelog.

    Raises:
      ValueError: the changelog has no section for the version.
    """
    changes = section(wheel)
    if changes is None:
        raise ValueError(f"{wheel.folder / 'CHANGELOG.md'} has no section for {wheel.version}")
    path = folder(wheel) / "NOTES.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {wheel.distribution} {wheel.version}\n\n{changes.text}\n", "utf-8")
    return path


def steps_before_tagging(wheel: Wheel) -> list[str]:
    """What is left to do after the checks have passed."""
    steps = []
    changes = section(wheel)
    if changes is not None and changes.date == UNRELEASED:
        steps.append(f"write the date for ({UNRELEASED}) in packages/{wheel.name}/CHANGELOG.md")
    if git("status", "--porcelain", "--", str(wheel.folder)).strip():
        steps.append(f"commit packages/{wheel.name}")
    return steps


def tag_command(wheel: Wheel) -> str:
    """The command that tags the release with its notes."""
    notes = (folder(wheel) / "NOTES.md").relative_to(ROOT)
    return f"git tag --annotate {tag(wheel)} --cleanup=verbatim --file {notes}"


def main() -> int:
    """Prints what the wheels' versions disagree about; 1 if there is anything."""
    lines = [line for wheel in workspace.wheels().values() for line in disagreements(wheel)]
    print("\n".join(lines) or "versions, changelogs and pins agree")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
