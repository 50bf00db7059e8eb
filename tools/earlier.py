"""Wheels as they were at earlier commits, for ``nox -s compat``.

An earlier wheel is the newest tag of its scheme (``core-v0.1.0``) below HEAD or, as long as it has
none, the commit in ``[tool.primax.last-built]`` of the root ``pyproject.toml``. The table has an
empty string for a wheel that is new since then, and needs a core that is newer, too.
"""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import release
import workspace
from release import CORE, ApiRange, git
from workspace import ROOT, Wheel

SMOKE: Final = {
    "distributed": ("test_meshes.py", "test_partition_specs.py", "test_named_sharding.py"),
    "ffi": ("test_ffi_call.py", "test_ffi_arguments.py", "test_ffi_targets.py"),
    "ffi_cpu": ("test_sort_kernels.py", "test_cumulative_kernels.py"),
    "interpreters": ("test_jet.py", "test_checkify.py", "test_explain.py"),
    "kernels": ("test_pallas_call.py", "test_accesses.py", "test_kernel_errors.py"),
    "numpy": ("test_numpy_wheel.py", "test_numpy_methods.py", "test_numpy_indexing.py"),
    "nn": ("test_nn_wheel.py", "test_nn_errors.py", "test_nn_derivatives.py"),
    "scipy": ("test_special_edges.py", "test_sparse_arrays.py", "test_scipy_linalg.py"),
    "primax": ("test_facade_names.py", "test_facade_config.py", "test_adapters_rules.py"),
}
"""Test modules of each wheel of which ``nox -s compat`` runs some tests (``smoke_sample``)."""

_ANY_1: Final = ApiRange((1, 0), (2, 0))  # of wheels from before they declared a range


def store() -> Path:
    """Folder of earlier sources and wheels, outside the checkout and kept between runs."""
    if named := os.environ.get("PRIMAX_EARLIER_WHEELS"):
        return Path(named)
    cached = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cached) / "primax-earlier-wheels"


@dataclass(frozen=True)
class Earlier:
    """A wheel at a commit; ``label`` says which one in messages."""

    name: str
    commit: str
    label: str
    tagged: bool

    @property
    def sources(self) -> Path:
        """The repository at the commit."""
        return store() / "sources" / self.commit

    @property
    def wheels(self) -> Path:
        """Folder of the built wheel."""
        return store() / "wheels" / self.commit / self.name

    def built(self) -> Path | None:
        """The built wheel, if an earlier run built it."""
        return next(self.wheels.glob("*.whl"), None)

    def unpack(self) -> Path:
        """Unpacks the sources, unless an earlier run did, and returns the wheel's folder."""
        if not self.sources.exists():
            unfinished = self.sources.with_suffix(f".{os.getpid()}")
            unfinished.mkdir(parents=True)
            command = ["git", "archive", self.commit]
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as archive:
                with tarfile.open(fileobj=archive.stdout, mode="r|") as members:
                    members.extractall(unfinished, filter="data")
            unfinished.rename(self.sources)
        return self.sources / "packages" / self.name

    def api_range(self) -> ApiRange:
        """Versions of the extension API that the wheel works with."""
        path = f"packages/{self.name}/src/{_package(self.name)}/_core_version.py"
        return release.api_range(file_at(self.commit, path)) or _ANY_1

    def api_version(self) -> tuple[int, int]:
        """Version of the extension API that the core offers at the commit."""
        return api_version(lambda path: file_at(self.commit, path))

    def smoke_tests(self) -> list[str]:
        """Paths of the test modules at the commit."""
        return smoke_tests(self.name, self.unpack())


def _package(name: str) -> str:
    return release.find_wheel(name).package


def file_at(commit: str, path: str) -> str:
    """Text of a file at a commit; empty if it does not exist there."""
    listed = git("ls-tree", "--name-only", commit, "--", path)
    return git("show", f"{commit}:{path}") if listed.strip() else ""


def api_version(read: Callable[[str], str]) -> tuple[int, int]:
    """Value of ``API_VERSION`` in the sources that ``read`` returns for a path.

    Raises:
      RuntimeError: no module of the extension API assigns it.
    """
    for module in ("versions", "__init__"):
        source = read(f"packages/core/src/primax_core/extend/{module}.py")
        if match := re.search(r"^API_VERSION\b.*= \((\d+), (\d+)\)$", source, re.MULTILINE):
            return int(match[1]), int(match[2])
    raise RuntimeError("API_VERSION = (major, minor) is in no module of primax_core.extend")


def newest_api_version() -> tuple[int, int]:
    """Version of the extension API in the working tree."""
    return api_version(lambda path: p.read_text("utf-8") if (p := ROOT / path).exists() else "")


def tags(name: str) -> list[str]:
    """Release tags of a wheel below HEAD, oldest first; a tag at HEAD is not below it."""
    pattern, order = f"{name}-v*", "--sort=version:refname"
    here = set(git("tag", "--list", pattern, "--points-at", "HEAD").split())
    below = git("tag", "--list", pattern, order, "--merged", "HEAD").split()
    return [t for t in below if t not in here]


def refuses(name: str) -> str:
    """A program that fails unless importing the wheel is refused by its declared versions."""
    return f"""
try:
    import {_package(name)}
except ImportError as error:
    assert "of the extension API" in str(error), error
else:
    raise SystemExit("{name} was imported on a core whose extension API it does not accept")
"""


@cache
def earlier(name: str) -> tuple[Earlier, ...]:
    """A wheel's releases below HEAD, oldest first, or the commit at which it was last built.

    Empty for a wheel that was never built.

    Raises:
      RuntimeError: it has no tag, and no commit or one that is not below HEAD in the table.
    """
    if released := tags(name):
        commits = [git("rev-list", "-n", "1", t).strip() for t in released]
        return tuple(Earlier(name, c, t, True) for t, c in zip(released, commits))
    where = f"[tool.primax.last-built] of pyproject.toml, {name}"
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    listed = tools.get("primax", {}).get("last-built", {}).get(name)
    if listed is None:
        raise RuntimeError(f"no tag {name}-v* is below HEAD, and {where} names no commit")
    if not listed:
        return ()
    try:
        commit = git("rev-parse", "--verify", f"{listed}^{{commit}}").strip()
        git("merge-base", "--is-ancestor", commit, "HEAD")
    except RuntimeError:
        raise RuntimeError(f"{where}: {listed} is not below HEAD; name a commit that is") from None
    return (Earlier(name, commit, f"{name} as last built at {commit[:12]}", False),)


def missing_tags() -> list[str]:
    """Names of the wheels without a release below HEAD."""
    return [
        w.name for w in workspace.wheels().values() if not any(e.tagged for e in earlier(w.name))
    ]


def above_the_core() -> list[Wheel]:
    """Wheels that build on the core."""
    return [w for w in workspace.wheels().values() if w.distribution != CORE]


def _newest_range(wheel: Wheel) -> ApiRange:
    path = wheel.folder / "src" / wheel.package / "_core_version.py"
    declared = release.api_range(path.read_text("utf-8"))
    if declared is None:
        raise RuntimeError(f"{path.relative_to(ROOT)} declares no version of the extension API")
    return declared


def oldest_cores() -> dict[Earlier | None, list[Wheel]]:
    """The newest wheels by the oldest earlier core that each of them accepts.

    A wheel accepts what it and the wheels below it accept. ``None`` has those that need a core
    that was not released or built yet, and those that were never built themselves.
    """
    groups: dict[Earlier | None, list[Wheel]] = {}
    for wheel in above_the_core():
        below, _ = workspace.resolve(wheel.distribution)
        ranges = [_newest_range(w) for w in below if w.distribution != CORE]
        cores = earlier("core") if earlier(wheel.name) else ()
        fitting = (core for core in cores if all(core.api_version() in r for r in ranges))
        groups.setdefault(next(fitting, None), []).append(wheel)
    return groups


def smoke_tests(name: str, folder: Path) -> list[str]:
    """Paths of the modules of :data:`SMOKE` that exist in the wheel's ``folder``.

    Raises:
      RuntimeError: none of them does.
    """
    listed = [folder / "tests" / module for module in SMOKE.get(name, ())]
    paths = [str(path) for path in listed if path.exists()]
    if not paths:
        raise RuntimeError(f"{folder}/tests holds no module that SMOKE in tools/earlier.py lists")
    return paths
