"""The table of errors, and the bounds that were recorded."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..marked_tables import put_between
from .measure import Error, shown

BOUNDS: Final = Path(__file__).with_name("bounds.json")
BEGIN: Final = "<!-- the table of errors begins -->"
END: Final = "<!-- the table of errors ends -->"
DTYPES: Final = ("float32", "float64")
SHOWN: Final = {"primax": "Primax", "jax": "jax", "numpy, scipy": "NumPy, SciPy"}


@dataclass(frozen=True)
class Row:
    """Errors of one function: by dtype and library; ``None`` if a library lacks the function."""

    title: str
    errors: dict[str, dict[str, Error | None]]


def bounds() -> dict[str, list[float]]:
    """Largest permitted errors by function, in the order of ``DTYPES``."""
    return json.loads(BOUNDS.read_text("utf-8")) if BOUNDS.exists() else {}


def excesses(rows: Iterable[Row]) -> list[str]:
    """Functions whose error exceeds its bound, or that have none."""
    known = bounds()
    problems = []
    for row in rows:
        for dtype, bound in zip(DTYPES, known.get(row.title, [0.0, 0.0]), strict=True):
            error = row.errors[dtype]["primax"]
            if error is None or not error.worst <= bound:
                problems.append(f"{row.title}, {dtype}: {error} ulp; the bound is {bound:g}")
    return problems


def record(rows: Iterable[Row]) -> None:
    """Raise bounds that are exceeded, and add missing ones: 1.5 times the measured error."""
    known = bounds()
    for row in rows:
        old = known.get(row.title, [0.0, 0.0])
        new = [row.errors[dtype]["primax"] for dtype in DTYPES]
        known[row.title] = [
            b if e is None or e.worst <= b else _rounded_up(1.5 * e.worst)
            for b, e in zip(old, new, strict=True)
        ]
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in known.items())
    BOUNDS.write_text(f"{{\n{lines}\n}}\n", "utf-8")


def _rounded_up(x: float) -> float:
    """Two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 1)
    return float(f"{math.ceil(x / unit) * unit:.6g}")


def markdown(rows: Iterable[Row], libraries: list[str]) -> str:
    """The table: the worst error, and the median in parentheses."""
    headings = ["function", *(f"{d} {SHOWN[x]}" for d in DTYPES for x in libraries)]
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)]]
    for row in rows:
        cells = [_cell(row.errors[d].get(library)) for d in DTYPES for library in libraries]
        lines.append([f"`{row.title}`", *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(error: Error | None) -> str:
    return "-" if error is None else f"{shown(error.worst)} ({error.median:.1f})"


def put_into(page: str, table: str) -> str:
    """Replace the table in the page; see :func:`put_between`."""
    return put_between(page, table, BEGIN, END)
