"""Summary of all rounds as one table and one JSON file."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .case import SCALE, Case


@dataclass
class Row:
    """One case: medians over the rounds, in the case's unit, and the median of the ratios."""

    name: str
    group: str
    unit: str
    reference: float | None
    candidate: float | None
    ratio: float | None
    lowest: float | None
    highest: float | None
    budget: float | None
    verdict: str
    reason: str = ""


Figures = list[dict[str, float | str]]


def make_row(case: Case, reference: Figures, candidate: Figures) -> Row:
    """Compare the two libraries' measurements, one of each per round."""
    scale = SCALE[case.unit]
    row = Row(
        case.name, case.group, case.unit, None, None, None, None, None, case.budget, "no budget"
    )
    for figures, side in ((reference, "reference"), (candidate, "candidate")):
        values = [float(f["value"]) * scale for f in figures if "value" in f]
        if len(values) == len(figures) and values:
            setattr(row, side, statistics.median(values))
            continue
        failed = next((f for f in figures if "value" not in f), {"error": "not run"})
        row.verdict = "missing" if "missing" in failed else "error"
        row.reason = f"{side}: {failed.get('missing') or failed.get('error')}"
    if row.reference is None or row.candidate is None:
        return row
    ratios = [
        float(c["value"]) / float(r["value"]) for r, c in zip(reference, candidate, strict=True)
    ]
    row.ratio, row.lowest, row.highest = statistics.median(ratios), min(ratios), max(ratios)
    if row.budget is not None:
        row.verdict = "within" if row.ratio <= row.budget else "over"
    return row


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def print_table(rows: list[Row], reference: str, candidate: str, rounds: int) -> None:
    """Print the rows with ratios and budgets, then the reasons for missing measurements."""
    table = Table(title=f"{candidate} against {reference}: medians of {rounds} rounds")
    table.add_column("case")
    for heading in (reference, candidate, "unit", "ratio", "range", "budget", "verdict"):
        table.add_column(heading, justify="right")
    colours = {"within": "green", "over": "red", "missing": "yellow", "error": "red"}
    group = None
    for row in rows:
        if group not in (None, row.group):
            table.add_section()
        group = row.group
        spread = "-" if row.lowest is None else f"{_figure(row.lowest)}-{_figure(row.highest)}"
        colour = colours.get(row.verdict, "dim")
        table.add_row(
            escape(row.name),
            _figure(row.reference),
            _figure(row.candidate),
            row.unit,
            _figure(row.ratio),
            spread,
            _figure(row.budget),
            f"[{colour}]{row.verdict}[/{colour}]",
        )
    console = Console(width=None if os.isatty(1) else 130)
    console.print(table)
    for row in rows:
        if row.reason:
            console.print(f"{row.name}: {row.reason}", markup=False, highlight=False)


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def environment() -> dict[str, Any]:
    """Date, versions and machine; the load is that before the measurement."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": {name: _version(name) for name in ("jaxlib", "jax", "primax-core", "numpy")},
    }


def _processor() -> str | None:
    """Name of the processor, on Linux."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else None


def document(
    rows: list[Row], reference: str, candidate: str, rounds: int, measured_on: dict[str, Any]
) -> dict[str, Any]:
    """The rows and the environment of the measurement, for JSON."""
    return {
        "reference": reference,
        "candidate": candidate,
        "rounds": rounds,
        "measured_on": measured_on,
        "rows": [asdict(row) for row in rows],
    }
