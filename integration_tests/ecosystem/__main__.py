"""Run the parts and print the table and the differences; exit status 1 if there are any."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console

from . import choice, report
from .catalogue import PARTS
from .compare import Plan, Result, run_script, run_suite
from .parts import Script, Suite
from .sides import NoResult, Side

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "compatibility.md"
SHOWN: Final = 60


def run(plan: Plan, part: Suite | Script) -> Result | str:
    """Return the result of a part, or the reason why there is none."""
    try:
        return run_script(plan, part) if isinstance(part, Script) else run_suite(plan, part)
    except NoResult as error:
        return str(error)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.ecosystem")
    parser.add_argument("--ours", default=sys.executable, help="interpreter with Primax")
    parser.add_argument("--theirs", default=sys.executable, help="interpreter with the real jax")
    choice.add_options(parser)
    parser.add_argument("--rounds", type=int, default=1, help="how often programs are timed")
    parser.add_argument("--workers", type=int, default=2, help="processes for each suite, 0: none")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "ecosystem.json")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="leave caches and lists of outcomes there"
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write the table into {PAGE.relative_to(ROOT)}"
    )
    options = parser.parse_args(arguments)
    try:
        options.parts = choice.chosen(options)
    except ValueError as error:
        parser.error(str(error))
    if options.write and options.quick:
        parser.error("--write needs the times of both sides, which --quick does not take")
    if options.keep and options.keep.exists() and any(options.keep.iterdir()):
        parser.error(f"{options.keep} is not empty, and so runs with its caches would not be cold")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the parts, print and write the results, and return the exit status."""
    options = parse(arguments)
    here, there = Side("here", options.ours, True), Side("there", options.theirs, False)
    console = Console(stderr=True, width=100)
    rows: list[report.Row] = []
    faults: list[str] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = (options.keep or Path(scratch)).resolve()
        plan = Plan(here, there, folder, options.rounds, options.workers, not options.quick)
        for part in options.parts:
            with console.status(f"running {part.name}"):
                result = run(plan, part)
            if isinstance(result, str):
                faults.append(f"{part.name}: {result}")
                continue
            rows.append(result.row)
            faults += [f"{part.name}: {fault}" for fault in result.faults]
    report.print_table(rows)
    for fault in faults[:SHOWN]:
        print(fault)
    if len(faults) > SHOWN:
        print(f"... and {len(faults) - SHOWN} more")
    if not options.quick:
        merged = report.merge(options.json, rows, [part.name for part in PARTS])
        if options.write:
            page = PAGE.read_text("utf-8")
            PAGE.write_text(report.put_into(page, report.markdown(merged)), "utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
