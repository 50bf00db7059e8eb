"""Steps of the rotation of test cases, which follow from the number of commits.

The noxfile imports this module, so it needs nothing but the standard library.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PERIOD: Final = 20
ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Step:
    """One run of a period: ``Step(3, 20)`` is the fourth of twenty."""

    number: int
    period: int = PERIOD

    def __post_init__(self) -> None:
        if not 0 <= self.number < self.period:
            raise ValueError(f"step {self.number} is not in range({self.period})")

    def __str__(self) -> str:
        return f"{self.number}/{self.period}"

    @classmethod
    def parse(cls, text: str) -> Step | None:
        """The step that an option asks for: ``3``, ``3/20``, ``commit`` or ``all`` (``None``)."""
        if text == "all":
            return None
        if text == "commit":
            return step_of_commit()
        number, _, period = text.partition("/")
        size = int(period) if period else PERIOD
        return cls(int(number) % size, size)


def step_of_commit(turns: int = 1, root: Path = ROOT) -> Step | None:
    """The step of the checked-out commit; ``None``, for all cases, without a git repository.

    Args:
      turns: runs that take part every so many commits only (a pair of versions, say) have a period
        of as many steps less, so that they too visit every case within `PERIOD` commits.
    """
    count = commits(root)
    if count is None:
        return None
    period = max(PERIOD // turns, 1)
    return Step(count // turns % period, period)


def commits(root: Path = ROOT) -> int | None:
    """The number of commits on the main line up to the one that is checked out.

    A shallow clone has too few of them; the commit's hash stands in, which reaches every step in
    the long run.
    """
    try:
        if _git(root, "rev-parse", "--is-shallow-repository") == "true":
            return int(_git(root, "rev-parse", "HEAD")[:12], 16)
        return int(_git(root, "rev-list", "--count", "--first-parent", "HEAD"))
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None


def _git(root: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *args], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()
