"""Lines of the user's source."""

from __future__ import annotations

import linecache
import os
from typing import Any, NamedTuple

from primax_core.extend import locate


class Line(NamedTuple):
    """A line of a source file; line 0 stands for a place that is not known."""

    file: str
    number: int
    function: str

    @property
    def text(self) -> str:
        """What is written there."""
        return linecache.getline(self.file, self.number).strip() if self.number else ""

    @property
    def short(self) -> str:
        """``file.py:12``."""
        return f"{os.path.basename(self.file)}:{self.number}" if self.number else self.file


UNKNOWN = Line("<unknown place>", 0, "")


class Places:
    """Lines by captured places, each looked up once."""

    def __init__(self) -> None:
        self._known: dict[Any, Line] = {}
        self._lines: dict[tuple[str, int], Line] = {}
        self._numbers: dict[Line, int] = {}
        self._numbered: list[Line] = []

    def line(self, place: Any, otherwise: Line = UNKNOWN) -> Line:
        """The line of a captured place, or another where there is none."""
        if place is None:
            return otherwise
        found = self._known.get(place)
        if found is None:
            at = locate(place)
            found = Line(at.file, at.line, at.function)
            # A function written on a line of another's counts as that line.
            found = self._known[place] = self._lines.setdefault((at.file, at.line), found)
        return found

    def number(self, line: Line) -> int:
        """A number that stands for a line in names of compiled operations."""
        found = self._numbers.get(line)
        if found is None:
            found = self._numbers[line] = len(self._numbered)
            self._numbered.append(line)
        return found

    def numbered(self, number: int) -> Line | None:
        """The line of a number."""
        return self._numbered[number] if number < len(self._numbered) else None
