"""Source lines of equations."""

from __future__ import annotations

import linecache
import os
from typing import Any, NamedTuple

from primax_core.extend import locate


class Line(NamedTuple):
    """A line of a source file; line 0 is an unknown location."""

    file: str
    number: int
    function: str

    @property
    def text(self) -> str:
        """The text of the line."""
        return linecache.getline(self.file, self.number).strip() if self.number else ""

    @property
    def short(self) -> str:
        """``file.py:12``."""
        return f"{os.path.basename(self.file)}:{self.number}" if self.number else self.file


UNKNOWN = Line("<unknown place>", 0, "")


class Places:
    """Lines by captured location, each looked up once."""

    def __init__(self) -> None:
        self._known: dict[Any, Line] = {}
        self._lines: dict[tuple[str, int], Line] = {}
        self._numbers: dict[Line, int] = {}
        self._numbered: list[Line] = []

    def line(self, place: Any, otherwise: Line = UNKNOWN) -> Line:
        """The line of a captured location, or ``otherwise`` if there is none."""
        if place is None:
            return otherwise
        line = self._known.get(place)
        if line is None:
            at = locate(place)
            line = Line(at.file, at.line, at.function)
            # A function defined on a line of another counts as that line.
            line = self._known[place] = self._lines.setdefault((at.file, at.line), line)
        return line

    def number(self, line: Line) -> int:
        """The number of a line in names of compiled operations."""
        index = self._numbers.get(line)
        if index is None:
            index = self._numbers[line] = len(self._numbered)
            self._numbered.append(line)
        return index

    def numbered(self, number: int) -> Line | None:
        """The line of a number."""
        return self._numbered[number] if number < len(self._numbered) else None
