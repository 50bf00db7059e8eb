"""Build hook: the commit of the sources, for the notices of vendored copies.

A wheel gets the file ``primax_core/commit.txt`` if it is built in a git checkout, or from a source
distribution that was. Other builds have no such file.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "primax_core/commit.txt"


def commit(folder: Path) -> str | None:
    """The commit of a checkout, with a remark if the sources differ from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "src/primax_core/__init__.py")
        changes = git("status", "--porcelain", "--", "src")
        return git("rev-parse", "HEAD") + (", with changes" if changes else "")
    except (OSError, subprocess.CalledProcessError):
        return None


class CommitHook(BuildHookInterface):
    """Adds the file to wheels and source distributions."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file, unless the sources have it."""
        folder = Path(self.root)
        if version == "editable" or (folder / "src" / FILE).exists():
            return
        text = commit(folder)
        if text is None:
            return
        self.scratch = tempfile.TemporaryDirectory()
        path = Path(self.scratch.name) / "commit.txt"
        path.write_text(text + "\n", "utf-8")
        inside = f"src/{FILE}" if self.target_name == "sdist" else FILE
        build_data["force_include"][str(path)] = inside

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the written file."""
        if hasattr(self, "scratch"):
            self.scratch.cleanup()
