"""The two sides of a comparison: an interpreter, with Primax or the real jax as ``jax``."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TIMEOUT: Final = 1800
PYTEST_INI: Final = Path(__file__).resolve().parent / "pytest.ini"


class NoResult(Exception):
    """Raised when a process ends without its result."""


@dataclass(frozen=True)
class Done:
    """Standard output of a process, and its duration."""

    stdout: str
    seconds: float


@dataclass(frozen=True)
class Side:
    """An interpreter where ``import jax`` imports Primax (``as_jax``) or the real jax.

    Its processes have the variables ``environment`` in addition to those of this process.
    """

    name: str
    python: str
    as_jax: bool
    environment: tuple[tuple[str, str], ...] = ()

    def run(self, arguments: list[str], cache: Path, statuses: tuple[int, ...] = (0,)) -> Done:
        """Run the interpreter outside this repository, with ``cache`` as its disk cache.

        Raises:
          NoResult: if its exit status is not among ``statuses``, or it takes too long.
        """
        env = {**os.environ, "XDG_CACHE_HOME": str(cache), "TF_CPP_MIN_LOG_LEVEL": "2"}
        env.update(self.environment)
        cache.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [self.python, *arguments],
                env=env,
                cwd=cache,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise NoResult(f"{self.name}: no result after {TIMEOUT} s") from None
        seconds = time.perf_counter() - start
        if done.returncode not in statuses:
            last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
            raise NoResult(f"{self.name}: exit status {done.returncode}\n{last}")
        return Done(done.stdout, seconds)

    def run_script(self, path: Path, cache: Path) -> tuple[object, float]:
        """Run a script; return the JSON of its last line, and its duration."""
        how = ["-m", "primax.as_jax"] if self.as_jax else []
        done = self.run([*how, str(path)], cache)
        try:
            return json.loads(done.stdout.splitlines()[-1]), done.seconds
        except (IndexError, ValueError):
            raise NoResult(f"{self.name}: {path.name} printed no line of JSON at its end") from None

    def run_tests(
        self,
        folder: Path,
        cache: Path,
        junit: Path,
        workers: int,
        tests: list[str] | None = None,
        ignored: Sequence[str] = (),
        modules: Sequence[str] = (),
    ) -> float:
        """Run all or some tests of a folder; return the duration.

        ``junit`` is the file for the outcomes, ``ignored`` are modules that are not imported or
        tests that do not run, and ``modules`` are the only ones that are imported. A failed test
        does not raise.
        """
        command = [*self._pytest(folder), "--continue-on-collection-errors", f"--junitxml={junit}"]
        command += _ignoring(folder, ignored)
        if workers:
            command += ["-n", str(workers)]
        if tests is None:
            command += _paths(folder, modules)
        else:  # too many names for the command line
            names = junit.with_suffix(".txt")
            names.write_text("".join(f"{folder}/{test}\n" for test in tests), "utf-8")
            command.append(f"@{names}")
        return self.run(command, cache, statuses=(0, 1)).seconds

    def collect(
        self,
        folder: Path,
        cache: Path,
        ignored: Sequence[str] = (),
        modules: Sequence[str] = (),
    ) -> list[str]:
        """Return the names of the tests in a folder, as pytest prints them.

        Raises:
          NoResult: if a test module cannot be imported because a requirement is not installed.
        """
        command = self._pytest(folder) + ["--collect-only", *_ignoring(folder, ignored)]
        command += _paths(folder, modules)
        done = self.run(command, cache)
        return [line for line in done.stdout.splitlines() if "::" in line]

    def folder_of(self, package: str) -> Path:
        """Return the folder of an installed package, without importing it."""
        code = f"from importlib.util import find_spec; print(find_spec({package!r}).origin)"
        return Path(self.run(["-c", code], Path.cwd()).stdout.strip()).parent

    def download(self, distribution: str, into: Path) -> Path:
        """Download and unpack the source distribution of the installed version.

        Returns:
          Its folder, below ``into``; that of an earlier call, if there was one.

        Raises:
          NoResult: if the package index has none.
        """
        version = self.version_of(distribution)
        folder = into / f"{distribution}-{version}"
        if not folder.exists():
            into.mkdir(parents=True, exist_ok=True)
            pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", distribution]
            self.run([*pip, "--dest", str(folder), f"{distribution}=={version}"], into)
            (archive,) = folder.glob("*.tar.gz")
            with tarfile.open(archive) as file:
                file.extractall(folder, filter="data")
        (sources,) = [path for path in folder.iterdir() if path.is_dir()]
        return sources

    def version_of(self, distribution: str) -> str:
        """Return the installed version of a distribution."""
        code = f"from importlib.metadata import version; print(version({distribution!r}))"
        return self.run(["-c", code], Path.cwd()).stdout.strip()

    def _pytest(self, folder: Path) -> list[str]:
        plugin = ["-p", "primax.as_jax.pytest"] if self.as_jax else []
        return ["-m", "pytest", "-c", str(PYTEST_INI), f"--rootdir={folder}", *plugin]


def _ignoring(folder: Path, modules: Sequence[str]) -> list[str]:
    return [
        f"--deselect={name}" if "::" in name else f"--ignore={folder / name}" for name in modules
    ]


def _paths(folder: Path, modules: Sequence[str]) -> list[str]:
    return [str(folder / module) for module in modules] or [str(folder)]
