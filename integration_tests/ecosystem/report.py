"""Table of all parts: printed, written into a page, stored as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..marked_tables import put_between

SLOWER: Final = 1.1
BEGIN: Final = "<!-- the ecosystem's table begins -->"
END: Final = "<!-- the ecosystem's table ends -->"
HEADINGS: Final = (
    "library",
    "version",
    "what",
    "passed here",
    "passed there",
    "cold here",
    "cold there",
    "ratio",
    "warm here",
    "warm there",
    "ratio",
)


@dataclass(frozen=True)
class Row:
    """One part: tests passed on each side, and seconds of wall time; None if not measured."""

    name: str
    library: str
    version: str
    what: str
    passed_here: int
    passed_there: int | None
    cold_here: float | None = None
    cold_there: float | None = None
    warm_here: float | None = None
    warm_there: float | None = None
    where: str = ""

    def cells(self) -> list[str]:
        """Texts of the row, in the order of ``HEADINGS``."""
        return [
            self.library,
            self.version,
            self.what,
            str(self.passed_here),
            "-" if self.passed_there is None else str(self.passed_there),
            *_pair(self.cold_here, self.cold_there),
            *_pair(self.warm_here, self.warm_there),
        ]

    def slower(self) -> bool:
        """Return True if a run took more than ``SLOWER`` times as long here."""
        ratios = (_ratio(self.cold_here, self.cold_there), _ratio(self.warm_here, self.warm_there))
        return any(ratio is not None and ratio > SLOWER for ratio in ratios)


def _ratio(here: float | None, there: float | None) -> float | None:
    return None if here is None or there is None else here / there


def _pair(here: float | None, there: float | None) -> list[str]:
    seconds = ["-" if s is None else f"{s:.1f} s" for s in (here, there)]
    ratio = _ratio(here, there)
    return [*seconds, "-" if ratio is None else f"{ratio:.2f}"]


def markdown(rows: Iterable[Row]) -> str:
    """Format the table in Markdown, with the causes of slow parts."""
    rows = list(rows)
    lines = [" | ".join(HEADINGS), " | ".join("---" if i < 3 else "---:" for i in range(11))]
    lines += [" | ".join(row.cells()) for row in rows]
    text = "\n".join(f"| {line} |" for line in lines)
    if notes := list(_notes(rows)):
        text += "\n\nSlower here, and where:\n\n" + "\n".join(f"- {note}" for note in notes)
    return text


def _notes(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        if row.slower():
            yield f"{row.library}, {row.what}: {row.where or 'not looked into yet'}"


def put_into(page: str, table: str) -> str:
    """Replace the table in the page; see :func:`put_between`."""
    return put_between(page, table, BEGIN, END)


def print_table(rows: Iterable[Row]) -> None:
    """Print the table, with the causes of slow parts."""
    rows = list(rows)
    table = Table(title="Libraries written for JAX: Primax here, jax there")
    for i, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if i < 3 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row.cells()), style="yellow" if row.slower() else None)
    console = Console(width=None if os.isatty(1) else 170)
    console.print(table)
    for note in _notes(rows):
        console.print(f"slower: {note}", markup=False, highlight=False)


def merge(path: Path, rows: Iterable[Row], order: list[str]) -> list[Row]:
    """Merge ``rows`` into the JSON file, replacing older ones; return all rows in order."""
    rows_by_name = {}
    if path.exists():
        rows_by_name = {row["name"]: Row(**row) for row in json.loads(path.read_text("utf-8"))}
    rows_by_name.update((row.name, row) for row in rows)
    merged = sorted(
        (row for row in rows_by_name.values() if row.name in order),
        key=lambda row: order.index(row.name),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(row) for row in merged], indent=1) + "\n", "utf-8")
    return merged
