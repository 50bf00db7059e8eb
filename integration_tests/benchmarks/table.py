"""Tables of functions at several sizes, for both libraries in one process.

Batches alternate between the libraries, so that a temporary slowdown affects both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from .case import Namespace

BUDGET = 1.05
Call = Callable[[], Any]


@dataclass
class Row:
    """One function at one size: microseconds, and the ratio of medians of paired batches."""

    name: str
    size: int
    reference: float | None = None
    candidate: float | None = None
    numpy: float | None = None
    ratio: float | None = None
    error: str = ""


def batch(call: Call, wait: Callable[[Any], Any], number: int) -> float:
    """Time ``number`` calls and wait for the last result; return seconds per call."""
    start = time.perf_counter()
    for _ in range(number):
        out = call()
    wait(out)
    return (time.perf_counter() - start) / number


def compare(
    name: str, size: int, sides: Sequence[Namespace], prepare: Callable[[Namespace], Call],
    on_numpy: Call | None = None,
) -> Row:  # fmt: skip
    """Time both libraries in turn, then NumPy.

    Args:
      prepare: creates the call of a library.
    """
    row, calls = Row(name, size), []
    for ns in sides:
        try:
            call = prepare(ns)
            for _ in range(3):
                ns.jax.block_until_ready(call())
        except Exception as error:
            row.error = f"{ns.root}: {type(error).__name__}: {str(error).splitlines()[0][:60]}"
            return row
        calls.append((call, ns.jax.block_until_ready))
    number = max(1, int(0.004 / max(batch(*calls[0], 2), 1e-6)))
    pairs = [[batch(*c, number) for c in calls] for _ in range(15)]
    row.reference, row.candidate = (1e6 * statistics.median(p[i] for p in pairs) for i in (0, 1))
    row.ratio = statistics.median(p[1] / p[0] for p in pairs)
    if on_numpy is not None:
        row.numpy = 1e6 * min(batch(on_numpy, lambda out: out, number) for _ in range(3))
    return row


def options(module: str, sizes: Sequence[int]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--jitted", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sizes", type=int, nargs="*", default=sizes)
    return parser.parse_args()


def report(
    args: argparse.Namespace, names: Iterable[str], measure: Callable[[str, int], Row]
) -> None:
    """Measure, and print the table, slowest ratios last."""
    selected = [(n, s) for n in names if args.only in n for s in args.sizes]
    rows = []
    for name, size in track(selected, "measuring", console=Console(stderr=True), transient=True):
        row = measure(name, size)
        if row.ratio is not None and row.ratio > BUDGET:  # either of the two may be an outlier
            again = measure(name, size)
            row = min(row, again, key=lambda r: r.ratio if r.ratio is not None else float("inf"))
        rows.append(row)
    with_numpy = any(r.numpy is not None for r in rows)
    columns = ["numpy µs"] if with_numpy else []
    table = Table("function", "elements", "jax µs", "primax µs", *columns, "ratio")
    for row in sorted(rows, key=lambda r: r.ratio or 0):
        times = [row.reference, row.candidate, *([row.numpy] if with_numpy else [])]
        shown = [f"{v:.3g}" if v is not None else "-" for v in times]
        mark = "[red]" if row.ratio and row.ratio > BUDGET else ""
        ratio = f"{mark}{row.ratio:.2f}" if row.ratio is not None else row.error
        table.add_row(row.name, str(row.size), *shown, ratio)
    Console(width=120 if not sys.stdout.isatty() else None).print(table)
    if args.json:
        args.json.write_text(json.dumps([asdict(r) for r in rows], indent=1), "utf-8")
