"""The table of errors: ``python -m integration_tests.accuracy``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

import numpy as np

from . import report
from .case import Case
from .cases import CASES
from .libraries import available, computed
from .measure import Error, error, exact

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"


def measured(case: Case, libraries: list[str], count: int, seed: int = 0) -> report.Row:
    """Errors of one function in both dtypes."""
    errors: dict[str, dict[str, Error | None]] = {}
    for name in report.DTYPES:
        dtype = np.dtype(name)
        operands = case.drawn(dtype, count, seed)
        values = exact(case.exact, operands, dtype)
        errors[name] = {}
        for library in libraries:
            out = computed(library, case, operands)
            errors[name][library] = None if out is None else error(out, values, operands, dtype)
    return report.Row(case.title, errors)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, and return 1 if an error exceeds its bound."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.accuracy")
    parser.add_argument("--points", type=int, default=400, help="arguments for each function")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[], metavar="FUNCTION")
    parser.add_argument("--record", action="store_true", help="raise bounds that are exceeded")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args(arguments)
    if options.only and options.write:
        parser.error("--write needs all functions, without --only")
    libraries = available()
    rows = []
    for case in CASES:
        if not options.only or case.title in options.only:
            rows.append(measured(case, libraries, options.points, options.seed))
            print(report.markdown(rows[-1:], libraries).splitlines()[-1], flush=True)
    if options.record:
        report.record(rows)
    if options.write:
        page = PAGE.read_text("utf-8")
        PAGE.write_text(report.put_into(page, report.markdown(rows, libraries)), "utf-8")
    problems = report.excesses(rows)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
